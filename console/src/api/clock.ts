// The time of the scheduler. Countdowns are about its clock, not about the browser's.

/** Smaller differences are the resolution of the header `Date` and the way of the answer. */
const TOLERANCE_MS = 2000;

let offset = 0;

/** Compares the clocks by the header `date` of an answer that arrived at `now`. */
export function learn(date: string | null, now: number): void {
  const there = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(there)) return;
  // The header has whole seconds, rounded down.
  const difference = there + 500 - now;
  offset = Math.abs(difference) < TOLERANCE_MS ? 0 : difference;
}

/** The scheduler's time in milliseconds since 1970. */
export function serverNow(): number {
  return Date.now() + offset;
}

/** Milliseconds until a time of the scheduler; `null` if there is none. */
export function until(at: string, now: number): number | null {
  const time = at === "" ? Number.NaN : Date.parse(at);
  return Number.isNaN(time) ? null : time - now;
}
