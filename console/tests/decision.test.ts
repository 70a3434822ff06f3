import { describe, expect, it } from "vitest";
import type { Decision, FilterStep } from "../src/api/types";
import { fateOf, missing, stepsOf } from "../src/views/decision/model";

const step = (filter: string, before: number, after: number): FilterStep => ({
  filter,
  before,
  after,
  dropped: [],
});

function decision(more: Partial<Decision>): Decision {
  return {
    id: "d",
    at: "2026-11-29T09:00:00Z",
    project_id: "science",
    flavor_name: "large",
    preemptible: false,
    server_ids: ["s"],
    placements: [],
    request_id: "",
    ...more,
  };
}

describe("a decision", () => {
  it("has filters that drop hosts as steps, and those between them as one", () => {
    const steps = stepsOf([step("a", 4, 4), step("b", 4, 4), step("c", 4, 1), step("d", 1, 1)]);
    expect(steps).toEqual([
      { kind: "same", filters: ["a", "b"], hosts: 4 },
      { kind: "drop", step: step("c", 4, 1) },
      { kind: "same", filters: ["d"], hosts: 1 },
    ]);
  });

  it("without a valid host names the missing resource, the one that most hosts lack first", () => {
    const dropped = [
      { host: "a", reason: "VCPU: needs 4, 0 of 8 free (normal only)" },
      {
        host: "b",
        reason:
          "MEMORY_MB: needs 8000, 0 of 16000 free (normal only); " +
          "VCPU: needs 4, 3 of 8 free (normal only)",
      },
      { host: "c", reason: "VCPU: needs 4, -2 of 8 free (normal only)" },
      { host: "d", reason: "the host is disabled" },
    ];
    const capacity = { ...step("capacity", 4, 0), dropped };
    const refused = decision({
      explanation: {
        policy: "tiered",
        cost_module: "partial_hour",
        filtered_on: "normal",
        instances: [{ filters: [capacity], ranking: [], ranked: 0 }],
        optimal: true,
        gap: 0,
        warnings: [],
      },
    });
    expect(missing(refused)).toEqual([
      { resource: "VCPU", needs: 4, free: 3, hosts: 3 },
      { resource: "MEMORY_MB", needs: 8000, free: 0, hosts: 1 },
    ]);
  });

  it("says where a victim was and what its set costs there", () => {
    const victim = (server_id: string, cost: number) => ({
      server_id,
      name: server_id,
      project_id: "p",
      resources: {},
      age_seconds: 1,
      cost,
    });
    const placed = decision({
      placements: [
        { server_id: "s", host: "a", victims: [], waits_for_room: false, alternates: [] },
        {
          server_id: "t",
          host: "b",
          victims: [victim("x", 2), victim("y", 3)],
          waits_for_room: true,
          alternates: [],
        },
      ],
    });
    expect(fateOf(placed, "y")).toEqual({ host: "b", cost: 5 });
    expect(fateOf(placed, "z")).toBeNull();
  });
});
