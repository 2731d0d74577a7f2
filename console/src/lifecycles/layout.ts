// Where the states of a lifecycle stand, and the lines between them.
import dagre from "@dagrejs/dagre";
import type { Lifecycle } from "../api/lifecycles";
import { labelOf } from "../parts/state";

export interface Node {
  name: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Edge {
  key: string;
  source: string;
  target: string;
  /** The triggers that lead along it. */
  labels: string[];
  means: string;
  path: string;
  x: number;
  y: number;
}

export interface Drawing {
  nodes: Node[];
  edges: Edge[];
  width: number;
  height: number;
}

const HEIGHT = 50;
const LETTER = 7.2;
const LABEL = 5.9;

/** Lays out a lifecycle from left to right, or from top to bottom on a narrow screen. */
export function layOut(lifecycle: Lifecycle, isNarrow: boolean): Drawing {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: isNarrow ? "TB" : "LR", nodesep: isNarrow ? 18 : 26, ranksep: isNarrow ? 46 : 40, marginx: 8, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { name } of lifecycle.states) {
    graph.setNode(name, { width: Math.max(92, labelOf(name).length * LETTER + 30), height: HEIGHT });
  }
  const merged = new Map<string, { source: string; target: string; triggers: string[]; means: string[] }>();
  for (const one of lifecycle.transitions) {
    const key = `${one.source} ${one.target}`;
    const found = merged.get(key) ?? { source: one.source, target: one.target, triggers: [], means: [] };
    if (!found.triggers.includes(one.trigger)) found.triggers.push(one.trigger);
    found.means.push(`${labelOf(one.trigger)} (${one.actor}): ${one.means}`);
    merged.set(key, found);
  }
  for (const { source, target, triggers } of merged.values()) {
    const width = Math.max(...triggers.map((one) => one.length)) * LABEL + 8;
    graph.setEdge(source, target, { width, height: triggers.length * 13, labelpos: "c" });
  }
  dagre.layout(graph);
  const size = graph.graph();
  return {
    width: Math.ceil(size.width ?? 0),
    height: Math.ceil(size.height ?? 0),
    nodes: lifecycle.states.map(({ name }) => ({ name, ...(graph.node(name) as Omit<Node, "name">) })),
    edges: [...merged.entries()].map(([key, one]) => {
      const edge = graph.edge(one.source, one.target) as { points: { x: number; y: number }[]; x: number; y: number };
      return {
        key,
        source: one.source,
        target: one.target,
        labels: one.triggers.map(labelOf),
        means: one.means.join("\n"),
        path: curve(edge.points),
        x: edge.x,
        y: edge.y,
      };
    }),
  };
}

/** Returns a smooth line through the middles of the points. */
function curve(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  const at = (one: { x: number; y: number }) => `${one.x.toFixed(1)} ${one.y.toFixed(1)}`;
  let path = `M${at(first)}`;
  rest.forEach((point, n) => {
    const next = rest[n + 1];
    if (!next) path += `L${at(point)}`;
    else path += `Q${at(point)} ${at({ x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 })}`;
  });
  return path;
}
