// Requests to the REST API of the scheduler that served the page.

import { learn } from "./clock";
import { currentToken } from "./session";

/** Time after which a request counts as failed, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** A request that has failed; `status` is 0 if the scheduler did not answer. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly next: string,
  ) {
    super(detail);
  }

  /** True if the scheduler did not answer, or says that it cannot now. */
  get unreachable(): boolean {
    return this.status === 0 || this.status === 503 || this.status === 504;
  }
}

/** The headers of each request. The token is in a header, never in an address. */
export function headers(more: Record<string, string> = {}): Record<string, string> {
  const token = currentToken();
  return token === "" ? more : { ...more, authorization: `Bearer ${token}` };
}

async function send<T>(path: string, init: RequestInit, signal?: AbortSignal): Promise<T> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const answer = await fetch(path, {
    ...init,
    cache: "no-store",
    credentials: "same-origin",
    redirect: "error",
    signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
  }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error;
    throw new Problem(0, "", String(error), "");
  });
  learn(answer.headers.get("date"), Date.now());
  if (!answer.ok) throw await problemOf(answer);
  if (answer.status === 204) return undefined as T;
  return (await answer.json()) as T;
}

/** The problem that an answer describes. */
export async function problemOf(answer: Response): Promise<Problem> {
  const said: unknown = await answer.json().catch(() => ({}));
  const field = (name: string): string => {
    const value = (said as Record<string, unknown> | null)?.[name];
    return typeof value === "string" ? value : "";
  };
  const detail = field("detail") || answer.statusText || `HTTP ${answer.status}`;
  return new Problem(answer.status, field("code"), detail, field("next"));
}

/** A path with a query; parameters that are empty are left out. */
export function withQuery(path: string, query: Record<string, string | number | boolean>): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== "" && value !== false);
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? path : `${path}?${text}`;
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return send<T>(path, { headers: headers() }, signal);
}

export function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const init = {
    method: "POST",
    headers: headers({ "content-type": "application/json" }),
    body: JSON.stringify(body),
  };
  return send<T>(path, init, signal);
}
