//! Resolves the tables of requests for a given layout: pairs of hosts with their paths and VCs, and groups of requests.
//!
//! Source: `docs/design/requests.md`. The load of a group is the mean rate of the group's data cells divided by the sum
//! of the rates of the links on which these cells leave their hosts.

use std::collections::{BTreeMap, BTreeSet};

use typed_index_collections::{TiVec, ti_vec};

use celltrain_core::aal5::Aal5Options;
use celltrain_core::cancellation::Interrupted;
use celltrain_core::index::{LinkIndex, NodeIndex};
use celltrain_core::network::{NodeKind, Vc};
use celltrain_core::requests::{Arrivals, Opening, Pair, PairIndex, RequestGroup, Requests};
use celltrain_core::tcp::{DelayedAcks, TcpConfig};
use celltrain_core::units::{Bytes, Duration};
use celltrain_formula::names::is_in_range;

use crate::channels::Channels;
use crate::document::join;
use crate::hints::{closest, did_you_mean};
use crate::limits::{MAX_CROSSINGS, MAX_DURATION, MAX_FILE, MAX_PATHS};
use crate::request_options::{IncastOptions, RequestOptions, query_times};
use crate::scenario::Scenario;
use crate::scope::Scope;
use crate::sizes;
use crate::stack::StackConfig;
use crate::tables::matches;
use crate::topology::Layout;
use crate::topology::search::EqualPaths;

/// Maximum load. A number above this maximum is probably a percentage.
const MAX_LOAD: f64 = 10.0;
/// Minimum interval between queries. A shorter time probably has a wrong unit.
const MIN_INTERVAL: Duration = Duration::from_microseconds(1);
/// Minimum mean interval between requests. With a shorter interval, the records of requests would fill the memory.
const MIN_MEAN: Duration = Duration { picoseconds: 1_000 };
/// Maximum number of pairs of hosts in a group. The paths of a pair have at least two links in each direction.
const MAX_PAIRS: usize = MAX_CROSSINGS / 4;
/// Picoseconds per second.
const SECOND: f64 = 1e12;

/// An ordered pair of hosts: the sender and the receiver.
type Ends = (NodeIndex, NodeIndex);

impl Scenario {
    /// Returns the real transport stack of a group of requests; `None` if the simulation sends their data itself.
    pub fn stack_of_group(&self, name: &str) -> Option<&StackConfig> {
        let (_, _, table) = Table::all(self).find(|(_, own, _)| *own == name)?;
        table.stack(self)
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Table<'a> {
    Requests(&'a RequestOptions),
    Incast(&'a IncastOptions),
}

impl<'a> Table<'a> {
    /// Returns the tables of requests in a scenario with their kinds and names, in the order of the groups.
    pub(crate) fn all(scenario: &'a Scenario) -> impl Iterator<Item = (&'static str, &'a str, Table<'a>)> {
        let requests = scenario.requests.iter().map(|(name, own)| ("requests", name.as_str(), Table::Requests(own)));
        requests.chain(scenario.incast.iter().map(|(name, own)| ("incast", name.as_str(), Table::Incast(own))))
    }

    pub(crate) fn tcp(self) -> Option<&'a TcpConfig> {
        match self {
            Table::Requests(RequestOptions { tcp, .. }) | Table::Incast(IncastOptions { tcp, .. }) => tcp.as_ref(),
        }
    }

    /// Returns the real transport stack that the table itself sets; `None` if it sets no stack.
    pub(crate) fn own_stack(self) -> Option<&'a StackConfig> {
        match self {
            Table::Requests(RequestOptions { stack, .. }) | Table::Incast(IncastOptions { stack, .. }) => {
                stack.as_ref()
            }
        }
    }

    /// Returns the real stack that carries the table's requests; `None` if simulated TCP carries them.
    pub(crate) fn stack(self, scenario: &'a Scenario) -> Option<&'a StackConfig> {
        self.own_stack().or(scenario.stack.as_ref()).filter(|_| self.tcp().is_none())
    }

    pub(crate) fn has_handshake(self) -> bool {
        match self {
            Table::Requests(RequestOptions { handshake, .. }) | Table::Incast(IncastOptions { handshake, .. }) => {
                *handshake
            }
        }
    }

    fn opening(self) -> Opening {
        if self.has_handshake() { Opening::Handshake } else { Opening::Open }
    }
}

/// Resolves the requests of a scenario, and adds the VCs of requests to the VCs of flows. The result is incomplete if
/// the tables of requests have faults.
///
/// # Errors
/// Returns [`Interrupted`] if the token is cancelled.
pub(crate) fn resolve(
    scenario: &Scenario,
    layout: &Layout,
    channels: &mut Channels,
    root: &mut Scope<'_>,
) -> Result<Requests, Interrupted> {
    let mut requests = Requests::default();
    if !scenario.has_requests() {
        return Ok(requests);
    }
    let hosts = Hosts::of(layout);
    let mut ends: Vec<Vec<Vec<Ends>>> = Vec::new();
    for (kind, name, table) in Table::all(scenario) {
        let mut of_kind = root.at(kind);
        let mut scope = of_kind.at(name);
        if kind == "incast" && scenario.requests.contains_key(name) {
            let problem = format!("has the same name as [requests.{name}]; the names of groups must be different");
            scope.refuse(problem);
        }
        ends.push(hosts.ends(table, &mut scope)?);
    }
    let wanted: BTreeSet<Ends> = ends.iter().flatten().flatten().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
    let Some(places) = connect(layout, &wanted, channels, (&mut requests, scenario), root)? else {
        return Ok(requests);
    };
    for ((kind, name, table), ends) in Table::all(scenario).zip(ends) {
        root.token().tick(ends.iter().map(Vec::len).fold(1, usize::saturating_add))?;
        let mut of_kind = root.at(kind);
        let mut scope = of_kind.at(name);
        let stack = table.stack(scenario);
        let tcp = match stack {
            Some(stack) => &stack.sizes().tcp(),
            None => table.tcp().unwrap_or(&scenario.tcp),
        };
        let pairs: Vec<Vec<PairIndex>> =
            ends.iter().map(|list| list.iter().map(|ends| places[ends]).collect()).collect();
        let arrivals = match table {
            Table::Requests(own) => {
                let pairs = pairs.concat();
                let senders = (!pairs.is_empty()).then(|| sending_rate(layout, channels, &requests, &pairs));
                requests_of(own, tcp, &scenario.framing(), (pairs, senders), &mut scope)
            }
            Table::Incast(own) => incast(own, pairs, &mut scope),
        };
        if let Some(arrivals) = arrivals {
            let (name, tcp, outside) = (name.to_string(), tcp.clone(), stack.is_some());
            let group = RequestGroup { name, tcp, outside, opening: table.opening(), arrivals };
            requests.groups.push(group);
        }
    }
    Ok(requests)
}

struct Hosts<'a> {
    layout: &'a Layout,
    all: Vec<NodeIndex>,
}

impl<'a> Hosts<'a> {
    fn of(layout: &'a Layout) -> Self {
        let nodes = layout.graph.nodes.iter_enumerated();
        Self { layout, all: nodes.filter(|(_, node)| node.kind == NodeKind::Host).map(|(number, _)| number).collect() }
    }

    /// Returns the pairs of hosts of a table. The pairs of an incast are grouped by receiver. Reports patterns that
    /// match no host, and tables with no pairs or too many pairs.
    fn ends(&self, table: Table<'_>, scope: &mut Scope<'_>) -> Result<Vec<Vec<Ends>>, Interrupted> {
        let before = scope.found().count();
        let (senders, receivers) = match table {
            Table::Requests(own) => {
                let sources = self.matching(&own.sources, &mut scope.at("sources"))?;
                (sources, self.matching(&own.destinations, &mut scope.at("destinations"))?)
            }
            Table::Incast(own) => {
                let receivers = self.matching(&own.receivers, &mut scope.at("receivers"))?;
                let others = self.all.len().saturating_sub(1);
                if own.senders as usize > others {
                    let problem = format!(
                        "is more than the number of other hosts; at most {others} hosts can answer a \
                                           query"
                    );
                    scope.at("senders").refuse_value(own.senders, problem);
                }
                (self.all.clone(), receivers)
            }
        };
        let pairs = senders.len().saturating_mul(receivers.len());
        if pairs > MAX_PAIRS {
            let problem =
                format!("connects {pairs} pairs of hosts; at most {MAX_PAIRS} are possible; choose fewer hosts");
            scope.refuse(problem);
        }
        if scope.found().count() > before {
            return Ok(Vec::new());
        }
        let to_all = |&from: &NodeIndex| receivers.iter().filter(move |&&to| to != from).map(move |&to| (from, to));
        let from_all = |&to: &NodeIndex| senders.iter().filter(|&&from| from != to).map(|&from| (from, to)).collect();
        let lists: Vec<Vec<Ends>> = match table {
            Table::Requests(_) => vec![senders.iter().flat_map(to_all).collect()],
            Table::Incast(_) => receivers.iter().map(from_all).collect(),
        };
        if lists.iter().all(Vec::is_empty) {
            scope.refuse("connects no two hosts: the only source is also the only destination");
        }
        scope.token().tick(pairs)?;
        Ok(lists)
    }

    /// Returns the hosts that match at least one of the given names, ranges and patterns.
    fn matching(&self, patterns: &[String], scope: &mut Scope<'_>) -> Result<Vec<NodeIndex>, Interrupted> {
        let name = |host: NodeIndex| self.layout.graph.nodes[host].name.as_str();
        let is_one = |pattern: &str, host: &str| matches(pattern, host) || is_in_range(pattern, host);
        for (number, pattern) in patterns.iter().enumerate() {
            scope.token().tick((self.all.len() / 8).saturating_add(1))?;
            if !self.all.iter().any(|&host| is_one(pattern, name(host))) {
                let names = self.all.iter().map(|&host| name(host));
                let hint = did_you_mean(closest(pattern, names, scope.token()));
                let first = self.all.first().map_or("host1", |&host| name(host));
                let it = if hint.is_empty() { "it" } else { "It" };
                let problem = format!(
                    "matches no host; {hint}{it} must be the name of a host such as \"{first}\", a range, or a pattern such as \"*\""
                );
                scope.item(number).refuse_text(pattern, problem);
            }
        }
        if patterns.is_empty() {
            scope.refuse("is empty; leave it out for all hosts");
        }
        let matched = |&host: &NodeIndex| patterns.iter().any(|pattern| is_one(pattern, name(host)));
        Ok(self.all.iter().copied().filter(matched).collect())
    }
}

/// Creates the pairs of hosts with a VC for each shortest path. Returns the index of each pair, or `None` if a fault
/// was found.
fn connect(
    layout: &Layout,
    wanted: &BTreeSet<Ends>,
    channels: &mut Channels,
    (requests, scenario): (&mut Requests, &Scenario),
    root: &mut Scope<'_>,
) -> Result<Option<BTreeMap<Ends, PairIndex>>, Interrupted> {
    let (before, token) = (root.found().count(), root.token());
    // Faults in paths concern all tables of requests, so they are reported at the first table.
    let Some((kind, table, _)) = Table::all(scenario).next() else { return Ok(None) };
    let mut of_kind = root.at(kind);
    let mut scope = of_kind.at(table);
    let name = |node: NodeIndex| layout.graph.nodes[node].name.as_str();
    let of_flows: BTreeSet<String> = channels.vcs.iter().map(|vc| vc.name.clone()).collect();
    let mut paths = EqualPaths::new(&layout.graph);
    let mut crossings: usize = channels.vcs.iter().map(|vc| vc.path.len()).sum();
    let mut places = BTreeMap::new();
    for &(from, to) in wanted {
        token.tick(paths.search(from).saturating_add(1))?;
        let (first, last) = (name(from), name(to));
        let count = paths.count(to);
        if count == 0 {
            scope.refuse(format!(
                "has no path from \"{first}\" to \"{last}\": requests can cross only switches, not other hosts or edge \
                 devices; leave these hosts out"
            ));
            break;
        }
        if count > MAX_PATHS {
            scope.refuse(format!(
                "has {count} paths of equal length from \"{first}\" to \"{last}\"; at most {MAX_PATHS} are possible"
            ));
            break;
        }
        let all = paths.all(from, to);
        crossings = all.iter().map(Vec::len).fold(crossings, usize::saturating_add);
        if crossings > MAX_CROSSINGS {
            scope.refuse(format!(
                "connects hosts whose paths cross more than {MAX_CROSSINGS} links in all; choose fewer hosts"
            ));
            break;
        }
        let mut vcs = Vec::with_capacity(all.len());
        for (path, number) in all.into_iter().zip(1u32..) {
            let name = if number == 1 { format!("{first}->{last}") } else { format!("{first}->{last}#{number}") };
            if of_flows.contains(&name) {
                scope.refuse(format!("needs a VC named \"{name}\", which is the name of a flow's VC; rename the flow"));
            }
            vcs.push(channels.vcs.push_and_get_key(Vc { name, path, ..Vc::default() }));
        }
        let back = PairIndex::default();
        places.insert((from, to), requests.pairs.push_and_get_key(Pair { from, to, vcs, back }));
    }
    if scope.found().count() > before {
        return Ok(None);
    }
    for pair in &mut requests.pairs {
        pair.back = places[&(pair.to, pair.from)];
    }
    Ok(Some(places))
}

/// Returns the arrivals of a table of `requests`; `None` if the table has a fault. `senders` is the sum of the rates of
/// the links on which the requests leave their hosts, or `None` if the hosts in the table have faults.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no overflow: the value was compared with the longest run"
)]
fn requests_of(
    own: &RequestOptions,
    tcp: &TcpConfig,
    framing: &Aal5Options,
    (pairs, senders): (Vec<PairIndex>, Option<f64>),
    scope: &mut Scope<'_>,
) -> Option<Arrivals> {
    let sizes = sizes::resolve(&own.sizes, &mut scope.at("sizes"));
    let load = own.load;
    if !(load > 0.0 && load <= MAX_LOAD) {
        let problem = format!("must be a share of the links' rate above 0 and at most {MAX_LOAD}; 0.6 is 60 %");
        scope.at("load").refuse_value(load, problem);
        return None;
    }
    let (sizes, senders) = sizes.zip(senders)?;
    let mss = tcp.options().mss.bytes.max(1);
    let bits = sizes.mean_segments(mss) * f64::from(framing.segment_cells(mss)) * framing.cell.bits() as f64;
    let interval = bits / (load * senders);
    let mean = Duration { picoseconds: (interval * SECOND).round() as u64 };
    if mean < MIN_MEAN || mean > MAX_DURATION {
        let problem = format!(
            "makes a request every {interval:.3e} s; a mean interval must be from {MIN_MEAN} to \
                     {MAX_DURATION}"
        );
        scope.at("load").refuse_value(load, problem);
        return None;
    }
    Some(Arrivals::Poisson { mean, sizes, pairs, order: own.pairs.into() })
}

/// Returns the arrivals of a table of `incast`; `None` if the table has a fault.
fn incast(own: &IncastOptions, receivers: Vec<Vec<PairIndex>>, scope: &mut Scope<'_>) -> Option<Arrivals> {
    let before = scope.found().count();
    let &IncastOptions { senders, bytes, interval, times, spread, .. } = own;
    if !(1..=MAX_FILE).contains(&bytes.bytes) {
        let most = Bytes { bytes: MAX_FILE };
        scope.at("bytes").refuse_text(bytes, format!("is outside 1B to {most}"));
    }
    if !(MIN_INTERVAL..=MAX_DURATION).contains(&interval) {
        let problem = format!("is not a time from {MIN_INTERVAL} to {MAX_DURATION}");
        scope.at("interval").refuse_text(interval, problem);
    }
    if spread > MAX_DURATION {
        scope.at("spread").refuse_text(spread, format!("must be a time of at most {MAX_DURATION}"));
    }
    let is_sound = scope.found().count() == before;
    is_sound.then(|| Arrivals::Incast { interval, times: query_times(times), bytes, senders, receivers, spread })
}

/// Returns the sum of the rates of the links on which requests between these pairs leave their hosts.
fn sending_rate(layout: &Layout, channels: &Channels, requests: &Requests, pairs: &[PairIndex]) -> f64 {
    let vcs = pairs.iter().flat_map(|&pair| &requests.pairs[pair].vcs);
    let first: BTreeSet<LinkIndex> = vcs.map(|&vc| channels.vcs[vc].path[0]).collect();
    first.into_iter().map(|link| layout.graph.links[link].rate.bits_per_second as f64).sum()
}

/// The traffic of a group's requests between a pair of hosts.
struct Share {
    pair: PairIndex,
    /// Mean number of requests per second.
    rate: f64,
}

/// Returns the mean number of requests of a group per second, for each pair of hosts, and the mean number of segments
/// per request.
fn shares(group: &RequestGroup) -> (Vec<Share>, f64) {
    let mss = group.tcp.options().mss.bytes.max(1);
    match &group.arrivals {
        Arrivals::Poisson { mean, sizes, pairs, .. } => {
            let rate = 1.0 / (mean.seconds() * pairs.len() as f64);
            (pairs.iter().map(|&pair| Share { pair, rate }).collect(), sizes.mean_segments(mss))
        }
        Arrivals::Incast { interval, bytes, senders, receivers, .. } => {
            let queries = 1.0 / (interval.seconds() * receivers.len() as f64);
            let of_receiver = |pairs: &Vec<PairIndex>| {
                let rate = queries * f64::from(*senders) / pairs.len() as f64;
                pairs.iter().map(move |&pair| Share { pair, rate }).collect::<Vec<Share>>()
            };
            let segments = bytes.bytes.div_ceil(u64::from(*senders).max(1)).div_ceil(mss);
            (receivers.iter().flat_map(of_receiver).collect(), segments as f64)
        }
    }
}

/// Returns the share of each link's rate that a group's cells are expected to take, acknowledgements included. A
/// request uses each path of its pair of hosts with equal probability.
pub(crate) fn utilisation(
    group: &RequestGroup,
    (layout, channels): (&Layout, &Channels),
    (requests, framing): (&Requests, &Aal5Options),
) -> TiVec<LinkIndex, f64> {
    let options = group.tcp.options();
    let (shares, segments) = shares(group);
    let acks = match options.delayed_acks {
        DelayedAcks::Off => segments,
        DelayedAcks::On | DelayedAcks::Timer => segments / 2.0,
    };
    let bits = |cells: u32| f64::from(cells) * framing.cell.bits() as f64;
    let data = segments * bits(framing.segment_cells(options.mss.bytes));
    let acks = acks * bits(framing.segment_cells(0));
    let mut taken: TiVec<LinkIndex, f64> = ti_vec![0.0; layout.graph.links.len()];
    for Share { pair, rate } in shares {
        let pair = &requests.pairs[pair];
        for (vcs, bits) in [(&pair.vcs, data), (&requests.pairs[pair.back].vcs, acks)] {
            for &vc in vcs {
                for &link in &channels.vcs[vc].path {
                    let capacity = layout.graph.links[link].rate.bits_per_second as f64;
                    taken[link] += rate * bits / (vcs.len() as f64 * capacity);
                }
            }
        }
    }
    taken
}

/// Returns the name of the table that describes a group: `requests` or `incast`.
pub(crate) fn kind_of(group: &RequestGroup) -> &'static str {
    match group.arrivals {
        Arrivals::Poisson { .. } => "requests",
        Arrivals::Incast { .. } => "incast",
    }
}

/// Returns every TCP of a scenario with its path. If the scenario sets a stack for all flows, the TCP of all flows is
/// omitted.
pub(crate) fn each_tcp(scenario: &Scenario) -> Vec<(String, &TcpConfig)> {
    let flows = scenario.flow.iter().map(|(name, flow)| (join("flow", name), flow.tcp.as_ref()));
    let requests = Table::all(scenario).map(|(kind, name, table)| (join(kind, name), table.tcp()));
    let own = flows.chain(requests).filter_map(|(path, tcp)| Some((join(&path, "tcp"), tcp?)));
    let common = scenario.stack.is_none().then(|| ("tcp".to_string(), &scenario.tcp));
    own.chain(common).collect()
}
