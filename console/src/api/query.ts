// Reading with hooks: an address is read at once, and again whenever something has changed on the server.
import { useEffect, useRef, useState } from "preact/hooks";
import { changes, isPaused, pollSeconds } from "../live/live";
import { address, type Answer, type GetPath, type PathParts, Problem, type Query, readShared } from "./client";

export interface Reading<T> {
  data: T | undefined;
  problem: Problem | undefined;
  isLoading: boolean;
  /** Reads again now. */
  refresh: () => void;
}

const remembered = new Map<string, unknown>();
const REMEMBERED_MAX = 100;
const LOST_SECONDS = [1, 2, 3, 5];
const REFUSED_SECONDS = 60;

interface Options {
  parts?: PathParts;
  /** False reads nothing, for instance while an argument is missing. */
  enabled?: boolean;
  /** True reads once and not again, for things that never change. */
  once?: boolean;
  /** True reads again after changes on record and every 15 seconds, but not whenever jobs have been counted. */
  slow?: boolean;
  /** Reads again at this interval in seconds, also without a message of the stream. */
  every?: number;
}

/** Reads a GET path of the API and keeps it current. The last answer is shown at once when a page is opened again. */
export function useRead<P extends GetPath>(
  path: P,
  query: Query<P, "get"> | Record<string, never> = {},
  options: Options = {},
): Reading<Answer<P, "get">> {
  return useAddress(address(path, options.parts, query ?? {}), options);
}

/** As `useRead`, for a whole address. */
export function useAddress<T>(url: string, { enabled = true, once = false, slow = false, every }: Options = {}): Reading<T> {
  const [state, setState] = useState<{ url: string; data?: T; problem?: Problem }>({
    url,
    data: remembered.get(url) as T | undefined,
  });
  const again = useRef<() => void>(() => {});
  const current = state.url === url ? state : { url, data: remembered.get(url) as T | undefined };

  useEffect(() => {
    if (!enabled) return;
    const stop = new AbortController();
    let timer = 0;
    let isReading = false;
    let isWanted = false;
    let failures = 0;
    /** Seconds to wait after the last failure. What was refused is hardly answered a second later. */
    let failedFor = 0;

    const load = async () => {
      if (isReading) {
        isWanted = true;
        return;
      }
      isReading = true;
      clearTimeout(timer);
      try {
        const data = await readShared<T>(url);
        if (stop.signal.aborted) return;
        failures = 0;
        remember(url, data);
        setState((before) =>
          before.url === url && before.data === data && !before.problem ? before : { url, data },
        );
      } catch (error) {
        if (stop.signal.aborted) return;
        const problem = error instanceof Problem ? error : new Problem(0, "Error", String(error));
        failures += 1;
        failedFor = problem.isLost ? (LOST_SECONDS[failures - 1] ?? 5) : REFUSED_SECONDS;
        setState((before) => ({ url, data: before.url === url ? before.data : undefined, problem }));
      } finally {
        isReading = false;
      }
      if (stop.signal.aborted) return;
      if (isWanted) {
        isWanted = false;
        void load();
      } else {
        wait();
      }
    };
    const wait = () => {
      if (once && failures === 0) return;
      const usual = document.hidden ? pollSeconds() : Math.min(every ?? 60, pollSeconds());
      const seconds = failures ? failedFor : usual;
      timer = window.setTimeout(() => (isPaused.peek() ? wait() : void load()), seconds * 1000);
    };
    again.current = () => void load();
    void load();
    const leave = once ? () => {} : changes.watch((isMore) => (isMore || !slow) && void load());
    return () => {
      leave();
      clearTimeout(timer);
      stop.abort();
    };
  }, [url, enabled, once, slow, every]);

  return {
    data: current.data,
    problem: "problem" in current ? current.problem : undefined,
    isLoading: enabled && current.data === undefined && !("problem" in current && current.problem),
    refresh: () => again.current(),
  };
}

function remember(url: string, data: unknown): void {
  remembered.delete(url);
  remembered.set(url, data);
  if (remembered.size > REMEMBERED_MAX) remembered.delete(remembered.keys().next().value as string);
}
