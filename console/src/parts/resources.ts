// The order in which resource classes are shown.

const FIRST = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB"];

/** Compares two resource classes: the common ones first, then by name. */
export function byClass(a: string, b: string): number {
  return rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0);
}

function rank(name: string): number {
  const known = FIRST.indexOf(name);
  return known === -1 ? FIRST.length : known;
}
