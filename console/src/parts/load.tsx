// Reading from the API for a view, and saying what went wrong.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api/client";
import { useLocale } from "../text";

export interface Loaded<T> {
  value: T | null;
  problem: Problem | null;
  loading: boolean;
  again: () => void;
}

/** Reads when `key` changes, and again on demand. What was read stays shown meanwhile. */
export function useLoad<T>(key: string, read: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; value: T | null; problem: Problem | null }>({
    key,
    value: null,
    problem: null,
  });
  const [loading, setLoading] = useState(true);
  const [turn, setTurn] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const stop = new AbortController();
    setLoading(true);
    latest
      .current(stop.signal)
      .then((value) => {
        if (stop.signal.aborted) return;
        setState({ key, value, problem: null });
        setLoading(false);
      })
      .catch((error: unknown) => {
        if (stop.signal.aborted) return;
        const problem = asProblem(error);
        // An older answer to the same question stays on the page.
        setState((old) => ({ key, value: old.key === key ? old.value : null, problem }));
        setLoading(false);
      });
    return () => stop.abort();
  }, [key, turn]);
  const again = useCallback(() => setTurn((turn) => turn + 1), []);
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
