// Counts beside the names of pages, from one request for all of them.
import { addedUp, useCounts } from "../api/counts";
import { useRead } from "../api/query";
import { count } from "../parts/format";

/** Shows the count of a page: running jobs, dead jobs, firing alerts. */
export function Counters({ path }: { path: string }) {
  if (path === "jobs") return <StateCount state="running" label="running" />;
  if (path === "dead") return <StateCount state="quarantined" label="dead" isBad />;
  if (path === "alerts") return <FiringAlerts />;
  return null;
}

function StateCount({ state, label, isBad = false }: { state: string; label: string; isBad?: boolean }) {
  const jobs = addedUp(useCounts(), state) ?? 0;
  if (!jobs) return null;
  return (
    <span class={`count ${isBad ? "bad" : ""}`} aria-label={`${jobs} ${label}`}>
      {count(jobs)}
    </span>
  );
}

const SHOWN_MAX = 100;

function FiringAlerts() {
  const { data } = useRead("/alerts", { state: "firing", limit: SHOWN_MAX }, { slow: true });
  const firing = data?.items.length ?? 0;
  if (!firing) return null;
  return (
    <span class="count bad" aria-label={`${firing} firing`}>
      {firing === SHOWN_MAX ? `${firing}+` : firing}
    </span>
  );
}
