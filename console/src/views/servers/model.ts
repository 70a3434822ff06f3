// The servers that the page knows.

import type { Server } from "../../api/types";

const GONE = new Set(["deleted", "preempted"]);

/** Those whose time is running out first, then by name; those that are gone are left out. */
export function ordered(servers: Iterable<Server>): Server[] {
  const there = [...servers].filter((one) => !GONE.has(one.status));
  return there.sort((a, b) => {
    if (a.deadline_at !== b.deadline_at) {
      if (a.deadline_at === "") return 1;
      if (b.deadline_at === "") return -1;
      return Date.parse(a.deadline_at) - Date.parse(b.deadline_at);
    }
    return a.name < b.name ? -1 : a.name > b.name ? 1 : a.id < b.id ? -1 : 1;
  });
}

/** True if the owner can give the rest of the grace period back. */
export function isLeaving(server: Server): boolean {
  return server.status === "evacuating";
}

export function fits(server: Server, wanted: string): boolean {
  const all = [server.name, server.id, server.project_id, server.host, server.flavor_name];
  const text = all.join("\n").toLowerCase();
  return wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
