// What the colours of a map mean, and its sums as a table.

import { useEffect, useRef } from "preact/hooks";
import { useLocale } from "../../text";
import { SCALE, STEPS } from "./colours";
import { type Group, totalsOf, type Usage } from "./columns";

export function Legend() {
  const { text, percent } = useLocale();
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context === null || context === undefined) return;
    const image = context.createImageData(STEPS, 1);
    new Uint32Array(image.data.buffer).set(SCALE);
    context.putImageData(image, 0, 0);
  }, []);
  return (
    <p class="legend">
      {text.capacity.legend}: {percent(0)}{" "}
      <canvas ref={canvas} width={STEPS} height={1} aria-hidden="true" /> {percent(1)}
      <span>
        <span class="swatch away" aria-hidden="true" /> {text.capacity.unavailable}
      </span>
    </p>
  );
}

export function Sums(props: { groups: Group[]; usage: Usage }) {
  const { text, number, percent } = useLocale();
  return (
    <details>
      <summary>{text.capacity.table}</summary>
      <div class="scroll" tabIndex={0} role="group" aria-label={text.capacity.table}>
        <table>
          <thead>
            <tr>
              <th scope="col">{text.capacity.groupName}</th>
              <th scope="col">{text.capacity.total}</th>
              <th scope="col">{text.capacity.usedNormal}</th>
              <th scope="col">{text.capacity.soldColumn}</th>
              <th scope="col">{text.capacity.usedAll}</th>
            </tr>
          </thead>
          <tbody>
            {props.groups.map((group) => {
              const totals = totalsOf(props.usage, group.hosts);
              const whole = Math.max(totals.capacity, Number.MIN_VALUE);
              const share = (part: number): string =>
                `${number(part, 0)} (${percent(part / whole)})`;
              return (
                <tr key={group.name}>
                  <th scope="row">
                    {group.name === "" ? text.none : group.name} (
                    {text.capacity.hosts(group.hosts.length)})
                  </th>
                  <td>{number(totals.capacity, 0)}</td>
                  <td>{share(totals.normal)}</td>
                  <td>{share(totals.sold)}</td>
                  <td>{share(totals.full)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </details>
  );
}
