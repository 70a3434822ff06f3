// The price of a flavor as a line of steps, with a mark for each server that had to leave. The
// tables below it say the same in words.

import { useLocale } from "../../text";
import { type Departure, pathOf, scaleOf, type Step } from "./model";

/** The size of the picture in its own units; it is as wide as the page. */
const WIDTH = 800;
const HEIGHT = 200;
/** Radius of a mark. */
const MARK = 5;

export function PriceChart(props: {
  flavor: string;
  steps: Step[];
  left: Departure[];
  from: number;
  to: number;
}) {
  const { text, money, dateTime } = useLocale();
  const { steps, left, from, to } = props;
  const scale = scaleOf(steps, from, to, WIDTH, HEIGHT);
  const words = text.prices.chart(props.flavor, steps.length, left.length);
  return (
    <figure class="chart">
      <figcaption class="quiet">
        {text.prices.upTo(money(scale.top))} <span class="mark" aria-hidden="true" />{" "}
        {text.prices.markMeans}
      </figcaption>
      <svg
        viewBox={`0 ${-MARK} ${WIDTH} ${HEIGHT + 2 * MARK}`}
        role="img"
        aria-label={words}
        preserveAspectRatio="none"
      >
        <path class="axis" d={`M0 ${HEIGHT}H${WIDTH}`} />
        <path class="line" d={pathOf(steps, to, scale)} />
        {left.map(({ life, at, price }) => (
          <circle key={life.id} class="mark" r={MARK} cx={scale.x(at)} cy={scale.y(price ?? 0)}>
            <title>{`${life.name}, ${dateTime(life.ended_at)}`}</title>
          </circle>
        ))}
      </svg>
      <p class="ends quiet">
        <span>{dateTime(new Date(from).toISOString())}</span>
        <span>{dateTime(new Date(to).toISOString())}</span>
      </p>
    </figure>
  );
}
