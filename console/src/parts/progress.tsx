import { exactly } from "./format";

export interface Share {
  /** What it is: applied, failed, … */
  label: string;
  number: number;
  tone: "green" | "red" | "blue" | "gray" | "amber" | "violet";
}

/** A bar of shares. What is left of the total stays empty. */
export function Shares({ shares, total, label }: { shares: Share[]; total: number; label: string }) {
  const known = shares.filter((one) => one.number > 0);
  const said = known.map((one) => `${exactly(one.number)} ${one.label}`).join(", ") || "nothing yet";
  return (
    <span class="progress" role="img" aria-label={`${label}: ${said}, of ${exactly(total)}`}>
      {known.map((one) => (
        <span key={one.label} class={one.tone} style={{ width: `${(100 * one.number) / Math.max(total, 1)}%` }} />
      ))}
    </span>
  );
}
