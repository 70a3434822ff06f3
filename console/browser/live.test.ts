import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open, openBrowser, signedIn, violations, visit } from "./page";
import { picture } from "./picture";
import { Region, type Role } from "./region";

let browser: Browser;
let region: Region;

beforeAll(async () => {
  [browser, region] = await Promise.all([openBrowser(), Region.start({ story: 4, auth: true })]);
});

afterAll(async () => {
  await browser.close();
  await region.remove();
});

const asRole = (role: Role) => signedIn(browser, region.console, region.token(role));

describe("sign in", () => {
  it("refuses a wrong token, keeps the right one for this tab only, and forgets it", async () => {
    const { page, wrong, close } = await open(browser, region.console);
    await page.getByLabel("Token").fill("not a token");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("A token has only printable characters").waitFor();
    await page.getByLabel("Token").fill("ebt_000000000000_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("The scheduler does not accept this token.").waitFor();
    expect(await violations(page)).toEqual([]);

    const token = region.token("operator");
    const addresses: string[] = [];
    page.on("request", (request) => addresses.push(request.url()));
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator("tr[data-victim]").first().waitFor();
    await page.locator(".pulse.live").waitFor();
    expect(addresses.filter((one) => one.includes("ebt_"))).toEqual([]);
    expect(page.url()).not.toContain("ebt_");
    const elsewhere = () => JSON.stringify({ ...localStorage }) + document.cookie;
    expect(await page.evaluate(elsewhere)).toBe("{}");

    // It outlives a reload, and no other tab has it.
    await page.reload();
    await page.locator("tr[data-victim]").first().waitFor();
    const other = await page.context().newPage();
    await other.goto(region.console);
    await other.getByLabel("Token").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain("ebt_");
    expect(wrong).toEqual([]);
    await close();
  });

  it("shows a tenant what is its own, and a reader everything", async () => {
    const tenant = await asRole("tenant");
    const row = tenant.page.locator('tr[data-victim="AP2"]');
    await row.waitFor();
    // Who displaced it is another tenant's business.
    expect(await tenant.page.locator("main").innerText()).not.toMatch(/urgent|science/);
    expect(await tenant.page.getByRole("link", { name: "Capacity" }).count()).toBe(0);
    await visit(tenant.page, `${region.console}#/capacity`);
    await tenant.page.getByRole("heading", { name: "Evacuations" }).waitFor();
    expect(tenant.wrong).toEqual([]);
    await tenant.close();
    const reader = await asRole("reader");
    await reader.page.getByText("urgent").first().waitFor();
    await reader.page.getByRole("link", { name: "Capacity" }).click();
    await reader.page.getByRole("application").waitFor();
    await reader.close();
  });
});

describe("a preemption", () => {
  it("appears while it happens, with its countdown, and then as ended", async () => {
    const { page, wrong, close } = await asRole("operator");
    await page.locator(".pulse.live").waitFor();
    await region.create("second", "large", "science");
    const row = page.locator('.group.active tr[data-victim="CP1"]');
    await row.waitFor();
    await row.getByText(/\d s left/).waitFor();
    await row.getByText("second").waitFor();
    await picture(page, "evacuations");
    const first = await row.locator(".countdown").innerText();
    await page.waitForFunction(
      (before) => document.querySelector(".group.active .countdown")?.textContent !== before,
      first,
    );
    await page.locator('.group.ended tr[data-victim="CP1"]').waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  it("that fails stands on top, with the next step", async () => {
    // Which host has the cheapest victim depends on the minute.
    const hosts = ["host-A", "host-B", "host-C"];
    for (const host of hosts) {
      region.simulate(host, "fail", "--action", "terminate", "--times", "100");
    }
    const { page, wrong, close } = await asRole("operator");
    await page.locator(".pulse.live").waitFor();
    await region.create("third", "large", "science");
    const row = page.locator(".group.failed tr[data-victim]").first();
    await row.waitFor({ timeout: 50_000 });
    const text = await row.innerText();
    expect(text).toContain("EB-EVACUATION-006");
    expect(text).toContain("Next step: Read the message of the agent.");
    await picture(page, "failed");
    for (const host of hosts) region.simulate(host, "clear");
    expect(await violations(page)).toEqual([]);
    expect(wrong).toEqual([]);
    await close();
  });
});

describe("a tenant", () => {
  it("sees the countdown of its server, releases it early, and asks for advice", async () => {
    const specs = { "ebbtide:preemptible": "true", "ebbtide:grace_seconds": "300" };
    const size = { vcpus: 1, ram_mb: 2000, disk_gb: 20 };
    const flavor = { name: "p.slow", ...size, extra_specs: specs };
    await region.ask("POST", "/v1/flavors", flavor);
    await region.create("slow", "p.slow", "paper");
    const { page, wrong, close } = await asRole("tenant");
    await page.getByRole("link", { name: "Servers" }).click();
    const row = page.locator('tr[data-server="slow"]');
    await page.locator('tr[data-server="slow"][data-status="active"]').waitFor();
    const { server } = await region.ask<{ server: { host: string } }>("GET", "/v1/servers/slow");
    const terms = { owner: "test", reason: "maintenance" };
    await region.ask("POST", `/v1/hosts/${server.host}/reclaim`, terms);
    await row.getByText(/[45] min \d+ s left/).waitFor();
    await row.getByRole("button", { name: "Release early: slow" }).click();
    expect(await violations(page)).toEqual([]);
    await row.getByRole("button", { name: "Release slow now" }).click();
    await row.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Advice: how long a server of" }).first().click();
    await page.getByText(/From \d+ lives/).waitFor();
    expect(await page.locator("main").innerText()).not.toContain("science");
    expect(wrong).toEqual([]);
    await close();
    await region.ask("POST", `/v1/hosts/${server.host}/return`, {});
  });
});

describe("a scheduler that is killed", () => {
  it("is missed at once, and the page goes on by itself when another one answers", async () => {
    const { page, close } = await asRole("operator");
    await page.locator("tr[data-victim]").first().waitFor();
    await page.locator(".pulse.live").waitFor();
    await region.kill();
    await page.getByText(/The scheduler does not answer since \d\d:\d\d:\d\d\./).waitFor();
    await picture(page, "lost");
    // What was known stays on the page.
    expect(await page.locator("tr[data-victim]").count()).toBeGreaterThan(3);
    await region.run();
    await page.getByText("The scheduler answers again.").waitFor();
    await page.locator(".pulse.live").waitFor();
    await region.ask("DELETE", "/v1/servers/urgent");
    await page.getByRole("link", { name: "Capacity" }).click();
    await page.getByRole("application").waitFor();
    await close();
  });
});
