//! The headroom that a lossless group needs with packet framing, compared with the formula.

use super::*;
use crate::aal5::{CellFormat, Framing};

/// A host that sends to a switch whose output is stuck, while the switch sends to the host, both at line rate.
struct Link {
    rate: &'static str,
    /// Metres of cable, which delays 5 ns each.
    metres: u64,
    /// Bytes of a cell.
    cell: u64,
    /// Cells of a packet, in both directions.
    packet: u64,
    response: Option<PauseResponse>,
}

impl Link {
    fn rate(&self) -> BitRate {
        self.rate.parse().unwrap()
    }

    /// Returns the headroom by the formula, in cells: twice the delay, a packet of each side, the pause frame and the
    /// response.
    fn formula(&self) -> u32 {
        const PS: u64 = 1_000_000_000_000;
        let (time, quanta) = match self.response.unwrap_or_else(|| PauseResponse::limit(self.rate())) {
            PauseResponse::Time(time) => (time.picoseconds, 0),
            PauseResponse::Quanta(quanta) => (0, u64::from(quanta)),
        };
        let sent = u128::from(2 * 5_000 * self.metres + time) * u128::from(self.rate().bits_per_second);
        let bits = 2 * self.packet * self.cell * 8 + 512 + quanta * 512;
        let cells = (sent + u128::from(bits) * u128::from(PS)).div_ceil(u128::from(self.cell * 8 * PS));
        u32::try_from(cells).unwrap()
    }

    /// Returns a network in which the group pauses at `threshold` cells, and the other direction starts `offset` cell times
    /// later.
    fn network(&self, threshold: u32, headroom: u32, offset: u64) -> Network {
        let mut network = star(&[0, 1], "1bps", "1s");
        network.aal5.cell = CellFormat { size: self.cell, payload: self.cell };
        network.aal5.framing = Framing::Packets;
        let (outputs, forth) = (outputs_of(&network), network.vcs[network.flows[FlowIndex::new(0)].data_vc].path[0]);
        for (_, link) in network.links.iter_mut_enumerated().filter(|(link, _)| !outputs.contains(link)) {
            (link.rate, link.delay) = (self.rate(), Duration { picoseconds: 5_000 * self.metres });
        }
        let (there, back) = (FlowIndex::new(0), FlowIndex::new(1));
        let [data, acks] = [network.flows[back].data_vc, network.flows[back].ack_vc];
        let (own, to_host) = (network.vcs[data].path[0], Graph::way_back(forth));
        network.vcs[data].path = vec![own, to_host];
        network.vcs[acks].path = vec![forth, Graph::way_back(own)];
        let headers = network.aal5.packet_sdu(0);
        let packet = Bytes { bytes: self.packet * self.cell - headers };
        let rate = self.rate();
        for flow in [there, back] {
            let traffic = constant_rate::Config { rate, packet };
            network.flows[flow].traffic = TrafficConfig::ConstantRate(traffic);
        }
        let cell_time = self.cell * 8 * 1_000_000_000_000 / rate.bits_per_second;
        network.flows[back].start = Duration { picoseconds: offset * cell_time };
        // The other direction fills the link before the group pauses.
        let cells = u64::from(threshold) + 6 * self.packet + 2 * u64::from(self.formula()) + offset;
        network.duration = Duration { picoseconds: 3 * cells * cell_time + 20_000 * self.metres };
        share(&mut network, outputs, 1_000_000, complete_sharing::Config {});
        add_lossless_group(&mut network, headroom, PauseAt::Threshold);
        let memory = &mut network.memories[MemoryIndex::new(0)];
        (memory.pauses, memory.pause_response) = (Pauses::Links, self.response);
        memory.pools[PoolIndex::new(1)].policy = complete_sharing::Config {}.into();
        memory.pools[PoolIndex::new(1)].cells = threshold;
        memory.queues[QueueIndex::new(2)].reserve = 0;
        network
    }

    /// Returns the cells of headroom that a run uses, and whether it loses cells.
    fn run(&self, threshold: u32, headroom: u32, offset: u64) -> (u32, bool) {
        let result = Engine::Reference.run_to_end(&self.network(threshold, headroom, offset));
        let group = &result.memories[MemoryIndex::new(0)].queues[QueueIndex::new(2)].counters;
        assert_eq!(group.pauses, 1, "the output is stuck");
        (group.max_headroom, group.refused > 0)
    }

    /// Returns runs in which the group fills at different cells of a packet, combined with all phases of the other
    /// direction.
    fn phases(&self) -> impl Iterator<Item = (u32, u64)> {
        let packet = u32::try_from(self.packet).unwrap();
        let first = 3 * packet + self.formula();
        (first..first + packet).flat_map(move |threshold| (0..self.packet).map(move |offset| (threshold, offset)))
    }
}

const LINKS: [Link; 7] = [
    Link { rate: "10Gbps", metres: 5, cell: 250, packet: 6, response: None },
    Link { rate: "100Gbps", metres: 5, cell: 256, packet: 6, response: None },
    Link { rate: "100Gbps", metres: 300, cell: 1024, packet: 9, response: None },
    Link { rate: "400Gbps", metres: 40, cell: 256, packet: 1, response: None },
    Link { rate: "100Gbps", metres: 100, cell: 250, packet: 6, response: Some(PauseResponse::Quanta(0)) },
    Link {
        rate: "25Gbps",
        metres: 100,
        cell: 250,
        packet: 4,
        response: Some(PauseResponse::Time(Duration { picoseconds: 777_777 })),
    },
    Link { rate: "1Gbps", metres: 2, cell: 64, packet: 8, response: None },
];

#[test]
fn the_smallest_headroom_without_loss_equals_the_value_of_the_formula() {
    for link in LINKS {
        let needs = link.phases().map(|(threshold, offset)| link.run(threshold, 100_000, offset).0);
        let (most, formula) = (needs.max().unwrap(), link.formula());
        // The phases are a cell time apart in each direction.
        let (rate, metres) = (link.rate, link.metres);
        assert!((formula - 2..=formula).contains(&most), "{rate}, {metres} m: {most} cells, formula {formula}");
    }
}

#[test]
fn a_headroom_sized_for_a_5_metre_cable_loses_cells_on_a_300_metre_cable() {
    let [short, long] = [5, 300].map(|metres| Link { metres, ..LINKS[1] });
    let configured = short.formula();
    for (link, headroom, loses) in
        [(&short, configured, false), (&long, configured, true), (&long, long.formula(), false)]
    {
        let lost = link.phases().any(|(threshold, offset)| link.run(threshold, headroom, offset).1);
        assert_eq!(lost, loses, "{} m, {headroom} cells of headroom", link.metres);
    }
    assert!(long.formula() > 2 * configured, "{} and {configured}", long.formula());
}

#[test]
fn a_paused_port_finishes_its_current_packet_and_a_pause_frame_never_interrupts_a_packet() {
    let link = &LINKS[2];
    for (threshold, offset) in link.phases().step_by(7) {
        let (cells, _) = link.run(threshold, 100_000, offset);
        let with_cell_in_service = u64::from(threshold) + u64::from(cells) + 1;
        assert_eq!(with_cell_in_service % link.packet, 0, "whole packets arrive");
    }
}
