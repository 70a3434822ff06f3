import { describe, expect, it } from "vitest";
import { FrameParser } from "../src/api/sse";

describe("events of a stream", () => {
  it("are read as the scheduler writes them, and comments are no events", () => {
    const text = ': keep-alive\n\nid: 3\nevent: decision\ndata: {"sequence":"3"}\n\n';
    expect(new FrameParser().push(text)).toEqual([
      { event: "decision", data: '{"sequence":"3"}', id: "3" },
    ]);
  });

  it("are the same however the stream is cut", () => {
    const text = "event: a\r\ndata: 1\r\ndata: 2\r\n\r\ndata:3\n\nid: 7\ndata: ä\r\rdata: cut";
    const whole = new FrameParser().push(text);
    expect(whole.map((frame) => frame.data)).toEqual(["1\n2", "3", "ä"]);
    for (let cut = 1; cut < text.length; cut += 1) {
      const parser = new FrameParser();
      const pieces = [...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))];
      expect(pieces).toEqual(whole);
    }
  });

  it("without data are dropped", () => {
    expect(new FrameParser().push("event: a\n\nid: 4\n\ndata: x\n\n")).toEqual([
      { event: "", data: "x", id: "4" },
    ]);
  });
});
