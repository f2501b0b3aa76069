//! Tests of QUIC over simulated networks.

use std::sync::{Arc, Mutex};

use celltrain_core::engine::Engine;
use celltrain_core::index::FlowIndex;
use celltrain_core::policy::{PolicyConfig, tail_drop};
use celltrain_core::probe::Nothing;

use super::*;
use crate::capture::Step;
use crate::driver::{HostedFlow, Hosts};
use crate::trial::Trial;

/// A packet of the sender or the receiver: when it was seen, at which end, the event, and its length.
type Seen = (Duration, Side, Step, usize);

/// Passes packets to QUIC, except those with the numbers in `lost`, counted from 0 for this end.
struct Lossy {
    quic: Quic,
    arrived: usize,
    lost: &'static [usize],
}

impl Stack for Lossy {
    fn on_packet(&mut self, now: Duration, packet: &[u8]) {
        self.arrived += 1;
        if !self.lost.contains(&(self.arrived - 1)) {
            self.quic.on_packet(now, packet);
        }
    }

    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
        self.quic.poll(now, out);
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.quic.next_timeout()
    }

    fn report(&self) -> Report {
        self.quic.report()
    }
}

/// Runs a file of `bytes` over a link with a round trip of 10 ms. The receiver loses packets.
fn file(config: &Config, bytes: u64, lost: &'static [usize]) -> (Vec<Seen>, celltrain_core::metrics::RunResult) {
    let trial = Trial::new(1).round_trip(Duration::from_millis(10)).mss(1460).duration(Duration::from_secs(3));
    let network = trial.network();
    let [sender, receiver] = Endpoint::pair(&network, FlowIndex::new(0));
    let receiver = Lossy { quic: Quic::new(config, receiver, Application::Bulk), arrived: 0, lost };
    let sender = Quic::new(config, sender, Application::File(bytes));
    let stacks: [Box<dyn Stack>; 2] = [Box::new(sender), Box::new(receiver)];
    let hosts = Hosts::new(&network, vec![HostedFlow { flow: FlowIndex::new(0), stacks }]);
    let log = Arc::new(Mutex::new(Vec::new()));
    let clock = network.clock();
    let run = Engine::Fast.run_hosted(
        &network,
        &mut Nothing,
        |_| true,
        |simulation| {
            hosts.run(simulation, |_, seen| {
                let time = Duration::from_secs_f64(clock.seconds(seen.time));
                log.lock().unwrap().push((time, seen.side, seen.step, seen.bytes.len()));
            })
        },
    );
    let log = std::mem::take(&mut *log.lock().unwrap());
    (log, run.unwrap())
}
