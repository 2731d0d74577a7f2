// What the page of a job shows if the job is a workflow.
import { useRead } from "../api/query";
import { ActionButton } from "../parts/actions";
import { many } from "../parts/format";
import { Card } from "../parts/page";
import { State } from "../parts/state";
import { Clip, Text } from "../parts/text";
import { ExactTime } from "../parts/time";
import { pageUrl, thingUrl } from "../parts/url";
import { useWaits, useWorkflow, type Workflow } from "./reading";
import { signalAction } from "./signal_action";
import { Steps } from "./steps";
import { UndoButton, UndoFacts } from "./undo_action";
import "../styles/workflows.css";

/** The cards of a workflow, and the nodes of a graph; nothing for another job. */
export function WorkflowCards({ id, isGraph }: { id: string; isGraph: boolean }) {
  const workflow = useWorkflow(id);
  if (isGraph) return <Tree id={id} title="Nodes" />;
  return (
    workflow && (
      <>
        <WorkflowFacts workflow={workflow} />
        <Steps workflow={workflow} />
        <Tree id={id} title="Children" />
      </>
    )
  );
}

function WorkflowFacts({ workflow }: { workflow: Workflow }) {
  const waits = useWaits(workflow);
  const status = workflow.status && typeof workflow.status === "object" ? Object.entries(workflow.status) : [];
  return (
    <Card
      title="Workflow"
      side={
        <>
          <UndoButton workflow={workflow} />
          <ActionButton compact primary={waits.length > 0} action={signalAction(workflow, waits)} />
        </>
      }
    >
      <dl class="facts">
        {workflow.undoing_since && (
          <>
            <dt>{workflow.undone_at ? "Undone" : "Undoing"}</dt>
            <dd>
              {workflow.undone_at ? "" : "since "}
              <ExactTime at={workflow.undone_at ?? workflow.undoing_since} />
            </dd>
          </>
        )}
        <dt>Version</dt>
        <dd class="number">
          <a href={pageUrl("workflows", { task: workflow.task, version: String(workflow.version) })}>{workflow.version}</a>
          {workflow.generation > 1 && <span class="soft">, generation {workflow.generation}</span>}
        </dd>
        <dt>On record</dt>
        <dd>
          {many(workflow.steps, "step")}
          {workflow.unread ? `, ${many(workflow.unread, "unread signal")}` : ", no unread signal"}
        </dd>
        {workflow.parent_id && (
          <>
            <dt>Parent</dt>
            <dd>
              <a href={thingUrl("jobs", workflow.parent_id)}>{workflow.parent_id}</a>
            </dd>
          </>
        )}
        {workflow.forked_from && (
          <>
            <dt>Forked from</dt>
            <dd>
              <a href={thingUrl("jobs", workflow.forked_from)}>{workflow.forked_from}</a>
            </dd>
          </>
        )}
        <UndoFacts workflow={workflow} />
        {status.map(([name, value]) => (
          <StatusFact key={name} name={name} value={value} />
        ))}
      </dl>
    </Card>
  );
}

function StatusFact({ name, value }: { name: string; value: unknown }) {
  return (
    <>
      <dt>
        <Text value={name} />
      </dt>
      <dd>
        <Text value={typeof value === "string" ? value : (JSON.stringify(value) ?? "null")} />
      </dd>
    </>
  );
}

/** The job and its children, and theirs. */
function Tree({ id, title }: { id: string; title: string }) {
  const tree = useRead("/workflows/{job_id}/tree", {}, { parts: { job_id: id } }).data;
  if (!tree || tree.nodes.length < 2) return null;
  return (
    <Card title={title} side={!tree.complete && <span class="soft small">There are more than these.</span>}>
      <ul class="tree">
        {tree.nodes.slice(1).map((node) => (
          <li key={node.id} class="row" style={{ paddingLeft: `${Math.min(node.depth - 1, 8) * 20}px` }}>
            <State state={node.state} />
            <a href={thingUrl("jobs", node.id)}>
              <Text value={node.task} /> {node.id}
            </a>
            <span class="soft small grow">
              <Clip value={node.parked_for ?? node.path} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
