import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Problem } from "../api/client";
import { Icon } from "./icon";
import { Text } from "./text";

interface Toast {
  id: number;
  tone: "good" | "bad" | "plain";
  text: string;
  undo?: () => Promise<unknown>;
}

const toasts = signal<Toast[]>([]);
let lastId = 0;

function drop(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

/** Shows a message for some seconds; with `undo`, a button that takes the change back. */
export function toast(text: string, tone: Toast["tone"] = "good", undo?: () => Promise<unknown>): void {
  const id = ++lastId;
  toasts.value = [...toasts.value.slice(-3), { id, tone, text, undo }];
  setTimeout(() => drop(id), undo || tone === "bad" ? 10_000 : 5_000);
}

/** Shows why something failed. */
export function toastProblem(error: unknown): void {
  toast(error instanceof Problem || error instanceof Error ? error.message : String(error), "bad");
}

const ICONS = { good: "check", bad: "warning", plain: "info" } as const;

/** The place of all messages. */
export function Toasts({ children }: { children?: ComponentChildren }) {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {children}
      {toasts.value.map((one) => (
        <div class={`toast ${one.tone}`} key={one.id}>
          <Icon name={ICONS[one.tone]} />
          <span class="grow">
            <Text value={one.text} />
          </span>
          {one.undo && (
            <button
              type="button"
              class="button small"
              onClick={() => {
                drop(one.id);
                one.undo?.().catch(toastProblem);
              }}
            >
              <Icon name="undo" /> Undo
            </button>
          )}
          <button type="button" class="button plain icon small" aria-label="Close the message" onClick={() => drop(one.id)}>
            <Icon name="cross" />
          </button>
        </div>
      ))}
    </div>
  );
}
