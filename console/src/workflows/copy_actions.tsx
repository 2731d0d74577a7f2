// Rewinding and forking a workflow from one of its steps: first what would be repeated, then a reason.
import { post } from "../api/client";
import { useRead } from "../api/query";
import { type Action, ActionButton, type Allowed } from "../parts/actions";
import { many } from "../parts/format";
import { Text, visible } from "../parts/text";
import type { Workflow } from "./reading";
import type { Step } from "./timeline";

const STEPS_MAX = 500;

/** The buttons below the value of a step. Rows that belong to another step have none. */
export function CopyButtons({ workflow, step }: { workflow: Workflow; step: Step }) {
  if (step.path.includes("~") || step.kind === "undo") return null;
  return (
    <p class="row">
      <ActionButton compact action={rewindAction(workflow, step)} />
      <ActionButton compact action={forkAction(workflow, step)} />
    </p>
  );
}

function rewindAction(workflow: Workflow, step: Step): Action {
  const parts = { job_id: workflow.id };
  return {
    label: "Rewind…",
    icon: "undo",
    danger: true,
    allowed: rewindable(workflow),
    title: `Rewind workflow ${workflow.id} to ${visible(step.path)}`,
    text: "It continues with this step. Steps before it are kept; these are called again:",
    fields: (
      <>
        <Repeated id={workflow.id} path={step.path} />
        <Force />
      </>
    ),
    confirm: "Rewind",
    run: async (reason, form) => {
      await post("/workflows/{job_id}/rewind", { parts, body: { to: step.path, force: form.has("force"), reason } });
      return { message: `Workflow ${workflow.id} continues with ${step.path}.` };
    },
  };
}

function rewindable(workflow: Workflow): Allowed {
  if (workflow.undo_of) return "It undoes another workflow.";
  if (workflow.state === "running") return "The workflow is running. Cancel it first, or fork it.";
  return workflow.state === "succeeded" ? "The workflow has succeeded, and that is final. Fork it." : true;
}

function forkAction(workflow: Workflow, step: Step): Action {
  const parts = { job_id: workflow.id };
  return {
    label: "Fork…",
    icon: "bolt",
    allowed: workflow.undo_of ? "It undoes another workflow." : true,
    title: `Fork workflow ${workflow.id} at ${visible(step.path)}`,
    text: "Another workflow begins with copies of the steps before this one, and calls these. This one is left as it is.",
    fields: (
      <>
        <Repeated id={workflow.id} path={step.path} />
        <div class="field">
          <label for="fork-replace">Other values of steps before it (JSON)</label>
          <textarea id="fork-replace" name="replace" class="textarea mono" rows={3} spellcheck={false}>
            {"{}"}
          </textarea>
        </div>
        <Force />
      </>
    ),
    confirm: "Fork",
    run: async (reason, form) => {
      const replace = parse(String(form.get("replace")));
      const body = { at: step.path, replace, force: form.has("force"), reason };
      const made = await post("/workflows/{job_id}/fork", { parts, body });
      return { message: `Job ${made.id} is a fork of workflow ${workflow.id}.` };
    },
  };
}

/** The steps that would be called again, from the record. */
function Repeated({ id, path }: { id: string; path: string }) {
  const found = useRead("/workflows/{job_id}/steps", { since: path, limit: STEPS_MAX }, { parts: { job_id: id } }).data;
  if (!found) return null;
  const steps = found.items.filter((one) => !one.path.includes("~"));
  return (
    <>
      <ol class="undo-preview" aria-label="Steps to repeat">
        {steps.map((one) => (
          <li key={one.path}>
            <Text value={one.path} /> {one.kind === "transact" && <span class="soft small">transaction</span>}
          </li>
        ))}
      </ol>
      {found.next && <p class="soft small">The first {many(steps.length, "step")}; there are more.</p>}
    </>
  );
}

function Force() {
  return (
    <label class="check small">
      <input type="checkbox" name="force" />
      <span>Repeat transactions and steps that happen once, too. Say why.</span>
    </label>
  );
}

function parse(text: string): Record<string, never> {
  let found: unknown;
  try {
    found = JSON.parse(text.trim() || "{}");
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new Error(`The values are not JSON: ${said}. Write an object, such as {"price": 30}.`);
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) {
    throw new Error('The values are not an object. Write the name of each step and its value, such as {"price": 30}.');
  }
  return found as Record<string, never>;
}
