//! Where frames leave hosts: by VC, the host's own port and what its cells reach first.

use typed_index_collections::TiVec;

use super::contended_port::ContendedPort;
use super::index;
use super::outlet::Hop;
use super::plan::Role;
use super::ports::Making;
use super::stream::Streams;
use crate::contracts::Edge;
use crate::index::{Label, VcIndex};
use crate::network::Vc;
use crate::sizes::size;
use crate::stop::{Interrupted, Stop, all};
use crate::units::Span;

/// The way of a VC's frames out of their host. All VCs' are in one list, because frames of many VCs leave one after the
/// other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    /// Number of the host's own port.
    pub(super) nic: u32,
    /// One cell's transmission there.
    pub(super) cell_time: Span,
    /// What the cells reach first.
    pub(super) hop: Hop,
    /// Whether they are policed there.
    pub(super) is_policed: bool,
}

/// Memory of a VC's exit.
pub(super) const BYTES_PER_EXIT: u64 = size::<Option<Exit>>();

impl Exit {
    /// The stream that whole frames join; `None` where they go the slow way.
    #[inline]
    pub(super) fn stream(&self) -> Option<u32> {
        (self.hop.to < Hop::AT_ONCE && !self.is_policed).then_some(self.hop.to)
    }
}

impl Making<'_> {
    /// By VC; none where the host's own port shapes it.
    ///
    /// # Errors
    /// When it is told to stop.
    pub(super) fn exits(
        &self,
        (ports, streams): (&[ContendedPort], &Streams),
        edge: &Edge,
        stop: &Stop<'_>,
    ) -> Result<TiVec<VcIndex, Option<Exit>>, Interrupted> {
        let &Self { network, routing, times, plan, .. } = self;
        let first_streams: Vec<_> = ports.iter().map(|port| port.stream(0)).collect();
        let exit = |((vc, of_vc), &label): ((VcIndex, &Vc), &Label)| {
            stop.step()?;
            let link = of_vc.path[0];
            Ok(match plan.roles[link] {
                Role::Host(nic) => Some(Exit {
                    nic: index(nic),
                    cell_time: times[link].cell_time,
                    hop: self.hop((&first_streams, streams), link, label, &plan.stages[link][label]),
                    is_policed: edge.polices_at(vc, link),
                }),
                Role::Shaped(_) => None,
                Role::Contended(_) | Role::Transparent => unreachable!("a VC starts at a host"),
            })
        };
        Ok(all(network.vcs.iter_enumerated().zip(&routing.first_label).map(exit))?.into())
    }
}
