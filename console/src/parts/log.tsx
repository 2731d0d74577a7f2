// The log of a job or an ops run: it grows at its end, is followed, paused, searched and filtered by level.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { address, Problem, read, type Schemas } from "../api/client";
import { isPaused, liveStatus, onMessage } from "../live/live";
import { zone } from "../live/settings";
import { exact, many } from "./format";
import { Icon } from "./icon";
import { Empty, Failure, Loading } from "./notices";
import { Text } from "./text";
import "../styles/log.css";

type Event = Schemas["Event"];

const LEVELS = ["debug", "info", "warning", "error"] as const;
const PAGE = 1000;
const SHOWN = 1000;
const POLL_MILLIS = 1_000;
const STREAM_MILLIS = 10_000;

interface Events {
  events: Event[];
  problem?: Problem;
  isRead: boolean;
}

/** Reads all events page by page, and then those that are new, while the log may grow. */
function useEvents(path: "/jobs/{job_id}/events" | "/ops/{run}/events", id: string, isGrowing: boolean): Events & { again: () => void } {
  const [state, setState] = useState<Events>({ events: [], isRead: false });
  const [tries, setTries] = useState(0);
  const growing = useRef(isGrowing);
  growing.current = isGrowing;
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    let after = "";
    let hasRest = isGrowing;
    let isReading = false;
    let isWanted = false;
    setState({ events: [], isRead: false });
    const load = async () => {
      clearTimeout(timer);
      if (isReading) {
        isWanted = true;
        return;
      }
      isReading = true;
      try {
        for (;;) {
          isWanted = false;
          const url = address(path, { job_id: id, run: id }, { limit: PAGE, after: after || undefined });
          const page = await read<Schemas["EventList"]>(url, stop.signal);
          const last = page.items.at(-1);
          if (last) after = String(last.seq);
          const items = page.items;
          setState((before) => ({ isRead: true, events: items.length ? [...before.events, ...items] : before.events }));
          if (!page.next && !isWanted) break;
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        const problem = error instanceof Problem ? error : new Problem(0, "Error", String(error));
        setState((before) => ({ ...before, problem }));
      } finally {
        isReading = false;
      }
      if (stop.signal.aborted) return;
      // After the end of the job its last lines are read once more.
      if (growing.current || hasRest) wait();
      hasRest = growing.current;
    };
    const wait = () => {
      const millis = liveStatus.peek() === "live" ? STREAM_MILLIS : POLL_MILLIS;
      timer = window.setTimeout(() => (isPaused.peek() ? wait() : void load()), millis);
    };
    void load();
    const leave = onMessage((kind, data) => {
      const event = data as Event;
      if (kind !== "event" || event.seq <= Number(after) || isPaused.peek()) return;
      if (isReading || event.seq !== Number(after) + 1) {
        void load();
      } else {
        after = String(event.seq);
        setState((before) => ({ isRead: true, events: [...before.events, event] }));
      }
    });
    return () => {
      leave();
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, id, isGrowing, tries]);
  return { ...state, again: () => setTries((n) => n + 1) };
}

/** Shows the log. */
export function Log({ path, id, isGrowing, howToWrite }: {
  path: "/jobs/{job_id}/events" | "/ops/{run}/events";
  id: string;
  isGrowing: boolean;
  /** What an empty log says: how a line comes into it. */
  howToWrite: ComponentChildren;
}) {
  const { events, problem, isRead, again } = useEvents(path, id, isGrowing);
  const [level, setLevel] = useState<(typeof LEVELS)[number]>("debug");
  const [search, setSearch] = useState("");
  const [frozen, setFrozen] = useState<Event[] | null>(null);
  const [isWhole, setWhole] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);

  const wanted = search.toLowerCase();
  const matching = (frozen ?? events).filter(
    (one) => rank(one.level) >= rank(level) && (!wanted || textOf(one).toLowerCase().includes(wanted)),
  );
  const lines = isWhole ? matching : matching.slice(-SHOWN);
  useLayoutEffect(() => {
    if (isAtEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines.length, frozen]);

  return (
    <section class="card log" aria-labelledby="log-title">
      <div class="card-head">
        <h2 id="log-title">Log</h2>
        <div class="row">
          <input
            class="input small-input"
            type="search"
            aria-label="Search the log"
            placeholder="Search"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
          <select
            class="select small-input"
            aria-label="Lowest level"
            value={level}
            onChange={(event) => setLevel(event.currentTarget.value as typeof level)}
          >
            {LEVELS.map((one) => (
              <option key={one} value={one}>
                {one === "debug" ? "all levels" : `${one} and above`}
              </option>
            ))}
          </select>
          <button
            type="button"
            class="button small"
            aria-pressed={frozen !== null}
            onClick={() => setFrozen(frozen ? null : events)}
          >
            <Icon name={frozen ? "play" : "pause"} /> {frozen ? `Continue${behind(events, frozen)}` : "Pause"}
          </button>
        </div>
      </div>
      {problem && events.length === 0 ? (
        <Failure problem={problem} retry={again} />
      ) : !isRead ? (
        <Loading />
      ) : events.length === 0 ? (
        <Empty icon="record" title={isGrowing ? "No line yet" : "No line was written"}>{howToWrite}</Empty>
      ) : (
        <div
          class={`log-lines ${isGrowing ? "growing" : ""}`}
          ref={box}
          tabIndex={0}
          role="log"
          aria-live="off"
          aria-label="Lines of the log"
          onScroll={(event) => {
            const { scrollTop, clientHeight, scrollHeight } = event.currentTarget;
            isAtEnd.current = scrollTop + clientHeight > scrollHeight - 24;
          }}
        >
          {matching.length > lines.length && (
            <button type="button" class="button small" onClick={() => setWhole(true)}>
              Show {many(matching.length - lines.length, "earlier line")}
            </button>
          )}
          {lines.map((one) => (
            <Line key={one.seq} event={one} search={wanted} />
          ))}
          {lines.length === 0 && <p class="soft log-none">No line matches.</p>}
        </div>
      )}
      <div class="table-foot">
        <span class="number">
          {many(matching.length, "line")}
          {matching.length !== events.length && ` of ${events.length}`}
        </span>
        {isGrowing && !frozen && <span>{isPaused.value ? "Updates are paused" : "Follows new lines"}</span>}
      </div>
    </section>
  );
}

function rank(level: string): number {
  const at = LEVELS.indexOf((level === "critical" ? "error" : level) as (typeof LEVELS)[number]);
  return at < 0 ? 1 : at;
}

function behind(events: Event[], frozen: Event[]): string {
  return events.length > frozen.length ? ` (${events.length - frozen.length} new)` : "";
}

function textOf(event: Event): string {
  return event.payload == null ? event.message : `${event.message} ${JSON.stringify(event.payload)}`;
}

function Line({ event, search }: { event: Event; search: string }) {
  const fields = event.payload != null && typeof event.payload === "object" ? Object.entries(event.payload as object) : [];
  return (
    <div class={`log-line level-${event.level}`} id={`event-${event.seq}`}>
      <time class="number faint" dateTime={event.at} title={exact(Date.parse(event.at), zone.value, { millis: true })}>
        {exact(Date.parse(event.at), zone.value, { date: false, millis: true })}
      </time>
      <span class="log-level">{event.level}</span>
      <span class="log-text">
        <Marked text={event.message} search={search} />
        {fields.map(([name, value]) => (
          <span class="log-field" key={name}>
            {" "}
            <span class="faint">
              <Marked text={name} search={search} />=
            </span>
            <Marked text={typeof value === "string" ? value : JSON.stringify(value)} search={search} />
          </span>
        ))}
      </span>
    </div>
  );
}

function Marked({ text, search }: { text: string; search: string }) {
  const at = search ? text.toLowerCase().indexOf(search) : -1;
  if (at < 0) return <Text value={text} />;
  const end = at + search.length;
  return (
    <>
      <Text value={text.slice(0, at)} />
      <mark>
        <Text value={text.slice(at, end)} />
      </mark>
      <Text value={text.slice(end)} />
    </>
  );
}
