// The overview: how much is done, how much waits, how long it takes. Each number leads to the list behind it.
import { useMemo } from "preact/hooks";
import type { Schemas } from "../api/client";
import { addedUp, useCounts } from "../api/counts";
import { useRead } from "../api/query";
import { now } from "../live/clock";
import { Chart, type Series } from "../parts/chart";
import { count, duration, exactly, many, relative } from "../parts/format";
import { Empty, Shown } from "../parts/notices";
import { Card, PageHead } from "../parts/page";
import { State } from "../parts/state";
import { Clip, Text, visible } from "../parts/text";
import { Time } from "../parts/time";
import { pageUrl, useQuery } from "../parts/url";
import "../styles/overview.css";

type Rates = Schemas["Rates"];
type Queue = Schemas["Queue"];

const RANGES = {
  "1h": { label: "1 h", step: "minute", hours: 1 },
  "6h": { label: "6 h", step: "minute", hours: 6 },
  "24h": { label: "24 h", step: "hour", hours: 24 },
  "7d": { label: "7 d", step: "hour", hours: 168 },
} as const;
type Range = keyof typeof RANGES;

const ENDED = [
  ["succeeded", "--chart-green"],
  ["failed", "--chart-amber"],
  ["quarantined", "--chart-red"],
  ["cancelled", "--chart-gray"],
] as const;

/** Reads the rates of a range. Its beginning moves with the time, a step at a time. */
function useRates(range: Range) {
  const { step, hours } = RANGES[range];
  const unit = step === "hour" ? 3_600_000 : 60_000;
  const from = Math.floor(now.value / unit) * unit - hours * 3_600_000 + unit;
  return useRead("/rates", { step, since: new Date(from).toISOString() }, { slow: true });
}

function seriesOf(rates: Rates): { times: number[]; ended: Series[]; waited: Series[]; ran: Series[] } {
  const points = rates.points;
  const times = points.map((point) => Date.parse(point.at) / 1000);
  const moves = (state: string) => points.map((point) => (point.moves as Record<string, number>)[state] ?? 0);
  const pair = (of: (point: (typeof points)[number]) => Rates["waited"]): Series[] => [
    { label: "p50", colour: "--chart-blue", values: points.map((point) => of(point).p50_seconds ?? null) },
    { label: "p95", colour: "--chart-violet", values: points.map((point) => of(point).p95_seconds ?? null) },
  ];
  return {
    times,
    ended: ENDED.map(([label, colour]) => ({ label, colour, values: moves(label) })),
    waited: pair((point) => point.waited),
    ran: pair((point) => point.ran),
  };
}

const sum = (series: Series) => series.values.reduce<number>((total, value) => total + (value ?? 0), 0);

export default function Overview() {
  const [query, setQuery] = useQuery();
  const range: Range = query.range && query.range in RANGES ? (query.range as Range) : "24h";
  const rates = useRates(range);
  const since = { "1h": "1h", "6h": "6h", "24h": "24h", "7d": "7d" }[range];
  return (
    <>
      <PageHead
        title="Overview"
        actions={
          <div class="choice" role="group" aria-label="Period">
            {Object.entries(RANGES).map(([name, { label }]) => (
              <button key={name} type="button" aria-pressed={range === name} onClick={() => setQuery({ range: name })}>
                {label}
              </button>
            ))}
          </div>
        }
      />
      <div class="stack">
        <Tiles />
        <div class="overview-grid">
          <div class="whole">
            <Card title="Jobs that ended" side={<a class="small" href={pageUrl("jobs", { since })}>Jobs of this period</a>}>
              <Shown reading={rates} lines={5}>{(data) => <Throughput rates={data} />}</Shown>
            </Card>
          </div>
          <Card title="Time to start" side={<span class="soft small">from due to claimed</span>}>
            <Shown reading={rates} lines={5}>{(data) => <Durations rates={data} which="waited" />}</Shown>
          </Card>
          <Card title="Run time" side={<span class="soft small">of the function</span>}>
            <Shown reading={rates} lines={5}>{(data) => <Durations rates={data} which="ran" />}</Shown>
          </Card>
          <Depths />
          <FiringAlerts />
        </div>
      </div>
    </>
  );
}

function Throughput({ rates }: { rates: Rates }) {
  const { times, ended } = useMemo(() => seriesOf(rates), [rates]);
  return <Chart title="Jobs that ended" times={times} series={ended} kind="bars" write={count} summary={(one) => count(sum(one))} />;
}

function Durations({ rates, which }: { rates: Rates; which: "waited" | "ran" }) {
  const found = useMemo(() => seriesOf(rates), [rates]);
  const whole = rates[which];
  const summary = (one: Series) => {
    const value = one.label === "p50" ? whole.p50_seconds : whole.p95_seconds;
    return value == null ? "–" : duration(value);
  };
  const title = which === "ran" ? "Run time" : "Time to start";
  return <Chart title={title} times={found.times} series={found[which]} kind="lines" unit="seconds" write={duration} summary={summary} />;
}

interface TileProps {
  name: string;
  value: string;
  note?: string;
  href: string;
  tone?: "bad" | "warn" | "";
  title?: string;
}

function Tile({ name, value, note, href, tone = "", title }: TileProps) {
  return (
    <a class={`card tile ${tone}`} href={href} title={title}>
      <span class="name">{name}</span>
      <span class="value">{value}</span>
      <span class="note">{note}</span>
    </a>
  );
}

function Tiles() {
  const counts = useCounts();
  const queues = useRead("/queues", { limit: 1000 }, { slow: true }).data?.items;
  const day = useRates("24h").data;
  const alerts = useRead("/alerts", { state: "firing", limit: 100 }, { slow: true }).data?.items;
  const workers = useRead("/workers", { limit: 1000 }).data?.items;
  const jobs = (state: string) => addedUp(counts, state);
  const shown = (value: number | undefined) => (value === undefined ? "…" : count(value));
  const oldest = oldestOf(queues ?? []);
  const age = oldest ? (now.value - Date.parse(oldest.oldest_at as string)) / 1000 : 0;
  const slots = workers?.reduce((total, one) => total + one.slots, 0) ?? 0;
  const busy = workers?.reduce((total, one) => total + one.running, 0) ?? 0;
  const dead = jobs("quarantined");
  const rate = day?.success_rate;
  const critical = alerts?.filter((one) => one.severity === "critical").length ?? 0;
  return (
    <div class="tiles">
      <Tile
        name="Success rate"
        value={rate == null ? (day ? "–" : "…") : `${(rate * 100).toFixed(1)} %`}
        note="last 24 h"
        href={pageUrl("jobs", { state: "quarantined", since: "24h" })}
        tone={rate != null && rate < 0.9 ? "warn" : ""}
        title="Of the jobs whose attempt brought them to rest. Leads to those that did not succeed."
      />
      <Tile name="Pending" value={shown(jobs("pending"))} note="due now or later" href={pageUrl("jobs", { state: "pending" })} />
      <Tile name="Running" value={shown(jobs("running"))} note={slots ? `${busy} of ${many(slots, "slot")} busy` : ""} href={pageUrl("jobs", { state: "running" })} />
      <Tile
        name="Oldest ready"
        value={queues ? (oldest ? relative(Date.parse(oldest.oldest_at as string), now.value).replace(" ago", "") : "none") : "…"}
        note={oldest ? `in ${oldest.name}` : "nothing waits"}
        href={pageUrl("jobs", { state: "pending", queue: oldest?.name })}
        tone={age > 900 ? "warn" : ""}
      />
      <Tile name="Dead letters" value={shown(dead)} note={dead ? "retry or discard" : "none"} href={pageUrl("dead")} tone={dead ? "bad" : ""} />
      <Tile
        name="Open alerts"
        value={alerts ? (alerts.length === 100 ? "100+" : String(alerts.length)) : "…"}
        note={critical ? `${critical} critical` : ""}
        href={pageUrl("alerts")}
        tone={critical ? "bad" : alerts?.length ? "warn" : ""}
      />
      <Tile
        name="Workers"
        value={workers ? String(workers.length) : "…"}
        note={workers?.length === 0 ? "nothing is run" : many(slots, "slot")}
        href={pageUrl("workers")}
        tone={workers?.length === 0 ? "bad" : ""}
      />
    </div>
  );
}

function oldestOf(queues: Queue[]): Queue | undefined {
  return queues
    .filter((one) => one.oldest_at)
    .sort((one, other) => Date.parse(one.oldest_at as string) - Date.parse(other.oldest_at as string))[0];
}

const DEPTHS_MAX = 12;

function Depths() {
  const reading = useRead("/queues", { limit: 1000 }, { slow: true });
  const counts = useCounts();
  return (
    <Card title="Queues" padded={false} side={<a class="small" href={pageUrl("queues")}>All queues</a>}>
      <Shown reading={reading}>
        {({ items }) => {
          const jobs = (queue: Queue, state: string) => addedUp(counts, state, queue.name) ?? 0;
          const load = (queue: Queue) => jobs(queue, "pending") + jobs(queue, "running");
          const busiest = [...items].sort((one, other) => load(other) - load(one)).slice(0, DEPTHS_MAX);
          const most = Math.max(1, ...busiest.map(load));
          if (!items.length) return <Empty icon="queues" title="No queue yet">A queue appears with its first job.</Empty>;
          return (
            <div class="depths">
              <div class="depth depth-head" aria-hidden="true">
                <span>Queue</span>
                <span>Pending and running</span>
                <span class="right-text">Jobs</span>
                <span class="right-text">Oldest</span>
              </div>
              {busiest.map((queue) => (
                <a
                  class="depth"
                  key={queue.name}
                  href={pageUrl("jobs", { queue: queue.name, state: "pending" })}
                >
                  <span class="row clip">
                    <Clip value={queue.name} />
                  </span>
                  <span class="depth-bars" title={`${exactly(jobs(queue, "pending"))} pending, ${exactly(jobs(queue, "running"))} running`}>
                    <span class="unseen">{many(jobs(queue, "running"), "running job")},</span>
                    <span class="running" style={{ width: `${(jobs(queue, "running") / most) * 100}%` }} />
                    <span style={{ width: `${(jobs(queue, "pending") / most) * 100}%` }} />
                  </span>
                  <span class="number right-text">{queue.paused ? <State state="paused" /> : count(load(queue))}</span>
                  <span class="right-text small">
                    <Time at={queue.oldest_at} />
                  </span>
                </a>
              ))}
            </div>
          );
        }}
      </Shown>
    </Card>
  );
}

function FiringAlerts() {
  const reading = useRead("/alerts", { state: "firing", limit: 100 });
  return (
    <Card title="Open alerts" padded={false} side={<a class="small" href={pageUrl("alerts")}>All alerts</a>}>
      <Shown reading={reading}>
        {({ items }) =>
          items.length ? (
            <ul class="alert-list">
              {items.slice(0, 6).map((alert) => (
                <li key={`${alert.policy} ${alert.scope}`}>
                  <State state={alert.severity} />
                  <span class="grow alert-text" title={visible(alert.message)}>
                    <Text value={alert.message} />
                  </span>
                  <span class="soft small">
                    <Time at={alert.since} />
                  </span>
                </li>
              ))}
            </ul>
          ) : (
            <Empty icon="check" title="No alert is firing">
              Policies watch dead letters, waiting times, workers and runs.
            </Empty>
          )
        }
      </Shown>
    </Card>
  );
}
