// Plugins that are in use or in shadow, and what would have been decided in shadow.

import { get } from "../../api/client";
import type { Plugin, RegionSummary, ShadowReport } from "../../api/types";
import { Loading, ProblemBox, useLoad } from "../../parts/load";
import { useFeed } from "../../parts/region";
import { useLocale } from "../../text";
import { ordered, stateOf } from "./model";
import { Shadow } from "./shadow";

export function PluginsView() {
  const { text } = useLocale();
  const plugins = useLoad("plugins", (signal) =>
    get<{ plugins: Plugin[] }>("/v1/plugins", signal),
  );
  const region = useLoad("region", (signal) => get<RegionSummary>("/v1/region", signal));
  const shadow = useLoad("shadow", (signal) => get<ShadowReport>("/v1/shadow", signal));
  const again = (): void => {
    plugins.again();
    region.again();
    shadow.again();
  };
  useFeed({ opened: again });
  const problem = plugins.problem ?? region.problem ?? shadow.problem;
  const all = ordered(plugins.value?.plugins ?? []);
  return (
    <section aria-labelledby="heading">
      <h1 id="heading">{text.views.plugins}</h1>
      <p class="lead">{text.plugins.intro}</p>
      {region.value !== null && (
        <p>{text.decision.policy(region.value.policy, region.value.cost_module)}</p>
      )}
      <p>
        <button type="button" class="plain" onClick={again}>
          {text.refresh}
        </button>
      </p>
      {problem !== null && <ProblemBox problem={problem} again={again} />}
      {plugins.value === null && plugins.loading && <Loading />}
      {plugins.value !== null && all.length === 0 && <p>{text.plugins.empty}</p>}
      {all.length > 0 && <Table plugins={all} />}
      {shadow.value !== null && <Shadow report={shadow.value} />}
    </section>
  );
}

function Table(props: { plugins: Plugin[] }) {
  const { text } = useLocale();
  return (
    <table class="cards plugins">
      <caption class="hidden">{text.views.plugins}</caption>
      <thead>
        <tr>
          <th scope="col">{text.host.name}</th>
          <th scope="col">{text.host.health}</th>
          <th scope="col">{text.plugins.multiplier}</th>
          <th scope="col">{text.plugins.calls}</th>
          <th scope="col">{text.plugins.failures}</th>
        </tr>
      </thead>
      <tbody>
        {props.plugins.map((one) => (
          <Row key={one.name} plugin={one} />
        ))}
      </tbody>
    </table>
  );
}

function Row(props: { plugin: Plugin }) {
  const { text, number } = useLocale();
  const { plugin } = props;
  const state = stateOf(plugin);
  const alarming = state === "missing" || state === "resting";
  const tone = alarming ? "failed" : state === "used" ? "spared" : "";
  const calls = plugin.shadow ? plugin.shadow_calls : plugin.calls;
  const failures = plugin.shadow ? plugin.shadow_failures : plugin.failures;
  return (
    <tr data-plugin={plugin.name}>
      <th scope="row" data-label={text.host.name}>
        <strong>{plugin.name}</strong>
        <small>
          {text.plugins.kinds[plugin.kind] ?? plugin.kind}, {plugin.carrier}, {plugin.file}
        </small>
      </th>
      <td data-label={text.host.health}>
        <span class={`state ${tone}`}>{text.plugins.states[state]}</span>
        {plugin.missing !== "" && <p class="reason">{plugin.missing}</p>}
      </td>
      <td data-label={text.plugins.multiplier}>
        {plugin.multiplier === undefined ? text.none : number(plugin.multiplier)}
      </td>
      <td data-label={text.plugins.calls}>{number(Number(calls))}</td>
      <td data-label={text.plugins.failures}>
        {number(Number(failures))}
        {Number(plugin.skipped) > 0 && (
          <small>{text.plugins.skipped(number(Number(plugin.skipped)))}</small>
        )}
        {plugin.last_failure !== "" && <p class="reason">{plugin.last_failure}</p>}
      </td>
    </tr>
  );
}
