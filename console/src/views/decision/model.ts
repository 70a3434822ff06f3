// What a decision's explanation says, in the order in which a reader asks for it.

import type { Decision, FilterStep, InstanceExplanation, RankedHost } from "../../api/types";
import { byClass } from "../../parts/resources";

/** A filter that dropped hosts, or several in a row that dropped none. */
export type Step =
  | { kind: "drop"; step: FilterStep }
  | { kind: "same"; filters: string[]; hosts: number };

/** The filters as steps of the picture. */
export function stepsOf(filters: readonly FilterStep[]): Step[] {
  const steps: Step[] = [];
  for (const step of filters) {
    const last = steps.at(-1);
    if (step.before !== step.after) steps.push({ kind: "drop", step });
    else if (last?.kind === "same") last.filters.push(step.filter);
    else steps.push({ kind: "same", filters: [step.filter], hosts: step.after });
  }
  return steps;
}

/** Hosts before the first filter. */
export function hostsIn(instance: InstanceExplanation): number {
  return instance.filters[0]?.before ?? instance.ranked;
}

/** The chosen host first, then the others in their order. */
export function ranked(instance: InstanceExplanation): RankedHost[] {
  const chosen = instance.ranking.filter((host) => host.chosen);
  return [...chosen, ...instance.ranking.filter((host) => !host.chosen)];
}

/** What a resource class lacks, over all hosts that were dropped for it. */
export interface Missing {
  resource: string;
  needs: number;
  /** The most that a dropped host has free. */
  free: number;
  /** How many hosts lack it. */
  hosts: number;
}

const SHORTAGE = /([A-Z][A-Z0-9_]*): needs (\d+), (-?\d+) of (\d+) free/g;

/**
 * The resource classes that hosts lacked, those that most hosts lacked first. The reasons of a
 * capacity filter name them; other reasons have none.
 */
export function missing(decision: Decision): Missing[] {
  const found = new Map<string, Missing>();
  const instances = decision.explanation?.instances ?? [];
  // The last instance is the one for which there was no host.
  for (const step of instances.at(-1)?.filters ?? []) {
    for (const { reason } of step.dropped) {
      for (const [, resource = "", needs, free] of reason.matchAll(SHORTAGE)) {
        const known = found.get(resource);
        const there = Number(free);
        if (known === undefined) {
          found.set(resource, { resource, needs: Number(needs), free: there, hosts: 1 });
        } else {
          known.hosts += 1;
          known.free = Math.max(known.free, there);
        }
      }
    }
  }
  return [...found.values()].sort(
    (a, b) => b.hosts - a.hosts || byClass(a.resource, b.resource),
  );
}

/** The hosts on which servers were placed, each once. */
export function placedOn(decision: Decision): string[] {
  return [...new Set(decision.placements.map((placement) => placement.host))];
}

/** All victims of a decision. */
export function victimsOf(decision: Decision) {
  return decision.placements.flatMap((placement) => placement.victims);
}

/** The host of a victim, and what its set costs there. */
export function fateOf(decision: Decision, victim: string): { host: string; cost: number } | null {
  const placement = decision.placements.find((one) =>
    one.victims.some((each) => each.server_id === victim),
  );
  if (placement === undefined) return null;
  const cost = placement.victims.reduce((sum, each) => sum + each.cost, 0);
  return { host: placement.host, cost };
}
