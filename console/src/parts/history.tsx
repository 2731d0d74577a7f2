// The record of a job or a run: every transition, with time, actor and reason.
import type { Schemas } from "../api/client";
import { labelOf, State } from "./state";
import { Json, Text } from "./text";
import { ExactTime } from "./time";

type Transition = Schemas["Transition"];

/** Shows transitions, the newest first. */
export function History({ transitions }: { transitions: Transition[] }) {
  return (
    <ol class="record-list">
      {[...transitions].reverse().map((one) => (
        <li key={`${one.rank}-${one.n}-${one.attempt}-${one.trigger}-${one.at}`}>
          <span class="record-mark" />
          <div>
            <p class="row">
              <State state={one.to_state} past />
              <span>
                {labelOf(one.trigger)}
                {one.attempt > 0 && <span class="soft"> · attempt {one.attempt}</span>}
                {one.forced && <strong class="forced"> · forced</strong>}
              </span>
            </p>
            <p class="soft small">
              <ExactTime at={one.at} millis /> by <Text value={one.actor} />
            </p>
            {one.reason && (
              <p class="small">
                “<Text value={one.reason} />”
              </p>
            )}
            {one.metadata != null && <Json value={one.metadata} label="Metadata of the transition" />}
          </div>
        </li>
      ))}
    </ol>
  );
}
