// Lists that the REST API gives page by page.

import { get, withQuery } from "./client";

/** What was read of a list. */
export interface Pages<T> {
  rows: T[];
  /** False if there are more rows than were asked for. */
  complete: boolean;
}

/** Most rows of a page, as the API has it. */
const PAGE = 1000;

interface Link {
  rel: string;
  href: string;
}

/** Reads the list `name` at `path`, page after page, up to about `most` rows. */
export async function pages<T>(
  path: string,
  query: Record<string, string>,
  name: string,
  most: number,
  signal?: AbortSignal,
): Promise<Pages<T>> {
  const rows: T[] = [];
  let next: string | undefined = withQuery(path, { ...query, limit: PAGE });
  while (next !== undefined && rows.length < most) {
    const answer: Record<string, unknown> = await get(next, signal);
    rows.push(...((answer[name] ?? []) as T[]));
    const links = (answer["links"] ?? []) as Link[];
    const href = links.find((link) => link.rel === "next")?.href;
    // The token goes only to the API of this scheduler.
    next = href?.startsWith(`${path}?`) === true ? href : undefined;
  }
  return { rows, complete: next === undefined };
}
