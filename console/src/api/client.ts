// Requests to the HTTP API. Paths, queries, bodies and answers are typed by its OpenAPI description (schema.d.ts).
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Job = Schemas["Job"];

type Short<P> = P extends `/api/v1${infer Rest}` ? Rest : never;
type Long<P extends string> = `/api/v1${P}` & keyof paths;
type Verb<P extends string, M extends "get" | "post"> = NonNullable<paths[Long<P>][M]>;
type PathsOf<M extends "get" | "post"> = {
  [P in keyof paths]: paths[P][M] extends { responses: unknown } ? Short<P> : never;
}[keyof paths];

export type GetPath = PathsOf<"get">;
export type PostPath = PathsOf<"post">;
export type Answer<P extends string, M extends "get" | "post"> =
  Verb<P, M> extends { responses: { 200: { content: { "application/json": infer A } } } } ? A : never;
export type Query<P extends string, M extends "get" | "post"> =
  Verb<P, M> extends { parameters: { query?: infer Q } } ? Q : never;
export type Body<P extends string> =
  Verb<P, "post"> extends { requestBody?: { content: { "application/json": infer B } } } ? B : never;
export type PathParts = Record<string, string>;

/** The address that all paths are relative to: the server sets <base href>. It ends with a slash. */
export const base = new URL(document.baseURI).pathname;

/** Why a request was refused: problem+json of the server, or that no answer came. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    detail: string,
    readonly code: string = "",
    readonly fields: Record<string, unknown> = {},
  ) {
    super(detail);
  }

  /** Whether the server could not be reached at all. */
  get isLost(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

type Listener = (problem: Problem | null) => void;
const watchers = new Set<Listener>();

/** Calls the listener with the problem of every failed request, and with null after every answer. */
export function watchAnswers(listener: Listener): void {
  watchers.add(listener);
}

/** Returns the address of an API path. */
export function address(path: string, parts: PathParts = {}, query: object = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parts[name] ?? ""));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  const text = search.toString();
  return `${base}api/v1${filled}${text && `?${text}`}`;
}

async function send(url: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(url, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    const problem = new Problem(0, "Unreachable", "The server does not answer.");
    watchers.forEach((tell) => tell(problem));
    throw problem;
  }
  if (answer.ok || answer.status === 304) {
    watchers.forEach((tell) => tell(null));
    return answer;
  }
  const problem = await readProblem(answer);
  watchers.forEach((tell) => tell(problem));
  throw problem;
}

async function readProblem(answer: Response): Promise<Problem> {
  try {
    const said = (await answer.json()) as { title?: string; detail?: string; code?: string; fields?: object };
    const detail = said.detail ?? `The server answered ${answer.status}.`;
    return new Problem(answer.status, said.title ?? "Error", detail, said.code, { ...said.fields });
  } catch {
    return new Problem(answer.status, "Error", `The server answered ${answer.status}.`);
  }
}

const known = new Map<string, { tag: string; value: unknown }>();
const KNOWN_MAX = 200;

/** Reads an address. An answer that has not changed is the very same object, so nothing is drawn again. */
export async function read<T>(url: string, signal?: AbortSignal): Promise<T> {
  const before = known.get(url);
  const headers: Record<string, string> = { Accept: "application/json" };
  if (before) headers["If-None-Match"] = before.tag;
  const answer = await send(url, { headers, signal, cache: "no-store" });
  if (answer.status === 304 && before) return before.value as T;
  const value = (await answer.json()) as T;
  const tag = answer.headers.get("ETag");
  if (tag) {
    known.delete(url);
    known.set(url, { tag, value });
    if (known.size > KNOWN_MAX) known.delete(known.keys().next().value as string);
  }
  return value;
}

const recent = new Map<string, { at: number; answer: Promise<unknown> }>();
const RECENT_MILLIS = 500;
const RECENT_MAX = 100;

/** As `read`, but parts of a page that read the same address at about the same time share one request. */
export function readShared<T>(url: string): Promise<T> {
  const found = recent.get(url);
  if (found && Date.now() - found.at < RECENT_MILLIS) return found.answer as Promise<T>;
  const answer = read<T>(url);
  recent.delete(url);
  recent.set(url, { at: Date.now(), answer });
  if (recent.size > RECENT_MAX) recent.delete(recent.keys().next().value as string);
  answer.catch(() => recent.delete(url));
  return answer;
}

/** Lets the next reads ask the server, after a change by the reader. */
export function forgetRecent(): void {
  recent.clear();
}

/** Reads a GET path of the API. */
export function get<P extends GetPath>(
  path: P,
  options: { parts?: PathParts; query?: Query<P, "get">; signal?: AbortSignal } = {},
): Promise<Answer<P, "get">> {
  return read(address(path, options.parts, options.query ?? {}), options.signal);
}

/** Calls a verb that changes something. The header tells the server that no page of another site sent it. */
export async function post<P extends PostPath>(
  path: P,
  options: { parts?: PathParts; query?: Query<P, "post">; body?: Body<P> } = {},
): Promise<Answer<P, "post">> {
  return (await send(address(path, options.parts, options.query ?? {}), {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json", "X-Detent": "1" },
    body: JSON.stringify(options.body ?? {}),
  }).then((answer) => answer.json())) as Answer<P, "post">;
}

/** Forgets all answers, as after a login with another token. */
export function forgetAnswers(): void {
  known.clear();
}
