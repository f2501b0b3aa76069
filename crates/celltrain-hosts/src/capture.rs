//! Captures of failing trials: a part of the run around the failure, at each end of the flows.

use std::fs::{self, File};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use celltrain_capture::watch::Destination;
use celltrain_capture::{About, CaptureChoice, Watch};
use celltrain_core::engine::Engine;
use celltrain_core::events::{Event, Observer};
use celltrain_core::network::Network;
use celltrain_core::probe::Probe;
use celltrain_core::units::Time;

use crate::driver::{Hosts, HostsError};

/// The part of a run to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: Duration,
    /// End of the captured part; `None` for the end of the run, or until a file has [`MOST_BYTES`].
    pub(crate) to: Option<Duration>,
}

/// A capture of a run.
pub(crate) struct Captured {
    /// The two files, with the packets of senders and receivers.
    pub(crate) paths: Vec<PathBuf>,
    /// The reason why the run ended.
    pub(crate) end: End,
}

/// The reason why a captured run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The run reached its end.
    Complete,
    /// A capture file reached its maximum size.
    Full,
    /// A stack panicked.
    Panic,
}

/// Runs a trial on the reference engine, which reports where and why packets are lost. Writes the packets in the window
/// to a file for the senders and one for the receivers: `x.pcapng` becomes `x-sender.pcapng` and `x-receiver.pcapng`.
///
/// # Panics
/// If a file cannot be written.
pub(crate) fn write(path: &Path, comment: &str, network: &Network, window: Window, hosts: Hosts) -> Captured {
    let duration = Duration::from_nanos(network.duration.picoseconds / 1000);
    let to = window.to.filter(|to| *to < duration);
    let end = to.map_or(String::new(), |to| format!("{}ns", to.as_nanos()));
    let text = format!("{}ns:{end}", window.from.min(duration.saturating_sub(SHORTEST)).as_nanos());
    let mut files = ["sender", "receiver"].map(|side| Output::create(path, side));
    let paths = files.iter().map(|file| file.path.canonicalize().unwrap_or_else(|_| file.path.clone())).collect();
    let stopped = AtomicBool::new(false);
    let [mut senders, mut receivers] = files.each_mut().map(|file| |bytes: &[u8]| file.take(bytes));
    let watch = |side, sink| {
        let choice = CaptureChoice::new(network.duration, ("ip", Some(side)), [None, None, None], Some(&text));
        let choice = choice.unwrap_or_else(|wrong| panic!("cannot capture the packets of a trial: {wrong}"));
        let application = format!("celltrain {}", env!("CARGO_PKG_VERSION"));
        let about = About { application, comment: comment.to_owned() };
        let into = Destination { sink, about, has_outcomes: true, stopped: &stopped };
        Watch::new(&choice, network, into).unwrap_or_else(|problem| {
            panic!(
                "cannot capture the packets of a trial: \
            {problem}"
            )
        })
    };
    let mut ends = BothEnds([watch("sender", &mut senders), watch("receiver", &mut receivers)]);
    let run = catch_unwind(AssertUnwindSafe(|| {
        let run = Engine::Reference.run_hosted(
            network,
            &mut ends,
            |_| !stopped.load(Ordering::Relaxed),
            |simulation| {
                hosts.run(simulation, |ends, seen| {
                    if let Some(packet) = seen.captured() {
                        ends.0.iter_mut().for_each(|end| end.on_packet(seen.time, &packet));
                    }
                })
            },
        );
        if let Err(error @ HostsError::Wrong(_)) = run {
            panic!("{error}");
        }
    }));
    for end in ends.0 {
        end.finish().unwrap_or_else(|problem| panic!("cannot capture the packets of a trial: {problem}"));
    }
    let end = match run {
        Err(_) => End::Panic,
        Ok(()) if stopped.load(Ordering::Relaxed) => End::Full,
        Ok(()) => End::Complete,
    };
    Captured { paths, end }
}

/// Observes a run at both ends of its flows.
struct BothEnds<'a>([Watch<'a>; 2]);

impl Probe for BothEnds<'_> {}

impl Observer for BothEnds<'_> {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        self.0.iter_mut().for_each(|end| end.on_event(now, event));
    }
}

/// A file with a size limit.
struct Output {
    path: PathBuf,
    file: File,
    bytes: usize,
}

impl Output {
    fn create(path: &Path, side: &str) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
        let path = path.with_file_name(format!("{stem}-{side}{}", extension.unwrap_or_default()));
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        let file = folder.and_then(|()| File::create(&path));
        let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path, file, bytes: 0 }
    }

    /// Writes whole blocks of the capture. Returns whether there is room for more.
    fn take(&mut self, bytes: &[u8]) -> bool {
        self.file.write_all(bytes).unwrap_or_else(|error| panic!("{}: {error}", self.path.display()));
        self.bytes += bytes.len();
        self.bytes < MOST_BYTES
    }
}

/// Size at which a capture ends. Blocks of a megabyte are written whole.
pub(crate) const MOST_BYTES: usize = 4_000_000;

/// Shortest part of a run to capture.
const SHORTEST: Duration = Duration::from_micros(1);
