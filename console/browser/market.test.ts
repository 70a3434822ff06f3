import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openBrowser, signedIn, violations } from "./page";
import { picture } from "./picture";
import { type PastLife, Region, type Role } from "./region";

const HOUR_MS = 3_600_000;
const MARKUP = `<img src=x onerror="alert('left')">`;

let browser: Browser;
let region: Region;

/**
 * 240 lives of four projects over three weeks, exponentially distributed with 5 hours on average.
 * A sixth of them ended by their owners.
 */
function pastLives(): PastLife[] {
  const now = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  const at = (hours: number): string => new Date(now - Math.round(hours * HOUR_MS)).toISOString();
  return Array.from({ length: 240 }, (_, n) => {
    const quantile = (((n * 77) % 240) + 0.5) / 240;
    const hours = Math.min(23, -Math.log(1 - quantile) * 5);
    const ago = 2 + n * 2;
    return {
      server_id: `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`,
      starts: 1,
      name: n === 0 ? MARKUP : `past-${n}`,
      project_id: ["art", "biology", "chemistry", "paper"][n % 4] ?? "art",
      flavor: "spot",
      preemptible: true,
      price_per_hour: "0.04",
      host: "host-A",
      zone: "nova",
      launched_at: at(ago + hours),
      ended_at: at(ago),
      end: n % 6 === 5 ? "deleted" : "preempted",
    };
  });
}

beforeAll(async () => {
  const more = ["--market", "1"];
  const started = Region.start({ auth: true, more, lives: pastLives() });
  [browser, region] = await Promise.all([openBrowser(), started]);
  const size = { vcpus: 2, ram_mb: 2000, disk_gb: 20 };
  const extra_specs = {
    "ebbtide:preemptible": "true",
    "ebbtide:grace_seconds": "1",
    "ebbtide:price_per_hour": "0.04",
  };
  await region.ask("POST", "/v1/flavors", { name: "spot", ...size, extra_specs });
  await region.ask("POST", "/v1/flavors", { name: "whole", vcpus: 8, ram_mb: 8000, disk_gb: 80 });
  await region.create("rented", "spot", "paper", 8);
});

afterAll(async () => {
  await browser.close();
  await region.remove();
});

const asRole = (role: Role, view: string) =>
  signedIn(browser, `${region.console}#/${view}`, region.token(role));

interface Total {
  charged: string;
}

interface Hour {
  charge: string;
}

describe("prices", () => {
  it("have a history, with those who had to leave and why", async () => {
    // Demand raises the price, and the normal server makes some of the others leave.
    await region.create("urgent", "whole", "science");
    const { page, wrong, close } = await asRole("operator", "prices");
    await page.getByRole("link", { name: "spot" }).click();
    await page.getByText("Advice and reality agree.").waitFor();
    const chart = page.getByRole("img", { name: /^Price of spot: \d+ prices/ });
    await chart.waitFor();
    expect(await chart.locator("circle").count()).toBeGreaterThan(5);
    const row = page.locator("tr[data-left]").first();
    expect(await row.innerText()).toContain("displaced by a normal request");
    // Names are text, in the table and in the picture.
    await page.locator("tr[data-left]").getByText(MARKUP).waitFor();
    expect(await page.locator("main img, main script").count()).toBe(0);
    await page.getByText("The same as a table").click();
    expect(await page.locator("details li").count()).toBeGreaterThan(1);
    await page.getByText("The same as a table").click();
    expect(await violations(page)).toEqual([]);
    await picture(page, "prices");
    await page.getByLabel("Period").selectOption("1");
    await page.getByRole("img", { name: /^Price of spot/ }).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  it("stand beside what advice told before, and what happened", async () => {
    const { page, close } = await asRole("operator", "prices/spot");
    const table = page.getByRole("table", { name: "Was the advice right?" });
    await table.waitFor();
    const row = table.locator("tbody tr").first();
    expect(await row.innerText()).toMatch(/\d+%[\s\S]*\d+% \(\d+% to \d+%\)/);
    await close();
  });

  it("make bills, which are those of the command line", async () => {
    const { page, wrong, close } = await asRole("operator", "prices");
    await page.getByLabel("From").fill("2020-01-01");
    await page.getByRole("table", { name: "Bills" }).waitFor();
    const args = ["billing", "total", "--all-projects", "--from", "2020-01-01", "-o", "json"];
    const totals = JSON.parse(region.program("ebbtide", ...args)) as Total[];
    const micros = totals.reduce((sum, one) => sum + Math.round(Number(one.charged) * 1e6), 0);
    const format = { minimumFractionDigits: 2, maximumFractionDigits: 6 };
    const sum = new Intl.NumberFormat("en", format).format(micros / 1e6);
    await page.getByText(`Sum: ${sum}`).waitFor();
    expect(await page.locator("table.bills tbody tr").count()).toBe(totals.length);
    expect(micros).toBeGreaterThan(0);

    await page.getByText("Hour by hour").click();
    const rows = page.locator("table.hours tbody tr");
    await rows.first().waitFor();
    const list = ["billing", "hours", "--all-projects", "--from", "2020-01-01", "-o", "json"];
    const hours = JSON.parse(region.program("ebbtide", ...list)) as Hour[];
    expect(await rows.count()).toBe(Math.min(hours.length, 200));
    const charges = await rows.evaluateAll((all) => all.map((row) => row.dataset["charge"]));
    expect(charges).toEqual(hours.slice(0, 200).map((one) => one.charge));
    expect(new Set(charges)).toContain("full");
    expect(wrong).toEqual([]);
    await close();
  });
});

describe("a tenant", () => {
  it("has prices and advice beside its servers, and its own bills only", async () => {
    const { page, wrong, close } = await asRole("tenant", "servers");
    const row = page.locator("tr[data-server]").first();
    await row.getByText(/lives [\d.]+ h on average/).waitFor();
    expect(await row.innerText()).toMatch(/0\.0\d+/);
    await picture(page, "tenant");
    await page.getByRole("link", { name: "Prices" }).click();
    await page.getByLabel("From").fill("2020-01-01");
    await page.getByRole("table", { name: "Bills" }).waitFor();
    await page.getByRole("link", { name: "spot" }).click();
    await page.locator("tr[data-left]").first().waitFor();
    const text = await page.locator("main").innerText();
    expect(text).toContain("paper");
    expect(text).not.toMatch(/art|biology|chemistry|science|urgent/);
    for (const view of ["Plugins", "Replay", "Capacity"]) {
      expect(await page.getByRole("link", { name: view }).count()).toBe(0);
    }
    expect(await violations(page)).toEqual([]);
    expect(wrong).toEqual([]);
    await close();
  });
});

describe("plugins", () => {
  it("in shadow show where they differ, and decide only once they are in use", async () => {
    const file = "../weighers/wasm/tests/fixtures/weigher-1.0.wasm";
    const added = ["plugin", "add", "trial", "--file", file, "--shadow", "--multiplier=-1000"];
    region.program("ebbtide", ...added);
    const { page, wrong, close } = await asRole("operator", "plugins");
    const row = page.locator('tr[data-plugin="trial"]');
    await row.getByText("in shadow").waitFor();
    for (const name of ["first", "second", "third"]) await region.create(name, "spot", "paper");
    const again = page.getByRole("button", { name: "Read again" });
    await again.click();
    await page.getByText(/\d of 3 decisions would have been others/).waitFor();
    expect(await violations(page)).toEqual([]);
    await picture(page, "plugins");
    region.program("ebbtide", "plugin", "enable", "trial");
    await again.click();
    await row.getByText("in use", { exact: true }).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });
});
