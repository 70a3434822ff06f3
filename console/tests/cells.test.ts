import { describe, expect, it } from "vitest";
import { type Cells, difference } from "../browser/cells";

const cells = (columns: number, rows: number, colour: (cell: number) => number): Cells => ({
  columns,
  rows,
  colours: Array.from({ length: columns * rows * 3 }, (_, at) => colour(Math.floor(at / 3))),
});

describe("two pictures", () => {
  const white = cells(10, 10, () => 250);

  it("are the same if a digit is another one", () => {
    expect(difference(white, cells(10, 10, (cell) => (cell === 5 ? 230 : 250)))).toBe(0);
  });

  it("differ where a part is missing, or all over in other colours or another width", () => {
    expect(difference(white, cells(10, 10, (cell) => (cell < 20 ? 100 : 250)))).toBe(0.2);
    expect(difference(white, cells(10, 10, () => 20))).toBe(1);
    expect(difference(white, cells(9, 10, () => 250))).toBe(1);
    expect(difference(white, cells(10, 0, () => 250))).toBe(1);
  });

  it("are compared as far as the shorter one goes", () => {
    expect(difference(white, cells(10, 8, () => 250))).toBe(0);
  });
});
