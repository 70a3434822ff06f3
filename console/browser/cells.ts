// Pictures as cells of average colours: what changes with each run changes few of them.

/** Edge of a cell in pixels. */
export const CELL = 16;

/** How far the averages of two cells may be apart, of 255: less is another digit in a text. */
const SAME = 24;

export interface Cells {
  columns: number;
  rows: number;
  /** Red, green and blue of each cell, row by row. */
  colours: readonly number[];
}

/** The share of the cells that differ, of those that both have; all if the widths differ. */
export function difference(one: Cells, other: Cells): number {
  if (one.columns !== other.columns) return 1;
  const cells = one.columns * Math.min(one.rows, other.rows);
  if (cells === 0) return 1;
  let differ = 0;
  for (let cell = 0; cell < cells; cell += 1) {
    const apart = [0, 1, 2].map((part) => {
      const at = cell * 3 + part;
      return Math.abs((one.colours[at] ?? 0) - (other.colours[at] ?? 0));
    });
    if (Math.max(...apart) > SAME) differ += 1;
  }
  return differ / cells;
}
