// Hosts as columns of numbers: what the map paints, without an object for each host and frame.

import type { Host } from "../../api/types";

export interface Columns {
  names: string[];
  zones: string[];
  aggregates: string[][];
  /** 1 for hosts that are up. */
  up: Uint8Array;
  /** By resource class. */
  classes: Map<string, Usage>;
}

/** Shares of capacity from 0 to 1, and totals, of one resource class. */
export interface Usage {
  capacity: Float64Array;
  /** Used by normal servers: h_n. */
  normal: Float32Array;
  /** Used by all servers: h_f. */
  full: Float32Array;
  /** Used by preemptible servers, those on their way out, too. */
  sold: Float32Array;
}

export function columnsOf(hosts: readonly Host[]): Columns {
  const columns: Columns = {
    names: hosts.map((host) => host.name),
    zones: hosts.map((host) => host.availability_zone),
    aggregates: hosts.map((host) => host.aggregates),
    up: Uint8Array.from(hosts, (host) => (host.health === "up" ? 1 : 0)),
    classes: new Map(),
  };
  hosts.forEach((host, index) => {
    for (const one of host.resources) {
      const capacity = Number(one.capacity);
      if (!(capacity > 0)) continue;
      const usage = usageOf(columns, one.resource_class, hosts.length);
      usage.capacity[index] = capacity;
      usage.normal[index] = clamp(Number(one.normal) / capacity);
      // Not the sum of the parts: while victims leave, their preemptor has the same capacity.
      usage.full[index] = clamp(1 - Number(one.free_full) / capacity);
      usage.sold[index] = clamp((Number(one.preemptible) + Number(one.leaving)) / capacity);
    }
  });
  return columns;
}

function usageOf(columns: Columns, name: string, length: number): Usage {
  const known = columns.classes.get(name);
  if (known !== undefined) return known;
  const made: Usage = {
    capacity: new Float64Array(length),
    normal: new Float32Array(length),
    full: new Float32Array(length),
    sold: new Float32Array(length),
  };
  columns.classes.set(name, made);
  return made;
}

function clamp(share: number): number {
  return Math.min(1, Math.max(0, share));
}

export type Grouping = "zone" | "aggregate" | "none";

export interface Group {
  name: string;
  hosts: number[];
}

/** The hosts in groups by name. A host of several aggregates is in each of them. */
export function groupsOf(columns: Columns, by: Grouping, without: string): Group[] {
  const groups = new Map<string, number[]>();
  const add = (name: string, host: number): void => {
    const hosts = groups.get(name);
    if (hosts === undefined) groups.set(name, [host]);
    else hosts.push(host);
  };
  columns.names.forEach((_, host) => {
    if (by === "none") add("", host);
    else if (by === "zone") add(columns.zones[host] ?? "", host);
    else {
      const all = columns.aggregates[host] ?? [];
      if (all.length === 0) add(without, host);
      for (const name of all) add(name, host);
    }
  });
  return [...groups]
    .map(([name, hosts]) => ({ name, hosts }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export interface Totals {
  capacity: number;
  normal: number;
  full: number;
  sold: number;
}

/** Sums of a group, in the unit of the resource class. */
export function totalsOf(usage: Usage, hosts: readonly number[]): Totals {
  const totals = { capacity: 0, normal: 0, full: 0, sold: 0 };
  for (const host of hosts) {
    const capacity = usage.capacity[host] ?? 0;
    totals.capacity += capacity;
    totals.normal += capacity * (usage.normal[host] ?? 0);
    totals.full += capacity * (usage.full[host] ?? 0);
    totals.sold += capacity * (usage.sold[host] ?? 0);
  }
  return totals;
}
