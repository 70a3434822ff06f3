import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open, openBrowser } from "./page";
import { Region } from "./region";

let browser: Browser;
let region: Region;
let stranger: Server;
let elsewhere: string;

beforeAll(async () => {
  // Without authentication: the browser's rules are all that is between the region and any page.
  [browser, region] = await Promise.all([openBrowser(), Region.start()]);
  stranger = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html");
    answer.end("<!doctype html><title>elsewhere</title><h1>elsewhere</h1>");
  });
  await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
  // Another name of this machine is another site.
  elsewhere = `http://localhost:${(stranger.address() as AddressInfo).port}/`;
});

afterAll(async () => {
  await browser.close();
  stranger.close();
  await region.remove();
});

async function health(): Promise<string> {
  const { host } = await region.ask<{ host: { health: string } }>("GET", "/v1/hosts/host-A");
  return host.health;
}

describe("a page of another origin", () => {
  it("changes nothing in the region and reads nothing", async () => {
    const { page, close } = await open(browser, elsewhere, {}, true);
    const tries = await page.evaluate(async (url) => {
      const path = `${url}/v1/hosts/host-A/disable`;
      const body = JSON.stringify({ reason: "from elsewhere" });
      const outcome = (one: Promise<Response>): Promise<string> =>
        one.then(
          (answer) => `${answer.type} ${answer.status}`,
          () => "refused by the browser",
        );
      const json = { "content-type": "application/json" };
      return Promise.all([
        outcome(fetch(path, { method: "POST", body, mode: "no-cors" })),
        outcome(fetch(path, { method: "POST", body, headers: json })),
        outcome(fetch(`${url}/v1/hosts`)),
        outcome(fetch(`${url}/console/`)),
      ]);
    }, region.url);
    expect(tries).toEqual([
      "opaque 0",
      "refused by the browser",
      "refused by the browser",
      "refused by the browser",
    ]);
    expect(await health()).toBe("up");

    // A form needs no permission to send.
    const answered = page.waitForResponse((one) => one.request().method() === "POST");
    await page.evaluate((url) => {
      const form = document.createElement("form");
      form.method = "post";
      form.enctype = "text/plain";
      form.action = `${url}/v1/hosts/host-A/disable`;
      const field = document.createElement("input");
      field.name = '{"reason":"form","x":"';
      field.value = '"}';
      form.append(field);
      document.body.append(form);
      form.submit();
    }, region.url);
    expect((await answered).status()).toBe(403);
    expect(await health()).toBe("up");
    await close();
  });
});
