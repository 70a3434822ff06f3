// Which view the page shows: the part of the address behind `#`, which browsers do not send.

import { useEffect, useState } from "preact/hooks";

export const VIEWS = [
  "evacuations",
  "servers",
  "decisions",
  "capacity",
  "whatIf",
  "prices",
  "plugins",
  "replay",
] as const;
export type View = (typeof VIEWS)[number];

export interface Place {
  view: View;
  /** What the view shows: the id of a decision, the name of a host. */
  id: string;
  query: URLSearchParams;
}

const PATHS: Record<View, string> = {
  evacuations: "evacuations",
  servers: "servers",
  decisions: "decisions",
  capacity: "capacity",
  whatIf: "what-if",
  prices: "prices",
  plugins: "plugins",
  replay: "replay",
};

/** The link to a view. */
export function linkTo(view: View, id = "", query: Record<string, string> = {}): string {
  const path = `#/${PATHS[view]}${id === "" ? "" : `/${encodeURIComponent(id)}`}`;
  const text = new URLSearchParams(query).toString();
  return text === "" ? path : `${path}?${text}`;
}

/** Reads the part of an address behind `#`; evacuations if it names no view. */
export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const [name = "", id = ""] = path.split("/", 2);
  const view = VIEWS.find((view) => PATHS[view] === name) ?? "evacuations";
  let decoded = "";
  try {
    decoded = decodeURIComponent(id);
  } catch {
    // Not an address that a link of ours has.
  }
  return { view, id: decoded, query: new URLSearchParams(query) };
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useEffect(() => {
    const changed = () => setPlace(placeOf(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return place;
}
