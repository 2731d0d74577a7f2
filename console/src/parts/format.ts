// Numbers, durations and times as texts.
import type { Zone } from "../live/settings";

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** Returns a number with separators; above 100,000 in short: 1.2M. */
export function count(value: number): string {
  return value >= 100_000 ? compact.format(value) : whole.format(value);
}

/** Returns a number with all its digits. */
export function exactly(value: number): string {
  return whole.format(value);
}

/** Returns "1 job" or "12 jobs". */
export function many(value: number, noun: string, plural = `${noun}s`): string {
  return `${whole.format(value)} ${value === 1 ? noun : plural}`;
}

/** Returns seconds as a short duration: 340 ms, 12.4 s, 3 min 5 s, 2 h 10 min, 3 d 4 h. */
export function duration(seconds: number): string {
  const value = Math.max(0, seconds);
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 60) return `${Math.round(value)} s`;
  return pair(Math.round(value));
}

function pair(value: number): string {
  const units: [string, number][] = [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
    ["s", 1],
  ];
  const first = units.findIndex(([, size]) => value >= size);
  const [name, size] = units[first] as [string, number];
  const rest = units[first + 1];
  const left = rest ? Math.floor((value % size) / rest[1]) : 0;
  return `${Math.floor(value / size)} ${name}${rest && left ? ` ${left} ${rest[0]}` : ""}`;
}

/** Returns how long ago, or in how long, a time is, with one unit, so that its width hardly changes. */
export function relative(at: number, now: number): string {
  const seconds = Math.round(Math.abs(now - at) / 1000);
  if (seconds < 2) return "now";
  const [value, unit] =
    seconds < 60
      ? [seconds, "s"]
      : seconds < 3600
        ? [Math.floor(seconds / 60), "min"]
        : seconds < 172_800
          ? [Math.floor(seconds / 3600), "h"]
          : [Math.floor(seconds / 86_400), "d"];
  return at > now ? `in ${value} ${unit}` : `${value} ${unit} ago`;
}

/** Returns the exact time: 2026-11-18 10:13:54.120 UTC, or with the zone of this machine. */
export function exact(at: number, zone: Zone, { millis = false, date = true } = {}): string {
  const moment = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const [year, month, day, hour, minute, second, thousandth] =
    zone === "utc"
      ? [
          moment.getUTCFullYear(),
          moment.getUTCMonth() + 1,
          moment.getUTCDate(),
          moment.getUTCHours(),
          moment.getUTCMinutes(),
          moment.getUTCSeconds(),
          moment.getUTCMilliseconds(),
        ]
      : [
          moment.getFullYear(),
          moment.getMonth() + 1,
          moment.getDate(),
          moment.getHours(),
          moment.getMinutes(),
          moment.getSeconds(),
          moment.getMilliseconds(),
        ];
  const clock = `${two(hour)}:${two(minute)}:${two(second)}${millis ? `.${String(thousandth).padStart(3, "0")}` : ""}`;
  return date ? `${year}-${two(month)}-${two(day)} ${clock}` : clock;
}

/** Returns the name of the zone that exact times are shown in. */
export function zoneName(zone: Zone): string {
  return zone === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
}
