// The targets of a batch run: a page that is kept current, older pages below it, a search, and the export.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, type Problem, read, type Schemas } from "../api/client";
import { useAddress } from "../api/query";
import { toastProblem } from "../parts/toasts";

export type Target = Schemas["TargetChange"];

interface Page {
  items: Target[];
  next: string | null;
}

export interface TargetFilters {
  state?: string;
  changed?: boolean;
  only?: string[];
}

const PATH = "/runs/{run_id}/changes";
const PAGE = 100;
const SEARCH_PAGE = 1000;
const SEARCHED_MAX = 20_000;
const FOUND_MAX = 200;

export interface Targets {
  rows: Target[];
  hasMore: boolean;
  more: () => Promise<void>;
  problem: Problem | undefined;
  isLoading: boolean;
  refresh: () => void;
}

/** Reads the targets of a run in the order of its plan. The rows that are shown are kept current. */
export function useTargets(runId: string, filters: TargetFilters, enabled: boolean): Targets {
  const [pages, setPages] = useState(1);
  const base = address(PATH, { run_id: runId }, { ...filters });
  useEffect(() => setPages(1), [base]);
  const limit = Math.min(1000, pages * PAGE);
  const first = useAddress<Page>(address(PATH, { run_id: runId }, { ...filters, limit }), { enabled });
  const [older, setOlder] = useState<{ base: string; items: Target[]; next: string | null } | null>(null);
  const last = useRef<Page | undefined>(undefined);
  if (first.data) last.current = first.data;
  // While a longer page is read, the shorter one stays.
  const shown = first.data ?? last.current;
  const beyond = older?.base === base ? older : null;
  const next = beyond ? beyond.next : (shown?.next ?? null);
  return {
    rows: [...(shown?.items ?? []), ...(beyond?.items ?? [])],
    hasMore: next !== null,
    problem: first.problem,
    isLoading: first.isLoading && !shown,
    refresh: first.refresh,
    more: async () => {
      if (pages * PAGE < 1000) {
        setPages(pages + 1);
        return;
      }
      try {
        const page = await read<Page>(address(PATH, { run_id: runId }, { ...filters, limit: PAGE, after: next }));
        setOlder({ base, items: [...(beyond?.items ?? []), ...page.items], next: page.next });
      } catch (error) {
        toastProblem(error);
      }
    },
  };
}

export interface Search {
  found: Target[];
  searched: number;
  isDone: boolean;
  /** Whether there are more targets than were searched, or more matches than are shown. */
  isCut: boolean;
}

/** Searches refs and values of the targets, page by page, until enough are found. */
export function useSearch(runId: string, text: string, filters: TargetFilters): Search {
  const wanted = text.trim().toLowerCase();
  const [state, setState] = useState<Search>({ found: [], searched: 0, isDone: true, isCut: false });
  useEffect(() => {
    if (!wanted) return;
    const stop = new AbortController();
    const run = async () => {
      const found = new Map<string, Target>();
      let searched = 0;
      const exact = await read<Page>(address(PATH, { run_id: runId }, { ...filters, only: [text.trim()] }), stop.signal);
      for (const one of exact.items) found.set(one.ref, one);
      let after: string | null = null;
      do {
        const url = address(PATH, { run_id: runId }, { ...filters, limit: SEARCH_PAGE, after });
        const page: Page = await read<Page>(url, stop.signal);
        for (const one of page.items) if (matches(one, wanted)) found.set(one.ref, one);
        searched += page.items.length;
        after = page.next;
        const isCut = after !== null;
        const isDone = after === null || found.size >= FOUND_MAX || searched >= SEARCHED_MAX;
        setState({ found: [...found.values()].slice(0, FOUND_MAX), searched, isDone, isCut });
        if (isDone) return;
      } while (after);
    };
    setState((before) => ({ ...before, searched: 0, isDone: false }));
    const timer = setTimeout(() => run().catch((error) => !stop.signal.aborted && toastProblem(error)), 250);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [runId, wanted, filters.state, filters.changed]);
  return state;
}

function matches(target: Target, wanted: string): boolean {
  if (target.ref.toLowerCase().includes(wanted)) return true;
  return JSON.stringify([target.before, target.after, target.error]).toLowerCase().includes(wanted);
}

/** Reads all targets of a run, and saves them as a file: one line of JSON for each. */
export async function exportTargets(runId: string, filters: TargetFilters, onProgress: (done: number) => void): Promise<number> {
  const lines: string[] = [];
  let after: string | null = null;
  let done = 0;
  do {
    const page: Page = await read<Page>(address(PATH, { run_id: runId }, { ...filters, limit: 1000, after }));
    lines.push(page.items.map((one) => `${JSON.stringify(one)}\n`).join(""));
    done += page.items.length;
    after = page.next;
    onProgress(done);
  } while (after);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
  link.download = `run-${runId}.ndjson`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  return done;
}
