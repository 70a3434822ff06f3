// ebbtide-dashboard in a running Horizon: `bash devstack/lib/horizon.sh --live`.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Evacuation, Host } from "../src/api/types";
import { open, openBrowser } from "../browser/page";
import { eventually, newTenant, User } from "../openstack/cloud";

/** Free processors of a host that a server of this test takes. */
const VCPUS = 4;
/** Seconds of grace: an early release ends a server much sooner. */
const GRACE_S = 90;
/** A Horizon without much of a processor takes seconds for a page. */
const PATIENCE_MS = 90_000;
const STAMP = Date.now().toString(36);
const NAME = `horizon-${STAMP}`;
/** A server's name is its owner's, and must stay text. */
const MARKUP = `<b>${STAMP}</b>`;
const FLAVOR = `patient-${STAMP}`;
const PRICE = "0.04";

const url = process.env["EBBTIDE_HORIZON_URL"] ?? "";
let browser: Browser;
let admin: User;
let tenant: User;
let password: string;
let remove: () => Promise<void>;
let flavor: string;
const servers: string[] = [];

beforeAll(async () => {
  [browser, admin] = await Promise.all([openBrowser(), User.signIn()]);
  ({ tenant, password, remove } = await newTenant(admin, NAME));
  flavor = await newFlavor();
  const hosts = await admin.ask<{ hosts: Host[] }>("preemption", "GET", "/v1/hosts");
  const free = (hosts?.hosts ?? []).reduce((sum, host) => {
    const vcpus = host.resources.find((one) => one.resource_class === "VCPU");
    return sum + Math.floor(Number(vcpus?.free_full ?? 0) / VCPUS);
  }, 0);
  expect(free, "the cloud has room for preemptible servers").toBeGreaterThan(0);
  for (let n = 0; n < free; n += 1) servers.push(await tenant.boot(`${MARKUP}-${n}`, FLAVOR));
  await Promise.all(servers.map((id) => tenant.active(id)));
});

afterAll(async () => {
  await Promise.all(servers.map((id) => admin.delete(id)));
  await admin.ask("compute", "DELETE", `/flavors/${flavor}`);
  await remove();
  await browser.close();
});

async function newFlavor(): Promise<string> {
  const sizes = { vcpus: VCPUS, ram: 8000, disk: 80 };
  const made = await admin.ask<{ flavor: { id: string } }>("compute", "POST", "/flavors", {
    flavor: { name: FLAVOR, ...sizes },
  });
  const id = made?.flavor.id ?? "";
  await admin.ask("compute", "POST", `/flavors/${id}/os-extra_specs`, {
    extra_specs: {
      "ebbtide:preemptible": "true",
      "ebbtide:grace_seconds": String(GRACE_S),
      "ebbtide:price_per_hour": PRICE,
    },
  });
  return id;
}

/**
 * Faults that a Horizon has without our panels: Debian's AngularJS is newer than a part of it; the
 * newest fails to list a Glance's metadata definitions if there are none.
 */
const HORIZONS_OWN = [
  "angular.lowercase is not a function",
  "max_workers must be greater than zero",
];

function faults(wrong: string[]): string[] {
  return wrong.filter((one) => !HORIZONS_OWN.some((known) => one.includes(known)));
}

async function signedIn(name: string, secret: string, locale = "en-GB") {
  const opened = await open(browser, url, { locale });
  const { page } = opened;
  page.setDefaultTimeout(PATIENCE_MS);
  await page.locator("#id_username").fill(name);
  await page.locator("#id_password").fill(secret);
  await Promise.all([page.waitForURL(/project|identity|admin/), page.keyboard.press("Enter")]);
  return opened;
}

const asMember = (locale?: string) => signedIn(NAME, password, locale);
const asAdmin = () => signedIn("admin", process.env["OS_PASSWORD"] ?? "");

/** The step of the launch dialogue in which a flavor is chosen. */
async function flavorStep(page: Page) {
  await page.goto(`${url}project/instances/`);
  await page.locator("#instances__action_launch-ng, #instances__action_launch").first().click();
  const dialogue = page.locator(".modal-dialog .ng-wizard");
  await dialogue.locator(".wizard-nav .nav-item:visible").nth(2).click();
  const step = dialogue.locator('[ng-controller^="LaunchInstanceFlavorController"]');
  const row = step.locator(`tr:has-text("${FLAVOR}")`).last();
  await row.waitFor();
  return { step, row };
}

describe("ebbtide-dashboard", () => {
  it("marks preemptible flavors in the launch dialogue, with price and advice", async () => {
    const { page, wrong, close } = await asMember();
    const { step, row } = await flavorStep(page);
    await row.locator(".ebbtide-mark").getByText("Preemptible", { exact: true }).waitFor();
    await row.getByText(PRICE).waitFor();
    const normal = step.locator("tbody tr", { has: page.getByText("large", { exact: true }) });
    expect(await normal.first().locator(".ebbtide-mark").count()).toBe(0);
    await row.locator("button").last().click();
    // A flavor of this test has no history, and the advice says so.
    await step.locator(".ebbtide-advice").getByText(/^(too little is known|Risk of)/).waitFor();
    expect(faults(wrong)).toEqual([]);
    await close();
  });

  it("shows a notice with its countdown, and releases early", async () => {
    const { page, wrong, close } = await asMember();
    await page.goto(`${url}project/preemptible_servers/`);
    const rows = page.locator("#preemptible_servers tbody tr");
    expect(await rows.count()).toBe(servers.length);
    expect(await page.locator("#preemptible_servers b").count()).toBe(0);
    await rows.first().getByText(PRICE).waitFor();
    expect(await page.getByRole("button", { name: "Release Early" }).count()).toBe(0);

    const urgent = await admin.boot(`urgent-${STAMP}`, "large");
    servers.push(urgent);
    // The page learns of it by itself.
    const warned = rows.filter({ has: page.locator("[data-ebbtide-deadline]") });
    await warned.locator("[data-ebbtide-deadline]", { hasText: /^\d+ s$/ }).waitFor();
    expect(await warned.count()).toBe(1);
    const victim = await warned.getByRole("link").first().innerText();
    expect(victim).toContain(MARKUP);
    const id = (await warned.getAttribute("data-object-id")) ?? "";
    const seconds = async () => {
      const said = await warned.locator("[data-ebbtide-deadline]").innerText();
      return Number.parseInt(said, 10);
    };
    const first = await seconds();
    expect(first).toBeLessThanOrEqual(GRACE_S);
    await eventually("the countdown goes on", async () =>
      (await seconds()) < first ? true : null,
    );

    await warned.getByRole("link", { name: victim }).click();
    await page.getByText("Who displaced it and why").waitFor();
    await page.getByText("A normal server needs the capacity").waitFor();
    await page.getByText("a server of another project").first().waitFor();
    const content = page.locator("#main_content, #content_body").first();
    expect(await content.innerText()).not.toContain("urgent");
    await page.goBack();

    const began = Date.now();
    await warned.getByRole("button", { name: "Release Early" }).click();
    await page.locator(".modal-dialog .btn-danger").getByText("Release Early").click();
    await page.locator(".alert-success").getByText("Released Early").waitFor();
    await eventually("the server is gone", async () =>
      (await tenant.ask("compute", "GET", `/servers/${id}`)) === null ? true : null,
    );
    expect((Date.now() - began) / 1000).toBeLessThan(GRACE_S / 2);
    await admin.active(urgent);
    // The row goes without a reload by hand.
    await page.locator(`tr[data-object-id="${id}"]`).waitFor({ state: "detached" });
    expect(faults(wrong)).toEqual([]);
    await close();
  });

  it("shows operators capacity and evacuations, and members neither", async () => {
    const { page, wrong, close } = await asAdmin();
    await page.goto(`${url}admin/preemptible_capacity/`);
    const { hosts } = (await admin.ask<{ hosts: Host[] }>("preemption", "GET", "/v1/hosts")) ?? {
      hosts: [],
    };
    for (const host of hosts) {
      const row = page.locator("#hosts tbody tr", { hasText: host.name });
      expect(await row.innerText()).toContain(`${host.preemptible_servers}`);
    }
    expect(await page.locator("#hosts tbody tr").count()).toBe(hosts.length);
    const ended = await admin.ask<{ evacuations: Evacuation[] }>(
      "preemption",
      "GET",
      "/v1/evacuations?limit=1",
    );
    const victim = ended?.evacuations[0]?.victim_name ?? "";
    expect(victim).toContain(MARKUP);
    await page.locator("#evacuations").getByText(victim).first().waitFor();
    expect(await page.locator("#evacuations b").count()).toBe(0);
    expect(faults(wrong)).toEqual([]);
    await close();

    const member = await asMember();
    await member.page.goto(`${url}project/preemptible_servers/`);
    expect(await member.page.locator('a[href$="/admin/preemptible_capacity/"]').count()).toBe(0);
    // The API decides what a role may see.
    await member.page.goto(`${url}admin/preemptible_capacity/`);
    await member.page.locator(".alert").getByText("Your role does not allow this").waitFor();
    expect(await member.page.locator("#hosts tbody").innerText()).not.toContain("compute");
    expect(await member.page.content()).not.toContain("urgent");
    await member.close();
  });

  it("speaks German", async () => {
    const { page, wrong, close } = await asMember("de-DE");
    const { row } = await flavorStep(page);
    await row.locator(".ebbtide-mark").getByText("Verdrängbar", { exact: true }).waitFor();
    await page.goto(`${url}project/preemptible_servers/`);
    await page.getByRole("heading", { name: "Verdrängbare Server" }).first().waitFor();
    await page.getByText("Preis je Stunde").waitFor();
    await page.getByRole("link", { name: "Wie lange leben verdrängbare Server?" }).click();
    await page.getByRole("heading", { name: "Prognose" }).first().waitFor();
    await page.locator("#ebbtide-flavor").selectOption(FLAVOR);
    await page.getByRole("button", { name: "Anzeigen" }).click();
    await page.getByText(`Eine Stunde kostet jetzt ${PRICE}`).waitFor();
    expect(faults(wrong)).toEqual([]);
    await close();
  });
});
