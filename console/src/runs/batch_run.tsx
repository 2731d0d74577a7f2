// The page of a batch run: progress, the difference, mismatches, the record.
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { useLifecycle, meaningOf } from "../api/lifecycles";
import { useRead } from "../api/query";
import { ActionButton } from "../parts/actions";
import { exactly, many } from "../parts/format";
import { Icon } from "../parts/icon";
import { Empty, Shown } from "../parts/notices";
import { Card } from "../parts/page";
import { Shares } from "../parts/progress";
import { type BatchRun, leftOf, progressText, sharesOf } from "../parts/runs";
import { type Column, Table } from "../parts/table";
import { Clip, Text } from "../parts/text";
import { Time } from "../parts/time";
import { pageUrl, thingUrl } from "../parts/url";
import { applyAction, cancelAction, correctAction, reconcileAction, retryFailedAction, rollBackAction } from "./batch_actions";
import { Difference } from "./difference";
import { compareFields, valueText } from "./fields";
import { RunHead, RunTabs } from "./run_parts";

export function BatchRunPage({ run }: { run: BatchRun }) {
  const lifecycle = useLifecycle("batch_run");
  return (
    <>
      <RunHead run={run} />
      <div class="stack">
        <Progress run={run} meaning={meaningOf(lifecycle, run.state)} />
        <RunTabs
          run={run}
          tabs={[
            { value: undefined, label: "Difference", number: run.total },
            { value: "mismatches", label: "Mismatches", number: run.mismatches },
          ]}
        >
          {(tab) => (tab === "mismatches" ? <Mismatches run={run} /> : <Changes run={run} />)}
        </RunTabs>
      </div>
    </>
  );
}

function Changes({ run }: { run: BatchRun }) {
  const lifecycle = useLifecycle("batch_run");
  const { route } = useLocation();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const select = (refs: string[], isOn: boolean) => {
    const next = new Set(selected);
    for (const ref of refs) {
      if (isOn) next.add(ref);
      else next.delete(ref);
    }
    setSelected(next);
  };
  const refs = [...selected];
  const isRest = run.state !== "preview" && leftOf(run) > 0;
  // A selection is of targets to apply, or of failed ones to retry.
  const isRetry = run.state === "partial" || run.state === "failed";
  const apply = applyAction(run, lifecycle, isRetry ? [] : refs, isRest);
  const retry = retryFailedAction(run, lifecycle, isRetry ? refs : []);
  return (
    <>
      <div class="action-bar" role="group" aria-label="Actions">
        <ActionButton action={clearing(apply, () => setSelected(new Set()))} primary={apply.allowed === true} />
        <ActionButton action={clearing(retry, () => setSelected(new Set()))} />
        <ActionButton action={rollBackAction(run, lifecycle)} />
        <ActionButton action={reconcileAction(run)} />
        <ActionButton action={correctAction(run, (id) => route(thingUrl("runs", id)))} />
        <ActionButton action={cancelAction(run, lifecycle)} />
        {refs.length > 0 && (
          <button type="button" class="button plain" onClick={() => setSelected(new Set())}>
            Clear the selection
          </button>
        )}
      </div>
      <Difference run={run} selected={selected} onSelect={select} />
    </>
  );
}

function clearing<T extends { run: (...given: any[]) => Promise<any> }>(action: T, clear: () => void): T {
  return {
    ...action,
    run: async (...given: unknown[]) => {
      const done = await action.run(...given);
      clear();
      return done;
    },
  };
}

function Progress({ run, meaning }: { run: BatchRun; meaning: string }) {
  const { shares, total } = sharesOf(run);
  const legend =
    run.state === "preview"
      ? [
          { label: "would change", number: Math.max(0, run.previewed - run.preview_failed - run.unchanged), tone: "violet", state: "" },
          { label: "unchanged", number: run.unchanged, tone: "gray", state: "" },
          { label: "preview failed", number: run.preview_failed, tone: "red", state: "" },
        ]
      : [
          { label: "applied", number: run.applied, tone: "green", state: "applied" },
          { label: "failed", number: run.failed, tone: "red", state: "failed" },
          { label: "being applied", number: run.applying, tone: "blue", state: "applying" },
          { label: "queued", number: run.queued, tone: "amber", state: "queued" },
          { label: "rolled back", number: run.rolled_back, tone: "gray", state: "rolled_back" },
          { label: "left in preview", number: leftOf(run), tone: "violet", state: "preview" },
        ];
  const error = run.critical ?? run.error;
  return (
    <section class="card" aria-label="Progress">
      <div class="card-body stack tight">
        <div class="spread">
          <strong class="number" role="status">
            {progressText(run)}
          </strong>
          <span class="soft small">{meaning}</span>
        </div>
        <span class="big-progress">
          <Shares shares={shares} total={total} label="Progress" />
        </span>
        <ul class="legend">
          {legend.map((one) => (
            <li key={one.label} class={one.number ? "" : "zero"}>
              <span class={`swatch ${one.tone}`} />
              {one.state ? (
                <a href={pageUrl(`runs/${encodeURIComponent(run.id)}`, { state: one.state, all: "1" })}>
                  <span class="number">{exactly(one.number)}</span> {one.label}
                </a>
              ) : (
                <span>
                  <span class="number">{exactly(one.number)}</span> {one.label}
                </span>
              )}
            </li>
          ))}
        </ul>
        {run.rollback_requested_at && run.state !== "rolled_back" && (
          <p class="soft small">
            <Text value={run.rollback_requested_by} /> asked for a rollback <Time at={run.rollback_requested_at} />
            {run.rollback_reason && (
              <>
                : <Text value={run.rollback_reason} />
              </>
            )}
            . {exactly(run.reverting)} targets are being reverted, {exactly(run.revert_failed)} could not be.
          </p>
        )}
        {error && (
          <p class="form-problem" role="alert">
            <Icon name="warning" /> <Text value={error} />
          </p>
        )}
        {run.conflicts > 0 && (
          <p class="form-problem">
            <Icon name="warning" /> {many(run.conflicts, "target")} had been changed by others, and was refused. Retry with “Overwrite” to change it
            all the same.
          </p>
        )}
      </div>
    </section>
  );
}

interface MismatchRow {
  ref: string;
  path: string;
  expected: string;
  actual: string;
}

const MISMATCH_COLUMNS: Column<MismatchRow>[] = [
  { head: "Target", width: "26%", place: "lead", cell: (one) => <Clip value={one.ref} /> },
  { head: "Field", width: "18%", cell: (one) => <code>{one.path ? <Text value={one.path} /> : "value"}</code> },
  { head: "Applied", cell: (one) => <Clip value={one.expected} /> },
  { head: "Now", cell: (one) => <strong><Clip value={one.actual} /></strong> },
];

function Mismatches({ run }: { run: BatchRun }) {
  const { route } = useLocation();
  const found = useRead("/runs/{run_id}/mismatches", { open_only: true }, { parts: { run_id: run.id } });
  const checks = useRead("/runs/{run_id}/reconciliations", {}, { parts: { run_id: run.id } });
  const last = checks.data?.items[0];
  return (
    <Card
      title="Mismatches"
      padded={false}
      side={
        <>
          <ActionButton compact action={reconcileAction(run)} />
          <ActionButton compact action={correctAction(run, (id) => route(thingUrl("runs", id)))} />
        </>
      }
    >
      {last && (
        <p class="card-body soft small" role="status">
          {last.done_at ? (
            <>
              Compared <Time at={last.done_at} /> by <Text value={last.actor} />: {many(last.checked, "target")}, {exactly(last.mismatched)} did not match.
            </>
          ) : (
            <>
              Comparing: {exactly(last.checked)} of {many(last.planned ?? run.applied, "target")} so far.
            </>
          )}
        </p>
      )}
      <Shown reading={found}>
        {({ items }) => {
          const rows = items.flatMap((one) =>
            compareFields(one.expected, one.actual)
              .filter((field) => field.isChanged)
              .map((field) => ({ ref: one.ref, path: field.path, expected: valueText(field.before), actual: valueText(field.after) })),
          );
          return rows.length ? (
            <Table label="Mismatches" columns={MISMATCH_COLUMNS} rows={rows} keyOf={(one) => `${one.ref} ${one.path}`} />
          ) : (
            <Empty icon="integrity" title={last ? "Everything matches" : "Not compared yet"}>
              {last
                ? "Every applied target has the value that was applied."
                : "“Reconcile” compares every applied target with its value now. It changes nothing."}
            </Empty>
          );
        }}
      </Shown>
    </Card>
  );
}
