// The rest of a grace period: in words, and as a bar that becomes shorter.

import { until } from "../../api/clock";
import type { Evacuation } from "../../api/types";
import { useLocale } from "../../text";

export function Countdown(props: { evacuation: Evacuation; now: number }) {
  const { text, duration } = useLocale();
  const { evacuation, now } = props;
  const left = until(evacuation.deadline_at, now);
  if (left === null) return <span class="quiet">{text.evacuations.noticePending}</span>;
  const whole = Math.max(evacuation.grace_seconds * 1000, 1);
  const share = Math.min(1, Math.max(0, left / whole));
  const texts = text.evacuations;
  const words = left > 0 ? texts.secondsLeft(duration(left / 1000)) : texts.over;
  return (
    <span class="countdown" role="timer" aria-live="off">
      <span class={left < 10_000 ? "urgent" : ""}>{words}</span>
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  );
}
