// Times in filters: `since:1h`, `since:7d` or an exact time.
const UNITS: Record<string, number> = { m: 60, min: 60, h: 3600, d: 86_400, w: 604_800 };

/** Returns the time that a filter means as ISO text; undefined if it means none. */
export function readSince(text: string | undefined, now: number): string | undefined {
  if (!text) return undefined;
  const found = /^(\d{1,4})\s*(m|min|h|d|w)$/.exec(text);
  if (found) return new Date(now - Number(found[1]) * (UNITS[found[2] as string] as number) * 1000).toISOString();
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? undefined : new Date(moment).toISOString();
}

export const SINCE_VALUES = ["15min", "1h", "6h", "24h", "7d"] as const;
