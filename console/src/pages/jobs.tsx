// The list of jobs: tabs by state, filters in the address, and changes of all jobs that match.
import { useMemo } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { Job } from "../api/client";
import { addedUp, useCounts } from "../api/counts";
import { useLifecycle } from "../api/lifecycles";
import { useRead } from "../api/query";
import { BulkButton, type BulkVerb, bulkAllowed, type JobFilters, SelectedJobs } from "../parts/bulk";
import { cleared, FilterBar, filterText, type Qualifier } from "../parts/filter_bar";
import { useList } from "../parts/list";
import { ListTable } from "../parts/list_table";
import { Empty } from "../parts/notices";
import { PageHead } from "../parts/page";
import { useSelection } from "../parts/selection";
import { readSince, SINCE_VALUES } from "../parts/since";
import { errorLine } from "../parts/errors";
import { Absent, type Column } from "../parts/table";
import { type Tab, Tabs } from "../parts/tabs";
import { Clip, Copyable } from "../parts/text";
import { Time, Took } from "../parts/time";
import { type Filters, thingUrl, useQuery } from "../parts/url";
import { Due, JobState } from "../workflows/job_state";
import "../styles/jobs.css";

const STATES = ["pending", "running", "failed", "quarantined", "succeeded", "cancelled"];
const VERBS: BulkVerb[] = ["retry", "cancel", "discard", "move"];

const idOf = (job: Job) => job.id;

/** Says in a few words what is the matter with a job. */
export function Detail({ job }: { job: Job }) {
  if (job.state === "pending" && Date.parse(job.due_at) > Date.now()) {
    return <Due job={job} />;
  }
  if (job.state === "running" && job.cancel_requested_at) return <span class="soft">is asked to stop</span>;
  if (job.state === "cancelled" && job.cancel_reason) return <Clip value={job.cancel_reason} />;
  if (job.error && job.state !== "succeeded") return <Clip value={errorLine(job.error)} />;
  return <Absent />;
}

const COLUMNS: Column<Job>[] = [
  { head: "State", width: "136px", place: "side", cell: (job) => <JobState job={job} /> },
  {
    head: "Task",
    width: "19%",
    place: "lead",
    cell: (job) => (
      <a href={thingUrl("jobs", job.id)} data-row-link>
        <Clip value={job.task} />
      </a>
    ),
  },
  { head: "Id", width: "88px", cell: (job) => <Copyable text={job.id} what="the id" /> },
  { head: "Queue", width: "110px", cell: (job) => <Clip value={job.queue} /> },
  { head: "Tenant", width: "110px", roomyOnly: true, cell: (job) => (job.tenant ? <Clip value={job.tenant} /> : <Absent />) },
  {
    head: "Attempt",
    width: "78px",
    right: true,
    cell: (job) => (
      <span class="number">
        {job.attempt}
        <span class="faint">/{job.attempts_max}</span>
      </span>
    ),
  },
  { head: "Took", width: "92px", right: true, roomyOnly: true, cell: (job) => (job.leased_at ? <Took from={job.leased_at} to={job.finished_at} /> : <Absent />) },
  { head: "Created", width: "104px", right: true, cell: (job) => <Time at={job.created_at} /> },
  { head: "Detail", whole: true, cell: (job) => <Detail job={job} /> },
];

/** Reads the values that the filter bar suggests, and the qualifiers. */
function useQualifiers(): Record<string, Qualifier> {
  const counts = useCounts() ?? {};
  const tasks = useRead("/figures", {}, { slow: true }).data?.tasks ?? [];
  const once = (values: string[]) => [...new Set(values)].filter(Boolean).sort();
  return {
    queue: { help: "in this queue", values: once(Object.keys(counts)) },
    task: { help: "of this task", values: once(tasks.map((one) => one.task)) },
    state: { help: "in this state", values: STATES },
    tenant: { help: "of this tenant" },
    key: { help: "with this key" },
    since: { help: "created since: 1h, 7d, 2026-11-18", values: SINCE_VALUES },
    error: { help: "with this text in the error" },
    worker: { help: "held by this worker" },
    run: { help: "of this run" },
    correlation_id: { help: "with this correlation id" },
  };
}

function useTabs(query: Filters): Tab[] {
  const counts = useCounts();
  // Counts are kept by queue and state; under another filter they are not known.
  const isKnown = !["task", "tenant", "key", "since", "error", "worker", "run", "correlation_id"].some((name) => query[name]);
  const numberOf = (state?: string) => (isKnown ? addedUp(counts, state, query.queue) : undefined);
  return [
    { value: undefined, label: "All", number: numberOf() },
    ...STATES.map((state) => ({ value: state, label: state.charAt(0).toUpperCase() + state.slice(1), number: numberOf(state) })),
  ];
}

export default function Jobs() {
  const [query, setQuery] = useQuery();
  const { route } = useLocation();
  const qualifiers = useQualifiers();
  const names = Object.keys(qualifiers);
  const since = useMemo(() => readSince(query.since, Date.now()), [query.since]);
  const filters = { ...Object.fromEntries(names.map((name) => [name, query[name]])), since } as JobFilters;
  const list = useList("/jobs", filters, idOf);
  const selection = useSelection(list.rows, idOf, (job) => `job ${job.id}`);
  const lifecycle = useLifecycle("job");
  const tabs = useTabs(query);
  const text = filterText(query, names);

  const openId = (word: string) => {
    if (!/^\d+$/.test(word)) return `Write a filter such as task:${word}, or the id of a job.`;
    route(thingUrl("jobs", word));
    return undefined;
  };
  return (
    <>
      <PageHead title="Jobs" lead="Every job, the newest first. A job is one call of a task, with all its attempts." />
      <div class="stack">
        <Tabs label="States" path="jobs" name="state" query={query} tabs={tabs} />
        <FilterBar
          qualifiers={qualifiers}
          filters={query}
          onFilter={setQuery}
          onWord={openId}
          placeholder="Filter by queue: task: tenant: key: since: …, or type the id of a job"
        />
        <section class="card" aria-label="Jobs">
          <div class="card-head">
            {selection.rows.length ? (
              <SelectedJobs selection={selection} verbs={["retry", "cancel", "discard"]} lifecycle={lifecycle} />
            ) : (
              <>
                <span class="soft small">{text ? <>All jobs with <code>{text}</code></> : "All jobs"}</span>
                <div class="row">
                  {VERBS.map((verb) => (
                    <BulkButton
                      key={verb}
                      verb={verb}
                      filters={filters}
                      allowed={bulkAllowed(lifecycle, verb, query.state)}
                      what={`All jobs with ${text}.`}
                    />
                  ))}
                </div>
              </>
            )}
          </div>
          <ListTable
            dense
            list={list}
            label="Jobs"
            noun="job"
            columns={COLUMNS}
            keyOf={idOf}
            selection={selection}
            clear={text ? () => setQuery(cleared(names)) : undefined}
            noMatch="Jobs that were deleted after their retention are not found either."
            empty={
              <Empty icon="jobs" title="There is no job yet" command="detent enqueue TASK '{}' --app shop:app">
                Jobs appear here as soon as a program enqueues one.
              </Empty>
            }
          />
        </section>
      </div>
    </>
  );
}
