// Lifecycles as the API describes them: which moves are legal, and what states mean.
import type { Allowed } from "../parts/actions";
import { labelOf } from "../parts/state";
import type { Schemas } from "./client";
import { useRead } from "./query";

export type Lifecycle = Schemas["LifecycleBody"];

/** Reads a lifecycle: one of Detent's own (job, batch_run, pipeline_run, ops_run, …) or an attached one. */
export function useLifecycle(name: string): Lifecycle | undefined {
  return useRead("/lifecycles/{name}", {}, { parts: { name }, once: true }).data;
}

/** Returns whether one of the triggers leads out of a state, or why not. */
export function legalMove(lifecycle: Lifecycle | undefined, state: string, verb: string, ...triggers: string[]): Allowed {
  if (!lifecycle) return "The lifecycle is not known yet.";
  const moves = lifecycle.transitions.filter((one) => triggers.includes(one.trigger));
  if (moves.some((one) => one.source === state)) return true;
  const sources = [...new Set(moves.map((one) => labelOf(one.source)))];
  const noun = labelOf(lifecycle.name);
  return `This ${noun} is ${labelOf(state)}. ${capital(verb)} is possible only if it is ${either(sources)}.`;
}

/** Returns the states to which a trigger may move from a state. */
export function targetsOf(lifecycle: Lifecycle | undefined, state: string, trigger: string): string[] {
  return (lifecycle?.transitions ?? [])
    .filter((one) => one.source === state && one.trigger === trigger)
    .map((one) => one.target);
}

/** Returns what a state means. */
export function meaningOf(lifecycle: Lifecycle | undefined, state: string): string {
  return lifecycle?.states.find((one) => one.name === state)?.means ?? "";
}

function either(words: string[]): string {
  if (words.length < 2) return words[0] ?? "in another state";
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
