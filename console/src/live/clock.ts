// The time now, as a signal: relative times are drawn again when it ticks. It stands still while updates are paused.
import { signal } from "@preact/signals";
import { isPaused } from "./live";

export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden && !isPaused.peek()) now.value = Date.now();
}, 1000);
