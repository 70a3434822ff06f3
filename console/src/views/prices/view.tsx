// Prices, bills and risk.

import { get } from "../../api/client";
import type { FlavorPrice, Prices } from "../../api/types";
import { Reading, useLoad } from "../../parts/load";
import { useFeed } from "../../parts/region";
import { linkTo } from "../../router";
import { useLocale } from "../../text";
import { BillsPanel } from "./bills";
import { FlavorPanel } from "./flavor";

export function PricesView(props: { flavor: string }) {
  const { text } = useLocale();
  const read = useLoad("prices", (signal) => get<Prices>("/v1/prices", signal));
  useFeed({ opened: read.again });
  const all = read.value?.prices ?? [];
  const chosen = all.find((one) => one.flavor === props.flavor);
  return (
    <section aria-labelledby="heading">
      <h1 id="heading">{text.views.prices}</h1>
      <p class="lead">
        {read.value?.market === true ? text.prices.market : text.prices.noMarket}
      </p>
      <Reading of={read} />
      {read.value !== null && all.length === 0 && <p>{text.prices.empty}</p>}
      {read.value !== null && props.flavor !== "" && chosen === undefined && (
        <p class="box" role="alert">
          {text.prices.unknownFlavor}
        </p>
      )}
      {all.length > 0 && <Table prices={all} chosen={props.flavor} />}
      {chosen !== undefined && <FlavorPanel key={chosen.flavor} price={chosen} />}
      <BillsPanel />
    </section>
  );
}

function Table(props: { prices: FlavorPrice[]; chosen: string }) {
  const { text, dateTime, money, number } = useLocale();
  return (
    <table class="cards prices">
      <caption class="hidden">{text.views.prices}</caption>
      <thead>
        <tr>
          <th scope="col">{text.host.flavor}</th>
          <th scope="col">{text.servers.price}</th>
          <th scope="col">{text.prices.range}</th>
          <th scope="col">{text.prices.demand}</th>
          <th scope="col">{text.prices.since}</th>
        </tr>
      </thead>
      <tbody>
        {props.prices.map((one) => (
          <tr key={one.flavor} data-flavor={one.flavor}>
            <th scope="row" data-label={text.host.flavor}>
              <a
                href={linkTo("prices", one.flavor)}
                aria-current={one.flavor === props.chosen ? "true" : undefined}
              >
                {one.flavor}
              </a>{" "}
              <small class="inline">
                {one.preemptible ? text.decision.preemptible : text.decision.normal}
              </small>
            </th>
            <td data-label={text.servers.price}>{money(Number(one.price))}</td>
            <td data-label={text.prices.range}>
              {one.floor === one.ceiling
                ? text.prices.fixed
                : `${money(Number(one.floor))} – ${money(Number(one.ceiling))}`}
            </td>
            <td data-label={text.prices.demand}>
              {one.since === ""
                ? text.none
                : text.prices.places(number(Number(one.demand)), number(Number(one.supply)))}
            </td>
            <td data-label={text.prices.since}>
              {one.since === "" ? text.none : dateTime(one.since)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
