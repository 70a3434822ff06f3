// The event stream of the region, kept open. After a loss the readers read the state again: the
// stream cannot continue where it broke.

import { headers, problemOf, Problem } from "./client";
import { FrameParser } from "./sse";
import type { WatchEvent } from "./types";

/** The scheduler sends a comment every 15 s; after this time without a byte the stream is dead. */
const SILENCE_MS = 40_000;
/** Waiting times between attempts, in milliseconds; the last one repeats. */
const BACKOFF_MS = [500, 1000, 2000, 4000, 5000];

export type FeedState =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "lost"; since: number; why: string }
  /** The token is not valid any more, or may not read events. */
  | { kind: "refused"; problem: Problem };

export interface FeedListener {
  /** The stream is open, or events were missed: read the state again. */
  opened?: () => void;
  event?: (event: WatchEvent) => void;
  state?: (state: FeedState) => void;
}

export class Feed {
  #listeners = new Set<FeedListener>();
  #state: FeedState = { kind: "connecting" };
  #stop = new AbortController();
  #lastId = "";

  constructor(private readonly path = "/v1/events") {}

  get state(): FeedState {
    return this.#state;
  }

  /** Adds a listener; the returned function removes it. */
  listen(listener: FeedListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Opens the stream, and again after each loss, until `close`. */
  async run(): Promise<void> {
    let failures = 0;
    while (!this.#stop.signal.aborted) {
      try {
        await this.#read(() => {
          failures = 0;
        });
        this.#lose("the scheduler has closed the stream");
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        if (error instanceof Problem && (error.status === 401 || error.status === 403)) {
          this.#set({ kind: "refused", problem: error });
          return;
        }
        this.#lose(error instanceof Error ? error.message : String(error));
      }
      const wait = BACKOFF_MS[Math.min(failures, BACKOFF_MS.length - 1)] ?? 5000;
      failures += 1;
      await sleep(wait, this.#stop.signal);
    }
  }

  close(): void {
    this.#stop.abort();
  }

  #lose(why: string): void {
    // The time of the first failure stays: it is the age of what the page shows.
    const since = this.#state.kind === "lost" ? this.#state.since : Date.now();
    this.#set({ kind: "lost", since, why });
  }

  #set(state: FeedState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener.state?.(state);
  }

  async #read(opened: () => void): Promise<void> {
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    this.#stop.signal.addEventListener("abort", stop);
    let watchdog = setTimeout(stop, SILENCE_MS);
    try {
      const accept = { accept: "text/event-stream" };
      const last: Record<string, string> =
        this.#lastId === "" ? {} : { "last-event-id": this.#lastId };
      const answer = await fetch(this.path, {
        headers: headers({ ...accept, ...last }),
        cache: "no-store",
        redirect: "error",
        signal: attempt.signal,
      });
      if (!answer.ok || answer.body === null) throw await problemOf(answer);
      opened();
      this.#set({ kind: "live" });
      for (const listener of this.#listeners) listener.opened?.();
      const parser = new FrameParser();
      const decoder = new TextDecoder();
      const reader = answer.body.getReader();
      attempt.signal.addEventListener("abort", () => void reader.cancel().catch(() => undefined));
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(watchdog);
        watchdog = setTimeout(stop, SILENCE_MS);
        for (const frame of parser.push(decoder.decode(value, { stream: true }))) {
          this.#frame(frame.event, frame.data, frame.id);
        }
      }
    } finally {
      clearTimeout(watchdog);
      this.#stop.signal.removeEventListener("abort", stop);
      attempt.abort();
    }
  }

  #frame(kind: string, data: string, id: string): void {
    if (id !== "") this.#lastId = id;
    // `gap` needs nothing: every reader reads the state when the stream opens.
    if (kind === "gap") return;
    if (kind === "error") throw new Error(data);
    if (kind === "lagged") {
      for (const listener of this.#listeners) listener.opened?.();
      return;
    }
    const event = JSON.parse(data) as WatchEvent;
    for (const listener of this.#listeners) listener.event?.(event);
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done);
  });
}
