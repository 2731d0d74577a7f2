// What the actions of a job do if the job is a workflow: a cancel that undoes its steps, and the settling of one step.
import { post } from "../api/client";
import type { Job } from "../api/client";
import type { Action, Allowed } from "../parts/actions";
import type { Workflow } from "./reading";
import { UndoPreview } from "./undo_action";

/** Returns the action that cancels a workflow with its children. Its steps are undone, unless the reader says no. */
export function cancelWorkflow(workflow: Workflow, allowed: Allowed): Action {
  const parts = { job_id: workflow.id };
  return {
    label: "Cancel",
    icon: "slash",
    danger: true,
    allowed,
    title: `Cancel workflow ${workflow.id}?`,
    text: "Its children are cancelled too, except detached ones. First, these steps are undone in this order:",
    fields: (
      <>
        <UndoPreview id={workflow.id} />
        <label class="check small">
          <input type="checkbox" name="keep" />
          <span>Undo nothing. Say why.</span>
        </label>
      </>
    ),
    confirm: "Cancel the workflow",
    run: async (reason, form) => {
      if (form.has("keep") && !reason) throw new Error("Give a reason why nothing is undone. It is kept on record.");
      const { state } = await post("/jobs/{job_id}/cancel", { parts, body: { reason, undo: !form.has("keep") } });
      if (state !== "cancelled") return { message: `Workflow ${workflow.id} is asked to stop. Its steps are undone first.` };
      return {
        message: `Workflow ${workflow.id} is cancelled.`,
        undo: () => post("/jobs/{job_id}/retry", { parts, body: { reason: "undo of a cancel" } }),
      };
    },
  };
}

const UNKNOWN = /StepUnknown: it is unknown whether step ['"](.+?)['"] has had/;
const UNDO_FAILED = /UndoFailed: the undo of step ['"](.+?)['"] of job/;

/** Returns the action that says what became of a step that is unknown, or whose undo has failed. */
export function settleStep(job: Job, legal: Allowed): Action {
  const parts = { job_id: job.id };
  const undo = UNDO_FAILED.exec(job.error ?? "")?.[1];
  const step = undo ?? UNKNOWN.exec(job.error ?? "")?.[1];
  const none = "Only a step that is unknown, or whose undo has failed, can be settled; this workflow has none.";
  return {
    label: "Settle",
    icon: "check",
    allowed: legal === true && !step ? none : legal,
    title: `Settle a step of workflow ${job.id}`,
    text: "Say what you found out; this is recorded, and nothing is run to check it. Then the workflow goes on.",
    reason: "required",
    fields: (
      <>
        <div class="field">
          <label for="settle-step">Step</label>
          <input id="settle-step" name="step" class="input mono" required autocomplete="off" value={step ?? ""} />
        </div>
        <fieldset class="options">
          <legend>{undo ? "Is it undone?" : "Has it happened?"}</legend>
          <label>
            <input type="radio" name="done" value="yes" required /> Yes: {undo ? "its undo is on record" : "the step is on record"}
          </label>
          <label>
            <input type="radio" name="done" value="no" /> No: {undo ? "its undo is called again" : "the step is called again"}
          </label>
        </fieldset>
        {!undo && (
          <div class="field">
            <label for="settle-result">Its value, if it has happened (JSON)</label>
            <textarea id="settle-result" name="result" class="textarea mono" rows={2} spellcheck={false}>
              null
            </textarea>
          </div>
        )}
      </>
    ),
    run: async (reason, form) => {
      const name = String(form.get("step"));
      const done = form.get("done") === "yes";
      const result = done && !undo ? parse(String(form.get("result"))) : undefined;
      await post("/jobs/{job_id}/settle", { parts, body: { done, step: name, result, reason: reason ?? "" } });
      return { message: `Step ${name} is settled: workflow ${job.id} goes on.` };
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text.trim() || "null");
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new Error(`The value is not JSON: ${said}. Write a text in quotes, such as "p-7", or 12, null, {"id": 7}.`);
  }
}
