// The list of runs of batches and pipelines.
import type { Query } from "../api/client";
import { useRead } from "../api/query";
import { cleared, FilterBar, filterText, type Qualifier } from "../parts/filter_bar";
import { useList } from "../parts/list";
import { ListTable } from "../parts/list_table";
import { Empty } from "../parts/notices";
import { PageHead } from "../parts/page";
import { type AnyRun, isBatch, nameOf, RunProgress } from "../parts/runs";
import { State } from "../parts/state";
import { Absent, type Column } from "../parts/table";
import { Tabs } from "../parts/tabs";
import { Clip, Copyable } from "../parts/text";
import { Time, Took } from "../parts/time";
import { thingUrl, useQuery } from "../parts/url";
import "../styles/runs.css";

const COLUMNS: Column<AnyRun>[] = [
  {
    head: "Run",
    width: "14%",
    place: "lead",
    cell: (run) => (
      <a href={thingUrl("runs", run.id)} data-row-link>
        <Clip value={nameOf(run)} />
      </a>
    ),
  },
  { head: "State", width: "172px", place: "side", cell: (run) => <State state={run.state} /> },
  { head: "Progress", width: "24%", whole: true, cell: (run) => <RunProgress run={run} /> },
  { head: "Kind", width: "86px", cell: (run) => <span class="soft">{isBatch(run) ? "batch" : "pipeline"}</span> },
  { head: "Id", width: "76px", wideOnly: true, cell: (run) => <Copyable text={run.id} what="the id" /> },
  { head: "By", cell: (run) => <Clip value={byText(run)} /> },
  { head: "Took", width: "92px", right: true, cell: (run) => <RunTook run={run} /> },
  { head: "Created", width: "108px", right: true, cell: (run) => <Time at={run.created_at} /> },
];

function byText(run: AnyRun): string {
  const by = isBatch(run) ? run.actor : run.started_by;
  return [run.tenant && `for ${run.tenant}`, by, run.reason].filter(Boolean).join(": ");
}

function RunTook({ run }: { run: AnyRun }) {
  if (!run.started_at) return <Absent />;
  return <Took from={run.started_at} to={run.finished_at ?? (isBatch(run) ? null : run.moved_at)} />;
}

const KINDS = [
  { value: undefined, label: "All" },
  { value: "batch", label: "Batches" },
  { value: "pipeline", label: "Pipelines" },
];

export default function Runs() {
  const [query, setQuery] = useQuery();
  const kind = query.kind === "batch" || query.kind === "pipeline" ? query.kind : undefined;
  const batch = useRead("/lifecycles/{name}", {}, { parts: { name: "batch_run" }, once: true }).data;
  const pipeline = useRead("/lifecycles/{name}", {}, { parts: { name: "pipeline_run" }, once: true }).data;
  const filters: Query<"/runs", "get"> = { kind, state: query.state, name: query.name, tenant: query.tenant };
  const list = useList("/runs", filters, (run) => run.id);
  const states = [kind !== "pipeline" ? batch : undefined, kind !== "batch" ? pipeline : undefined].flatMap(
    (one) => one?.states.map((state) => state.name) ?? [],
  );
  const once = (values: string[]) => [...new Set(values)].filter(Boolean).sort();
  const qualifiers: Record<string, Qualifier> = {
    state: { help: "in this state", values: once(states) },
    name: { help: "of this batch or pipeline", values: once(list.rows.map(nameOf)) },
    tenant: { help: "of this tenant", values: once(list.rows.map((run) => run.tenant)) },
  };
  const names = Object.keys(qualifiers);
  const isFiltered = filterText(query, names) !== "" || kind !== undefined;
  return (
    <>
      <PageHead
        title="Runs"
        lead="A batch changes many things, after a preview that a person reads. A pipeline fetches many parts and brings them together."
      />
      <div class="stack">
        <Tabs label="Kinds" path="runs" name="kind" query={query} tabs={KINDS} />
        <FilterBar qualifiers={qualifiers} filters={query} onFilter={setQuery} placeholder="Filter by state: name: tenant:" />
        <section class="card" aria-label="Runs">
          <ListTable
            dense
            list={list}
            label="Runs"
            noun="run"
            columns={COLUMNS}
            keyOf={(run) => run.id}
            clear={isFiltered ? () => setQuery(cleared(["kind", ...names])) : undefined}
            empty={
              <Empty icon="runs" title="There is no run yet" command="detent runs preview BATCH '{}' --app shop:app">
                Preview a batch, or start a pipeline with <code>detent runs start</code>.
              </Empty>
            }
          />
        </section>
      </div>
    </>
  );
}
