// What happened up to a moment, the latest first.

import type { Decision } from "../../api/types";
import { linkTo } from "../../router";
import { useLocale } from "../../text";
import { placedOn, victimsOf } from "../decision/model";
import type { DayEvent } from "./model";

/** Most events of the list. */
const SHOWN = 20;

export function EventList(props: {
  events: readonly DayEvent[];
  at: number;
  go: (at: number) => void;
}) {
  const { text, time } = useLocale();
  const { events, at } = props;
  const happened = events.filter((event) => event.at <= at);
  const shown = happened.slice(-SHOWN).reverse();
  return (
    <section aria-labelledby="events">
      <h2 id="events">{text.replay.events}</h2>
      {shown.length === 0 && <p>{text.replay.noEvents}</p>}
      <ol class="events">
        {shown.map((event, index) => (
          <li key={`${happened.length - index}`} data-kind={event.kind}>
            <button type="button" class="plain small" onClick={() => props.go(event.at)}>
              {time(event.at)}
            </button>{" "}
            <Words event={event} />
          </li>
        ))}
      </ol>
      {happened.length > shown.length && (
        <p class="quiet">{text.decision.elided(happened.length - shown.length)}</p>
      )}
    </section>
  );
}

function Words(props: { event: DayEvent }) {
  const { text } = useLocale();
  const { event } = props;
  if (event.kind === "decision") return <Decided decision={event.decision} />;
  const { stay } = event;
  if (event.kind === "start") return <>{text.replay.started(stay.name, stay.host)}</>;
  return (
    <>
      {text.replay.ended(stay.name, stay.host)} {text.ends[stay.end] ?? stay.end}
    </>
  );
}

function Decided(props: { decision: Decision }) {
  const { text } = useLocale();
  const { decision } = props;
  const victims = victimsOf(decision).length;
  const count = Math.max(1, decision.server_ids.length);
  return (
    <>
      <a href={linkTo("decisions", decision.id)}>
        {decision.no_valid_host === undefined
          ? text.decision.summaryPlaced(
              count,
              decision.flavor_name,
              placedOn(decision).join(", "),
            )
          : text.decision.summaryRefused(count, decision.flavor_name)}
      </a>
      {victims > 0 && <span class="state draining">{text.decisions.victims(victims)}</span>}
    </>
  );
}
