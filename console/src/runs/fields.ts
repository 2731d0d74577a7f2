// The difference of two values, field by field.

export interface FieldChange {
  /** The path of the field: `price`, `size.width`; empty if the values are not objects. */
  path: string;
  /** Undefined if the field is not there. */
  before: unknown;
  after: unknown;
  isChanged: boolean;
}

const DEPTH_MAX = 4;
const FIELDS_MAX = 200;

/** Returns the fields of two values, those that differ first. */
export function compareFields(before: unknown, after: unknown): FieldChange[] {
  const found: FieldChange[] = [];
  walk("", before, after, 0, found);
  return [...found.filter((one) => one.isChanged), ...found.filter((one) => !one.isChanged)];
}

function walk(path: string, before: unknown, after: unknown, depth: number, found: FieldChange[]): void {
  if (depth < DEPTH_MAX && isObject(before) && isObject(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const has = (value: object) => Object.prototype.hasOwnProperty.call(value, name);
      const next = path ? `${path}.${name}` : name;
      walk(next, has(before) ? before[name] : undefined, has(after) ? after[name] : undefined, depth + 1, found);
    }
  } else if (found.length < FIELDS_MAX) {
    found.push({ path, before, after, isChanged: !isSame(before, after) });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isSame(one: unknown, other: unknown): boolean {
  return sorted(one) === sorted(other);
}

/** Returns a value as text, with the names of objects in order. */
function sorted(value: unknown): string {
  return (
    JSON.stringify(value, (_, part: unknown) =>
      isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
    ) ?? "undefined"
  );
}

/** Returns a value as a person reads it. */
export function valueText(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
