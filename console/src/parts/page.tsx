import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { visible } from "./text";

/** The head of a page: its title, a sentence, and its actions. It also sets the title of the tab. */
export function PageHead(props: {
  title: string;
  /** What stands instead of the title, if it is more than a text. */
  heading?: ComponentChildren;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${visible(props.title)} · Detent`;
  }, [props.title]);
  return (
    <header class="page-head">
      <div class="grow">
        <h1>{props.heading ?? props.title}</h1>
        {props.lead && <p class="lead">{props.lead}</p>}
      </div>
      {props.actions && <div class="row">{props.actions}</div>}
    </header>
  );
}

/** A card with a heading. */
export function Card(props: {
  title: string;
  side?: ComponentChildren;
  /** Whether the content has a margin; tables have none. */
  padded?: boolean;
  children: ComponentChildren;
}) {
  const id = `card-${props.title.toLowerCase().replaceAll(/\W+/g, "-")}`;
  return (
    <section class="card" aria-labelledby={id}>
      <div class="card-head">
        <h2 id={id}>{props.title}</h2>
        {props.side && <div class="row">{props.side}</div>}
      </div>
      {props.padded === false ? props.children : <div class="card-body">{props.children}</div>}
    </section>
  );
}
