// Which resource class a map of hosts shows.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { byClass } from "../../parts/resources";
import { useLocale } from "../../text";
import type { Columns, Usage } from "./columns";

/** The usage of the chosen class, `undefined` without any class, and the field to choose one. */
export function useResource(columns: Columns): {
  usage: Usage | undefined;
  field: ComponentChildren;
} {
  const { text } = useLocale();
  const [chosen, setChosen] = useState("");
  const classes = [...columns.classes.keys()].sort(byClass);
  const resource = columns.classes.has(chosen) ? chosen : (classes[0] ?? "");
  const field = (
    <label>
      {text.capacity.resource}
      <select value={resource} onChange={(change) => setChosen(change.currentTarget.value)}>
        {classes.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
  return { usage: columns.classes.get(resource), field };
}
