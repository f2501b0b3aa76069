//! The virtual channels (VCs) of a layout, and the links at which VCs merge.

use std::collections::BTreeMap;

use typed_index_collections::TiVec;

use celltrain_core::index::{FlowIndex, LinkIndex, MergeIndex, VcIndex};
use celltrain_core::network::{Merge, Vc};

use crate::topology::Layout;
use crate::topology::links::meeting;

/// The virtual channels of a layout.
#[derive(Default)]
pub struct Channels {
    /// All VCs of the layout.
    pub vcs: TiVec<VcIndex, Vc>,
    /// Points at which several VCs merge into one.
    pub merges: TiVec<MergeIndex, Merge>,
    /// For each flow, its data VC and its acknowledgement VC.
    pub of_flow: TiVec<FlowIndex, [VcIndex; 2]>,
}

/// Creates the VCs for the layout of a valid topology: two VCs for each flow that does not share its VC.
///
/// A VC shared by flows from the same host has the name that the layout gives, with the suffix `-acks` in the reverse
/// direction. If flows from several hosts merge, each branch before the merge is a VC with the name of the branch's
/// first flow, and has a separate VC in the reverse direction.
pub fn channels(layout: &Layout) -> Channels {
    let mut channels = Channels::default();
    let mut branches: BTreeMap<(&str, &[LinkIndex]), [VcIndex; 2]> = BTreeMap::new();
    let mut by_name: BTreeMap<&str, Vec<[VcIndex; 2]>> = BTreeMap::new();
    for route in &layout.flows {
        let name = route.vc.as_deref().unwrap_or(&route.name);
        let both = *branches.entry((name, &route.data)).or_insert_with(|| {
            let vc =
                |name: &str, path: &[LinkIndex]| Vc { name: name.to_string(), path: path.to_vec(), ..Vc::default() };
            let both = [vc(&route.name, &route.data), vc(&format!("{}-acks", route.name), &route.acks)];
            let both = both.map(|vc| channels.vcs.push_and_get_key(vc));
            by_name.entry(name).or_default().push(both);
            both
        });
        channels.of_flow.push(both);
    }
    for (name, branches) in by_name {
        if let [[data_vc, ack_vc]] = branches[..] {
            channels.vcs[data_vc].name = name.to_string();
            channels.vcs[ack_vc].name = format!("{name}-acks");
            continue;
        }
        let paths: Vec<&[LinkIndex]> = branches.iter().map(|&[vc, _]| channels.vcs[vc].path.as_slice()).collect();
        let at = meeting(&paths).expect("the check refuses branches that never meet");
        let merge = channels.merges.push_and_get_key(Merge { name: name.to_string(), at });
        for [vc, _] in branches {
            channels.vcs[vc].merge = Some(merge);
        }
    }
    channels
}
