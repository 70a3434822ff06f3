// The single hours of a period's bills, read when the page opens them. What each one costs is the
// scheduler's answer.

import { useState } from "preact/hooks";
import { get, withQuery } from "../../api/client";
import type { BilledHour } from "../../api/types";
import { Reading, useLoad } from "../../parts/load";
import { linkTo } from "../../router";
import { useLocale } from "../../text";

/** Most rows that are shown: the earliest ones. */
const ROWS = 200;

export function BilledHours(props: { query: { from: string; before: string } }) {
  const { text } = useLocale();
  const [shown, setShown] = useState(false);
  return (
    <details onToggle={(toggle) => setShown(toggle.currentTarget.open)}>
      <summary>{text.prices.hours}</summary>
      {shown && <Hours {...props} />}
    </details>
  );
}

function Hours(props: { query: { from: string; before: string } }) {
  const { text, money, number, dateTime } = useLocale();
  // One more than is shown tells whether there are more.
  const path = withQuery("/v1/bills/hours", { ...props.query, limit: ROWS + 1 });
  const read = useLoad(path, (signal) => get<{ hours: BilledHour[] }>(path, signal));
  const hours = read.value?.hours ?? [];
  return (
    <>
      <Reading of={read} />
      {hours.length > 0 && (
        <table class="cards hours">
          <caption class="hidden">{text.prices.hours}</caption>
          <thead>
            <tr>
              <th scope="col">{text.host.name}</th>
              <th scope="col">{text.prices.from}</th>
              <th scope="col">{text.prices.hour}</th>
              <th scope="col">{text.servers.price}</th>
              <th scope="col">{text.prices.charged}</th>
              <th scope="col">{text.prices.why}</th>
            </tr>
          </thead>
          <tbody>
            {hours.slice(0, ROWS).map((one) => (
              <tr key={one.id} data-charge={one.charge}>
                <th scope="row" data-label={text.host.name}>
                  <a href={linkTo("decisions", one.server_id)}>{one.name}</a>
                  <small>{text.evacuations.project(one.project_id)}</small>
                </th>
                <td data-label={text.prices.from}>{dateTime(one.from)}</td>
                <td data-label={text.prices.hour}>{number(one.hour, 0)}</td>
                <td data-label={text.servers.price}>
                  {one.price === "" ? text.none : money(Number(one.price))}
                </td>
                <td data-label={text.prices.charged}>{money(Number(one.charged))}</td>
                <td data-label={text.prices.why}>{text.charges[one.charge] ?? one.charge}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {hours.length > ROWS && <p class="quiet">{text.prices.incomplete}</p>}
    </>
  );
}
