// The page of workers: what they hold, and whether they are alive.
import type { Schemas } from "../api/client";
import { useRead } from "../api/query";
import { now } from "../live/clock";
import { count, duration, many } from "../parts/format";
import { Empty, Shown } from "../parts/notices";
import { PageHead } from "../parts/page";
import { State } from "../parts/state";
import { type Column, Table } from "../parts/table";
import { Clip } from "../parts/text";
import { Time } from "../parts/time";
import { pageUrl } from "../parts/url";
import { DrainButton } from "../parts/drain";
import "../styles/limits.css";

type Worker = Schemas["Worker"];

const ALIVE_SECONDS = 10;
const SHOWN_SECONDS = 3600;

function stateOf(worker: Worker, at: number): string {
  if (at - Date.parse(worker.seen_at) > ALIVE_SECONDS * 1000) return "gone";
  return worker.stopping ? "stopping" : "active";
}

function Heartbeat({ worker }: { worker: Worker }) {
  const age = Math.max(0, (now.value - Date.parse(worker.seen_at)) / 1000);
  return (
    <time class="number nowrap" dateTime={worker.seen_at} title={worker.seen_at}>
      {age < 60 ? `${Math.round(age)} s ago` : `${duration(age)} ago`}
    </time>
  );
}

const COLUMNS: Column<Worker>[] = [
  {
    head: "Worker",
    width: "14%",
    place: "lead",
    cell: (worker) => (
      <a href={pageUrl("jobs", { worker: worker.name, state: "running" })} data-row-link>
        <Clip value={worker.name} />
      </a>
    ),
  },
  {
    head: "State",
    width: "110px",
    place: "side",
    cell: (worker) => {
      const state = stateOf(worker, now.value);
      return <State state={state === "gone" ? "cancelled" : state} label={state === "gone" ? "gone" : state === "stopping" ? "draining" : "alive"} />;
    },
  },
  { head: "Heartbeat", width: "108px", right: true, cell: (worker) => <Heartbeat worker={worker} /> },
  {
    head: "Slots",
    width: "11%",
    cell: (worker) => (
      <span class="meter-box">
        <span class="number">
          {count(worker.running)} of {count(worker.slots)} busy
        </span>
        <span class="progress" aria-hidden="true">
          <span style={{ width: `${(100 * worker.running) / Math.max(1, worker.slots)}%` }} />
        </span>
      </span>
    ),
  },
  {
    head: "Holds",
    width: "90px",
    right: true,
    cell: (worker) => (
      <a class={`number ${worker.running ? "" : "zero"}`} href={pageUrl("jobs", { worker: worker.name, state: "running" })}>
        {many(worker.running, "job")}
      </a>
    ),
  },
  { head: "Queues", cell: (worker) => (worker.queues ? <Clip value={worker.queues.join(", ")} /> : <span class="soft">every queue</span>) },
  { head: "Tasks", width: "66px", right: true, cell: (worker) => <span class="number" title={worker.tasks.join("\n")}>{count(worker.tasks.length)}</span> },
  { head: "Host", width: "12%", cell: (worker) => <Clip value={`${worker.host} · ${worker.pid}`} /> },
  { head: "Started", width: "108px", right: true, cell: (worker) => <Time at={worker.started_at} /> },
  { head: "Actions", width: "96px", right: true, actions: true, cell: (worker) => <DrainButton worker={worker} state={stateOf(worker, now.value)} /> },
];

export default function Workers() {
  const workers = useRead("/workers", { within: SHOWN_SECONDS, limit: 200 }, { every: 2 });
  return (
    <>
      <PageHead title="Workers" lead="A worker claims jobs and runs them. It says every second or two that it is alive." />
      <section class="card" aria-label="Workers">
        <Shown reading={workers}>
          {({ items }) =>
            items.length ? (
              <Table label="Workers" columns={COLUMNS} rows={items} keyOf={(worker) => worker.id} />
            ) : (
              <Empty icon="workers" title="No worker is running" command="detent worker shop:app">
                Jobs wait until one is started. It appears here within seconds.
              </Empty>
            )
          }
        </Shown>
      </section>
    </>
  );
}
