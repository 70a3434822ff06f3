// The evacuations that the page knows, and in which order it shows them.

import type { Evacuation } from "../../api/types";

const ACTIVE = new Set(["claimed", "notified", "draining"]);
/** How far each state is: a message with an earlier state arrived late. */
const PROGRESS: Record<string, number> = { claimed: 0, notified: 1, draining: 2 };

export interface Groups {
  failed: Evacuation[];
  active: Evacuation[];
  ended: Evacuation[];
}

export function isActive(evacuation: Evacuation): boolean {
  return ACTIVE.has(evacuation.state);
}

/** True if `next` is not older than `known`. */
export function isNewer(known: Evacuation | undefined, next: Evacuation): boolean {
  if (known === undefined) return true;
  const rank = (of: Evacuation): number => PROGRESS[of.state] ?? 3;
  return rank(next) >= rank(known);
}

/** Takes in an evacuation; the map stays as it is if it knows better. */
export function merge(
  known: ReadonlyMap<string, Evacuation>,
  next: readonly Evacuation[],
): ReadonlyMap<string, Evacuation> {
  const newer = next.filter((one) => isNewer(known.get(one.id), one));
  if (newer.length === 0) return known;
  const merged = new Map(known);
  for (const one of newer) merged.set(one.id, one);
  return merged;
}

/** True if one of the words that a person looks for is in the evacuation. */
export function fits(evacuation: Evacuation, preemptor: string, wanted: string): boolean {
  const all = [
    evacuation.victim_name,
    evacuation.victim_id,
    evacuation.victim_project_id,
    evacuation.host,
    evacuation.preemptor_id,
    preemptor,
  ];
  const text = all.join("\n").toLowerCase();
  return wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** Failed ones first, then those whose grace period ends first, then the latest ended. */
export function grouped(all: Iterable<Evacuation>): Groups {
  const groups: Groups = { failed: [], active: [], ended: [] };
  for (const one of all) {
    if (one.state === "failed") groups.failed.push(one);
    else if (isActive(one)) groups.active.push(one);
    else groups.ended.push(one);
  }
  const latest = (a: Evacuation, b: Evacuation): number => compare(b.ended_at, a.ended_at);
  groups.failed.sort(latest);
  groups.ended.sort(latest);
  groups.active.sort((a, b) => {
    // Without a deadline the notice is not confirmed: those come last.
    if (a.deadline_at === "" || b.deadline_at === "") return compare(b.deadline_at, a.deadline_at);
    return compare(a.deadline_at, b.deadline_at);
  });
  return groups;
}

/** RFC 3339 in UTC compares as text, but for the number of digits of a second. */
function compare(a: string, b: string): number {
  if (a === "" || b === "") return a.localeCompare(b);
  return Date.parse(a) - Date.parse(b);
}

/** The stable code that the reason of a failure begins with. */
export function codeOf(reason: string): string {
  return /^(EB-[A-Z]+-\d{3})\b/.exec(reason)?.[1] ?? "";
}
