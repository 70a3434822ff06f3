// The way of one request as a picture: hosts in, each filter, the ranking with its victims, the
// result. Bars are proportional to the number of hosts and to costs; every number is also text.

import { useState } from "preact/hooks";
import type { Counterfactuals, Decision, InstanceExplanation } from "../../api/types";
import { useNames } from "../../parts/names";
import { useLocale } from "../../text";
import { fateOf, hostsIn, missing, placedOn, stepsOf, victimsOf } from "./model";
import { hostsOf, Otherwise, type Switch } from "./otherwise";
import { Ranking } from "./ranking";
import { VictimList } from "./victims";

/** Most dropped hosts of a filter that are named. */
const NAMED = 50;

/** `asked` is true for a question: its servers do not exist and have no names. */
export function Picture(props: {
  decision: Decision;
  victim: string;
  asked?: boolean;
  counterfactuals?: Counterfactuals | undefined;
}) {
  const { text } = useLocale();
  const { decision, victim, counterfactuals } = props;
  const instances = decision.explanation?.instances ?? [];
  const [on, turn] = useState<Switch>("");
  const others = hostsOf(counterfactuals, on);
  const chosen = placedOn(decision)[0];
  return (
    <>
      <Summary decision={decision} victim={victim} asked={props.asked === true} />
      <Missing decision={decision} />
      {counterfactuals !== undefined && chosen !== undefined && (
        <Otherwise
          all={counterfactuals}
          chosen={chosen}
          victims={victimsOf(decision).length}
          on={on}
          turn={turn}
        />
      )}
      <h2>{text.decision.picture}</h2>
      <Request decision={decision} />
      {instances.length === 0 && <p class="quiet">{text.decision.unexplained}</p>}
      {instances.map((instance, index) => (
        <Instance
          key={index}
          instance={instance}
          title={instances.length > 1 ? text.decision.instance(index + 1, instances.length) : ""}
          victim={victim}
          others={others}
        />
      ))}
      <Result decision={decision} victim={victim} asked={props.asked === true} />
    </>
  );
}

/** The answer in a sentence or two. */
function Summary(props: { decision: Decision; victim: string; asked: boolean }) {
  const { text, number } = useLocale();
  const names = useNames();
  const { decision, victim } = props;
  const count = Math.max(1, decision.server_ids.length);
  const all = victimsOf(decision);
  const asked = all.find((one) => one.server_id === victim);
  const fate = fateOf(decision, victim);
  if (decision.no_valid_host !== undefined) {
    return (
      <div class="box bad summary">
        <p>
          <strong>{text.decision.summaryRefused(count, decision.flavor_name)}</strong>
        </p>
        <p>{decision.no_valid_host.reason}</p>
      </div>
    );
  }
  const holder = decision.placements.find((one) =>
    one.victims.some((each) => each.server_id === victim),
  );
  const id = holder?.server_id ?? decision.server_ids[0] ?? "";
  const named = props.asked ? null : names.of(id);
  const preemptor = named === null ? id.slice(0, 8) : `${named.name} (${decision.project_id})`;
  const hosts = placedOn(decision).join(", ");
  return (
    <div class="box summary">
      {asked !== undefined && (
        <p>
          <strong>
            {text.decision.displaced(`${asked.name} (${asked.project_id})`, preemptor)}
          </strong>
        </p>
      )}
      {fate !== null && <p>{text.decision.displacedWhy(fate.host, number(fate.cost))}</p>}
      <p>
        {text.decision.summaryPlaced(count, decision.flavor_name, hosts)}{" "}
        {all.length === 0 && text.decision.noVictims}
      </p>
    </div>
  );
}

/** NoValidHost: which resource classes are missing, and how much of each. */
function Missing(props: { decision: Decision }) {
  const { text, number } = useLocale();
  if (props.decision.no_valid_host === undefined) return null;
  const rows = missing(props.decision);
  if (rows.length === 0) return null;
  return (
    <section aria-labelledby="missing">
      <h2 id="missing">{text.decision.missing}</h2>
      <ul class="bars">
        {rows.map((row) => (
          <li key={row.resource} data-resource={row.resource}>
            <strong>{row.resource}</strong>{" "}
            {text.decision.missingRow(number(row.needs), number(Math.max(0, row.free)))}{" "}
            <small class="inline">{text.decision.missingHosts(row.hosts)}</small>
            <span class="bar need" aria-hidden="true">
              <span style={{ width: share(row.free, row.needs) }} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function share(part: number, whole: number): string {
  if (whole <= 0) return "0";
  return `${Math.min(100, Math.max(0, (part / whole) * 100))}%`;
}

function Request(props: { decision: Decision }) {
  const { text, dateTime } = useLocale();
  const { decision } = props;
  const explained = decision.explanation;
  const kind = decision.preemptible ? text.decision.preemptible : text.decision.normal;
  return (
    <div class="step">
      <h3>{text.decision.request}</h3>
      <p>
        {Math.max(1, decision.server_ids.length)} × <strong>{decision.flavor_name}</strong> ({kind}
        ), {text.evacuations.project(decision.project_id)}, {dateTime(decision.at)}
      </p>
      {explained !== undefined && (
        <p class="quiet">
          {explained.filtered_on === "normal" ? text.decision.onNormal : text.decision.onFull}{" "}
          {text.decision.policy(explained.policy, explained.cost_module)}
        </p>
      )}
    </div>
  );
}

function Instance(props: {
  instance: InstanceExplanation;
  title: string;
  victim: string;
  others: string[] | null;
}) {
  const { text } = useLocale();
  const { instance, title, victim, others } = props;
  const all = hostsIn(instance);
  return (
    <>
      {title !== "" && <h3 class="instance">{title}</h3>}
      <ol class="funnel">
        <li class="step">
          <Level hosts={all} of={all} words={text.decision.hostsIn(all)} />
        </li>
        {stepsOf(instance.filters).map((step, index) =>
          step.kind === "same" ? (
            <li key={index} class="step same quiet">
              {text.decision.unchanged(step.filters.length)}
              {step.filters.join(", ")}
            </li>
          ) : (
            <li key={index} class="step" data-filter={step.step.filter}>
              <strong>
                {text.decision.filter} {step.step.filter}
              </strong>{" "}
              <span class="state failed">
                {text.decision.dropped(step.step.before - step.step.after)}
              </span>
              <Level hosts={step.step.after} of={all} words={text.decision.kept(step.step.after)} />
              <Dropped dropped={step.step.dropped} all={step.step.before - step.step.after} />
            </li>
          ),
        )}
      </ol>
      {instance.ranking.length > 0 && (
        <Ranking instance={instance} victim={victim} others={others} />
      )}
    </>
  );
}

function Level(props: { hosts: number; of: number; words: string }) {
  return (
    <div class="level">
      <span class="bar wide" aria-hidden="true">
        <span style={{ width: share(props.hosts, props.of) }} />
      </span>
      <span>{props.words}</span>
    </div>
  );
}

function Dropped(props: { dropped: { host: string; reason: string }[]; all: number }) {
  const { text } = useLocale();
  const { dropped, all } = props;
  if (dropped.length === 0) return null;
  const shown = dropped.slice(0, NAMED);
  return (
    <details open={dropped.length <= 3}>
      <summary>{text.decision.dropped(all)}</summary>
      <ul>
        {shown.map((one) => (
          <li key={one.host}>
            <strong>{one.host}</strong>: {one.reason}
          </li>
        ))}
        {all > shown.length && <li class="quiet">{text.decision.elided(all - shown.length)}</li>}
      </ul>
    </details>
  );
}

function Result(props: { decision: Decision; victim: string; asked: boolean }) {
  const { text, number } = useLocale();
  const names = useNames();
  const { decision, victim } = props;
  const explained = decision.explanation;
  return (
    <div class="step result">
      <h3>{text.decision.result}</h3>
      {decision.no_valid_host !== undefined && <p>{decision.no_valid_host.reason}</p>}
      <ul>
        {decision.placements.map((one, index) => (
          <li key={one.server_id || index}>
            <strong>
              {props.asked
                ? text.decision.server(index + 1)
                : (names.of(one.server_id)?.name ?? one.server_id.slice(0, 8))}
            </strong>{" "}
            →{" "}
            {one.host}: {one.waits_for_room ? text.decision.waits : text.decision.starts}
            <VictimList victims={one.victims} marked={victim} />
          </li>
        ))}
      </ul>
      {explained !== undefined && !explained.optimal && (
        <p>{text.decision.notOptimal(number(explained.gap))}</p>
      )}
      {explained?.warnings.map((warning) => <p key={warning}>{warning}</p>)}
    </div>
  );
}
