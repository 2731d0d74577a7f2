// The page of lifecycles: each diagram with the live count in every state.
import { useEffect, useState } from "preact/hooks";
import { useRead } from "../api/query";
import type { Lifecycle } from "../api/lifecycles";
import { Diagram } from "../lifecycles/diagram";
import { Empty, Shown } from "../parts/notices";
import { PageHead } from "../parts/page";
import { labelOf, State } from "../parts/state";
import { type Column, Table } from "../parts/table";
import { Text } from "../parts/text";
import { Tabs } from "../parts/tabs";
import { pageUrl, useQuery } from "../parts/url";
import "../styles/lifecycles.css";

/** Returns the address of the list of things in a state of one of Detent's own lifecycles. */
function linkOf(lifecycle: string, state: string): string | undefined {
  switch (lifecycle) {
    case "job":
      return pageUrl("jobs", { state });
    case "batch_run":
      return pageUrl("runs", { kind: "batch", state });
    case "pipeline_run":
      return pageUrl("runs", { kind: "pipeline", state });
    case "ops_run":
      return pageUrl("ops", { state });
    default:
      return undefined;
  }
}

function useNarrow(): boolean {
  const wide = matchMedia("(max-width: 860px)");
  const [isNarrow, setNarrow] = useState(wide.matches);
  useEffect(() => {
    const change = () => setNarrow(wide.matches);
    wide.addEventListener("change", change);
    return () => wide.removeEventListener("change", change);
  }, []);
  return isNarrow;
}

type Move = Lifecycle["transitions"][number];

const MOVES: Column<Move>[] = [
  { head: "Trigger", width: "150px", place: "lead", cell: (one) => <code>{one.trigger}</code> },
  { head: "From", width: "180px", cell: (one) => <State state={one.source} /> },
  { head: "To", width: "180px", place: "side", cell: (one) => <State state={one.target} /> },
  { head: "Who", width: "140px", cell: (one) => <span class="soft">{one.actor}</span> },
  { head: "What it means", cell: (one) => <span class="wrap"><Text value={one.means} /></span> },
];

export default function Lifecycles() {
  const [query] = useQuery();
  const all = useRead("/lifecycles", { own: true }, { once: true });
  return (
    <>
      <PageHead title="Lifecycles" lead="What can happen to each kind of thing. The database itself refuses every other move." />
      <Shown reading={all}>
        {({ items }) => {
          const shown = items.find((one) => one.name === query.of) ?? items[0];
          return (
            <div class="stack">
              <Tabs
                label="Lifecycles"
                path="lifecycles"
                name="of"
                query={{ of: query.of }}
                tabs={items.map((one, n) => ({ value: n === 0 ? undefined : one.name, label: labelOf(one.name) }))}
              />
              {shown ? <One lifecycle={shown} key={shown.name} /> : <Empty title="There is no lifecycle" />}
            </div>
          );
        }}
      </Shown>
    </>
  );
}

function One({ lifecycle }: { lifecycle: Lifecycle }) {
  const counts = useRead("/lifecycles/{name}/counts", {}, { parts: { name: lifecycle.name }, every: 3 });
  const isNarrow = useNarrow();
  const numbers = counts.data && Object.fromEntries(counts.data.items.map((one) => [one.state, one]));
  const isPartly = counts.data?.items.some((one) => one.number === null);
  return (
    <>
      <section class="card" aria-label={`Lifecycle of a ${labelOf(lifecycle.name)}`}>
        <div class="card-head">
          <h2>
            <Text value={labelOf(lifecycle.name)} />
          </h2>
          <span class="soft small grow">
            <Text value={lifecycle.means} />
          </span>
        </div>
        <Diagram
          lifecycle={lifecycle}
          counts={numbers}
          linkOf={(state) => linkOf(lifecycle.name, state)}
          isNarrow={isNarrow}
          label={`States of a ${labelOf(lifecycle.name)} and how many there are in each`}
        />
        <div class="table-foot">
          <span>
            {linkOf(lifecycle.name, "") ? "Click a state to see what is in it. " : ""}
            {isPartly ? "These states are not counted: attempts are many, and each is on the page of its job. " : ""}
            {counts.data?.items.some((one) => one.more) ? "A number with + is that of the newest runs or first rows; there may be more. " : ""}
          </span>
        </div>
      </section>
      <section class="card" aria-label="Moves">
        <Table label="Moves" columns={MOVES} rows={lifecycle.transitions} keyOf={(one) => `${one.source} ${one.trigger} ${one.target}`} />
      </section>
    </>
  );
}
