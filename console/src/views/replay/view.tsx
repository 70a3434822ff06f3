// Replay: a day of the region, with a slider over it.

import { useEffect, useMemo, useState } from "preact/hooks";
import { serverNow } from "../../api/clock";
import { get } from "../../api/client";
import { pages } from "../../api/pages";
import type { Decision, Flavor, Host, Life, Server } from "../../api/types";
import { Reading, useLoad } from "../../parts/load";
import { linkTo } from "../../router";
import { useLocale } from "../../text";
import { type Columns, columnsOf } from "../capacity/columns";
import { EventList } from "./events";
import {
  boundsOf,
  type DayEvent,
  dayOf,
  eventsOf,
  momentOf,
  neighbour,
  type Sizes,
  sizesOf,
  type Stay,
  staysOf,
} from "./model";
import { MomentView } from "./moment";

/** Most lives, servers and decisions of a day that are read, each. */
const MOST = 20_000;
/** How long an event is shown while the day is played, in milliseconds. */
const FRAME_MS = 700;
/** A step of the slider, in milliseconds. */
const STEP_MS = 60_000;

interface Day {
  from: number;
  to: number;
  base: Columns;
  stays: Stay[];
  sizes: Sizes;
  events: DayEvent[];
  complete: boolean;
}

export function ReplayView(props: { day: string }) {
  const { text } = useLocale();
  const day = props.day === "" ? dayOf(serverNow()) : props.day;
  const read = useLoad(day, (signal) => dayFrom(day, signal));
  return (
    <section aria-labelledby="heading">
      <h1 id="heading">{text.views.replay}</h1>
      <p class="lead">{text.replay.intro}</p>
      <div class="controls">
        <label>
          {text.replay.day}
          <input
            type="date"
            value={day}
            onChange={(change) => {
              location.hash = linkTo("replay", change.currentTarget.value);
            }}
          />
        </label>
        <button type="button" class="plain" onClick={read.again}>
          {text.refresh}
        </button>
      </div>
      <Reading of={read} />
      {read.value !== null && <Player key={day} day={read.value} />}
    </section>
  );
}

async function dayFrom(day: string, signal: AbortSignal): Promise<Day> {
  const bounds = boundsOf(day) ?? boundsOf(dayOf(serverNow()));
  if (bounds === null) throw new Error(day);
  const { from } = bounds;
  const to = Math.min(bounds.to, serverNow());
  const time = (at: number): string => new Date(at).toISOString();
  const period = { from: time(from), before: time(bounds.to) };
  const lived = { ended_from: time(from), launched_before: time(bounds.to) };
  const [{ hosts }, { flavors }, lives, servers, decisions] = await Promise.all([
    get<{ hosts: Host[] }>("/v1/hosts", signal),
    get<{ flavors: Flavor[] }>("/v1/flavors", signal),
    pages<Life>("/v1/lives", lived, "lives", MOST, signal),
    pages<Server>("/v1/servers", { include_gone: "true" }, "servers", MOST, signal),
    pages<Decision>("/v1/decisions", period, "decisions", MOST, signal),
  ]);
  const stays = staysOf(lives.rows, servers.rows);
  return {
    from,
    to: Math.max(from, to),
    base: columnsOf(hosts),
    stays,
    sizes: sizesOf(flavors, servers.rows),
    events: eventsOf(stays, decisions.rows, from, bounds.to),
    complete: lives.complete && servers.complete && decisions.complete,
  };
}

function Player(props: { day: Day }) {
  const { text, time } = useLocale();
  const { day } = props;
  const [at, setAt] = useState(day.to);
  const [plays, setPlays] = useState(false);
  const next = neighbour(day.events, at, 1);
  const before = neighbour(day.events, at, -1);
  useEffect(() => {
    if (!plays) return;
    if (next === null) {
      setPlays(false);
      return;
    }
    const timer = setTimeout(() => setAt(next.at), FRAME_MS);
    return () => clearTimeout(timer);
  }, [plays, at]);
  const moment = useMemo(() => momentOf(day.base, day.stays, day.sizes, at), [day, at]);
  const play = (): void => {
    // At the end it begins again.
    if (!plays && next === null) setAt(day.from);
    setPlays(!plays);
  };
  return (
    <>
      {!day.complete && <p class="box">{text.replay.incomplete}</p>}
      <div class="slider">
        <label>
          {text.replay.time}: <strong data-at={at}>{time(at)}</strong>
          <input
            type="range"
            min={day.from}
            max={day.to}
            step={STEP_MS}
            value={at}
            aria-valuetext={time(at)}
            onInput={(input) => {
              setPlays(false);
              setAt(Number(input.currentTarget.value));
            }}
          />
        </label>
        <span class="row">
          <button
            type="button"
            class="plain"
            disabled={before === null}
            onClick={() => setAt(before?.at ?? at)}
          >
            {text.replay.before}
          </button>
          <button type="button" disabled={day.events.length === 0} onClick={play}>
            {plays ? text.replay.pause : text.replay.play}
          </button>
          <button
            type="button"
            class="plain"
            disabled={next === null}
            onClick={() => setAt(next?.at ?? at)}
          >
            {text.replay.next}
          </button>
        </span>
      </div>
      <p role="status" class="moment">
        {text.replay.servers(moment.normal, moment.preemptible)}{" "}
        {moment.unknown > 0 && text.replay.unknown(moment.unknown)}
      </p>
      <MomentView moment={moment} />
      <EventList events={day.events} at={at} go={setAt} />
      <p class="quiet">{text.replay.basis}</p>
    </>
  );
}
