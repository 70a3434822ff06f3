// What was charged in a period. The scheduler sums up; the page only shows.

import { useState } from "preact/hooks";
import { get, withQuery } from "../../api/client";
import type { Bill, Bills } from "../../api/types";
import { Reading, useLoad } from "../../parts/load";
import { useLocale } from "../../text";
import { BilledHours } from "./hours";

/** The first day of this month and of the next one, in UTC as bills have it. */
function thisMonth(): { from: string; before: string } {
  const now = new Date();
  const first = (month: number): string =>
    new Date(Date.UTC(now.getUTCFullYear(), month, 1)).toISOString().slice(0, 10);
  return { from: first(now.getUTCMonth()), before: first(now.getUTCMonth() + 1) };
}

export function BillsPanel() {
  const { text } = useLocale();
  const [period, setPeriod] = useState(thisMonth);
  const time = (day: string): string => (day === "" ? "" : `${day}T00:00:00Z`);
  const query = { from: time(period.from), before: time(period.before) };
  const path = withQuery("/v1/bills", query);
  const read = useLoad(path, (signal) => get<Bills>(path, signal));
  return (
    <section aria-labelledby="bills">
      <h2 id="bills">{text.prices.bills}</h2>
      <p class="quiet">{text.prices.billsHint}</p>
      <div class="controls">
        <label>
          {text.prices.from}
          <input
            type="date"
            value={period.from}
            onChange={(change) => setPeriod({ ...period, from: change.currentTarget.value })}
          />
        </label>
        <label>
          {text.prices.before}
          <input
            type="date"
            value={period.before}
            onChange={(change) => setPeriod({ ...period, before: change.currentTarget.value })}
          />
        </label>
      </div>
      <Reading of={read} />
      {read.value !== null && read.value.bills.length === 0 && <p>{text.prices.noBills}</p>}
      {read.value !== null && read.value.bills.length > 0 && (
        <>
          <Rows bills={read.value} />
          <BilledHours query={query} />
        </>
      )}
    </section>
  );
}

function Rows(props: { bills: Bills }) {
  const { text, money, number } = useLocale();
  const { bills, charged } = props.bills;
  const hours = (one: Bill): string => number(Number(one.charged_hours), 0);
  const free = (one: Bill): string => number(Number(one.free_hours), 0);
  const unknown = bills.reduce((sum, one) => sum + Number(one.unknown_hours), 0);
  return (
    <>
      <table class="cards bills">
        <caption class="hidden">{text.prices.bills}</caption>
        <thead>
          <tr>
            <th scope="col">{text.decisions.project}</th>
            <th scope="col">{text.host.flavor}</th>
            <th scope="col">{text.prices.chargedHours}</th>
            <th scope="col">{text.prices.freeHours}</th>
            <th scope="col">{text.prices.charged}</th>
          </tr>
        </thead>
        <tbody>
          {bills.map((one) => (
            <tr key={`${one.project_id} ${one.flavor}`}>
              <th scope="row" data-label={text.decisions.project}>
                {one.project_id}
              </th>
              <td data-label={text.host.flavor}>{one.flavor}</td>
              <td data-label={text.prices.chargedHours}>{hours(one)}</td>
              <td data-label={text.prices.freeHours}>{free(one)}</td>
              <td data-label={text.prices.charged}>{money(Number(one.charged))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        <strong>{text.prices.sum(money(Number(charged)))}</strong>
      </p>
      {unknown > 0 && <p class="quiet">{text.prices.unknownHours(unknown)}</p>}
    </>
  );
}
