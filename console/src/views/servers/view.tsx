// Servers: a tenant's own, with the countdown of a notice, the way to release early, the price and
// what to expect.

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../../api/client";
import type { Prices, Server, WatchEvent } from "../../api/types";
import { Reading, useLoad } from "../../parts/load";
import { useFeed, useRegion } from "../../parts/region";
import { useSeconds } from "../../parts/seconds";
import { useLocale } from "../../text";
import { AdvicePanel, useForecasts } from "./advice";
import { fits, isLeaving, ordered } from "./model";
import { ServerRow } from "./row";

/** Most servers that are read, and most rows. */
const READ = 1000;
const ROWS = 200;

export function ServersView() {
  const { text } = useLocale();
  const { seesAll } = useRegion();
  const [known, setKnown] = useState<ReadonlyMap<string, Server>>(new Map());
  const [wanted, setWanted] = useState("");
  const [advised, setAdvised] = useState("");
  const list = useLoad("servers", (signal) =>
    get<{ servers: Server[] }>(`/v1/servers?limit=${READ}`, signal),
  );
  const prices = useLoad("prices", (signal) =>
    get<Prices>("/v1/prices", signal),
  );
  useEffect(() => {
    if (list.value === null) return;
    setKnown(new Map(list.value.servers.map((one) => [one.id, one])));
  }, [list.value]);
  const event = useCallback(({ server, evacuation }: WatchEvent) => {
    if (server !== undefined) setKnown((known) => new Map(known).set(server.id, server));
    // A server's own event has its deadline only when the notice is confirmed.
    if (evacuation !== undefined && evacuation.deadline_at !== "") {
      setKnown((known) => withDeadline(known, evacuation.victim_id, evacuation.deadline_at));
    }
  }, []);
  useFeed({ opened: list.again, event });
  const rows = useMemo(() => {
    const look = wanted.trim();
    const all = ordered(known.values());
    return look === "" ? all : all.filter((one) => fits(one, look));
  }, [known, wanted]);
  const leaving = rows.filter(isLeaving).length;
  const now = useSeconds(leaving > 0);
  const forecasts = useForecasts(rows.slice(0, ROWS));
  const priceOf = new Map((prices.value?.prices ?? []).map((one) => [one.flavor, one.price]));
  return (
    <section aria-labelledby="heading">
      <h1 id="heading">{seesAll ? text.views.servers : text.servers.own}</h1>
      <p class="lead">{text.servers.intro}</p>
      <label class="find">
        {text.servers.find}
        <input
          type="search"
          value={wanted}
          onInput={(input) => setWanted(input.currentTarget.value)}
        />
      </label>
      <Reading of={list} />
      {list.value !== null && rows.length === 0 && <p>{text.servers.empty}</p>}
      {leaving > 0 && (
        <p role="status" class="urgent">
          {text.servers.notices(leaving)}
        </p>
      )}
      {advised !== "" && <AdvicePanel flavor={advised} close={() => setAdvised("")} />}
      {rows.length > 0 && (
        <table class="cards">
          <caption class="hidden">{text.views.servers}</caption>
          <thead>
            <tr>
              <th scope="col">{text.host.name}</th>
              <th scope="col">{text.host.flavor}</th>
              <th scope="col">{text.servers.price}</th>
              <th scope="col">{text.host.status}</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, ROWS).map((one) => (
              <ServerRow
                key={one.id}
                server={one}
                price={priceOf.get(one.flavor_name) ?? ""}
                forecast={forecasts.get(one.flavor_name)}
                now={now}
                advise={setAdvised}
              />
            ))}
          </tbody>
        </table>
      )}
      {rows.length > ROWS && <p class="quiet">{text.decision.elided(rows.length - ROWS)}</p>}
    </section>
  );
}

function withDeadline(
  known: ReadonlyMap<string, Server>,
  id: string,
  deadline_at: string,
): ReadonlyMap<string, Server> {
  const server = known.get(id);
  if (server === undefined || server.deadline_at === deadline_at) return known;
  return new Map(known).set(id, { ...server, deadline_at });
}
