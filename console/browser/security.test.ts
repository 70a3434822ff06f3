import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open, openBrowser } from "./page";
import { Region } from "./region";
import { openStranger, type Stranger } from "./stranger";

let browser: Browser;
let region: Region;
let stranger: Stranger;

beforeAll(async () => {
  // Without authentication: the browser's rules are all that is between the region and any page.
  [browser, region, stranger] = await Promise.all([openBrowser(), Region.start(), openStranger()]);
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
    const { page, close } = await open(browser, stranger.url, {}, true);
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
