import { describe, expect, it } from "vitest";
import type { Counterfactuals, Plugin } from "../src/api/types";
import { hostsOf } from "../src/views/decision/otherwise";
import { ordered, share, stateOf } from "../src/views/plugins/model";

const plugin = (name: string, more: Partial<Plugin> = {}): Plugin => ({
  name,
  kind: "weigher",
  carrier: "wasm",
  enabled: true,
  on_failure: "ignore",
  file: "/plugins/a.wasm",
  calls: "1",
  failures: "0",
  skipped: "0",
  resting: false,
  last_failure: "",
  in_use: true,
  shadow: false,
  missing: "",
  added: true,
  shadow_calls: "0",
  shadow_failures: "0",
  ...more,
});

describe("plugins", () => {
  it("that need attention stand first", () => {
    const all = [
      plugin("off", { enabled: false, in_use: false }),
      plugin("b"),
      plugin("a"),
      plugin("shadow", { shadow: true }),
      plugin("tired", { resting: true }),
      plugin("away", { missing: "its service does not answer" }),
      plugin("other", { in_use: false }),
    ];
    expect(ordered(all).map((one) => [one.name, stateOf(one)])).toEqual([
      ["away", "missing"],
      ["tired", "resting"],
      ["shadow", "shadow"],
      ["a", "used"],
      ["b", "used"],
      ["other", "unused"],
      ["off", "off"],
    ]);
  });

  it("in shadow differ in a share of the decisions, none before the first", () => {
    expect([share("1", "4"), share("0", "0")]).toEqual([0.25, 0]);
  });
});

describe("a switch", () => {
  it("marks the hosts that the scheduler names for it, and no other one does", () => {
    const all: Counterfactuals = {
      without_weighers: [{ weigher: "ram", hosts: ["b", "c"], certain: true }],
      needs_victims: true,
      one_more_host: "a",
    };
    expect(hostsOf(all, "weigher:ram")).toEqual(["b", "c"]);
    expect(hostsOf(all, "weigher:cpu")).toBeNull();
    expect(hostsOf(all, "host")).toBeNull();
    expect(hostsOf(undefined, "weigher:ram")).toBeNull();
  });
});
