// The page of limits and breakers.
import { post, type Schemas } from "../api/client";
import { useRead } from "../api/query";
import { now } from "../live/clock";
import { type Action, ActionButton } from "../parts/actions";
import { count, duration } from "../parts/format";
import { Empty, Shown } from "../parts/notices";
import { PageHead } from "../parts/page";
import { State } from "../parts/state";
import { Absent, type Column, Table } from "../parts/table";
import { Clip } from "../parts/text";
import { Time } from "../parts/time";
import "../styles/limits.css";

type Limit = Schemas["Limit"];

/** Returns whether jobs may start under a limit: open, paused, breaker, half open, full or spent. */
export function limitState(limit: Limit, at: number): string {
  const later = (time: string | null) => time !== null && Date.parse(time) > at;
  if (limit.held_at !== null || later(limit.paused_until)) return "paused";
  if (limit.open_until !== null) return later(limit.open_until) ? "breaker" : "half open";
  if (limit.concurrency_max !== null && limit.running >= limit.concurrency_max) return "full";
  return limit.rate !== null && limit.tokens < 1 ? "spent" : "active";
}

const LOOKS: Record<string, string> = { breaker: "open", "half open": "warning", full: "running", spent: "throttled" };
const LABELS: Record<string, string> = { breaker: "breaker open", active: "free" };

function LimitState({ limit }: { limit: Limit }) {
  const state = limitState(limit, now.value);
  return <State state={LOOKS[state] ?? state} label={LABELS[state] ?? state} />;
}

/** Says a rate in words: 20 a second, 100 in 1 min. */
export function rateText(limit: Pick<Limit, "rate" | "per">): string {
  if (limit.rate === null) return "";
  return limit.per === 1 ? `${count(limit.rate)} a second` : `${count(limit.rate)} in ${duration(limit.per)}`;
}

const call = (verb: "pause" | "resume" | "remove", key: string, reason?: string) =>
  post(`/limits/{key}/${verb}`, { parts: { key }, body: { reason } });

function actionOf(limit: Limit): Action {
  const { key } = limit;
  const state = limitState(limit, Date.now());
  if (state === "paused" || state === "breaker" || state === "half open") {
    return {
      label: state === "paused" ? "Resume" : "Close",
      icon: "play",
      allowed: true,
      title: state === "paused" ? `Resume the limit ${key}?` : `Close the breaker of ${key}?`,
      text: "Any pause ends, the breaker closes, and the bucket is filled.",
      run: async (reason) => {
        await call("resume", key, reason);
        return {
          message: `Jobs under ${key} may start again.`,
          undo: state === "paused" ? () => call("pause", key, "undo") : undefined,
        };
      },
    };
  }
  return {
    label: "Pause",
    icon: "pause",
    allowed: true,
    title: `Pause the limit ${key}?`,
    text: "No job under it starts until it is resumed. Running jobs continue.",
    run: async (reason) => {
      await call("pause", key, reason);
      return { message: `The limit ${key} is paused.`, undo: () => call("resume", key, "undo") };
    },
  };
}

function removeAction(limit: Limit): Action {
  return {
    label: "Remove",
    icon: "trash",
    danger: true,
    role: "admin",
    allowed: limit.running > 0 ? `${count(limit.running)} jobs run under it.` : true,
    title: `Remove the limit ${limit.key}?`,
    text: "Remove only what no code declares any more: a worker that starts writes declared limits again.",
    run: async (reason) => {
      await call("remove", limit.key, reason);
      return { message: `The limit ${limit.key} is removed.` };
    },
  };
}

/** A bar that shows how much of a limit is used. */
function Meter({ value, max, label }: { value: number; max: number; label: string }) {
  const share = Math.min(1, Math.max(0, value / Math.max(max, 1e-9)));
  return (
    <span class="meter-box">
      <span class="number">{label}</span>
      <span class="progress" aria-hidden="true">
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  );
}

const COLUMNS: Column<Limit>[] = [
  {
    head: "Limit",
    width: "16%",
    place: "lead",
    cell: (limit) => (
      <span data-row-link tabIndex={-1}>
        <Clip value={limit.key} />
      </span>
    ),
  },
  { head: "State", width: "130px", place: "side", cell: (limit) => <LimitState limit={limit} /> },
  {
    head: "Running",
    width: "11%",
    cell: (limit) =>
      limit.concurrency_max === null ? (
        <span class="number">{limit.running}</span>
      ) : (
        <Meter value={limit.running} max={limit.concurrency_max} label={`${count(limit.running)} of ${count(limit.concurrency_max)}`} />
      ),
  },
  {
    head: "Rate",
    width: "20%",
    cell: (limit) =>
      limit.rate === null ? (
        <Absent />
      ) : (
        <Meter value={limit.tokens} max={limit.burst} label={`${rateText(limit)}, ${count(Math.max(0, Math.floor(limit.tokens)))} of ${count(limit.burst)} left`} />
      ),
  },
  {
    head: "Applies to",
    cell: (limit) => {
      const names = [...limit.queues.map((one) => `queue ${one}`), ...limit.tasks];
      if (limit.template) return <Clip value={`one of ${limit.template}`} />;
      return names.length ? <Clip value={names.join(", ")} /> : <Absent />;
    },
  },
  {
    head: "Until",
    width: "90px",
    cell: (limit) => {
      const until = limit.held_at ? null : (limit.open_until ?? limit.paused_until);
      if (limit.held_at) return <span class="soft">resumed</span>;
      return until && Date.parse(until) > now.value ? <Time at={until} /> : <Absent />;
    },
  },
  {
    head: "Throttled",
    width: "88px",
    right: true,
    cell: (limit) => (limit.throttled ? <span class="number">{limit.throttled}×</span> : <Absent />),
  },
  {
    head: "Actions",
    width: "196px",
    right: true,
    actions: true,
    cell: (limit) => (
      <span class="row end">
        <ActionButton compact action={actionOf(limit)} />
        <ActionButton compact action={removeAction(limit)} />
      </span>
    ),
  },
];

export default function Limits() {
  const limits = useRead("/limits", { limit: 200 });
  return (
    <>
      <PageHead
        title="Limits and breakers"
        lead="A limit holds for all workers together. A breaker opens after throttled attempts in a row, and closes after one that succeeds."
      />
      <section class="card" aria-label="Limits">
        <Shown reading={limits}>
          {({ items, next }) =>
            items.length ? (
              <>
                <Table label="Limits" columns={COLUMNS} rows={items} keyOf={(limit) => limit.key} />
                {next && <div class="table-foot">The first {items.length} limits are shown. All are listed by <code>detent limits list</code>.</div>}
              </>
            ) : (
              <Empty icon="limits" title="There is no limit yet" command="detent queues limit mail --rate 10 --app shop:app">
                Declare one in code with <code>limit=Limit(concurrency=4)</code>, or limit a queue with this command.
              </Empty>
            )
          }
        </Shown>
      </section>
    </>
  );
}
