//! Random TCPs, and random options of individual flows.

use celltrain_core::tcp::{
    Congestion, OfferedWindow, ReceiverOptions, Rules, TcpConfig, TcpOptions, TimerOptions, WindowOptions,
};
use celltrain_core::traffic::TrafficConfig;
use celltrain_core::units::{BitRate, Bytes, Duration};
use celltrain_scenario::scenario::FlowOptions;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::kinds::{Drawn, PLAIN, TCPS, TRAFFIC, drawn, named, put, seed};
use super::swarm::{Feature, List, Pick, Swarm};
use super::{SEGMENTS, STARTS, Sizes};
use crate::formulas::drawn::Draws;

/// A random TCP with its options. The variant is one of the variants that the network may use.
#[derive(Clone, Debug)]
pub(super) struct Tcp {
    pub(super) variant: Pick,
    pub(super) settings: Drawn,
    pub(super) mss: u64,
    pub(super) window: u64,
    /// In microseconds.
    pub(super) tick: u64,
    pub(super) pace: Option<u64>,
    /// In segments.
    pub(super) lose_at: Option<u64>,
    /// In segments.
    pub(super) ssthresh: Option<u64>,
}

pub(super) fn tcp(sizes: Sizes) -> BoxedStrategy<Tcp> {
    let sizes = (select(sizes.mss), select(sizes.windows));
    let pace = select(&[None, Some(155_520_000), Some(34_368_000)][..]);
    let lose_at = select(&[None, Some(2), Some(5), Some(8), Some(17)][..]);
    let ssthresh = select(&[None, None, Some(2), Some(6)][..]);
    (any::<Pick>(), drawn(), sizes, select(&[10_000u64, 2_000, 1_000, 100][..]), pace, (lose_at, ssthresh))
        .prop_map(|(variant, settings, (mss, window), tick, pace, (lose_at, ssthresh))| Tcp {
            variant,
            settings,
            mss,
            window,
            tick,
            pace,
            lose_at,
            ssthresh,
        })
        .boxed()
}

impl Tcp {
    pub(super) fn config(&self, swarm: Swarm) -> TcpConfig {
        let closes = [Feature::ClosingWindows, Feature::ShrinkingWindows, Feature::LossAtWindow];
        if closes.iter().all(|&feature| swarm.has(feature)) {
            return self.closing_window();
        }
        let Self { mss, tick, .. } = *self;
        let name = swarm.one_of(List::Tcp, TcpConfig::NAMES, self.variant);
        let variant = TCPS.iter().find(|variant| variant.name == name).expect("the schema lists this name");
        let size = |bytes: u64| json!(Bytes { bytes });
        let settings = if swarm.has(Feature::TcpOptions) { self.settings } else { PLAIN };
        let mut options = variant.settings(&settings, 0);
        if let Some(congestion) = options.get_mut("congestion") {
            *congestion = json!(swarm.one_of(List::Congestion, Congestion::NAMES, settings[0]));
        }
        if options.get("congestion") == Some(&json!("formula")) {
            options.insert("formula".into(), Draws::new(seed(&settings)).control(mss));
        }
        if options.get("congestion") == Some(&json!("dctcp")) {
            options.insert("ecn".into(), json!("on"));
        }
        let paces = options.get("congestion").is_some_and(|congestion| congestion == "bbr");
        let pace = self.pace.filter(|_| swarm.has(Feature::Pacing) && !paces);
        let lose_at = self.lose_at.filter(|_| swarm.has(Feature::LossAtWindow));
        let ssthresh = self.ssthresh.filter(|_| swarm.has(Feature::TcpOptions));
        let in_bytes = |segments: Option<u64>| json!(segments.map(|segments| Bytes { bytes: segments * mss }));
        let mut window = if self.window < SEGMENTS { self.window * mss } else { self.window };
        if swarm.has(Feature::ShrinkingWindows) {
            put(&mut options, "receiver.offered_window", json!("less_kept"));
            // If the receiver stores all segments of the window but the first, the scaled window is smaller than a
            // segment.
            window = if mss == 9141 { 8 * mss } else { window };
        }
        options.insert("mss".into(), size(mss));
        options.insert("receive_window".into(), size(window.max(mss)));
        options.insert("timer_granularity".into(), json!(Duration::from_microseconds(tick)));
        // Few applications pause for 10 ms.
        let initial_rto = if tick == 100 { 1 } else { 10 };
        put(&mut options, "timer.initial_rto", json!(Duration::from_milliseconds(initial_rto)));
        options.insert("pacing_rate".into(), json!(pace.map(BitRate::from_bits_per_second)));
        put(&mut options, "windows.lose_at_window", in_bytes(lose_at));
        put(&mut options, "start.initial_ssthresh", in_bytes(ssthresh));
        if options.get("rules") == Some(&json!("today")) {
            // A written scenario omits values that equal the usual defaults. Absent values then have the defaults of
            // the profile.
            let usual = json!(TcpOptions::default());
            options.retain(|key, value| *value != usual[key]);
            Rules::complete(&mut options);
        }
        serde_json::from_value(json!({name: options})).expect("the schema lists all settings")
    }

    /// Creates a TCP whose receiver's window closes if a segment is lost when cwnd reaches the window: if the receiver
    /// stores all segments but the first, the scaled window is a byte smaller than a segment. The sender soon probes
    /// the window, or has already retransmitted the lost segment.
    fn closing_window(&self) -> TcpConfig {
        let window = Bytes { bytes: 4 * 16_385 };
        let rto = Duration::from_milliseconds(1 + u64::from(self.settings[0] % 4));
        let options = TcpOptions {
            mss: Bytes { bytes: window.bytes / 4 },
            receive_window: window,
            receiver: ReceiverOptions { offered_window: Some(OfferedWindow::LessKept), ..ReceiverOptions::default() },
            windows: WindowOptions { lose_at_window: Some(window), ..WindowOptions::default() },
            timer: TimerOptions { initial_rto: Some(rto), maximum_rto: Some(rto), ..TimerOptions::default() },
            timer_granularity: Duration::from_microseconds(100),
            ..TcpOptions::default()
        };
        TcpConfig::named("vanilla", options).expect("the schema lists this name")
    }
}

/// Random TCP, start time and traffic of an individual flow.
#[derive(Clone, Debug)]
pub(super) struct OwnFlow {
    pub(super) tcp: Option<Tcp>,
    pub(super) start: Option<u64>,
    pub(super) traffic: Option<(Pick, Drawn)>,
}

pub(super) fn own_flow(sizes: Sizes) -> BoxedStrategy<OwnFlow> {
    let traffic = prop::option::weighted(0.7, (any::<Pick>(), drawn()));
    (prop::option::weighted(0.7, tcp(sizes)), prop::option::of(select(STARTS)), traffic)
        .prop_map(|(tcp, start, traffic)| OwnFlow { tcp, start, traffic })
        .boxed()
}

impl OwnFlow {
    pub(super) fn options(&self, swarm: Swarm) -> FlowOptions {
        let tcp = self.tcp.as_ref().filter(|_| swarm.has(Feature::OwnTcps)).map(|tcp| tcp.config(swarm));
        let traffic =
            self.traffic.as_ref().filter(|_| swarm.has(Feature::OwnTraffic)).map(|(pick, drawn)| {
                named(&TRAFFIC, swarm.one_of(List::Traffic, TrafficConfig::NAMES, *pick), drawn, 0)
            });
        FlowOptions { tcp, stack: None, start: self.start.map(Duration::from_microseconds), traffic }
    }
}
