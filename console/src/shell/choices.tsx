import { theme, THEMES, zone } from "../live/settings";

/** The reader's choices: theme, and the zone of exact times. */
export function Choices() {
  return (
    <>
      <div class="choice" role="group" aria-label="Theme">
        {THEMES.map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={theme.value === one}
            onClick={() => {
              theme.value = one;
            }}
          >
            {one === "system" ? "System" : one === "light" ? "Light" : "Dark"}
          </button>
        ))}
      </div>
      <div class="choice" role="group" aria-label="Zone of times">
        {(["local", "utc"] as const).map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={zone.value === one}
            onClick={() => {
              zone.value = one;
            }}
          >
            {one === "utc" ? "UTC" : "Local time"}
          </button>
        ))}
      </div>
    </>
  );
}
