import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open, openBrowser } from "./page";
import { Region } from "./region";

let browser: Browser;
let region: Region;

beforeAll(async () => {
  [browser, region] = await Promise.all([openBrowser(), Region.start({ story: 3 })]);
});

afterAll(async () => {
  await browser.close();
  await region.remove();
});

describe("Firefox", () => {
  it("shows the console with its policy in force", async () => {
    const { page, wrong, close } = await open(browser, region.console, {}, true);
    await page.locator('tr[data-victim="AP2"]').getByText("urgent").waitFor();
    // The driver itself may not run text as code in this page.
    await expect(page.evaluate(() => 1)).rejects.toThrow("blocked by CSP");
    await page.getByRole("link", { name: "Why was AP2 displaced?" }).click();
    await page.getByText("AP2 (paper) was displaced by urgent (science).").waitFor();
    for (const view of ["Servers", "Capacity", "Prices", "Plugins", "Replay"]) {
      await page.getByRole("link", { name: view, exact: true }).click();
      await page.locator("main table, main canvas, main h2").first().waitFor();
    }
    expect(wrong).toEqual([]);
    await close();
  });
});
