// What the pages of batch runs and pipeline runs have in common.
import type { ComponentChildren } from "preact";
import { useRead } from "../api/query";
import { History } from "../parts/history";
import { Shown } from "../parts/notices";
import { Card, PageHead } from "../parts/page";
import { type AnyRun, isBatch, nameOf } from "../parts/runs";
import { State } from "../parts/state";
import { type Tab, Tabs } from "../parts/tabs";
import { Copyable, Json, Text } from "../parts/text";
import { Time } from "../parts/time";
import { useQuery } from "../parts/url";

/** The head of the page: the name and state, who began the run, when and why. */
export function RunHead({ run, tag, actions }: { run: AnyRun; tag?: ComponentChildren; actions?: ComponentChildren }) {
  return (
    <PageHead
      title={`${nameOf(run)} · run ${run.id}`}
      heading={
        <span class="row">
          <Text value={nameOf(run)} /> <State state={run.state} />
          {tag}
        </span>
      }
      lead={
        <>
          Run <Copyable text={run.id} what="the id of the run" /> by <Text value={isBatch(run) ? run.actor : run.started_by} />,{" "}
          <Time at={run.created_at} />
          {run.tenant && (
            <>
              , tenant <Text value={run.tenant} />
            </>
          )}
          {run.reason && (
            <>
              : <Text value={run.reason} />
            </>
          )}
        </>
      }
      actions={actions}
    />
  );
}

/** The tabs of a run, and below them what the chosen one shows: the record, the input, or a part of its own. */
export function RunTabs({ run, tabs, children }: { run: AnyRun; tabs: Tab[]; children: (tab?: string) => ComponentChildren }) {
  const [query] = useQuery();
  return (
    <>
      <Tabs
        label="Parts of the run"
        path={`runs/${encodeURIComponent(run.id)}`}
        name="tab"
        query={{ tab: query.tab }}
        tabs={[...tabs, { value: "record", label: "Record" }, { value: "input", label: "Input" }]}
      />
      {query.tab === "record" ? (
        <RunRecord id={run.id} />
      ) : query.tab === "input" ? (
        <Card title="Input">
          <Json value={run.payload} label={`Input of the ${isBatch(run) ? "batch" : "pipeline"}`} />
        </Card>
      ) : (
        children(query.tab)
      )}
    </>
  );
}

function RunRecord({ id }: { id: string }) {
  const history = useRead("/runs/{run_id}/history", {}, { parts: { run_id: id } });
  return (
    <Card title="Record">
      <Shown reading={history}>{({ items }) => <History transitions={items} />}</Shown>
    </Card>
  );
}
