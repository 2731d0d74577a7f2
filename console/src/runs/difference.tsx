// The difference that a batch run makes: a table of targets with before and after of each field.
import { useState } from "preact/hooks";
import { exactly, many } from "../parts/format";
import { Icon } from "../parts/icon";
import { Empty, Failure, Loading } from "../parts/notices";
import { State } from "../parts/state";
import { Clip, Json, Text, visible } from "../parts/text";
import { toast, toastProblem } from "../parts/toasts";
import { thingUrl, useQuery } from "../parts/url";
import { errorLine } from "../parts/errors";
import type { BatchRun } from "../parts/runs";
import { compareFields, type FieldChange, valueText } from "./fields";
import { exportTargets, type Target, useSearch, useTargets } from "./targets";

const STATES = ["preview", "queued", "applying", "applied", "failed", "rolled_back"];

interface Props {
  run: BatchRun;
  selected: ReadonlySet<string>;
  onSelect: (refs: string[], isOn: boolean) => void;
}

/** Whether a target can be selected: one that can be applied or retried. */
export function isSelectable(target: Target): boolean {
  return (target.state === "preview" && target.changed !== null && !target.error) || target.state === "failed";
}

/** Shows the targets of a run with their changes; search, filters and export. */
export function Difference({ run, selected, onSelect }: Props) {
  const [query, setQuery] = useQuery();
  const text = query.search ?? "";
  const state = query.state && STATES.includes(query.state) ? query.state : undefined;
  const onlyChanged = query.all !== "1";
  const filters = { state, changed: onlyChanged ? true : undefined };
  const targets = useTargets(run.id, filters, true);
  const search = useSearch(run.id, text, filters);
  const rows = text.trim() ? search.found : targets.rows;
  const selectable = rows.filter(isSelectable).map((one) => one.ref);
  const allSelected = selectable.length > 0 && selectable.every((ref) => selected.has(ref));
  return (
    <section class="card" aria-label="Difference">
      <div class="card-head diff-tools">
        <div class="filter-field grow">
          <Icon name="search" />
          <input
            data-filter
            type="search"
            aria-label="Search targets and values"
            placeholder="Search targets and values"
            value={text}
            onInput={(event) => setQuery({ search: event.currentTarget.value || undefined }, { replace: true })}
          />
          <kbd aria-hidden="true">/</kbd>
        </div>
        <label class="check">
          <input
            type="checkbox"
            checked={onlyChanged}
            onChange={(event) => setQuery({ all: event.currentTarget.checked ? undefined : "1" }, { replace: true })}
          />
          Only changed
        </label>
        <select
          class="select"
          aria-label="State of targets"
          value={state ?? ""}
          onChange={(event) => setQuery({ state: event.currentTarget.value || undefined }, { replace: true })}
        >
          <option value="">Every state</option>
          {STATES.map((one) => (
            <option key={one} value={one}>
              {one.replace("_", " ")}
            </option>
          ))}
        </select>
        <ExportButton run={run} filters={filters} />
      </div>
      {rows.length > 0 ? (
        <>
          <DifferenceTable rows={rows} selected={selected} onSelect={onSelect} allSelected={allSelected} selectable={selectable} />
          <div class="table-foot">
            <span class="number">
              {many(rows.length, "target")} shown
              {text.trim() && `, ${exactly(search.searched)} searched${search.isCut && search.isDone ? "; there are more" : ""}`}
            </span>
            {!text.trim() && targets.hasMore && (
              <button type="button" class="button" onClick={targets.more}>
                Show more
              </button>
            )}
          </div>
        </>
      ) : targets.problem ? (
        <Failure problem={targets.problem} retry={targets.refresh} />
      ) : targets.isLoading || (text.trim() && !search.isDone) ? (
        <Loading lines={8} />
      ) : (
        <NoTargets run={run} isFiltered={Boolean(text.trim() || state)} onlyChanged={onlyChanged} showAll={() => setQuery({ search: undefined, state: undefined, all: "1" })} />
      )}
    </section>
  );
}

function NoTargets(props: { run: BatchRun; isFiltered: boolean; onlyChanged: boolean; showAll: () => void }) {
  const { run } = props;
  if (!props.isFiltered && !run.planned_at) {
    return (
      <Empty icon="clock" title="The plan is being made">
        A worker lists the targets first. If this takes long, look at <a href={thingUrl("workers", "").slice(0, -1)}>the workers</a>.
      </Empty>
    );
  }
  if (!props.isFiltered && run.total === 0) return <Empty icon="runs" title="This run has no targets">Its batch found nothing to change.</Empty>;
  return (
    <Empty icon="search" title={props.isFiltered ? "No target matches" : "No target would change"}>
      {props.onlyChanged || props.isFiltered ? (
        <button type="button" class="button small" onClick={props.showAll}>
          Show all {many(run.total, "target")}
        </button>
      ) : null}
    </Empty>
  );
}

function DifferenceTable(props: {
  rows: Target[];
  selected: ReadonlySet<string>;
  selectable: string[];
  allSelected: boolean;
  onSelect: Props["onSelect"];
}) {
  return (
    <div class="table-box">
      <table class="table diff" aria-label="Difference">
        <colgroup>
          <col class="diff-check" />
          <col class="diff-ref" />
          <col class="diff-state" />
          <col class="diff-field" />
          <col />
          <col />
        </colgroup>
        <thead>
          <tr>
            <th scope="col">
              <input
                type="checkbox"
                aria-label="Select all that are shown"
                checked={props.allSelected}
                disabled={props.selectable.length === 0}
                onChange={(event) => props.onSelect(props.selectable, event.currentTarget.checked)}
              />
            </th>
            <th scope="col">Target</th>
            <th scope="col">State</th>
            <th scope="col">Field</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        {props.rows.map((target) => (
          <TargetRows
            key={target.ref}
            target={target}
            isSelected={props.selected.has(target.ref)}
            onSelect={(isOn) => props.onSelect([target.ref], isOn)}
          />
        ))}
      </table>
    </div>
  );
}

const FIELDS_SHOWN = 6;

function TargetRows({ target, isSelected, onSelect }: { target: Target; isSelected: boolean; onSelect: (isOn: boolean) => void }) {
  const [isOpen, setOpen] = useState(false);
  const fields = target.changed === null ? [] : compareFields(target.before, target.after);
  const changed = fields.filter((one) => one.isChanged);
  const shown = isOpen ? fields : changed.slice(0, FIELDS_SHOWN);
  const rows: (FieldChange | null)[] = shown.length ? shown : [null];
  const hidden = fields.length - shown.length;
  return (
    <tbody class={isSelected ? "selected" : ""} data-ref={target.ref}>
      {rows.map((field, n) => (
        <tr key={field?.path ?? ""}>
          {n === 0 && (
            <>
              <td rowSpan={rows.length} class="diff-check-cell">
                {isSelectable(target) && (
                  <input
                    type="checkbox"
                    aria-label={`Select ${visible(target.ref)}`}
                    checked={isSelected}
                    onChange={(event) => onSelect(event.currentTarget.checked)}
                  />
                )}
              </td>
              <td rowSpan={rows.length} class="diff-ref-cell">
                <button
                  type="button"
                  class="open-row"
                  data-row-link
                  aria-expanded={isOpen}
                  title={hidden > 0 ? `Show ${many(hidden, "more field")}` : visible(target.ref)}
                  onClick={() => setOpen(!isOpen)}
                >
                  <Icon name={isOpen ? "down" : "right"} />
                  <Clip value={target.ref} />
                </button>
                {target.job_id && (
                  <a class="small" href={thingUrl("jobs", target.job_id)}>
                    job{target.attempts > 1 ? `, ${target.attempts} attempts` : ""}
                  </a>
                )}
              </td>
              <td rowSpan={rows.length} class="diff-state-cell">
                <State state={target.state} />
              </td>
            </>
          )}
          <FieldCells target={target} field={field} />
        </tr>
      ))}
      {(target.error || target.conflict) && (
        <tr class="diff-error">
          <td colSpan={6}>
            <Icon name="warning" />
            <span>
              <Text value={errorLine(target.error)} />
              {target.conflict && (
                <>
                  {" "}
                  Found instead: <code><Text value={valueText(target.found)} /></code>
                </>
              )}
            </span>
          </td>
        </tr>
      )}
      {isOpen && (
        <tr class="diff-whole">
          <td colSpan={6}>
            <div class="two-columns">
              <Json value={target.before} label="Before" />
              <Json value={target.after} label="After" />
            </div>
          </td>
        </tr>
      )}
    </tbody>
  );
}

function FieldCells({ target, field }: { target: Target; field: FieldChange | null }) {
  if (!field) {
    const said = target.changed === null ? (target.error ? "could not be previewed" : "is being previewed") : "no change";
    return (
      <td colSpan={3} class="soft diff-none">
        {said}
      </td>
    );
  }
  return (
    <>
      <td class="mono diff-field-cell" data-label="Field">
        {field.path ? <Clip value={field.path} /> : <span class="faint">value</span>}
      </td>
      <td class="diff-value" data-label="Before">
        <Value value={field.before} mark={field.isChanged ? "old" : ""} />
      </td>
      <td class="diff-value" data-label="After">
        <Value value={field.after} mark={field.isChanged ? "new" : ""} />
      </td>
    </>
  );
}

function Value({ value, mark }: { value: unknown; mark: string }) {
  if (value === undefined) return <span class="faint">absent</span>;
  const text = valueText(value);
  const inner = (
    <span class={`value ${mark}`} title={visible(text)}>
      {text === "" ? <span class="faint">empty</span> : <Text value={text} />}
    </span>
  );
  return mark === "old" ? <del>{inner}</del> : mark === "new" ? <ins>{inner}</ins> : inner;
}

function ExportButton({ run, filters }: { run: BatchRun; filters: { state?: string; changed?: boolean } }) {
  const [done, setDone] = useState<number | null>(null);
  const start = async () => {
    if (done !== null) return;
    setDone(0);
    try {
      const number = await exportTargets(run.id, filters, setDone);
      toast(`${many(number, "target")} saved as run-${run.id}.ndjson.`);
    } catch (error) {
      toastProblem(error);
    }
    setDone(null);
  };
  return (
    <button type="button" class="button" onClick={start} aria-disabled={done !== null}>
      <Icon name="download" /> {done === null ? "Export" : `${exactly(done)} read`}
    </button>
  );
}
