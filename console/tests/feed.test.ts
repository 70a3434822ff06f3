import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Feed, type FeedState } from "../src/api/feed";
import { useToken as keepToken } from "../src/api/session";
import type { WatchEvent } from "../src/api/types";

/** A stream that the test writes and ends. */
function stream(): { answer: Response; write: (text: string) => void; end: () => void } {
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
    },
  });
  return {
    answer: new Response(body),
    write: (text) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
  };
}

const event = (sequence: number): string =>
  `id: ${sequence}\nevent: server\ndata: {"sequence":"${sequence}","server":{"id":"s"}}\n\n`;

describe("the event stream", () => {
  const asked: RequestInit[] = [];
  const answers: (() => Promise<Response>)[] = [];
  let feed: Feed;
  let states: FeedState[];
  let events: WatchEvent[];
  let opened: number;

  beforeEach(() => {
    vi.useFakeTimers();
    asked.length = 0;
    answers.length = 0;
    vi.stubGlobal("fetch", (_path: string, init: RequestInit) => {
      asked.push(init);
      const next = answers.shift();
      const stopped = new Promise<Response>((_, reject) => {
        init.signal?.addEventListener("abort", () => reject(new Error("aborted")));
      });
      return Promise.race([next === undefined ? stopped : next(), stopped]);
    });
    feed = new Feed();
    states = [];
    events = [];
    opened = 0;
    feed.listen({
      state: (state) => states.push(state),
      event: (event) => events.push(event),
      opened: () => {
        opened += 1;
      },
    });
  });

  afterEach(() => {
    feed.close();
    keepToken("");
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  const kinds = (): string[] => states.map((state) => state.kind);

  it("goes on after the scheduler was killed, and has the state read again", async () => {
    const first = stream();
    const second = stream();
    answers.push(
      () => Promise.resolve(first.answer),
      () => Promise.reject(new TypeError("connection refused")),
      () => Promise.resolve(second.answer),
    );
    void feed.run();
    await vi.advanceTimersByTimeAsync(0);
    first.write(event(5));
    await vi.advanceTimersByTimeAsync(0);
    expect([kinds(), opened, events.length]).toEqual([["live"], 1, 1]);

    first.end();
    await vi.advanceTimersByTimeAsync(500);
    expect(kinds()).toEqual(["live", "lost", "lost"]);
    const [, lost, stillLost] = states;
    expect(stillLost).toMatchObject({ since: (lost as { since: number }).since });

    await vi.advanceTimersByTimeAsync(1000);
    expect([feed.state.kind, opened]).toEqual(["live", 2]);
    expect(asked[2]?.headers).toMatchObject({ "last-event-id": "5" });
    second.write(`event: gap\ndata: {"last_event_id":"5"}\n\n${event(9)}`);
    await vi.advanceTimersByTimeAsync(0);
    expect(events.map((one) => one.sequence)).toEqual(["5", "9"]);
  });

  it("is given up when nothing has come for longer than the keep-alive", async () => {
    const dead = stream();
    answers.push(() => Promise.resolve(dead.answer));
    void feed.run();
    await vi.advanceTimersByTimeAsync(39_000);
    expect(kinds()).toEqual(["live"]);
    await vi.advanceTimersByTimeAsync(2000);
    expect(kinds().slice(0, 2)).toEqual(["live", "lost"]);
  });

  it("has the state read again when the scheduler says that events were missed", async () => {
    const one = stream();
    answers.push(() => Promise.resolve(one.answer));
    void feed.run();
    await vi.advanceTimersByTimeAsync(0);
    one.write('event: lagged\ndata: {"lagged":"12"}\n\n');
    await vi.advanceTimersByTimeAsync(0);
    expect([opened, events.length]).toEqual([2, 0]);
  });

  it("ends when the token is refused, and is not asked for again", async () => {
    answers.push(() => Promise.resolve(new Response("{}", { status: 401 })));
    void feed.run();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([kinds(), asked.length]).toEqual([["refused"], 1]);
  });

  it("has the token in a header", async () => {
    keepToken("secret-token");
    void feed.run();
    await vi.advanceTimersByTimeAsync(0);
    expect(asked[0]?.headers).toMatchObject({ authorization: "Bearer secret-token" });
  });
});
