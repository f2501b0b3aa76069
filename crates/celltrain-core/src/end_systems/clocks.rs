//! The clocks of hosts. Connections whose timers tick at the same instants share a clock.
//!
//! A clock sleeps until a timer expires or an event occurs at an end system, so the number of simulated ticks does not
//! depend on the tick's length.

use std::collections::BTreeMap;

use typed_index_collections::{TiVec, ti_vec};

use super::connections::Connections;
use crate::host::{Rate, up_to};
use crate::index::{FlowIndex, NodeIndex};
use crate::network::Network;
use crate::requests::{Pair, RequestGroup};
use crate::rng::Stream;
use crate::tcp::timers::{DELAYED_ACK_TICK, Ticks};
use crate::tcp::{DelayedAcks, TcpOptions, TickPhase};
use crate::units::{Clock, Duration, Span, Time};

/// Connections whose timers tick at the same instants.
pub(super) struct HostClock {
    pub(super) kind: ClockKind,
    pub(super) ticks: Ticks,
    /// Time of the next tick that must be simulated. Earlier ticks have no effect.
    pub(super) due: Time,
    pub(super) flows: Vec<FlowIndex>,
}

impl HostClock {
    /// Skips the ticks that would have no effect.
    pub(super) fn sleep(&mut self, connections: &Connections) {
        let quiet = |&flow: &FlowIndex| {
            let connection = &connections[flow];
            match self.kind {
                ClockKind::Retransmission => connection.sender.quiet_ticks(),
                ClockKind::DelayedAck => connection.receiver.quiet_ticks(),
            }
        };
        self.due = self.ticks.after(self.flows.iter().map(quiet).min().unwrap_or(u64::MAX));
    }

    /// Counts the skipped ticks before `until`. The next tick is simulated.
    pub(super) fn wake(&mut self, until: Time, connections: &mut Connections) {
        let skipped = self.ticks.skip_to(until);
        self.due = self.ticks.next();
        if skipped > 0 {
            for &flow in &self.flows {
                let connection = &mut connections[flow];
                match self.kind {
                    ClockKind::Retransmission => connection.sender.skip_ticks(skipped),
                    ClockKind::DelayedAck => connection.receiver.skip_ticks(skipped),
                }
            }
        }
    }
}

/// Kind of a clock. At the same instant, retransmission clocks tick first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClockKind {
    Retransmission,
    DelayedAck,
}

/// The clocks of hosts, in the order of each clock's first connection.
#[derive(Default)]
pub(super) struct HostClocks {
    pub(super) all: Vec<HostClock>,
    /// Index in `all` of the clock of a kind with the given ticks.
    places: BTreeMap<(ClockKind, Ticks), usize>,
}

/// The clocks of the connections of a group of requests.
pub(super) struct GroupClocks {
    /// Index of each sending host's retransmission clock.
    senders: TiVec<NodeIndex, u32>,
    /// Index of each receiving host's delayed-acknowledgement clock; empty if acknowledgements are not delayed.
    receivers: TiVec<NodeIndex, u32>,
}

/// A clock drifts by at most one part in this number, as real clocks do.
const DRIFT: u64 = 10_000;

/// Placeholder for a host without a clock.
const NONE: u32 = u32::MAX;

impl GroupClocks {
    /// Returns the indices of the clocks of a connection between two hosts.
    pub(super) fn of(&self, [from, to]: [NodeIndex; 2]) -> impl Iterator<Item = usize> + use<> {
        let ends = [self.senders.get(from), self.receivers.get(to)].map(Option::<&u32>::copied);
        ends.into_iter().flatten().filter(|&clock| clock != NONE).map(|clock| clock as usize)
    }
}

impl HostClocks {
    /// Creates one clock for each set of flows whose ticks coincide.
    pub(super) fn of_flows(network: &Network, clock: Clock) -> Self {
        let mut clocks = Self::default();
        for (number, flow) in network.flows.iter_enumerated().filter(|(_, flow)| flow.uses_tcp()) {
            let options = flow.tcp.options();
            let sender = rate_of(network, network.source(flow.data_vc), clock);
            let period = sender.takes_for(tick(options, network.seed, clock));
            let phase = match options.timer_rules().tick_phase {
                TickPhase::Common | TickPhase::Drifting => Span(0),
                TickPhase::Random => {
                    let name = format!("flow/{}/tick_phase", flow.name);
                    Span(Stream::new(network.seed, &name).next_u64() % period.0)
                }
            };
            clocks.join(ClockKind::Retransmission, ticks(period, phase + sender.offset), number);
            if options.delayed_acks != DelayedAcks::Off {
                let receiver = rate_of(network, network.source(flow.ack_vc), clock);
                let period = receiver.takes_for(clock.span(delayed_ack_tick(options)));
                clocks.join(ClockKind::DelayedAck, ticks(period, receiver.offset), number);
            }
        }
        clocks
    }

    /// Adds the clocks that a group's connections will use. These clocks tick even while no connection uses them.
    pub(super) fn of_group(&mut self, network: &Network, group: &RequestGroup, clock: Clock) -> GroupClocks {
        let options = group.tcp.options();
        let is_delayed = options.delayed_acks != DelayedAcks::Off;
        let mut clocks = GroupClocks {
            senders: ti_vec![NONE; network.nodes.len()],
            receivers: ti_vec![NONE; if is_delayed { network.nodes.len() } else { 0 }],
        };
        // Ends outside the simulation have their own clocks.
        for pair in group.pairs().filter(|_| !group.outside) {
            let Pair { from, to, .. } = network.requests.pairs[pair];
            let tick = tick(options, network.seed, clock);
            let ends = [
                (ClockKind::Retransmission, Some(&mut clocks.senders[from]), from, tick),
                (ClockKind::DelayedAck, clocks.receivers.get_mut(to), to, clock.span(delayed_ack_tick(options))),
            ];
            for (kind, place, host, period) in ends {
                let Some(place) = place.filter(|place| **place == NONE) else { continue };
                let rate = rate_of(network, host, clock);
                let number = self.place(kind, ticks(rate.takes_for(period), rate.offset));
                *place = u32::try_from(number).expect("the number of clocks fits in 32 bits");
            }
        }
        clocks
    }

    /// Adds a connection to the clock with the given ticks.
    fn join(&mut self, kind: ClockKind, ticks: Ticks, flow: FlowIndex) {
        let place = self.place(kind, ticks);
        self.all[place].flows.push(flow);
    }

    /// Returns the index of the clock with the given ticks.
    fn place(&mut self, kind: ClockKind, ticks: Ticks) -> usize {
        *self.places.entry((kind, ticks)).or_insert_with(|| {
            self.all.push(HostClock { kind, ticks, due: ticks.next(), flows: Vec::new() });
            self.all.len() - 1
        })
    }
}

/// Returns the period of the clock for delayed acknowledgements.
fn delayed_ack_tick(options: &TcpOptions) -> Duration {
    match options.delayed_acks {
        DelayedAcks::Timer => options.resolution(),
        DelayedAcks::On | DelayedAcks::Off => DELAYED_ACK_TICK,
    }
}

/// Returns the time from one tick of a retransmission clock to the next.
///
/// A shift of all ticks by the same time would only shift the whole run, because every event that a tick starts keeps
/// its distance from later ticks.
fn tick(options: &TcpOptions, seed: u64, clock: Clock) -> Span {
    let period = clock.span(options.resolution());
    match options.timer_rules().tick_phase {
        TickPhase::Common | TickPhase::Random => period,
        TickPhase::Drifting => {
            let early = up_to(Span(period.0 / DRIFT), &mut Stream::new(seed, "tick_drift"));
            Span(period.0 - early.0)
        }
    }
}

fn rate_of(network: &Network, host: NodeIndex, clock: Clock) -> Rate {
    network.host.host_clock(network.seed, &network.nodes[host].name, clock)
}

/// Returns ticks at all multiples of `period` plus `phase`.
fn ticks(period: Span, phase: Span) -> Ticks {
    Ticks::new(period, Span(phase.0 % period.0))
}
