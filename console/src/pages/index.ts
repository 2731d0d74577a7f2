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
  { path: "dead", title: "Dead letters", group: "Work", icon: "dead", letter: "d", component: lazy(() => import("./dead")) },
  { path: "queues", title: "Queues", group: "Set-up", icon: "queues", letter: "q", component: lazy(() => import("./queues")) },
];

export const NotFound = lazy(() => import("./not_found"));
