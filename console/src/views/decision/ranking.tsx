// The hosts that passed the filters, with what each of them would have cost.

import type { InstanceExplanation, RankedHost } from "../../api/types";
import { useLocale } from "../../text";
import { ranked } from "./model";
import { VictimList } from "./victims";

/** Most hosts of the ranking that are shown. */
const SHOWN = 20;

/** `others`: the hosts that a switch would have chosen. */
export function Ranking(props: {
  instance: InstanceExplanation;
  victim: string;
  others: string[] | null;
}) {
  const { text } = useLocale();
  const hosts = ranked(props.instance).slice(0, SHOWN);
  const dearest = Math.max(0, ...hosts.map((host) => host.eviction_cost ?? 0));
  const cheapest = hosts[0]?.eviction_cost;
  const total = Math.max(props.instance.ranked, hosts.length);
  return (
    <div class="step ranking">
      <h3>{text.decision.ranking(total)}</h3>
      <p class="quiet">{text.decision.rankingHint}</p>
      <ol class="ranked">
        {hosts.map((host, index) => (
          <Row
            key={host.host}
            host={host}
            runnerUp={index === 1}
            other={props.others?.includes(host.host) === true}
            dearest={dearest}
            cheapest={cheapest}
            victim={props.victim}
          />
        ))}
      </ol>
      {total > hosts.length && <p class="quiet">{text.decision.elided(total - hosts.length)}</p>}
    </div>
  );
}

function Row(props: {
  host: RankedHost;
  runnerUp: boolean;
  other: boolean;
  dearest: number;
  cheapest: number | undefined;
  victim: string;
}) {
  const { text, number } = useLocale();
  const { host, runnerUp, dearest, cheapest } = props;
  const cost = host.eviction_cost;
  const difference = cost === undefined || cheapest === undefined ? 0 : cost - cheapest;
  const width = cost === undefined || dearest === 0 ? 0 : (cost / dearest) * 100;
  return (
    <li class={host.chosen ? "chosen" : ""} data-host={host.host}>
      <strong>{host.host}</strong>{" "}
      {host.chosen && <span class="state spared">{text.decision.chosen}</span>}
      {runnerUp && !host.chosen && <span class="state">{text.decision.runnerUp}</span>}
      {props.other && <span class="state draining">{text.otherwise.mark}</span>}
      <p>
        {text.decision.cost}: {cost === undefined ? text.decision.notCompared : number(cost)}
        {!host.chosen && difference > 0 && <> ({text.decision.dearer(number(difference))})</>};{" "}
        {text.decision.weight}: {number(host.weight, 4)}
      </p>
      {width > 0 && (
        <span class="bar wide cost" aria-hidden="true">
          <span style={{ width: `${width}%` }} />
        </span>
      )}
      {cost === 0 && host.victims.length === 0 && <p class="quiet">{text.decision.noVictim}</p>}
      <VictimList victims={host.victims} marked={props.victim} />
      {host.weights.some((one) => one.multiplier * one.normalised !== 0) && (
        <details>
          <summary>{text.decision.weights}</summary>
          <ul>
            {host.weights.map((one) => (
              <li key={one.weigher}>
                {one.weigher}: {number(one.multiplier)} × {number(one.normalised, 4)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}
