// Reading from the API for a view, and saying what went wrong.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api/client";
import { useLocale } from "../text";
import { useFeedState, useRegion } from "./region";

export interface Loaded<T> {
  value: T | null;
  problem: Problem | null;
  loading: boolean;
  again: () => void;
}

/**
 * Reads when `key` changes, and again on demand. What was read stays shown meanwhile. A reading on
 * demand waits for the one that is under way: events that come faster than answers must not keep
 * the page from ever having one.
 */
export function useLoad<T>(key: string, read: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; value: T | null; problem: Problem | null }>({
    key,
    value: null,
    problem: null,
  });
  const [loading, setLoading] = useState(true);
  const latest = useRef(read);
  latest.current = read;
  const start = useRef<() => void>(() => undefined);
  useEffect(() => {
    const stop = new AbortController();
    let running = false;
    let wanted = false;
    const settle = (): void => {
      running = false;
      setLoading(wanted);
      if (wanted) go();
    };
    const go = (): void => {
      wanted = running;
      if (running) return;
      running = true;
      setLoading(true);
      latest.current(stop.signal).then(
        (value) => {
          if (stop.signal.aborted) return;
          setState({ key, value, problem: null });
          settle();
        },
        (error: unknown) => {
          if (stop.signal.aborted) return;
          const problem = asProblem(error);
          // An older answer to the same question stays on the page.
          setState((old) => ({ key, value: old.key === key ? old.value : null, problem }));
          settle();
        },
      );
    };
    start.current = go;
    go();
    return () => stop.abort();
  }, [key]);
  const again = useCallback(() => start.current(), []);
  const current = state.key === key;
  return {
    value: current ? state.value : null,
    problem: current ? state.problem : null,
    loading,
    again,
  };
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, "", error instanceof Error ? error.message : String(error), "");
}

/** A problem in words, with its code and the next step. */
export function ProblemBox(props: { problem: Problem; again?: () => void }) {
  const { text } = useLocale();
  const { problem, again } = props;
  const said = problem.status === 0 ? text.problem.unreachable : problem.message;
  return (
    <div class="box bad" role="alert">
      <p>
        {problem.code !== "" && !said.startsWith(problem.code) && <code>{problem.code}</code>}{" "}
        {said}
      </p>
      {problem.next !== "" && (
        <p>
          <strong>{text.problem.next}</strong> {problem.next}
        </p>
      )}
      {again !== undefined && (
        <button type="button" onClick={again}>
          {text.problem.retry}
        </button>
      )}
    </div>
  );
}

/** A line while the first answer is awaited. */
export function Loading() {
  const { text } = useLocale();
  return <p class="quiet">{text.loading}</p>;
}

/** The problem of a reading, or that its first answer is awaited. */
export function Reading(props: { of: Loaded<unknown> }) {
  const { value, problem, loading, again } = props.of;
  const { kind } = useFeedState(useRegion().feed);
  // The banner of a lost scheduler says so already, and the page shows what it has read.
  const said = kind === "lost" && value !== null && problem?.unreachable === true;
  return (
    <>
      {problem !== null && !said && <ProblemBox problem={problem} again={again} />}
      {value === null && loading && <Loading />}
    </>
  );
}
