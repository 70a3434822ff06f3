// A page of another origin on this machine.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface Stranger {
  url: string;
  close: () => void;
}

export async function openStranger(): Promise<Stranger> {
  const server = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html");
    answer.end("<!doctype html><title>elsewhere</title><h1>elsewhere</h1>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // Another name of this machine is another site.
  const url = `http://localhost:${(server.address() as AddressInfo).port}/`;
  return { url, close: () => void server.close() };
}
