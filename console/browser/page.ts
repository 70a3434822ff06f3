// Debian's Chromium or Firefox, and pages of the console in it that note everything that goes
// wrong.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import * as playwright from "playwright-core";
import type { Browser, BrowserContextOptions, BrowserType, Page } from "playwright-core";
import { expect } from "vitest";

/** The browser of this run: `./console/test browser` or `./console/test firefox`. */
export const FIREFOX = process.env["EBBTIDE_BROWSER"] === "firefox";

const CHROMIUM_PROGRAM = process.env["EBBTIDE_CHROMIUM"] ?? "/usr/bin/chromium";
const FIREFOX_PROGRAM = process.env["EBBTIDE_FIREFOX"] ?? "/usr/bin/firefox-esr";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * Playwright's driver for an unmodified Firefox, over WebDriver BiDi. It is not a public name yet:
 * `playwright.firefox` drives a build of its own only.
 */
const bidi = (playwright as unknown as { default: { _bidiFirefox: BrowserType } }).default
  ._bidiFirefox;

export function openBrowser(dark = false): Promise<Browser> {
  if (!FIREFOX) {
    // Tests run as root in CI, where Chromium has no sandbox. The page under test is our own.
    return playwright.chromium.launch({
      executablePath: CHROMIUM_PROGRAM,
      args: ["--no-sandbox"],
    });
  }
  // This Firefox cannot change colours and languages of a context.
  const firefoxUserPrefs = { "layout.css.prefers-color-scheme.content-override": dark ? 0 : 1 };
  return bidi.launch({ executablePath: FIREFOX_PROGRAM, firefoxUserPrefs });
}

export interface Watched {
  page: Page;
  /** Errors of scripts, breaches of the Content-Security-Policy, dialogs, foreign requests. */
  wrong: string[];
  close: () => Promise<void>;
}

/** A page of its own, as a person with these preferences has it; see `withoutPolicy`. */
export async function open(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
  policy = !FIREFOX,
): Promise<Watched> {
  const size = { viewport: { width: 1280, height: 900 } };
  const dark = FIREFOX && options.colorScheme === "dark";
  const own = dark ? await openBrowser(true) : browser;
  const { locale, colorScheme: _, ...known } = options;
  const context = await own.newContext(
    FIREFOX ? { ...size, ...known } : { locale: "en-GB", ...size, ...options },
  );
  const page = await context.newPage();
  if (!policy) await withoutPolicy(page, locale ?? "en-GB");
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
  const close = () => (dark ? own.close() : context.close());
  return { page, wrong, close };
}

/** The same, signed in with a token. */
export async function signedIn(browser: Browser, address: string, token: string): Promise<Watched> {
  const opened = await open(browser, address);
  await opened.page.getByLabel("Token").fill(token);
  await opened.page.getByRole("button", { name: "Sign in" }).click();
  await opened.page.locator("h1#heading").waitFor();
  return opened;
}

/**
 * Playwright evaluates in the page itself, which the Content-Security-Policy forbids. Chromium
 * makes an exception for debuggers and Firefox does not: here the document comes without the
 * policy. That Firefox enforces it is a test of its own.
 */
async function withoutPolicy(page: Page, locale: string): Promise<void> {
  await page.route(/\/console\/$/, async (route) => {
    const answer = await fetch(route.request().url());
    const headers = { "content-type": answer.headers.get("content-type") ?? "" };
    await route.fulfill({ status: answer.status, headers, body: await answer.text() });
  });
  if (locale.startsWith("en")) return;
  await page.addInitScript(
    `sessionStorage.setItem("ebbtide.language", ${JSON.stringify(locale.slice(0, 2))})`,
  );
}

/** Another view of the page. Firefox tells no driver of the end of a visit within a document. */
export async function visit(page: Page, address: string): Promise<void> {
  const { hash } = new URL(address);
  if (!FIREFOX) await page.goto(address);
  else await page.evaluate((hash) => (location.hash = hash), hash);
}

const AXE_RUN =
  "axe.run().then((all) => JSON.stringify(all.violations.map((one) => " +
  "`${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(' | ')}`)))";

/** What axe finds in the page, in short. The Content-Security-Policy stays in force. */
export async function violations(page: Page): Promise<string[]> {
  if (FIREFOX) {
    await page.evaluate(`${axe};0`);
    return JSON.parse(await page.evaluate<string>(AXE_RUN)) as string[];
  }
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const found = await session.send("Runtime.evaluate", {
    expression: AXE_RUN,
    awaitPromise: true,
    returnByValue: true,
  });
  expect(found.exceptionDetails?.text ?? "").toBe("");
  await session.detach();
  return JSON.parse(String(found.result.value)) as string[];
}
