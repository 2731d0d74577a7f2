// Texts that come from data. Control and direction characters are shown instead of obeyed, and only web links are links.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Icon } from "./icon";

// eslint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

const codeOf = (character: string) =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** Returns a text in which characters that cannot be seen are written as [U+202E]; for attributes such as titles. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (found) => `[${codeOf(found)}]`);
}

/** Shows a text from data. */
export function Text({ value }: { value: string | null | undefined }) {
  if (!value) return null;
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const found of value.matchAll(UNSEEN)) {
    parts.push(value.slice(from, found.index));
    parts.push(<span class="control-character">{codeOf(found[0])}</span>);
    from = found.index + found[0].length;
  }
  if (from === 0) return <>{value}</>;
  parts.push(value.slice(from));
  return <>{parts}</>;
}

/** Shows a text from data in one line; a long one is cut, and whole when pointed at. */
export function Clip({ value }: { value: string | null | undefined }) {
  return (
    <span class="clip" title={visible(value ?? "")}>
      <Text value={value} />
    </span>
  );
}

/** Shows an address from data as a link, if it is one of the web; otherwise as a text. */
export function WebLink({ value }: { value: string }) {
  let isWeb = false;
  try {
    isWeb = ["http:", "https:"].includes(new URL(value).protocol);
  } catch {
    /* not an address */
  }
  if (!isWeb) return <Text value={value} />;
  return (
    <a href={value} target="_blank" rel="noopener noreferrer">
      <Text value={value} />
    </a>
  );
}

const copied = signal("");

/** Copies a text, and says so for a moment. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without a secure origin there is no clipboard: select the text in a field that is not seen.
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "unseen";
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  copied.value = text;
  setTimeout(() => {
    if (copied.value === text) copied.value = "";
  }, 1500);
}

/** Shows children with a button that copies a text. */
export function Copyable(props: { text: string; what?: string; always?: boolean; children?: ComponentChildren }) {
  const isCopied = copied.value === props.text;
  return (
    <span class={`copyable ${props.always ? "always-shown" : ""}`}>
      {props.children ?? (
        <span class="mono">
          <Text value={props.text} />
        </span>
      )}
      <button type="button" aria-label={`Copy ${props.what ?? visible(props.text)}`} onClick={() => copy(props.text)}>
        <Icon name={isCopied ? "check" : "copy"} />
      </button>
    </span>
  );
}

/** Shows a command to type, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <span class="command">
      <Copyable text={text} what="the command" always>
        <code>{text}</code>
      </Copyable>
    </span>
  );
}

/** Shows a JSON value, indented. */
export function Json({ value, label }: { value: unknown; label: string }) {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "null");
  return (
    // biome-ignore lint: a box that scrolls must take the focus
    <pre class="code-box" tabIndex={0} role="region" aria-label={label}>
      <Text value={text} />
    </pre>
  );
}
