// One flavor: its price over time, who left meanwhile, and whether advice about it was right.

import { useState } from "preact/hooks";
import { serverNow } from "../../api/clock";
import { get, withQuery } from "../../api/client";
import { pages } from "../../api/pages";
import type { FlavorPrice, Life, PriceRecord } from "../../api/types";
import { Reading, useLoad } from "../../parts/load";
import { linkTo } from "../../router";
import { useLocale } from "../../text";
import { CalibrationPanel } from "./calibration";
import { PriceChart } from "./chart";
import { type Departure, departuresOf, type Step, stepsOf } from "./model";

const HOUR_MS = 3_600_000;
/** Periods to choose from, in hours. */
const PERIODS = [1, 24, 168, 720];
/** Most records and lives that are read for a period. */
const MOST = 5000;
/** Most rows of the table of those who left. */
const ROWS = 100;

interface History {
  from: number;
  to: number;
  steps: Step[];
  left: Departure[];
  complete: boolean;
}

export function FlavorPanel(props: { price: FlavorPrice }) {
  const { text } = useLocale();
  const { price } = props;
  const [hours, setHours] = useState(24);
  const read = useLoad(`${price.flavor} ${hours} ${price.since}`, (signal) =>
    historyOf(price, hours, signal),
  );
  const history = read.value;
  return (
    <section class="panel box" aria-labelledby="flavor">
      <h2 id="flavor">{price.flavor}</h2>
      <a href={linkTo("prices")}>{text.host.close}</a>
      <div class="controls">
        <label>
          {text.prices.period}
          <select
            value={hours}
            onChange={(change) => setHours(Number(change.currentTarget.value))}
          >
            {PERIODS.map((one) => (
              <option key={one} value={one}>
                {text.prices.periods[one]}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Reading of={read} />
      {history !== null && (
        <>
          <PriceChart flavor={price.flavor} {...history} />
          {!history.complete && <p class="quiet">{text.prices.incomplete}</p>}
          <Left left={history.left} />
          <Changes steps={history.steps} />
        </>
      )}
      {price.preemptible && <CalibrationPanel flavor={price.flavor} />}
    </section>
  );
}

async function historyOf(
  price: FlavorPrice,
  hours: number,
  signal: AbortSignal,
): Promise<History> {
  const to = serverNow();
  const from = to - hours * HOUR_MS;
  const start = new Date(from).toISOString();
  const { flavor } = price;
  const [records, before, lives] = await Promise.all([
    pages<PriceRecord>("/v1/price-history", { flavor, from: start }, "prices", MOST, signal),
    get<{ prices: PriceRecord[] }>(
      withQuery("/v1/price-history", { flavor, before: start, limit: 1 }),
      signal,
    ),
    pages<Life>("/v1/lives", { flavor, ended_from: start }, "lives", MOST, signal),
  ]);
  const steps = stepsOf([...records.rows, ...before.prices], Number(price.price), from, to);
  const left = departuresOf(lives.rows, steps, from, to);
  return { from, to, steps, left, complete: records.complete && lives.complete };
}

function Left(props: { left: Departure[] }) {
  const { text, money, dateTime } = useLocale();
  const { left } = props;
  return (
    <>
      <h3>{text.prices.left}</h3>
      {left.length === 0 && <p>{text.prices.noneLeft}</p>}
      {left.length > 0 && (
        <table class="cards left">
          <caption class="hidden">{text.prices.left}</caption>
          <thead>
            <tr>
              <th scope="col">{text.host.name}</th>
              <th scope="col">{text.decisions.at}</th>
              <th scope="col">{text.prices.why}</th>
              <th scope="col">{text.servers.price}</th>
            </tr>
          </thead>
          <tbody>
            {left.slice(0, ROWS).map(({ life, price }) => (
              <tr key={life.id} data-left={life.name}>
                <th scope="row" data-label={text.host.name}>
                  <a href={linkTo("decisions", life.server_id)}>{life.name}</a>
                  <small>{text.evacuations.project(life.project_id)}</small>
                </th>
                <td data-label={text.decisions.at}>{dateTime(life.ended_at)}</td>
                <td data-label={text.prices.why}>{text.ends[life.end] ?? life.end}</td>
                <td data-label={text.servers.price}>
                  {price === null ? text.none : money(price)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {left.length > ROWS && <p class="quiet">{text.decision.elided(left.length - ROWS)}</p>}
    </>
  );
}

function Changes(props: { steps: Step[] }) {
  const { text, money, dateTime } = useLocale();
  const steps = [...props.steps].reverse();
  return (
    <details>
      <summary>{text.capacity.table}</summary>
      <ul>
        {steps.slice(0, ROWS).map((step) => (
          <li key={step.at}>
            {dateTime(new Date(step.at).toISOString())}: {money(step.price)}
          </li>
        ))}
      </ul>
      {steps.length > ROWS && <p class="quiet">{text.decision.elided(steps.length - ROWS)}</p>}
    </details>
  );
}
