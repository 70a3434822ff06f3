import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { learn, serverNow, until } from "../src/api/clock";
import { withQuery } from "../src/api/client";
import { currentToken, isToken, useToken as keepToken } from "../src/api/session";
import { linkTo, placeOf, VIEWS } from "../src/router";
import { duration, locale } from "../src/text";
import { de } from "../src/text/de";
import { en } from "../src/text/en";

describe("links within the page", () => {
  it("lead to the place that they name, whatever is in its id", () => {
    for (const view of VIEWS) {
      for (const id of ["", "a/b?c#d%", "<img src=x>"]) {
        const place = placeOf(linkTo(view, id, { victim: "v&w" }));
        expect([place.view, place.id, place.query.get("victim")]).toEqual([view, id, "v&w"]);
      }
    }
  });

  it("that name no view lead to the evacuations", () => {
    expect(placeOf("#/%E0%A4%A/x").view).toBe("evacuations");
    expect(placeOf("#/decisions/%E0%A4%A").id).toBe("");
  });
});

describe("the token", () => {
  it("is forgotten on request and never part of an address", () => {
    keepToken("  abc  ");
    expect(currentToken()).toBe("abc");
    expect(withQuery("/v1/servers", { project: "p", limit: 2, name: "" })).toBe(
      "/v1/servers?project=p&limit=2",
    );
    keepToken("");
    expect(currentToken()).toBe("");
  });

  it("has no characters that a header cannot carry", () => {
    expect(isToken("gAAAAAB-_.~+/=")).toBe(true);
    for (const text of ["", "a b", "a\nb", "ä"]) expect(isToken(text)).toBe(false);
  });

  it("is kept where the tab's end ends it, and nothing else is kept anywhere", () => {
    const sources = readdirSync("src", { recursive: true, encoding: "utf8" });
    for (const name of sources.filter((name) => /\.tsx?$/.test(name))) {
      const text = readFileSync(join("src", name), "utf8");
      for (const word of ["localStorage", "indexedDB", "document.cookie", "innerHTML"]) {
        expect(text.includes(word), `${name} has ${word}`).toBe(false);
      }
    }
  });
});

describe("the scheduler's clock", () => {
  it("counts, if it differs from the browser's by more than the header's resolution", () => {
    const now = Date.now();
    learn(new Date(now - 1000).toUTCString(), now);
    expect(Math.abs(serverNow() - Date.now())).toBeLessThan(100);
    learn(new Date(now + 60_000).toUTCString(), now);
    expect(serverNow() - Date.now()).toBeGreaterThan(58_000);
    learn(null, now);
    expect(serverNow() - Date.now()).toBeGreaterThan(58_000);
    expect(until("", now)).toBeNull();
    learn(new Date(now).toUTCString(), now);
  });
});

describe("texts", () => {
  /** All texts by their keys; those with a parameter are called. */
  function flat(of: object, path = ""): Map<string, string> {
    const all = new Map<string, string>();
    for (const [key, value] of Object.entries(of)) {
      const at = `${path}.${key}`;
      if (typeof value === "string") all.set(at, value);
      else if (typeof value === "function") {
        all.set(at, (value as (...of: unknown[]) => string)(1, "x", "y", "z"));
      } else for (const [name, text] of flat(value as object, at)) all.set(name, text);
    }
    return all;
  }

  it("are there in both languages", () => {
    const [english, german] = [flat(en), flat(de)];
    expect([...german.keys()]).toEqual([...english.keys()]);
    for (const [key, text] of [...english, ...german]) expect(text, key).not.toBe("");
    const same = [...english].filter(([key, text]) => text === german.get(key));
    expect(same.length).toBeLessThan(english.size / 4);
  });

  it("have numbers as the language writes them", () => {
    expect(locale("de").number(1234.5)).toBe("1.234,5");
    expect(locale("en").number(1234.5)).toBe("1,234.5");
    expect([0.2, 59.4, 61, 3700, 90_000].map(duration)).toEqual([
      "1 s",
      "1 min 0 s",
      "1 min 1 s",
      "1 h 1 min",
      "1 d 1 h",
    ]);
  });
});
