// The page of one job.
import { useEffect, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { type Job, post, type Schemas } from "../api/client";
import { legalMove, type Lifecycle, meaningOf, targetsOf, useLifecycle } from "../api/lifecycles";
import { useRead } from "../api/query";
import { follow } from "../live/live";
import { type Action, ActionButton } from "../parts/actions";
import { ErrorChain } from "../parts/errors";
import { Gantt } from "../parts/gantt";
import { History } from "../parts/history";
import { Icon } from "../parts/icon";
import { Log } from "../parts/log";
import { Empty, Failure, Loading } from "../parts/notices";
import { Card, PageHead } from "../parts/page";
import { labelOf } from "../parts/state";
import { Absent, type Column, Table } from "../parts/table";
import { Clip, Copyable, Json, Text } from "../parts/text";
import { ExactTime, Time, Took } from "../parts/time";
import { pageUrl, thingUrl } from "../parts/url";
import { JobState } from "../workflows/job_state";
import { cancelWorkflow, settleStep } from "../workflows/job_actions";
import { limitOf, useWorkflow, type Workflow } from "../workflows/reading";
import { WorkflowCards } from "../workflows/workflow_cards";
import "../styles/job.css";

type Execution = Schemas["Execution"];

function actionsOf(job: Job, lifecycle: Lifecycle | undefined, executions: Execution[], workflow: Workflow | undefined): Action[] {
  const parts = { job_id: job.id };
  const isUnknown = executions.at(-1)?.outcome === "unknown";
  const forced = targetsOf(lifecycle, job.state, "force");
  const settle = legalMove(lifecycle, job.state, "settle", "settle");
  const cancel = job.cancel_requested_at && job.state === "running" ? "The job is already asked to stop." : legalMove(lifecycle, job.state, "cancel", "cancel", "abort");
  return [
    {
      label: "Retry",
      icon: "retry",
      allowed: legalMove(lifecycle, job.state, "retry", "retry"),
      title: `Retry job ${job.id}?`,
      text: "It becomes pending again with fresh attempts, and is due now or at its due time.",
      run: async (reason) => {
        await post("/jobs/{job_id}/retry", { parts, body: { reason } });
        return {
          message: `Job ${job.id} is pending again.`,
          undo: () => post("/jobs/{job_id}/cancel", { parts, body: { reason: "undo of a retry" } }),
        };
      },
    },
    workflow ? cancelWorkflow(workflow, cancel) : {
      label: "Cancel",
      icon: "slash",
      danger: true,
      allowed: cancel,
      title: `Cancel job ${job.id}?`,
      text: "A pending job is cancelled at once, a running one stops within a second or two, unless it has committed.",
      confirm: "Cancel the job",
      run: async (reason) => {
        const { state } = await post("/jobs/{job_id}/cancel", { parts, body: { reason } });
        const message = state === "running" ? `Job ${job.id} is asked to stop.` : `Job ${job.id} is cancelled.`;
        const undo = state === "cancelled" ? () => post("/jobs/{job_id}/retry", { parts, body: { reason: "undo of a cancel" } }) : undefined;
        return { message, undo };
      },
    },
    {
      label: "Correct",
      icon: "copy",
      allowed: legalMove(lifecycle, job.state, "correct", "discard"),
      title: `Run ${job.task} again with other arguments`,
      text: `Enqueues a new job with these arguments and discards job ${job.id}.`,
      reason: "required",
      fields: (
        <div class="field">
          <label for="payload">Payload</label>
          <textarea id="payload" name="payload" class="textarea mono" rows={7} spellcheck={false} required>
            {JSON.stringify(job.payload, null, 2)}
          </textarea>
        </div>
      ),
      run: async (reason, form) => {
        const payload: unknown = JSON.parse(String(form.get("payload")));
        const made = await post("/jobs/{job_id}/replace", { parts, body: { payload: payload as Record<string, never>, reason } });
        return { message: `Job ${made.id} was enqueued, and job ${job.id} is discarded.` };
      },
    },
    {
      label: "Discard",
      icon: "trash",
      danger: true,
      allowed: legalMove(lifecycle, job.state, "discard", "discard"),
      title: `Discard job ${job.id}?`,
      text: "It becomes cancelled and is not a dead letter any more.",
      run: async (reason) => {
        await post("/jobs/{job_id}/discard", { parts, body: { reason } });
        return {
          message: `Job ${job.id} is discarded.`,
          undo: () => post("/jobs/{job_id}/retry", { parts, body: { reason: "undo of a discard" } }),
        };
      },
    },
    workflow ? settleStep(job, settle) : {
      label: "Settle",
      icon: "check",
      allowed: settle === true && !isUnknown ? "Only a job whose effect is unknown can be settled; this one failed for a known reason." : settle,
      title: `Settle job ${job.id}`,
      text: "Its effect was unknown. Say what you found out; this is recorded, and nothing is run to check it.",
      reason: "required",
      fields: (
        <fieldset class="options">
          <legend>Has the effect happened?</legend>
          <label>
            <input type="radio" name="done" value="yes" required /> Yes: the job becomes succeeded
          </label>
          <label>
            <input type="radio" name="done" value="no" /> No: the job becomes pending and runs again
          </label>
        </fieldset>
      ),
      run: async (reason, form) => {
        const done = form.get("done") === "yes";
        await post("/jobs/{job_id}/settle", { parts, body: { done, reason: reason ?? "" } });
        return { message: `Job ${job.id} is settled: ${done ? "succeeded" : "pending"}.` };
      },
    },
    {
      label: "Force",
      icon: "bolt",
      danger: true,
      role: "admin",
      allowed: forced.length ? true : legalMove(lifecycle, job.state, "force", "force"),
      title: `Force job ${job.id}`,
      text: "Moves the job without running it. The record shows that it was forced, by whom and why.",
      reason: "required",
      fields: (
        <fieldset class="options">
          <legend>To which state?</legend>
          {forced.map((state, n) => (
            <label key={state}>
              <input type="radio" name="state" value={state} required defaultChecked={n === 0 && forced.length === 1} />{" "}
              {labelOf(state)}: {meaningOf(lifecycle, state)}
            </label>
          ))}
        </fieldset>
      ),
      run: async (reason, form) => {
        const state = String(form.get("state"));
        await post("/jobs/{job_id}/force", { parts, body: { state, reason: reason ?? "" } });
        return { message: `Job ${job.id} is ${labelOf(state)}.` };
      },
    },
  ];
}

export default function JobPage() {
  const { params } = useRoute();
  const id = params.id ?? "";
  const parts = { job_id: id };
  useEffect(() => follow("job", id), [id]);
  const reading = useRead("/jobs/{job_id}", {}, { parts });
  const lifecycle = useLifecycle("job");
  const executions = useRead("/jobs/{job_id}/executions", {}, { parts }).data?.items ?? [];
  const history = useRead("/jobs/{job_id}/history", {}, { parts });
  const workflow = useWorkflow(id);
  const job = reading.data;
  if (reading.problem?.status === 404) return <Gone id={id} wasShown={job !== undefined} />;
  if (!job) {
    return (
      <section class="card" aria-label="Job">
        {reading.problem ? <Failure problem={reading.problem} retry={reading.refresh} /> : <Loading />}
      </section>
    );
  }
  const isRunning = job.state === "running";
  return (
    <>
      <PageHead
        title={`${job.task} ${job.id}`}
        heading={
          <span class="job-title">
            <Text value={job.task} /> <JobState job={job} />
          </span>
        }
        lead={
          <>
            Job <Copyable text={job.id} what="the id" always /> in queue{" "}
            <a href={pageUrl("jobs", { queue: job.queue })}>
              <Text value={job.queue} />
            </a>
          </>
        }
        actions={actionsOf(job, lifecycle, executions, workflow).map((action) => (
          <ActionButton key={action.label} action={action} />
        ))}
      />
      <div class="job-grid">
        <div class="stack">
          <Why job={job} />
          <WorkflowCards id={job.id} isGraph={job.task === "detent.graph"} />
          <Card title="Attempts" side={<Progress job={job} />}>
            {executions.length ? <Gantt job={job} executions={executions} /> : <p class="soft">No worker has claimed it yet.</p>}
          </Card>
          {job.error && (
            <Card title="Error">
              <ErrorChain error={job.error} />
            </Card>
          )}
          <Log
            path="/jobs/{job_id}/events"
            id={id}
            isGrowing={isRunning || job.state === "pending"}
            howToWrite={<>A task writes a line with <code>ctx.event("sent", to=address)</code>.</>}
          />
          <Card title="Payload" side={<CopyJson value={job.payload} />}>
            <Json value={job.payload} label="Payload" />
          </Card>
          {(job.state === "succeeded" || job.result != null) && (
            <Card title="Result" side={<CopyJson value={job.result} />}>
              {job.result_dropped_at ? (
                <p class="soft">
                  The result was deleted <Time at={job.result_dropped_at} />, as its task declares.
                </p>
              ) : (
                <Json value={job.result} label="Result" />
              )}
            </Card>
          )}
          {job.metadata != null && (
            <Card title="Metadata">
              <Json value={job.metadata} label="Metadata" />
            </Card>
          )}
          <Related job={job} />
        </div>
        <div class="stack">
          <Facts job={job} lifecycle={lifecycle} />
          <Card title="Record">
            {history.data ? <History transitions={history.data.items} /> : <Loading lines={4} />}
          </Card>
        </div>
      </div>
    </>
  );
}

function Gone({ id, wasShown }: { id: string; wasShown: boolean }) {
  return (
    <>
      <PageHead title={`Job ${id}`} />
      <div class="card">
        <Empty icon="search" title={wasShown ? "This job was deleted" : `There is no job ${id}`}>
          Jobs that have ended are deleted after their retention. <a href={pageUrl("jobs")}>Go to all jobs</a>.
        </Empty>
      </div>
    </>
  );
}

function Why({ job }: { job: Job }) {
  const why = useRead("/jobs/{job_id}/why", {}, { parts: { job_id: job.id } }).data?.why;
  const isBad = job.state === "quarantined" || job.state === "failed";
  return (
    <p class={`why ${isBad ? "bad" : ""}`}>
      <Icon name={isBad ? "warning" : "info"} />
      <span>
        <strong class="unseen">Why: </strong>
        {why ? <Text value={`${why.charAt(0).toUpperCase()}${why.slice(1)}.`} /> : "…"}
      </span>
    </p>
  );
}

function Progress({ job }: { job: Job }) {
  const reading = useRead("/jobs/{job_id}/progress", {}, { parts: { job_id: job.id }, enabled: job.state === "running", every: 1 });
  const said = (reading.data as { progress?: { done?: number; total?: number } | null } | undefined) ?? {};
  const { done, total } = said.progress ?? (said as { done?: number; total?: number });
  if (job.state !== "running" || done === undefined) return <span class="soft small number">{job.attempt - job.spared} of {job.attempts_max} used up</span>;
  return (
    <span class="row small number">
      {done}
      {total ? ` of ${total}` : ""}
      {total ? (
        <span class="progress job-progress" role="progressbar" aria-valuenow={done} aria-valuemax={total} aria-label="Progress">
          <span style={{ width: `${Math.min(100, (done / total) * 100)}%` }} />
        </span>
      ) : null}
    </span>
  );
}

function CopyJson({ value }: { value: unknown }) {
  return (
    <Copyable text={JSON.stringify(value, null, 2) ?? "null"} what="as JSON" always>
      <span class="unseen">JSON</span>
    </Copyable>
  );
}

function Facts({ job, lifecycle }: { job: Job; lifecycle: Lifecycle | undefined }) {
  const key = useRead("/jobs/{job_id}/details", {}, { parts: { job_id: job.id } }).data ?? undefined;
  return (
    <Card title="Facts">
      <dl class="facts">
        <dt>State</dt>
        <dd title={meaningOf(lifecycle, job.state)}>{labelOf(job.state)}</dd>
        <dt>Attempt</dt>
        <dd class="number">
          {job.spared > 0 ? job.attempt : `${job.attempt} of ${job.attempts_max}`}
          {job.spared > 0 && (
            <span class="soft"> ({job.attempt - job.spared} of {job.attempts_max} used up)</span>
          )}
        </dd>
        <dt>Created</dt>
        <dd>
          <ExactTime at={job.created_at} />
        </dd>
        <dt>Due</dt>
        <dd>
          <ExactTime at={limitOf(job.due_at)} />
        </dd>
        {job.expires_at && (
          <>
            <dt>Expires</dt>
            <dd>
              <ExactTime at={job.expires_at} />
            </dd>
          </>
        )}
        <dt>Finished</dt>
        <dd>
          <ExactTime at={job.finished_at} />
        </dd>
        <dt>Took</dt>
        <dd>{job.leased_at ? <Took from={job.leased_at} to={job.finished_at} /> : <Absent />}</dd>
        <dt>Priority</dt>
        <dd class="number">{job.priority}</dd>
        <dt>Tenant</dt>
        <dd>
          {job.tenant ? (
            <a href={pageUrl("jobs", { tenant: job.tenant })}>
              <Text value={job.tenant} />
            </a>
          ) : (
            <Absent />
          )}
        </dd>
        {key?.key && (
          <>
            <dt>Key</dt>
            <dd>
              <Copyable text={key.key} what="the key" />
            </dd>
          </>
        )}
        {key?.worker && (
          <>
            <dt>Worker</dt>
            <dd>
              <a href={pageUrl("jobs", { worker: key.worker })}>
                <Text value={key.worker} />
              </a>
            </dd>
          </>
        )}
        {job.limit_key && (
          <>
            <dt>Limit</dt>
            <dd>
              <Copyable text={job.limit_key} what="the limit" />
            </dd>
          </>
        )}
        {job.correlation_id && (
          <>
            <dt>Correlation</dt>
            <dd>
              <a href={pageUrl("jobs", { correlation_id: job.correlation_id })}>
                <Text value={job.correlation_id} />
              </a>
            </dd>
          </>
        )}
        {job.run_id && (
          <>
            <dt>Run</dt>
            <dd>
              <a href={thingUrl("runs", job.run_id)}>{job.run_id}</a>
            </dd>
          </>
        )}
        {!job.idempotent && (
          <>
            <dt>Effect</dt>
            <dd>is not repeated if its outcome is unknown</dd>
          </>
        )}
        {job.traceparent && (
          <>
            <dt>Trace</dt>
            <dd>
              <Copyable text={job.traceparent} what="the trace context" />
            </dd>
          </>
        )}
      </dl>
    </Card>
  );
}

const RELATED: Column<Job>[] = [
  { head: "State", width: "136px", place: "side", cell: (job) => <JobState job={job} /> },
  {
    head: "Task",
    place: "lead",
    cell: (job) => (
      <a href={thingUrl("jobs", job.id)} data-row-link>
        <Clip value={job.task} />
      </a>
    ),
  },
  { head: "Id", width: "90px", cell: (job) => <Copyable text={job.id} what="the id" /> },
  { head: "Created", width: "104px", right: true, cell: (job) => <Time at={job.created_at} /> },
];

/** Jobs of the same run or with the same correlation id. */
function Related({ job }: { job: Job }) {
  const [by] = useState(job.run_id ? { run: job.run_id } : { correlation_id: job.correlation_id ?? undefined });
  const enabled = Boolean(job.run_id || job.correlation_id);
  const { data } = useRead("/jobs", { ...by, limit: 11 }, { enabled });
  const others = data?.items.filter((one) => one.id !== job.id).slice(0, 10) ?? [];
  if (!enabled || !others.length) return null;
  return (
    <Card
      title="Related jobs"
      padded={false}
      side={
        <a class="small" href={pageUrl("jobs", by)}>
          {job.run_id ? "All of this run" : "All with this correlation id"}
        </a>
      }
    >
      <Table label="Related jobs" columns={RELATED} rows={others} keyOf={(one) => one.id} />
    </Card>
  );
}
