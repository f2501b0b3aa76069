//! Gives ports small buffers with the simplest policies, so that ports lose individual cells or push out waiting cells.

use std::collections::BTreeSet;

use celltrain_core::aal5::Framing;
use celltrain_core::index::LinkIndex;
use celltrain_core::network::{Network, NodeKind};
use celltrain_core::policy::{drop_from_front, tail_drop};
use celltrain_core::rng::Stream;
use celltrain_core::scheduler::SchedulerConfig;

/// Buffer sizes in cells. A packet of 512 bytes has twelve cells.
const BUFFERS: [u32; 6] = [1, 2, 13, 30, 88, 300];

/// Makes a network use AAL5, and gives three quarters of the switch ports a small buffer with tail drop or drop from
/// front. Ports at which VCs merge keep their settings.
pub(crate) fn add(network: &mut Network, rng: &mut Stream) {
    // Individual cells are lost only with AAL5. Drop from front needs AAL5, because it keeps the last cells of frames.
    network.aal5.framing = Framing::Aal5;
    let merging: BTreeSet<LinkIndex> = network.merges.iter().map(|merge| merge.at).collect();
    for (index, link) in network.links.iter_mut_enumerated() {
        if network.nodes[link.from].kind != NodeKind::Switch || merging.contains(&index) || rng.below(4) == 0 {
            continue;
        }
        link.buffer = Some(BUFFERS[rng.below(6) as usize]);
        link.policy =
            if rng.below(2) == 0 { drop_from_front::Config::default().into() } else { tail_drop::Config {}.into() };
        link.scheduler = SchedulerConfig::default();
    }
}
