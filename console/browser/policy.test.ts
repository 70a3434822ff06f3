// What Chromium says about the Content-Security-Policy: drivers of Firefox hear of no breach.

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

describe("the policy of the page", () => {
  it("cannot show the console in a frame", async () => {
    const { page, close } = await open(browser, stranger.url);
    const refused = page.waitForEvent("console", (said) => said.text().includes("frame-ancestors"));
    await page.evaluate((url) => {
      const frame = document.createElement("iframe");
      frame.src = url;
      document.body.append(frame);
    }, region.console);
    await refused;
    await close();
  });
  it("cannot load from elsewhere, run inline code, or turn text into markup", async () => {
    const { page, close } = await open(browser, region.console);
    await page.locator("h1").waitFor();
    const tries = await page.evaluate(async (other) => {
      const done: string[] = [];
      await fetch(other).then(
        () => done.push("fetched"),
        () => undefined,
      );
      const script = document.createElement("script");
      try {
        script.text = "window.ran = true";
        document.body.append(script);
      } catch {
        // Trusted types.
      }
      if ("ran" in window) done.push("ran inline code");
      try {
        document.body.innerHTML = "<b>markup</b>";
        done.push("markup");
      } catch {
        // Trusted types.
      }
      return done;
    }, stranger.url);
    expect(tries).toEqual([]);
    await close();
  });
});
