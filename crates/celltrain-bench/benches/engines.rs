//! Benchmarks of engine components, and of whole scenarios on both engines.
//!
//!     cargo bench -p celltrain-bench --features criterion                  everything
//!     cargo bench -p celltrain-bench --features criterion -- port/         names with this prefix
//!
//! Times are compared with the previous run. The unit of throughput is a cell for components, a cell-hop for scenarios.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};

use celltrain_bench::{Group, all};
use celltrain_capture::codec::{Ipv4Header, TcpHeader, TcpSegment, encode_tcp_segment, parse_tcp_segment};
use celltrain_core::aal5::{Aal5Options, Reassembler};
use celltrain_core::cell::{Cell, FrameNumber, Run};
use celltrain_core::engine::Engine;
use celltrain_core::engine::fast::event_list::{Key, Rank, TournamentTree};
use celltrain_core::engine::fast::output_buffer::OutputBuffer;
use celltrain_core::index::Label;
use celltrain_core::policy::PolicyConfig;
use celltrain_core::probe::Nothing;
use celltrain_core::queue_range::QueueRange;
use celltrain_core::rng::Stream;
use celltrain_core::tcp::{Receiver, SackBlocks, Sender, TcpConfig, TcpOptions};
use celltrain_core::tie::{TieBreaker, TieOrder};
use celltrain_core::units::{Clock, Span, Time};
use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use serde_json::json;

/// Cells of a frame that carries a segment of 512 bytes.
const FRAME_CELLS: u32 = 12;
/// Cells of a frame with a segment of 9140 bytes.
const LONG_FRAME_CELLS: u32 = 192;
const VCS: u32 = 15;
const CAPACITY: u32 = 1000;

/// Sends frames of one VC after the other through a port. If as many cells leave as arrive, the buffer stays half full.
/// If one leaves for two that arrive, it is full, or as full as the policy allows.
fn port(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("port");
    group.throughput(Throughput::Elements(FRAME_CELLS.into()));
    for &name in PolicyConfig::NAMES {
        for (filling, occupancy, arrivals_per_departure) in [("half-full", CAPACITY / 2, 1), ("full", CAPACITY, 2)] {
            group.bench_function(format!("{name}/{filling}"), |bencher| {
                let mut port = filled(name, occupancy);
                let mut frame = 0;
                bencher.iter(|| {
                    frame += 1;
                    for i in 1..=FRAME_CELLS {
                        port.offer(black_box(Cell::new(
                            Label::new(frame % VCS),
                            FrameNumber::new(frame),
                            i == FRAME_CELLS,
                        )));
                        if i % arrivals_per_departure == 0 {
                            black_box(port.take());
                        }
                    }
                });
            });
        }
    }
}

/// Creates a port with this policy that holds `occupancy` cells, shared equally by all VCs.
fn filled(policy: &str, occupancy: u32) -> OutputBuffer {
    let settings = match policy {
        "epd" => json!({"threshold": CAPACITY - 200}),
        _ => json!({}),
    };
    let config: PolicyConfig = serde_json::from_value(json!({policy: settings}))
        .expect("a policy without defaults has its settings in this function");
    let built = config.build(Some(CAPACITY), &[""; VCS as usize]);
    let mut port = OutputBuffer::new(Some(CAPACITY), VCS as usize, built, Stream::new(1, "bench"));
    // The policy may refuse frames before that, so each VC gets one long frame, begun while there is room.
    for i in 0..occupancy {
        port.offer(Cell::new(Label::new(i % VCS), FrameNumber::new(0), false));
    }
    for vc in 0..VCS {
        port.offer(Cell::new(Label::new(vc), FrameNumber::new(0), true));
    }
    port
}

/// Sends whole frames through a queue of constant length, as the two engines do: cell by cell, and as one run.
fn ring(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ring");
    for cells in [FRAME_CELLS, LONG_FRAME_CELLS] {
        group.throughput(Throughput::Elements(cells.into()));
        group.bench_function(format!("by cell/{cells}"), |bencher| {
            let mut port = filled("tail_drop", CAPACITY / 2);
            let mut frame = 0;
            bencher.iter(|| {
                frame += 1;
                for cell in frame_of(frame % VCS, frame, cells).iter() {
                    port.offer(black_box(cell));
                    black_box(port.take());
                }
            });
        });
        group.bench_function(format!("by run/{cells}"), |bencher| {
            let mut port = filled("tail_drop", CAPACITY / 2);
            let mut frame = 0;
            bencher.iter(|| {
                frame += 1;
                let run = black_box(frame_of(frame % VCS, frame, cells));
                black_box(port.fate(run.last));
                port.admit(run, QueueRange { least: 0, largest: CAPACITY / 2 }, run.cells);
            });
        });
    }
}

/// Takes the next event, and gives it another time.
fn tournament_tree(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tournament_tree");
    group.throughput(Throughput::Elements(1));
    for keys in [8u32, 64, 2000] {
        group.bench_function(format!("{keys} keys"), |bencher| {
            let mut rng = Stream::new(1, "bench");
            let mut event_list = TournamentTree::new(keys as usize);
            for leaf in 0..keys {
                event_list.set(leaf as usize, Key::new(Time(rng.below(1024).into()), Rank::Settle, leaf as usize));
            }
            bencher.iter(|| {
                let first = black_box(event_list.first());
                let later = first.time() + Span(1 + u64::from(rng.below(1024)));
                event_list.set(first.leaf(), Key::new(later, Rank::Settle, first.leaf()));
            });
        });
    }
}

fn frame_of(vc: u32, frame: u32, cells: u32) -> Run {
    Run { last: Cell::new(Label::new(vc), FrameNumber::new(frame), true), cells }
}

fn reassembler(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reassembler");
    let max_cells = Aal5Options::default().max_cells();
    for cells in [FRAME_CELLS, LONG_FRAME_CELLS] {
        group.throughput(Throughput::Elements(cells.into()));
        group.bench_function(format!("by cell/{cells}"), |bencher| {
            let mut reassembler = Reassembler::default();
            let mut frame = 0;
            bencher.iter(|| {
                frame += 1;
                for cell in frame_of(0, frame, cells).iter() {
                    black_box(reassembler.on_cell(black_box(cell), max_cells, |_| cells));
                }
            });
        });
        group.bench_function(format!("by run/{cells}"), |bencher| {
            let mut reassembler = Reassembler::default();
            let mut frame = 0;
            bencher.iter(|| {
                frame += 1;
                black_box(reassembler.on_run(black_box(frame_of(0, frame, cells)), max_cells, |_| cells));
            });
        });
    }
}

fn ties(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ties");
    for cells in [5u32, 15] {
        group.throughput(Throughput::Elements(cells.into()));
        for (name, order) in [("random", TieOrder::Random), ("rotating", TieOrder::Rotating)] {
            group.bench_function(format!("{name}/{cells}"), |bencher| {
                let mut ties = TieBreaker::new(order, cells, Stream::new(1, "bench"));
                let together: Vec<u32> = (0..cells).collect();
                let mut ordered = together.clone();
                bencher.iter(|| {
                    ordered.copy_from_slice(&together);
                    ties.order(black_box(&mut ordered), |&input| input);
                });
            });
        }
    }
}

/// Keeps a window of segments in flight: each arrives, is acknowledged, and releases the next.
fn tcp(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tcp");
    group.throughput(Throughput::Elements(1));
    for &name in TcpConfig::NAMES {
        group.bench_function(format!("{name}/round trip"), |bencher| {
            let options = TcpOptions::default();
            let config = TcpConfig::named(name, options).expect("the names are those of the list");
            let (mut receiver, now) = (Receiver::new(&config), Time::default());
            let mut sender = Sender::new(&config, Clock { units_per_second: 1, exact: true });
            let mut in_flight = VecDeque::new();
            in_flight.extend(sender.next_segment(now));
            bencher.iter(|| {
                let segment = in_flight.pop_front().expect("an open window keeps segments in flight");
                let ack = receiver.on_segment(black_box(segment)).expect("every segment is acknowledged at once");
                sender.on_ack(black_box(ack), &SackBlocks::default(), now);
                while let Some(segment) = sender.next_segment(now) {
                    in_flight.push_back(segment);
                }
            });
        });
    }
}

fn codec(criterion: &mut Criterion) {
    let segment = TcpSegment {
        vpi: 0,
        vci: 32,
        ip: Ipv4Header::for_tcp([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
        tcp: TcpHeader { src_port: 1024, dst_port: 80, ..TcpHeader::default() },
        payload: vec![0x5a; 512],
    };
    let cells = encode_tcp_segment(&segment);
    let mut group = criterion.benchmark_group("codec");
    group.throughput(Throughput::Elements(FRAME_CELLS.into()));
    group.bench_function("encode segment", |bencher| bencher.iter(|| encode_tcp_segment(black_box(&segment))));
    group.bench_function("parse segment", |bencher| bencher.iter(|| parse_tcp_segment(black_box(&cells))));
}

/// Samples of a whole scenario: criterion's minimum.
const SAMPLES: u32 = 10;

fn engines(criterion: &mut Criterion) {
    for case in all().into_iter().filter(|case| case.group == Group::Whole) {
        let network = case.network();
        let run = |engine: Engine| engine.run(&network, &mut Nothing, |_| true).expect("nobody interrupts a benchmark");
        let mut group = criterion.benchmark_group(&case.name);
        // A run takes long, so a sample is one run or a few.
        group.sampling_mode(SamplingMode::Flat);
        for engine in Engine::ALL {
            let begun = Instant::now();
            group.throughput(Throughput::Elements(run(engine).cell_hops));
            let needed = begun.elapsed() * SAMPLES * 3 / 2;
            group.measurement_time(needed.max(Duration::from_secs(1)));
            group.bench_function(engine.name(), |bencher| bencher.iter(|| run(black_box(engine))));
        }
    }
}

criterion_group! {
    name = parts;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(700))
        .nresamples(10_000);
    targets = port, ring, tournament_tree, reassembler, ties, tcp, codec
}

criterion_group! {
    name = scenarios;
    config = Criterion::default()
        .sample_size(SAMPLES as usize)
        .warm_up_time(Duration::from_millis(100))
        .nresamples(10_000);
    targets = engines
}

criterion_main!(parts, scenarios);
