// A lifecycle as a drawing: states with their live counts, and the moves between them.
import { useMemo } from "preact/hooks";
import type { Lifecycle } from "../api/lifecycles";
import { count } from "../parts/format";
import { labelOf, lookOf } from "../parts/state";
import { layOut, type Node } from "./layout";

interface Counted {
  number: number | null;
  /** Whether there may be more. */
  more: boolean;
}

interface Props {
  lifecycle: Lifecycle;
  /** How many things are in each state; null if that is not counted. */
  counts: Record<string, Counted> | undefined;
  /** The address of the list of things in a state; undefined if there is none. */
  linkOf: (state: string) => string | undefined;
  isNarrow: boolean;
  label: string;
}

export function Diagram({ lifecycle, counts, linkOf, isNarrow, label }: Props) {
  const drawing = useMemo(() => layOut(lifecycle, isNarrow), [lifecycle, isNarrow]);
  return (
    <div class="diagram-box" tabIndex={0} role="group" aria-label={label}>
      <svg class="diagram" width={drawing.width} height={drawing.height} viewBox={`0 0 ${drawing.width} ${drawing.height}`}>
        <defs>
          <marker id={`arrow-${lifecycle.name}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
            <path d="M0 0L8 4L0 8z" class="arrow" />
          </marker>
        </defs>
        {drawing.edges.map((edge) => (
          <g key={edge.key} class="edge">
            <title>{`${labelOf(edge.source)} → ${labelOf(edge.target)}\n${edge.means}`}</title>
            <path d={edge.path} class="edge-hit" />
            <path d={edge.path} class="edge-line" marker-end={`url(#arrow-${lifecycle.name})`} />
            {edge.labels.map((text, n) => (
              <text key={text} x={edge.x} y={edge.y + (n - (edge.labels.length - 1) / 2) * 13} class="edge-label">
                {text}
              </text>
            ))}
          </g>
        ))}
        {drawing.nodes.map((node) => (
          <StateNode
            key={node.name}
            node={node}
            number={counts?.[node.name]?.number}
            more={counts?.[node.name]?.more ?? false}
            href={linkOf(node.name)}
            means={lifecycle.states.find((one) => one.name === node.name)?.means ?? ""}
            isFinal={lifecycle.final.includes(node.name)}
            isInitial={lifecycle.initial === node.name}
          />
        ))}
      </svg>
    </div>
  );
}

function StateNode(props: {
  node: Node;
  number: number | null | undefined;
  more: boolean;
  href: string | undefined;
  means: string;
  isFinal: boolean;
  isInitial: boolean;
}) {
  const { node, number, href } = props;
  const [tone] = lookOf(node.name);
  const inner = (
    <g transform={`translate(${(node.x - node.width / 2).toFixed(1)} ${(node.y - node.height / 2).toFixed(1)})`}>
      <title>{`${labelOf(node.name)}: ${props.means}`}</title>
      <rect width={node.width} height={node.height} rx={props.isInitial ? 25 : 9} class={`node-box node-${tone} ${props.isFinal ? "final" : ""}`} />
      <text x={node.width / 2} y={number == null ? 30 : 21} class={`node-name node-text-${tone}`}>
        {labelOf(node.name)}
      </text>
      {number != null && (
        <text x={node.width / 2} y={39} class={`node-count ${number ? "" : "none"}`} data-count={node.name}>
          {count(number)}
          {props.more && "+"}
        </text>
      )}
    </g>
  );
  return href ? (
    <a href={href} class="node">
      {inner}
    </a>
  ) : (
    <g class="node">{inner}</g>
  );
}
