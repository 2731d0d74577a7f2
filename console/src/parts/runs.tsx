// What pages say about runs of batches and pipelines.
import type { Schemas } from "../api/client";
import { count, many } from "./format";
import { type Share, Shares } from "./progress";

export type BatchRun = Schemas["BatchRun"];
export type PipelineRun = Schemas["PipelineRun"];
export type AnyRun = BatchRun | PipelineRun;

/** Returns whether a run is one of a batch. */
export function isBatch(run: AnyRun): run is BatchRun {
  return "batch" in run;
}

/** Returns the name of the batch or pipeline. */
export function nameOf(run: AnyRun): string {
  return isBatch(run) ? run.batch : run.name;
}

/** Returns how many targets of a batch run were previewed and are not yet requested to be applied. */
export function leftOf(run: BatchRun): number {
  return run.total - run.queued - run.applying - run.applied - run.failed - run.rolled_back;
}

/** Returns whether workers have something to do for a batch run. */
export function isBusy(run: BatchRun): boolean {
  return run.outstanding > 0 || run.queued > 0 || run.applying > 0 || run.reverting > 0;
}

/** Returns how far a run is, in shares of its whole. */
export function sharesOf(run: AnyRun): { shares: Share[]; total: number } {
  if (!isBatch(run)) {
    return {
      total: run.partitions,
      shares: [
        { label: "fetched", number: run.parts_ended - run.parts_failed, tone: run.state === "completed" ? "green" : "blue" },
        { label: "failed", number: run.parts_failed, tone: "red" },
      ],
    };
  }
  if (run.state === "preview") {
    return {
      total: run.total,
      shares: [
        { label: "previewed", number: run.previewed - run.preview_failed, tone: "violet" },
        { label: "preview failed", number: run.preview_failed, tone: "red" },
      ],
    };
  }
  return {
    total: run.total,
    shares: [
      { label: "applied", number: run.applied, tone: "green" },
      { label: "failed", number: run.failed, tone: "red" },
      { label: "rolled back", number: run.rolled_back, tone: "gray" },
      { label: "being applied", number: run.applying, tone: "blue" },
      { label: "queued", number: run.queued, tone: "amber" },
    ],
  };
}

/** Says in a few words how far a run is. */
export function progressText(run: AnyRun): string {
  if (!isBatch(run)) {
    const failed = run.parts_failed ? `, ${count(run.parts_failed)} failed` : "";
    return `${count(run.parts_ended)} of ${many(run.partitions, "partition")}${failed}, ${many(run.records, "record")}`;
  }
  if (!run.planned_at) return "making the plan";
  if (run.state === "preview") {
    const changing = run.previewed - run.preview_failed - run.unchanged;
    if (!run.previewed_at) return `${count(run.previewed)} of ${many(run.total, "target")} previewed`;
    return `${count(changing)} of ${many(run.total, "target")} would change`;
  }
  const parts = [
    [run.applied, "applied"],
    [run.failed, "failed"],
    [run.rolled_back, "rolled back"],
    [run.applying + run.queued, "under way"],
  ].filter(([number]) => number);
  return `${parts.map(([number, word]) => `${count(number as number)} ${word}`).join(", ") || "0"} of ${many(run.total, "target")}`;
}

/** Shows how far a run is: a bar and a few words. */
export function RunProgress({ run }: { run: AnyRun }) {
  const { shares, total } = sharesOf(run);
  return (
    <span class="run-progress">
      <Shares shares={shares} total={total} label="Progress" />
      <span class="small soft number clip">{progressText(run)}</span>
    </span>
  );
}
