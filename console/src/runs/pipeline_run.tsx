// The page of a pipeline run: its steps, the live grid of partitions, and the watermark.
import { useState } from "preact/hooks";
import { address, post, read, type Schemas } from "../api/client";
import { legalMove, meaningOf, useLifecycle } from "../api/lifecycles";
import { useAddress, useRead } from "../api/query";
import { type Action, ActionButton } from "../parts/actions";
import { count, exactly, many } from "../parts/format";
import { Icon, type IconName } from "../parts/icon";
import { Empty, Failure, Loading } from "../parts/notices";
import { Card } from "../parts/page";
import { errorLine } from "../parts/errors";
import type { PipelineRun } from "../parts/runs";
import { labelOf, lookOf, State } from "../parts/state";
import { Absent, type Column, Table } from "../parts/table";
import { Clip, Text, visible } from "../parts/text";
import { ExactTime, Time } from "../parts/time";
import { toastProblem } from "../parts/toasts";
import { thingUrl, useQuery } from "../parts/url";
import { RunHead, RunTabs } from "./run_parts";

type Partition = Schemas["Partition"];

function actionsOf(run: PipelineRun, lifecycle: ReturnType<typeof useLifecycle>): Action[] {
  const parts = { run_id: run.id };
  return [
    {
      label: "Retry",
      icon: "retry",
      allowed: legalMove(lifecycle, run.state, "retry", "retry"),
      title: `Retry run ${run.id}?`,
      text: "Failed partitions are fetched again from where they stopped; completed ones are kept. Then the records are consolidated.",
      run: async (reason) => {
        await post("/runs/{run_id}/retry", { parts, body: { reason } });
        return { message: `Run ${run.id} is being retried.` };
      },
    },
    {
      label: "Force",
      icon: "bolt",
      danger: true,
      role: "admin",
      reason: "required",
      allowed: legalMove(lifecycle, run.state, "force", "force"),
      title: `Consolidate run ${run.id} in spite of ${many(run.parts_failed, "failed partition")}?`,
      text: "What was fetched is consolidated and the watermark moves on. Records of the failed partitions are missing.",
      run: async (reason) => {
        await post("/runs/{run_id}/force", { parts, body: { reason } });
        return { message: `Run ${run.id} is being consolidated.` };
      },
    },
    {
      label: "Cancel",
      icon: "slash",
      danger: true,
      allowed: legalMove(lifecycle, run.state, "cancel", "cancel"),
      title: `Cancel run ${run.id}?`,
      text: "Its jobs are cancelled, and the watermark stays.",
      confirm: "Cancel the run",
      run: async (reason) => {
        await post("/runs/{run_id}/cancel", { parts, body: { reason } });
        return { message: `Run ${run.id} is being cancelled.` };
      },
    },
  ];
}

export function PipelineRunPage({ run }: { run: PipelineRun }) {
  const lifecycle = useLifecycle("pipeline_run");
  return (
    <>
      <RunHead
        run={run}
        tag={run.is_forced && <span class="tag">forced</span>}
        actions={actionsOf(run, lifecycle).map((action) => (
          <ActionButton key={action.label} action={action} />
        ))}
      />
      <div class="stack">
        <Steps run={run} meaning={meaningOf(lifecycle, run.state)} />
        <RunTabs run={run} tabs={[{ value: undefined, label: "Partitions", number: run.partitions }]}>
          {() => <Partitions run={run} />}
        </RunTabs>
      </div>
    </>
  );
}

type StepState = "done" | "now" | "wait" | "bad";
const ICONS: Record<StepState, IconName> = { done: "check", now: "spinner", wait: "clock", bad: "warning" };
const SAID: Record<StepState, string> = { done: "done", now: "in progress", wait: "waiting", bad: "failed" };

function Steps({ run, meaning }: { run: PipelineRun; meaning: string }) {
  const watermark = useRead("/watermarks/{name}", { tenant: run.tenant }, { parts: { name: run.watermark } }).data?.get;
  const steps = stepsOf(run);
  return (
    <section class="card" aria-label="Steps">
      <ol class="steps">
        <Step name="Plan" state={steps[0]}>
          {run.partitions ? many(run.partitions, "partition") : "being made"}
        </Step>
        <Step name="Fetch" state={steps[1]}>
          {many(run.pages, "page")}, {many(run.records, "record")}
          {run.parts_failed > 0 && <>, {count(run.parts_failed)} failed</>}
        </Step>
        <Step name="Consolidate" state={steps[2]}>
          {exactly(run.consolidated)} of {exactly(run.staged + run.consolidated > run.staged ? Math.max(run.staged, run.consolidated) : run.staged)} staged
          {run.retires && <>, {exactly(run.retired)} retired</>}
        </Step>
        <Step name="Watermark" state={steps[3]}>
          {run.state === "completed" ? (
            <>
              moved to <ExactTime at={run.captured_at} />
            </>
          ) : watermark ? (
            <>
              stays at <ExactTime at={watermark} />
            </>
          ) : (
            "not set yet"
          )}
        </Step>
      </ol>
      <div class="card-foot soft small">
        {meaning} {run.is_full ? "It fetches everything." : <>It fetches what changed since <ExactTime at={run.since} />.</>}{" "}
        Watermark <code><Text value={run.watermark} /></code>.
        {run.error && (
          <p class="form-problem" role="alert">
            <Icon name="warning" /> <Text value={run.error} />
          </p>
        )}
      </div>
    </section>
  );
}

function stepsOf(run: PipelineRun): [StepState, StepState, StepState, StepState] {
  switch (run.state) {
    case "created":
      return ["now", "wait", "wait", "wait"];
    case "workers_running":
      return ["done", "now", "wait", "wait"];
    case "consolidation_skipped":
      return ["done", "bad", "wait", "wait"];
    case "consolidation_triggered":
      return ["done", run.parts_failed ? "bad" : "done", "wait", "wait"];
    case "consolidating":
      return ["done", run.parts_failed ? "bad" : "done", "now", "wait"];
    case "completed":
      return ["done", run.parts_failed ? "bad" : "done", "done", "done"];
    default:
      if (!run.partitions) return ["bad", "wait", "wait", "wait"];
      return run.parts_failed ? ["done", "bad", "wait", "wait"] : ["done", "done", "bad", "wait"];
  }
}

function Step({ name, state, children }: { name: string; state: StepState; children: preact.ComponentChildren }) {
  return (
    <li class={`step ${state}`}>
      <Icon name={ICONS[state]} className={state === "now" ? "turning" : ""} />
      <div>
        <strong>{name}</strong> <span class="unseen">({SAID[state]})</span>
        <span class="small soft number">{children}</span>
      </div>
    </li>
  );
}

const STATES = ["pending", "in_progress", "fetching_pages", "completed", "failed"];
const GRID_MAX = 1000;
const PATH = "/runs/{run_id}/partitions";

interface Page {
  items: Partition[];
  next: string | null;
}

function Partitions({ run }: { run: PipelineRun }) {
  const [query] = useQuery();
  const state = query.state && STATES.includes(query.state) ? query.state : undefined;
  const url = address(PATH, { run_id: run.id }, { state, limit: GRID_MAX });
  const first = useAddress<Page>(url);
  const [older, setOlder] = useState<{ url: string; page: Page } | null>(null);
  const beyond = older?.url === url ? older.page : null;
  const items = [...(first.data?.items ?? []), ...(beyond?.items ?? [])];
  const next = beyond ? beyond.next : (first.data?.next ?? null);
  const more = async () => {
    try {
      const page = await read<Page>(address(PATH, { run_id: run.id }, { state, limit: GRID_MAX, after: next }));
      setOlder({ url, page: { items: [...(beyond?.items ?? []), ...page.items], next: page.next } });
    } catch (error) {
      toastProblem(error);
    }
  };
  const failed = items.filter((one) => one.error);
  return (
    <>
      <Card title="Partitions" side={<Legend run={run} state={state} />}>
        {items.length ? (
          <>
            <ul class={`grid ${items.length > 120 ? "dense" : ""}`} aria-label="Partitions">
              {items.map((one) => (
                <Tile key={one.n} partition={one} />
              ))}
            </ul>
            {next && (
              <button type="button" class="button" onClick={more}>
                Show more of {many(run.partitions, "partition")}
              </button>
            )}
          </>
        ) : first.problem ? (
          <Failure problem={first.problem} retry={first.refresh} />
        ) : first.data ? (
          <Empty icon="runs" title={state ? `No partition is ${labelOf(state)}` : "The plan is being made"}>
            {state ? "Choose another state above." : "A worker splits the source into partitions first."}
          </Empty>
        ) : (
          <Loading />
        )}
      </Card>
      {failed.length > 0 && (
        <Card title="Failures" padded={false}>
          <Table label="Failures" columns={FAILURES} rows={failed} keyOf={(one) => String(one.n)} />
        </Card>
      )}
    </>
  );
}

const FAILURES: Column<Partition>[] = [
  {
    head: "Partition",
    width: "20%",
    place: "lead",
    cell: (one) => (
      <a href={thingUrl("jobs", one.job_id)} data-row-link>
        <Clip value={one.key} />
      </a>
    ),
  },
  { head: "State", width: "150px", place: "side", cell: (one) => <State state={one.state} /> },
  { head: "Pages", width: "80px", right: true, cell: (one) => <span class="number">{exactly(one.pages)}</span> },
  { head: "Tries", width: "80px", right: true, cell: (one) => <span class="number">{one.tries}</span> },
  { head: "Ended", width: "100px", right: true, cell: (one) => <Time at={one.ended_at} /> },
  { head: "Error", cell: (one) => (one.error ? <Clip value={errorLine(one.error)} /> : <Absent />) },
];

function Tile({ partition }: { partition: Partition }) {
  const [tone, icon] = lookOf(partition.state === "fetching_pages" ? "running" : partition.state);
  const said = `${labelOf(partition.state)}, ${many(partition.pages, "page")}, ${many(partition.records, "record")}`;
  return (
    <li>
      <a
        class={`tile tone-${tone}`}
        data-state={partition.state}
        data-row-link
        href={thingUrl("jobs", partition.job_id)}
        title={visible(`${partition.key}: ${said}${partition.error ? `\n${errorLine(partition.error)}` : ""}`)}
      >
        <Icon name={icon} className={icon === "spinner" ? "turning" : ""} />
        <span class="tile-name">
          <Text value={partition.key} />
          <span class="unseen"> {labelOf(partition.state)}</span>
        </span>
        <span class="tile-number number">
          {partition.pages} p<span class="tile-records"> · {count(partition.records)}</span>
        </span>
      </a>
    </li>
  );
}

function Legend({ run, state }: { run: PipelineRun; state: string | undefined }) {
  const [, setQuery] = useQuery();
  return (
    <>
      <span class="soft small number">
        {exactly(run.parts_ended)} of {exactly(run.partitions)} ended
      </span>
      <select
        class="select"
        aria-label="State of partitions"
        value={state ?? ""}
        onChange={(event) => setQuery({ state: event.currentTarget.value || undefined }, { replace: true })}
      >
        <option value="">Every state</option>
        {STATES.map((one) => (
          <option key={one} value={one}>
            {labelOf(one)}
          </option>
        ))}
      </select>
    </>
  );
}
