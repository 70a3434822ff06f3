// What a request would do: hosts and victims before anything happens.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, post, type Problem } from "../../api/client";
import type { Counterfactuals, Decision, Flavor, Host } from "../../api/types";
import { asProblem, ProblemBox, Reading, useLoad } from "../../parts/load";
import { useRegion } from "../../parts/region";
import { useLocale } from "../../text";
import { victimsOf } from "../decision/model";
import { Picture } from "../decision/picture";
import { VictimList } from "../decision/victims";

/** Nova's own limit of servers in a request is below it. */
const MOST = 1000;

interface Answer {
  decision: Decision;
  notices: string[];
  counterfactuals?: Counterfactuals;
}

export function WhatIfView() {
  const { text } = useLocale();
  const { seesAll } = useRegion();
  const flavors = useLoad("flavors", (signal) =>
    get<{ flavors: Flavor[] }>("/v1/flavors", signal),
  );
  const zones = useLoad("zones", (signal) => (seesAll ? readZones(signal) : Promise.resolve([])));
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [asking, setAsking] = useState(false);
  const result = useRef<HTMLElement>(null);
  useEffect(() => {
    if (answer !== null) result.current?.focus();
  }, [answer]);
  const ask = async (request: Record<string, unknown>) => {
    setAsking(true);
    setProblem(null);
    try {
      setAnswer(await post<Answer>("/v1/what-if", { request }));
    } catch (error) {
      setAnswer(null);
      setProblem(asProblem(error));
    }
    setAsking(false);
  };
  const list = flavors.value?.flavors ?? [];
  return (
    <section aria-labelledby="heading">
      <h1 id="heading">{text.whatIf.heading}</h1>
      <p class="lead">{text.whatIf.intro}</p>
      <Reading of={flavors} />
      {flavors.value !== null && list.length === 0 && <p>{text.whatIf.noFlavors}</p>}
      {list.length > 0 && (
        <Question flavors={list} zones={zones.value ?? []} asking={asking} ask={ask} />
      )}
      {problem !== null && <ProblemBox problem={problem} />}
      {answer !== null && (
        <section aria-live="polite" tabIndex={-1} ref={result} class="answer">
          <Outcome answer={answer} />
          <Picture
            key={answer.decision.id}
            decision={answer.decision}
            counterfactuals={answer.counterfactuals}
            victim=""
            asked
          />
        </section>
      )}
    </section>
  );
}

async function readZones(signal: AbortSignal): Promise<string[]> {
  const { hosts } = await get<{ hosts: Host[] }>("/v1/hosts", signal);
  return [...new Set(hosts.map((host) => host.availability_zone))].filter(Boolean).sort();
}

function Question(props: {
  flavors: Flavor[];
  zones: string[];
  asking: boolean;
  ask: (request: Record<string, unknown>) => void;
}) {
  const { text } = useLocale();
  const [flavor, setFlavor] = useState(props.flavors[0]?.name ?? "");
  const [count, setCount] = useState("1");
  const [zone, setZone] = useState("");
  const [project, setProject] = useState("");
  const number = Number(count);
  const valid = Number.isInteger(number) && number >= 1 && number <= MOST;
  return (
    <form
      class="question"
      onSubmit={(submit) => {
        submit.preventDefault();
        if (!valid) return;
        props.ask({ flavor, count: number, availability_zone: zone, project_id: project.trim() });
      }}
    >
      <label>
        {text.whatIf.flavor}
        <select value={flavor} onChange={(change) => setFlavor(change.currentTarget.value)}>
          {props.flavors.map((one) => (
            <option key={one.id} value={one.name}>
              {one.name} ({one.vcpus} VCPU, {one.ram_mb} MiB, {one.disk_gb} GiB
              {one.preemptible ? `, ${text.decision.preemptible}` : ""})
            </option>
          ))}
        </select>
      </label>
      <label>
        {text.whatIf.count}
        <input
          type="number"
          min={1}
          max={MOST}
          value={count}
          aria-invalid={!valid}
          onInput={(input) => setCount(input.currentTarget.value)}
        />
      </label>
      <label>
        {text.whatIf.zone}
        <select value={zone} onChange={(change) => setZone(change.currentTarget.value)}>
          <option value="">{text.whatIf.anyZone}</option>
          {props.zones.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <label>
        {text.whatIf.project}
        <input value={project} onInput={(input) => setProject(input.currentTarget.value)} />
      </label>
      <button type="submit" disabled={props.asking || !valid}>
        {text.whatIf.submit}
      </button>
      {!valid && (
        <p class="bad" role="alert">
          {text.whatIf.badCount}
        </p>
      )}
    </form>
  );
}

function Outcome(props: { answer: Answer }) {
  const { text } = useLocale();
  const { decision, notices } = props.answer;
  const victims = victimsOf(decision);
  const refused = decision.no_valid_host !== undefined;
  return (
    <div class="outcome" data-victims={victims.length}>
      <h2>
        {refused
          ? text.whatIf.refused
          : victims.length === 0
            ? text.whatIf.noVictim
            : text.whatIf.victims(victims.length)}
      </h2>
      <VictimList victims={victims} marked="" />
      {notices.length > 0 && (
        <>
          <h3>{text.whatIf.notes}</h3>
          <ul>
            {notices.map((notice) => (
              <li key={notice}>{notice}</li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
