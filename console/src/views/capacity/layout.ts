// Where each cell of the map is. Groups stand below each other, each with a line for its name.

import type { Group } from "./columns";

/** Height of the line with a group's name, in pixels of the page. */
export const LABEL = 24;
/** Largest and smallest edge of a cell. The smallest has both halves, a pixel each. */
const LARGEST = 32;
const SMALLEST = 2;

export interface Layout {
  /** Edge of a cell with its gap, in pixels of the page. */
  cell: number;
  columns: number;
  width: number;
  height: number;
  /** First line of pixels of each group's cells. */
  tops: number[];
  /** The host of each cell, group by group. */
  hosts: Uint32Array;
  /** Position of the upper left corner of each cell. */
  x: Float32Array;
  y: Float32Array;
}

/** The largest cells with which the map is at most `most` pixels high, if there are such. */
export function layoutOf(groups: readonly Group[], width: number, most: number): Layout {
  let cell = LARGEST;
  while (cell > SMALLEST && heightOf(groups, Math.max(1, Math.floor(width / cell)), cell) > most) {
    cell -= 1;
  }
  const columns = Math.max(1, Math.floor(width / cell));
  const cells = groups.reduce((sum, group) => sum + group.hosts.length, 0);
  const layout: Layout = {
    cell,
    columns,
    width,
    height: heightOf(groups, columns, cell),
    tops: [],
    hosts: new Uint32Array(cells),
    x: new Float32Array(cells),
    y: new Float32Array(cells),
  };
  let top = 0;
  let at = 0;
  for (const group of groups) {
    top += LABEL;
    layout.tops.push(top);
    group.hosts.forEach((host, index) => {
      layout.hosts[at] = host;
      layout.x[at] = (index % columns) * cell;
      layout.y[at] = top + Math.floor(index / columns) * cell;
      at += 1;
    });
    top += Math.ceil(group.hosts.length / columns) * cell;
  }
  return layout;
}

function heightOf(groups: readonly Group[], columns: number, cell: number): number {
  const lines = groups.map((group) => Math.ceil(group.hosts.length / columns) * cell + LABEL);
  return lines.reduce((sum, height) => sum + height, 0);
}

/** The cell at a point of the page's pixels; -1 if there is none. */
export function cellAt(
  layout: Layout,
  groups: readonly Group[],
  x: number,
  y: number,
): number {
  const column = Math.floor(x / layout.cell);
  if (column < 0 || column >= layout.columns) return -1;
  let first = 0;
  for (const [index, group] of groups.entries()) {
    const top = layout.tops[index] ?? 0;
    const row = Math.floor((y - top) / layout.cell);
    const cell = row * layout.columns + column;
    if (row >= 0 && cell < group.hosts.length) {
      const next = layout.tops[index + 1];
      if (next === undefined || y < next - LABEL) return first + cell;
    }
    first += group.hosts.length;
  }
  return -1;
}

/** The cell to which a key moves. */
export function moved(layout: Layout, from: number, key: string): number {
  const last = layout.hosts.length - 1;
  const to: Record<string, number> = {
    ArrowLeft: from - 1,
    ArrowRight: from + 1,
    ArrowUp: from - layout.columns,
    ArrowDown: from + layout.columns,
    Home: 0,
    End: last,
  };
  const next = to[key];
  return next === undefined ? from : Math.min(last, Math.max(0, next));
}
