// Workflows: where they are, what parked ones wait for, and how many there are of each version.
import { useMemo } from "preact/hooks";
import type { Schemas } from "../api/client";
import { useRead } from "../api/query";
import { errorLine } from "../parts/errors";
import { cleared, FilterBar, filterText, type Qualifier } from "../parts/filter_bar";
import { exactly } from "../parts/format";
import { useList } from "../parts/list";
import { ListTable } from "../parts/list_table";
import { Empty, Shown } from "../parts/notices";
import { PageHead } from "../parts/page";
import { readSince, SINCE_VALUES } from "../parts/since";
import { State } from "../parts/state";
import { Absent, type Column, Table } from "../parts/table";
import { Tabs } from "../parts/tabs";
import { Clip, Copyable } from "../parts/text";
import { Time } from "../parts/time";
import { type Filters, pageUrl, thingUrl, useQuery } from "../parts/url";
import { ParkedFor } from "../workflows/job_state";
import { limitOf, type Wait, type Workflow } from "../workflows/reading";
import "../styles/workflows.css";

const STATES = ["parked", "running", "pending", "quarantined", "failed", "succeeded", "cancelled"];
const WAITS = "waits";
const VERSIONS = "versions";
const TABS = ["", ...STATES, WAITS, VERSIONS].map((tab) => ({
  value: tab || undefined,
  label: tab ? tab.charAt(0).toUpperCase() + tab.slice(1) : "All",
}));

const idOf = (row: Workflow) => row.id;
const waitKey = (row: Wait) => `${row.job_id}-${row.n}`;

function TaskLink({ task, id }: { task: string; id: string }) {
  return (
    <a href={thingUrl("jobs", id)} data-row-link>
      <Clip value={task} />
    </a>
  );
}

function Detail({ workflow }: { workflow: Workflow }) {
  if (workflow.parked_at) return <ParkedFor workflow={workflow} />;
  if (workflow.undoing_since && !workflow.finished_at) return <span class="soft">its steps are undone</span>;
  if (workflow.error && workflow.state !== "succeeded") return <Clip value={errorLine(workflow.error)} />;
  return <Absent />;
}

const COLUMNS: Column<Workflow>[] = [
  { head: "State", width: "136px", place: "side", cell: (row) => <State state={row.state} /> },
  { head: "Task", width: "19%", place: "lead", cell: (row) => <TaskLink task={row.task} id={row.id} /> },
  { head: "Id", width: "88px", cell: (row) => <Copyable text={row.id} what="the id" /> },
  { head: "Version", width: "78px", right: true, cell: (row) => <span class="number">{row.version}</span> },
  { head: "Steps", width: "70px", right: true, cell: (row) => <span class="number">{exactly(row.steps)}</span> },
  { head: "Tenant", width: "110px", roomyOnly: true, cell: (row) => (row.tenant ? <Clip value={row.tenant} /> : <Absent />) },
  { head: "Created", width: "104px", right: true, cell: (row) => <Time at={row.created_at} /> },
  { head: "Detail", whole: true, cell: (row) => <Detail workflow={row} /> },
];

const WAIT_COLUMNS: Column<Wait>[] = [
  {
    head: "Waits for",
    width: "30%",
    cell: (row) =>
      row.kind === "signal" ? (
        <a href={pageUrl("workflows", { tab: WAITS, signal: row.name ?? undefined })}>
          <Clip value={`signal ${row.name}`} />
        </a>
      ) : (
        <Clip value={row.kind === "children" ? `children of ${row.name}` : "a time"} />
      ),
  },
  { head: "Task", place: "lead", cell: (row) => <TaskLink task={row.task} id={row.job_id} /> },
  { head: "Id", width: "88px", cell: (row) => <Copyable text={row.job_id} what="the id" /> },
  { head: "Version", width: "78px", right: true, cell: (row) => <span class="number">{row.version}</span> },
  { head: "Since", width: "104px", right: true, cell: (row) => <Time at={row.since} /> },
  { head: "Until", width: "104px", right: true, cell: (row) => <Time at={limitOf(row.due_at)} /> },
];

const VERSION_COLUMNS: Column<Schemas["VersionCount"]>[] = [
  {
    head: "Task",
    place: "lead",
    cell: (row) => (
      <a href={pageUrl("workflows", { task: row.task, version: row.version ? String(row.version) : undefined })} data-row-link>
        <Clip value={row.task} />
      </a>
    ),
  },
  { head: "Version", width: "180px", right: true, cell: (row) => <span class="number">{row.version || "not begun"}</span> },
  { head: "Workflows", width: "180px", right: true, cell: (row) => <span class="number">{exactly(row.workflows)}</span> },
];

export default function Workflows() {
  const [query, setQuery] = useQuery();
  const tasks = [...new Set(useRead("/workflows/versions", {}, { slow: true }).data?.items.map((one) => one.task))];
  const qualifiers: Record<string, Qualifier> =
    query.tab === WAITS
      ? { signal: { help: "for this signal" }, tenant: { help: "of this tenant" } }
      : {
          task: { help: "of this task", values: tasks },
          version: { help: "that began under this version" },
          tenant: { help: "of this tenant" },
          since: { help: "created since: 1h, 7d, 2026-11-18", values: SINCE_VALUES },
        };
  const names = Object.keys(qualifiers);
  const clear = filterText(query, names) ? () => setQuery(cleared(names)) : undefined;
  return (
    <>
      <PageHead title="Workflows" lead="Jobs that record their steps, the newest first. A parked one waits without a worker." />
      <div class="stack">
        <Tabs label="States" path="workflows" name="tab" query={query} tabs={TABS} />
        {query.tab !== VERSIONS && (
          <FilterBar
            key={query.tab === WAITS ? WAITS : ""}
            qualifiers={qualifiers}
            filters={query}
            onFilter={setQuery}
            placeholder={`Filter by ${names.map((name) => `${name}:`).join(" ")}`}
          />
        )}
        <section class="card" aria-label="Workflows">
          {query.tab === VERSIONS ? <Versions /> : query.tab === WAITS ? <Waits query={query} clear={clear} /> : <Listed query={query} clear={clear} />}
        </section>
      </div>
    </>
  );
}

interface ListProps {
  query: Filters;
  clear: (() => void) | undefined;
}

function Listed({ query, clear }: ListProps) {
  const since = useMemo(() => readSince(query.since, Date.now()), [query.since]);
  const { task, tenant, version, tab: state } = query;
  const list = useList("/workflows", { task, tenant, state, since, version: version as unknown as number | undefined }, idOf);
  return (
    <ListTable
      dense
      list={list}
      label="Workflows"
      noun="workflow"
      columns={COLUMNS}
      keyOf={idOf}
      clear={clear}
      empty={
        <Empty icon="workflows" title={state ? `No workflow is ${state}` : "There is no workflow yet"}>
          A function with <code>@app.workflow</code> records its steps. It appears here with its first one.
        </Empty>
      }
    />
  );
}

function Waits({ query, clear }: ListProps) {
  const list = useList("/workflows/waits", { signal: query.signal, tenant: query.tenant }, waitKey);
  return (
    <ListTable
      list={list}
      label="Waits"
      noun="wait"
      columns={WAIT_COLUMNS}
      keyOf={waitKey}
      clear={clear}
      empty={<Empty icon="clock" title="No workflow is parked" />}
    />
  );
}

function Versions() {
  const versions = useRead("/workflows/versions", {});
  return (
    <Shown reading={versions}>
      {({ items }) =>
        items.length ? (
          <Table label="Versions" columns={VERSION_COLUMNS} rows={items} keyOf={(row) => `${row.task} ${row.version}`} />
        ) : (
          <Empty icon="workflows" title="Every workflow has ended">
            A version without workflows needs no code any more.
          </Empty>
        )
      }
    </Shown>
  );
}
