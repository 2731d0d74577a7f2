import { Icon, type IconName } from "./icon";

export type Tone = "green" | "blue" | "amber" | "red" | "gray" | "violet";

const LOOKS: Record<string, [Tone, IconName]> = {
  pending: ["gray", "clock"],
  parked: ["violet", "pause"],
  running: ["blue", "spinner"],
  succeeded: ["green", "check"],
  failed: ["amber", "warning"],
  quarantined: ["red", "dead"],
  cancelled: ["gray", "slash"],
  preview: ["violet", "eye"],
  queued: ["gray", "clock"],
  applying: ["blue", "spinner"],
  applied: ["green", "check"],
  partial: ["amber", "warning"],
  rolled_back: ["gray", "undo"],
  created: ["gray", "clock"],
  workers_running: ["blue", "spinner"],
  consolidation_skipped: ["amber", "warning"],
  consolidation_triggered: ["blue", "clock"],
  consolidating: ["blue", "spinner"],
  completed: ["green", "check"],
  claimed: ["blue", "clock"],
  success: ["green", "check"],
  leased: ["gray", "clock"],
  in_progress: ["blue", "spinner"],
  committed: ["green", "check"],
  done: ["green", "check"],
  aborted: ["amber", "cross"],
  error: ["amber", "cross"],
  crashed: ["red", "bolt"],
  timed_out: ["amber", "clock"],
  expired: ["amber", "clock"],
  unknown: ["red", "help"],
  released: ["gray", "undo"],
  snoozed: ["gray", "clock"],
  throttled: ["gray", "limits"],
  firing: ["red", "alerts"],
  resolved: ["green", "check"],
  acknowledged: ["amber", "eye"],
  paused: ["amber", "pause"],
  active: ["green", "play"],
  open: ["red", "bolt"],
  stopping: ["amber", "down"],
  critical: ["red", "warning"],
  warning: ["amber", "warning"],
  info: ["blue", "info"],
};

/** Returns the tone and the icon of a state of any lifecycle. */
export function lookOf(state: string): [Tone, IconName] {
  return LOOKS[state] ?? ["gray", "dot"];
}

/** Returns a state as a person reads it. */
export function labelOf(state: string): string {
  return state.replaceAll("_", " ");
}

/** Shows a state: a colour, an icon and its name. A past state stands still. */
export function State({ state, label, past = false }: { state: string; label?: string; past?: boolean }) {
  const [tone, icon] = lookOf(state);
  return (
    <span class={`state tone-${tone}`}>
      <Icon name={icon} className={icon === "spinner" && !past ? "turning" : ""} />
      {label ?? labelOf(state)}
    </span>
  );
}
