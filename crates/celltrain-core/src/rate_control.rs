//! Rate control in a network: its shaped ports, the loops of its ABR VCs, and the allocators of its switches. Both
//! engines use this one model. `docs/design/abr.md` gives the order of calls.

use std::ops::Range;

use typed_index_collections::{TiVec, ti_vec};

use crate::abr::allocator::{Allocator, PortKind, VcKind};
use crate::abr::{Destination, RmCell, Source, cells_per_second};
use crate::cancellation::{CancellationToken, Interrupted};
use crate::cell::{FrameNumber, Run};
use crate::edge_device::{EdgeBuffer, EdgeConfig};
use crate::index::{Label, LinkIndex, NodeIndex, VcIndex};
use crate::max_min;
use crate::network::{Network, Routing, Vc};
use crate::scheduler::Class;
use crate::shaped_port::ShapedPort;
use crate::units::{Clock, Span, Time};

/// A VC at a port: the link, and the VC's label on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The link.
    pub link: LinkIndex,
    /// The VC's label on the link.
    pub label: Label,
}

/// The shaped ports, control loops and allocators of a network.
#[derive(Default)]
pub struct RateControl {
    ports: TiVec<LinkIndex, Option<Box<ShapedPort>>>,
    allocators: TiVec<LinkIndex, Option<Box<dyn Allocator>>>,
    /// The port and label at which each VC is shaped; `None` if the VC is not shaped.
    places: TiVec<VcIndex, Option<Place>>,
    loops: TiVec<VcIndex, Option<Loop>>,
    /// For each link and label of a VC: the port whose allocator writes into the VC's backward RM cells at the end of
    /// the link. Data of the other direction leaves the switch through that port. Empty if the network has no such
    /// port.
    passes: TiVec<LinkIndex, TiVec<Label, Option<Place>>>,
}

/// The control loop of an ABR VC.
struct Loop {
    /// The port and label at which the VC is shaped.
    home: Place,
    /// The link at whose end the VC's RM cells leave the loop.
    end: LinkIndex,
    /// The VC in the other direction.
    partner: VcIndex,
    destination: Destination,
    /// Number of RM cells that have reached the end of the loop.
    rms_ended: u64,
}

impl Loop {
    /// Creates the loop of a VC that is shaped at `home`, if the VC is an ABR VC. `part` is the part of its path on which
    /// its cells are ATM cells.
    fn new(vc: &Vc, part: &Range<usize>, home: Option<Place>) -> Option<Self> {
        vc.abr.as_ref()?;
        let home = home.expect("every ABR VC leaves its source through a shaped port");
        let partner = vc.partner.expect("an ABR VC has a VC for the opposite direction");
        let end = vc.path[part.end - 1];
        Some(Self { home, end, partner, destination: Destination::new(), rms_ended: 0 })
    }
}

impl RateControl {
    /// Creates the shaped ports, loops and allocators of a network, before the first cell is sent.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the work is cancelled.
    pub fn new(
        network: &Network,
        routing: &Routing,
        clock: Clock,
        token: &CancellationToken<'_>,
    ) -> Result<Self, Interrupted> {
        let mut shaped = ti_vec![false; network.links.len()];
        let parts: Vec<_> = network.vcs.iter().map(|vc| network.atm_part(vc)).collect();
        for (vc, part) in network.vcs.iter().zip(&parts) {
            shaped[vc.path[part.start]] |= part.start > 0 || vc.abr.is_some();
        }
        let place = |((number, vc), part): ((VcIndex, &Vc), &Range<usize>)| {
            let link = vc.path[part.start];
            let label =
                || routing.labels(network, number).nth(part.start).expect("every VC has a label on each of its links");
            shaped[link].then(|| Place { link, label: label() })
        };
        let places: TiVec<VcIndex, _> = network.vcs.iter_enumerated().zip(&parts).map(place).collect();
        let loops = network.vcs.iter().zip(&parts).zip(&places).map(|((vc, part), &place)| Loop::new(vc, part, place));
        let longest = longest_frames(network);
        let port = |link: LinkIndex| {
            if !shaped[link] {
                return None;
            }
            let rate = network.links[link].rate;
            let source = |&vc: &VcIndex| {
                let vc = &network.vcs[vc];
                let parameters = vc.abr.as_ref()?;
                Some(Source::new(parameters, rate, network.round_trip(vc), clock))
            };
            let without_limit = EdgeConfig::default();
            let config = network.links[link].edge.as_ref().unwrap_or(&without_limit);
            let longest: Vec<u32> = routing.vcs[link].iter().map(|&vc| longest[vc]).collect();
            let buffer = EdgeBuffer::new(config, longest.len(), &longest);
            let sources = routing.vcs[link].iter().map(source).collect();
            Some(Box::new(ShapedPort::new(clock.cell_time(rate), cells_per_second(rate), buffer, sources)))
        };
        let has_allocators = network.links.iter().any(|link| link.allocator.is_some());
        let ideal = if has_allocators { Some(max_min::ideal_rates(network, token)?) } else { None };
        let allocator = |link: LinkIndex| {
            let config = network.links[link].allocator.as_ref()?;
            let vc = |&vc: &VcIndex| VcKind {
                is_abr: network.vcs[vc].abr.is_some(),
                above_abr: network.vcs[vc].class < Class::Ubr,
                mcr: network.vcs[vc].abr.as_ref().map_or(0.0, |abr| cells_per_second(abr.mcr)),
                share: ideal.as_ref().expect("ports of ABR VCs have an allocator")[vc],
            };
            let vcs: Vec<VcKind> = routing.vcs[link].iter().map(vc).collect();
            let rate = cells_per_second(network.links[link].rate);
            let capacity = network.links[link].buffer.unwrap_or(u32::MAX);
            Some(config.build(&PortKind { clock, rate, capacity, vcs: &vcs }))
        };
        Ok(Self {
            ports: network.links.keys().map(port).collect(),
            allocators: network.links.keys().map(allocator).collect(),
            loops: loops.collect(),
            places,
            passes: passes(network, routing, &parts),
        })
    }

    /// Returns the port and label at which a VC is shaped; `None` if the VC is not shaped.
    pub fn place(&self, vc: VcIndex) -> Option<Place> {
        self.places[vc]
    }

    /// Returns the shaped port at the start of a link, if there is one.
    #[inline]
    pub fn port(&self, link: LinkIndex) -> Option<&ShapedPort> {
        self.ports[link].as_deref()
    }

    /// Returns the shaped port at the start of a link, for changes, if there is one.
    #[inline]
    pub fn port_mut(&mut self, link: LinkIndex) -> Option<&mut ShapedPort> {
        self.ports[link].as_deref_mut()
    }

    /// Returns the allocator of the port at the start of a link, if there is one.
    #[inline]
    pub fn allocator(&mut self, link: LinkIndex) -> Option<&mut Box<dyn Allocator>> {
        self.allocators[link].as_mut()
    }

    /// Returns the queue length above which the port at the start of a link marks cells, if it marks any.
    pub fn marks_above(&self, link: LinkIndex) -> Option<u32> {
        self.allocators[link].as_ref()?.marks_above()
    }

    /// Returns whether the control loop of a VC ends at the end of this link.
    #[inline]
    pub fn ends(&self, vc: VcIndex, link: LinkIndex) -> bool {
        self.loops[vc].as_ref().is_some_and(|of_vc| of_vc.end == link)
    }

    /// Records whether data cells of an ABR VC are marked at the end of its loop. Cells must be reported in order. They
    /// may be reported before they arrive, because only later RM cells read the mark.
    #[inline]
    pub fn on_data_end(&mut self, vc: VcIndex, marked: bool) {
        self.of_mut(vc).destination.on_data(marked);
    }

    /// Returns the content with which RM cell `number` of `vc` returns from the end of its loop; `None` if the cell was
    /// already on its way back. Calls must be in the order of the VC's cells.
    pub fn turn_around(&mut self, vc: VcIndex, number: FrameNumber) -> Option<RmCell> {
        let rm = self.rm_content(vc, number);
        (!rm.backward).then(|| self.of_mut(vc).destination.turn_around(&rm))
    }

    /// Returns the port and label at which an RM cell continues at the end of `vc`'s loop, where the other direction is
    /// shaped.
    #[inline]
    pub fn goes_to(&self, vc: VcIndex) -> Place {
        self.of(self.of(vc).partner).home
    }

    /// Returns whether the returning RM cell `number` on `vc` will leave the rate unchanged.
    pub fn keeps_rate(&mut self, vc: VcIndex, number: FrameNumber) -> bool {
        let rm = self.rm_content(vc, number);
        let Place { link, label } = self.goes_to(vc);
        self.shaped(link).keeps_rate(label, &rm)
    }

    /// Handles RM cell `number`, which reaches an end of `vc`'s control loop at `now`. At the destination, the cell
    /// joins the queue of the shaper for the other direction. Back at its source, it sets the source's rate.
    pub fn deliver(&mut self, vc: VcIndex, number: FrameNumber, turned: Option<RmCell>, now: Time) {
        let rm = self.rm_content(vc, number);
        let of_vc = self.of_mut(vc);
        of_vc.rms_ended += 1;
        let home = of_vc.home;
        self.shaped(home.link).forget_rms_before(home.label, number);
        let Place { link, label } = self.goes_to(vc);
        let port = self.shaped(link);
        match turned {
            Some(turned) => port.turn_around(label, turned),
            None => port.on_backward_rm(label, &rm, now),
        }
    }

    /// Returns the place of the allocator that writes into an RM cell arriving over a link with a label, if the cell
    /// goes backward.
    #[inline]
    pub fn allocator_at(&self, link: LinkIndex, label: Label) -> Option<Place> {
        self.passes.get(link)?[label]
    }

    /// Returns whether RM cell `number`, in flight on `vc`, goes backward.
    pub fn goes_backward(&mut self, vc: VcIndex, number: FrameNumber) -> bool {
        self.rm_content(vc, number).backward
    }

    /// Lets an allocator write into an RM cell on `vc` that passes the allocator's switch. The port at `place` carries
    /// the data of the loop, and has `queue` waiting cells.
    pub fn write(&mut self, vc: VcIndex, number: FrameNumber, place: Place, queue: u32, now: Time) {
        let home = self.of(vc).home;
        let port = self.ports[home.link].as_mut().expect("every ABR VC leaves its source through a shaped port");
        let allocator = self.allocators[place.link].as_mut().expect("the caller passes only ports with an allocator");
        allocator.on_backward_rm(place.label, now, queue, port.rm(home.label, number));
    }

    /// Reports cells of `vc` to the allocator of a link's port. The first cell arrives at `first`, the others `period`
    /// apart.
    #[inline]
    pub fn on_arrival(&mut self, link: LinkIndex, vc: VcIndex, run: Run, first: Time, period: Span) {
        let Some(allocator) = &mut self.allocators[link] else { return };
        let label = run.last.label();
        allocator.on_cells(label, first, period, run.cells);
        if run.last.is_rm() {
            let home = self.loops[vc].as_ref().expect("only ABR VCs have RM cells").home;
            let port = self.ports[home.link].as_mut().expect("every ABR VC leaves its source through a shaped port");
            let rm = *port.rm(home.label, run.last.frame);
            if !rm.backward {
                allocator.on_forward_rm(label, first, &rm);
            }
        }
    }

    /// Returns the content of RM cell `number`, in flight on `vc`.
    pub fn rm_content(&self, vc: VcIndex, number: FrameNumber) -> RmCell {
        let home = self.of(vc).home;
        self.port(home.link)
            .expect("every ABR VC leaves its source through a shaped port")
            .rm_content(home.label, number)
    }

    /// Starts recording the outcomes of packets at every shaped port.
    pub fn note_fates(&mut self) {
        self.ports.iter_mut().flatten().for_each(|port| port.note_fates());
    }

    /// Returns the number of RM cells that a VC has sent, and how many of them have reached the end of their loop.
    pub fn rm_cells(&self, vc: VcIndex) -> Option<[u64; 2]> {
        let Loop { home, rms_ended, .. } = self.loops[vc].as_ref()?;
        let port = self.port(home.link).expect("every ABR VC leaves its source through a shaped port");
        Some([port.rms_sent(home.label), *rms_ended])
    }

    /// Returns the port and label at which a VC is shaped, if its rate is controlled.
    pub fn home(&self, vc: VcIndex) -> Option<Place> {
        self.loops[vc].as_ref().map(|of_vc| of_vc.home)
    }

    #[inline]
    fn of(&self, vc: VcIndex) -> &Loop {
        self.loops[vc].as_ref().expect("only ABR VCs have RM cells")
    }

    #[inline]
    fn of_mut(&mut self, vc: VcIndex) -> &mut Loop {
        self.loops[vc].as_mut().expect("only ABR VCs have RM cells")
    }

    /// Returns the port at the start of this link, at which an ABR VC is shaped.
    #[inline]
    fn shaped(&mut self, link: LinkIndex) -> &mut ShapedPort {
        self.port_mut(link).expect("every ABR VC leaves its source through a shaped port")
    }
}

/// Computes `passes` of [`RateControl`]. `parts` are the ATM parts of the paths, by VC.
fn passes(
    network: &Network,
    routing: &Routing,
    parts: &[Range<usize>],
) -> TiVec<LinkIndex, TiVec<Label, Option<Place>>> {
    if network.vcs.iter().all(|vc| vc.abr.is_none()) {
        return TiVec::new();
    }
    let mut passes: TiVec<LinkIndex, TiVec<Label, _>> =
        routing.vcs.iter().map(|vcs| ti_vec![None; vcs.len()]).collect();
    // For each node, the link and label by which the other direction of the current VC leaves the node.
    let mut leaving: TiVec<NodeIndex, Option<Place>> = ti_vec![None; network.nodes.len()];
    for ((number, vc), part) in network.vcs.iter_enumerated().zip(parts) {
        let Some(partner) = vc.partner.filter(|_| vc.abr.is_some()) else { continue };
        let forward = &network.vcs[partner].path;
        for (&link, label) in forward.iter().zip(routing.labels(network, partner)) {
            let place = Place { link, label };
            leaving[network.links[link].from].get_or_insert(place);
        }
        let way = vc.path.iter().zip(routing.labels(network, number)).take(part.end - 1).skip(part.start);
        for (&link, label) in way {
            let place = leaving[network.links[link].to];
            if let Some(place) = place.filter(|place| network.links[place.link].allocator.is_some()) {
                passes[link][label] = Some(place);
            }
        }
        for &link in forward {
            leaving[network.links[link].from] = None;
        }
    }
    passes
}

/// Returns, by VC, the number of cells in the longest frames its flows and requests send.
fn longest_frames(network: &Network) -> TiVec<VcIndex, u32> {
    let mut longest = ti_vec![network.aal5.segment_cells(0); network.vcs.len()];
    for flow in &network.flows {
        let (_, cells) = flow.frame(&network.aal5);
        let of_data = &mut longest[flow.data_vc];
        *of_data = cells.max(*of_data);
    }
    for group in &network.requests.groups {
        let cells = network.aal5.segment_cells(group.tcp.options().mss.bytes);
        for &vc in group.pairs().flat_map(|pair| &network.requests.pairs[pair].vcs) {
            longest[vc] = cells.max(longest[vc]);
        }
    }
    longest
}
