// Charts over time. uPlot draws them on a canvas; the legend is text, and says the values under the pointer.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { isDark, zone } from "../live/settings";
import { exact } from "./format";
import "../styles/chart.css";

export interface Series {
  label: string;
  /** A colour of tokens.css, such as --green. */
  colour: string;
  values: (number | null)[];
}

interface Props {
  title: string;
  /** Seconds since 1970, one for each value. */
  times: number[];
  series: Series[];
  kind: "bars" | "lines";
  /** What the values are; seconds get marks such as 15 min. */
  unit?: "seconds";
  /** Writes a value in the legend. */
  write: (value: number) => string;
  /** What the legend says of a series while nothing is pointed at: its sum or its last value. */
  summary: (series: Series) => string;
}

const HEIGHT = 170;
const SECONDS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18_000,
  36_000, 86_400, 172_800, 604_800,
];

/** Shows series over time: bars are stacked, lines are not. */
export function Chart(props: Props) {
  const { times, series, kind } = props;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const dark = isDark.value;
  const chosenZone = zone.value;
  const labels = series.map((one) => one.label).join();

  useEffect(() => {
    const place = box.current;
    if (!place) return;
    const made = new uPlot(options(props, place, setPointed), stacked(times, series, kind), place);
    chart.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: place.clientWidth, height: HEIGHT }));
    watch.observe(place);
    return () => {
      watch.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [dark, chosenZone, labels, kind]);
  useEffect(() => {
    chart.current?.setData(stacked(times, series, kind));
  }, [times, series]);

  const at = pointed === null ? undefined : times[pointed];
  return (
    <figure class="chart" aria-label={`${props.title}: ${series.map((one) => `${one.label} ${props.summary(one)}`).join(", ")}`}>
      <div class="chart-legend" aria-hidden="true">
        {series.map((one) => (
          <span key={one.label}>
            <i class="chart-key" style={{ background: `var(${one.colour})` }} />
            {one.label} <strong class="number">{valueAt(one, pointed, props)}</strong>
          </span>
        ))}
        <span class="chart-when number faint">{at === undefined ? "" : exact(at * 1000, chosenZone).slice(0, 16)}</span>
      </div>
      <div class="chart-box" ref={box} aria-hidden="true" />
    </figure>
  );
}

function valueAt(series: Series, pointed: number | null, props: Props): string {
  if (pointed === null) return props.summary(series);
  const value = series.values[pointed];
  return value == null ? "–" : props.write(value);
}

/** Returns the data of uPlot. Stacked bars are drawn from the sum of all downwards, each over the one before. */
function stacked(times: number[], series: Series[], kind: Props["kind"]): uPlot.AlignedData {
  if (kind === "lines") return [times, ...series.map((one) => one.values)] as uPlot.AlignedData;
  const sums: number[][] = [];
  series.forEach((one, n) => sums.push(one.values.map((value, at) => (value ?? 0) + (sums[n - 1]?.[at] ?? 0))));
  return [times, ...sums.reverse()] as uPlot.AlignedData;
}

function options(props: Props, place: HTMLElement, point: (at: number | null) => void): uPlot.Options {
  const ink = colourOf("--text-faint", place);
  const grid = colourOf("--line", place);
  const drawn = props.kind === "bars" ? [...props.series].reverse() : props.series;
  const font = "11px system-ui, sans-serif";
  return {
    width: place.clientWidth,
    height: HEIGHT,
    tzDate: (seconds) => (zone.peek() === "utc" ? uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") : new Date(seconds * 1000)),
    legend: { show: false },
    padding: [8, 16, 0, 0],
    cursor: { y: false, points: { show: props.kind === "lines", size: 6 }, drag: { x: false, y: false } },
    scales: { x: { range: (_, low, high) => margins(props, low, high) }, y: { range: (_, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      { stroke: ink, font, grid: { show: false }, ticks: { show: false }, size: 26, values: hours },
      {
        stroke: ink,
        font,
        size: 52,
        space: 36,
        grid: { stroke: grid, width: 1 },
        ticks: { show: false },
        ...(props.unit === "seconds" ? { incrs: SECONDS } : {}),
        values: (_, splits) => splits.map((value) => (props.unit === "seconds" ? mark(value) : props.write(value))),
      },
    ],
    series: [
      {},
      ...drawn.map((one) => {
        const colour = colourOf(one.colour, place);
        if (props.kind === "bars") {
          return {
            fill: colour,
            stroke: colour,
            width: 0,
            points: { show: false },
            paths: uPlot.paths.bars?.({ size: [0.72, 22, 2], radius: 0.12 }),
          };
        }
        // A line needs two points; a single one is drawn as a dot.
        const isSingle = (plot: uPlot, n: number) => Array.from(plot.data[n] ?? []).filter((value) => value != null).length === 1;
        return { stroke: colour, width: 1.75, points: { show: isSingle, size: 7, fill: colour }, spanGaps: true };
      }),
    ],
    hooks: { setCursor: [(self) => point(self.cursor.idx ?? null)] },
  };
}

/** Returns the ends of the axis of time. Bars need room for half of one at both ends. */
function margins(props: Props, low: number, high: number): [number, number] {
  const step = (props.times[1] ?? 0) - (props.times[0] ?? 0);
  return props.kind === "bars" && step > 0 ? [low - step / 2, high + step / 2] : [low, high];
}

/** Writes seconds as a mark of an axis, in one unit. */
function mark(seconds: number): string {
  if (seconds === 0) return "0";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${seconds / 60} min`;
  return seconds < 86_400 ? `${seconds / 3600} h` : `${seconds / 86_400} d`;
}

/** Writes the marks of the axis as hours and minutes, and the first of a day as the day. */
function hours(_: uPlot, splits: number[]): string[] {
  let before = "";
  return splits.map((seconds) => {
    const whole = exact(seconds * 1000, zone.peek());
    const day = whole.slice(5, 10);
    const text = before && day !== before ? day : whole.slice(11, 16);
    before = day;
    return text;
  });
}

/** Returns the colour of a token as the canvas understands it. */
function colourOf(token: string, place: HTMLElement): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${token})`;
  place.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
