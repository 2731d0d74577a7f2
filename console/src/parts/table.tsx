// Tables: rows of one height, the first link of a row is its name, j and k go from row to row.
import type { ComponentChildren } from "preact";
import type { Selection } from "./selection";
import { visible } from "./text";

export interface Column<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  /** A CSS width; the columns without one share the rest. */
  width?: string;
  right?: boolean;
  /** On a narrow screen: the title of the card, or the mark beside it. */
  place?: "lead" | "side";
  /** Buttons: shown without a label on a narrow screen. */
  actions?: boolean;
  /** On a phone: has a line of its own in a dense card. */
  whole?: boolean;
  /** Left out on the screen of a phone. */
  wideOnly?: boolean;
  /** Left out where there is little room for many columns; a card of a phone has it. */
  roomyOnly?: boolean;
}

/** Stands where there is no value. */
export function Absent() {
  return <span class="absent">–</span>;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
  /** Whether a row does not match any more: it is shown faintly. */
  isGone?: (row: T) => boolean;
  /** On a phone, two values of a card stand beside each other. For long lists of short values. */
  dense?: boolean;
  /** Gives each row a checkbox. */
  selection?: Selection<T>;
}

/** Shows rows. On a narrow screen each row becomes a card. */
export function Table<T>({ label, columns, rows, keyOf, isGone, dense = false, selection }: Props<T>) {
  const allSelected = selection !== undefined && rows.every(selection.isSelected);
  return (
    <div class="table-box">
      <table class={`table as-cards ${dense ? "dense" : ""}`} aria-label={label}>
        <colgroup>
          {selection && <col class="check-column" />}
          {columns.map((column) => (
            <col key={column.head} class={column.roomyOnly ? "roomy-only" : ""} style={column.width ? { width: column.width } : undefined} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {selection && (
              <th scope="col">
                <input
                  type="checkbox"
                  aria-label="Select all that are shown"
                  checked={allSelected}
                  onChange={(event) => selection.select(rows, event.currentTarget.checked)}
                />
              </th>
            )}
            {columns.map((column) => (
              <th key={column.head} scope="col" class={`${column.right ? "right" : ""} ${column.roomyOnly ? "roomy-only" : ""}`}>
                {column.actions ? <span class="unseen">{column.head}</span> : column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} data-row class={`${isGone?.(row) ? "gone" : ""} ${selection?.isSelected(row) ? "selected" : ""}`}>
              {selection && (
                <td class="check-cell">
                  <input
                    type="checkbox"
                    aria-label={`Select ${visible(selection.nameOf(row))}`}
                    checked={selection.isSelected(row)}
                    onChange={(event) => selection.select([row], event.currentTarget.checked)}
                  />
                </td>
              )}
              {columns.map((column) => (
                <td key={column.head} data-label={column.head} class={classesOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classesOf<T>(column: Column<T>): string {
  return [
    column.right ? "right" : "",
    column.place ? `${column.place}-cell` : "",
    column.actions ? "actions" : "",
    column.whole ? "whole-cell" : "",
    column.wideOnly ? "wide-only" : "",
    column.roomyOnly ? "roomy-only" : "",
  ].join(" ");
}
