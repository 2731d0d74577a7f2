// Icons, drawn on a grid of 16: one path each, stroked in the colour of the text.
const PATHS = {
  overview: "M2.5 9.5h4v4h-4zM9.5 2.5h4v6h-4zM2.5 2.5h4v4h-4zM9.5 11.5h4v2h-4z",
  jobs: "M2.5 4h1M6 4h7.5M2.5 8h1M6 8h7.5M2.5 12h1M6 12h7.5",
  dead: "M5.2 2.5h5.6l2.7 2.7v5.6l-2.7 2.7H5.2l-2.7-2.7V5.2zM6 6l4 4M10 6l-4 4",
  runs: "M3 3.5h6M3 8h10M3 12.5h4M11 3.5h2M9 12.5h4",
  workflows: "M2.5 3h4v3h-4zM9.500 6.500h4v3h-4zM2.500 10h4v3h-4zM6.500 4.500h5v2M11.500 9.500v2h-5",
  ops: "M8 2.2c2.6 1.6 3.4 4 3 7.3H5c-.4-3.3.4-5.7 3-7.3zM5 8l-2 2.2v2.3l2.5-1M11 8l2 2.2v2.3l-2.5-1M7 12.5v1.3M9 12.5v1.3",
  queues: "M2.5 4.5 8 2l5.5 2.5L8 7zM2.5 8 8 10.5 13.5 8M2.5 11.5 8 14l5.5-2.5",
  schedules: "M2.5 4h11v9.5h-11zM2.5 7h11M5.5 2v3M10.5 2v3",
  limits: "M2.5 12a6 6 0 1 1 11 0M8 9.5l2.6-3.2M7.2 11.5h1.6",
  workers: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.1M5 11h.1",
  alerts: "M4 11V7.2a4 4 0 0 1 8 0V11l1.2 1.2H2.8zM6.8 14h2.4",
  lifecycles: "M2.5 8a2 2 0 1 0 4 0 2 2 0 1 0-4 0M10 4a1.7 1.7 0 1 0 3.4 0A1.7 1.7 0 1 0 10 4M10 12a1.7 1.7 0 1 0 3.4 0 1.7 1.7 0 1 0-3.4 0M6.2 7l4-2.2M6.2 9l4 2.2",
  integrity: "M8 2l5 1.8v3.7c0 3-2 5.3-5 6.5-3-1.200-5-3.500-5-6.500V3.800zM5.800 7.800l1.600 1.600 2.900-3",
  record: "M4 2.5h8v11H4zM6.200 5.500h3.600M6.200 8h3.600M6.200 10.500h2",
  clock: "M2.500 8a5.500 5.500 0 1 0 11 0 5.500 5.500 0 1 0-11 0M8 5v3l2 1.500",
  spinner: "M8 2.500a5.500 5.500 0 1 1-5.300 4",
  check: "M3.500 8.500l3 3 6-7",
  cross: "M4 4l8 8M12 4l-8 8",
  slash: "M2.500 8a5.500 5.500 0 1 0 11 0 5.500 5.500 0 1 0-11 0M4.200 11.800l7.600-7.600",
  warning: "M8 2.500l6 10.700H2zM8 6.500v3M8 11.300h.1",
  pause: "M5.500 3.500v9M10.500 3.500v9",
  play: "M5 3.200l7.500 4.800L5 12.800z",
  retry: "M3 8a5 5 0 1 1 1.500 3.600M3 12.500V9.500h3",
  undo: "M3 6h6.500a3.500 3.500 0 0 1 0 7H6M5.500 3 2.800 6l2.700 3",
  trash: "M3 4.500h10M6 4.500V2.800h4v1.700M4.500 4.500l.6 8.700h5.800l.6-8.700",
  copy: "M5.500 5.500h8v8h-8zM3 10.500h-.5v-8h8V3",
  search: "M2.500 7a4.500 4.500 0 1 0 9 0 4.500 4.500 0 1 0-9 0M10.300 10.300l3.200 3.200",
  menu: "M2.500 4h11M2.500 8h11M2.500 12h11",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  up: "M4 10l4-4 4 4",
  dot: "M6.500 8a1.500 1.500 0 1 0 3 0 1.500 1.500 0 1 0-3 0",
  eye: "M1.800 8S4 3.800 8 3.800 14.200 8 14.200 8 12 12.200 8 12.200 1.800 8 1.800 8zM6.200 8a1.800 1.800 0 1 0 3.600 0 1.800 1.800 0 1 0-3.600 0",
  info: "M2.500 8a5.500 5.500 0 1 0 11 0 5.500 5.500 0 1 0-11 0M8 7.300v3.400M8 5.300h.1",
  key: "M2.500 10.500a2.500 2.500 0 1 0 5 0 2.500 2.500 0 1 0-5 0M6.800 8.800l6-6M10.500 5l2 2",
  download: "M8 2.500v7.500M4.800 7 8 10.200 11.200 7M3 13.300h10",
  help: "M2.500 8a5.500 5.500 0 1 0 11 0 5.500 5.500 0 1 0-11 0M6.300 6.400a1.800 1.800 0 1 1 2.400 1.800c-.5.2-.7.500-.7 1.100M8 11.100h.1",
  bolt: "M9 2 3.500 9H8l-1 5 5.500-7H8z",
  link: "M6.500 9.500l3-3M7 4.500 8.500 3A3.200 3.200 0 0 1 13 7.500L11.500 9M9 11.500 7.500 13A3.200 3.200 0 0 1 3 8.500L4.500 7",
} as const;

export type IconName = keyof typeof PATHS;

/** Draws an icon. It says nothing to a screen reader: the text beside it does. */
export function Icon({ name, className = "" }: { name: IconName; className?: string }) {
  return (
    <svg
      class={`icon-svg ${className}`}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
