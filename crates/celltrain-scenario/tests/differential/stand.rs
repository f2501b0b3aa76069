//! A mock of the Python interpreter, whose policies have their own state and draw random numbers.

use std::collections::BTreeMap;

use celltrain_core::error::Fault;
use celltrain_core::index::Label;
use celltrain_core::memory::python::{
    self as memories, Config as MemoryClass, Interpreter as MemoryInterpreter, Methods, Object as MemoryObject,
    can_lose,
};
use celltrain_core::memory::{self, PoolInfo, PoolQueue, QueueEnd};
use celltrain_core::policy::formula::{PortInfo, WhenFull};
use celltrain_core::policy::python::{Config, Interpreter, Object, Setting, provide};
use celltrain_core::policy::{PolicyConfig, View};
use celltrain_core::rng::Stream;

/// Returns the configuration of a policy class whose setting is derived from the byte `drawn`.
pub(crate) fn class(drawn: u8) -> PolicyConfig {
    provide(Box::new(Stand));
    memories::provide(Box::new(Stand));
    let when_full = match drawn % 3 {
        0 => WhenFull::LoseRestOfFrame,
        1 => WhenFull::LoseCell,
        _ => WhenFull::PushOutFront,
    };
    let settings = BTreeMap::from([("share".into(), Setting::Whole(drawn.into()))]);
    Config { class: "stand:In".into(), settings, when_full: Some(when_full) }.into()
}

struct Stand;

impl Interpreter for Stand {
    fn check(&self, config: &Config) -> Vec<Fault> {
        let problem = "is not a whole number from 0 to 255";
        share(config).map_or(vec![Fault::new("settings.share", "", problem)], |_| Vec::new())
    }

    fn when_full(&self, _config: &Config) -> Option<WhenFull> {
        None
    }

    fn object(&self, config: &Config, port_info: &PortInfo<'_>, vcs: &[String]) -> Box<dyn Object> {
        let share = share(config).expect("the setting was already checked");
        let limit = port_info.capacity.unwrap_or(1000) / 256 * u32::from(share);
        Box::new(In { limit, admitted: vec![0; vcs.len()], last: 0 })
    }
}

impl MemoryInterpreter for Stand {
    fn check(&self, _config: &MemoryClass) -> Vec<Fault> {
        Vec::new()
    }

    fn methods(&self, config: &MemoryClass) -> Methods {
        let push_out = match config.settings.get("kind") {
            Some(Setting::Whole(1)) => Some(QueueEnd::Tail),
            Some(Setting::Whole(2)) => Some(QueueEnd::Head),
            _ => None,
        };
        Methods { on_arrival: true, on_departure: true, push_out }
    }

    fn object(&self, config: &MemoryClass, pool: &PoolInfo<'_>) -> Box<dyn MemoryObject> {
        let end = MemoryInterpreter::methods(self, config).push_out.unwrap_or(QueueEnd::Tail);
        Box::new(Shares { end, left: vec![0; pool.queues.len()], rng: pool.rng.clone(), last: 0 })
    }
}

/// A memory policy in which a queue that sends fewer cells may hold fewer cells. The policy refuses some cells at
/// random, and at certain times. The queue from which the most cells have left makes room for arriving cells.
struct Shares {
    end: QueueEnd,
    left: Vec<u32>,
    rng: Stream,
    last: u64,
}

impl MemoryObject for Shares {
    fn admit(&mut self, view: &memory::View<'_>, queue: PoolQueue, cells: u32) -> bool {
        let share = view.cells / 2 + self.left[queue.number() as usize];
        view.queues[queue] + cells <= share.max(1) && self.rng.unit() < 0.95
    }

    fn on_arrival(&mut self, view: &memory::View<'_>, queue: PoolQueue, _cells: u32) {
        let since = view.now.0 - std::mem::replace(&mut self.last, view.now.0);
        self.left[queue.number() as usize] /= if since % 7 == 3 { 2 } else { 1 };
    }

    fn on_departure(&mut self, view: &memory::View<'_>, queue: PoolQueue) {
        self.left[queue.number() as usize] += 1 + view.used % 2;
    }

    fn push_out(&mut self, view: &memory::View<'_>, queue: PoolQueue, _cells: u32) -> Option<PoolQueue> {
        let may_lose = |&other: &PoolQueue| can_lose(view, other, queue, self.end);
        view.queues.keys().filter(may_lose).max_by_key(|other| self.left[other.number() as usize])
    }
}

fn share(config: &Config) -> Option<u8> {
    let Some(&Setting::Whole(share)) = config.settings.get("share") else { return None };
    share.try_into().ok()
}

/// A policy that always admits below its limit. Above its limit, it refuses tagged frames and frames of VCs that have
/// had more admissions than the mean. The policy refuses other frames at random, and at certain times.
struct In {
    limit: u32,
    admitted: Vec<u32>,
    last: u64,
}

impl Object for In {
    fn admit(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
        let vc = vc.number() as usize;
        let since = buffer.now.0 - std::mem::replace(&mut self.last, buffer.now.0);
        let is_busy = buffer.occupancy > self.limit || buffer.per_vc.raw[vc] * buffer.active_vcs > self.limit;
        let mean = self.admitted.iter().sum::<u32>()
            / u32::try_from(self.admitted.len()).expect("the length of this list fits in 32 bits");
        let admits = !is_busy || (!buffer.tagged && self.admitted[vc] <= mean && rng.unit() < 0.7 && since % 7 != 3);
        self.admitted[vc] += u32::from(admits);
        admits
    }
}
