// A set of victims.

import type { Victim } from "../../api/types";
import { byClass } from "../../parts/resources";
import { useLocale } from "../../text";

export function VictimList(props: { victims: Victim[]; marked: string }) {
  const { text, number, duration } = useLocale();
  if (props.victims.length === 0) return null;
  return (
    <ul class="victims">
      {props.victims.map((one, index) => (
        <li
          key={one.server_id || index}
          class={one.server_id !== "" && one.server_id === props.marked ? "marked" : ""}
        >
          <strong>{one.name === "" ? text.decision.preemptible : one.name}</strong>{" "}
          {one.project_id !== "" && <>{text.evacuations.project(one.project_id)}, </>}
          {resources(one.resources, number)}, {text.decision.age(duration(one.age_seconds))},{" "}
          {text.evacuations.cost} {number(one.cost)}
        </li>
      ))}
    </ul>
  );
}

/** "2 VCPU, 4,000 MEMORY_MB". */
function resources(all: Record<string, string>, number: (value: number) => string): string {
  const names = Object.keys(all).sort(byClass);
  return names.map((name) => `${number(Number(all[name]))} ${name}`).join(", ");
}
