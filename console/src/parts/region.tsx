// What all views share: the event stream, and what the token may see.

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { type Feed, type FeedListener, type FeedState } from "../api/feed";

export interface Region {
  feed: Feed;
  /** True if the token sees the whole region: operator or reader. */
  seesAll: boolean;
}

const Current = createContext<Region | null>(null);
export const RegionProvider = Current.Provider;

export function useRegion(): Region {
  const region = useContext(Current);
  if (region === null) throw new Error("a view outside of a region");
  return region;
}

/** Listens to the event stream while the component is shown. */
export function useFeed(listener: FeedListener): void {
  const { feed } = useRegion();
  // The listener has to be made anew only if the stream is another one.
  useEffect(() => feed.listen(listener), [feed]);
}

export function useFeedState(feed: Feed): FeedState {
  const [state, setState] = useState(feed.state);
  useEffect(() => {
    setState(feed.state);
    return feed.listen({ state: setState });
  }, [feed]);
  return state;
}
