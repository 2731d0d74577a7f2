import { now } from "../live/clock";
import { zone } from "../live/settings";
import { duration, exact, relative, zoneName } from "./format";
import { Absent } from "./table";

/** Shows a time of the API as a relative one, with the exact one when pointed at. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <Absent />;
  const moment = Date.parse(at);
  const whole = `${exact(moment, zone.value, { millis: true })} ${zoneName(zone.value)}`;
  return (
    <time dateTime={at} title={whole} class="number nowrap">
      {relative(moment, now.value)}
    </time>
  );
}

/** Shows the exact time, with the relative one when pointed at. */
export function ExactTime({ at, millis = false }: { at: string | null | undefined; millis?: boolean }) {
  if (!at) return <Absent />;
  const moment = Date.parse(at);
  return (
    <time dateTime={at} title={`${relative(moment, now.value)}, ${zoneName(zone.value)}`} class="number nowrap">
      {exact(moment, zone.value, { millis })}
    </time>
  );
}

/** Shows how long something took, or takes so far. */
export function Took({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  if (!from) return <Absent />;
  const end = to ? Date.parse(to) : now.value;
  return <span class="number nowrap">{duration((end - Date.parse(from)) / 1000)}</span>;
}
