import { describe, expect, it } from "vitest";
import type { Host, ResourceUsage } from "../src/api/types";
import { AWAY, SCALE, STEPS } from "../src/views/capacity/colours";
import { columnsOf, groupsOf, totalsOf } from "../src/views/capacity/columns";
import { cellAt, LABEL, layoutOf, moved } from "../src/views/capacity/layout";
import { paint } from "../src/views/capacity/paint";

const usage = (capacity: number, normal: number, preemptible: number): ResourceUsage => ({
  resource_class: "VCPU",
  capacity: String(capacity),
  normal: String(normal),
  preemptible: String(preemptible),
  leaving: "0",
  free_full: String(capacity - normal - preemptible),
  free_normal: String(capacity - normal),
});

const host = (name: string, zone: string, aggregates: string[], health = "up"): Host => ({
  name,
  health,
  disabled_reason: "",
  availability_zone: zone,
  aggregates,
  resources: [usage(8, 4, 2)],
  normal_servers: 1,
  preemptible_servers: 1,
});

const hosts = [host("a", "z1", ["ssd"]), host("b", "z2", []), host("c", "z1", ["gpu", "ssd"])];

describe("the columns of hosts", () => {
  it("have both states as shares of the capacity", () => {
    const vcpu = columnsOf(hosts).classes.get("VCPU");
    expect([vcpu?.normal[0], vcpu?.full[0], vcpu?.sold[0]]).toEqual([0.5, 0.75, 0.25]);
    expect(vcpu === undefined ? null : totalsOf(vcpu, [0, 2])).toEqual({
      capacity: 16,
      normal: 8,
      full: 12,
      sold: 4,
    });
  });

  it("are grouped by zone, by aggregate with those in none, or not", () => {
    const columns = columnsOf(hosts);
    expect(groupsOf(columns, "zone", "none")).toEqual([
      { name: "z1", hosts: [0, 2] },
      { name: "z2", hosts: [1] },
    ]);
    expect(groupsOf(columns, "aggregate", "none")).toEqual([
      { name: "gpu", hosts: [2] },
      { name: "none", hosts: [1] },
      { name: "ssd", hosts: [0, 2] },
    ]);
    expect(groupsOf(columns, "none", "none")).toEqual([{ name: "", hosts: [0, 1, 2] }]);
  });
});

describe("the layout of the map", () => {
  const range = (from: number, to: number): number[] =>
    Array.from({ length: to - from }, (_, index) => from + index);

  it("finds each cell where it was put, and nothing between groups", () => {
    for (const [first, second, width] of [
      [1, 1, 320],
      [70, 33, 320],
      [5000, 5000, 1200],
      [60_000, 40_000, 1200],
    ] as const) {
      const groups = [
        { name: "a", hosts: range(0, first) },
        { name: "b", hosts: range(first, first + second) },
      ];
      const layout = layoutOf(groups, width, 700);
      for (const at of [0, first - 1, first, first + second - 1]) {
        const x = layout.x[at]! + 1;
        const y = layout.y[at]! + 1;
        expect(cellAt(layout, groups, x, y)).toBe(at);
        expect(x).toBeLessThan(width);
      }
      expect(cellAt(layout, groups, 1, LABEL / 2)).toBe(-1);
      expect(cellAt(layout, groups, 1, layout.height + 1)).toBe(-1);
      expect(cellAt(layout, groups, -1, LABEL + 1)).toBe(-1);
    }
  });

  it("keeps the map of 100,000 hosts on the screen", () => {
    const groups = [{ name: "", hosts: range(0, 100_000) }];
    expect(layoutOf(groups, 1200, 800).height).toBeLessThanOrEqual(800);
  });

  it("moves by keys and stays within the hosts", () => {
    const layout = layoutOf([{ name: "", hosts: range(0, 100) }], 320, 2000);
    expect(moved(layout, 0, "ArrowLeft")).toBe(0);
    expect(moved(layout, 0, "ArrowDown")).toBe(layout.columns);
    expect(moved(layout, 5, "End")).toBe(99);
    expect(moved(layout, 99, "ArrowRight")).toBe(99);
    expect(moved(layout, 5, "a")).toBe(5);
  });
});

describe("the painted map", () => {
  const painted = (measure: "both" | "full" | "normal" | "sold", of: Host[]): Uint32Array => {
    const columns = columnsOf(of);
    const groups = groupsOf(columns, "none", "");
    const layout = layoutOf(groups, 320, 2000);
    const pixels = new Uint32Array(320 * layout.height);
    const vcpu = columns.classes.get("VCPU");
    if (vcpu === undefined) throw new Error("no VCPU");
    paint(pixels, 320, 1, layout, vcpu, columns.up, measure);
    return pixels.slice(LABEL * 320, LABEL * 320 + 31);
  };
  const colour = (share: number): number => SCALE[Math.floor(share * (STEPS - 1))]!;

  it("has the normal state left and the full state right", () => {
    const line = painted("both", hosts);
    expect([line[0], line[30]]).toEqual([colour(0.5), colour(0.75)]);
  });

  it("has one state in the whole cell, if one is chosen", () => {
    expect(new Set(painted("full", hosts))).toEqual(new Set([colour(0.75)]));
    expect(new Set(painted("normal", hosts))).toEqual(new Set([colour(0.5)]));
    expect(new Set(painted("sold", hosts))).toEqual(new Set([colour(0.25)]));
  });

  it("has lines on hosts that take no servers, in colours that the scale does not have", () => {
    const line = painted("both", [host("a", "", [], "down")]);
    expect(new Set(line)).toEqual(new Set(AWAY));
    expect(AWAY.some((colour) => SCALE.includes(colour))).toBe(false);
  });

  it("becomes lighter from empty to full, also for an eye that sees no colours", () => {
    const luminance = (pixel: number): number =>
      0.2126 * (pixel & 255) + 0.7152 * ((pixel >> 8) & 255) + 0.0722 * ((pixel >> 16) & 255);
    const steps = [...SCALE].map(luminance);
    const rising = steps.every((value, at) => at === 0 || value >= (steps[at - 1] ?? 0) - 0.6);
    expect(rising).toBe(true);
    expect((steps.at(-1) ?? 0) - (steps[0] ?? 0)).toBeGreaterThan(150);
  });
});
