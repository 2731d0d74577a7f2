// Reads of workflows that several pages share.
import type { Job, Schemas } from "../api/client";
import { type Reading, useRead } from "../api/query";

export type Workflow = Schemas["Workflow"];
export type Wait = Schemas["Wait"];

const PARKED = { state: "parked", limit: 200 };
const WAITS_MAX = 20;

/** Returns what is on record about a job as a workflow; undefined if it is none, or has recorded nothing yet. */
export function useWorkflow(id: string): Workflow | undefined {
  // The newest workflow up to this id is this job, or the job is no workflow. To ask for it by its id would be an error.
  const isId = /^\d{1,19}$/.test(id);
  const after = isId ? String(BigInt(id) + 1n) : undefined;
  const newest = useRead("/workflows", { limit: 1, after }, { enabled: isId }).data?.items[0];
  const isOne = newest?.id === id;
  // The end of the job that undoes it is no change of this one.
  const every = newest?.undone_by && !newest.undone_at ? 1 : undefined;
  const whole = useRead("/workflows/{job_id}", {}, { parts: { job_id: id }, enabled: isOne, every }).data;
  return isOne ? (whole ?? newest) : undefined;
}

/** Returns what one workflow waits for. */
export function useWaits(workflow: Workflow): Wait[] {
  const found = useRead("/workflows/waits", { job_id: workflow.id, limit: WAITS_MAX }, { enabled: workflow.parked_at !== null });
  return workflow.parked_at === null ? [] : (found.data?.items ?? []);
}

/** Reads the newest parked workflows. All rows of a page share this request. */
export function useParked(): Reading<{ items: Workflow[]; next: string | null }> {
  return useRead("/workflows", PARKED, { slow: true });
}

/** Returns whether a job may be parked: it is pending, and not due yet. */
export function mayBeParked(job: Job): boolean {
  return job.state === "pending" && Date.parse(job.due_at) > Date.now();
}

/** Returns a time without the far one that stands for "without a time limit". */
export function limitOf(at: string | null): string | null {
  return at && !at.startsWith("9999") ? at : null;
}
