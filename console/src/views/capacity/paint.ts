// Paints the map into a buffer of pixels. A frame writes each pixel of each cell once and allocates
// nothing.

import { AWAY, SCALE, STEPS } from "./colours";
import type { Usage } from "./columns";
import type { Layout } from "./layout";

export type Measure = "both" | "full" | "normal" | "sold";

/** `pixels` has `width` pixels a line; `ratio` pixels of it are one of the page. */
export function paint(
  pixels: Uint32Array,
  width: number,
  ratio: number,
  layout: Layout,
  usage: Usage,
  up: Uint8Array,
  measure: Measure,
): void {
  pixels.fill(0);
  const edge = Math.round(layout.cell * ratio);
  // A gap between cells that are large enough for one.
  const inner = Math.max(1, layout.cell >= 4 ? edge - Math.max(1, Math.round(ratio)) : edge);
  const half = measure === "both" ? inner >> 1 : 0;
  const left = measure === "both" ? usage.normal : usage.full;
  const right = measure === "normal" ? usage.normal : measure === "sold" ? usage.sold : usage.full;
  const top = STEPS - 1;
  for (let at = 0; at < layout.hosts.length; at += 1) {
    const host = layout.hosts[at]!;
    const x = Math.round(layout.x[at]! * ratio);
    const y = Math.round(layout.y[at]! * ratio);
    let line = y * width + x;
    if (up[host] === 0) {
      hatch(pixels, line, width, inner);
      continue;
    }
    const first = SCALE[(left[host]! * top) | 0]!;
    const second = SCALE[(right[host]! * top) | 0]!;
    for (let row = 0; row < inner; row += 1) {
      for (let column = 0; column < half; column += 1) pixels[line + column] = first;
      for (let column = half; column < inner; column += 1) pixels[line + column] = second;
      line += width;
    }
  }
}

/** Diagonal lines. */
function hatch(pixels: Uint32Array, start: number, width: number, inner: number): void {
  let line = start;
  for (let row = 0; row < inner; row += 1) {
    for (let column = 0; column < inner; column += 1) {
      pixels[line + column] = AWAY[((row + column) >> 1) & 1]!;
    }
    line += width;
  }
}
