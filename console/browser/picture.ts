// Pictures of the documentation. Each run compares its own with those that are kept.

import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { FIREFOX } from "./page";
import { type Cells, CELL, difference } from "./cells";

/** Where pictures for the documentation are written; without it they are compared. */
const WRITTEN = process.env["EBBTIDE_CONSOLE_PICTURES"];
const KEPT = "../docs/operate/pictures";

/**
 * The largest share of cells that may differ. Times, ages and costs change a few percent of them
 * from run to run; a part of the page that is missing or has other colours changes more.
 */
const TOLERANCE = 0.12;
/** How much higher or lower the page may be: lists have a line more or less. */
const HEIGHT = 0.2;

/** Takes a picture of the page, and writes it or compares it with the one that is kept. */
export async function picture(page: Page, name: string, height = HEIGHT): Promise<void> {
  // Another browser has other fonts.
  if (FIREFOX) return;
  const file = `console-${name}.png`;
  const taken = await page.screenshot({ fullPage: true });
  if (WRITTEN !== undefined) {
    mkdirSync(WRITTEN, { recursive: true });
    writeFileSync(join(WRITTEN, file), taken);
    return;
  }
  const kept = await cellsOf(page, readFileSync(join(KEPT, file)));
  const now = await cellsOf(page, taken);
  const share = difference(kept, now);
  console.log(`${file}: ${(share * 100).toFixed(1)} % of the cells differ`);
  const higher = Math.abs(now.rows / kept.rows - 1);
  if (share <= TOLERANCE && higher <= height) return;
  const place = join(mkdtempSync(join(tmpdir(), "ebbtide-picture-")), file);
  writeFileSync(place, taken);
  const heights = `${kept.rows} and ${now.rows} rows of cells`;
  expect.fail(
    `${file} differs in ${(share * 100).toFixed(1)} % of its cells (${heights}); ` +
      `this one is ${place}. If it is right, keep it: docs/operate/console.md, "Build it"`,
  );
}

/** The average colours of a picture, read by the browser: in a page without a policy. */
async function cellsOf(page: Page, png: Buffer): Promise<Cells> {
  const blank = await page.context().newPage();
  const read = await blank.evaluate(
    async ({ data, cell }) => {
      const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
      const { width, height } = bitmap;
      const context = new OffscreenCanvas(width, height).getContext("2d");
      if (context === null) throw new Error("no canvas");
      context.drawImage(bitmap, 0, 0);
      const pixels = context.getImageData(0, 0, width, height).data;
      const columns = Math.floor(width / cell);
      const rows = Math.floor(height / cell);
      const colours: number[] = new Array(columns * rows * 3).fill(0);
      for (let y = 0; y < rows * cell; y += 1) {
        for (let x = 0; x < columns * cell; x += 1) {
          const from = (y * width + x) * 4;
          const to = (Math.floor(y / cell) * columns + Math.floor(x / cell)) * 3;
          for (let part = 0; part < 3; part += 1) {
            colours[to + part] = (colours[to + part] ?? 0) + (pixels[from + part] ?? 0);
          }
        }
      }
      return { columns, rows, colours: colours.map((sum) => Math.round(sum / (cell * cell))) };
    },
    { data: png.toString("base64"), cell: CELL },
  );
  await blank.close();
  return read;
}
