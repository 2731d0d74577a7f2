// Jobs by queue and state: from the stream, which counts once for all consoles; without it, from the API.
import { counted, type Counted } from "../live/live";
import { useRead } from "./query";
import { session } from "./session";

/** Returns the jobs by queue and state; undefined while they are not known. */
export function useCounts(): Counted | undefined {
  const streamed = counted.value;
  // A token of one tenant may not see the queues. Its own counts are few.
  const isScoped = session.value?.tenant != null;
  const queues = useRead("/queues", { limit: 1000 }, { enabled: streamed === null && !isScoped, slow: true }).data;
  const own = useRead("/jobs/counts", {}, { enabled: streamed === null && isScoped, slow: true }).data;
  if (streamed !== null) return streamed;
  if (!isScoped) return queues && Object.fromEntries(queues.items.map((one) => [one.name, one.jobs as Record<string, number>]));
  if (!own) return undefined;
  const found: Counted = {};
  for (const one of own.items) (found[one.queue] ??= {})[one.state] = ((found[one.queue] ??= {})[one.state] ?? 0) + one.jobs;
  return found;
}

/** Adds the jobs of a state up, of all states without one, in one queue or in all. */
export function addedUp(counts: Counted | undefined, state?: string, queue?: string): number | undefined {
  if (!counts) return undefined;
  const chosen = queue === undefined ? Object.values(counts) : [counts[queue] ?? {}];
  return chosen.reduce((sum, one) => sum + (state ? (one[state] ?? 0) : Object.values(one).reduce((all, jobs) => all + jobs, 0)), 0);
}
