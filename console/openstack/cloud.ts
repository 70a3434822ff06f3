// A real OpenStack for the tests, by the APIs of Keystone and Nova: `./devstack/openstack up` and
// its openrc.

import { execFileSync } from "node:child_process";

/** Time that a server or an evacuation may take, in milliseconds. */
const PATIENCE_MS = 120_000;

interface Token {
  token: string;
  projectId: string;
  catalog: { type: string; endpoints: { interface: string; url: string }[] }[];
}

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`${name} is not set: source openrc`);
  return value;
}

/** Waits until `look` answers something. */
export async function eventually<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (Date.now() > end) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** The only scheduler of the cloud, by its name among the processes of `./devstack/openstack`. */
const SCHEDULER = "ebbtide-scheduler-1";

function stack(...command: string[]): void {
  execFileSync("../devstack/openstack", ["run", ...command], { stdio: "inherit" });
}

/** Ends the scheduler at once, as a crash does. */
export function killScheduler(): void {
  stack("stack_kill", SCHEDULER);
}

/** Starts the scheduler again, with the command of its last start. */
export function runScheduler(): void {
  stack("stack_start_again", SCHEDULER);
}

/** A user of a project, with a token. */
export class User {
  private constructor(readonly access: Token) {}

  /** Signs in as a user of the domain of openrc; without names as its administrator. */
  static async signIn(
    name = setting("OS_USERNAME"),
    password = setting("OS_PASSWORD"),
    project = setting("OS_PROJECT_NAME"),
  ): Promise<User> {
    const domain = { name: setting("OS_USER_DOMAIN_NAME") };
    const identity = { methods: ["password"], password: { user: { name, password, domain } } };
    const scope = { project: { name: project, domain } };
    const answer = await fetch(`${setting("OS_AUTH_URL")}/auth/tokens`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ auth: { identity, scope } }),
    });
    if (!answer.ok) throw new Error(`Keystone: ${answer.status} ${await answer.text()}`);
    const token = answer.headers.get("x-subject-token") ?? "";
    const said = (await answer.json()) as {
      token: { catalog: Token["catalog"]; project: { id: string } };
    };
    return new User({ token, catalog: said.token.catalog, projectId: said.token.project.id });
  }

  /** The public address of a service by its type. */
  url(type: string): string {
    const service = this.access.catalog.find((one) => one.type === type);
    const endpoint = service?.endpoints.find((one) => one.interface === "public");
    if (endpoint === undefined) throw new Error(`no ${type} in the catalog`);
    return endpoint.url.replace(/\/$/, "");
  }

  /** A request with the user's token; `null` if what it is about does not exist. */
  async ask<T>(type: string, method: string, path: string, body?: unknown): Promise<T | null> {
    const answer = await fetch(this.url(type) + path, {
      method,
      headers: {
        "content-type": "application/json",
        "x-auth-token": this.access.token,
        "openstack-api-version": "compute 2.90",
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const said = await answer.text();
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${said}`);
    return (said === "" ? {} : JSON.parse(said)) as T;
  }

  /** Boots a server and returns its id. */
  async boot(name: string, flavor: string): Promise<string> {
    const images = await this.ask<{ images: { id: string }[] }>("image", "GET", "/v2/images");
    const flavors = await this.ask<{ flavors: { id: string; name: string }[] }>(
      "compute",
      "GET",
      "/flavors",
    );
    const imageRef = images?.images[0]?.id;
    const flavorRef = flavors?.flavors.find((one) => one.name === flavor)?.id;
    const server = { name, imageRef, flavorRef, networks: "none" };
    const made = await this.ask<{ server: { id: string } }>("compute", "POST", "/servers", {
      server,
    });
    if (made === null) throw new Error(`no server ${name}`);
    return made.server.id;
  }

  /** Waits until a server runs. */
  async active(id: string): Promise<void> {
    await eventually(`server ${id} is active`, async () => {
      const found = await this.ask<{ server: { status: string } }>(
        "compute",
        "GET",
        `/servers/${id}`,
      );
      if (found?.server.status === "ERROR") throw new Error(`server ${id} is in error`);
      return found?.server.status === "ACTIVE" ? true : null;
    });
  }

  /** Deletes a server and waits until it is gone. */
  async delete(id: string): Promise<void> {
    await this.ask("compute", "DELETE", `/servers/${id}`);
    await eventually(`server ${id} is gone`, async () =>
      (await this.ask("compute", "GET", `/servers/${id}`)) === null ? true : null,
    );
  }
}

/** A tenant of a project of its own, which `remove` removes. */
export async function newTenant(
  admin: User,
  name: string,
): Promise<{ tenant: User; password: string; remove: () => Promise<void> }> {
  const make = async (path: string, kind: string, body: Record<string, unknown>) => {
    const made = await admin.ask<Record<string, { id: string }>>("identity", "POST", path, {
      [kind]: { name, ...body },
    });
    return made?.[kind]?.id ?? "";
  };
  const project = await make("/projects", "project", {});
  const password = `${name}-${Math.random()}`;
  const user = await make("/users", "user", { password });
  const roles = await admin.ask<{ roles: { id: string }[] }>(
    "identity",
    "GET",
    "/roles?name=member",
  );
  const role = roles?.roles[0]?.id ?? "";
  await admin.ask("identity", "PUT", `/projects/${project}/users/${user}/roles/${role}`);
  return {
    tenant: await User.signIn(name, password, name),
    password,
    remove: async () => {
      await admin.ask("identity", "DELETE", `/users/${user}`);
      await admin.ask("identity", "DELETE", `/projects/${project}`);
    },
  };
}
