import type { Browser, Page } from "playwright-core";
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

/** Whether the page runs a script that is written into it. */
function runsInlineCode(page: Page): Promise<boolean> {
  const tried = page.evaluate(() => {
    const script = document.createElement("script");
    try {
      script.text = "window.ran = true";
      document.body.append(script);
    } catch {
      // Trusted types.
    }
    return "ran" in window;
  });
  return tried.catch((error: Error) => {
    // Releases before 153 apply the policy to the driver's own call, too.
    expect(error.message).toContain("blocked by CSP");
    return false;
  });
}

describe("Firefox", () => {
  it("shows the console with its policy in force", async () => {
    const { page, wrong, close } = await open(browser, region.console, {}, true);
    await page.locator('tr[data-victim="AP2"]').getByText("urgent").waitFor();
    await page.getByRole("link", { name: "Why was AP2 displaced?" }).click();
    await page.getByText("AP2 (paper) was displaced by urgent (science).").waitFor();
    for (const view of ["Servers", "Capacity", "Prices", "Plugins", "Replay"]) {
      await page.getByRole("link", { name: view, exact: true }).click();
      await page.locator("main table, main canvas, main h2").first().waitFor();
    }
    expect(wrong).toEqual([]);
    expect(await runsInlineCode(page)).toBe(false);
    await close();
  });
});
