// All pages of the console: where they are, what they are called, and the letter that opens them after `g`.
import type { ComponentType } from "preact";
import { lazy as load } from "preact-iso";
import type { IconName } from "../parts/icon";

export interface Page {
  /** Below the base address; a part such as `:id` is given to the component. */
  path: string;
  title: string;
  /** The heading in the sidebar; a page without one is not listed there. */
  group?: "" | "Work" | "Set-up" | "Watch";
  icon: IconName;
  letter?: string;
  component: ComponentType<any>;
}

const lazy = (page: () => Promise<{ default: ComponentType<any> }>) => load(page) as ComponentType<any>;

export const PAGES: Page[] = [
  { path: "", title: "Overview", group: "", icon: "overview", letter: "o", component: lazy(() => import("./overview")) },
  { path: "jobs", title: "Jobs", group: "Work", icon: "jobs", letter: "j", component: lazy(() => import("./jobs")) },
  { path: "jobs/:id", title: "Job", icon: "jobs", component: lazy(() => import("./job")) },
  { path: "workflows", title: "Workflows", group: "Work", icon: "workflows", letter: "f", component: lazy(() => import("./workflows")) },
  { path: "runs", title: "Runs", group: "Work", icon: "runs", letter: "u", component: lazy(() => import("./runs")) },
  { path: "runs/:id", title: "Run", icon: "runs", component: lazy(() => import("./run")) },
  { path: "ops", title: "Ops runs", group: "Work", icon: "ops", letter: "b", component: lazy(() => import("./ops")) },
  { path: "ops/:id", title: "Ops run", icon: "ops", component: lazy(() => import("./ops_run")) },
  { path: "dead", title: "Dead letters", group: "Work", icon: "dead", letter: "d", component: lazy(() => import("./dead")) },
  { path: "queues", title: "Queues", group: "Set-up", icon: "queues", letter: "q", component: lazy(() => import("./queues")) },
  { path: "schedules", title: "Schedules", group: "Set-up", icon: "schedules", letter: "s", component: lazy(() => import("./schedules")) },
  { path: "limits", title: "Limits", group: "Set-up", icon: "limits", letter: "l", component: lazy(() => import("./limits")) },
  { path: "workers", title: "Workers", group: "Set-up", icon: "workers", letter: "w", component: lazy(() => import("./workers")) },
  { path: "access", title: "Webhooks and tokens", group: "Set-up", icon: "key", letter: "h", component: lazy(() => import("./access")) },
  { path: "alerts", title: "Alerts", group: "Watch", icon: "alerts", letter: "a", component: lazy(() => import("./alerts")) },
  { path: "lifecycles", title: "Lifecycles", group: "Watch", icon: "lifecycles", letter: "y", component: lazy(() => import("./lifecycles")) },
  { path: "integrity", title: "Integrity", group: "Watch", icon: "integrity", letter: "i", component: lazy(() => import("./integrity")) },
  { path: "record", title: "Record", group: "Watch", icon: "record", letter: "c", component: lazy(() => import("./record")) },
];

export const NotFound = lazy(() => import("./not_found"));
