// What stands where there is nothing to show: empty lists, failures, and the time before the first answer.
import type { ComponentChildren } from "preact";
import type { Problem } from "../api/client";
import type { Reading } from "../api/query";
import { Icon, type IconName } from "./icon";
import { Command, Text } from "./text";

/** Says that there is nothing, and what to do next. */
export function Empty(props: { icon?: IconName; title: string; command?: string; children?: ComponentChildren }) {
  return (
    <div class="notice">
      <Icon name={props.icon ?? "info"} />
      <h3>{props.title}</h3>
      {props.children && <p>{props.children}</p>}
      {props.command && <Command text={props.command} />}
    </div>
  );
}

/** Says what failed, and offers to try again. */
export function Failure({ problem, retry }: { problem: Problem; retry: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <Icon name="warning" />
      <h3>{problem.status === 404 ? "Not found" : problem.isLost ? "The server does not answer" : "This could not be read"}</h3>
      <p>
        <Text value={problem.message} />
        {problem.status > 0 && <span class="faint"> ({problem.title}, {problem.status})</span>}
      </p>
      <button type="button" class="button" onClick={retry}>
        <Icon name="retry" /> Try again
      </button>
    </div>
  );
}

/** Shows lines of a table before its first answer. */
export function Loading({ lines = 6 }: { lines?: number }) {
  return (
    <div class="card-body stack" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, n) => (
        <div class="ghost" key={n} style={{ width: `${90 - ((n * 17) % 40)}%` }} />
      ))}
    </div>
  );
}

/** Shows what was read; before that the loading lines, and after a failure without an earlier answer the failure. */
export function Shown<T>(props: { reading: Reading<T>; lines?: number; children: (data: T) => ComponentChildren }) {
  const { data, problem, refresh } = props.reading;
  if (data !== undefined) return <>{props.children(data)}</>;
  if (problem) return <Failure problem={problem} retry={refresh} />;
  return <Loading lines={props.lines} />;
}
