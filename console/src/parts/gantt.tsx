// The executions of a job on a line of time: waiting, held, running, committed.
import type { Job, Schemas } from "../api/client";
import { now } from "../live/clock";
import { zone } from "../live/settings";
import { duration, exact } from "./format";
import { labelOf, lookOf, State } from "./state";
import { Text, visible } from "./text";

type Execution = Schemas["Execution"];

interface Bar {
  kind: string;
  from: number;
  to: number;
  label: string;
}

/** A piece of the axis: an attempt, or the wait before it, which is drawn shorter if it was long. */
interface Piece {
  from: number;
  to: number;
  at: number;
  width: number;
}

const GAP_SHARE = 0.4;
const TICK_APART = 14;

/** Returns where moments lie on the axis, in percent. Long waits between attempts do not squeeze the attempts. */
function axisOf(spans: Bar[][]): { place: (moment: number) => number; starts: number[] } {
  const ran = spans.reduce((sum, bars) => sum + Math.max(1, endOf(bars) - startOf(bars)), 0);
  const pieces: Piece[] = [];
  let at = 0;
  const add = (from: number, to: number, width: number) => {
    pieces.push({ from, to, at, width });
    at += width;
  };
  spans.forEach((bars, n) => {
    const before = spans[n - 1];
    if (before) {
      const gap = Math.max(0, startOf(bars) - endOf(before));
      add(endOf(before), startOf(bars), Math.min(gap, (ran * GAP_SHARE) / Math.max(1, spans.length - 1)));
    }
    add(startOf(bars), endOf(bars), Math.max(1, endOf(bars) - startOf(bars)));
  });
  const place = (moment: number) => {
    const piece = pieces.find((one) => moment <= one.to) ?? pieces.at(-1);
    if (!piece || !at) return 0;
    const share = piece.to > piece.from ? (Math.min(moment, piece.to) - piece.from) / (piece.to - piece.from) : 0;
    return ((piece.at + Math.max(0, share) * piece.width) / at) * 100;
  };
  return { place, starts: spans.map(startOf) };
}

/** Shows each attempt as a line with its bars. The axis begins when the first attempt was claimed. */
export function Gantt({ job, executions }: { job: Job; executions: Execution[] }) {
  const spans = executions.map((one) => barsOf(one, now.value));
  const { place, starts } = axisOf(spans);
  const waited = ((starts[0] ?? 0) - Math.max(Date.parse(job.created_at), dueAt(job, starts[0] ?? 0))) / 1000;
  return (
    <div class="gantt" role="list" aria-label="Attempts">
      {executions.map((one, n) => (
        <div class="gantt-row" role="listitem" key={one.attempt}>
          <div class="gantt-name">
            <span class="number">#{one.attempt}</span> <State state={one.outcome ?? one.state} />
            <span class="clip soft small" title={visible(one.worker)}>
              <Text value={one.worker} />
            </span>
          </div>
          <div class="gantt-line">
            {gapBefore(spans, n, place)}
            {(spans[n] ?? []).map((bar) => (
              <span
                key={bar.kind}
                class={`gantt-bar ${bar.kind}`}
                style={{ left: `${place(bar.from)}%`, width: `${Math.max(0, place(bar.to) - place(bar.from))}%` }}
                title={`${bar.label}: ${duration((bar.to - bar.from) / 1000)}`}
              />
            ))}
            <span class={`gantt-time number ${place(endOf(spans[n])) > 78 ? "inside" : ""}`} style={timeStyle(spans[n], place)}>
              {duration((endOf(spans[n]) - startOf(spans[n])) / 1000)}
              <span class="unseen">, {labelOf(one.outcome ?? one.state)}</span>
            </span>
          </div>
        </div>
      ))}
      <div class="gantt-row gantt-axis" aria-hidden="true">
        <div class="gantt-name small faint">{waited > 0.5 && `waited ${duration(waited)}`}</div>
        <div class="gantt-line">
          {apart(starts, place).map((moment) => (
            <span key={moment} class={`gantt-tick number ${place(moment) > 80 ? "last" : ""}`} style={{ left: `${place(moment)}%` }}>
              {exact(moment, zone.value, { date: false })}
            </span>
          ))}
        </div>
      </div>
    </div>
  );
}

/** Returns the moments whose labels have room beside each other. */
function apart(moments: number[], place: (moment: number) => number): number[] {
  const kept: number[] = [];
  for (const moment of moments) {
    const last = kept.at(-1);
    if (last === undefined || place(moment) - place(last) > TICK_APART) kept.push(moment);
  }
  return kept;
}

function startOf(bars: Bar[] | undefined): number {
  return bars?.[0]?.from ?? 0;
}

function barsOf(one: Execution, now: number): Bar[] {
  const at = (text: string | null) => (text ? Date.parse(text) : null);
  const leased = Date.parse(one.leased_at);
  const started = at(one.started_at);
  const committed = at(one.committed_at);
  const end = at(one.done_at) ?? at(one.aborted_at) ?? Math.max(now, leased);
  const tone = one.outcome ? lookOf(one.outcome)[0] : "blue";
  const bars: Bar[] = [{ kind: "held", from: leased, to: Math.min(started ?? end, end), label: "claimed, not started" }];
  if (started !== null) bars.push({ kind: `ran ${tone}`, from: started, to: Math.max(started, committed ?? end), label: "running" });
  if (committed !== null) bars.push({ kind: "ran committed green", from: committed, to: end, label: "after the commit" });
  return bars;
}

function endOf(bars: Bar[] | undefined): number {
  return bars?.at(-1)?.to ?? 0;
}

function timeStyle(bars: Bar[] | undefined, place: (moment: number) => number) {
  const end = place(endOf(bars));
  return end > 78 ? { right: `${100 - end}%` } : { left: `${end}%` };
}

function gapBefore(spans: Bar[][], n: number, place: (moment: number) => number) {
  const before = spans[n - 1];
  const first = spans[n]?.[0];
  if (!before || !first) return null;
  const from = endOf(before);
  return (
    <span
      class="gantt-gap"
      style={{ left: `${place(from)}%`, width: `${Math.max(0, place(first.from) - place(from))}%` }}
      title={`waited ${duration((first.from - from) / 1000)}`}
    >
      <span class="unseen">waited {duration((first.from - from) / 1000)}</span>
    </span>
  );
}

function dueAt(job: Job, from: number): number {
  const due = Date.parse(job.due_at);
  return job.attempt <= 1 && due <= from ? due : Date.parse(job.created_at);
}
