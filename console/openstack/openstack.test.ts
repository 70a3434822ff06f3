import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Host } from "../src/api/types";
import { open, openBrowser, signedIn, violations } from "../browser/page";
import { eventually, killScheduler, newTenant, runScheduler, User } from "./cloud";

/** Free processors of a host that a preemptible server of the story takes. */
const VCPUS = 4;
const STAMP = Date.now().toString(36);

let browser: Browser;
let admin: User;
let tenant: User;
let remove: () => Promise<void>;
let console_: string;
const servers: string[] = [];

beforeAll(async () => {
  [browser, admin] = await Promise.all([openBrowser(), User.signIn()]);
  ({ tenant, remove } = await newTenant(admin, `console-${STAMP}`));
  console_ = `${admin.url("preemption")}/console/`;
  const { hosts } = await api<{ hosts: Host[] }>("/v1/hosts");
  const free = hosts.reduce((sum, host) => {
    const vcpus = host.resources.find((one) => one.resource_class === "VCPU");
    return sum + Math.floor(Number(vcpus?.free_full ?? 0) / VCPUS);
  }, 0);
  expect(free, "the cloud has room for preemptible servers").toBeGreaterThan(0);
  for (let n = 0; n < free; n += 1) {
    servers.push(await tenant.boot(`cheap-${n}`, "large.preemptible"));
  }
  await Promise.all(servers.map((id) => tenant.active(id)));
});

afterAll(async () => {
  await Promise.all(servers.map((id) => admin.delete(id)));
  await remove();
  await browser.close();
});

async function api<T>(path: string): Promise<T> {
  const answer = await admin.ask<T>("preemption", "GET", path);
  if (answer === null) throw new Error(`no ${path}`);
  return answer;
}

async function asUser(user: User) {
  const opened = await signedIn(browser, console_, user.access.token);
  await opened.page.locator(".pulse.live").waitFor();
  // What it has asked for until now.
  const loaded = () => performance.getEntriesByType("resource").map((entry) => entry.name);
  const addresses = [...(await opened.page.evaluate(loaded)), opened.page.url()];
  expect(addresses.filter((one) => one.includes(user.access.token))).toEqual([]);
  return opened;
}

describe("the console on an OpenStack", () => {
  it("refuses what is no token of Keystone", async () => {
    const { page, close } = await open(browser, console_);
    await page.getByLabel("Token").fill("gAAAAAB-this-is-no-token");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("The scheduler does not accept this token.").waitFor();
    await close();
  });

  it("shows a preemption while it happens, and who displaced the server, and why", async () => {
    const { page, wrong, close } = await asUser(admin);
    const urgent = await admin.boot(`urgent-${STAMP}`, "large");
    servers.push(urgent);
    const row = page.locator('.group.active tr[data-victim^="cheap-"]');
    await row.getByText(/\d s left/).waitFor();
    const victim = (await row.getAttribute("data-victim")) ?? "";
    await page.locator(`.group.ended tr[data-victim="${victim}"]`).waitFor();
    await admin.active(urgent);
    await page.getByRole("link", { name: `Why was ${victim} displaced?` }).first().click();
    await page.getByText(new RegExp(`^${victim} .* was displaced by urgent-`)).waitFor();
    const group = page.getByRole("group", { name: "What would have been decided otherwise" });
    await group.getByLabel("if no server were preemptible").check();
    expect(await group.getByRole("status").innerText()).not.toBe("");
    expect(wrong).toEqual([]);
    await close();
  });

  it("says that the scheduler was killed, and goes on by itself when it answers", async () => {
    const { page, wrong, close } = await asUser(admin);
    const victims = page.locator('.group.ended tr[data-victim^="cheap-"]');
    await victims.first().waitFor();
    const known = await victims.count();
    killScheduler();
    await page.getByText(/The scheduler does not answer since \d\d:\d\d:\d\d\./).waitFor();
    expect(await victims.count(), "what was known stays on the page").toBe(known);
    // Nova takes the request now. The scheduler that starts finds it in its queue.
    const waiting = await admin.boot(`waiting-${STAMP}`, "large");
    servers.push(waiting);
    runScheduler();
    await page.getByText("The scheduler answers again.").waitFor();
    await page.locator(".pulse.live").waitFor();
    // Its victim may have left before the page has found the scheduler again.
    await victims.nth(known).waitFor();
    await admin.active(waiting);
    const later = await admin.boot(`later-${STAMP}`, "large");
    servers.push(later);
    await page.locator('.group.active tr[data-victim^="cheap-"]').getByText(/\d s left/).waitFor();
    await victims.nth(known + 1).waitFor();
    await admin.active(later);
    expect(wrong).toEqual([]);
    await close();
  });

  it("has every view, without a violation that axe finds", async () => {
    const { page, wrong, close } = await asUser(admin);
    const views: [string, string][] = [
      ["Servers", "tr[data-server]"],
      ["Decisions", "main table"],
      ["Capacity", "main canvas"],
      ["What if", "form.question"],
      ["Prices", "#bills"],
      ["Plugins", "#shadow"],
      ["Replay", ".moment"],
    ];
    for (const [name, part] of views) {
      await page.getByRole("link", { name, exact: true }).click();
      await page.locator(part).first().waitFor();
      expect(await violations(page), name).toEqual([]);
    }
    // The day has the servers of this test, with their hosts.
    await page.locator('.events [data-kind="start"]').first().waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  it("asks what a request would do, with a flavor of Nova's", async () => {
    const { page, wrong, close } = await asUser(admin);
    await page.getByRole("link", { name: "What if", exact: true }).click();
    const flavors = page.getByLabel("Flavor");
    await flavors.locator("option", { hasText: /^large \(4 VCPU/ }).waitFor({ state: "attached" });
    const preemptible = flavors.locator("option", {
      hasText: /^large.preemptible .*preemptible\)$/,
    });
    expect(await preemptible.count()).toBe(1);
    await flavors.selectOption("large");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByRole("heading", { name: "1 server would have to leave:" }).waitFor();
    expect(await page.locator(".outcome").innerText()).toContain("cheap-");
    expect(wrong).toEqual([]);
    await close();
  });

  it("shows a tenant what is its own, and lets it change no more", async () => {
    const { page, wrong, close } = await asUser(tenant);
    await page.locator('tr[data-victim^="cheap-"]').first().waitFor();
    for (const view of ["Capacity", "Plugins", "Replay"]) {
      expect(await page.getByRole("link", { name: view }).count()).toBe(0);
    }
    for (const view of ["Evacuations", "Servers", "Decisions", "Prices"]) {
      await page.getByRole("link", { name: view, exact: true }).click();
      await page.locator("main table, #bills").first().waitFor();
      expect(await page.locator("main").innerText()).not.toContain("urgent");
    }
    const { hosts } = await api<{ hosts: Host[] }>("/v1/hosts");
    const path = `/v1/hosts/${hosts[0]?.name}/disable`;
    for (const [method, forbidden] of [
      ["GET", "/v1/hosts"],
      ["GET", "/v1/plugins"],
      ["POST", path],
    ] as const) {
      const asked = tenant.ask("preemption", method, forbidden, method === "POST" ? {} : undefined);
      await expect(asked).rejects.toThrow(/: 403 /);
    }
    expect(wrong).toEqual([]);
    await close();
  });

  it("goes on when a life ends by its owner", async () => {
    const { page, close } = await asUser(tenant);
    const last = await eventually("a server that runs", async () => {
      const all = await tenant.ask<{ servers: { id: string; name: string }[] }>(
        "compute",
        "GET",
        "/servers?status=ACTIVE",
      );
      return all?.servers[0] ?? null;
    });
    await page.getByRole("link", { name: "Servers", exact: true }).click();
    const row = page.locator(`tr[data-server="${last.name}"]`);
    await row.waitFor();
    await tenant.delete(last.id);
    await row.waitFor({ state: "detached" });
    await close();
  });
});
