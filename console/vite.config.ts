import { defineConfig } from "vitest/config";

const firefox = process.env["EBBTIDE_BROWSER"] === "firefox";

export default defineConfig({
  base: "/console/",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    outDir: "dist",
    emptyOutDir: false,
    // Everything is a file of its own: the Content-Security-Policy allows no `data:` and no inline
    // script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    rollupOptions: { output: { entryFileNames: "assets/[name]-[hash].js" } },
  },
  test: {
    // The tests in the browser measure, and start regions: one file after the other.
    fileParallelism: false,
    projects: [
      { extends: true, test: { name: "unit", include: ["tests/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "browser",
          include: ["browser/**/*.test.ts"],
          exclude: [firefox ? "browser/policy.test.ts" : "browser/firefox.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      ...["openstack", "horizon"].map((name) => ({
        extends: true as const,
        test: {
          name,
          include: [`${name}/**/*.test.ts`],
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      })),
    ],
  },
});
