// Changes of all jobs that match a filter: first their number, then an operation of the server, with its progress.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { legalMove, type Lifecycle } from "../api/lifecycles";
import { type Job, post, Problem, type Query } from "../api/client";
import { useRead } from "../api/query";
import { changes } from "../live/live";
import { type Action, ActionButton, ask, type Allowed } from "./actions";
import { exactly, many } from "./format";
import { Icon } from "./icon";
import type { Selection } from "./selection";
import { Text } from "./text";
import { toast, toastProblem } from "./toasts";

export type BulkVerb = "retry" | "cancel" | "discard" | "move";
export type JobFilters = NonNullable<Query<"/jobs/bulk/retry", "post">>;

const LABELS: Record<BulkVerb, string> = { retry: "Retry", cancel: "Cancel", discard: "Discard", move: "Move" };
const ICONS = { retry: "retry", cancel: "slash", discard: "trash", move: "right" } as const;
const TRIGGERS: Record<BulkVerb, string[]> = {
  retry: ["retry"],
  cancel: ["cancel", "abort"],
  discard: ["discard"],
  move: ["claim"],
};
const MEANINGS: Record<BulkVerb, string> = {
  retry: "They become pending again with fresh attempts.",
  cancel: "Pending jobs are cancelled at once, running ones are asked to stop.",
  discard: "They become cancelled and are not dead letters any more.",
  move: "They keep their place in time, in another queue.",
};

const shown = signal<{ id: string; jobs: number }[]>([]);

/** Returns whether a verb can act on jobs of a state, or why not. */
export function bulkAllowed(lifecycle: Lifecycle | undefined, verb: BulkVerb, state: string | undefined): Allowed {
  if (!state) return "Choose a state first: what can be done depends on it.";
  if (verb === "move" && state !== "pending") return "Only pending jobs can be moved to another queue.";
  const legal = legalMove(lifecycle, state, LABELS[verb], ...TRIGGERS[verb]);
  return legal === true || !lifecycle ? legal : legal.replace("This job is", "These jobs are").replace("it is", "a job is");
}

/** A button that changes all jobs of a filter. It counts them first and asks for the reason. */
export function BulkButton(props: { verb: BulkVerb; filters: JobFilters; allowed: Allowed; what?: string; label?: string; compact?: boolean }) {
  const { verb, filters } = props;
  const start: Action = {
    label: props.label ?? `${LABELS[verb]}…`,
    icon: ICONS[verb],
    danger: verb === "cancel" || verb === "discard",
    allowed: props.allowed,
    title: "",
    run: async () => {},
  };
  return <ActionButton action={start} compact={props.compact ?? true} onClick={() => count(verb, filters, props.what)} />;
}

async function count(verb: BulkVerb, filters: JobFilters, what?: string): Promise<void> {
  try {
    const { jobs, complete } = await post(`/jobs/bulk/${verb}`, { query: { ...filters, dry_run: true } });
    const number = jobs ?? 0;
    // A filter without an index is counted up to a number of jobs only.
    const isAll = complete ?? true;
    if (number === 0 && isAll) {
      toast("No job matches any more.", "plain");
      return;
    }
    ask({
      label: LABELS[verb],
      danger: verb === "cancel" || verb === "discard",
      allowed: true,
      title: `${LABELS[verb]} ${isAll ? "" : "more than "}${many(number, "job")}?`,
      text: (
        <>
          {what && (
            <>
              <Text value={what} />{" "}
            </>
          )}
          {MEANINGS[verb]} Jobs that do not match any more are left alone.
        </>
      ),
      fields: verb === "move" && (
        <div class="field">
          <label for="to-queue">Queue</label>
          <input id="to-queue" name="to_queue" class="input" required autocomplete="off" />
        </div>
      ),
      confirm: `${LABELS[verb]} ${many(number, "job")}`,
      run: async (reason, form) => {
        const body = verb === "move" ? { reason, to_queue: String(form.get("to_queue")) } : { reason };
        const { operation } = await post(`/jobs/bulk/${verb}`, { query: filters, body });
        if (operation) shown.value = [...shown.value, { id: (operation as { id: string }).id, jobs: number }];
      },
    });
  } catch (error) {
    toastProblem(error);
  }
}

type SelectedVerb = Exclude<BulkVerb, "move">;

const PAST: Record<SelectedVerb, string> = { retry: "retried", cancel: "cancelled", discard: "discarded" };

/** Says how many jobs are selected, with a button for each verb. It changes those that are in a state for it. */
export function SelectedJobs({ selection, verbs, lifecycle }: {
  selection: Selection<Job>;
  verbs: SelectedVerb[];
  lifecycle: Lifecycle | undefined;
}) {
  return (
    <>
      <span class="small number" role="status">
        {many(selection.rows.length, "job")} selected
      </span>
      <div class="row">
        {verbs.map((verb) => (
          <ActionButton key={verb} compact action={selectedAction(verb, selection, lifecycle)} />
        ))}
        <button type="button" class="button small plain" onClick={selection.clear}>
          Clear
        </button>
      </div>
    </>
  );
}

function selectedAction(verb: SelectedVerb, selection: Selection<Job>, lifecycle: Lifecycle | undefined): Action {
  const fitting = selection.rows.filter((job) => bulkAllowed(lifecycle, verb, job.state) === true);
  const others = selection.rows.length - fitting.length;
  const first = selection.rows[0];
  const number = many(fitting.length, "job");
  return {
    label: `${LABELS[verb]}…`,
    icon: ICONS[verb],
    danger: verb !== "retry",
    allowed: fitting.length > 0 || !first || bulkAllowed(lifecycle, verb, first.state),
    title: `${LABELS[verb]} ${number}?`,
    text: `${MEANINGS[verb]}${others ? ` ${many(others, "selected job")} in another state ${others === 1 ? "is" : "are"} left alone.` : ""}`,
    confirm: `${LABELS[verb]} ${number}`,
    run: async (reason) => {
      const { changed, refusals } = await changeEach(verb, fitting, reason);
      selection.clear();
      changes.now();
      const done = `${many(changed.length, "job")} ${PAST[verb]}`;
      return {
        message: refusals.length ? `${done}, ${refusals.length} refused. ${refusals[0]}` : `${done}.`,
        undo: verb === "retry" || !changed.length ? undefined : () => changeEach("retry", changed, `undo of a ${verb}`),
      };
    },
  };
}

/** Changes jobs one after the other. Returns those that were changed, and why others were not: they have moved on, for instance. */
async function changeEach(verb: SelectedVerb, jobs: Job[], reason: string | undefined): Promise<{ changed: Job[]; refusals: string[] }> {
  const changed: Job[] = [];
  const refusals: string[] = [];
  for (const job of jobs) {
    try {
      await post(`/jobs/{job_id}/${verb}`, { parts: { job_id: job.id }, body: { reason } });
      changed.push(job);
    } catch (error) {
      if (!(error instanceof Problem) || error.isLost || error.status === 401 || error.status === 403) throw error;
      refusals.push(error.message);
    }
  }
  return { changed, refusals };
}

/** The operations that the reader has started on this page, until they have ended. */
export function Operations() {
  return (
    <>
      {shown.value.map((one) => (
        <OperationProgress key={one.id} id={one.id} jobs={one.jobs} />
      ))}
    </>
  );
}

function OperationProgress({ id, jobs }: { id: string; jobs: number }) {
  const { data } = useRead("/operations/{operation_id}", {}, { parts: { operation_id: id }, every: 1 });
  const workers = useRead("/workers", { limit: 1 }).data?.items.length;
  const ended = data !== undefined && data.state !== "running";
  const drop = () => {
    shown.value = shown.value.filter((one) => one.id !== id);
  };
  useEffect(() => {
    if (ended && data.refused === 0) setTimeout(drop, 6000);
  }, [ended]);
  const changed = data?.changed ?? 0;
  const refused = data?.refused ?? 0;
  const share = ended ? 1 : Math.min(1, (changed + refused) / Math.max(jobs, 1));
  const title = ended ? (data.state === "done" ? "Done" : "Cancelled") : "Working";
  return (
    <div class="toast operation" data-operation={id} data-state={data?.state}>
      <Icon name={ended ? "check" : "spinner"} className={ended ? "" : "turning"} />
      <div class="grow stack tight">
        <span>
          {title}: {data?.action ?? ""} {exactly(changed)} of {many(jobs, "job")}
          {refused > 0 && <>, {exactly(refused)} refused because they have moved on</>}
        </span>
        <span class="progress" role="progressbar" aria-valuenow={Math.round(share * 100)} aria-label="Operation">
          <span style={{ width: `${share * 100}%` }} />
        </span>
        {!ended && workers === 0 && (
          <span class="small soft">
            Workers carry it out, and none is running. Start one: <code>detent worker</code>
          </span>
        )}
      </div>
      {!ended && (
        <button
          type="button"
          class="button small"
          onClick={() =>
            post("/operations/{operation_id}/cancel", { parts: { operation_id: id }, body: { reason: "stopped in the console" } }).catch(
              toastProblem,
            )
          }
        >
          Stop
        </button>
      )}
      <button type="button" class="button plain icon small" aria-label="Close the message" onClick={drop}>
        <Icon name="cross" />
      </button>
    </div>
  );
}
