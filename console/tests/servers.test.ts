import { describe, expect, it } from "vitest";
import type { Server } from "../src/api/types";
import { fits, ordered } from "../src/views/servers/model";

const server = (name: string, status: string, deadline_at = ""): Server => ({
  id: `id-${name}`,
  name,
  project_id: "science",
  flavor_name: "p.small",
  preemptible: true,
  status,
  state: status,
  state_reason: "",
  launched_at: "",
  resources: {},
  host: "host-A",
  decision_id: "",
  evacuation_id: "",
  deadline_at,
  fault_message: "",
});

describe("servers", () => {
  it("whose time runs out stand first, and those that are gone are not shown", () => {
    const all = [
      server("b", "active"),
      server("a", "active"),
      server("late", "evacuating", "2026-11-29T09:00:30.5Z"),
      server("soon", "evacuating", "2026-11-29T09:00:30.25Z"),
      server("gone", "preempted"),
    ];
    expect(ordered(all).map((one) => one.name)).toEqual(["soon", "late", "a", "b"]);
  });

  it("are found by all words of a search", () => {
    expect(fits(server("web", "active"), "SCIENCE host-a")).toBe(true);
    expect(fits(server("web", "active"), "science host-b")).toBe(false);
  });
});
