/** Readable names for scenario keys: `selective_drop` is "Selective Drop", `mss` "Segment size (MSS)". */

/** Kinds: policies, schedulers, TCPs, topologies and so on. */
const KINDS: Readonly<Record<string, string>> = {
  tail_drop: "Tail drop",
  ppd: "PPD: partial packet discard",
  epd: "EPD: early packet discard",
  double_epd: "Double EPD",
  per_vc_accounting: "EPD with per-VC accounting",
  per_vc_accounting_fixed: "EPD with per-VC accounting, fixed share",
  virtual_queuing: "Virtual queuing",
  virtual_queuing_threshold: "Virtual queuing, real thresholds",
  virtual_queuing_weighted: "Virtual queuing, minimum shares",
  selective_drop: "Selective Drop",
  wba: "Weighted Buffer Allocation",
  fba: "FBA: fair buffer allocation",
  weighted_fba: "Weighted FBA",
  single_drop: "Single drop",
  dfba: "DFBA of 1997",
  dfba_1998: "DFBA of 1998",
  drop_from_front: "Drop from front",
  formula: "Formula of your own",
  python: "Python class of your own",
  fifo: "FIFO: first in, first out",
  strict_priority: "Strict priority",
  guaranteed_rate: "Guaranteed rate",
  wfq: "Weighted fair queuing",
  wfq_formula: "Weighted fair queuing, weights as a formula",
  round_robin: "Round robin (per-VC queuing)",
  minimum_rate: "Minimum rate",
  vanilla: "Vanilla: no fast retransmit",
  tahoe: "Tahoe",
  reno: "Reno",
  newreno: "NewReno",
  newreno_hoe: "NewReno, Hoe's recovery",
  sack: "SACK",
  sack_pipe: "SACK, Fall and Floyd's pipe",
  smoltcp: "smoltcp",
  quic: "QUIC",
  n_source: "N sources, one bottleneck",
  vc_merge: "VC merging",
  leaf_spine: "Leaves and spines",
  internetwork: "IP networks around an ATM network",
  chain: "Chain of switches",
  star: "Star around one switch",
  network: "Nodes and links one by one",
  greedy: "Greedy: endless data",
  file: "One file",
  bursts: "Files with pauses",
  constant_rate: "Constant rate (UDP)",
  on_off: "On-off bursts (UDP)",
  efci: "EFCI: one congestion bit",
  equal_share: "Equal share",
  erica: "ERICA",
  erica_plus: "ERICA+",
  max_min: "Max-min (ideal)",
  front_drop: "Front drop",
  adaptive_discard: "Adaptive discard (ADA)",
  shared_adaptive_discard: "Adaptive discard, shared memory",
};

/** Names of keys that are not self-explanatory. */
const KEYS: Readonly<Record<string, string>> = {
  aal5: "Framing (AAL5)",
  edge: "Edge devices",
  flow: "Single flows",
  vc: "Single VCs",
  host: "Hosts",
  switch: "Switches",
  port: "Ports and buffers",
  measure: "Measurement",
  requests: "Requests",
  incast: "Incasts",
  stack: "Real transport stack",
  mss: "Segment size (MSS)",
  max_sdu: "Largest frame",
  receive_window: "Receive window (rwnd)",
  timer_granularity: "Timer tick",
  initial_rto: "First timeout (RTO)",
  minimum_rto: "Smallest timeout (RTO), ticks",
  maximum_rto: "Largest timeout (RTO)",
  initial_ssthresh: "First slow start threshold (ssthresh)",
  tick_phase: "Ticks in phase",
  delayed_acks: "Delayed acknowledgements",
  delayed_ack_time: "Delay of acknowledgements",
  gap_acks: "Acknowledgements in gaps",
  repeated_acks: "Acknowledgements of repetitions",
  duplicate_acks: "Duplicate acknowledgements",
  partial_acks: "Partial acknowledgements",
  partial_ack_timer: "Timer at partial acknowledgements",
  full_acks: "Full acknowledgements",
  max_burst: "Largest burst",
  rtt_arithmetic: "Round-trip time arithmetic",
  rtt_sampling: "Round-trip time samples",
  out_of_order: "Segments out of order",
  lose_at_window: "Lose a segment at this window",
  sources: "Sources",
  policy: "Discard policy",
  allocator: "Rate allocator (ABR)",
  abr: "Rate control (ABR)",
  gfr: "Guaranteed frame rate (GFR)",
  z: "Load ratio Z",
  k: "Factor k",
  a: "Slope a",
  b: "Level b",
  t0: "Target drain time T0",
  on: "Burst length",
  off: "Pause between bursts",
  from: "From",
  to: "To",
  cross: "Cross connections per link",
  long: "Long connections",
  hops: "Links between switches",
  admit: "Admit a frame if",
  state: "State",
  vc_state: "State per VC",
  every: "Cells between updates",
  cdf: "Cutoff factor (CDF)",
  cdvt: "Tolerance (CDVT)",
  mbs: "Longest burst (MBS)",
  mfs: "Longest frame (MFS)",
  ert: "Activity timeout (ERT)",
  qdlf: "Queue drain limit (QDLF)",
  frtt: "Fixed round-trip time (FRTT)",
  tbe: "Transient buffer (TBE)",
  clp: "CLP",
  nrm: "Nrm",
  mrm: "Mrm",
  trm: "Trm",
};

/** Nouns for one entry of a table of named entries. */
const ENTRIES: Readonly<Record<string, string>> = {
  port: "port",
  flow: "flow",
  vc: "VC",
  edge: "edge device",
  requests: "group of requests",
  incast: "incast",
};

const ACRONYMS = /^(abr|acr|adtf|atm|cdf|efci|gfr|icr|ip|mcr|mss|pcr|rdf|rif|rto|rtt|tcp|tcr|udp|vc)$/;

/** Returns the display name of a kind such as `selective_drop`. */
export function kindName(kind: string): string {
  return KINDS[kind] ?? words(kind);
}

/**
 * Returns the names of the TCPs and stacks of scenarios, as given by their defaults, starting with the common one, and
 * the rules of the TCPs; empty if there are none.
 */
export function tcpName(...scenarios: readonly (Readonly<Record<string, unknown>> | null | undefined)[]): string {
  const found = scenarios.flatMap((defaults) => {
    const flows = Object.values((defaults?.["flow"] ?? {}) as Readonly<Record<string, Transport>>);
    return [(defaults ?? {}) as Transport, ...flows].flatMap(({ stack, tcp }) => Object.entries(stack ?? tcp ?? {}));
  });
  const rules = [...new Set(found.flatMap(([, settings]) => settings?.rules ?? []))];
  const names = [...new Set(found.map(([kind]) => kindName(kind)))].join(", ");
  return rules.length === 0 ? names : `${names} (rules: ${rules.join(", ")})`;
}

interface Transport {
  readonly stack?: Kinds | null;
  readonly tcp?: Kinds | null;
}

type Kinds = Readonly<Record<string, { readonly rules?: string } | null>>;

/** Returns the name of a kind without its explanation, for tables: "EPD". */
export function shortKind(kind: string): string {
  return kindName(kind).split(": ")[0] ?? kind;
}

/** Returns the display name of a key such as `timer_granularity`. */
export function keyName(key: string): string {
  return KEYS[key] ?? words(key);
}

/** Returns the name of an entry with its article: "an edge device". */
export function entryName(key: string): string {
  const name = ENTRIES[key] ?? keyName(key).toLowerCase();
  return `${/^[aeiou]/i.test(name) ? "an" : "a"} ${name}`;
}

/** Converts `link_rate` to "Link rate" and `abr_rate` to "ABR rate". */
function words(key: string): string {
  const text = key
    .split("_")
    .map((word) => (word === "vcs" ? "VCs" : ACRONYMS.test(word) ? word.toUpperCase() : word))
    .join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
