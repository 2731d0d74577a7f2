// What keeps a page current: one stream of the server for each tab; while there is none, polling.
import { computed, effect, signal } from "@preact/signals";
import { base, Problem, watchAnswers } from "../api/client";

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

/** Tells pages that something has changed. Calls are gathered, so that a busy server is not asked at every change. */
class Changes {
  private readonly watchers = new Set<() => void>();
  private timer = 0;
  private last = 0;

  /** Calls the watcher after changes, at most once in the interval. Returns a function that ends it. */
  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** Says that something has changed. */
  tell(): void {
    if (this.timer || isPaused.peek()) return;
    const interval = isHidden.peek() ? 20_000 : 1_000;
    this.timer = window.setTimeout(() => this.now(), Math.max(60, this.last + interval - Date.now()));
  }

  /** Makes every page read again now, for the key `r` and after a change by the reader. */
  now(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    this.last = Date.now();
    for (const watcher of [...this.watchers]) watcher();
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

const KINDS = ["record", "counts", "event", "message"] as const;
let source: EventSource | null = null;
let retryTimer = 0;
let wasLost = false;

function openStream(): void {
  clearTimeout(retryTimer);
  if (source || needsToken.peek() || isPaused.peek()) return;
  const opened = new EventSource(`${base}api/v1/stream`);
  source = opened;
  opened.onopen = () => {
    isStreaming.value = true;
    isLost.value = false;
    if (wasLost) changes.now();
    wasLost = false;
  };
  opened.onerror = () => {
    isStreaming.value = false;
    wasLost = true;
    if (opened.readyState === EventSource.CLOSED) {
      // The server has no stream or refused it: poll, and try again later.
      source = null;
      retryTimer = window.setTimeout(openStream, 30_000);
    }
  };
  for (const kind of KINDS) {
    opened.addEventListener(kind, (message) => {
      let data: unknown;
      try {
        data = JSON.parse((message as MessageEvent<string>).data);
      } catch {
        return;
      }
      for (const listener of [...listeners]) listener(kind, data);
      changes.tell();
    });
  }
}

function closeStream(): void {
  clearTimeout(retryTimer);
  source?.close();
  source = null;
  isStreaming.value = false;
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
    if (!document.hidden) changes.tell();
  });
  effect(() => {
    if (isPaused.value || needsToken.value) closeStream();
    else openStream();
  });
}
