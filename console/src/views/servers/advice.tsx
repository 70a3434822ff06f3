// How long a new server of a flavor will probably live.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, withQuery } from "../../api/client";
import type { Advice, Server } from "../../api/types";
import { Reading, useLoad } from "../../parts/load";
import { useLocale } from "../../text";

/** Most flavors whose forecast is read without being asked for. */
const FORECASTS = 10;

/** What is expected of a new server of each preemptible flavor among these servers. */
export function useForecasts(servers: readonly Server[]): ReadonlyMap<string, Advice> {
  const [known, setKnown] = useState<ReadonlyMap<string, Advice>>(new Map());
  const flavors = servers.filter((one) => one.preemptible).map((one) => one.flavor_name);
  const wanted = [...new Set(flavors)].sort().slice(0, FORECASTS);
  useEffect(() => {
    const stop = new AbortController();
    for (const flavor of wanted) {
      get<Advice>(withQuery("/v1/advice", { flavor }), stop.signal).then(
        (advice) => setKnown((known) => new Map(known).set(flavor, advice)),
        // The button beside the server says why there is none.
        () => undefined,
      );
    }
    return () => stop.abort();
  }, [wanted.join("\n")]);
  return known;
}

export function AdvicePanel(props: { flavor: string; close: () => void }) {
  const { text } = useLocale();
  const path = withQuery("/v1/advice", { flavor: props.flavor });
  const read = useLoad(path, (signal) => get<Advice>(path, signal));
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus(), [props.flavor]);
  return (
    <section class="panel box" aria-labelledby="advice" tabIndex={-1} ref={panel}>
      <h2 id="advice">{text.servers.adviceOf(props.flavor)}</h2>
      <Reading of={read} />
      {read.value !== null && <Told advice={read.value} />}
      <button type="button" class="plain" onClick={props.close}>
        {text.host.close}
      </button>
    </section>
  );
}

function Told(props: { advice: Advice }) {
  const { text, number, percent } = useLocale();
  const { advice } = props;
  const known = text.servers.basis(advice.lives, advice.interruptions, number(advice.lived_hours));
  if (advice.too_little !== "") {
    return (
      <>
        <p>{text.servers.tooLittle}</p>
        <p class="quiet">{known}</p>
      </>
    );
  }
  return (
    <>
      <p>
        <strong>{text.servers.expected(number(advice.expected_hours, 1))}</strong>
      </p>
      <ul class="bars">
        {advice.chances.map((one) => (
          <li key={one.within_hours}>
            {text.servers.chance(percent(one.chance), number(one.within_hours, 1))}
            <span class="bar" aria-hidden="true">
              <span style={{ width: `${Math.min(1, one.chance) * 100}%` }} />
            </span>
          </li>
        ))}
      </ul>
      <p class="quiet">{known}</p>
    </>
  );
}
