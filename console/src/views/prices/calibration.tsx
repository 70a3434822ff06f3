// Whether advice was right: what past servers were told, and what happened to them.

import { get, withQuery } from "../../api/client";
import type { Advice, Calibration, ToldBefore } from "../../api/types";
import { Reading, useLoad } from "../../parts/load";
import { useLocale } from "../../text";

export function CalibrationPanel(props: { flavor: string }) {
  const { text } = useLocale();
  const path = withQuery("/v1/advice", { flavor: props.flavor });
  const read = useLoad(path, (signal) => get<Advice>(path, signal));
  const found = read.value?.calibration;
  const rows = found?.rows ?? [];
  return (
    <section aria-labelledby="calibration">
      <h3 id="calibration">{text.prices.calibration}</h3>
      <p class="quiet">{text.prices.calibrationHint}</p>
      <Reading of={read} />
      {found !== undefined && <p class="verdict">{text.prices.verdict[found.verdict]}</p>}
      {read.value !== null && rows.length === 0 && <p>{text.prices.uncalibrated}</p>}
      {found !== undefined && rows.length > 0 && <Rows calibration={found} />}
    </section>
  );
}

function Rows(props: { calibration: Calibration }) {
  const { text, number } = useLocale();
  return (
    <>
      <table class="cards">
        <caption class="hidden">{text.prices.calibration}</caption>
        <thead>
          <tr>
            <th scope="col">{text.prices.within}</th>
            <th scope="col">{text.prices.told}</th>
            <th scope="col">{text.prices.happened}</th>
            <th scope="col">{text.prices.livesColumn}</th>
          </tr>
        </thead>
        <tbody>
          {props.calibration.rows.map((row) => (
            <Row key={`${row.within_hours} ${row.told}`} row={row} />
          ))}
        </tbody>
      </table>
      {props.calibration.untold > 0 && (
        <p class="quiet">{text.prices.untold(number(props.calibration.untold))}</p>
      )}
    </>
  );
}

function Row(props: { row: ToldBefore }) {
  const { text, number, percent } = useLocale();
  const { row } = props;
  const { were } = row;
  return (
    <tr>
      <th scope="row" data-label={text.prices.within}>
        {number(row.within_hours, 1)} h
      </th>
      <td data-label={text.prices.told}>
        {percent(row.told)}
        <Bar share={row.told} />
      </td>
      <td data-label={text.prices.happened}>
        {were === undefined
          ? text.none
          : text.prices.seen(percent(were.share), percent(were.low), percent(were.high))}
        {were !== undefined && <Bar share={were.share} />}
        {row.off && <span class="state failed">{text.prices.off}</span>}
      </td>
      <td data-label={text.prices.livesColumn}>{number(row.lives)}</td>
    </tr>
  );
}

function Bar(props: { share: number }) {
  return (
    <span class="bar" aria-hidden="true">
      <span style={{ width: `${Math.min(1, Math.max(0, props.share)) * 100}%` }} />
    </span>
  );
}
