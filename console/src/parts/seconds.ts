// The scheduler's time, second by second.

import { useEffect, useState } from "preact/hooks";
import { serverNow } from "../api/clock";

/** Renders the caller once a second while `running`. */
export function useSeconds(running: boolean): number {
  const [now, setNow] = useState(serverNow);
  useEffect(() => {
    if (!running) return;
    setNow(serverNow());
    const timer = setInterval(() => setNow(serverNow()), 1000);
    return () => clearInterval(timer);
  }, [running]);
  return now;
}
