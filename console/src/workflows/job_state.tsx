// The state of a job in a list: a pending one that is a workflow and waits is shown as parked.
import type { ComponentChildren } from "preact";
import type { Job } from "../api/client";
import { State } from "../parts/state";
import { Text, visible } from "../parts/text";
import { Time } from "../parts/time";
import { limitOf, mayBeParked, useParked, type Workflow } from "./reading";

/** Shows the state of a job. */
export function JobState({ job }: { job: Job }) {
  if (!mayBeParked(job)) return <State state={job.state} />;
  return <IfParked job={job} otherwise={<State state="pending" />}>{() => <State state="parked" />}</IfParked>;
}

/** Says what a job waits for: a signal, children, or the time at which it is due. */
export function Due({ job }: { job: Job }) {
  const due = (
    <span class="soft">
      due <Time at={job.due_at} />
    </span>
  );
  return (
    <IfParked job={job} otherwise={due}>
      {(workflow) => <ParkedFor workflow={workflow} />}
    </IfParked>
  );
}

/** Says what a workflow is parked for, and until when. */
export function ParkedFor({ workflow }: { workflow: Workflow }) {
  const until = limitOf(workflow.due_at);
  return (
    <span class="soft clip" title={visible(workflow.parked_for ?? "")}>
      <Text value={workflow.parked_for} />
      {until && (
        <>
          , time limit <Time at={until} />
        </>
      )}
    </span>
  );
}

function IfParked(props: { job: Job; otherwise: ComponentChildren; children: (workflow: Workflow) => ComponentChildren }) {
  const found = useParked().data?.items.find((one) => one.id === props.job.id);
  if (found) return <>{props.children(found)}</>;
  return <>{limitOf(props.job.due_at) ? props.otherwise : props.children({ parked_for: "waits without a time limit", due_at: null } as Workflow)}</>;
}
