// One host: both states of each resource class, and its servers.

import { useEffect, useRef } from "preact/hooks";
import { get } from "../../api/client";
import type { Host, Server } from "../../api/types";
import { Reading, useLoad } from "../../parts/load";
import { byClass } from "../../parts/resources";
import { linkTo } from "../../router";
import { useLocale } from "../../text";

export function HostPanel(props: { name: string; turn: number }) {
  const { text } = useLocale();
  const path = `/v1/hosts/${encodeURIComponent(props.name)}`;
  const read = useLoad(path, (signal) => get<{ host: Host; servers: Server[] }>(path, signal));
  useEffect(() => {
    if (props.turn > 0) read.again();
  }, [props.turn]);
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    panel.current?.focus();
    panel.current?.scrollIntoView({ block: "nearest" });
  }, [props.name]);
  return (
    <section class="panel box" aria-labelledby="host-name" tabIndex={-1} ref={panel}>
      <h2 id="host-name">{props.name}</h2>
      <a href={linkTo("capacity")}>{text.host.close}</a>
      <Reading of={read} />
      {read.value !== null && <Details host={read.value.host} servers={read.value.servers} />}
    </section>
  );
}

function Details(props: { host: Host; servers: Server[] }) {
  const { text, number } = useLocale();
  const { host, servers } = props;
  const resources = [...host.resources].sort((a, b) =>
    byClass(a.resource_class, b.resource_class),
  );
  return (
    <>
      <p>
        {text.host.health}: {host.health}
        {host.disabled_reason !== "" && ` (${host.disabled_reason})`}; {text.host.zone}:{" "}
        {host.availability_zone || text.none}; {text.host.aggregates}:{" "}
        {host.aggregates.join(", ") || text.none}
      </p>
      <div class="scroll" tabIndex={0} role="group" aria-label={text.capacity.resource}>
        <table>
          <thead>
            <tr>
              <th scope="col">{text.capacity.resource}</th>
              <th scope="col">{text.capacity.total}</th>
              <th scope="col">{text.capacity.usedNormal}</th>
              <th scope="col">{text.capacity.soldColumn}</th>
              <th scope="col">{text.capacity.free}</th>
              <th scope="col">{text.capacity.freeNormal}</th>
            </tr>
          </thead>
          <tbody>
            {resources.map((one) => (
              <tr key={one.resource_class}>
                <th scope="row">{one.resource_class}</th>
                <td>{number(Number(one.capacity))}</td>
                <td>{number(Number(one.normal))}</td>
                <td>{number(Number(one.preemptible) + Number(one.leaving))}</td>
                <td>{number(Number(one.free_full))}</td>
                <td>{number(Number(one.free_normal))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h3>{text.host.servers}</h3>
      {servers.length === 0 ? <p>{text.host.none}</p> : <Servers servers={servers} />}
    </>
  );
}

function Servers(props: { servers: Server[] }) {
  const { text } = useLocale();
  return (
    <table class="cards">
      <thead>
        <tr>
          <th scope="col">{text.host.name}</th>
          <th scope="col">{text.host.kind}</th>
          <th scope="col">{text.host.flavor}</th>
          <th scope="col">{text.host.status}</th>
        </tr>
      </thead>
      <tbody>
        {props.servers.map((one) => (
          <tr key={one.id}>
            <th scope="row" data-label={text.host.name}>
              {one.decision_id === "" ? (
                one.name
              ) : (
                <a href={linkTo("decisions", one.decision_id)}>{one.name}</a>
              )}
              <small>{text.evacuations.project(one.project_id)}</small>
            </th>
            <td data-label={text.host.kind}>
              {one.preemptible ? text.decision.preemptible : text.decision.normal}
            </td>
            <td data-label={text.host.flavor}>{one.flavor_name}</td>
            <td data-label={text.host.status}>{one.status}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
