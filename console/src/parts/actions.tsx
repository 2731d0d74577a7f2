// Changes: a button, a dialog that asks for the reason, the request, and a message about its outcome.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { changes } from "../live/live";
import { mayChange, type Role } from "../api/session";
import { Icon, type IconName } from "./icon";
import { Text } from "./text";
import { toast } from "./toasts";

/** True, or the sentence that says why not. */
export type Allowed = true | string;

export interface Done {
  /** What the message says. */
  message: string;
  /** Takes the change back. */
  undo?: () => Promise<unknown>;
}

export interface Action {
  label: string;
  icon?: IconName;
  danger?: boolean;
  /** Whether the change is legal now. */
  allowed: Allowed;
  /** The role that it needs; an operator if it is left out. */
  role?: Role;
  /** The title of the dialog: a question or what will be done. */
  title: string;
  /** What the change means, in a sentence or two. */
  text?: ComponentChildren;
  /** Whether a reason must be given. A reason is always asked for. */
  reason?: "required" | "optional";
  /** More fields of the dialog. */
  fields?: ComponentChildren;
  /** The text of the button in the dialog; the label if it is left out. */
  confirm?: string;
  /** Makes the change. An error is shown in the dialog, which stays open. */
  run: (reason: string | undefined, form: FormData) => Promise<Done | void>;
}

const asked = signal<Action | null>(null);

/** Opens the dialog of an action. */
export function ask(action: Action): void {
  asked.value = action;
}

/** Returns whether an action can be done now by this reader, or why not. */
export function allowance(action: Action): Allowed {
  const right = mayChange(action.role ?? "operator");
  return right === true ? action.allowed : right;
}

/** A button for an action. If the action is not allowed, the button stays and says why. */
export function ActionButton({ action, compact = false, primary = false, onClick }: {
  action: Action;
  compact?: boolean;
  primary?: boolean;
  /** Done instead of opening the dialog. */
  onClick?: () => void;
}) {
  const allowed = allowance(action);
  const classes = ["button"];
  if (compact) classes.push("small");
  if (primary) classes.push("primary");
  if (action.danger) classes.push("danger");
  return (
    <button
      type="button"
      class={classes.join(" ")}
      aria-disabled={allowed !== true}
      data-hint={allowed === true ? undefined : allowed}
      aria-description={allowed === true ? undefined : allowed}
      onClick={() => allowed === true && (onClick ? onClick() : ask(action))}
    >
      {action.icon && <Icon name={action.icon} />}
      {action.label}
    </button>
  );
}

/** The dialog of the action that was asked for. */
export function ActionDialog() {
  const action = asked.value;
  return action && <AskDialog action={action} key={action.title} />;
}

function AskDialog({ action }: { action: Action }) {
  const box = useRef<HTMLDialogElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    box.current?.showModal();
  }, []);
  const close = () => {
    asked.value = null;
  };
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (isBusy) return;
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const reason = String(form.get("reason") ?? "").trim();
    setBusy(true);
    setFailure("");
    try {
      const done = await action.run(reason || undefined, form);
      if (asked.peek() === action) close();
      changes.now();
      if (done) {
        const undo = done.undo && (() => done.undo!().then(() => changes.now()));
        toast(done.message, "good", undo);
      }
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  const required = action.reason === "required";
  return (
    <dialog class="dialog" ref={box} onClose={close} aria-labelledby="ask-title">
      <form onSubmit={submit}>
        <h2 id="ask-title">{action.title}</h2>
        {action.text && <div class="soft">{action.text}</div>}
        {action.fields}
        <div class="field">
          <label for="ask-reason">Reason{required ? "" : " (optional)"}</label>
          <textarea
            id="ask-reason"
            name="reason"
            class="textarea"
            required={required}
            maxLength={1000}
            rows={2}
            placeholder="Kept on record with your name"
            autofocus
          />
        </div>
        {failure && (
          <p role="alert" class="form-problem">
            <Icon name="warning" /> <Text value={failure} />
          </p>
        )}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={close}>
            Close
          </button>
          <button type="submit" class={`button primary ${action.danger ? "danger" : ""}`} aria-disabled={isBusy}>
            {isBusy ? "Working…" : (action.confirm ?? action.label)}
          </button>
        </div>
      </form>
    </dialog>
  );
}
