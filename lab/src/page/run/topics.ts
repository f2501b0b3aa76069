/** Shipped scenarios by topic, in display order. */

interface Topic {
  readonly title: string;
  /** Names in display order; a trailing `*` matches any characters. */
  readonly names: readonly string[];
}

const TOPICS: readonly Topic[] = [
  {
    title: "LAN: discard policies",
    names: [
      "lan-tail-drop",
      "lan-ppd",
      "lan-epd",
      "lan-selective-drop",
      "lan-fba",
      "lan-double-epd",
      "lan-drop-from-front",
      "lan-codel",
      "lan-fq-codel",
      "lan-pie",
      "lan-dualpi2",
      "lan-red",
      "zero-loss",
    ],
  },
  { title: "LAN: TCP variants", names: ["lan-tahoe", "lan-reno", "lan-newreno*", "lan-sack*", "lan-paced"] },
  {
    title: "LAN: fair queuing and shares",
    names: ["lan-per-vc*", "lan-virtual*", "lan-wfq", "lan-unresponsive", "lan-vbr*"],
  },
  { title: "LAN: formulas of your own", names: ["lan-formula*"] },
  { title: "Real transport stacks", names: ["lan-smoltcp", "smoltcp-*"] },
  { title: "LAN: more", names: ["lan-*"] },
  { title: "Wide area network", names: ["wan-epd", "wan-cubic", "wan-*"] },
  {
    title: "Other networks",
    names: ["chain-epd", "parking-lot", "unequal-rtt", "star-incast", "peer-to-peer", "vc-merge"],
  },
  { title: "Requests, incasts and marks in data centres", names: ["leaf-spine-*", "datacenter-*"] },
  { title: "Memories that ports share", names: ["memory-complete-*", "memory-dynamic-*", "memory-*"] },
  {
    title: "Rate control (ABR) and guaranteed rates (GFR)",
    names: ["internetwork-*", "abr-*", "gfr-*"],
  },
  { title: "More", names: ["*"] },
];

/** Assigns each name to the first topic that matches it. Topics without scenarios are omitted. */
export function byTopic(names: readonly string[]): { readonly title: string; readonly names: readonly string[] }[] {
  const left = new Set(names);
  return TOPICS.map(({ title, names: patterns }) => {
    const found = patterns.flatMap((pattern) =>
      [...left].filter((name) => {
        const fits = pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
        return fits && left.delete(name);
      }),
    );
    return { title, names: found };
  }).filter((topic) => topic.names.length > 0);
}
