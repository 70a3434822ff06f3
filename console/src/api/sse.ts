// Server-Sent Events, read by `fetch`: the browser's own EventSource sends no header
// `authorization` and would need the token in the address.

export interface Frame {
  event: string;
  data: string;
  id: string;
}

/** Splits a stream of text into events (HTML Living Standard, section 9.2.6). */
export class FrameParser {
  #rest = "";
  #event = "";
  #data: string[] = [];
  #id = "";

  /** Takes a piece of the stream and returns the events that are complete. */
  push(piece: string): Frame[] {
    const frames: Frame[] = [];
    this.#rest += piece;
    for (;;) {
      const end = this.#rest.search(/\r\n|\r|\n/);
      if (end === -1) break;
      // A `\r` at the end may be the first half of `\r\n`.
      if (this.#rest[end] === "\r" && end === this.#rest.length - 1) break;
      const line = this.#rest.slice(0, end);
      this.#rest = this.#rest.slice(end + (this.#rest.startsWith("\r\n", end) ? 2 : 1));
      const frame = this.#line(line);
      if (frame !== null) frames.push(frame);
    }
    return frames;
  }

  #line(line: string): Frame | null {
    if (line === "") {
      const frame = { event: this.#event, data: this.#data.join("\n"), id: this.#id };
      const complete = this.#data.length > 0;
      this.#event = "";
      this.#data = [];
      return complete ? frame : null;
    }
    const colon = line.indexOf(":");
    // A line that begins with a colon is a comment.
    if (colon === 0) return null;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id") this.#id = value;
    return null;
  }
}
