//! The subset of features and models that a random network may use.

use proptest::bits;
use proptest::prelude::*;

/// A feature that half of the networks may have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Feature {
    Abr,
    /// All VCs have the same options.
    AlikeVcs,
    Classes,
    /// The windows of receivers close if the network also has `ShrinkingWindows` and `LossAtWindow`.
    ClosingWindows,
    Contracts,
    EdgeDevices,
    HostTimes,
    LossAtWindow,
    Merging,
    OwnTcps,
    OwnTraffic,
    Pacing,
    PolicySettings,
    Schedulers,
    ShrinkingWindows,
    Tags,
    TcpOptions,
}

/// A list of models.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    Allocator,
    Congestion,
    Discard,
    Policy,
    Scheduler,
    Tcp,
    Traffic,
}

const LISTS: usize = List::Traffic as usize + 1;

/// A choice from a list of models. Shrinking leads to the first model.
pub(super) type Pick = u8;

/// A random subset of the features and of the models of each list, with one bit for each feature and model. Shrinking
/// leads to the empty set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Swarm {
    features: u32,
    models: [u32; LISTS],
}

pub(super) fn swarm() -> BoxedStrategy<Swarm> {
    let models = prop::array::uniform7(bits::u32::ANY);
    (bits::u32::ANY, models).prop_map(|(features, models)| Swarm { features, models }).boxed()
}

impl Swarm {
    pub(super) fn has(self, feature: Feature) -> bool {
        self.features & 1 << feature as u32 != 0
    }

    /// Returns one of the models of a list that this network may use. If the network may use no model of the list,
    /// returns the first model.
    pub(super) fn one_of(self, list: List, names: &'static [&'static str], pick: Pick) -> &'static str {
        let may_use = |number: usize| self.models[list as usize] >> number & 1 == 1;
        let names_in_use: Vec<_> = names.iter().enumerate().filter(|&(number, _)| may_use(number)).collect();
        names_in_use.get(usize::from(pick) % names_in_use.len().max(1)).map_or(names[0], |(_, name)| name)
    }
}
