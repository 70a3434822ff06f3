// Switches of a decision: what would have been decided without a weigher, with one more host, or if
// no server could be preempted. The scheduler has the answers; the page computes none.

import type { Counterfactuals } from "../../api/types";
import { useLocale } from "../../text";

/** What is switched: nothing, a weigher, or one of the two others. */
export type Switch = "" | "host" | "protected" | `weigher:${string}`;

/** The hosts that a switch would have chosen; `null` if it names none. */
export function hostsOf(all: Counterfactuals | undefined, on: Switch): string[] | null {
  if (!on.startsWith("weigher:")) return null;
  const name = on.slice("weigher:".length);
  return all?.without_weighers.find((one) => one.weigher === name)?.hosts ?? null;
}

export function Otherwise(props: {
  all: Counterfactuals;
  chosen: string;
  victims: number;
  on: Switch;
  turn: (on: Switch) => void;
}) {
  const { text } = useLocale();
  const { all, on, turn } = props;
  const choices: [Switch, string][] = [
    ["", text.otherwise.asDecided],
    ...all.without_weighers.map((one): [Switch, string] => [
      `weigher:${one.weigher}`,
      text.otherwise.without(one.weigher),
    ]),
    ["host", text.otherwise.host],
    ["protected", text.otherwise.protected],
  ];
  return (
    <fieldset class="otherwise">
      <legend>{text.otherwise.heading}</legend>
      {choices.map(([value, words]) => (
        <label key={value}>
          <input
            type="radio"
            name="otherwise"
            checked={on === value}
            onChange={() => turn(value)}
          />{" "}
          {words}
        </label>
      ))}
      <p role="status">{answer(text, props)}</p>
    </fieldset>
  );
}

function answer(
  text: ReturnType<typeof useLocale>["text"],
  props: { all: Counterfactuals; chosen: string; victims: number; on: Switch },
): string {
  const { all, chosen, victims, on } = props;
  if (on === "") return "";
  if (on === "host") {
    if (victims === 0) return text.otherwise.noVictims;
    if (all.one_more_host === "") return text.otherwise.unknown;
    return text.otherwise.oneMore(all.one_more_host);
  }
  if (on === "protected") {
    if (victims === 0) return text.otherwise.noVictims;
    return all.needs_victims ? text.otherwise.refused : text.otherwise.unknown;
  }
  const one = all.without_weighers.find((each) => `weigher:${each.weigher}` === on);
  if (one === undefined) return text.otherwise.unknown;
  if (one.hosts.includes(chosen)) {
    return one.certain ? text.otherwise.same(chosen) : text.otherwise.maybe;
  }
  const hosts = one.hosts.join(", ");
  return one.certain ? text.otherwise.other(hosts) : text.otherwise.maybeOther(hosts);
}
