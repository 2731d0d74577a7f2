// Rows that the reader has selected by their checkboxes.
import { useState } from "preact/hooks";

export interface Selection<T> {
  /** The selected rows that the list still shows. */
  rows: T[];
  isSelected: (row: T) => boolean;
  select: (rows: T[], isOn: boolean) => void;
  clear: () => void;
  /** What a row is called: "job 17". */
  nameOf: (row: T) => string;
}

/** Keeps which of these rows are selected. A row that the list does not show any more is not selected. */
export function useSelection<T>(rows: T[], keyOf: (row: T) => string, nameOf: (row: T) => string): Selection<T> {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  return {
    rows: keys.size ? rows.filter((row) => keys.has(keyOf(row))) : [],
    isSelected: (row) => keys.has(keyOf(row)),
    select: (changed, isOn) =>
      setKeys((before) => {
        const next = new Set(before);
        for (const row of changed) {
          if (isOn) next.add(keyOf(row));
          else next.delete(keyOf(row));
        }
        return next;
      }),
    clear: () => setKeys(new Set()),
    nameOf,
  };
}
