// Capacity: all hosts as a map, both states against each other.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../../api/client";
import type { Host, WatchEvent } from "../../api/types";
import { Reading, useLoad } from "../../parts/load";
import { useFeed } from "../../parts/region";
import { linkTo } from "../../router";
import { useLocale } from "../../text";
import { type Columns, columnsOf, type Grouping, groupsOf } from "./columns";
import { HostPanel } from "./host";
import { HostMap } from "./map";
import type { Measure } from "./paint";
import { useResource } from "./resource";
import { Legend, Sums } from "./sums";

/** Least time between two readings of all hosts after an event, in milliseconds. */
const REST_MS = 3000;
/** A reading that takes long is repeated the less often: this many times its own time. */
const REST_FACTOR = 10;

export function CapacityView(props: { host: string }) {
  const { text } = useLocale();
  const took = useRef(0);
  const list = useLoad("hosts", async (signal) => {
    const started = performance.now();
    const { hosts } = await get<{ hosts: Host[] }>("/v1/hosts", signal);
    const columns = columnsOf(hosts);
    took.current = performance.now() - started;
    return columns;
  });
  const [turn, setTurn] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const soon = useCallback((event: WatchEvent) => {
    const changed = event.host ?? event.server ?? event.evacuation;
    if (changed === undefined || timer.current !== null) return;
    timer.current = setTimeout(
      () => {
        timer.current = null;
        list.again();
        setTurn((turn) => turn + 1);
      },
      Math.max(REST_MS, took.current * REST_FACTOR),
    );
  }, []);
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current);
    },
    [],
  );
  useFeed({ opened: list.again, event: soon });
  const columns = list.value;
  return (
    <section aria-labelledby="heading">
      <h1 id="heading">{text.capacity.heading}</h1>
      <p class="lead">{text.capacity.intro}</p>
      <Reading of={list} />
      {columns !== null && columns.names.length === 0 && <p>{text.capacity.empty}</p>}
      {columns !== null && columns.names.length > 0 && (
        <Shown columns={columns} host={props.host} turn={turn} />
      )}
    </section>
  );
}

function Shown(props: { columns: Columns; host: string; turn: number }) {
  const { text } = useLocale();
  const { columns, host } = props;
  const { usage, field } = useResource(columns);
  const [by, setBy] = useState<Grouping>("zone");
  const [measure, setMeasure] = useState<Measure>("both");
  const groups = useMemo(
    () => groupsOf(columns, by, text.capacity.noGroup),
    [columns, by, text],
  );
  const open = (name: string): void => {
    location.hash = linkTo("capacity", name);
  };
  if (usage === undefined) return <p>{text.capacity.empty}</p>;
  return (
    <>
      <div class="controls">
        {field}
        <label>
          {text.capacity.show}
          <select
            value={measure}
            onChange={(change) => setMeasure(change.currentTarget.value as Measure)}
          >
            {Object.entries(text.capacity.measures).map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <label>
          {text.capacity.group}
          <select value={by} onChange={(change) => setBy(change.currentTarget.value as Grouping)}>
            {Object.entries(text.capacity.groups).map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <Find columns={columns} open={open} />
      </div>
      <Legend />
      {host !== "" && <HostPanel name={host} turn={props.turn} />}
      <HostMap
        columns={columns}
        usage={usage}
        groups={groups}
        measure={measure}
        selected={host}
        open={open}
      />
      <Sums groups={groups} usage={usage} />
    </>
  );
}

function Find(props: { columns: Columns; open: (host: string) => void }) {
  const { text } = useLocale();
  const [wanted, setWanted] = useState("");
  return (
    <form
      onSubmit={(submit) => {
        submit.preventDefault();
        const word = wanted.trim();
        const all = props.columns.names;
        const found = all.find((name) => name === word) ?? all.find((name) => name.includes(word));
        if (word !== "" && found !== undefined) props.open(found);
      }}
    >
      <label>
        {text.capacity.find}
        <input
          type="search"
          value={wanted}
          onInput={(input) => setWanted(input.currentTarget.value)}
        />
      </label>
    </form>
  );
}
