// What can be done with a batch run now, and why not.
import { post } from "../api/client";
import { legalMove, type Lifecycle } from "../api/lifecycles";
import type { Action, Allowed } from "../parts/actions";
import { count, many } from "../parts/format";
import { type BatchRun, isBusy, leftOf } from "../parts/runs";

function whileIdle(run: BatchRun, allowed: Allowed): Allowed {
  if (allowed !== true) return allowed;
  return isBusy(run) ? "Targets of this run are being changed. Wait until that has ended, or cancel it." : true;
}

function mayApply(run: BatchRun, lifecycle: Lifecycle | undefined): Allowed {
  if (run.state === "preview" && !run.previewed_at) {
    return `The preview is not complete yet: ${count(run.previewed)} of ${many(run.total, "target")}.`;
  }
  const legal = legalMove(lifecycle, run.state, "apply", "queue", "queue_rest");
  if (legal !== true) return legal;
  if (leftOf(run) === 0) return "No target is left to apply.";
  if (run.rollback_requested_at) return "A rollback of this run was requested.";
  return whileIdle(run, true);
}

function Check({ name, label, help }: { name: string; label: string; help: string }) {
  return (
    <label class="check with-help">
      <input type="checkbox" name={name} />
      <span>
        {label}
        <span class="help">{help}</span>
      </span>
    </label>
  );
}

const OVERWRITE = (
  <Check name="overwrite" label="Overwrite" help="Do not check whether others have changed a target meanwhile." />
);

/** Applies all targets that would change, or those that are selected. */
export function applyAction(run: BatchRun, lifecycle: Lifecycle | undefined, refs: string[], isRest: boolean): Action {
  const failed = run.preview_failed;
  const changing = Math.max(0, leftOf(run) - failed - (isRest ? 0 : run.unchanged));
  const what = refs.length ? `${many(refs.length, "target")} selected` : isRest ? "the rest" : "all";
  return {
    label: refs.length ? `Apply ${count(refs.length)} selected` : isRest ? "Apply the rest" : "Apply all",
    icon: "check",
    allowed: mayApply(run, lifecycle),
    title: refs.length ? `Apply ${many(refs.length, "selected target")}?` : `Apply ${isRest ? "what is left" : `${many(changing, "target")}`}?`,
    text: refs.length
      ? "Only the selected targets are changed. The others stay in preview and can be applied later."
      : "Every target that would change gets the value that the preview shows.",
    fields: (
      <>
        {failed > 0 && (
          <Check name="leave_failed" label={`Leave out ${many(failed, "target")}`} help="Their preview failed. Without this nothing is applied." />
        )}
        <Check name="accept_changed" label="Accept changed code" help="Apply even if the code of the batch has changed since the preview." />
        {OVERWRITE}
      </>
    ),
    confirm: refs.length ? `Apply ${many(refs.length, "target")}` : "Apply",
    run: async (reason, form) => {
      await post("/runs/{run_id}/apply", {
        parts: { run_id: run.id },
        body: {
          only: refs.length ? refs : null,
          leave_failed: form.has("leave_failed"),
          accept_changed: form.has("accept_changed"),
          overwrite: form.has("overwrite"),
          unchanged: false,
          reason,
        },
      });
      return { message: `Run ${run.id}: applying ${what}.` };
    },
  };
}

/** Retries failed targets. */
export function retryFailedAction(run: BatchRun, lifecycle: Lifecycle | undefined, refs: string[]): Action {
  const legal: Allowed =
    run.failed === 0
      ? "No target has failed."
      : run.rollback_requested_at
        ? "A rollback of this run was requested."
        : legalMove(lifecycle, run.state, "retry failed", "retry_failed");
  const number = refs.length || run.failed;
  return {
    label: refs.length ? `Retry ${count(refs.length)} selected` : "Retry failed",
    icon: "retry",
    allowed: whileIdle(run, legal),
    title: `Retry ${many(number, "failed target")}?`,
    text: "Each is tried again with the same effect key, so that what has happened is not done twice.",
    fields: OVERWRITE,
    run: async (reason, form) => {
      await post("/runs/{run_id}/retry-failed", {
        parts: { run_id: run.id },
        body: { only: refs.length ? refs : null, overwrite: form.has("overwrite"), reason },
      });
      return { message: `Run ${run.id}: retrying ${many(number, "target")}.` };
    },
  };
}

/** Reverts what was applied. */
export function rollBackAction(run: BatchRun, lifecycle: Lifecycle | undefined): Action {
  const legal: Allowed =
    run.applied === 0 && run.state !== "rolled_back"
      ? "Nothing is applied, so there is nothing to revert."
      : legalMove(lifecycle, run.state, "roll back", "roll_back", "request_roll_back");
  return {
    label: run.rollback_requested_at && run.revert_failed ? "Roll back again" : "Roll back",
    icon: "undo",
    danger: true,
    allowed: whileIdle(run, legal),
    title: `Roll back ${many(run.applied, "target")}?`,
    text: "Every applied target gets its former value back. A new run is needed to apply the change again.",
    fields: OVERWRITE,
    run: async (reason, form) => {
      await post("/runs/{run_id}/roll-back", { parts: { run_id: run.id }, body: { overwrite: form.has("overwrite"), reason } });
      return { message: `Run ${run.id} is being rolled back.` };
    },
  };
}

/** Compares what was applied with what is there now. */
export function reconcileAction(run: BatchRun): Action {
  const legal: Allowed = run.applied === 0 ? "Nothing is applied, so there is nothing to compare." : true;
  return {
    label: "Reconcile",
    icon: "integrity",
    allowed: whileIdle(run, legal),
    title: `Compare ${many(run.applied, "applied target")} with their values now?`,
    text: "Nothing is changed. Targets that no longer have the applied value are listed as mismatches.",
    run: async (reason) => {
      await post("/runs/{run_id}/reconcile", { parts: { run_id: run.id }, body: { reason } });
      return { message: `Run ${run.id} is being compared with what is there now.` };
    },
  };
}

/** Begins a run over the mismatches. */
export function correctAction(run: BatchRun, route: (id: string) => void): Action {
  return {
    label: "Correct",
    icon: "bolt",
    allowed: run.mismatches === 0 ? "No mismatch is open. Reconcile finds them." : whileIdle(run, true),
    title: `Correct ${many(run.mismatches, "mismatch", "mismatches")}?`,
    text: "This begins a new run, from the values now to those that were applied. Nothing is changed before you apply it.",
    run: async (reason) => {
      const made = await post("/runs/{run_id}/correct", { parts: { run_id: run.id }, body: { reason } });
      route(made.id);
      return { message: `Run ${made.id} was begun. Read its preview, then apply it.` };
    },
  };
}

/** Stops a run. */
export function cancelAction(run: BatchRun, lifecycle: Lifecycle | undefined): Action {
  return {
    label: "Cancel",
    icon: "slash",
    danger: true,
    allowed: run.cancel_requested_at && run.state !== "cancelled" ? "This run is already asked to stop." : legalMove(lifecycle, run.state, "cancel", "cancel"),
    title: `Cancel run ${run.id}?`,
    text: "Targets that have not begun are left alone, those being applied finish. What is applied stays applied, and can be rolled back.",
    confirm: "Cancel the run",
    run: async (reason) => {
      await post("/runs/{run_id}/cancel", { parts: { run_id: run.id }, body: { reason } });
      return { message: `Run ${run.id} is being cancelled.` };
    },
  };
}
