import { afterEach, describe, expect, it, vi } from "vitest";
import { pages } from "../src/api/pages";
import type { Flavor, Host, Life, Server } from "../src/api/types";
import { columnsOf } from "../src/views/capacity/columns";
import {
  boundsOf,
  dayOf,
  eventsOf,
  momentOf,
  neighbour,
  sizesOf,
  staysOf,
} from "../src/views/replay/model";

const at = (hour: number): string => `2026-11-29T${String(hour).padStart(2, "0")}:00:00.000Z`;
const ms = (hour: number): number => Date.parse(at(hour));

const life = (name: string, from: number, to: number, more: Partial<Life> = {}): Life => ({
  id: `${name}.1`,
  server_id: name,
  name,
  project_id: "science",
  flavor: "small",
  preemptible: true,
  host: "a",
  zone: "nova",
  launched_at: at(from),
  ended_at: at(to),
  end: "preempted",
  ...more,
});

const server = (name: string, launched_at: string, status = "active") =>
  ({
    id: name,
    name,
    project_id: "science",
    flavor_name: "small",
    preemptible: false,
    status,
    host: "a",
    launched_at,
  }) as Server;

const host = (name: string) =>
  ({
    name,
    health: "up",
    availability_zone: "nova",
    aggregates: [],
    resources: [{ resource_class: "VCPU", capacity: "8" }],
  }) as unknown as Host;

describe("a moment of a day", () => {
  const base = columnsOf([host("a"), host("b")]);
  const sizes = sizesOf([{ name: "small", vcpus: 2, ram_mb: 1, disk_gb: 1 } as Flavor], []);
  const stays = staysOf(
    [
      life("victim", 1, 3),
      life("unknown", 1, 9, { flavor: "deleted" }),
      life("away", 1, 9, { host: "gone" }),
    ],
    [server("urgent", at(3)), server("waits", "", "waiting"), server("queued", at(1), "stopped")],
  );

  it("has the servers that ran then, in both states", () => {
    const shares = (hour: number): (number | undefined)[] => {
      const usage = momentOf(base, stays, sizes, ms(hour)).columns.classes.get("VCPU");
      return [usage?.normal[0], usage?.full[0], usage?.sold[0], usage?.full[1]];
    };
    expect(shares(0)).toEqual([0, 0, 0, 0]);
    expect(shares(1)).toEqual([0, 0.25, 0.25, 0]);
    // The victim has left when the normal server starts.
    expect(shares(3)).toEqual([0.25, 0.25, 0, 0]);
  });

  it("takes the size of a flavor from its servers, if flavors are not listed", () => {
    const one = { ...server("one", at(1)), resources: { VCPU: "4" } };
    expect(sizesOf([], [one]).get("small")?.get("VCPU")).toBe(4);
    const large = { name: "small", vcpus: 2, ram_mb: 1, disk_gb: 1 } as Flavor;
    expect(sizesOf([large], [one]).get("small")?.get("VCPU")).toBe(4);
  });

  it("counts those that the map cannot have, and names those of a host", () => {
    const moment = momentOf(base, stays, sizes, ms(2));
    expect([moment.normal, moment.preemptible, moment.unknown]).toEqual([0, 3, 2]);
    expect(moment.servers.get("a")?.map((stay) => stay.name)).toEqual(["victim"]);
  });

  it("lies between the events of the day", () => {
    const events = eventsOf(stays, [], ms(2), ms(10));
    expect(events.map((one) => [one.kind, one.at])).toEqual([
      ["end", ms(3)],
      ["start", ms(3)],
      ["end", ms(9)],
      ["end", ms(9)],
    ]);
    expect(neighbour(events, ms(3), 1)?.at).toBe(ms(9));
    expect(neighbour(events, ms(9), -1)?.at).toBe(ms(3));
    expect(neighbour(events, ms(9), 1)).toBeNull();
  });
});

describe("a day", () => {
  it("is one of the browser's time zone, and nothing else is a day", () => {
    const bounds = boundsOf("2026-11-29");
    expect(bounds?.to).toBe((bounds?.from ?? 0) + 86_400_000);
    expect(dayOf(bounds?.from ?? 0)).toBe("2026-11-29");
    for (const text of ["", "x", "2026-11", "<img>"]) expect(boundsOf(text)).toBeNull();
  });
});

describe("a list with pages", () => {
  afterEach(() => vi.unstubAllGlobals());

  const answers = (...all: unknown[]): string[] => {
    const asked: string[] = [];
    vi.stubGlobal("fetch", (path: string) => {
      asked.push(path);
      return Promise.resolve(new Response(JSON.stringify(all.shift())));
    });
    return asked;
  };

  it("is read to its end", async () => {
    const links = [{ rel: "next", href: "/v1/lives?limit=1000&marker=1" }];
    const asked = answers({ lives: [1], links }, { lives: [2] });
    expect(await pages("/v1/lives", { flavor: "" }, "lives", 10)).toEqual({
      rows: [1, 2],
      complete: true,
    });
    expect(asked).toEqual(["/v1/lives?limit=1000", "/v1/lives?limit=1000&marker=1"]);
  });

  it("says what it left out, and follows no link to elsewhere", async () => {
    const links = [{ rel: "next", href: "/v1/lives?marker=1" }];
    answers({ lives: [1, 2], links });
    expect((await pages("/v1/lives", {}, "lives", 2)).complete).toBe(false);
    const asked = answers({ lives: [1], links: [{ rel: "next", href: "//elsewhere/v1" }] });
    await pages("/v1/lives", {}, "lives", 10);
    expect(asked.length).toBe(1);
  });
});
