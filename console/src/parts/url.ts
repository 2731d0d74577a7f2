// The address of a page holds everything that was filtered, so that a link shows the same to others.
import { useLocation } from "preact-iso";
import { base } from "../api/client";

export type Filters = Record<string, string | undefined>;

/** Returns the address of a page of the console: `pageUrl("jobs", { state: "running" })`. */
export function pageUrl(path: string, query: Filters = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
  const text = search.toString();
  return `${base}${path}${text && `?${text}`}`;
}

/** Returns the address of a thing's page; ids and names may hold any character. */
export function thingUrl(noun: string, id: string, query: Filters = {}): string {
  return pageUrl(`${noun}/${encodeURIComponent(id)}`, query);
}

/** Returns the query of the page, and a function that changes parts of it; undefined removes one. */
export function useQuery(): [Filters, (change: Filters, options?: { replace?: boolean }) => void] {
  const { query, path, route } = useLocation();
  const change = (changed: Filters, { replace = false } = {}) => {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...query, ...changed })) if (value) search.set(name, value);
    const text = search.toString();
    route(`${path}${text && `?${text}`}`, replace);
  };
  return [query, change];
}
