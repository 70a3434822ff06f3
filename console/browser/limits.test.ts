// A page that asks more than its caller may, in the browser: the default limits of a region.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open, openBrowser, signedIn, type Watched } from "./page";
import { Region, type Role } from "./region";

/** `limits.tenant_requests_per_second`, `limits.tenant_burst` and `limits.tenant_watchers`. */
const RATE = 50;
const BURST = 200;
const STREAMS = 10;
/** Requests of a page that is out of hand, and what each is counted as. */
const FLOOD = 60;
const SERVERS = 100;
/** Streams of one page: without TLS a browser has six connections to a server. */
const STREAMS_OF_PAGE = 4;

let browser: Browser;
let region: Region;

beforeAll(async () => {
  [browser, region] = await Promise.all([openBrowser(), Region.start({ auth: true })]);
  const flavor = { name: "small", vcpus: 1, ram_mb: 64, disk_gb: 0 };
  await region.ask("POST", "/v1/flavors", flavor);
});

afterAll(async () => {
  await browser.close();
  await region.remove();
});

describe("limits", () => {
  it("refuse a tenant's flood, but no operator, and no page afterwards", async () => {
    const asRole = (role: Role) => signedIn(browser, region.console, region.token(role));
    const { page, wrong, close } = await asRole("tenant");
    const operator = await asRole("operator");
    const flood = page.evaluate(
      async ({ token, flood, servers }) => {
        const counts: Record<string, number> = {};
        let waits = 0;
        const began = performance.now();
        const headers = {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
        };
        const request = { flavor: "small", count: servers };
        const one = async (): Promise<void> => {
          const body = JSON.stringify({ request });
          const answer = await fetch("/v1/what-if", { method: "POST", headers, body });
          counts[answer.status] = (counts[answer.status] ?? 0) + 1;
          if (answer.headers.get("retry-after") !== null) waits += 1;
          await answer.arrayBuffer();
        };
        await Promise.all(Array.from({ length: flood }, one));
        return { counts, waits, seconds: (performance.now() - began) / 1000 };
      },
      { token: region.token("tenant"), flood: FLOOD, servers: SERVERS },
    );
    // Another caller is answered meanwhile.
    await operator.page.getByRole("link", { name: "Capacity" }).click();
    await operator.page.getByRole("application").waitFor();
    const { counts, waits, seconds } = await flood;
    expect(Object.keys(counts).sort()).toEqual(["200", "429"]);
    expect(waits).toBe(counts["429"]);
    const allowed = (BURST + RATE * seconds) / SERVERS;
    expect(counts["200"]).toBeLessThanOrEqual(Math.ceil(allowed));
    console.log(`${FLOOD} requests in ${seconds.toFixed(1)} s: ${JSON.stringify(counts)}`);
    // The page says what is the matter, or has its answer already, and recovers.
    await page.getByRole("link", { name: "Servers", exact: true }).click();
    await page.getByRole("heading", { name: "Servers" }).waitFor();
    const again = page.getByRole("alert").getByRole("button");
    const answered = page.locator("main").getByText("There is no such server.");
    await answered.or(again).first().waitFor();
    while (await again.isVisible()) await again.click();
    await answered.waitFor();
    expect([...wrong, ...operator.wrong]).toEqual([]);
    await close();
    await operator.close();
  });

  it("give a tenant so many streams, and a page that has none goes on when one is free", async () => {
    const token = region.token("tenant");
    const pages: Watched[] = [];
    let streams = 0;
    while (streams < STREAMS) {
      const opened = await open(browser, region.console);
      pages.push(opened);
      const wanted = Math.min(STREAMS_OF_PAGE, STREAMS - streams);
      const statuses = await opened.page.evaluate(
        async ({ token, wanted }) => {
          const stream = async (): Promise<number> => {
            const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" };
            const answer = await fetch("/v1/events", { headers });
            // Kept, so that the connection stays.
            Object.assign(window, { [`stream${performance.now()}`]: answer });
            return answer.status;
          };
          return Promise.all(Array.from({ length: wanted }, stream));
        },
        { token, wanted },
      );
      expect(statuses).toEqual(Array.from({ length: wanted }, () => 200));
      streams += wanted;
    }
    const late = await signedIn(browser, region.console, token);
    await late.page.locator(".banner.bad").waitFor();
    // What needs no stream works.
    await late.page.getByRole("link", { name: "Servers", exact: true }).click();
    await late.page.getByRole("heading", { name: "Servers" }).waitFor();
    await pages[0]?.close();
    await late.page.locator(".pulse.live").waitFor();
    expect(late.wrong).toEqual([]);
    await Promise.all([late, ...pages.slice(1)].map((one) => one.close()));
  });
});
