// Draining a worker: it finishes what it holds and claims nothing more.
import { post, type Schemas } from "../api/client";
import { ActionButton } from "./actions";
import { many } from "./format";

export function DrainButton({ worker, state }: { worker: Schemas["Worker"]; state: string }) {
  return (
    <ActionButton
      compact
      action={{
        label: "Drain",
        icon: "down",
        danger: true,
        allowed:
          state === "gone"
            ? "This worker is gone: it has sent no heartbeat lately."
            : state === "stopping"
              ? "This worker is draining already."
              : true,
        title: `Drain the worker ${worker.name}?`,
        text: `It claims no more jobs, finishes the ${many(worker.running, "job")} that it holds, and ends. Start a new one to go on.`,
        run: async (reason) => {
          await post("/workers/{worker_id}/drain", { parts: { worker_id: worker.id }, body: { reason } });
          return { message: `The worker ${worker.name} is asked to drain.` };
        },
      }}
    />
  );
}
