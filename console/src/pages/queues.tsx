// The page of queues, and the pattern for other pages: read, show a table, offer the actions of each row.
import { post, type Schemas } from "../api/client";
import { useRead } from "../api/query";
import { type Action, ActionButton } from "../parts/actions";
import { count } from "../parts/format";
import { rateText } from "./limits";
import { Empty, Shown } from "../parts/notices";
import { PageHead } from "../parts/page";
import { State } from "../parts/state";
import { Absent, type Column, Table } from "../parts/table";
import { Clip, Text } from "../parts/text";
import { Time } from "../parts/time";
import { pageUrl } from "../parts/url";

type Queue = Schemas["Queue"];
type Limit = Schemas["Limit"];

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

function limitAction(queue: Queue, limit: Limit | undefined): Action {
  const number = (form: FormData, name: string) => {
    const text = String(form.get(name) ?? "").trim();
    return text ? Number(text) : null;
  };
  return {
    label: "Limit",
    icon: "limits",
    allowed: true,
    title: `Limit the queue ${queue.name}`,
    text: "It holds for all workers together. What is left empty is not limited.",
    fields: (
      <>
        <div class="field">
          <label for="concurrency">Jobs at once</label>
          <input id="concurrency" name="concurrency" class="input" type="number" min={1} step={1} defaultValue={String(limit?.concurrency_max ?? "")} />
        </div>
        <div class="field">
          <label for="rate">Jobs that may start per period, on average</label>
          <input id="rate" name="rate" class="input" type="number" min={0} step="any" defaultValue={String(limit?.rate ?? "")} />
        </div>
        <div class="field">
          <label for="per">Period in seconds</label>
          <input id="per" name="per" class="input" type="number" min={0} step="any" defaultValue={String(limit?.per ?? 1)} />
        </div>
      </>
    ),
    run: async (_, form) => {
      const set = (concurrency: number | null, rate: number | null, per: number) =>
        post("/queues/{name}/limit", { parts: { name: queue.name }, body: { concurrency, rate, per } });
      await set(number(form, "concurrency"), number(form, "rate"), number(form, "per") ?? 1);
      return {
        message: `The queue ${queue.name} has a new limit.`,
        undo: () => set(limit?.concurrency_max ?? null, limit?.rate ?? null, limit?.per ?? 1),
      };
    },
  };
}

function limitText(limit: Limit | undefined): string {
  if (!limit) return "";
  const parts = [limit.concurrency_max === null ? "" : `${count(limit.concurrency_max)} at once`, rateText(limit)];
  return parts.filter(Boolean).join(", ");
}

const columnsWith = (limits: Map<string, Limit>): Column<Queue>[] => [
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
  { head: "Pending", width: "76px", right: true, cell: (queue) => <Jobs queue={queue} state="pending" /> },
  { head: "Running", width: "76px", right: true, cell: (queue) => <Jobs queue={queue} state="running" /> },
  { head: "Dead", width: "66px", right: true, cell: (queue) => <Jobs queue={queue} state="quarantined" /> },
  {
    head: "Oldest ready",
    width: "112px",
    right: true,
    cell: (queue) => (queue.oldest_at ? <Time at={queue.oldest_at} /> : <Absent />),
  },
  {
    head: "Limit",
    width: "12%",
    cell: (queue) => {
      const text = limitText(limits.get(queue.name));
      return text ? <Clip value={text} /> : <Absent />;
    },
  },
  {
    head: "Paused",
    whole: true,
    cell: (queue) =>
      queue.paused ? (
        <span class="soft wrap">
          <Time at={queue.paused_at} /> by <Text value={queue.paused_by} />
          {queue.paused_reason && <>: {<Text value={queue.paused_reason} />}</>}
        </span>
      ) : (
        <Absent />
      ),
  },
  {
    head: "Actions",
    width: "180px",
    right: true,
    actions: true,
    cell: (queue) => (
      <span class="row end">
        <ActionButton compact action={limitAction(queue, limits.get(queue.name))} />
        <ActionButton compact action={queue.paused ? resumeAction(queue) : pauseAction(queue)} />
      </span>
    ),
  },
];

export default function Queues() {
  const queues = useRead("/queues", { limit: 200 });
  const all = useRead("/limits", { limit: 500 }).data?.items ?? [];
  const limits = new Map(all.filter((one) => one.key.startsWith("queue:")).map((one) => [one.key.slice("queue:".length), one]));
  return (
    <>
      <PageHead title="Queues" lead="Jobs wait in a queue until a worker that serves it has a free slot." />
      <section class="card" aria-label="Queues">
        <Shown reading={queues}>
          {({ items }) =>
            items.length ? (
              <Table dense label="Queues" columns={columnsWith(limits)} rows={items} keyOf={(queue) => queue.name} />
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
