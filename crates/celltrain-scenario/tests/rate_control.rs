//! ABR in whole runs: sources come to the rates their allocators mean, and both engines say the same.

use celltrain_core::engine::Engine;
use celltrain_core::max_min::{Terms, shares};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::probe::{Nothing, Probe, Recorder, SeriesChoice};
use celltrain_core::units::Duration;
use celltrain_scenario::{Machine, build, read_toml};

fn network(text: &str) -> Network {
    let reading = read_toml(text, "here.toml", Machine::default());
    let faults: Vec<_> = reading.faults.iter().map(|fault| &fault.message).collect();
    let scenario = reading.scenario.unwrap_or_else(|| panic!("{faults:?}"));
    build::network(&scenario, scenario.seed)
}

fn run(engine: Engine, network: &Network, probe: &mut impl Probe) -> RunResult {
    engine.run(network, probe, |_| true).expect("nothing interrupts it")
}

/// The ACR of each flow's data in Mb/s, every millisecond.
fn rates(network: &Network) -> (Vec<Vec<f64>>, RunResult) {
    let choice = SeriesChoice { rates: true, ..SeriesChoice::default() };
    let mut recorder = Recorder::new(choice, Vec::new(), Duration::from_milliseconds(1), network);
    let result = run(Engine::Fast, network, &mut recorder);
    (recorder.acr_mbps.chunks(network.flows.len()).map(<[f64]>::to_vec).collect(), result)
}

/// Ten sources that would send at the links' rate over a path whose round trip is 6 ms.
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
fn ten_active_vcs_have_a_tenth_each_from_any_initial_rate() {
    for icr in ["10kbps", "1Mbps", "15.552Mbps", "50Mbps", "155.52Mbps"] {
        let (rates, _) = rates(&ten_sources(icr));
        // Ten round trips: six links of 1 ms, and what a full buffer adds, 1000 cells of 2.73 us.
        for (ms, now) in rates.iter().enumerate().skip(88) {
            for rate in now {
                assert!((rate / 15.552 - 1.0).abs() < 0.005, "{rate} Mb/s after {ms} ms with icr = {icr}");
            }
        }
    }
}

#[test]
fn one_in_nrm_cells_of_a_saturated_vc_is_a_forward_rm_cell() {
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
        let result = run(Engine::Fast, &network, &mut Nothing);
        let source = &result.ports[network.vcs[0].path[0]];
        let share = result.abr[0].forward_rm_cells as f64 / source.counters.forwarded as f64;
        assert!((share * f64::from(nrm) - 1.0).abs() < 0.02, "{share} at Nrm = {nrm}");
        assert!(source.utilisation > 0.99, "saturated: {}", source.utilisation);
    }
}

/// One VC over three hops, the middle one narrow, and one over each.
fn parking_lot(allocator: &str) -> Network {
    network(&format!(
        r#"
        duration = "1s"
        [topology.network]
        hosts = ["long", "far", "cross1", "end1", "cross2", "end2", "cross3", "end3"]
        switches = ["sw1", "sw2", "sw3", "sw4"]
        links = [
            {{ between = ["long", "sw1"], delay = "5us" }},
            {{ between = ["cross1", "sw1"], delay = "5us" }},
            {{ between = ["sw1", "sw2"], delay = "1ms" }},
            {{ between = ["end1", "sw2"], delay = "5us" }},
            {{ between = ["cross2", "sw2"], delay = "5us" }},
            {{ between = ["sw2", "sw3"], rate = "77.76Mbps", delay = "1ms" }},
            {{ between = ["end2", "sw3"], delay = "5us" }},
            {{ between = ["cross3", "sw3"], delay = "5us" }},
            {{ between = ["sw3", "sw4"], delay = "1ms" }},
            {{ between = ["end3", "sw4"], delay = "5us" }},
            {{ between = ["far", "sw4"], delay = "5us" }},
        ]
        flows = [
            {{ name = "long", from = "long", to = "far" }},
            {{ name = "cross1", from = "cross1", to = "end1" }},
            {{ name = "cross2", from = "cross2", to = "end2" }},
            {{ name = "cross3", from = "cross3", to = "end3" }},
        ]
        [flow]
        long.traffic.constant_rate = {{ rate = "155Mbps" }}
        cross1.traffic.constant_rate = {{ rate = "155Mbps" }}
        cross2.traffic.constant_rate = {{ rate = "155Mbps" }}
        cross3.traffic.constant_rate = {{ rate = "155Mbps" }}
        [vc]
        long.abr = {{ icr = "10Mbps" }}
        cross1.abr = {{ icr = "10Mbps" }}
        cross2.abr = {{ icr = "10Mbps" }}
        cross3.abr = {{ icr = "10Mbps" }}
        [port.default]
        buffer = 5000
        policy.tail_drop = {{}}
        {allocator}
        "#
    ))
}

/// The mean ACRs of the last half second: `long`, `cross1`, `cross2`, `cross3`.
fn settled(allocator: &str) -> [f64; 4] {
    let (rates, _) = rates(&parking_lot(allocator));
    let late = &rates[500..];
    [0, 1, 2, 3].map(|flow| late.iter().map(|now| now[flow]).sum::<f64>() / late.len() as f64)
}

/// How far rates are from the max-min shares of links of which this part is used, at most.
fn distance(rates: [f64; 4], part: f64) -> f64 {
    let capacities = [155.52, 77.76, 155.52].map(|rate| part * rate);
    let fair = shares(&capacities, &[vec![0, 1, 2], vec![0], vec![1], vec![2]], Terms::default());
    rates.iter().zip(&fair).map(|(rate, share)| (rate / share - 1.0).abs()).fold(0.0, f64::max)
}

#[test]
fn on_a_parking_lot_of_three_hops_erica_is_max_min_fair_and_equal_share_is_not() {
    let erica = settled("allocator.erica = { delta = 0.0 }");
    assert!(distance(erica, 0.9) < 0.02, "{erica:?}");
    let ideal = settled("allocator.max_min = {}");
    assert!(distance(ideal, 1.0) < 1e-9, "{ideal:?}");
    // Half of each link, whatever the narrow one leaves: 77.76 instead of 116.64.
    let equal = settled("allocator.equal_share = {}");
    assert!((distance(equal, 1.0) - 1.0 / 3.0).abs() < 0.01, "{equal:?}");
    println!("long, cross1, cross2, cross3:\nerica {erica:.2?}\nequal_share {equal:.2?}\nmax_min {ideal:.2?}");
}

/// Two sources whose bottleneck marks cells, one mark of which stops them: RDF = 1, MCR = 0.
fn stopped_by_marks(out_of_rate: &str) -> Network {
    network(&format!(
        r#"
        duration = "1s"
        topology.n_source = {{ sources = 2, link_delay = "1ms" }}
        port.bottleneck = {{ buffer = 5000, policy.tail_drop = {{}}, allocator.efci = {{ threshold = 50 }} }}
        vc.tcp1-2.abr = {{ rdf = 1.0, rif = 0.0078125, {out_of_rate} }}
        flow.tcp1-2.traffic.constant_rate = {{ rate = "155Mbps" }}
        "#
    ))
}

#[test]
fn a_source_stopped_at_an_mcr_of_nothing_comes_back_by_rm_cells_out_of_rate() {
    let (rates_without, without) = rates(&stopped_by_marks(""));
    let stops = |rates: &[Vec<f64>], vc: usize| rates.windows(2).filter(|w| w[0][vc] > 0.0 && w[1][vc] == 0.0).count();
    let (rates_with, with) = rates(&stopped_by_marks(r#"out_of_rate = true, tcr = "42.4kbps""#));
    for vc in 0..2 {
        assert_eq!(stops(&rates_without, vc), 1, "stopped for good");
        assert_eq!(without.abr[vc].acr_mbps, 0.0);
        assert_eq!(without.abr[vc].out_of_rate_rm_cells, 0);
        assert!(stops(&rates_with, vc) > 2, "stopped and back: {}", stops(&rates_with, vc));
        // TCR = 100 cells a second.
        let sent = with.abr[vc].out_of_rate_rm_cells;
        assert!((2..=100).contains(&sent), "{sent} RM cells out of rate");
    }
    let delivered = |result: &RunResult| result.cells.delivered;
    assert!(delivered(&with) > 5 * delivered(&without), "{} against {}", delivered(&with), delivered(&without));
    assert_eq!(with.abr[2].out_of_rate_rm_cells, 0, "nothing waits on the way back");
    for (out_of_rate, fast) in [("", without), (r#"out_of_rate = true, tcr = "42.4kbps""#, with)] {
        assert_eq!(fast, run(Engine::Reference, &stopped_by_marks(out_of_rate), &mut Nothing), "{out_of_rate}");
    }
}

#[test]
fn where_both_directions_are_stopped_rm_cells_out_of_rate_start_both() {
    let both_ways = |out_of_rate: &str| {
        network(&format!(
            r#"
            duration = "1s"
            topology.internetwork = {{ sources = 2, ip_delay = "1ms", atm_delay = "1ms", bidirectional = true }}
            tcp.newreno = {{ mss = "1460B", receive_window = "655360B" }}
            edge."*" = {{ buffer = 500, discard.tail_drop = {{}} }}
            port."sw*->sw*" = {{ buffer = 1000, policy.tail_drop = {{}}, allocator.efci = {{ threshold = 20 }} }}
            vc.tcp1-4.abr = {{ rdf = 1.0, {out_of_rate} }}
            "#
        ))
    };
    let out_of_rate = r#"out_of_rate = true, tcr = "424kbps""#;
    let (_, without) = rates(&both_ways(""));
    assert!(without.abr.iter().all(|vc| vc.acr_mbps == 0.0), "all eight are stopped: {:?}", without.abr);
    let (_, with) = rates(&both_ways(out_of_rate));
    assert!(with.abr.iter().all(|vc| vc.out_of_rate_rm_cells > 0), "{:?}", with.abr);
    let (goodput, stopped) = (with.goodput_mbps, without.goodput_mbps);
    assert!(goodput > 3.0 * stopped, "{goodput} against {stopped} Mb/s");
    assert_eq!(with, run(Engine::Reference, &both_ways(out_of_rate), &mut Nothing));
}

#[test]
fn marks_and_rates_conserve_cells_on_both_engines_alike() {
    for allocator in ["efci = { threshold = 250 }", "equal_share = {}", "erica = {}", "erica_plus = {}", "max_min = {}"]
    {
        let network = network(&format!(
            r#"
            duration = "400ms"
            topology.internetwork = {{ sources = 3, ip_delay = "1ms", atm_delay = "1ms", bidirectional = true }}
            tcp.newreno = {{ mss = "1460B", receive_window = "655360B" }}
            edge."*" = {{ buffer = 500, discard.adaptive_discard = {{}} }}
            port."sw*->sw*" = {{ buffer = 1000, policy.tail_drop = {{}}, allocator.{allocator} }}
            vc.tcp1-6.abr = {{}}
            "#
        ));
        let (rates, fast) = rates(&network);
        assert_eq!(fast, run(Engine::Reference, &network, &mut Nothing), "{allocator}");
        let cells = fast.cells;
        assert_eq!(cells.offered, cells.delivered + cells.lost + cells.discarded + cells.in_flight, "{allocator}");
        let lowest = rates.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        assert!(lowest < 100.0 && fast.abr.iter().all(|vc| vc.returned_rm_cells > 0), "{allocator}: loops close");
    }
}
