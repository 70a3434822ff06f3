// What would have been decided in shadow: how often it differs, from where to where, and the last
// decisions that differ.

import type { ShadowDifference, ShadowReport, ShadowTotals } from "../../api/types";
import { linkTo } from "../../router";
import { useLocale } from "../../text";
import { share } from "./model";

export function Shadow(props: { report: ShadowReport }) {
  const { text, dateTime, number, percent } = useLocale();
  const { report } = props;
  const since = Number(report.since_ms);
  const differ = share(report.different, report.decisions);
  const count = (value: string): string => number(Number(value));
  return (
    <section aria-labelledby="shadow">
      <h2 id="shadow">{text.plugins.shadow}</h2>
      {since === 0 && <p>{text.plugins.noShadow}</p>}
      {since > 0 && (
        <>
          <p>{report.what}</p>
          <p class="quiet">{text.plugins.since(dateTime(new Date(since).toISOString()))}</p>
          <p data-different={report.different}>
            <strong>
              {text.plugins.differ(
                count(report.different),
                count(report.decisions),
                percent(differ),
              )}
            </strong>
          </p>
          <span class="bar wide" aria-hidden="true">
            <span style={{ width: `${differ * 100}%` }} />
          </span>
          {Number(report.failed) > 0 && <p>{text.plugins.failed(count(report.failed))}</p>}
          {report.last_problem !== "" && <p class="reason">{report.last_problem}</p>}
          <Totals report={report} />
          <Moves report={report} />
          <Recent recent={report.recent} />
        </>
      )}
    </section>
  );
}

function Totals(props: { report: ShadowReport }) {
  const { text, number } = useLocale();
  const { report } = props;
  const row = (name: string, of: (totals: ShadowTotals) => number) => (
    <tr>
      <th scope="row">{name}</th>
      {[report.decided, report.in_shadow].map((totals, index) => (
        <td key={index}>{totals === undefined ? text.none : number(of(totals))}</td>
      ))}
    </tr>
  );
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={text.plugins.totals}>
      <table>
        <caption class="hidden">{text.plugins.totals}</caption>
        <thead>
          <tr>
            <th scope="col">{text.plugins.totals}</th>
            <th scope="col">{text.plugins.decided}</th>
            <th scope="col">{text.plugins.inShadow}</th>
          </tr>
        </thead>
        <tbody>
          {row(text.decisions.refused, (totals) => Number(totals.no_valid_host))}
          {row(text.decision.victimsOf, (totals) => Number(totals.victims))}
          {row(text.plugins.costBy(report.cost_unit), (totals) => totals.cost)}
          {row(text.plugins.costBy(report.shadow_cost_unit), (totals) => totals.shadow_cost)}
        </tbody>
      </table>
    </div>
  );
}

function Moves(props: { report: ShadowReport }) {
  const { text, number } = useLocale();
  const { moves, other_moves } = props.report;
  const most = Math.max(1, ...moves.map((move) => Number(move.times)));
  if (moves.length === 0) return null;
  return (
    <>
      <h3>{text.plugins.moves}</h3>
      <ul class="bars">
        {moves.map((move) => (
          <li key={`${move.decided} ${move.in_shadow}`}>
            {move.decided || text.decisions.refused} →{" "}
            {move.in_shadow || text.decisions.refused}:{" "}
            {number(Number(move.times))} ×
            <span class="bar" aria-hidden="true">
              <span style={{ width: `${(Number(move.times) / most) * 100}%` }} />
            </span>
          </li>
        ))}
      </ul>
      {Number(other_moves) > 0 && <p class="quiet">{text.decision.elided(Number(other_moves))}</p>}
    </>
  );
}

function Recent(props: { recent: ShadowDifference[] }) {
  const { text, dateTime } = useLocale();
  if (props.recent.length === 0) return null;
  const hosts = (names: string[]): string => names.join(", ") || text.decisions.refused;
  return (
    <>
      <h3>{text.plugins.recent}</h3>
      <table class="cards">
        <caption class="hidden">{text.plugins.recent}</caption>
        <thead>
          <tr>
            <th scope="col">{text.decisions.at}</th>
            <th scope="col">{text.host.flavor}</th>
            <th scope="col">{text.plugins.decided}</th>
            <th scope="col">{text.plugins.inShadow}</th>
          </tr>
        </thead>
        <tbody>
          {props.recent.map((one) => (
            <tr key={one.decision_id}>
              <th scope="row" data-label={text.decisions.at}>
                <a href={linkTo("decisions", one.decision_id)}>
                  {dateTime(new Date(Number(one.at_ms)).toISOString())}
                </a>
              </th>
              <td data-label={text.host.flavor}>{one.flavor}</td>
              <td data-label={text.plugins.decided}>
                {hosts(one.decided)} <small>{text.decisions.victims(one.victims)}</small>
              </td>
              <td data-label={text.plugins.inShadow}>
                {hosts(one.in_shadow)}{" "}
                <small>{text.decisions.victims(one.shadow_victims)}</small>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
