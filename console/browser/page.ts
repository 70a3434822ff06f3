// Debian's Chromium, and pages of the console in it that note everything that goes wrong.

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";

const PROGRAM = process.env["EBBTIDE_CHROMIUM"] ?? "/usr/bin/chromium";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export function openBrowser(): Promise<Browser> {
  // Tests run as root in CI, where Chromium has no sandbox. The page under test is our own.
  return chromium.launch({ executablePath: PROGRAM, args: ["--no-sandbox"] });
}

export interface Watched {
  page: Page;
  /** Errors of scripts, breaches of the Content-Security-Policy, dialogs, foreign requests. */
  wrong: string[];
  close: () => Promise<void>;
}

/** A page of its own, as a person with these preferences has it. */
export async function open(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext({
    locale: "en-GB",
    viewport: { width: 1280, height: 900 },
    ...options,
  });
  const page = await context.newPage();
  const wrong: string[] = [];
  const origin = new URL(address).origin;
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    // A request that fails is the scheduler's answer and is shown in the page.
    if (message.type() !== "error" || message.text().startsWith("Failed to load resource")) return;
    wrong.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) wrong.push(`request: ${request.url()}`);
  });
  await page.goto(address);
  return { page, wrong, close: () => context.close() };
}

/** What axe finds in the page, in short. The Content-Security-Policy stays in force. */
export async function violations(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const found = await session.send("Runtime.evaluate", {
    expression:
      "axe.run().then((all) => JSON.stringify(all.violations.map((one) => " +
      "`${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(' | ')}`)))",
    awaitPromise: true,
    returnByValue: true,
  });
  expect(found.exceptionDetails?.text ?? "").toBe("");
  await session.detach();
  return JSON.parse(String(found.result.value)) as string[];
}

/** Where pictures for the documentation are written; without it there are none. */
const PICTURES = process.env["EBBTIDE_CONSOLE_PICTURES"];

export async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `console-${name}.png`), fullPage: true });
}
