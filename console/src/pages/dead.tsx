// Dead letters: jobs that failed for good, grouped by task and error, with their retry.
import { type Job, type Schemas } from "../api/client";
import { useLifecycle } from "../api/lifecycles";
import { useRead } from "../api/query";
import { BulkButton, bulkAllowed, type JobFilters, SelectedJobs } from "../parts/bulk";
import { errorLine } from "../parts/errors";
import { FilterBar, filterText, type Qualifier } from "../parts/filter_bar";
import { count, exactly, many } from "../parts/format";
import { useList } from "../parts/list";
import { ListTable } from "../parts/list_table";
import { Empty, Shown } from "../parts/notices";
import { Card, PageHead } from "../parts/page";
import { useSelection } from "../parts/selection";
import { Absent, type Column, Table } from "../parts/table";
import { Clip, Copyable, Text } from "../parts/text";
import { Time } from "../parts/time";
import { pageUrl, thingUrl, useQuery } from "../parts/url";

type Group = Schemas["DeadGroup"];

const STATE = "quarantined";
const idOf = (job: Job) => job.id;

/** The jobs of a group. The error is found by the name of its exception. */
function filtersOf(group: Group, tenant: string | undefined): JobFilters {
  return { state: STATE, task: group.task, queue: group.queue, error: group.kind || undefined, tenant };
}

function groupColumns(lifecycle: ReturnType<typeof useLifecycle>, tenant: string | undefined): Column<Group>[] {
  const retry = bulkAllowed(lifecycle, "retry", STATE);
  const discard = bulkAllowed(lifecycle, "discard", STATE);
  return [
    {
      head: "Task",
      width: "20%",
      place: "lead",
      cell: (group) => (
        <a href={pageUrl("jobs", filtersOf(group, tenant) as Record<string, string | undefined>)} data-row-link>
          <Clip value={group.task} />
        </a>
      ),
    },
    {
      head: "Error",
      cell: (group) => (
        <a href={thingUrl("jobs", group.sample_id)} title={`Job ${group.sample_id} is an example`}>
          <span class="clip">
            <Text value={group.kind ? (group.kind.split(".").at(-1) ?? "") : "no exception"} />
            <span class="soft">, {group.reason}</span>
          </span>
        </a>
      ),
    },
    { head: "Queue", width: "100px", cell: (group) => <Clip value={group.queue} /> },
    {
      head: "Jobs",
      width: "70px",
      right: true,
      place: "side",
      cell: (group) => (
        <strong class="number" title={`${exactly(group.jobs)} jobs, ${exactly(group.attempts)} attempts`}>
          {count(group.jobs)}
        </strong>
      ),
    },
    { head: "Oldest", width: "104px", right: true, roomyOnly: true, cell: (group) => <Time at={group.oldest_at} /> },
    { head: "Newest", width: "104px", right: true, cell: (group) => <Time at={group.newest_at} /> },
    {
      head: "Actions",
      width: "206px",
      right: true,
      actions: true,
      cell: (group) => (
        <span class="row end">
          <BulkButton verb="retry" filters={filtersOf(group, tenant)} allowed={retry} what={whatOf(group)} />
          <BulkButton verb="discard" filters={filtersOf(group, tenant)} allowed={discard} what={whatOf(group)} />
        </span>
      ),
    },
  ];
}

function whatOf(group: Group): string {
  return `Dead jobs of ${group.task}${group.kind ? ` that ended with ${group.kind}` : ""}.`;
}

const JOBS: Column<Job>[] = [
  {
    head: "Task",
    width: "20%",
    place: "lead",
    cell: (job) => (
      <a href={thingUrl("jobs", job.id)} data-row-link>
        <Clip value={job.task} />
      </a>
    ),
  },
  { head: "Error", whole: true, cell: (job) => <Clip value={errorLine(job.error)} /> },
  { head: "Id", width: "90px", cell: (job) => <Copyable text={job.id} what="the id" /> },
  { head: "Queue", width: "100px", cell: (job) => <Clip value={job.queue} /> },
  { head: "Tenant", width: "110px", roomyOnly: true, cell: (job) => (job.tenant ? <Clip value={job.tenant} /> : <Absent />) },
  { head: "Died", width: "104px", right: true, cell: (job) => <Time at={job.finished_at} /> },
];

export default function DeadLetters() {
  const [query, setQuery] = useQuery();
  const asked = { task: query.task, queue: query.queue, tenant: query.tenant };
  const report = useRead("/dead/report", { ...asked, limit: 100 });
  const list = useList("/dead", asked, idOf);
  const selection = useSelection(list.rows, idOf, (job) => `job ${job.id}`);
  const lifecycle = useLifecycle("job");
  const groups = report.data?.items ?? [];
  const known = (of: (group: Group) => string) => [...new Set(groups.map(of))].sort();
  const qualifiers: Record<string, Qualifier> = {
    task: { help: "of this task", values: known((group) => group.task) },
    queue: { help: "in this queue", values: known((group) => group.queue) },
    tenant: { help: "of this tenant" },
  };
  const text = filterText(query, Object.keys(qualifiers));
  const all: JobFilters = { ...asked, state: STATE };
  const jobs = groups.reduce((sum, group) => sum + group.jobs, 0);
  const what = text ? `All dead jobs with ${text}.` : "All dead jobs.";
  return (
    <>
      <PageHead
        title="Dead letters"
        lead="Jobs that failed for good. They stay here until you retry or discard them; nothing runs them again by itself."
        actions={
          jobs > 0 && (
            <>
              <BulkButton compact={false} verb="retry" label="Retry all…" filters={all} what={what} allowed={bulkAllowed(lifecycle, "retry", STATE)} />
              <BulkButton compact={false} verb="discard" label="Discard all…" filters={all} what={what} allowed={bulkAllowed(lifecycle, "discard", STATE)} />
            </>
          )
        }
      />
      <div class="stack">
        <FilterBar qualifiers={qualifiers} filters={query} onFilter={setQuery} placeholder="Filter by task: queue: tenant:" />
        <Card title="By task and error" padded={false} side={<span class="soft small number">{many(jobs, "job")}</span>}>
          <Shown reading={report}>
            {({ items }) =>
              items.length ? (
                <Table
                  label="Groups of dead letters"
                  columns={groupColumns(lifecycle, query.tenant)}
                  rows={items}
                  keyOf={(group) => `${group.task} ${group.queue} ${group.reason} ${group.kind}`}
                />
              ) : (
                <Empty icon="check" title={text ? "No dead letter matches" : "There are no dead letters"}>
                  A job comes here when its attempts are used up or its error is fatal.
                </Empty>
              )
            }
          </Shown>
        </Card>
        {groups.length > 0 && (
          <Card
            title="Newest"
            padded={false}
            side={selection.rows.length > 0 && <SelectedJobs selection={selection} verbs={["retry", "discard"]} lifecycle={lifecycle} />}
          >
            <ListTable dense list={list} label="Dead letters" noun="job" columns={JOBS} keyOf={idOf} selection={selection} empty={null} />
          </Card>
        )}
      </div>
    </>
  );
}
