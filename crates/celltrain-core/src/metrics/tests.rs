use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::*;
use crate::abr::Parameters;
use crate::cell::tests::cell;
use crate::gfr::EdgeCounters;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::network::tests::{N_SOURCE_BOTTLENECK, N_SOURCE_WAY_BACK, simple_network};

/// A finished run of two sources, with the values that tests put into it.
struct Stage {
    network: Network,
    routing: Routing,
    clock: Clock,
    end: Time,
    ports: TiVec<LinkIndex, PortState>,
    end_systems: EndSystems,
    edge: Edge,
    rate_control: RateControl,
    token: CancellationToken<'static>,
}

impl Stage {
    /// Creates the stage of a network modified by `change`.
    fn new(change: impl FnOnce(&mut Network)) -> Self {
        let mut network = simple_network(2, "1ms");
        change(&mut network);
        let token = CancellationToken::never();
        let (routing, clock) = (network.routing(), network.clock());
        let vcs = |link: &TiVec<Label, VcIndex>| PortState {
            counters: ti_vec![PortCounters::default(); link.len()],
            waiting: ti_vec![0; link.len()],
            max_queue: 0,
            replaced_results: 0,
        };
        Self {
            end: network.end(clock),
            ports: routing.vcs.iter().map(vcs).collect(),
            end_systems: EndSystems::new(&network, &routing, clock),
            edge: Edge::new(&network, clock),
            rate_control: RateControl::new(&network, &routing, clock, &token).unwrap(),
            network,
            routing,
            clock,
            token,
        }
    }

    fn final_state(&self) -> FinalState<'_> {
        FinalState {
            network: &self.network,
            routing: &self.routing,
            clock: self.clock,
            end: self.end,
            ports: &self.ports,
            memories: (&[] as &[_]).as_ref(),
            deadlock: None,
            on_ethernet: None,
            end_systems: &self.end_systems,
            on_links: TiSlice::from_ref(&[0; 4]),
            losses: (&[] as &[_]).as_ref(),
            edge: &self.edge,
            rate_control: &self.rate_control,
            delays: None,
            token: &self.token,
        }
    }
}

fn contract(network: &Network) -> crate::gfr::Gfr {
    let mcr = network.links[LinkIndex::new(0)].rate;
    crate::gfr::Gfr { mcr, pcr: None, mfs: 12, mbs: None, cdvt: "0s".parse().unwrap(), tagging: true }
}

#[test]
fn jains_index_is_k_over_n_if_k_of_n_flows_share_the_link() {
    assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
    assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
    assert_eq!(jain(&[1.0, 1.0, 0.0, 0.0]), Some(0.5));
    // Regression: the index was 1, so a run without delivered data counted as the fairest.
    assert_eq!([jain(&[0.0, 0.0]), jain(&[])], [None, None]);
}

#[test]
fn a_gfr_contract_counts_exactly_the_lost_frames_of_its_vc() {
    let mut stage = Stage::new(|network| network.vcs[VcIndex::new(2)].contract = Some(contract(network)));
    // The second source's data uses VC 2. It has label 0 on its own links, and label 1 on the bottleneck, after the
    // first source's VC.
    let path = stage.network.vcs[VcIndex::new(2)].path.clone();
    for (&link, (label, discarded_frames, cut_frames)) in path.iter().zip([(0, 1, 20), (1, 300, 4000), (0, 7, 80)]) {
        stage.ports[link].counters[Label::new(label)] =
            PortCounters { discarded_frames, cut_frames, ..PortCounters::default() };
    }
    // Frames of another VC at the port that both VCs cross.
    let others = PortCounters { discarded_frames: 50_000, cut_frames: 60_000, ..PortCounters::default() };
    stage.ports[N_SOURCE_BOTTLENECK].counters[Label::new(0)] = others;
    stage.edge.on_cell(VcIndex::new(2), Time::default(), cell(1, 0, true));
    let edge = EdgeCounters { frames: 1, eligible_frames: 1, ..EdgeCounters::default() };
    // 1 + 300 + 7 = 308 frames were discarded and 20 + 4000 + 80 = 4100 were cut. The other three VCs have no contract.
    let expected = ContractResult { name: "vc1".into(), edge, discarded_frames: 308, cut_frames: 4100 };
    assert_eq!(stage.final_state().contracts(), vec![expected]);
}

#[test]
fn utilisation_is_the_fraction_of_the_run_during_which_the_link_transmits() {
    let mut stage = Stage::new(|_| ());
    // A cell takes 265 units, and the run lasts 1000 cell times. 150 + 100 cells take a quarter of it. With 1001 cells,
    // the last one is still in service when the run ends.
    stage.end = Time(265 * 1000);
    for (cells, expected) in [([0, 0], 0.0), ([150, 100], 0.25), ([1000, 0], 1.0), ([1000, 1], 1.0)] {
        for (counters, forwarded) in stage.ports[N_SOURCE_BOTTLENECK].counters.iter_mut().zip(cells) {
            *counters = PortCounters { forwarded, ..PortCounters::default() };
        }
        let ports = stage.final_state().ports();
        assert_eq!(ports[N_SOURCE_BOTTLENECK].utilisation, expected, "{cells:?}");
        assert_eq!(ports[N_SOURCE_WAY_BACK].utilisation, 0.0, "acknowledgements leave through a different port");
    }
}

#[test]
fn the_result_of_a_port_contains_its_queue_its_buffer_and_the_sum_of_its_vcs() {
    let mut stage = Stage::new(|network| network.links[N_SOURCE_BOTTLENECK].buffer = Some(70));
    let port = &mut stage.ports[N_SOURCE_BOTTLENECK];
    (port.max_queue, port.waiting) = (60, ti_vec![5, 30]);
    port.counters = ti_vec![PortCounters { offered: 1, lost_overflow: 2, ..PortCounters::default() }; 2];
    let result = stage.final_state().ports().swap_remove(N_SOURCE_BOTTLENECK);
    assert_eq!((result.name.as_str(), result.policy, result.scheduler), ("sw1->sw2", "tail_drop", "fifo"));
    assert_eq!((result.buffer_cells, result.max_queue_cells, result.queue_cells), (Some(70), 60, 35));
    assert_eq!(result.counters, PortCounters { offered: 2, lost_overflow: 4, ..PortCounters::default() });
}

/// Makes the VCs of the first source's data and acknowledgements ABR. They have sent nothing, so their ACR is ICR,
/// 100,000 cells a second.
fn with_abr(network: &mut Network) {
    let [data, acks] = [0, 1].map(VcIndex::new);
    for (vc, partner) in [(data, acks), (acks, data)] {
        network.vcs[vc].abr = Some(Parameters { icr: Some("42.4Mbps".parse().unwrap()), ..Parameters::default() });
        network.vcs[vc].partner = Some(partner);
    }
}

#[test]
fn abr_results_cover_only_abr_vcs_and_their_rates_include_cell_headers() {
    let found = Stage::new(with_abr).final_state().abr();
    let names: Vec<&str> = found.iter().map(|abr| abr.name.as_str()).collect();
    assert_eq!(names, ["vc0", "vc0"], "the network has a single ABR VC");
    for abr in &found {
        assert!((abr.acr_mbps - 42.4).abs() < 1e-9, "{}", abr.acr_mbps);
        let sent = [abr.forward_rm_cells, abr.out_of_rate_rm_cells, abr.returned_rm_cells];
        assert_eq!((sent, abr.rm_share), ([0; 3], None));
    }
}

#[test]
fn the_fingerprint_covers_end_system_counts_first_then_port_counts_then_controlled_rates() {
    let mut stage = Stage::new(with_abr);
    stage.ports[N_SOURCE_BOTTLENECK] = PortState {
        counters: ti_vec![
            PortCounters {
                offered: 11,
                forwarded: 12,
                lost_overflow: 13,
                lost_pushed_out: 14,
                discarded_frame: 8,
                // The fingerprint contains the sum of both counters, 15.
                refused_by_memory: 7,
                discarded_remainder: 16,
                // The fingerprint omits the per-queue counters, because they follow from the cell counts.
                discarded_frames: 99,
                cut_frames: 99,
            },
            PortCounters { offered: 21, ..PortCounters::default() },
        ],
        waiting: ti_vec![17, 27],
        max_queue: 10,
        replaced_results: 0,
    };
    let mut expected = Fingerprint::default();
    stage.end_systems.fold_into(&mut expected);
    expected.fold_all([10, 11, 12, 13, 14, 15, 16, 17, 21, 0, 0, 0, 0, 0, 27]);
    // The reverse link also has two VCs, and each of the hosts' eight links has one. No cells arrived on these links.
    expected.fold_all([0; 1 + 2 * 7]);
    expected.fold_all([0; 8 * (1 + 7)]);
    // For VCs 0 and 1 in turn, fold in the rate (42.4 Mbps is 100,000 cells a second), the RM cells sent, and the RM
    // cells that reached the end of their loop.
    for _ in 0..2 {
        expected.fold_all([100_000.0_f64.to_bits(), 0, 0]);
    }
    assert_eq!(stage.final_state().fingerprint(), expected);
}
