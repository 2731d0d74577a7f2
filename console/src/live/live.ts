// What keeps a page current: one stream of the server for each tab; while there is none, polling.
import { computed, effect, signal } from "@preact/signals";
import { base, forgetRecent, Problem, watchAnswers } from "../api/client";

export type LiveStatus = "connecting" | "live" | "polling" | "paused" | "lost";

/** Whether the reader has paused updates. */
export const isPaused = signal(false);
/** Whether the server has not answered lately. */
export const isLost = signal(false);
/** Whether the server wants a token. */
export const needsToken = signal(false);
const isStreaming = signal(false);
const isHidden = signal(document.hidden);

export const liveStatus = computed<LiveStatus>(() => {
  if (isLost.value) return "lost";
  if (isPaused.value) return "paused";
  return isStreaming.value ? "live" : "polling";
});

/** Returns after how many seconds a page reads again if the stream says nothing. */
export function pollSeconds(): number {
  if (isHidden.peek()) return isStreaming.peek() ? 120 : 20;
  return isStreaming.peek() ? 15 : 3;
}

/** Called with whether more than the counts of jobs has changed. */
type ChangeWatcher = (isMore: boolean) => void;

/** Tells pages that something has changed. They are gathered, so that a busy server is not asked at every change. */
class Changes {
  private readonly watchers = new Set<ChangeWatcher>();
  private timer = 0;
  private last = 0;
  private isMore = false;

  /** Calls the watcher after changes, at most once in the interval. Returns a function that ends it. */
  watch(watcher: ChangeWatcher): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** Says that something has changed: only the counts of jobs, or more. */
  tell(isMore = true): void {
    this.isMore ||= isMore;
    if (this.timer || isPaused.peek()) return;
    const interval = isHidden.peek() ? 20_000 : 2_000;
    this.timer = window.setTimeout(() => this.pass(), Math.max(60, this.last + interval - Date.now()));
  }

  /** Makes every page read again now, for the key `r` and after a change by the reader. */
  now(): void {
    this.isMore = true;
    forgetRecent();
    this.pass();
  }

  private pass(): void {
    clearTimeout(this.timer);
    const isMore = this.isMore;
    this.timer = 0;
    this.isMore = false;
    this.last = Date.now();
    for (const watcher of [...this.watchers]) watcher(isMore);
  }
}

export const changes = new Changes();

type MessageListener = (kind: string, data: unknown) => void;
const listeners = new Set<MessageListener>();

/** Calls the listener with every message of the stream. Returns a function that ends it. */
export function onMessage(listener: MessageListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Jobs by queue and state. */
export type Counted = Record<string, Record<string, number>>;

/** The counts of the stream, which the server makes once for all consoles; null while the stream sends none. */
export const counted = signal<Counted | null>(null);

/** What the stream follows: the record, or the one thing whose page is shown. */
const subject = signal("");

/** Lets the stream of this tab follow one thing, `job`, `run` or `ops`, until the returned function is called. */
export function follow(noun: "job" | "run" | "ops", id: string): () => void {
  const chosen = `?${noun}=${encodeURIComponent(id)}&follow=true`;
  subject.value = chosen;
  return () => {
    if (subject.peek() === chosen) subject.value = "";
  };
}

const KINDS = ["change", "counts", "event", "transition", "run", "reset", "end"] as const;
const RETRY_MILLIS = 30_000;
const HIDDEN_MILLIS = 10_000;
let source: EventSource | null = null;
let retryTimer = 0;
let hiddenTimer = 0;
let wasLost = false;

function openStream(): void {
  clearTimeout(retryTimer);
  if (source || needsToken.peek() || isPaused.peek()) return;
  const opened = new EventSource(`${base}api/v1/stream${subject.peek()}`);
  source = opened;
  opened.onopen = () => {
    isStreaming.value = true;
    isLost.value = false;
    if (wasLost) changes.now();
    wasLost = false;
  };
  opened.onerror = () => {
    if (isStreaming.peek()) changes.tell(); // reads, and so finds out whether the server is gone
    isStreaming.value = false;
    counted.value = null;
    wasLost = true;
    if (opened.readyState === EventSource.CLOSED && source === opened) {
      // The server refused the stream, or the thing it follows is gone: poll, and try again later.
      source = null;
      retryTimer = window.setTimeout(openStream, RETRY_MILLIS);
    }
  };
  for (const kind of KINDS) opened.addEventListener(kind, (message) => hear(kind, (message as MessageEvent<string>).data));
}

function hear(kind: string, text: string): void {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return;
  }
  for (const listener of [...listeners]) listener(kind, data);
  // Lines of a log are shown as they come; everything else is read again.
  if (kind === "counts") counted.value = (data as { queues: Counted }).queues;
  if (kind !== "event") changes.tell(kind !== "counts");
  if (kind === "end") {
    closeStream();
    retryTimer = window.setTimeout(openStream, RETRY_MILLIS);
  }
}

function closeStream(): void {
  clearTimeout(retryTimer);
  source?.close();
  source = null;
  isStreaming.value = false;
  counted.value = null;
}

/** Starts live updates. Called once. */
export function startLive(): void {
  watchAnswers((problem: Problem | null) => {
    if (problem === null) {
      if (isLost.peek()) {
        isLost.value = false;
        if (!source) openStream();
        changes.tell();
      }
    } else if (problem.isLost) {
      isLost.value = true;
    } else if (problem.status === 401) {
      needsToken.value = true;
      closeStream();
    }
  });
  document.addEventListener("visibilitychange", () => {
    isHidden.value = document.hidden;
    clearTimeout(hiddenTimer);
    if (document.hidden) {
      // A browser has few connections to one server: tabs that are not seen give theirs back.
      hiddenTimer = window.setTimeout(closeStream, HIDDEN_MILLIS);
    } else {
      openStream();
      changes.tell();
    }
  });
  effect(() => {
    subject.value;
    closeStream();
    if (!isPaused.value && !needsToken.value && !document.hidden) openStream();
  });
}
