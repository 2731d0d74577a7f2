import { count, exactly } from "./format";
import type { Filters } from "./url";
import { pageUrl } from "./url";

export interface Tab {
  /** The value of the filter; undefined for all. */
  value: string | undefined;
  label: string;
  /** How many there are, if that is known. */
  number?: number;
}

/** Tabs that set one filter of the page, with counts. They are links, so that each can be opened and shared. */
export function Tabs(props: { label: string; path: string; name: string; query: Filters; tabs: Tab[] }) {
  return (
    <nav class="tabs" aria-label={props.label}>
      {props.tabs.map((tab) => (
        <a
          key={tab.label}
          class="tab"
          href={pageUrl(props.path, { ...props.query, [props.name]: tab.value })}
          aria-current={props.query[props.name] === tab.value ? "page" : undefined}
        >
          {tab.label}
          {tab.number !== undefined && (
            <span class="count" title={exactly(tab.number)}>
              {count(tab.number)}
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}
