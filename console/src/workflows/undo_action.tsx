// The undo of a workflow that has ended: what it would call, a reason, and the job that does it.
import { post } from "../api/client";
import { useRead } from "../api/query";
import { type Action, ActionButton, type Allowed } from "../parts/actions";
import { errorLine } from "../parts/errors";
import { Clip, Text } from "../parts/text";
import { ExactTime } from "../parts/time";
import { thingUrl } from "../parts/url";
import type { Workflow } from "./reading";

/** The button that first shows what an undo would call. */
export function UndoButton({ workflow }: { workflow: Workflow }) {
  return <ActionButton compact action={undoAction(workflow)} />;
}

function undoAction(workflow: Workflow): Action {
  const parts = { job_id: workflow.id };
  return {
    label: "Undo…",
    icon: "undo",
    danger: true,
    allowed: undoable(workflow),
    title: `Undo workflow ${workflow.id}`,
    text: "A job of its own calls the undo of these steps, in this order. It is on record, and it continues after a crash.",
    reason: "required",
    fields: <UndoPreview id={workflow.id} />,
    confirm: "Undo",
    run: async (reason) => {
      const made = await post("/workflows/{job_id}/undo", { parts, body: { reason } });
      return { message: `Job ${made.id} undoes the steps of workflow ${workflow.id}.` };
    },
  };
}

function undoable(workflow: Workflow): Allowed {
  if (workflow.undo_of) return "It undoes another workflow itself.";
  if (workflow.undone_at) return "Its steps were undone.";
  if (workflow.undone_by) return `Job ${workflow.undone_by} undoes its steps.`;
  if (workflow.undoing_since) return "It is undoing its steps. If that has failed, retry it, or settle the step.";
  return workflow.finished_at ? true : "The workflow has not ended. Cancel it: that undoes its steps.";
}

/** The steps that an undo would undo, from the record. */
export function UndoPreview({ id }: { id: string }) {
  const preview = useRead("/workflows/{job_id}/preview-undo", {}, { parts: { job_id: id } }).data;
  if (!preview) return null;
  if (preview.items.length === 0) return <p class="soft">No step on record has an undo.</p>;
  return (
    <ol class="undo-preview" aria-label="Steps to undo">
      {preview.items.map((one) => (
        <li key={one.path}>
          <Text value={one.path} />{" "}
          <span class="soft small">
            {one.undone_at ? (
              <>
                undone <ExactTime at={one.undone_at} />
              </>
            ) : (
              <Clip value={typeof one.value === "string" ? one.value : (JSON.stringify(one.value) ?? "null")} />
            )}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** Returns why steps are undone in one line: who asked for it and why, or the error without its traceback. */
function causeLine(cause: string): string {
  return cause.startsWith("Traceback") || cause.includes("\n") ? errorLine(cause) : cause;
}

/** What the card of a workflow says about its undo. */
export function UndoFacts({ workflow }: { workflow: Workflow }) {
  const other = workflow.undone_by ?? workflow.undo_of;
  return (
    <>
      {other && (
        <>
          <dt>{workflow.undone_by ? "Undone by" : "Undo of"}</dt>
          <dd>
            <a href={thingUrl("jobs", other)}>{other}</a>
            {workflow.undone_at && (
              <span class="soft">
                {" "}
                at <ExactTime at={workflow.undone_at} />
              </span>
            )}
          </dd>
        </>
      )}
      {workflow.undo_cause && (
        <>
          <dt>Undo because</dt>
          <dd>
            <Text value={causeLine(workflow.undo_cause)} />
          </dd>
        </>
      )}
    </>
  );
}
