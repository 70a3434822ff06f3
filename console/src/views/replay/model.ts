// A day of the region, put together from what is written down: lives that are over, servers that
// run, and decisions. Sizes are those of flavors, and hosts have their present capacity.

import type { Decision, Flavor, Life, Server } from "../../api/types";
import type { Columns, Usage } from "../capacity/columns";

/** A server on a host from a time to another, in milliseconds since 1970. */
export interface Stay {
  id: string;
  name: string;
  project: string;
  flavor: string;
  preemptible: boolean;
  host: string;
  from: number;
  /** Infinity: it runs. */
  to: number;
  /** How it ended; empty: it runs. */
  end: string;
}

export type DayEvent =
  | { kind: "decision"; at: number; decision: Decision }
  | { kind: "start"; at: number; stay: Stay }
  | { kind: "end"; at: number; stay: Stay };

/** Statuses of servers that occupy a host. */
const RUNNING = new Set(["active", "evacuating", "reserved"]);

/** The stays of lives that are over and of servers that run. */
export function staysOf(lives: readonly Life[], servers: readonly Server[]): Stay[] {
  const over = lives.map((life) => ({
    id: life.id,
    name: life.name,
    project: life.project_id,
    flavor: life.flavor,
    preemptible: life.preemptible,
    host: life.host,
    from: Date.parse(life.launched_at),
    to: Date.parse(life.ended_at),
    end: life.end,
  }));
  const running = servers
    .filter((server) => RUNNING.has(server.status) && server.launched_at !== "")
    .map((server) => ({
      id: server.id,
      name: server.name,
      project: server.project_id,
      flavor: server.flavor_name,
      preemptible: server.preemptible,
      host: server.host,
      from: Date.parse(server.launched_at),
      to: Number.POSITIVE_INFINITY,
      end: "",
    }));
  return [...over, ...running];
}

/** Everything that happened in a period, in order. */
export function eventsOf(
  stays: readonly Stay[],
  decisions: readonly Decision[],
  from: number,
  to: number,
): DayEvent[] {
  const all: DayEvent[] = decisions.map((decision) => ({
    kind: "decision",
    at: Date.parse(decision.at),
    decision,
  }));
  for (const stay of stays) {
    all.push({ kind: "start", at: stay.from, stay });
    if (stay.end !== "") all.push({ kind: "end", at: stay.to, stay });
  }
  return all.filter((event) => event.at >= from && event.at < to).sort((a, b) => a.at - b.at);
}

/** Amounts by resource class. */
export type Sizes = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** The sizes of flavors: what servers of them take from a host, or else what the flavors say. */
export function sizesOf(flavors: readonly Flavor[], servers: readonly Server[]): Sizes {
  const sizes = new Map<string, ReadonlyMap<string, number>>(
    flavors.map((flavor) => [
      flavor.name,
      new Map([
        ["VCPU", flavor.vcpus],
        ["MEMORY_MB", flavor.ram_mb],
        ["DISK_GB", flavor.disk_gb],
      ]),
    ]),
  );
  for (const { flavor_name, resources } of servers) {
    const amounts = new Map(Object.entries(resources).map(([name, n]) => [name, Number(n)]));
    if (amounts.size > 0) sizes.set(flavor_name, amounts);
  }
  return sizes;
}

/** The region at a time. */
export interface Moment {
  columns: Columns;
  /** Servers that ran then, by host. */
  servers: Map<string, Stay[]>;
  normal: number;
  preemptible: number;
  /** Servers whose flavor or host does not exist any more: they are not in the map. */
  unknown: number;
}

/** The region at `at`: hosts as they are now, with the servers that ran then. */
export function momentOf(
  base: Columns,
  stays: readonly Stay[],
  sizes: Sizes,
  at: number,
): Moment {
  const columns: Columns = { ...base, classes: new Map() };
  for (const [name, usage] of base.classes) columns.classes.set(name, emptied(usage));
  const index = new Map(base.names.map((name, host) => [name, host]));
  const moment: Moment = {
    columns,
    servers: new Map(),
    normal: 0,
    preemptible: 0,
    unknown: 0,
  };
  for (const stay of stays) {
    if (stay.from > at || stay.to <= at) continue;
    if (stay.preemptible) moment.preemptible += 1;
    else moment.normal += 1;
    const host = index.get(stay.host);
    const size = sizes.get(stay.flavor);
    if (host === undefined || size === undefined) {
      moment.unknown += 1;
      continue;
    }
    const there = moment.servers.get(stay.host);
    if (there === undefined) moment.servers.set(stay.host, [stay]);
    else there.push(stay);
    for (const [name, amount] of size) add(columns.classes.get(name), host, amount, stay);
  }
  return moment;
}

function emptied(usage: Usage): Usage {
  const length = usage.capacity.length;
  return {
    capacity: usage.capacity,
    normal: new Float32Array(length),
    full: new Float32Array(length),
    sold: new Float32Array(length),
  };
}

function add(usage: Usage | undefined, host: number, amount: number, stay: Stay): void {
  const capacity = usage?.capacity[host] ?? 0;
  if (usage === undefined || !(capacity > 0)) return;
  const share = amount / capacity;
  const raise = (column: Float32Array): void => {
    column[host] = Math.min(1, (column[host] ?? 0) + share);
  };
  raise(usage.full);
  raise(stay.preemptible ? usage.sold : usage.normal);
}

/** The event before or after a time; `null` if there is none. */
export function neighbour(
  events: readonly DayEvent[],
  at: number,
  direction: -1 | 1,
): DayEvent | null {
  if (direction === 1) return events.find((event) => event.at > at) ?? null;
  return events.filter((event) => event.at < at).at(-1) ?? null;
}

/** The beginning of the day and of the next one, in the time zone of the browser. */
export function boundsOf(day: string): { from: number; to: number } | null {
  const found = /^(\d{4})-(\d\d)-(\d\d)$/.exec(day);
  if (found === null) return null;
  const [year, month, date] = found.slice(1).map(Number) as [number, number, number];
  const from = new Date(year, month - 1, date).getTime();
  const to = new Date(year, month - 1, date + 1).getTime();
  return Number.isNaN(from) ? null : { from, to };
}

/** The day of a time, as an address has it. */
export function dayOf(at: number): string {
  const date = new Date(at);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}
