// One server, and the button by which its owner gives the rest of a grace period back.

import { useState } from "preact/hooks";
import { until } from "../../api/clock";
import { post, type Problem } from "../../api/client";
import type { Advice, Server } from "../../api/types";
import { asProblem, ProblemBox } from "../../parts/load";
import { linkTo } from "../../router";
import { useLocale } from "../../text";
import { isLeaving } from "./model";

export function ServerRow(props: {
  server: Server;
  price: string;
  forecast: Advice | undefined;
  now: number;
  advise: (flavor: string) => void;
}) {
  const { text, number } = useLocale();
  const { server, price, forecast } = props;
  return (
    <tr data-server={server.name} data-status={server.status}>
      <th scope="row" data-label={text.host.name}>
        {server.decision_id === "" ? (
          <strong>{server.name}</strong>
        ) : (
          <a href={linkTo("decisions", server.decision_id)}>{server.name}</a>
        )}
        <small>{text.evacuations.project(server.project_id)}</small>
      </th>
      <td data-label={text.host.flavor}>
        {server.flavor_name}{" "}
        <small class="inline">
          {server.preemptible ? text.decision.preemptible : text.decision.normal}
        </small>
        {server.preemptible && (
          <button
            type="button"
            class="plain small"
            aria-label={text.servers.adviceOf(server.flavor_name)}
            onClick={() => props.advise(server.flavor_name)}
          >
            {text.servers.advice}
          </button>
        )}
      </td>
      <td data-label={text.servers.price}>
        {price === "" ? text.servers.noPrice : price}
        {server.preemptible && forecast !== undefined && (
          <small>
            {forecast.too_little === ""
              ? text.servers.living(number(forecast.expected_hours, 1))
              : text.servers.livingUnknown}
          </small>
        )}
      </td>
      <td data-label={text.host.status}>
        <span class={`state ${isLeaving(server) ? "draining" : ""}`}>{server.state}</span>
        {server.state_reason !== "" && <p class="reason">{server.state_reason}</p>}
        {server.fault_message !== "" && <p class="reason">{server.fault_message}</p>}
        {isLeaving(server) && <Leaving server={server} now={props.now} />}
      </td>
    </tr>
  );
}

function Leaving(props: { server: Server; now: number }) {
  const { text, duration } = useLocale();
  const { server, now } = props;
  const [sure, setSure] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const left = until(server.deadline_at, now);
  const release = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await post(`/v1/servers/${encodeURIComponent(server.id)}/release`, {});
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
    setSure(false);
  };
  return (
    <>
      {left !== null && (
        <p role="timer" aria-live="off">
          {left > 0 ? text.evacuations.secondsLeft(duration(left / 1000)) : text.evacuations.over}
        </p>
      )}
      {sure ? (
        <p>
          {text.servers.sure}{" "}
          <button type="button" disabled={busy} onClick={() => void release()}>
            {text.servers.releaseNow(server.name)}
          </button>{" "}
          <button type="button" class="plain" onClick={() => setSure(false)}>
            {text.servers.keep}
          </button>
        </p>
      ) : (
        <button
          type="button"
          aria-label={text.servers.releaseOf(server.name)}
          onClick={() => setSure(true)}
        >
          {text.servers.release}
        </button>
      )}
      {problem !== null && <ProblemBox problem={problem} />}
    </>
  );
}
