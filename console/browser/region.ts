// A running region for the tests: scheduler and agents in one process.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const BIN = resolve(process.env["EBBTIDE_BIN_DIR"] ?? "../target/debug");
/** How long a region may take to answer: other tests run beside this one. */
const START_MS = 90_000;

export type Role = "operator" | "reader" | "tenant";

export interface Options {
  /**
   * Fills the region with the paper's table 5: a full cloud, one normal request, three victims with
   * so many seconds of grace.
   */
  story?: number;
  /** Callers need a token. */
  auth?: boolean;
  /** Options of `ebbtide-demo embedded`. */
  more?: string[];
  /** Past lives: a test cannot wait for the weeks that advice needs. */
  lives?: PastLife[];
}

/** A life as the database keeps it: `PastLife` in `model/src/past_life.rs`. */
export interface PastLife {
  server_id: string;
  starts: number;
  name: string;
  project_id: string;
  flavor: string;
  preemptible: boolean;
  price_per_hour: string;
  host: string;
  zone: string;
  launched_at: string;
  ended_at: string;
  end: string;
}

const WRITE_LIVES = `
import json, sqlite3, sys
from datetime import datetime
rows = []
def millis(text):
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
for life in json.load(sys.stdin):
    key = f"{life['server_id']}.{life['starts']}"
    times = (millis(life["launched_at"]), millis(life["ended_at"]))
    rows.append((key, life["project_id"], life["flavor"], *times, json.dumps(life)))
with sqlite3.connect(sys.argv[1]) as database:
    database.executemany("INSERT INTO lives VALUES (?, ?, ?, ?, ?, ?)", rows)
`;

export class Region {
  readonly dir = mkdtempSync(join(tmpdir(), "ebbtide-console-"));
  #process: ChildProcess | null = null;
  #log = "";
  #tokens = new Map<Role, string>();
  #port = 0;

  private constructor(private readonly more: string[]) {}

  /** Starts a region. */
  static async start(options: Options = {}): Promise<Region> {
    const region = new Region([]);
    region.#port = await freePort();
    if (options.story !== undefined) {
      // The story has no token, and its servers must not go to hosts without agents.
      await region.run();
      region.#story(options.story);
      await region.kill();
    }
    if (options.lives !== undefined) {
      // The first start makes the tables.
      await region.run();
      await region.kill();
      const input = JSON.stringify(options.lives);
      execFileSync("python3", ["-c", WRITE_LIVES, join(region.dir, "region.db")], { input });
    }
    region.more.push(...(options.more ?? []));
    if (options.auth === true) {
      region.more.push("--tokens", join(region.dir, "tokens.toml"));
      for (const role of ["operator", "reader", "tenant"] as const) region.#token(role);
    }
    await region.run();
    return region;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get console(): string {
    return `${this.url}/console/`;
  }

  token(role: Role): string {
    return this.#tokens.get(role) ?? "";
  }

  #token(role: Role): void {
    const project = role === "tenant" ? ["--of-project", "paper"] : [];
    const file = ["--file", join(this.dir, "tokens.toml")];
    const create = ["token", "create", "--role", role];
    const said = this.program("ebbtide-manage", ...create, ...project, ...file);
    const token = /ebt_\S+/.exec(said)?.[0];
    if (token === undefined) throw new Error(`no token in ${said}`);
    this.#tokens.set(role, token);
  }

  /** Starts the region's process, on the same port and with the same state as before. */
  async run(): Promise<void> {
    const ready = join(this.dir, "ready.json");
    rmSync(ready, { force: true });
    const listen = ["--listen", `127.0.0.1:${this.#port}`];
    const args = ["embedded", "--dir", this.dir, "--ready-file", ready, ...listen, ...this.more];
    const child = spawn(join(BIN, "ebbtide-demo"), args, { stdio: ["ignore", "pipe", "pipe"] });
    const keep = (text: Buffer): void => {
      this.#log = (this.#log + text.toString()).slice(-20_000);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    this.#process = child;
    const end = Date.now() + START_MS;
    while (!existsSync(ready) || readFileSync(ready, "utf8") === "") {
      if (child.exitCode !== null || Date.now() > end) {
        throw new Error(`the region does not start:\n${this.#log}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Ends the process at once, as a crash does. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child === null || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** A program of Ebbtide, as a person runs it. */
  program(name: string, ...args: string[]): string {
    const operator = this.token("operator");
    const token = operator === "" ? {} : { EBBTIDE_TOKEN: operator };
    return execFileSync(join(BIN, name), args, {
      encoding: "utf8",
      env: { ...process.env, ...token, EBBTIDE_ENDPOINT: this.url },
    });
  }

  #story(grace: number): void {
    this.program("ebbtide-demo", "story", "--table", "5", "--grace", String(grace));
  }

  /** A request to the REST API, as an operator. */
  async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const token = this.token("operator");
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (token !== "") headers["authorization"] = `Bearer ${token}`;
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(this.url + path, { method, headers, ...text });
    const said = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${said}`);
    return (said === "" ? undefined : JSON.parse(said)) as T;
  }

  /** A server of a project. */
  create(name: string, flavor: string, project: string, count = 1): Promise<unknown> {
    const request = { flavor, project_id: project, count };
    return this.ask("POST", "/v1/servers", { name, request });
  }

  /** A fault of a host's simulated hypervisor. */
  simulate(host: string, ...args: string[]): void {
    const dir = ["--state-dir", join(this.dir, "agents", host)];
    this.program("ebbtide-agent", "simulate", ...dir, ...args);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
