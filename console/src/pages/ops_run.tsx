// The page of one ops run: its live log, artifacts and deploy URL.
import { post } from "../api/client";
import { legalMove, meaningOf, useLifecycle } from "../api/lifecycles";
import { useRead } from "../api/query";
import { type Action, ActionButton } from "../parts/actions";
import { Log } from "../parts/log";
import { Shown } from "../parts/notices";
import { Card, PageHead } from "../parts/page";
import { State } from "../parts/state";
import { Copyable, Json, Text, WebLink } from "../parts/text";
import { ExactTime, Time, Took } from "../parts/time";
import { pageUrl } from "../parts/url";
import { metadataText, type OpsRun, shortRef } from "./ops";
import "../styles/ops.css";

function cancelAction(run: OpsRun, lifecycle: ReturnType<typeof useLifecycle>): Action {
  const legal = run.state === "claimed" ? true : legalMove(lifecycle, run.state, "cancel", "cancel");
  return {
    label: "Cancel",
    icon: "slash",
    danger: true,
    allowed: legal,
    title: `Cancel ${run.id}?`,
    text: "It is cancelled at once. The worker's next call is refused, so that it stops.",
    confirm: "Cancel the run",
    run: async (reason) => {
      await post("/ops/{run}/cancel", { parts: { run: run.id }, body: { reason } });
      return { message: `${run.id} is cancelled.` };
    },
  };
}

/** Returns the artifacts that a run names: a list of texts, or of objects with a name and an address. */
function artifactsOf(run: OpsRun): { name: string; url: string }[] {
  const found = (run.metadata as Record<string, unknown>).artifacts;
  if (!Array.isArray(found)) return [];
  return found.slice(0, 100).map((one: unknown) => {
    if (typeof one === "string") return { name: "", url: one };
    const part = (one ?? {}) as { name?: unknown; url?: unknown; path?: unknown };
    return { name: String(part.name ?? ""), url: String(part.url ?? part.path ?? JSON.stringify(one)) };
  });
}

export default function OpsRunPage({ id }: { id: string }) {
  const reading = useRead("/ops/{run}", {}, { parts: { run: id } });
  return <Shown reading={reading}>{(run) => <One run={run} key={run.id} />}</Shown>;
}

function One({ run }: { run: OpsRun }) {
  const lifecycle = useLifecycle("ops_run");
  const isOver = lifecycle?.final.includes(run.state) ?? false;
  const url = metadataText(run, "deploy_url", "url");
  const artifacts = artifactsOf(run);
  const error = metadataText(run, "error");
  return (
    <>
      <PageHead
        title={`${run.project_id} · ${run.id}`}
        heading={
          <span class="row">
            <Text value={run.project_id} /> <span class="soft">→</span> <Text value={run.env} /> <State state={run.state} />
          </span>
        }
        lead={
          <>
            <Copyable text={run.id} what="the id of the run" />, queued <Time at={run.queued_at} />. {meaningOf(lifecycle, run.state)}
          </>
        }
        actions={<ActionButton action={cancelAction(run, lifecycle)} />}
      />
      <div class="ops-run">
        <Log path="/ops/{run}/events" id={run.id} isGrowing={!isOver} howToWrite={<>A worker writes a line with <code>POST /api/v1/ops/{run.id}/event</code>.</>} />
        <div class="stack">
          <Card title="Run">
            <dl class="facts">
              <dt>Revision</dt>
              <dd>{run.git_sha ? <Copyable text={run.git_sha} what="the revision" /> : <span class="soft">none</span>}</dd>
              <dt>Ref</dt>
              <dd>{run.git_ref ? <Text value={shortRef(run.git_ref)} /> : <span class="soft">none</span>}</dd>
              <dt>Environment</dt>
              <dd>
                <a href={pageUrl("ops", { project: run.project_id, env: run.env })}>
                  <Text value={`${run.project_id} / ${run.env}`} />
                </a>
              </dd>
              <dt>Worker</dt>
              <dd>{run.claimed_by ? <Text value={run.claimed_by} /> : <span class="soft">waits for one</span>}</dd>
              <dt>Started</dt>
              <dd>
                <ExactTime at={run.started_at} />
              </dd>
              <dt>Took</dt>
              <dd>
                <Took from={run.started_at} to={run.finished_at} />
              </dd>
              {error && (
                <>
                  <dt>Error</dt>
                  <dd class="bad-text">
                    <Text value={error} />
                  </dd>
                </>
              )}
            </dl>
          </Card>
          <Card title="Outcome">
            <dl class="facts">
              <dt>Deployed to</dt>
              <dd>{url ? <WebLink value={url} /> : <span class="soft">{isOver ? "nowhere" : "not yet"}</span>}</dd>
              <dt>Artifacts</dt>
              <dd>
                {artifacts.length ? (
                  <ul class="artifacts">
                    {artifacts.map((one) => (
                      <li key={one.url}>
                        {one.name && (
                          <>
                            <Text value={one.name} />:{" "}
                          </>
                        )}
                        <WebLink value={one.url} />
                      </li>
                    ))}
                  </ul>
                ) : (
                  <span class="soft">none</span>
                )}
              </dd>
            </dl>
          </Card>
          <Card title="Metadata">
            <Json value={run.metadata} label="Metadata of the run" />
          </Card>
        </div>
      </div>
    </>
  );
}
