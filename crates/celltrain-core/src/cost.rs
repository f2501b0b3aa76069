//! What a buffer policy or a scheduler costs a switch: what it has to store, and what it has to do for a cell and for a
//! frame.
//!
//! The figures are those of a plain implementation in hardware, in words of memory and in operations on them, as a
//! paper would count them; what this program itself does to the same effect is another matter. What all ports have, the
//! cells' memory and a first-in first-out queue in it as a circular buffer, is counted with `fifo`.

use serde::Serialize;

/// A count of cells, a threshold or a place in the buffer: up to 65,535 of them.
pub const CELLS: u32 = 16;
/// A count of VCs, or one's number at its port: up to 65,535 of them.
pub const VCS: u32 = 16;
/// A constant between 0 and 1, or some such: a weight, a share, a factor.
pub const FACTOR: u32 = 16;
/// A scheduler's clock or tag: 2^32 cell times are three hours at 155.52 Mb/s, and only differences count.
pub const TAG: u32 = 32;

/// What a policy or a scheduler costs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cost {
    /// Kept for each VC.
    pub per_vc: Vec<Kept>,
    /// Kept for each port.
    pub per_port: Vec<Kept>,
    /// Kept for each place of the buffer.
    pub per_place: Vec<Kept>,
    /// Done for each cell that is stored and sent: as it comes and as it goes.
    pub per_cell: Vec<Done>,
    /// Done once for each frame beside, as its first cell comes.
    pub per_frame: Vec<Done>,
}

/// Something that is stored.
#[derive(Clone, Debug, Serialize)]
pub struct Kept {
    /// What it is, in the symbols of its page.
    pub what: &'static str,
    /// How wide it is.
    pub bits: u32,
}

/// Something that is done.
#[derive(Clone, Debug, Serialize)]
pub struct Done {
    /// What it is, in the symbols of its page.
    pub what: &'static str,
    /// How much that is.
    #[serde(flatten)]
    pub work: Work,
}

/// Operations on words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Words read.
    pub reads: u32,
    /// Words written.
    pub writes: u32,
    /// Additions, subtractions and comparisons.
    pub additions: u32,
    /// Multiplications; a division by what seldom changes is one.
    pub multiplications: u32,
    /// Random numbers drawn.
    pub draws: u32,
}

impl Work {
    /// None.
    pub const NONE: Work = Work { reads: 0, writes: 0, additions: 0, multiplications: 0, draws: 0 };

    /// All of it.
    pub fn operations(&self) -> u32 {
        self.reads + self.writes + self.additions + self.multiplications + self.draws
    }
}

impl Cost {
    /// What tells whether there is room: X, which every port counts, against K.
    pub fn of_room() -> Self {
        Self::default().per_port("X", CELLS).per_port("K", CELLS).per_cell(
            "X against K; X up as a cell comes and down as one goes",
            Work { reads: 3, writes: 2, additions: 3, ..Work::NONE },
        )
    }

    /// That, and what a policy needs that refuses frames whole or from a lost cell on: three bits for each VC say
    /// whether the next cell starts a frame, and whether the one under way is passed, refused whole, or refused from
    /// here on.
    pub fn whole_frames() -> Self {
        Self::of_room()
            .per_vc("the frame under way", 3)
            .per_cell("read and write what is under way", Work { reads: 1, writes: 1, ..Work::NONE })
    }

    /// The cells of each VC are counted, and the VCs that have some.
    #[must_use]
    pub fn counts_vcs(self) -> Self {
        self.counts_cells_by_vc().per_port("N_a", VCS).per_cell(
            "whether Y_j was or becomes 0, and N_a then",
            Work { reads: 2, writes: 2, additions: 4, ..Work::NONE },
        )
    }

    /// The cells of each VC are counted: a VC's number goes with its cells, and says on departure whose count it is.
    #[must_use]
    pub fn counts_cells_by_vc(self) -> Self {
        self.per_vc("Y_j", CELLS).per_cell(
            "Y_j up as a cell comes and down as one goes",
            Work { reads: 2, writes: 2, additions: 2, ..Work::NONE },
        )
    }

    /// A counter for each VC and a ring of those with virtual cells: a counter goes up as a cell of its VC comes, and
    /// that of the next in the ring goes down as any cell goes. Nobody has to know whose cell goes.
    #[must_use]
    pub fn virtual_ring(self) -> Self {
        self.per_vc("M_j", CELLS)
            .per_cell(
                "M_j up as a cell comes; M of the first in the ring down as one goes",
                Work { reads: 2, writes: 2, additions: 2, ..Work::NONE },
            )
            .ring()
            .per_port("N_v", VCS)
            .per_cell("N_v up and down", Work { reads: 2, writes: 2, additions: 2, ..Work::NONE })
    }

    /// A ring of VCs as a circular list: the first is the one behind the last. At most one joins with a cell, and one
    /// leaves.
    #[must_use]
    pub fn ring(self) -> Self {
        self.per_vc("the next in the ring", VCS)
            .per_port("the last of the ring", VCS)
            .per_cell("join, as a cell comes where none was", Work { reads: 2, writes: 3, additions: 1, ..Work::NONE })
            .per_cell(
                "the ring goes on, or one leaves it, as a cell goes",
                Work { reads: 3, writes: 1, additions: 1, ..Work::NONE },
            )
    }

    /// A queue for each VC in a memory that all share.
    #[must_use]
    pub fn linked_queues(self) -> Self {
        self.per_vc("first and last of the queue", 2 * CELLS).links_places()
    }

    /// The places of the buffer are in linked lists, of the cells of a queue and of the free places.
    #[must_use]
    pub fn links_places(self) -> Self {
        self.per_place("the next place", CELLS)
            .per_port("the first free place", CELLS)
            .per_cell(
                "a free place becomes the last of a queue, as a cell comes",
                Work { reads: 3, writes: 3, additions: 1, ..Work::NONE },
            )
            .per_cell(
                "the first of a queue becomes a free place, as a cell goes",
                Work { reads: 3, writes: 3, additions: 1, ..Work::NONE },
            )
    }

    /// When each VC's next cell is due, and who is due first: a tournament of as many times as VCs. Who is due may
    /// stand anywhere in the ring, which is linked both ways.
    #[must_use]
    pub fn minimum_shares(self) -> Self {
        self.per_vc("1 / m_j", TAG)
            .per_vc("when the next is due, and a node of the tournament", 2 * TAG + VCS)
            .per_vc("the one before in the ring", VCS)
            .per_port("the clock", TAG)
            .per_cell(
                "the ones before in the ring, as one joins it and as one leaves its middle",
                Work { writes: 4, ..Work::NONE },
            )
            .per_cell(
                "when it is due, as a cell comes where none was",
                Work { reads: 2, writes: 1, additions: 1, ..Work::NONE },
            )
            .per_cell(
                "who is due, and when again, as a cell goes",
                Work { reads: 3, writes: 2, additions: 3, ..Work::NONE },
            )
            .tournament()
    }

    /// VCs in a tournament of 1,024 by their times. One has a first time as a cell comes where none was, and one
    /// another as a cell goes: of each of 10 matches one side is known then, the other is read, and the winner is
    /// written.
    #[must_use]
    pub fn tournament(self) -> Self {
        self.per_cell(
            "a match for each of 10 levels (1,024 VCs), as a cell comes where none was and again as one goes",
            Work { reads: 20, writes: 20, additions: 20, ..Work::NONE },
        )
    }

    /// Something kept for each VC.
    #[must_use]
    pub fn per_vc(mut self, what: &'static str, bits: u32) -> Self {
        self.per_vc.push(Kept { what, bits });
        self
    }

    /// Something kept for each port.
    #[must_use]
    pub fn per_port(mut self, what: &'static str, bits: u32) -> Self {
        self.per_port.push(Kept { what, bits });
        self
    }

    /// Something kept for each place of the buffer.
    #[must_use]
    pub fn per_place(mut self, what: &'static str, bits: u32) -> Self {
        self.per_place.push(Kept { what, bits });
        self
    }

    /// Something done for each cell.
    #[must_use]
    pub fn per_cell(mut self, what: &'static str, work: Work) -> Self {
        self.per_cell.push(Done { what, work });
        self
    }

    /// Something done for each frame.
    #[must_use]
    pub fn per_frame(mut self, what: &'static str, work: Work) -> Self {
        self.per_frame.push(Done { what, work });
        self
    }

    /// What it comes to.
    pub fn sums(&self) -> Sums {
        let bits = |kept: &[Kept]| kept.iter().map(|kept| kept.bits).sum();
        let operations = |done: &[Done]| done.iter().map(|done| done.work.operations()).sum();
        Sums {
            bits_per_vc: bits(&self.per_vc),
            bits_per_port: bits(&self.per_port),
            bits_per_place: bits(&self.per_place),
            operations_per_cell: operations(&self.per_cell),
            operations_per_frame: operations(&self.per_frame),
        }
    }
}

/// What a cost comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Bits kept for each VC.
    pub bits_per_vc: u32,
    /// Bits kept for each port.
    pub bits_per_port: u32,
    /// Bits kept for each place of the buffer.
    pub bits_per_place: u32,
    /// Operations for each cell.
    pub operations_per_cell: u32,
    /// Operations for each frame beside.
    pub operations_per_frame: u32,
}

#[cfg(test)]
mod tests;
