// Who is logged in, and what that allows.
import { signal } from "@preact/signals";
import { changes, needsToken } from "../live/live";
import { base, forgetAnswers, Problem, read } from "./client";

export type Role = "viewer" | "operator" | "admin";
const RANKS: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

export interface Session {
  name: string;
  role: Role;
  tenant: string | null;
  tokens_required: boolean;
}

export const session = signal<Session | null>(null);

/** Reads who is logged in. A server without tokens allows everything. */
export async function loadSession(): Promise<void> {
  try {
    session.value = await read<Session>(`${base}api/v1/session`);
    needsToken.value = false;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) session.value = null;
  }
}

/** Logs in with a token: the server answers with a cookie that scripts cannot read. */
export async function logIn(token: string): Promise<void> {
  const answer = await fetch(`${base}api/v1/session`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Detent": "1" },
    body: JSON.stringify({ token }),
  });
  if (!answer.ok) {
    const said = (await answer.json().catch(() => ({}))) as { detail?: string };
    throw new Problem(answer.status, "Refused", said.detail ?? "The server refused the token.");
  }
  forgetAnswers();
  needsToken.value = false;
  await loadSession();
  changes.now();
}

/** Returns whether the reader's role is enough, or why not. */
export function mayChange(role: Role): true | string {
  const mine = session.value?.role;
  if (!mine || RANKS[mine] >= RANKS[role]) return true;
  return `Your token has the role ${mine}; this needs ${role === "admin" ? "an admin" : "an operator"}.`;
}
