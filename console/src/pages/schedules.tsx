// The page of schedules: when they tick next, in words and in their zone.
import { useState } from "preact/hooks";
import { post, type Schemas } from "../api/client";
import { useRead } from "../api/query";
import { type Action, ActionButton } from "../parts/actions";
import { relative } from "../parts/format";
import { Icon } from "../parts/icon";
import { Empty, Shown } from "../parts/notices";
import { PageHead } from "../parts/page";
import { State } from "../parts/state";
import { Clip, Json, Text } from "../parts/text";
import { Time } from "../parts/time";
import { pageUrl } from "../parts/url";
import { now } from "../live/clock";
import "../styles/schedules.css";

type Schedule = Schemas["Schedule"];

const call = (verb: "pause" | "resume", name: string, reason?: string) =>
  post(`/schedules/{name}/${verb}`, { parts: { name }, body: { reason } });

function actionsOf(schedule: Schedule): Action[] {
  const { name } = schedule;
  const isPaused = schedule.paused_at !== null;
  return [
    {
      label: "Run now",
      icon: "play",
      allowed: true,
      title: `Run ${name} now?`,
      text: "Its job is enqueued now. The next tick does not change.",
      run: async (reason) => {
        const job = await post("/schedules/{name}/run-now", { parts: { name }, body: { reason } });
        return { message: `Job ${job.id} was enqueued.` };
      },
    },
    isPaused
      ? {
          label: "Resume",
          icon: "play",
          allowed: true,
          title: `Resume ${name}?`,
          text: "It enqueues a job at its next tick. Ticks during the pause are not made up for.",
          run: async (reason) => {
            await call("resume", name, reason);
            return { message: `${name} is resumed.`, undo: () => call("pause", name, "undo") };
          },
        }
      : {
          label: "Pause",
          icon: "pause",
          allowed: true,
          title: `Pause ${name}?`,
          text: "It enqueues nothing until it is resumed.",
          run: async (reason) => {
            await call("pause", name, reason);
            return { message: `${name} is paused.`, undo: () => call("resume", name, "undo") };
          },
        },
  ];
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns a time as a person says it, in a zone: Monday 23 November, 09:30. */
function inZone(at: string, zone: string): string {
  let format = formats.get(zone);
  if (!format) {
    const style = { weekday: "long", day: "numeric", month: "long", hour: "2-digit", minute: "2-digit", hour12: false } as const;
    try {
      format = new Intl.DateTimeFormat("en-GB", { ...style, timeZone: zone });
    } catch {
      format = new Intl.DateTimeFormat("en-GB", { ...style, timeZone: "UTC" });
    }
    formats.set(zone, format);
  }
  return format.format(Date.parse(at)).replace(" at ", ", ");
}

function Ticks({ schedule }: { schedule: Schedule }) {
  const ticks = useRead("/schedules/{name}/next", { count: 5 }, { parts: { name: schedule.name } });
  return (
    <Shown reading={ticks} lines={3}>
      {({ items }) => (
        <ol class="ticks">
          {items.map((at) => (
            <li key={at}>
              <span class="number">{inZone(at, schedule.zone)}</span>
              <time class="soft small number" dateTime={at} title={`${at} (UTC)`}>
                {relative(Date.parse(at), now.value)}
              </time>
            </li>
          ))}
        </ol>
      )}
    </Shown>
  );
}

function ScheduleCard({ schedule, isFirst }: { schedule: Schedule; isFirst: boolean }) {
  const [isOpen, setOpen] = useState(isFirst);
  const isPaused = schedule.paused_at !== null;
  const id = `ticks-${schedule.name}`;
  return (
    <li class="schedule" data-schedule={schedule.name}>
      <div class="schedule-head">
        <button type="button" class="open-row" data-row-link aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
          <Icon name={isOpen ? "down" : "right"} />
          <Clip value={schedule.name} />
        </button>
        <State state={isPaused ? "paused" : "active"} />
        <span class="grow schedule-when">
          <Words schedule={schedule} />
        </span>
        <span class="row">
          {actionsOf(schedule).map((action) => (
            <ActionButton key={action.label} compact action={action} />
          ))}
        </span>
      </div>
      {isOpen && (
        <div class="schedule-body" id={id}>
          <section aria-label="Next times">
            <h3>
              Next times <span class="faint">{schedule.zone}</span>
            </h3>
            {isPaused ? (
              <p class="soft">
                Paused <Time at={schedule.paused_at} /> by <Text value={schedule.paused_by} />
                {schedule.reason && (
                  <>
                    : <Text value={schedule.reason} />
                  </>
                )}
                . Without the pause it would tick at:
              </p>
            ) : null}
            <Ticks schedule={schedule} />
          </section>
          <section aria-label="Details">
            <h3>What it enqueues</h3>
            <dl class="facts">
              <dt>Task</dt>
              <dd>
                <a href={pageUrl("jobs", { task: schedule.task })}>
                  <Text value={schedule.task} />
                </a>
              </dd>
              <dt>Queue</dt>
              <dd>
                <a href={pageUrl("jobs", { queue: schedule.queue })}>
                  <Text value={schedule.queue} />
                </a>
              </dd>
              <dt>Last tick</dt>
              <dd>{schedule.last_at ? <Time at={schedule.last_at} /> : "none yet"}</dd>
              <dt>Missed ticks</dt>
              <dd>{MISSED[schedule.catch_up]}</dd>
              <dt>Changed</dt>
              <dd>
                <Time at={schedule.changed_at} />,{" "}
                <a href={pageUrl("record", { entity: "schedule", entity_id: schedule.name })}>see the record</a>
              </dd>
            </dl>
            <Json value={schedule.payload} label="Arguments of the task" />
          </section>
        </div>
      )}
    </li>
  );
}

const MISSED = { latest: "the most recent one is made up for", all: "all are made up for", skip: "they are skipped" };

function Words({ schedule }: { schedule: Schedule }) {
  return (
    <>
      <span>{schedule.words}</span> <code class="faint nowrap">{schedule.cron}</code>
      <span class="small soft number">
        {" "}
        next <time dateTime={schedule.next_at}>{schedule.paused_at ? "when it is resumed" : relative(Date.parse(schedule.next_at), now.value)}</time>
      </span>
    </>
  );
}

export default function Schedules() {
  const schedules = useRead("/schedules", { limit: 200 });
  return (
    <>
      <PageHead title="Schedules" lead="A schedule enqueues a job at the times of its cron expression, in its own time zone." />
      <section class="card" aria-label="Schedules">
        <Shown reading={schedules}>
          {({ items }) =>
            items.length ? (
              <ul>
                {items.map((one, n) => (
                  <ScheduleCard key={one.name} schedule={one} isFirst={n === 0} />
                ))}
              </ul>
            ) : (
              <Empty icon="schedules" title="There is no schedule yet" command="detent schedules set nightly '0 2 * * *' shop.report '{}' --app shop:app">
                Declare one in code with <code>app.schedule</code>, or write one with this command.
              </Empty>
            )
          }
        </Shown>
      </section>
    </>
  );
}
