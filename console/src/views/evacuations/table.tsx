// One group of evacuations.

import type { Evacuation } from "../../api/types";
import type { Names } from "../../parts/names";
import { linkTo } from "../../router";
import { useLocale } from "../../text";
import { Countdown } from "./countdown";
import { codeOf, isActive } from "./model";

export interface TableProps {
  title: string;
  kind: "failed" | "active" | "ended";
  rows: Evacuation[];
  empty: string;
  names: Names;
  now: number;
}

export function EvacuationTable(props: TableProps) {
  const { text } = useLocale();
  const { title, kind, rows, empty } = props;
  return (
    <section class={`group ${kind}`} aria-labelledby={`group-${kind}`}>
      <h2 id={`group-${kind}`}>
        {title} <span class="count">{rows.length}</span>
      </h2>
      {rows.length === 0 ? (
        <p class="quiet">{empty}</p>
      ) : (
        <table class="cards">
          <caption class="hidden">{title}</caption>
          <thead>
            <tr>
              <th scope="col">{text.evacuations.victim}</th>
              <th scope="col">{text.evacuations.displacedBy}</th>
              <th scope="col">{text.evacuations.host}</th>
              <th scope="col">{text.evacuations.state}</th>
              <th scope="col" class="right">
                {text.evacuations.cost}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={row.id} evacuation={row} names={props.names} now={props.now} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Row(props: { evacuation: Evacuation; names: Names; now: number }) {
  const { text, number } = useLocale();
  const { evacuation, names, now } = props;
  return (
    <tr data-state={evacuation.state} data-victim={evacuation.victim_name}>
      <th scope="row" data-label={text.evacuations.victim}>
        <strong>{evacuation.victim_name || evacuation.victim_id}</strong>
        <small>{text.evacuations.project(evacuation.victim_project_id)}</small>
      </th>
      <td data-label={text.evacuations.displacedBy}>
        <Cause evacuation={evacuation} names={names} />
      </td>
      <td data-label={text.evacuations.host}>{evacuation.host}</td>
      <td data-label={text.evacuations.state}>
        <State evacuation={evacuation} now={now} />
      </td>
      <td data-label={text.evacuations.cost} class="right">
        {number(evacuation.cost)}
      </td>
    </tr>
  );
}

/** What displaced it, with the link to why. */
function Cause(props: { evacuation: Evacuation; names: Names }) {
  const { text } = useLocale();
  const { evacuation, names } = props;
  if (evacuation.cause !== "preemption") {
    return (
      <>
        {text.cause[evacuation.cause] ?? evacuation.cause}
        {evacuation.reclaim_owner !== "" && <small>{evacuation.reclaim_owner}</small>}
      </>
    );
  }
  const named = names.of(evacuation.preemptor_id);
  const shown = named?.name ?? evacuation.preemptor_id.slice(0, 8);
  const query = { victim: evacuation.victim_id };
  return (
    <>
      <strong>{shown === "" ? text.evacuations.hidden : shown}</strong>{" "}
      {evacuation.decision_id !== "" && (
        <a
          class="why"
          href={linkTo("decisions", evacuation.decision_id, query)}
          aria-label={text.evacuations.whyOf(evacuation.victim_name)}
        >
          {text.evacuations.why}
        </a>
      )}
      {named !== null && <small>{text.evacuations.project(named.project)}</small>}
    </>
  );
}

function State(props: { evacuation: Evacuation; now: number }) {
  const { text, time } = useLocale();
  const { evacuation, now } = props;
  const code = codeOf(evacuation.reason);
  return (
    <>
      <span class={`state ${evacuation.state}`}>
        {text.state[evacuation.state] ?? evacuation.state}
      </span>{" "}
      <small class="inline">{text.behaviour[evacuation.behaviour] ?? evacuation.behaviour}</small>
      {isActive(evacuation) && <Countdown evacuation={evacuation} now={now} />}
      {evacuation.ended_at !== "" && (
        <small>{text.evacuations.endedAt(time(evacuation.ended_at))}</small>
      )}
      {evacuation.reason !== "" && <p class="reason">{evacuation.reason}</p>}
      {evacuation.state === "failed" && (
        <p class="next">
          <strong>{text.evacuations.nextStep}:</strong>{" "}
          {text.nextSteps[code] ?? text.nextSteps["other"]}
        </p>
      )}
    </>
  );
}
