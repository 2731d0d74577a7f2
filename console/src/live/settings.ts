// What the reader has chosen, kept in the browser.
import { effect, signal, type Signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
export type Zone = "local" | "utc";

function kept<T extends string>(name: string, allowed: readonly T[]): Signal<T> {
  let start = allowed[0] as T;
  try {
    const found = localStorage.getItem(`detent.${name}`) as T | null;
    if (found && allowed.includes(found)) start = found;
  } catch {
    /* storage is blocked: the choice lasts as long as the page */
  }
  const chosen = signal(start);
  effect(() => {
    try {
      localStorage.setItem(`detent.${name}`, chosen.value);
    } catch {
      /* as above */
    }
  });
  return chosen;
}

export const THEMES = ["system", "light", "dark"] as const;
export const theme = kept<Theme>("theme", THEMES);
export const zone = kept<Zone>("zone", ["local", "utc"]);

effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});

/** Whether the page is dark now; charts draw on a canvas and need to know. */
export const isDark = signal(false);
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const setDark = () => {
  isDark.value = theme.peek() === "dark" || (theme.peek() === "system" && systemDark.matches);
};
systemDark.addEventListener("change", setDark);
effect(() => {
  theme.value;
  setDark();
});

/** Goes on to the next theme. */
export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] as Theme;
}
