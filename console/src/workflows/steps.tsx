// The steps of a workflow over its attempts, now or as of a past time.
import { useState } from "preact/hooks";
import { useRead } from "../api/query";
import { now } from "../live/clock";
import { zone } from "../live/settings";
import { duration, zoneName } from "../parts/format";
import { Icon } from "../parts/icon";
import { Shown } from "../parts/notices";
import { Card } from "../parts/page";
import { Json, Text, visible } from "../parts/text";
import { ExactTime } from "../parts/time";
import { useQuery } from "../parts/url";
import { CopyButtons } from "./copy_actions";
import type { Workflow } from "./reading";
import { axisOf, type Row, rowsOf, type Step } from "./timeline";

const STEPS_MAX = 500;
const TONES = 5;
const SAID: Record<Step["kind"], string> = {
  call: "",
  transact: "transaction",
  sleep: "",
  deadline: "",
  signal: "signal",
  timeout: "timed out",
  choice: "first",
  spawn: "children",
  join: "join",
  scope: "scope",
  undo: "undo",
  token: "token",
};

/** The card with the steps. */
export function Steps({ workflow }: { workflow: Workflow }) {
  const [query, setQuery] = useQuery();
  const at = query.at;
  const steps = useRead("/workflows/{job_id}/steps", { at, limit: STEPS_MAX }, { parts: { job_id: workflow.id } });
  return (
    <Card title="Steps" side={<AsOf at={at} onChange={(chosen) => setQuery({ at: chosen }, { replace: true })} />}>
      <Shown reading={steps}>
        {({ items, next }) => {
          const rows = rowsOf(items, workflow, !at, at ? Date.parse(at) : now.value);
          return (
            <>
              {rows.length ? <Timeline rows={rows} workflow={at ? undefined : workflow} /> : <p class="soft">No step was on record{at ? " then" : " yet"}.</p>}
              {rows.length > 1 && <p class="faint small">One colour for each attempt. Long waits are drawn shorter than they were.</p>}
              {next && <p class="soft small">The first {items.length} steps are shown.</p>}
            </>
          );
        }}
      </Shown>
    </Card>
  );
}

function AsOf({ at, onChange }: { at: string | undefined; onChange: (at: string | undefined) => void }) {
  const change = (text: string) => {
    const moment = Date.parse(zone.value === "utc" ? `${text}Z` : text);
    onChange(Number.isNaN(moment) ? undefined : new Date(moment).toISOString());
  };
  return (
    <span class="row small">
      <label class="soft" for="steps-at">
        {at ? <>As of <ExactTime at={at} /></> : "As of"}
      </label>
      <input
        id="steps-at"
        class="input as-of"
        type="datetime-local"
        step="1"
        title={zoneName(zone.value)}
        onChange={(event) => change(event.currentTarget.value)}
      />
      {at && (
        <button type="button" class="button small" onClick={() => onChange(undefined)}>
          Now
        </button>
      )}
    </span>
  );
}

function Timeline({ rows, workflow }: { rows: Row[]; workflow: Workflow | undefined }) {
  const [open, setOpen] = useState("");
  const place = axisOf(rows);
  return (
    <div class="gantt" role="list" aria-label="Steps">
      {rows.map((row) => {
        const key = row.step ? `${row.step.seq} ${row.step.path}` : "parked";
        return (
          <div role="listitem" key={key} data-step={row.step ? visible(row.name) : "parked"}>
            <StepRow row={row} place={place} isOpen={open === key} onToggle={() => setOpen(open === key ? "" : key)} />
            {open === key && row.step && <StepValue step={row.step} workflow={workflow} />}
          </div>
        );
      })}
    </div>
  );
}

function StepRow(props: { row: Row; place: (moment: number) => number; isOpen: boolean; onToggle: () => void }) {
  const { row, place, isOpen, onToggle } = props;
  const { step } = row;
  const [left, right] = [place(row.from), place(row.to)];
  const tone = step?.error != null ? "red" : `attempt-${(row.attempt + TONES - 1) % TONES}`;
  return (
    <div class="gantt-row">
      <div class="gantt-name">
        {row.attempt ? (
          <span class="number soft small" title={`attempt ${row.attempt}`}>#{row.attempt}</span>
        ) : (
          <span class="soft small">copy</span>
        )}
        {step ? (
          <button type="button" class="step-name" aria-expanded={isOpen} onClick={onToggle} title={visible(row.name)}>
            {step.kind === "undo" && <Icon name="undo" />}
            <span class="clip">
              <Text value={row.name} />
            </span>
          </button>
        ) : (
          <span class="clip" title={visible(row.name)}>
            waits for <Text value={row.name} />
          </span>
        )}
        {step && SAID[step.kind] && <span class="soft small nowrap">{SAID[step.kind]}</span>}
      </div>
      <div class="gantt-line">
        <span
          class={`gantt-bar ${row.isWait ? "wait" : tone}`}
          style={{ left: `${left}%`, width: `${Math.max(0, right - left)}%` }}
        />
        <span
          class={`gantt-time number ${right > 78 ? "inside" : ""}`}
          style={right > 78 ? { right: `${100 - right}%` } : { left: `${right}%` }}
        >
          {row.isWait ? "waited " : ""}
          {duration((row.to - row.from) / 1000)}
        </span>
      </div>
    </div>
  );
}

function StepValue({ step, workflow }: { step: Step; workflow: Workflow | undefined }) {
  return (
    <div class="step-value">
      <p class="soft small">
        Recorded <ExactTime at={step.done_at} millis /> {step.attempt ? `by attempt ${step.attempt}` : "and copied"}
        {step.undo && ", has an undo"}
        {step.secret && ", secret"}
      </p>
      {step.error != null ? (
        <p class="form-problem">
          <Text value={step.error} />
        </p>
      ) : (
        <Json value={JSON.stringify(step.value, null, 2) ?? "null"} label={`Value of ${visible(step.path)}`} />
      )}
      {workflow && <CopyButtons workflow={workflow} step={step} />}
    </div>
  );
}
