import { describe, expect, it } from "vitest";
import type { Life, PriceRecord } from "../src/api/types";
import { departuresOf, pathOf, priceAt, scaleOf, stepsOf } from "../src/views/prices/model";

const HOUR = 3_600_000;
const START = Date.parse("2026-11-29T00:00:00Z");

const record = (hours: number, price: string): PriceRecord => ({
  id: `${hours}`,
  flavor: "spot",
  at: new Date(START + hours * HOUR).toISOString(),
  price,
  supply: "8",
  demand: "4",
});

const life = (name: string, hours: number, end: string, preemptible = true): Life => ({
  id: `${name}.1`,
  server_id: name,
  name,
  project_id: "science",
  flavor: "spot",
  preemptible,
  host: "host-A",
  zone: "nova",
  launched_at: new Date(START).toISOString(),
  ended_at: new Date(START + hours * HOUR).toISOString(),
  end,
});

describe("prices", () => {
  const to = START + 10 * HOUR;

  it("begin with the last one before the period", () => {
    const records = [record(4, "0.03"), record(-2, "0.01"), record(-5, "0.09"), record(12, "1")];
    expect(stepsOf(records, 9, START, to)).toEqual([
      { at: START, price: 0.01 },
      { at: START + 4 * HOUR, price: 0.03 },
    ]);
  });

  it("that never changed are the present one, and nothing is known before the first record", () => {
    expect(stepsOf([], 0.5, START, to)).toEqual([{ at: START, price: 0.5 }]);
    const steps = stepsOf([record(4, "0.03")], 0.5, START, to);
    expect([priceAt(steps, START + HOUR), priceAt(steps, START + 4 * HOUR)]).toEqual([null, 0.03]);
  });

  it("stand beside those who had to leave, and not beside those who wanted to", () => {
    const steps = stepsOf([record(0, "0.01"), record(4, "0.03")], 0, START, to);
    const lives = [
      life("early", 1, "preempted"),
      life("gone", 2, "deleted"),
      life("normal", 3, "lost", false),
      life("late", 5, "out-of-bid"),
      life("after", 11, "preempted"),
    ];
    const left = departuresOf(lives, steps, START, to);
    expect(left.map(({ life, price }) => [life.name, price])).toEqual([
      ["late", 0.03],
      ["early", 0.01],
    ]);
  });

  it("are drawn as steps from the left edge to the right one, also if all is free", () => {
    const steps = stepsOf([record(0, "0.01"), record(5, "0.02")], 0, START, to);
    const scale = scaleOf(steps, START, to, 100, 22);
    expect(pathOf(steps, to, scale)).toBe("M0 12H50V2H100");
    expect(scaleOf([{ at: START, price: 0 }], START, START, 100, 22).y(0)).toBe(22);
    expect(pathOf([], to, scale)).toBe("");
  });
});
