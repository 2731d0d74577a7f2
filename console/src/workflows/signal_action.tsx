// Sending a signal to a workflow.
import { post } from "../api/client";
import type { Action } from "../parts/actions";
import type { Wait, Workflow } from "./reading";

/** Returns the action that sends a signal. It suggests the names that the workflow waits for. */
export function signalAction(workflow: Workflow, waits: Wait[]): Action {
  const names = waits.filter((wait) => wait.kind === "signal").map((wait) => wait.name ?? "");
  return {
    label: "Send a signal",
    icon: "bolt",
    allowed: workflow.finished_at && workflow.state !== "quarantined" ? "The workflow has ended." : true,
    title: `Send a signal to workflow ${workflow.id}`,
    text: names.length
      ? "It is woken as soon as the signal that it waits for is there."
      : "It does not wait for a signal now. A signal is kept until it asks for one of this name.",
    fields: (
      <>
        <div class="field">
          <label for="signal-name">Name</label>
          <input id="signal-name" name="name" class="input mono" list="signal-names" required maxLength={200} autocomplete="off" value={names[0] ?? ""} />
          <datalist id="signal-names">
            {names.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </div>
        <div class="field">
          <label for="signal-payload">Payload (JSON)</label>
          <textarea id="signal-payload" name="payload" class="textarea mono" rows={4} spellcheck={false} required>
            null
          </textarea>
        </div>
      </>
    ),
    confirm: "Send",
    run: async (reason, form) => {
      const name = String(form.get("name"));
      const body = { name, payload: parse(String(form.get("payload"))), reason };
      const sent = await post("/workflows/{job_id}/signal", { parts: { job_id: workflow.id }, body });
      return { message: `Signal ${name} was sent, as number ${sent.seq} of its mailbox.` };
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new Error(`The payload is not JSON: ${said}. Write a text in quotes, such as "yes", or true, 12, null, {"approved": true}.`);
  }
}
