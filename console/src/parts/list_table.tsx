// A list of the API as a table, with what stands there while it is empty, being read or failed.
import type { ComponentChildren } from "preact";
import { type List, ListEnd, News } from "./list";
import { Empty, Failure, Loading } from "./notices";
import type { Selection } from "./selection";
import { type Column, Table } from "./table";

interface Props<T> {
  list: List<T>;
  label: string;
  /** What a row is: "job". */
  noun: string;
  columns: Column<T>[];
  keyOf: (row: T) => string;
  /** What stands there if the list is empty, and no filter is set. */
  empty: ComponentChildren;
  /** Removes the filter, if one is set. */
  clear?: () => void;
  /** What is said besides if nothing matches the filter. */
  noMatch?: ComponentChildren;
  dense?: boolean;
  selection?: Selection<T>;
}

/** Shows a list: new rows are announced, an empty list says what to do next. */
export function ListTable<T>({ list, noun, empty, clear, noMatch, ...table }: Props<T>) {
  return (
    <>
      <News list={list} noun={noun} />
      {list.rows.length ? (
        <>
          <Table {...table} rows={list.rows} isGone={list.isGone} />
          <ListEnd list={list} noun={noun} />
        </>
      ) : list.reading.problem ? (
        <Failure problem={list.reading.problem} retry={list.reading.refresh} />
      ) : !list.reading.data ? (
        <Loading lines={8} />
      ) : clear ? (
        <Empty icon="search" title={`No ${noun} matches`}>
          {noMatch}{" "}
          <button type="button" class="button small" onClick={clear}>
            Clear the filter
          </button>
        </Empty>
      ) : (
        empty
      )}
    </>
  );
}
