// Steps of a workflow as bars on a line of time.
import type { Schemas } from "../api/client";
import type { Workflow } from "./reading";

export type Step = Schemas["Step"];

export interface Row {
  name: string;
  from: number;
  to: number;
  /** Whether the workflow waited; otherwise it worked. */
  isWait: boolean;
  /** Absent for the wait that has not ended. */
  step?: Step;
  attempt: number;
}

const WAITS = new Set(["sleep", "signal", "timeout", "choice", "join"]);
const SHORTEST = 10;

/** Returns a row for each step, and one for what the workflow is parked for. */
export function rowsOf(steps: Step[], workflow: Workflow, isNow: boolean, now: number): Row[] {
  const rows: Row[] = [];
  let before = Date.parse(workflow.created_at);
  for (const step of steps) {
    const done = Date.parse(step.done_at);
    const isWait = WAITS.has(step.kind);
    const row = { name: step.path, from: Date.parse(step.began_at), to: done, isWait, step, attempt: step.attempt };
    if (step.kind === "sleep") {
      // It is recorded when the sleep begins, and holds its end.
      const end = Date.parse(String(step.value));
      row.from = done;
      row.to = Math.max(done, Math.min(Number.isNaN(end) ? done : end, now));
    } else if (isWait) {
      row.from = Math.min(before, done);
    }
    // A deadline is the beginning of a wait whose outcome is a step of its own.
    if (step.kind !== "deadline") rows.push(row);
    before = Math.max(done, row.to);
  }
  if (isNow && workflow.parked_at && steps.at(-1)?.kind !== "sleep") {
    const from = Date.parse(workflow.parked_at);
    rows.push({ name: workflow.parked_for ?? "parked", from, to: Math.max(from, now), isWait: true, attempt: workflow.attempt });
  }
  return rows;
}

/** Returns where moments lie on the axis, in percent. Long pieces are drawn shorter, so that short steps are seen. */
export function axisOf(rows: Row[]): (moment: number) => number {
  const moments = [...new Set(rows.flatMap((row) => [row.from, row.to]))].sort((a, b) => a - b);
  const places = new Map<number, number>();
  let at = 0;
  moments.forEach((moment, n) => {
    if (n > 0) at += 0.5 + Math.log2(1 + (moment - (moments[n - 1] as number)) / SHORTEST);
    places.set(moment, at);
  });
  return (moment) => (at ? ((places.get(moment) ?? 0) / at) * 100 : 0);
}
