// The map of a moment, and the servers of one of its hosts.

import { useMemo, useState } from "preact/hooks";
import { useLocale } from "../../text";
import { groupsOf } from "../capacity/columns";
import { HostMap } from "../capacity/map";
import { useResource } from "../capacity/resource";
import { Legend, Sums } from "../capacity/sums";
import type { Moment } from "./model";

export function MomentView(props: { moment: Moment }) {
  const { text } = useLocale();
  const { columns, servers } = props.moment;
  const { usage, field } = useResource(columns);
  const [host, setHost] = useState("");
  // Hosts and zones are the same at every moment.
  const groups = useMemo(() => groupsOf(columns, "zone", text.capacity.noGroup), [columns.names]);
  if (usage === undefined) return <p>{text.capacity.empty}</p>;
  const there = servers.get(host) ?? [];
  return (
    <>
      <div class="controls">{field}</div>
      <Legend />
      <HostMap
        columns={columns}
        usage={usage}
        groups={groups}
        measure="both"
        selected={host}
        open={setHost}
      />
      {host !== "" && (
        <section class="panel box" aria-labelledby="replay-host">
          <h2 id="replay-host">{host}</h2>
          {there.length === 0 && <p>{text.host.none}</p>}
          <ul>
            {there.map((stay) => (
              <li key={stay.id}>
                <strong>{stay.name}</strong> ({text.evacuations.project(stay.project)}),{" "}
                {stay.flavor},{" "}
                {stay.preemptible ? text.decision.preemptible : text.decision.normal}
              </li>
            ))}
          </ul>
        </section>
      )}
      <Sums groups={groups} usage={usage} />
    </>
  );
}
