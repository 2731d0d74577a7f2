// The page of queues, and the pattern for other pages: read, show a table, offer the actions of each row.
import { post, type Schemas } from "../api/client";
import { useRead } from "../api/query";
import { type Action, ActionButton } from "../parts/actions";
import { count } from "../parts/format";
import { Empty, Shown } from "../parts/notices";
import { PageHead } from "../parts/page";
import { State } from "../parts/state";
import { Absent, type Column, Table } from "../parts/table";
import { Clip, Text } from "../parts/text";
import { Time } from "../parts/time";
import { pageUrl } from "../parts/url";

type Queue = Schemas["Queue"];

const pause = (name: string, reason?: string) => post("/queues/{name}/pause", { parts: { name }, body: { reason } });
const resume = (name: string, reason?: string) => post("/queues/{name}/resume", { parts: { name }, body: { reason } });

function pauseAction(queue: Queue): Action {
  return {
    label: "Pause",
    icon: "pause",
    allowed: true,
    title: `Pause the queue ${queue.name}?`,
    text: "No job of it starts until it is resumed. Running jobs continue.",
    run: async (reason) => {
      await pause(queue.name, reason);
      return { message: `The queue ${queue.name} is paused.`, undo: () => resume(queue.name, "undo") };
    },
  };
}

function resumeAction(queue: Queue): Action {
  return {
    label: "Resume",
    icon: "play",
    allowed: true,
    title: `Resume the queue ${queue.name}?`,
    text: "Its jobs start again.",
    run: async (reason) => {
      await resume(queue.name, reason);
      return { message: `The queue ${queue.name} is resumed.`, undo: () => pause(queue.name, "undo") };
    },
  };
}

/** How many jobs of a queue are in a state, as a link to them. */
function Jobs({ queue, state }: { queue: Queue; state: string }) {
  const jobs = (queue.jobs as Record<string, number>)[state] ?? 0;
  return (
    <a class={`number ${jobs ? "" : "zero"}`} href={pageUrl("jobs", { queue: queue.name, state })}>
      {count(jobs)}
    </a>
  );
}

const COLUMNS: Column<Queue>[] = [
  {
    head: "Queue",
    place: "lead",
    cell: (queue) => (
      <a href={pageUrl("jobs", { queue: queue.name })} data-row-link>
        <Clip value={queue.name} />
      </a>
    ),
  },
  { head: "State", width: "110px", place: "side", cell: (queue) => <State state={queue.paused ? "paused" : "active"} /> },
  { head: "Pending", width: "90px", right: true, cell: (queue) => <Jobs queue={queue} state="pending" /> },
  { head: "Running", width: "90px", right: true, cell: (queue) => <Jobs queue={queue} state="running" /> },
  { head: "Dead", width: "90px", right: true, cell: (queue) => <Jobs queue={queue} state="quarantined" /> },
  {
    head: "Paused",
    width: "30%",
    cell: (queue) =>
      queue.paused ? (
        <span class="soft">
          <Time at={queue.paused_at} /> by <Text value={queue.paused_by} />
          {queue.paused_reason && <>: {<Text value={queue.paused_reason} />}</>}
        </span>
      ) : (
        <Absent />
      ),
  },
  {
    head: "Actions",
    width: "110px",
    right: true,
    actions: true,
    cell: (queue) => <ActionButton compact action={queue.paused ? resumeAction(queue) : pauseAction(queue)} />,
  },
];

export default function Queues() {
  const queues = useRead("/queues", { limit: 200 });
  return (
    <>
      <PageHead title="Queues" lead="Jobs wait in a queue until a worker that serves it has a free slot." />
      <section class="card" aria-label="Queues">
        <Shown reading={queues}>
          {({ items }) =>
            items.length ? (
              <Table label="Queues" columns={COLUMNS} rows={items} keyOf={(queue) => queue.name} />
            ) : (
              <Empty icon="queues" title="There is no queue yet" command="detent enqueue shop.welcome --json '{}'">
                A queue appears with its first job.
              </Empty>
            )
          }
        </Shown>
      </section>
    </>
  );
}
