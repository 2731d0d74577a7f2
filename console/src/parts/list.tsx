// Long lists: the newest page is kept current without moving what is read, older pages are added below.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { address, type Answer, type GetPath, Problem, type Query, read } from "../api/client";
import { type Reading, useAddress } from "../api/query";
import { many } from "./format";
import { toastProblem } from "./toasts";

interface Page<T> {
  items: T[];
  next: string | null;
}

type ItemOf<A> = A extends { items: (infer T)[] } ? T : never;

export interface List<T> {
  reading: Reading<Page<T>>;
  rows: T[];
  /** How many rows are new and not shown yet. */
  news: number;
  showNews: () => void;
  isGone: (row: T) => boolean;
  hasMore: boolean;
  more: () => Promise<void>;
}

interface Kept<T> {
  url: string;
  rows: T[];
  next: string | null;
  gone: Set<string>;
  fresh: Page<T>;
  news: number;
}

/** Reads a list of the API, the newest first. New rows are counted and shown when the reader asks for them. */
export function useList<P extends GetPath>(
  path: P,
  query: Query<P, "get">,
  keyOf: (row: ItemOf<Answer<P, "get">>) => string,
): List<ItemOf<Answer<P, "get">>> {
  type T = ItemOf<Answer<P, "get">>;
  const asked = { limit: 50, ...(query as object) };
  const url = address(path, {}, asked);
  const reading = useAddress<Page<T>>(url);
  const [, draw] = useState(0);
  const kept = useRef<Kept<T> | null>(null);

  const data = reading.data;
  if (data && (kept.current?.url !== url || kept.current.rows.length === 0)) {
    kept.current = { url, rows: data.items, next: data.next, gone: new Set(), fresh: data, news: 0 };
  } else if (data && kept.current && kept.current.fresh !== data) {
    kept.current = merged(kept.current, data, keyOf);
  }
  useEffect(() => {
    if (kept.current && kept.current.url !== url) kept.current = null;
  }, [url]);

  const now = kept.current?.url === url ? kept.current : null;
  return {
    reading,
    rows: now?.rows ?? [],
    news: now?.news ?? 0,
    isGone: (row) => now?.gone.has(keyOf(row)) ?? false,
    hasMore: Boolean(now?.next),
    showNews: () => {
      if (now) kept.current = { ...now, rows: now.fresh.items, next: now.fresh.next, gone: new Set(), news: 0 };
      draw((n) => n + 1);
      window.scrollTo({ top: 0 });
    },
    more: async () => {
      if (!now?.next) return;
      try {
        const page = await read<Page<T>>(address(path, {}, { ...asked, after: now.next }));
        const last = kept.current;
        if (last?.url === url) {
          const have = new Set(last.rows.map(keyOf));
          kept.current = { ...last, rows: [...last.rows, ...page.items.filter((row) => !have.has(keyOf(row)))], next: page.next };
        }
        draw((n) => n + 1);
      } catch (error) {
        toastProblem(error instanceof Problem ? error : new Error(String(error)));
      }
    },
  };
}

function merged<T>(kept: Kept<T>, fresh: Page<T>, keyOf: (row: T) => string): Kept<T> {
  const found = new Map(fresh.items.map((row) => [keyOf(row), row]));
  const have = new Set(kept.rows.map(keyOf));
  const rows = kept.rows.map((row) => found.get(keyOf(row)) ?? row);
  // A row that is missing among newer and older ones does not match any more. One below all of them was pushed out.
  let last = -1;
  kept.rows.forEach((row, n) => {
    if (found.has(keyOf(row))) last = n;
  });
  const end = fresh.next === null ? kept.rows.length : last;
  const gone = new Set(kept.rows.slice(0, end).map(keyOf).filter((key) => !found.has(key)));
  const news = fresh.items.filter((row) => !have.has(keyOf(row))).length;
  return { ...kept, rows, gone, fresh, news };
}

/** Announces new rows. It lies over the border of the list, so that nothing moves. */
export function News({ list, noun }: { list: List<any>; noun: string }) {
  const atLeast = list.reading.data?.next && list.news === list.reading.data.items.length ? "more than " : "";
  return (
    <div class="news-slot" aria-live="polite">
      {list.news > 0 && (
        <button type="button" class="news" onClick={list.showNews}>
          {atLeast}
          {many(list.news, `new ${noun}`)}
        </button>
      )}
    </div>
  );
}

/** The end of a list: how many rows are shown, and a button for more. */
export function ListEnd({ list, noun, children }: { list: List<any>; noun: string; children?: ComponentChildren }) {
  return (
    <div class="table-foot">
      <span class="number">
        {many(list.rows.length, noun)} shown{children}
      </span>
      {list.hasMore && (
        <button type="button" class="button" onClick={list.more}>
          Show more
        </button>
      )}
    </div>
  );
}
