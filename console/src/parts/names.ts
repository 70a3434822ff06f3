// Names of servers, which other documents have only the ids of.

import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client";
import type { Server } from "../api/types";

export interface Named {
  name: string;
  project: string;
}

/** Most requests for names at the same time: browsers have six connections to a server. */
const AT_ONCE = 3;

export class Names {
  #known = new Map<string, Named>();
  #asked = new Set<string>();
  #waiting: string[] = [];
  #running = 0;
  #listeners = new Set<() => void>();

  constructor(private readonly read = readServer) {}

  /** The name, if it is known; else it is read, and listeners hear of it. */
  of(id: string): Named | null {
    if (id === "") return null;
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    if (!this.#asked.has(id)) {
      this.#asked.add(id);
      this.#waiting.push(id);
      this.#next();
    }
    return null;
  }

  /** Learns from an event or a list. */
  learn(server: { id: string; name: string; project_id: string }): void {
    if (server.id === "" || server.name === "") return;
    this.#known.set(server.id, { name: server.name, project: server.project_id });
    this.#asked.add(server.id);
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #next(): void {
    while (this.#running < AT_ONCE) {
      const id = this.#waiting.shift();
      if (id === undefined) return;
      this.#running += 1;
      this.read(id)
        .then((server) => this.learn(server))
        // A server that is forgotten, or another tenant's, stays without a name.
        .catch(() => undefined)
        .finally(() => {
          this.#running -= 1;
          for (const listener of this.#listeners) listener();
          this.#next();
        });
    }
  }
}

async function readServer(id: string): Promise<Server> {
  const answer = await get<{ server: Server }>(`/v1/servers/${encodeURIComponent(id)}`);
  return answer.server;
}

/** The names of this page. */
export const names = new Names();

/** Renders again when a name becomes known. */
export function useNames(): Names {
  const [, setTurn] = useState(0);
  useEffect(() => names.listen(() => setTurn((turn) => turn + 1)), []);
  return names;
}
