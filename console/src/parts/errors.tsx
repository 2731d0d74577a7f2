// Errors of jobs: the chain of exceptions in a traceback, the last one first.
import { Text } from "./text";

interface Link {
  kind: string;
  message: string;
  trace: string;
  /** How it came from the one before: its cause, or raised while that was handled. */
  from: "cause" | "context" | null;
}

const CAUSE = "The above exception was the direct cause of the following exception:";
const CONTEXT = "During handling of the above exception, another exception occurred:";
const BETWEEN = new RegExp(`\\n\\s*(${CAUSE}|${CONTEXT})\\s*\\n`);

/** Returns the exceptions in the text of an error, the last raised first. */
export function errorChain(text: string): Link[] {
  const parts = text.trim().split(BETWEEN);
  const links: Link[] = [];
  for (let n = 0; n < parts.length; n += 2) {
    const trace = (parts[n] ?? "").trim();
    const [kind, message] = namesOf(trace);
    const between = parts[n - 1];
    links.unshift({ kind, message, trace, from: between === CAUSE ? "cause" : between ? "context" : null });
  }
  return links;
}

function namesOf(trace: string): [string, string] {
  const lines = trace.split("\n");
  // The exception stands after the last frame; its message may have several lines.
  let at = lines.length - 1;
  while (at > 0 && !(/^[A-Za-z_][\w.]*(:|$)/.test(lines[at] as string) && /^\s/.test(lines[at - 1] ?? ""))) at -= 1;
  const whole = lines.slice(at).join("\n");
  const found = /^([A-Za-z_][\w.]*)(?::\s*([\s\S]*))?$/.exec(whole);
  return found ? [found[1] as string, found[2] ?? ""] : ["", trace];
}

/** Returns an error in one line, without the module of the exception: `ValueError: not a number (in step 'ship')`. */
export function errorLine(error: string | null): string {
  const first = error ? errorChain(error)[0] : undefined;
  if (!first) return "";
  const kind = first.kind.split(".").at(-1) ?? "";
  const step = stepOf(error);
  const line = [kind, first.message.split("\n")[0]].filter(Boolean).join(": ");
  return step ? `${line} (in step '${step}')` : line;
}

/** Returns the step of a workflow in which an error was raised; undefined if it names none. */
export function stepOf(error: string | null): string | undefined {
  const last = error?.trim().split(BETWEEN).at(-1);
  return /^in step '(.*)'$/m.exec(last ?? "")?.[1];
}

/** Shows the chain of exceptions. The trace of each is folded, except that of the last one. */
export function ErrorChain({ error }: { error: string }) {
  const links = errorChain(error);
  return (
    <ol class="error-chain">
      {links.map((link, n) => (
        <li key={n}>
          {n > 0 && <p class="soft small">{links[n - 1]?.from === "context" ? "while handling" : "caused by"}</p>}
          <p class="error-kind">
            <strong>
              <Text value={link.kind || "Error"} />
            </strong>
            {link.message && (
              <>
                : <Text value={link.message} />
              </>
            )}
          </p>
          {link.trace.includes("\n") && (
            <details open={n === 0}>
              <summary>Traceback</summary>
              <pre class="code-box" tabIndex={0} role="region" aria-label={`Traceback of ${link.kind}`}>
                <Text value={link.trace} />
              </pre>
            </details>
          )}
        </li>
      ))}
    </ol>
  );
}
