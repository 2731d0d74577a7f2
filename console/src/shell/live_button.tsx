import { changes, isPaused, type LiveStatus, liveStatus } from "../live/live";
import { Icon } from "../parts/icon";

const LABELS: Record<LiveStatus, string> = {
  connecting: "Connecting",
  live: "Live",
  polling: "Live",
  paused: "Paused",
  lost: "Reconnecting",
};

/** Shows whether the page is current, and pauses its updates. */
export function LiveButton() {
  const status = liveStatus.value;
  return (
    <button
      type="button"
      class="live"
      data-status={status}
      aria-pressed={isPaused.value}
      title={isPaused.value ? "Updates are paused. Continue (p)" : "This page updates itself. Pause it (p)"}
      onClick={togglePause}
    >
      <span class="dot" />
      {LABELS[status]}
      <Icon name={isPaused.value ? "play" : "pause"} />
    </button>
  );
}

/** Pauses updates, or continues them and reads at once. */
export function togglePause(): void {
  isPaused.value = !isPaused.value;
  if (!isPaused.value) changes.now();
}
