// Ops runs: builds and deploys by project and environment.
import type { Schemas } from "../api/client";
import { useLifecycle } from "../api/lifecycles";
import { useRead } from "../api/query";
import { cleared, FilterBar, filterText, type Qualifier } from "../parts/filter_bar";
import { useList } from "../parts/list";
import { ListTable } from "../parts/list_table";
import { Empty } from "../parts/notices";
import { PageHead } from "../parts/page";
import { State } from "../parts/state";
import { Absent, type Column } from "../parts/table";
import { Clip, Text, WebLink } from "../parts/text";
import { Time, Took } from "../parts/time";
import { pageUrl, thingUrl, useQuery } from "../parts/url";
import "../styles/ops.css";

export type OpsRun = Schemas["OpsRun"];

/** Returns a text of a run's metadata. */
export function metadataText(run: OpsRun, ...names: string[]): string {
  const metadata = run.metadata as Record<string, unknown>;
  for (const name of names) {
    const value = metadata[name];
    if (typeof value === "string" && value) return value;
  }
  return "";
}

/** Returns a branch or tag without `refs/heads/`. */
export function shortRef(ref: string | null): string {
  return ref?.replace(/^refs\/(heads|tags)\//, "") ?? "";
}

const COLUMNS: Column<OpsRun>[] = [
  {
    head: "Run",
    width: "92px",
    place: "lead",
    cell: (run) => (
      <a href={thingUrl("ops", run.id)} data-row-link>
        <Clip value={run.id} />
      </a>
    ),
  },
  { head: "State", width: "118px", place: "side", cell: (run) => <State state={run.state} /> },
  { head: "Project", width: "11%", cell: (run) => <Clip value={run.project_id} /> },
  { head: "Environment", width: "11%", cell: (run) => <Clip value={run.env} /> },
  {
    head: "Revision",
    width: "15%",
    cell: (run) => (
      <span class="clip">
        <code>
          <Text value={run.git_sha?.slice(0, 10)} />
        </code>{" "}
        <span class="soft">
          <Text value={shortRef(run.git_ref)} />
        </span>
      </span>
    ),
  },
  { head: "Deployed to", whole: true, cell: (run) => <DeployUrl run={run} /> },
  { head: "Worker", width: "96px", wideOnly: true, cell: (run) => (run.claimed_by ? <Clip value={run.claimed_by} /> : <Absent />) },
  { head: "Took", width: "96px", right: true, cell: (run) => (run.started_at ? <Took from={run.started_at} to={run.finished_at} /> : <Absent />) },
  { head: "Queued", width: "104px", right: true, cell: (run) => <Time at={run.queued_at} /> },
];

export function DeployUrl({ run }: { run: OpsRun }) {
  const url = metadataText(run, "deploy_url", "url");
  if (!url) return <Absent />;
  return (
    <span class="clip">
      <WebLink value={url} />
    </span>
  );
}

const ENVIRONMENTS_SHOWN = 12;

function Environments() {
  const [query] = useQuery();
  const environments = useRead("/ops/environments").data?.items ?? [];
  if (!environments.length) return null;
  return (
    <ul class="environments" aria-label="Environments">
      {environments.slice(0, ENVIRONMENTS_SHOWN).map((one) => (
        <EnvironmentCard key={one.id} project={one.project_id} env={one.name} isChosen={query.project === one.project_id && query.env === one.name} />
      ))}
    </ul>
  );
}

function EnvironmentCard({ project, env, isChosen }: { project: string; env: string; isChosen: boolean }) {
  const run = useRead("/ops", { project_id: project, env, limit: 1 }).data?.items[0];
  return (
    <li>
      <a
        class={`card environment ${isChosen ? "chosen" : ""}`}
        aria-current={isChosen ? "true" : undefined}
        href={isChosen ? pageUrl("ops") : pageUrl("ops", { project, env })}
      >
        <span class="spread">
          <strong class="clip">
            <Text value={project} />
          </strong>
          {run && <State state={run.state} />}
        </span>
        <span class="soft small clip">
          <Text value={env} />
          {run && (
            <>
              {" "}
              · <code><Text value={run.git_sha?.slice(0, 10)} /></code> · <Time at={run.queued_at} />
            </>
          )}
        </span>
      </a>
    </li>
  );
}

export default function OpsRuns() {
  const [query, setQuery] = useQuery();
  const lifecycle = useLifecycle("ops_run");
  const environments = useRead("/ops/environments").data?.items ?? [];
  const list = useList("/ops", { project_id: query.project, env: query.env, state: query.state }, (run) => run.id);
  const once = (values: string[]) => [...new Set(values)].sort();
  const qualifiers: Record<string, Qualifier> = {
    project: { help: "of this project", values: once(environments.map((one) => one.project_id)) },
    env: { help: "for this environment", values: once(environments.map((one) => one.name)) },
    state: { help: "in this state", values: lifecycle?.states.map((one) => one.name) ?? [] },
  };
  const names = Object.keys(qualifiers);
  return (
    <>
      <PageHead title="Ops runs" lead="Builds, deploys and backups: one revision for one environment of a project." />
      <div class="stack">
        <Environments />
        <FilterBar qualifiers={qualifiers} filters={query} onFilter={setQuery} placeholder="Filter by project: env: state:" />
        <section class="card" aria-label="Ops runs">
          <ListTable
            dense
            list={list}
            label="Ops runs"
            noun="run"
            columns={COLUMNS}
            keyOf={(run) => run.id}
            clear={filterText(query, names) ? () => setQuery(cleared(names)) : undefined}
            empty={
              <Empty icon="ops" title="There is no ops run yet" command="detent ops queue shop production --git-sha 0ddba11">
                Queue one by hand, or declare a webhook that does it on every push.
              </Empty>
            }
          />
        </section>
      </div>
    </>
  );
}
