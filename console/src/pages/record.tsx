// The record: who did what, when and why; and how things were at any time.
import { useState } from "preact/hooks";
import { address, type Answer, Problem, read, type Schemas } from "../api/client";
import { cleared, FilterBar, filterText, type Qualifier } from "../parts/filter_bar";
import { count, exactly } from "../parts/format";
import { useList } from "../parts/list";
import { ListTable } from "../parts/list_table";
import { Empty } from "../parts/notices";
import { Card, PageHead } from "../parts/page";
import { readSince, SINCE_VALUES } from "../parts/since";
import { labelOf, State } from "../parts/state";
import { Absent, type Column } from "../parts/table";
import { Clip, Text } from "../parts/text";
import { ExactTime } from "../parts/time";
import { pageUrl, thingUrl, useQuery } from "../parts/url";
import { useRead } from "../api/query";
import "../styles/record.css";

type Transition = Schemas["Transition"];

const ENTITIES = ["job", "queue", "schedule", "limit", "batch_run", "pipeline_run", "operation", "alert", "alert_policy", "recovery", "token", "database"];

function entityUrl(one: Transition): string | undefined {
  switch (one.entity) {
    case "job":
      return thingUrl("jobs", one.entity_id);
    case "batch_run":
    case "pipeline_run":
      return thingUrl("runs", one.entity_id);
    case "queue":
      return pageUrl("jobs", { queue: one.entity_id });
    case "schedule":
      return pageUrl("schedules");
    case "limit":
      return pageUrl("limits");
    case "alert":
      return pageUrl("alerts");
    case "alert_policy":
      return pageUrl("alerts", { view: "policies" });
    case "token":
      return pageUrl("access");
    default:
      return undefined;
  }
}

const COLUMNS: Column<Transition>[] = [
  { head: "Time", width: "168px", cell: (one) => <ExactTime at={one.at} /> },
  {
    head: "Actor",
    width: "13%",
    cell: (one) => (
      <a href={pageUrl("record", { actor: one.actor })}>
        <Clip value={one.actor} />
      </a>
    ),
  },
  {
    head: "What",
    width: "13%",
    place: "lead",
    cell: (one) => (
      <>
        {labelOf(one.trigger)}
        {one.forced && <span class="tag">forced</span>}
      </>
    ),
  },
  {
    head: "On",
    width: "22%",
    cell: (one) => {
      const url = entityUrl(one);
      return (
        <span class="clip">
          <span class="soft">{labelOf(one.entity)} </span>
          {url ? (
            <a href={url} data-row-link>
              <Text value={one.entity_id} />
            </a>
          ) : (
            <Text value={one.entity_id} />
          )}
        </span>
      );
    },
  },
  { head: "Became", width: "196px", place: "side", cell: (one) => <State state={one.to_state} /> },
  { head: "Reason", whole: true, cell: (one) => (one.reason ? <Clip value={one.reason} /> : <Absent />) },
];

export default function Record() {
  const [query, setQuery] = useQuery();
  const own = useRead("/lifecycles", { own: false }, { once: true }).data?.items.map((one) => one.name) ?? [];
  const since = readSince(query.since, Math.floor(Date.now() / 60_000) * 60_000);
  const filters = { entity: query.entity, entity_id: query.entity ? query.entity_id : undefined, actor: query.actor, since };
  // The argument entity_id may be left out, though the description of the API does not say so.
  const list = useList("/record/search", filters as never, keyOf);
  const once = (values: string[]) => [...new Set(values)].filter(Boolean).sort();
  const qualifiers: Record<string, Qualifier> = {
    entity: { help: "of this kind", values: [...ENTITIES, ...own] },
    entity_id: { help: "with this id; goes with entity:" },
    actor: { help: "by this person or program", values: once(list.rows.map((one) => one.actor)) },
    since: { help: "since: 1h, 7d, 2026-11-18", values: SINCE_VALUES },
  };
  const names = Object.keys(qualifiers);
  return (
    <>
      <PageHead title="Record" lead="Every change that a person or program asked for, with its actor and reason. Nothing is ever removed before its retention." />
      <div class="stack">
        <FilterBar qualifiers={qualifiers} filters={query} onFilter={setQuery} placeholder="Filter by entity: entity_id: actor: since:" />
        <section class="card" aria-label="Record">
          <ListTable
            dense
            list={list}
            label="Record"
            noun="change"
            columns={COLUMNS}
            keyOf={keyOf}
            clear={filterText(query, names) ? () => setQuery(cleared(names)) : undefined}
            empty={
              <Empty icon="record" title="Nothing was changed yet">
                Pauses, retries, cancels, applied batches and changed schedules appear here. The ordinary steps of a job are on its page.
              </Empty>
            }
          />
        </section>
        <AsOf />
      </div>
    </>
  );
}

const keyOf = (one: Transition) => `${one.n}-${one.entity}-${one.entity_id}-${one.rank}-${one.at}`;

type Counts = Answer<"/jobs/counts", "get">["items"];

/** Answers how things were at a time: the state of a job, or the number of jobs in each state. */
function AsOf() {
  const [found, setFound] = useState<{ at: string; job?: string; state?: string | null; counts?: Counts } | null>(null);
  const [problem, setProblem] = useState("");
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const job = String(form.get("job") ?? "").trim();
    const at = new Date(String(form.get("at"))).toISOString();
    setProblem("");
    try {
      if (job) {
        const answer = await read<{ state_at: string | null }>(address("/jobs/{job_id}/state-at", { job_id: job }, { when: at }));
        setFound({ at, job, state: answer.state_at });
      } else {
        const answer = await read<{ items: Counts }>(address("/jobs/counts", {}, { at }));
        setFound({ at, counts: answer.items });
      }
    } catch (error) {
      setFound(null);
      setProblem(error instanceof Problem || error instanceof RangeError ? error.message : String(error));
    }
  };
  const states = new Map<string, number>();
  for (const one of found?.counts ?? []) states.set(one.state, (states.get(one.state) ?? 0) + one.jobs);
  return (
    <Card title="As of any time">
      <form class="as-of" onSubmit={submit}>
        <div class="field">
          <label for="as-of-job">Job (or leave empty for all)</label>
          <input id="as-of-job" name="job" class="input" inputMode="numeric" pattern="\d*" autocomplete="off" placeholder="id" />
        </div>
        <div class="field">
          <label for="as-of-at">Time (of this machine)</label>
          <input id="as-of-at" name="at" class="input" type="datetime-local" step="1" required />
        </div>
        <button type="submit" class="button primary">
          Show
        </button>
      </form>
      <div role="status" class="as-of-answer">
        {problem && <p class="form-problem"><Text value={problem} /></p>}
        {found?.job && (
          <p>
            At <ExactTime at={found.at} />, job <a href={thingUrl("jobs", found.job)}>{found.job}</a>{" "}
            {found.state ? (
              <>
                was <State state={found.state} />
              </>
            ) : (
              "did not exist yet."
            )}
          </p>
        )}
        {found?.counts && (
          <p class="row">
            At <ExactTime at={found.at} />:
            {states.size === 0 && " there was no job."}
            {[...states].map(([state, jobs]) => (
              <span key={state} title={exactly(jobs)}>
                <State state={state} label={`${count(jobs)} ${labelOf(state)}`} />
              </span>
            ))}
          </p>
        )}
      </div>
    </Card>
  );
}
