//! Tests of ABR in whole runs. Sources must reach the rates that the allocators intend, and both engines must agree.

use celltrain_core::cancellation::CancellationToken;
use celltrain_core::engine::Engine;
use celltrain_core::index::{FlowIndex, LinkIndex, VcIndex};
use celltrain_core::max_min::{Terms, goodputs_mbps, shares};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::probe::{Recorder, SeriesChoice};
use celltrain_core::units::{BitRate, Duration};
use celltrain_scenario::{build, read_toml};
use typed_index_collections::TiSlice;

fn network(text: &str) -> Network {
    let scenario = read_toml(text, "here.toml").expect_scenario();
    build::network(&scenario, scenario.seed)
}

/// Returns the ACR of each ABR flow's data VC in Mb/s, sampled every millisecond, and the result of the run.
fn rates(network: &Network) -> (Vec<Vec<f64>>, RunResult) {
    let choice = SeriesChoice { rates: true, ..SeriesChoice::default() };
    let mut recorder = Recorder::new(choice, Vec::new(), Duration::from_milliseconds(1), network);
    let result = Engine::Fast.record(network, &mut recorder);
    (recorder.acr_mbps.chunks(recorder.rate_flows().count()).map(<[f64]>::to_vec).collect(), result)
}

/// Creates ten sources that can send at the links' rate, over a path with a round trip of 6 ms.
fn ten_sources(icr: &str) -> Network {
    network(&format!(
        r#"
        duration = "300ms"
        topology.n_source = {{ sources = 10, link_delay = "1ms" }}
        port.bottleneck = {{ buffer = 1000, policy.tail_drop = {{}}, allocator.equal_share = {{}} }}
        vc.tcp1-10.abr = {{ icr = "{icr}" }}
        flow.tcp1-10.traffic.constant_rate = {{ rate = "155Mbps" }}
        "#
    ))
}

#[test]
fn ten_active_abr_vcs_each_get_a_tenth_of_the_link_from_any_initial_rate() {
    for icr in ["10kbps", "1Mbps", "15.552Mbps", "50Mbps", "155.52Mbps"] {
        let (rates, _) = rates(&ten_sources(icr));
        // The rates must settle within ten round trips over six links of 1 ms, each with the delay of a full buffer
        // (1000 cells of 2.73 us).
        for (ms, now) in rates.iter().enumerate().skip(88) {
            for rate in now {
                assert!((rate / 15.552 - 1.0).abs() < 0.005, "{rate} Mb/s after {ms} ms with icr = {icr}");
            }
        }
    }
}

#[test]
fn every_nrm_th_cell_of_a_vc_that_always_sends_is_a_forward_rm_cell() {
    for nrm in [8, 32, 256] {
        let network = network(&format!(
            r#"
            duration = "500ms"
            topology.n_source = {{ sources = 1, link_delay = "1ms" }}
            port.bottleneck = {{ buffer = 1000, policy.tail_drop = {{}}, allocator.equal_share = {{}} }}
            vc.tcp1.abr = {{ nrm = {nrm} }}
            flow.tcp1.traffic.constant_rate = {{ rate = "155.52Mbps" }}
            "#
        ));
        let result = Engine::Fast.run_to_end(&network);
        let source = &result.ports[network.vcs[VcIndex::new(0)].path[0]];
        let share = result.abr[0].forward_rm_cells as f64 / source.counters.forwarded as f64;
        assert!((share * f64::from(nrm) - 1.0).abs() < 0.02, "{share} at Nrm = {nrm}");
        assert!(source.utilisation > 0.99, "saturated: {}", source.utilisation);
        // Efficiency is relative to the capacity that forward RM cells leave. Backward RM cells use a part of this
        // capacity: the other direction sends one forward RM cell for every Nrm - 1 backward RM cells. The first 3 ms
        // of the run reduce the efficiency by less than 1 %.
        let answers = 1.0 / f64::from(nrm - 1).powi(2);
        let most = (0.99 * (1.0 - answers))..=(1.0 - answers);
        assert!(most.contains(&result.efficiency), "{} at Nrm = {nrm}", result.efficiency);
        let flow = &result.flows[FlowIndex::new(0)];
        assert!(most.contains(&(flow.goodput_mbps / flow.max_min_mbps)), "Nrm = {nrm}");
    }
}

/// Creates one VC over three links, of which the middle link is slower, and one VC over each of these links.
fn parking_lot(allocator: &str) -> Network {
    let mut network = network(&format!(
        r#"
        duration = "500ms"
        topology.chain = {{ hops = 3, long = 1, cross = 1, link_delay = "1ms", access_delay = "5us" }}
        flow.long1.traffic.constant_rate = {{ rate = "155Mbps" }}
        flow.cross1-3.traffic.constant_rate = {{ rate = "155Mbps" }}
        vc.long1.abr = {{ icr = "10Mbps" }}
        vc.cross1-3.abr = {{ icr = "10Mbps" }}
        port.default = {{ buffer = 5000, policy.tail_drop = {{}}, {allocator} }}
        "#
    ));
    for link in network.links.iter_mut().filter(|link| ["sw2->sw3", "sw3->sw2"].contains(&link.name.as_str())) {
        link.rate = BitRate::from_bits_per_second(77_760_000);
    }
    network
}

/// Returns the mean ACRs of `long1`, `cross1`, `cross2` and `cross3` over the last quarter of a second.
fn settled(allocator: &str) -> [f64; 4] {
    let (rates, _) = rates(&parking_lot(allocator));
    let late = &rates[250..];
    [0, 1, 2, 3].map(|flow| late.iter().map(|now| now[flow]).sum::<f64>() / late.len() as f64)
}

/// Returns the largest relative deviation of the rates from the max-min rates, if VCs may use the share `part` of each
/// link.
fn distance(rates: [f64; 4], part: f64) -> f64 {
    let capacities = [155.52, 77.76, 155.52].map(|rate| part * rate);
    let [a, b, c] = [0, 1, 2].map(LinkIndex::new);
    let fair = shares(TiSlice::from_ref(&capacities), &[vec![a, b, c], vec![a], vec![b], vec![c]], Terms::default());
    rates.iter().zip(&fair).map(|(rate, share)| (rate / share - 1.0).abs()).fold(0.0, f64::max)
}

#[test]
fn in_a_parking_lot_erica_is_max_min_fair_and_equal_share_is_not() {
    let erica = settled("allocator.erica = { delta = 0.0 }");
    assert!(distance(erica, 0.9) < 0.02, "{erica:?}");
    let ideal = settled("allocator.max_min = {}");
    assert!(distance(ideal, 1.0) < 1e-9, "{ideal:?}");
    // Equal shares give each VC half of each link. On a fast link, the cross VC gets 77.76 Mb/s instead of the 116.64
    // Mb/s that the long VC leaves unused because of the slow link.
    let equal = settled("allocator.equal_share = {}");
    assert!((distance(equal, 1.0) - 1.0 / 3.0).abs() < 0.01, "{equal:?}");
    println!("long1, cross1, cross2, cross3:\nerica {erica:.2?}\nequal_share {equal:.2?}\nmax_min {ideal:.2?}");
}

/// Creates two sources whose bottleneck marks cells. A single mark stops a source, because RDF = 1 and MCR = 0.
fn stopped_by_marks(out_of_rate: &str) -> Network {
    network(&format!(
        r#"
        duration = "600ms"
        topology.n_source = {{ sources = 2, link_delay = "1ms" }}
        port.bottleneck = {{ buffer = 5000, policy.tail_drop = {{}}, allocator.efci = {{ threshold = 50 }} }}
        vc.tcp1-2.abr = {{ rdf = 1.0, rif = 0.0078125, {out_of_rate} }}
        flow.tcp1-2.traffic.constant_rate = {{ rate = "155Mbps" }}
        "#
    ))
}

#[test]
fn out_of_rate_rm_cells_restart_an_abr_source_that_stopped_because_its_mcr_is_zero() {
    let (rates_without, without) = rates(&stopped_by_marks(""));
    let (rates_with, with) = rates(&stopped_by_marks(r#"out_of_rate = true, tcr = "42.4kbps""#));
    // In the results, each data VC is followed by the VC of its acknowledgements.
    let stopped =
        (0..2).find(|flow| without.abr[2 * flow].acr_mbps == 0.0).expect("one of the two sources has stopped");
    let back = |rates: &[Vec<f64>]| rates.windows(2).filter(|w| w[0][stopped] == 0.0 && w[1][stopped] > 0.0).count();
    assert!(rates_without[300..].iter().all(|now| now[stopped] == 0.0), "stopped for good");
    assert!(back(&rates_with[300..]) > 2, "the source stops and restarts repeatedly: {}", back(&rates_with[300..]));
    let [was, is] = [&without, &with].map(|result| &result.abr[2 * stopped]);
    assert_eq!(was.out_of_rate_rm_cells, 0);
    // TCR = 100 cells/s.
    assert!((2..=100).contains(&is.out_of_rate_rm_cells), "{} out-of-rate RM cells", is.out_of_rate_rm_cells);
    assert!(is.forward_rm_cells > 2 * was.forward_rm_cells, "{} against {}", is.forward_rm_cells, was.forward_rm_cells);
    assert_eq!(with.abr[1].out_of_rate_rm_cells, 0, "acknowledgements may also be sent at PCR");
    for (out_of_rate, fast) in [("", without), (r#"out_of_rate = true, tcr = "42.4kbps""#, with)] {
        assert_eq!(fast, Engine::Reference.run_to_end(&stopped_by_marks(out_of_rate)), "{out_of_rate}");
    }
}

#[test]
fn out_of_rate_rm_cells_restart_both_directions_of_a_connection_after_both_were_stopped() {
    // ICR is one cell per second in each direction, so an answer sent in rate would take a second.
    let network = |out_of_rate: bool| {
        network(&format!(
            r#"
            duration = "900ms"
            topology.n_source = {{ sources = 1, link_delay = "1ms" }}
            tcp.newreno = {{ mss = "512B", receive_window = "65535B" }}
            port.bottleneck = {{ buffer = 1000, policy.tail_drop = {{}}, allocator.equal_share = {{}} }}
            vc.tcp1.abr = {{ icr = "424bps", out_of_rate = {out_of_rate} }}
            "#
        ))
    };
    let (_, without) = rates(&network(false));
    assert_eq!(without.goodput_mbps, 0.0, "{:?}", without.abr);
    let (_, with) = rates(&network(true));
    assert!(with.goodput_mbps > 1.0, "{} Mb/s: {:?}", with.goodput_mbps, with.abr);
    assert!((1..=9).contains(&with.abr[0].out_of_rate_rm_cells), "TCR is 10 cells per second: {:?}", with.abr);
    assert_eq!(with, Engine::Reference.run_to_end(&network(true)));
}

#[test]
fn sent_and_received_abr_cells_balance_on_both_engines_with_efci_marks_and_with_explicit_rates() {
    let all = ["efci = { threshold = 250 }", "erica = {}", "max_min = {}", "equal_share = {}", "erica_plus = {}"];
    for allocator in &all[..if std::env::var_os("CELLTRAIN_NIGHTLY").is_some() { 5 } else { 2 }] {
        let network = network(&format!(
            r#"
            duration = "300ms"
            topology.internetwork = {{ sources = 3, ip_delay = "1ms", atm_delay = "1ms", bidirectional = true }}
            tcp.newreno = {{ mss = "1460B", receive_window = "655360B" }}
            edge."*" = {{ buffer = 500, discard.adaptive_discard = {{}} }}
            port."sw*->sw*" = {{ buffer = 1000, policy.tail_drop = {{}}, allocator.{allocator} }}
            vc.tcp1-6.abr = {{}}
            "#
        ));
        let (rates, fast) = rates(&network);
        assert_eq!(fast, Engine::Reference.run_to_end(&network), "{allocator}");
        let cells = fast.cells;
        assert_eq!(cells.offered, cells.delivered + cells.lost + cells.discarded + cells.in_flight, "{allocator}");
        let lowest = rates.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        assert!(lowest < 100.0 && fast.abr.iter().all(|vc| vc.returned_rm_cells > 0), "{allocator}: loops close");
    }
}

/// Creates two ABR VCs, and one VC of class `class` that sends packets at the rate `rate`. The third VC sends during 50
/// ms of every 200 ms, from 300 ms on.
fn beside_bursts(allocator: &str, class: &str, rate: &str) -> Network {
    network(&format!(
        r#"
        duration = "600ms"
        topology.n_source = {{ sources = 3, link_delay = "1ms" }}
        port.bottleneck = {{ buffer = 4000, policy.tail_drop = {{}}, allocator.{allocator} }}
        vc.tcp1-2.abr = {{}}
        vc.tcp3.class = "{class}"
        flow.tcp1-2.traffic.constant_rate = {{ rate = "155Mbps" }}
        flow.tcp3 = {{ start = "300ms", traffic.on_off = {{ rate = "{rate}", on = "50ms", off = "150ms" }} }}
        "#
    ))
}

/// Regression: UBR at the link's rate left no capacity for ABR during an averaging interval. With MCR = 0, the ABR
/// sources then stopped permanently.
#[test]
fn intermittent_ubr_traffic_does_not_stop_abr_traffic() {
    for allocator in ["erica = { delta = 0.0 }", "erica_plus = {}"] {
        let network = beside_bursts(allocator, "ubr", "155Mbps");
        let (rates, fast) = rates(&network);
        for now in &rates[100..] {
            assert!(now[..2].iter().all(|rate| *rate > 10.0), "{allocator}: {now:?} Mb/s");
        }
        // The last burst of UBR traffic ends after 550 ms.
        let late = rates.last().expect("the series has at least one sample")[..2].iter().sum::<f64>();
        assert!((0.85..1.1).contains(&(late / 155.52)), "{allocator}: {late} Mb/s");
        assert_eq!(fast, Engine::Reference.run_to_end(&network), "{allocator}");
    }
}

#[test]
fn the_rate_of_vbr_is_subtracted_from_the_capacity_for_abr() {
    let network = beside_bursts("erica = { delta = 0.0 }", "vbr", "77.76Mbps");
    let (rates, fast) = rates(&network);
    let mean = |from: usize| rates[from..from + 20].iter().map(|now| now[0] + now[1]).sum::<f64>() / 20.0;
    // The means at 330 and 530 ms start 30 ms after the beginning of a burst. ABR gets 0.9 of the remaining half of the
    // link during bursts, and 0.9 of the whole link between bursts.
    for (from, expected) in [(270, 139.97), (330, 69.98), (470, 139.97), (530, 69.98)] {
        assert!((mean(from) / expected - 1.0).abs() < 0.05, "{} Mb/s after {from} ms, not {expected}", mean(from));
    }
    assert_eq!(fast, Engine::Reference.run_to_end(&network));
}

/// Creates four VCs on a link of 155.52 Mb/s. The lines `rest` are added to the scenario.
fn four_vcs(rest: &str) -> Network {
    network(&format!(
        r#"
        duration = "100ms"
        topology.n_source = {{ sources = 4, link_delay = "1ms" }}
        tcp.newreno = {{ mss = "512B", receive_window = "655360B" }}
        port.bottleneck = {{ buffer = 4000, policy.tail_drop = {{}}, allocator.max_min = {{}} }}
        {rest}
        "#
    ))
}

#[test]
fn the_ideal_shares_of_abr_vcs_leave_room_for_rm_cells_and_are_at_most_pcr() {
    let near = |rest: &str, of_line: [f64; 4]| {
        // 512 bytes in 12 cells.
        let expected = of_line.map(|rate| rate * 512.0 / 636.0);
        let found = goodputs_mbps(&four_vcs(rest), &CancellationToken::never()).unwrap();
        let close = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9);
        assert!(close, "{found:?}, not {expected:?}: {rest}");
    };
    let quarter = 155.52 / 4.0;
    // All VCs send the same number of cells. Seven eighths of the ABR cells are data cells.
    near("vc.tcp1-2.abr.nrm = 8", [quarter * 0.875, quarter * 0.875, quarter, quarter]);
    // PCR includes RM cells: of 20 Mb/s on the line, 17.5 Mb/s are data cells.
    let rest = (155.52 - 20.0) / 3.0;
    near("vc.tcp1.abr = { nrm = 8, pcr = \"20Mbps\" }\nvc.tcp2.abr.nrm = 8", [17.5, rest * 0.875, rest, rest]);
    // A TCP paced at 14 Mb/s of data cells takes 16 Mb/s of the line, including RM cells.
    let rest = (155.52 - 16.0) / 3.0;
    near(
        "vc.tcp1-2.abr.nrm = 8\nflow.tcp1.tcp.newreno = { mss = \"512B\", pacing_rate = \"14Mbps\" }",
        [14.0, rest * 0.875, rest, rest],
    );
}

/// Regression: the max-min reference gave ABR the whole link despite other classes, and gave the rate that the PCR of a
/// VC left unused to no other VC.
#[test]
fn the_reference_rates_of_abr_respect_pcr_and_other_service_classes() {
    let vbr = "vc.tcp4.class = \"vbr\"\nflow.tcp4.traffic.on_off = { rate = \"80Mbps\", on = \"5ms\", off = \"5ms\" }";
    let ubr = "flow.tcp3.traffic.constant_rate = { rate = \"15Mbps\" }";
    let third = (155.52 - 40.0) / 3.0;
    for (abr, rest, expected) in [
        // Without a PCR, all four VCs have equal shares. If one VC has a PCR, the other VCs share the rest.
        ("{}", "", [155.52 / 4.0; 2]),
        ("{ pcr = \"20Mbps\" }", "", [20.0, (155.52 - 20.0) / 3.0]),
        // The VBR VC gets its mean rate first. The UBR VC gets no more than its sending rate.
        ("{}", vbr, [third; 2]),
        ("{ mcr = \"90Mbps\" }", vbr, [90.0, 25.52 / 2.0]),
        ("{}", &format!("{vbr}\n{ubr}"), [(155.52 - 40.0 - 15.0) / 2.0; 2]),
    ] {
        let network = four_vcs(&format!("vc.tcp1.abr = {abr}\nvc.tcp2.abr = {{}}\n{rest}"));
        let (rates, fast) = rates(&network);
        let last = &rates.last().expect("the series has at least one sample")[..2];
        let close = last.iter().zip(expected).all(|(rate, expected)| (rate / expected - 1.0).abs() < 1e-9);
        assert!(close, "{last:?}, not {expected:?}: {abr}\n{rest}");
        assert_eq!(fast, Engine::Reference.run_to_end(&network), "{abr}\n{rest}");
    }
}

#[test]
fn the_state_of_an_edge_device_can_be_read_at_any_time_during_a_run() {
    // A cell takes 265 ticks of 10.3 ns, so these steps end at every phase of a cell. The engine computes the cells
    // that the device forwards up to the end of a step. Cells whose transmission begins just after the step must not
    // have left the device.
    let network = network(
        r#"
        duration = "500us"
        edge.e.discard.tail_drop = {}
        port.default = { buffer = "infinite", policy.tail_drop = {} }
        tcp.vanilla.mss = "1460B"
        [topology.network]
        hosts = ["h1", "h2", "h3"]
        switches = ["sw"]
        edge_devices = ["e"]
        flows = [{ from = "h1", to = "h2" }, { from = "h2", to = "h3" }]
        links = [
            { between = ["h1", "e"], rate = "155.52Mbps", delay = "5us" },
            { between = ["e", "sw"], rate = "155.52Mbps", delay = "5us" },
            { between = ["h2", "sw"], rate = "155.52Mbps", delay = "5us" },
            { between = ["h3", "sw"], rate = "155.52Mbps", delay = "5us" },
        ]
        "#,
    );
    let links: Vec<_> = network.links.keys().collect();
    for step in (2_500_000..4_500_000).step_by(20_000) {
        let [fast, reference] = Engine::ALL.map(|engine| {
            let choice = SeriesChoice { queue: true, edges: true, ..SeriesChoice::default() };
            let mut recorder = Recorder::new(choice, links.clone(), Duration { picoseconds: step }, &network);
            engine.record(&network, &mut recorder);
            let looks = recorder.times.len() * recorder.edge_flows().count();
            let series = [recorder.edge_packets.len(), recorder.edge_phase.len(), recorder.edge_p_ctr.len()];
            assert_eq!((series, recorder.edge_ld_acr_mbps.len()), ([looks; 3], looks));
            (recorder.queue_cells, recorder.edge_packets)
        });
        assert_eq!(fast, reference, "a snapshot every {step} ps");
        assert!(fast.1.iter().any(|&packets| packets > 0), "packets wait");
    }
}
