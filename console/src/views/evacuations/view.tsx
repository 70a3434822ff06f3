// Evacuations: live, failed ones first, each with what displaced it and why.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, withQuery } from "../../api/client";
import type { Evacuation, WatchEvent } from "../../api/types";
import { Reading, useLoad } from "../../parts/load";
import { type Names, useNames } from "../../parts/names";
import { useFeed } from "../../parts/region";
import { useSeconds } from "../../parts/seconds";
import { useLocale } from "../../text";
import { fits, grouped, merge } from "./model";
import { EvacuationTable } from "./table";

/** Most rows of evacuations that are over. */
const ENDED_ROWS = 100;

export function EvacuationsView() {
  const { text } = useLocale();
  const names = useNames();
  const [known, setKnown] = useState<ReadonlyMap<string, Evacuation>>(new Map());
  const [wanted, setWanted] = useState("");
  const [said, setSaid] = useState("");
  const words = useRef(text);
  words.current = text;
  const list = useLoad("evacuations", (signal) => readAll(signal));
  useEffect(() => {
    if (list.value === null) return;
    // What the list has is taken in as events are: an event may have been faster.
    const value = list.value;
    setKnown((known) => merge(known, value));
  }, [list.value]);
  const event = useCallback((event: WatchEvent) => {
    if (event.server !== undefined) names.learn(event.server);
    const next = event.evacuation;
    if (next === undefined) return;
    setKnown((known) => merge(known, [next]));
    const texts = words.current.evacuations;
    if (next.state === "draining") setSaid(texts.started(next.victim_name));
    if (next.state === "failed") setSaid(texts.nowFailed(next.victim_name));
  }, []);
  useFeed({ opened: list.again, event });

  const groups = useMemo(() => {
    const all = [...known.values()];
    const look = wanted.trim();
    return grouped(look === "" ? all : all.filter((one) => fits(one, preemptor(names, one), look)));
  }, [known, wanted, names]);
  const now = useSeconds(groups.active.length > 0);
  const shown = groups.ended.slice(0, ENDED_ROWS);
  const nothing = groups.failed.length + groups.active.length + groups.ended.length === 0;

  return (
    <section aria-labelledby="heading">
      <h1 id="heading">{text.evacuations.heading}</h1>
      <p class="lead">{text.evacuations.intro}</p>
      <label class="find">
        {text.evacuations.find}
        <input
          type="search"
          value={wanted}
          onInput={(input) => setWanted(input.currentTarget.value)}
        />
      </label>
      <p class="hidden" role="status">
        {said}
      </p>
      <Reading of={list} />
      {wanted.trim() !== "" && nothing && <p>{text.evacuations.noMatch}</p>}
      <EvacuationTable
        title={text.evacuations.failed}
        kind="failed"
        rows={groups.failed}
        empty={text.evacuations.noneFailed}
        names={names}
        now={now}
      />
      <EvacuationTable
        title={text.evacuations.active}
        kind="active"
        rows={groups.active}
        empty={text.evacuations.noneActive}
        names={names}
        now={now}
      />
      <EvacuationTable
        title={text.evacuations.ended}
        kind="ended"
        rows={shown}
        empty={text.evacuations.noneEnded}
        names={names}
        now={now}
      />
      {groups.ended.length > shown.length && (
        <p class="quiet">{text.evacuations.more(groups.ended.length - shown.length)}</p>
      )}
    </section>
  );
}

function preemptor(names: Names, evacuation: Evacuation): string {
  const named = names.of(evacuation.preemptor_id);
  return named === null ? "" : `${named.name} ${named.project}`;
}

/** The latest page of all, and every one that is in progress or has failed. */
async function readAll(signal: AbortSignal): Promise<Evacuation[]> {
  const lists = [
    { limit: 500 },
    { active_only: true, limit: 1000 },
    { state: "failed", limit: 100 },
  ];
  const read = lists.map((query) =>
    get<{ evacuations: Evacuation[] }>(withQuery("/v1/evacuations", query), signal),
  );
  const answers = await Promise.all(read);
  return answers.flatMap((answer) => answer.evacuations);
}
