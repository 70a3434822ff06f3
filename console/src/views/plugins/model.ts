// Plugins: what each one does now.

import type { Plugin } from "../../api/types";

/** In the order in which an operator has to look at them. */
export const STATES = ["missing", "resting", "shadow", "used", "unused", "off"] as const;
export type PluginState = (typeof STATES)[number];

export function stateOf(plugin: Plugin): PluginState {
  if (plugin.missing !== "") return "missing";
  if (!plugin.enabled) return "off";
  if (plugin.resting) return "resting";
  if (plugin.shadow) return "shadow";
  return plugin.in_use ? "used" : "unused";
}

/** Those that need attention first, then by name. */
export function ordered(plugins: readonly Plugin[]): Plugin[] {
  const rank = (plugin: Plugin): number => STATES.indexOf(stateOf(plugin));
  return [...plugins].sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

/** A share of counts that the API writes as text; 0 of nothing. */
export function share(part: string, whole: string): number {
  return Number(whole) > 0 ? Number(part) / Number(whole) : 0;
}
