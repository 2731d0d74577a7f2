// The filter bar: `queue:mail state:pending`, with suggestions. What it says is kept in the address of the page.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Icon } from "./icon";
import type { Filters } from "./url";

export interface Qualifier {
  help: string;
  /** Values to suggest. */
  values?: readonly string[];
}

interface Props {
  qualifiers: Record<string, Qualifier>;
  filters: Filters;
  onFilter: (filters: Filters) => void;
  /** What a word without a qualifier means; returns an error text, or undefined if it was understood. */
  onWord?: (word: string) => string | undefined;
  placeholder: string;
}

interface Suggestion {
  text: string;
  help: string;
  isWhole: boolean;
}

const PART = /(\w+):("([^"]*)"?|\S*)|\S+/g;

/** Returns the text of filters, in the order of the qualifiers. */
export function filterText(filters: Filters, names: string[]): string {
  return names
    .filter((name) => filters[name])
    .map((name) => {
      const value = filters[name] as string;
      return `${name}:${/[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value}`;
    })
    .join(" ");
}

/** Returns a change of the address that removes these filters. */
export function cleared(names: string[]): Filters {
  return Object.fromEntries(names.map((name) => [name, undefined]));
}

/** Returns the filters of a text, and the words that are none. */
export function parseFilters(text: string, names: string[]): { filters: Filters; words: string[] } {
  const filters: Filters = {};
  const words: string[] = [];
  for (const found of text.matchAll(PART)) {
    const [whole, name, value, quoted] = found;
    if (name && names.includes(name)) {
      const said = quoted ?? value ?? "";
      if (said) filters[name] = said;
    } else {
      words.push(whole);
    }
  }
  return { filters, words };
}

/** A field for filters. Enter applies it; the suggestions are chosen with the arrow keys. */
export function FilterBar({ qualifiers, filters, onFilter, onWord, placeholder }: Props) {
  const names = Object.keys(qualifiers);
  const applied = filterText(filters, names);
  const [text, setText] = useState(applied && `${applied} `);
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const [fault, setFault] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const id = useId();

  useEffect(() => {
    if (parsedText(text) !== applied) setText(applied && `${applied} `);
  }, [applied]);

  const parsedText = (said: string) => filterText(parseFilters(said, names).filters, names);
  const suggestions = isOpen ? suggest(text, qualifiers) : [];

  const apply = (said: string) => {
    const { filters: found, words } = parseFilters(said, names);
    const unknown = words.length ? (onWord ? onWord(words.join(" ")) : `There is no filter ${words[0]}`) : undefined;
    setFault(unknown ?? "");
    if (unknown || (words.length && onWord)) return;
    setOpen(false);
    onFilter(Object.fromEntries(names.map((name) => [name, found[name]])));
  };
  const take = (suggestion: Suggestion) => {
    const start = text.replace(/\S*$/, "");
    const next = `${start}${suggestion.text}${suggestion.isWhole ? " " : ""}`;
    setText(next);
    setChosen(-1);
    if (suggestion.isWhole) apply(next);
    field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const last = suggestions.length - 1;
    if (event.key === "ArrowDown" && last >= 0) setChosen((n) => (n >= last ? 0 : n + 1));
    else if (event.key === "ArrowUp" && last >= 0) setChosen((n) => (n <= 0 ? last : n - 1));
    else if (event.key === "Escape" && isOpen) setOpen(false);
    else if (event.key === "Escape") field.current?.blur();
    else if (event.key === "Tab" && chosen >= 0) take(suggestions[chosen] as Suggestion);
    else if (event.key === "Enter") {
      const suggestion = suggestions[chosen];
      if (suggestion) take(suggestion);
      else apply(text);
    } else return;
    event.preventDefault();
  };

  return (
    <div class="filter-bar">
      <div class="filter-field">
        <Icon name="search" />
        <input
          ref={field}
          data-filter
          type="text"
          role="combobox"
          aria-label="Filter"
          aria-expanded={suggestions.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={chosen >= 0 ? `${id}-${chosen}` : undefined}
          aria-autocomplete="list"
          autocomplete="off"
          spellcheck={false}
          placeholder={placeholder}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setOpen(true);
            setChosen(-1);
            setFault("");
          }}
          onFocus={() => setOpen(true)}
          onBlur={() => setTimeout(() => setOpen(false), 150)}
          onKeyDown={onKeyDown}
        />
        {applied && (
          <button type="button" class="button plain icon small" aria-label="Clear the filter" onClick={() => apply("")}>
            <Icon name="cross" />
          </button>
        )}
        <kbd aria-hidden="true">/</kbd>
      </div>
      {fault && (
        <p class="form-problem" role="alert">
          {fault}
        </p>
      )}
      <ul class="suggestions" id={`${id}-list`} role="listbox" aria-label="Suggestions" hidden={suggestions.length === 0}>
        {suggestions.map((one, n) => (
          <li
            key={one.text}
            id={`${id}-${n}`}
            role="option"
            aria-selected={n === chosen}
            onMouseDown={(event) => {
              event.preventDefault();
              take(one);
            }}
          >
            <code>{one.text}</code>
            <span class="soft small">{one.help}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function suggest(text: string, qualifiers: Record<string, Qualifier>): Suggestion[] {
  const word = /\S*$/.exec(text)?.[0] ?? "";
  const [name, value] = word.includes(":") ? [word.split(":", 1)[0] as string, word.slice(word.indexOf(":") + 1)] : [word, null];
  if (value === null) {
    return Object.entries(qualifiers)
      .filter(([one]) => one.startsWith(name.toLowerCase()) && !text.includes(`${one}:`))
      .map(([one, { help }]) => ({ text: `${one}:`, help, isWhole: false }));
  }
  const known = qualifiers[name]?.values ?? [];
  return known
    .filter((one) => one.toLowerCase().includes(value.toLowerCase()) && one !== value)
    .slice(0, 8)
    .map((one) => ({ text: `${name}:${/\s/.test(one) ? `"${one}"` : one}`, help: "", isWhole: true }));
}
