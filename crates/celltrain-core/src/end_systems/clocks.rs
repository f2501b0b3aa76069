//! The clocks of hosts. A clock groups connections that tick at the same instants.

use std::collections::BTreeMap;

use crate::index::{FlowIndex, VcIndex};
use crate::network::Network;
use crate::rng::Stream;
use crate::tcp::timers::{DELAYED_ACK_TICK, Ticks};
use crate::tcp::{DelayedAcks, TickPhase};
use crate::units::{Clock, Span};

/// Connections whose clocks tick together.
pub(super) struct HostClock {
    pub(super) kind: ClockKind,
    pub(super) ticks: Ticks,
    pub(super) flows: Vec<FlowIndex>,
}

/// Retransmission clocks come first if several clocks tick at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClockKind {
    Retransmission,
    DelayedAck,
}

/// Creates one clock for each set of connections whose ticks coincide.
pub(super) fn host_clocks(network: &Network, clock: Clock) -> Vec<HostClock> {
    let mut clocks = Clocks::default();
    for (number, flow) in network.flows.iter_enumerated().filter(|(_, flow)| flow.traffic.packets().is_none()) {
        let options = flow.tcp.options();
        let of = |vc: VcIndex| {
            let host = &network.nodes[network.links[network.vcs[vc].path[0]].from].name;
            network.host.host_clock(network.seed, host, clock)
        };
        let sender = of(flow.data_vc);
        let period = sender.takes_for(clock.span(options.timer_granularity));
        let phase = match options.tick_phase {
            TickPhase::Common => Span(0),
            TickPhase::Random => {
                let name = format!("flow/{}/tick_phase", flow.name);
                Span(Stream::new(network.seed, &name).next_u64() % period.0)
            }
        };
        clocks.join(ClockKind::Retransmission, ticks(period, phase + sender.offset), number);
        if options.delayed_acks == DelayedAcks::On {
            let receiver = of(flow.ack_vc);
            let period = receiver.takes_for(clock.span(DELAYED_ACK_TICK));
            clocks.join(ClockKind::DelayedAck, ticks(period, receiver.offset), number);
        }
    }
    clocks.all
}

/// Returns ticks every `period`, offset by `phase` from its whole multiples.
fn ticks(period: Span, phase: Span) -> Ticks {
    Ticks::new(period, Span(phase.0 % period.0))
}

/// Clocks in the order of the first connection of each.
#[derive(Default)]
struct Clocks {
    all: Vec<HostClock>,
    /// Indices in `all`, by kind and ticks.
    places: BTreeMap<(ClockKind, Ticks), usize>,
}

impl Clocks {
    /// Adds a connection to the clock with its ticks.
    fn join(&mut self, kind: ClockKind, ticks: Ticks, flow: FlowIndex) {
        let place = *self.places.entry((kind, ticks)).or_insert_with(|| {
            self.all.push(HostClock { kind, ticks, flows: Vec::new() });
            self.all.len() - 1
        });
        self.all[place].flows.push(flow);
    }
}
