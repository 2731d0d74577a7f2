// The keyboard. Single keys act only while no field has the focus and no dialog is open.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { changes } from "../live/live";
import { nextTheme } from "../live/settings";
import { PAGES } from "../pages";
import { pageUrl } from "../parts/url";
import { togglePause } from "./live_button";

export const keysAreShown = signal(false);

const KEYS: [string[], string][] = [
  [["/"], "Go to the filter"],
  [["j"], "Next row"],
  [["k"], "Row before"],
  [["Enter"], "Open the row"],
  [["x"], "Select the row, or not"],
  [["r"], "Read again now"],
  [["p"], "Pause or continue updates"],
  [["t"], "Next theme: system, light, dark"],
  [["?"], "This list"],
];

const LETTER_MILLIS = 1500;

/** Listens to keys until the returned function is called. */
export function listenToKeys(route: (url: string) => void): () => void {
  let wantsPageUntil = 0;
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const target = event.target as HTMLElement;
    if (target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    if (Date.now() < wantsPageUntil) {
      wantsPageUntil = 0;
      const page = PAGES.find((one) => one.letter === event.key);
      if (page) {
        event.preventDefault();
        route(pageUrl(page.path));
      }
      return;
    }
    const act = ACTS[event.key];
    if (event.key === "g") wantsPageUntil = Date.now() + LETTER_MILLIS;
    else if (act) {
      event.preventDefault();
      act();
    }
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}

const ROW = "[data-row], tbody[data-ref]";

const ACTS: Record<string, () => void> = {
  "/": () => document.querySelector<HTMLInputElement>("[data-filter]")?.focus(),
  r: () => changes.now(),
  t: nextTheme,
  p: togglePause,
  "?": () => {
    keysAreShown.value = true;
  },
  j: () => focusRow(1),
  k: () => focusRow(-1),
  x: () => document.activeElement?.closest(ROW)?.querySelector<HTMLInputElement>("input[type=checkbox]")?.click(),
};

function focusRow(step: number): void {
  const links = [...document.querySelectorAll<HTMLElement>("[data-row-link]")];
  const row = document.activeElement?.closest(ROW);
  const at = links.findIndex((link) => link === document.activeElement || (row && link.closest(ROW) === row));
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step));
  links[next]?.focus();
}

/** Lists the keys. */
export function KeysDialog() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    box.current?.showModal();
  }, []);
  const close = () => {
    keysAreShown.value = false;
  };
  return (
    <dialog class="dialog wide" ref={box} onClose={close} aria-labelledby="keys-title">
      <div class="dialog-body">
        <h2 id="keys-title">Keys</h2>
        <div class="keys">
          <dl>
            {KEYS.map(([keys, text]) => (
              <div key={text}>
                <dt>
                  {keys.map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
          <dl>
            {PAGES.filter((page) => page.letter).map((page) => (
              <div key={page.path}>
                <dt>
                  <kbd>g</kbd> <kbd>{page.letter}</kbd>
                </dt>
                <dd>{page.title}</dd>
              </div>
            ))}
          </dl>
        </div>
        <div class="dialog-foot">
          <button type="button" class="button" onClick={close}>
            Close
          </button>
        </div>
      </div>
    </dialog>
  );
}
