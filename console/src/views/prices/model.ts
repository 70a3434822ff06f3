// Prices over time, and the servers that left meanwhile.

import type { Life, PriceRecord } from "../../api/types";

/** Ends that the owner did not choose. */
const BY_PROVIDER = new Set(["preempted", "max-lifetime", "out-of-bid", "lost"]);

/** A price from a time on, in milliseconds since 1970. */
export interface Step {
  at: number;
  price: number;
}

/** A server that had to leave, with the price of an hour at that time. */
export interface Departure {
  life: Life;
  at: number;
  price: number | null;
}

/**
 * The prices within a period as steps, the earliest first. The price at its beginning is the last
 * one before it; without any record the present price counts for all of it.
 */
export function stepsOf(
  records: readonly PriceRecord[],
  present: number,
  from: number,
  to: number,
): Step[] {
  const all = records
    .map((record) => ({ at: Date.parse(record.at), price: Number(record.price) }))
    .filter((step) => step.at < to)
    .sort((a, b) => a.at - b.at);
  const before = all.filter((step) => step.at <= from).at(-1);
  const within = all.filter((step) => step.at > from);
  if (before !== undefined) return [{ at: from, price: before.price }, ...within];
  if (within.length > 0) return within;
  return [{ at: from, price: present }];
}

/** The price at a time; `null` before the first known one. */
export function priceAt(steps: readonly Step[], at: number): number | null {
  return steps.filter((step) => step.at <= at).at(-1)?.price ?? null;
}

/** The servers that had to leave within a period, the latest first. */
export function departuresOf(
  lives: readonly Life[],
  steps: readonly Step[],
  from: number,
  to: number,
): Departure[] {
  return lives
    .filter((life) => life.preemptible && BY_PROVIDER.has(life.end))
    .map((life) => ({ life, at: Date.parse(life.ended_at) }))
    .filter(({ at }) => at >= from && at < to)
    .sort((a, b) => b.at - a.at)
    .map(({ life, at }) => ({ life, at, price: priceAt(steps, at) }));
}

/** Where things are in the picture, in its own units. */
export interface Scale {
  x: (at: number) => number;
  y: (price: number) => number;
  /** The price at the upper edge. */
  top: number;
}

/** The scale of a picture of this size that holds all prices from 0 on. */
export function scaleOf(
  steps: readonly Step[],
  from: number,
  to: number,
  width: number,
  height: number,
): Scale {
  const dearest = Math.max(0, ...steps.map((step) => step.price));
  // A little room above the line; any number if all is free.
  const top = dearest === 0 ? 1 : dearest * 1.1;
  const span = Math.max(1, to - from);
  return {
    x: (at) => ((Math.min(to, Math.max(from, at)) - from) / span) * width,
    y: (price) => height - (Math.min(top, Math.max(0, price)) / top) * height,
    top,
  };
}

/** The line of the prices as the path of an SVG. */
export function pathOf(steps: readonly Step[], to: number, scale: Scale): string {
  const round = (value: number): number => Math.round(value * 10) / 10;
  const parts = steps.map((step, index) => {
    const x = round(scale.x(step.at));
    const y = round(scale.y(step.price));
    return index === 0 ? `M${x} ${y}` : `H${x}V${y}`;
  });
  return parts.length === 0 ? "" : `${parts.join("")}H${round(scale.x(to))}`;
}
