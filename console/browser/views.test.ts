import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open, openBrowser, violations, visit } from "./page";
import { picture } from "./picture";
import { Region } from "./region";

const MARKUP = `<img src=x onerror="alert('name')"><script>alert(1)</script>`;

let browser: Browser;
let region: Region;

beforeAll(async () => {
  [browser, region] = await Promise.all([openBrowser(), Region.start({ story: 3 })]);
  const zones: [string, string[]][] = [
    ["east", ["host-A", "host-B"]],
    ["west", ["host-C", "host-D"]],
  ];
  for (const [zone, hosts] of zones) {
    const aggregate = { name: zone, hosts, metadata: { availability_zone: zone } };
    await region.ask("PUT", `/v1/aggregates/${zone}`, aggregate);
  }
});

afterAll(async () => {
  await browser.close();
  await region.remove();
});

describe("a newcomer", () => {
  it("finds who displaced a server, and why, within 10 seconds and one click", async () => {
    const started = performance.now();
    const { page, wrong, close } = await open(browser, region.console);
    const row = page.locator('tr[data-victim="AP2"]');
    await row.getByText("urgent").waitFor();
    expect(await row.innerText()).toContain("project science");
    await page.getByRole("link", { name: "Why was AP2 displaced?" }).click();
    await page.getByText("AP2 (paper) was displaced by urgent (science).").waitFor();
    const took = performance.now() - started;
    expect(took).toBeLessThan(10_000);
    console.log(`who displaced AP2, and why: ${Math.round(took)} ms, one click`);

    const text = await page.locator("main").innerText();
    expect(text).toMatch(/On host-A the loss of the victims costs least: [\d,.]+\./);
    expect(await page.locator('[data-filter="capacity"]').innerText()).toContain("host-D");
    expect(await page.locator(".ranked > li").first().innerText()).toMatch(/^host-A\s+chosen/);
    expect(await page.locator(".ranked > li").nth(1).innerText()).toContain("runner-up");
    expect(await page.locator(".victims .marked").first().innerText()).toContain("AP2");
    await picture(page, "decision");
    expect(wrong).toEqual([]);
    await close();
  });

  it("can search, and use the keyboard alone", async () => {
    const { page, close } = await open(browser, region.console);
    await page.locator('tr[data-victim="AP2"]').waitFor();
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Skip to content");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("content");
    await page.keyboard.press("Tab");
    await page.keyboard.type("ap3");
    await page.locator('tr[data-victim="AP2"]').waitFor({ state: "detached" });
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByText("AP3 (paper) was displaced by urgent (science).").waitFor();
    await close();
  });
});

describe("a decision", () => {
  it("says what would have been decided otherwise, by switches", async () => {
    const { page, wrong, close } = await open(browser, `${region.console}#/decisions/urgent`);
    const group = page.getByRole("group", { name: "What would have been decided otherwise" });
    const answer = group.getByRole("status");
    await group.getByLabel("if no server were preemptible").check();
    expect(await answer.innerText()).toBe("There would have been no valid host.");
    await group.getByLabel("with one more host").check();
    expect(await answer.innerText()).toMatch(/^One more host like host-A, without servers, would/);
    // The scheduler's answers are those of the command line.
    const said = region.program("ebbtide", "explain", "urgent", "--project", "science");
    expect(said).toContain("One more host like host-A");
    const weighers = group.getByLabel(/^without the weigher/);
    for (let at = 0; at < (await weighers.count()); at += 1) {
      await weighers.nth(at).check();
      expect(await answer.innerText()).toMatch(/host-A would have been chosen, too\./);
      expect(await page.locator(".ranked > li").first().innerText()).toContain("this switch");
    }
    await group.getByLabel("as it was decided").check();
    expect(await answer.innerText()).toBe("");
    expect(wrong).toEqual([]);
    await close();
  });
});

describe("replay", () => {
  it("goes through the day by slider, by event and by itself", async () => {
    const { page, wrong, close } = await open(browser, `${region.console}#/replay`);
    const status = page.locator(".moment");
    await status.waitFor();
    await page.locator(".events").getByText(/flavor large placed on host-A/).waitFor();
    const now = await status.innerText();
    // Shortly after midnight the day has fewer events.
    await picture(page, "replay", Number.POSITIVE_INFINITY);
    // The slider by keyboard: to the beginning of the day.
    const slider = page.getByRole("slider", { name: "Time" });
    await slider.focus();
    await page.keyboard.press("Home");
    await page.getByText("Nothing has happened until then on this day.").waitFor();
    await page.getByRole("button", { name: "Next event" }).click();
    await page.locator(".events li").first().waitFor();
    const first = await page.locator("[data-at]").getAttribute("data-at");
    await page.getByRole("button", { name: "Play" }).click();
    const further = page.locator(`[data-at]:not([data-at="${first}"])`);
    await further.waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    // Before the normal request the victims were there.
    await page.keyboard.press("Tab");
    await slider.focus();
    await page.keyboard.press("End");
    await page.getByRole("button", { name: "Event before" }).click();
    await page.locator(".events [data-kind]").first().waitFor();
    expect(await status.innerText()).toMatch(/^\d+ normal servers? and \d+ preemptible\./);
    expect(now).toMatch(/^\d+ normal servers? and \d+ preemptible\./);
    const map = page.getByRole("application");
    await map.focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "host-A" }).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  it("of another day shows that day, and of no day shows this one", async () => {
    const { page, wrong, close } = await open(browser, `${region.console}#/replay/2020-02-03`);
    await page.locator(".moment").waitFor();
    await page.getByText("Nothing has happened until then on this day.").waitFor();
    expect(await page.getByLabel("Day").inputValue()).toBe("2020-02-03");
    await visit(page, `${region.console}#/replay/never`);
    await page.locator(".moment").waitFor();
    expect(wrong).toEqual([]);
    await close();
  });
});

describe("what if", () => {
  it("shows hosts and victims before anything happens, and changes nothing", async () => {
    const { page, wrong, close } = await open(browser, `${region.console}#/what-if`);
    const before = await region.ask<{ evacuations: unknown[] }>("GET", "/v1/evacuations");
    await page.getByLabel("Flavor").selectOption("large");
    await page.getByLabel("Availability zone").selectOption("west");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByRole("heading", { name: "1 server would have to leave:" }).waitFor();
    expect(await page.locator(".outcome").innerText()).toContain("CP1");
    expect(await page.locator(".result").innerText()).toContain("host-C");
    await picture(page, "what-if");
    const after = await region.ask<{ evacuations: unknown[] }>("GET", "/v1/evacuations");
    expect(after.evacuations.length).toBe(before.evacuations.length);
    expect(wrong).toEqual([]);
    await close();
  });

  it("that finds no host shows the missing resource", async () => {
    const { page, wrong, close } = await open(browser, `${region.console}#/what-if`);
    await page.getByLabel("Flavor").selectOption("large");
    await page.getByLabel("Number of servers").fill("40");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByRole("heading", { name: "What is missing" }).waitFor();
    const vcpu = page.locator('[data-resource="VCPU"]');
    expect(await vcpu.innerText()).toMatch(/VCPU needs 4, at most \d free on a host/);
    await page.getByLabel("Number of servers").fill("0");
    expect(await page.getByRole("button", { name: "Ask" }).isDisabled()).toBe(true);
    expect(wrong).toEqual([]);
    await close();
  });
});

describe("capacity", () => {
  it("opens a host with its servers by mouse and by keyboard", async () => {
    const { page, wrong, close } = await open(browser, `${region.console}#/capacity`);
    const map = page.getByRole("application");
    await map.click({ position: { x: 10, y: 30 } });
    await page.getByRole("heading", { name: "host-A" }).waitFor();
    await page.locator(".panel").getByText("urgent").waitFor();
    await picture(page, "capacity");
    await map.focus();
    await page.keyboard.press("End");
    expect(await page.locator("#map-cell").innerText()).toBe(
      "host-D, zone west: 100% used by normal servers, 100% by all",
    );
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "host-D" }).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });
});

describe("markup in names and reasons", () => {
  it("is text", async () => {
    await region.ask("POST", "/v1/hosts/host-D/disable", { reason: MARKUP });
    const project = MARKUP.slice(0, 40);
    const created = await region.create(MARKUP, "p.small", project).then(
      () => true,
      () => false,
    );
    const { page, wrong, close } = await open(browser, `${region.console}#/capacity/host-D`);
    await page.getByText(MARKUP).first().waitFor();
    if (created) {
      await visit(page, `${region.console}#/decisions`);
      await page.getByText(project).first().waitFor();
    }
    for (const place of [`decisions/${encodeURIComponent(MARKUP)}`, `capacity/${MARKUP}`, MARKUP]) {
      await visit(page, `${region.console}#/${place}`);
      await page.reload();
      await page.locator("h1").waitFor();
    }
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(wrong).toEqual([]);
    await region.ask("POST", "/v1/hosts/host-D/enable", {});
    await close();
  });
});

describe("every view", () => {
  const VIEWS = [
    "evacuations",
    "servers",
    "decisions",
    "decisions/urgent",
    "capacity/host-A",
    "what-if",
    "prices",
    "plugins",
    "replay",
  ];

  it("has no violation that axe finds, light and dark, on a desk and a phone", async () => {
    const kinds = [
      { locale: "en-GB", colorScheme: "light" as const },
      { locale: "de-DE", colorScheme: "dark" as const, viewport: { width: 375, height: 740 } },
    ];
    const found: string[] = [];
    for (const kind of kinds) {
      const { page, wrong, close } = await open(browser, region.console, kind);
      for (const view of VIEWS) {
        await visit(page, `${region.console}#/${view}`);
        await page.locator("h1").waitFor();
        const parts = "main table, form.question, main canvas, main .step, main h2";
        await page.locator(parts).first().waitFor();
        if (view === "what-if") {
          await page.locator("form.question button").click();
          await page.locator(".outcome").waitFor();
        }
        const words = await page.locator("html").getAttribute("lang");
        expect(words).toBe(kind.locale.slice(0, 2));
        found.push(...(await violations(page)).map((one) => `${view} ${kind.locale}: ${one}`));
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(wide, `${view} is wider than the window`).toBeLessThanOrEqual(0);
        if (kind.colorScheme === "dark" && view === "evacuations") await picture(page, "phone");
      }
      expect(wrong).toEqual([]);
      await close();
    }
    expect(found).toEqual([]);
  });

  it("is there in German at a click, and stays so", async () => {
    const { page, close } = await open(browser, region.console);
    await page.getByLabel("Language").selectOption("de");
    await page.getByRole("heading", { name: "Räumungen" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Räumungen" }).waitFor();
    expect(await page.locator("html").getAttribute("lang")).toBe("de");
    await close();
  });
});
