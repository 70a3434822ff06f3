import { describe, expect, it } from "vitest";
import type { Evacuation } from "../src/api/types";
import { codeOf, fits, grouped, merge } from "../src/views/evacuations/model";

function evacuation(id: string, state: string, more: Partial<Evacuation> = {}): Evacuation {
  return {
    id,
    victim_id: `v-${id}`,
    victim_name: `victim ${id}`,
    victim_project_id: "science",
    host: "host-A",
    preemptor_id: "p",
    decision_id: "d",
    behaviour: "terminate",
    grace_seconds: 30,
    cost: 1,
    state,
    attempts: 1,
    reason: "",
    claimed_at: "2026-11-29T09:00:00Z",
    notified_at: "",
    draining_at: "",
    deadline_at: "",
    ended_at: "",
    cause: "preemption",
    reclaim_owner: "",
    ...more,
  };
}

describe("evacuations", () => {
  it("stand in three groups; in progress the one that ends first is on top", () => {
    const groups = grouped([
      evacuation("1", "draining", { deadline_at: "2026-11-29T09:00:30.5Z" }),
      evacuation("2", "claimed"),
      evacuation("3", "failed", { ended_at: "2026-11-29T08:00:00Z" }),
      evacuation("4", "draining", { deadline_at: "2026-11-29T09:00:30.25Z" }),
      evacuation("5", "spared", { ended_at: "2026-11-29T08:00:00Z" }),
      evacuation("6", "evacuated", { ended_at: "2026-11-29T08:00:01Z" }),
    ]);
    const ids = (of: Evacuation[]): string[] => of.map((one) => one.id);
    expect(ids(groups.failed)).toEqual(["3"]);
    expect(ids(groups.active)).toEqual(["4", "1", "2"]);
    expect(ids(groups.ended)).toEqual(["6", "5"]);
  });

  it("do not go back when a list is older than an event", () => {
    const after = merge(new Map(), [evacuation("1", "draining")]);
    expect(merge(after, [evacuation("1", "claimed")])).toBe(after);
    const ended = merge(after, [evacuation("1", "evacuated")]);
    expect(ended.get("1")?.state).toBe("evacuated");
    expect(merge(ended, [evacuation("1", "draining")])).toBe(ended);
  });

  it("are found by all words of a search, the preemptor's name among them", () => {
    const one = evacuation("1", "draining");
    expect(fits(one, "urgent", "VICTIM host-a")).toBe(true);
    expect(fits(one, "urgent", "urgent")).toBe(true);
    expect(fits(one, "urgent", "victim host-b")).toBe(false);
  });

  it("that failed have the code that their reason begins with", () => {
    expect(codeOf("EB-EVACUATION-002: the agent …")).toBe("EB-EVACUATION-002");
    expect(codeOf("deleted by its owner, not EB-EVACUATION-002")).toBe("");
  });
});
