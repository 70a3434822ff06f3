// Decisions: the latest ones, and the picture of one.

import { useCallback, useState } from "preact/hooks";
import { get } from "../../api/client";
import type { Counterfactuals, Decision, WatchEvent } from "../../api/types";
import { Loading, ProblemBox, Reading, useLoad } from "../../parts/load";
import { useFeed } from "../../parts/region";
import { linkTo } from "../../router";
import { useLocale } from "../../text";
import { placedOn, victimsOf } from "./model";
import { Picture } from "./picture";

interface Explained {
  decision: Decision;
  counterfactuals?: Counterfactuals;
}

/** Number of decisions in the list. */
const LATEST = 50;

export function DecisionsView(props: { id: string; victim: string }) {
  return props.id === "" ? <Latest /> : <One key={props.id} id={props.id} victim={props.victim} />;
}

function Search() {
  const { text } = useLocale();
  const [id, setId] = useState("");
  return (
    <form
      class="find"
      onSubmit={(submit) => {
        submit.preventDefault();
        if (id.trim() !== "") location.hash = linkTo("decisions", id.trim());
      }}
    >
      <label for="decision-id">{text.decisions.find}</label>
      <span class="row">
        <input
          id="decision-id"
          type="search"
          value={id}
          onInput={(input) => setId(input.currentTarget.value)}
        />
        <button type="submit">{text.decisions.open}</button>
      </span>
    </form>
  );
}

function Latest() {
  const { text } = useLocale();
  const list = useLoad("decisions", (signal) =>
    get<{ decisions: Decision[] }>(`/v1/decisions?limit=${LATEST}`, signal),
  );
  const [live, setLive] = useState<Decision[]>([]);
  const event = useCallback(({ decision }: WatchEvent) => {
    if (decision !== undefined) setLive((live) => [decision, ...live].slice(0, LATEST));
  }, []);
  useFeed({ opened: list.again, event });
  const all = new Map([...live, ...(list.value?.decisions ?? [])].map((one) => [one.id, one]));
  const rows = [...all.values()].sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
  return (
    <section aria-labelledby="heading">
      <h1 id="heading">{text.decisions.heading}</h1>
      <p class="lead">{text.decisions.intro}</p>
      <Search />
      <Reading of={list} />
      {list.value !== null && rows.length === 0 && <p>{text.decisions.empty}</p>}
      {rows.length > 0 && <Rows rows={rows.slice(0, LATEST)} />}
    </section>
  );
}

function Rows(props: { rows: Decision[] }) {
  const { text, dateTime } = useLocale();
  return (
    <table class="cards">
      <caption class="hidden">{text.decisions.heading}</caption>
      <thead>
        <tr>
          <th scope="col">{text.decisions.at}</th>
          <th scope="col">{text.decisions.flavor}</th>
          <th scope="col">{text.decisions.project}</th>
          <th scope="col">{text.decisions.result}</th>
        </tr>
      </thead>
      <tbody>
        {props.rows.map((row) => (
          <tr key={row.id}>
            <th scope="row" data-label={text.decisions.at}>
              <a href={linkTo("decisions", row.id)}>{dateTime(row.at)}</a>
            </th>
            <td data-label={text.decisions.flavor}>
              {Math.max(1, row.server_ids.length)} × {row.flavor_name}
            </td>
            <td data-label={text.decisions.project}>{row.project_id}</td>
            <td data-label={text.decisions.result}>
              <Result decision={row} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Result(props: { decision: Decision }) {
  const { text } = useLocale();
  const { decision } = props;
  if (decision.no_valid_host !== undefined) {
    return <span class="state failed">{text.decisions.refused}</span>;
  }
  const victims = victimsOf(decision).length;
  const hosts = placedOn(decision);
  const shown = hosts.slice(0, 3).join(", ") + (hosts.length > 3 ? ", …" : "");
  return (
    <>
      {text.decisions.placed(shown)}
      {victims > 0 && <span class="state draining">{text.decisions.victims(victims)}</span>}
    </>
  );
}

function One(props: { id: string; victim: string }) {
  const { text } = useLocale();
  const path = `/v1/decisions/${encodeURIComponent(props.id)}`;
  const read = useLoad(path, (signal) => get<Explained>(path, signal));
  const gone = read.problem?.status === 404;
  return (
    <section aria-labelledby="heading">
      <p>
        <a href={linkTo("evacuations")}>← {text.views.evacuations}</a>{" "}
        <a href={linkTo("decisions")}>← {text.views.decisions}</a>
      </p>
      <h1 id="heading">{text.decision.heading}</h1>
      {gone && (
        <p class="box" role="alert">
          {text.decisions.notFound}
        </p>
      )}
      {read.problem !== null && !gone && <ProblemBox problem={read.problem} again={read.again} />}
      {read.value === null && read.loading && <Loading />}
      {read.value !== null && <Picture {...read.value} victim={props.victim} />}
    </section>
  );
}
