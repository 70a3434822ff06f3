// What the REST API answers, as far as the console reads it: GET /v1/openapi.json has all of it.
// 64-bit integers are strings, times are RFC 3339, and an empty string means "none".

export interface ResourceUsage {
  resource_class: string;
  capacity: string;
  normal: string;
  preemptible: string;
  leaving: string;
  free_full: string;
  free_normal: string;
}

export interface Host {
  name: string;
  health: string;
  disabled_reason: string;
  availability_zone: string;
  aggregates: string[];
  resources: ResourceUsage[];
  normal_servers: number;
  preemptible_servers: number;
}

export interface Server {
  id: string;
  name: string;
  project_id: string;
  flavor_name: string;
  preemptible: boolean;
  status: string;
  state: string;
  state_reason: string;
  launched_at: string;
  resources: Record<string, string>;
  host: string;
  decision_id: string;
  evacuation_id: string;
  deadline_at: string;
  fault_message: string;
}

export interface Evacuation {
  id: string;
  victim_id: string;
  victim_name: string;
  victim_project_id: string;
  host: string;
  preemptor_id: string;
  decision_id: string;
  behaviour: string;
  grace_seconds: number;
  cost: number;
  state: string;
  attempts: number;
  reason: string;
  claimed_at: string;
  notified_at: string;
  draining_at: string;
  deadline_at: string;
  ended_at: string;
  cause: string;
  reclaim_owner: string;
}

export interface Victim {
  server_id: string;
  name: string;
  project_id: string;
  resources: Record<string, string>;
  age_seconds: number;
  cost: number;
}

export interface Placement {
  server_id: string;
  host: string;
  victims: Victim[];
  waits_for_room: boolean;
  alternates: string[];
}

export interface FilterStep {
  filter: string;
  before: number;
  after: number;
  dropped: { host: string; reason: string }[];
}

export interface Weight {
  weigher: string;
  raw: number;
  normalised: number;
  multiplier: number;
}

export interface RankedHost {
  host: string;
  chosen: boolean;
  eviction_cost?: number;
  victims: Victim[];
  weight: number;
  weights: Weight[];
}

export interface InstanceExplanation {
  filters: FilterStep[];
  ranking: RankedHost[];
  ranked: number;
}

export interface Explanation {
  policy: string;
  cost_module: string;
  filtered_on: string;
  instances: InstanceExplanation[];
  optimal: boolean;
  gap: number;
  warnings: string[];
}

export interface NoValidHost {
  reason: string;
  placed_before: number;
  dropped: { filter: string; dropped: number }[];
  hosts: number;
}

export interface Decision {
  id: string;
  at: string;
  project_id: string;
  flavor_name: string;
  preemptible: boolean;
  server_ids: string[];
  placements: Placement[];
  no_valid_host?: NoValidHost;
  explanation?: Explanation;
  request_id: string;
}

export interface Flavor {
  id: string;
  name: string;
  vcpus: number;
  ram_mb: number;
  disk_gb: number;
  preemptible: boolean;
}

export interface RegionSummary {
  hosts_up: number;
  hosts_down: number;
  hosts_disabled: number;
  servers: Record<string, number>;
  resources: ResourceUsage[];
  version: string;
  policy: string;
  cost_module: string;
}

export interface WatchEvent {
  at: string;
  sequence: string;
  decision?: Decision;
  server?: Server;
  evacuation?: Evacuation;
  host?: Host;
  lagged?: string;
}

export interface FlavorPrice {
  flavor: string;
  preemptible: boolean;
  /** What an hour costs now, for example "0.031". */
  price: string;
  price_per_hour: string;
  floor: string;
  ceiling: string;
  since: string;
  supply: string;
  demand: string;
}

export interface Prices {
  prices: FlavorPrice[];
  /** Whether prices follow supply and demand. */
  market: boolean;
}

/** A change of a price. */
export interface PriceRecord {
  id: string;
  flavor: string;
  at: string;
  price: string;
  supply: string;
  demand: string;
}

/** A life of a server that is over. */
export interface Life {
  id: string;
  server_id: string;
  name: string;
  project_id: string;
  flavor: string;
  preemptible: boolean;
  host: string;
  zone: string;
  launched_at: string;
  ended_at: string;
  end: string;
}

export interface Bill {
  project_id: string;
  flavor: string;
  charged_hours: string;
  free_hours: string;
  unknown_hours: string;
  charged: string;
}

export interface Bills {
  bills: Bill[];
  /** The sum of all. */
  charged: string;
}

/** An hour of a server, and what it cost. */
export interface BilledHour {
  id: string;
  project_id: string;
  server_id: string;
  name: string;
  flavor: string;
  /** Its number in the server's life, from 1. */
  hour: number;
  from: string;
  /** Empty if it is not known any more. */
  price: string;
  charged: string;
  charge: string;
}

export interface Advice {
  flavor: string;
  lives: number;
  interruptions: number;
  lived_hours: number;
  too_little: string;
  expected_hours: number;
  chances: { within_hours: number; chance: number }[];
  calibration?: Calibration;
}

/** A share with its 95 %. */
export interface SeenShare {
  share: number;
  low: number;
  high: number;
}

/** What past lives were told, and what happened. */
export interface Calibration {
  rows: ToldBefore[];
  overall: ToldBefore[];
  untold: number;
  /** agrees, differs or unknown. */
  verdict: string;
}

export interface ToldBefore {
  within_hours: number;
  told: number;
  lives: number;
  were?: SeenShare;
  off: boolean;
}

export interface Plugin {
  name: string;
  kind: string;
  carrier: string;
  enabled: boolean;
  multiplier?: number;
  on_failure: string;
  file: string;
  calls: string;
  failures: string;
  skipped: string;
  resting: boolean;
  last_failure: string;
  in_use: boolean;
  shadow: boolean;
  missing: string;
  added: boolean;
  shadow_calls: string;
  shadow_failures: string;
}

export interface ShadowTotals {
  no_valid_host: string;
  victims: string;
  cost: number;
  shadow_cost: number;
}

export interface ShadowReport {
  since_ms: string;
  what: string;
  decisions: string;
  different: string;
  failed: string;
  warned: string;
  decided?: ShadowTotals;
  in_shadow?: ShadowTotals;
  cost_unit: string;
  shadow_cost_unit: string;
  moves: { decided: string; in_shadow: string; times: string }[];
  other_moves: string;
  recent: ShadowDifference[];
  last_problem: string;
}

export interface ShadowDifference {
  at_ms: string;
  decision_id: string;
  flavor: string;
  decided: string[];
  in_shadow: string[];
  victims: number;
  shadow_victims: number;
}

/** What would have been decided otherwise. */
export interface Counterfactuals {
  without_weighers: { weigher: string; hosts: string[]; certain: boolean }[];
  needs_victims: boolean;
  one_more_host: string;
}
