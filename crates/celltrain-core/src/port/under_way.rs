//! The state of a VC's current frame at a port, packed into one byte.
//!
//! Cells of many VCs arrive in turn, and a processor cannot predict which of them start a frame. So the state is one
//! byte, which is read once and evaluated without branches.

/// Decision about a frame's next cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The cells of this frame are admitted while there is room.
    Pass,
    /// The cells are refused because the policy refused the frame.
    RefuseFrame,
    /// The cells are refused because the shared memory refused the frame.
    RefusedByMemory,
    /// The cells are refused because the frame has lost a cell.
    RefuseRest { keep_last_cell: bool },
}

/// State of a VC's current frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnderWay(u8);

/// The treatment of an arriving cell. It is 0 if the cell is admitted, provided there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived(u8);

impl Arrived {
    /// Returns whether the cell is admitted if there is room. Otherwise, the cell starts a frame, is refused with its
    /// frame or the rest of its frame, or needs a separate decision.
    #[inline]
    pub(crate) fn passes(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the cell starts a frame that needs a decision of the policy.
    #[inline]
    pub(crate) fn starts(self) -> bool {
        self.0 & AT_START != 0
    }
}

/// Bits of the mode; 0 for [`Mode::Pass`].
const MODE: u8 = 0b0_0111;
const REFUSE_FRAME: u8 = 1;
const REFUSE_REST: u8 = 2;
const REFUSE_REST_BUT_LAST_CELL: u8 = 3;
const REFUSED_BY_MEMORY: u8 = 4;
/// The next cell starts a frame. Frames have no start marker: a frame starts after the last cell of the previous one.
const AT_START: u8 = 0b0_1000;
/// The frame has been counted as damaged.
const CUT: u8 = 0b1_0000;

impl UnderWay {
    /// No frame has arrived yet.
    pub(super) const NONE: Self = Self(AT_START);

    #[inline]
    pub(super) fn mode(self) -> Mode {
        match self.0 & MODE {
            0 => Mode::Pass,
            REFUSE_FRAME => Mode::RefuseFrame,
            REFUSED_BY_MEMORY => Mode::RefusedByMemory,
            mode => Mode::RefuseRest { keep_last_cell: mode == REFUSE_REST_BUT_LAST_CELL },
        }
    }

    #[inline]
    pub(super) fn set_mode(&mut self, mode: Mode) {
        let mode = match mode {
            Mode::Pass => 0,
            Mode::RefuseFrame => REFUSE_FRAME,
            Mode::RefusedByMemory => REFUSED_BY_MEMORY,
            Mode::RefuseRest { keep_last_cell: false } => REFUSE_REST,
            Mode::RefuseRest { keep_last_cell: true } => REFUSE_REST_BUT_LAST_CELL,
        };
        self.0 = self.0 & !MODE | mode;
    }

    #[inline]
    pub(super) fn passes(self) -> bool {
        self.0 & MODE == 0
    }

    /// Returns whether the next cell belongs to an admitted frame that has begun and has lost no cell.
    #[inline]
    pub(super) fn passes_inside(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(super) fn is_at_start(self) -> bool {
        self.0 & AT_START != 0
    }

    #[inline]
    pub(super) fn set_at_start(&mut self, is_at_start: bool) {
        self.0 = self.0 & !AT_START | (u8::from(is_at_start) * AT_START);
    }

    /// Marks the frame as damaged. Returns whether the mark is new.
    #[inline]
    pub(super) fn cut(&mut self) -> bool {
        let was_cut = self.0 & CUT != 0;
        self.0 |= CUT;
        !was_cut
    }

    #[inline]
    pub(super) fn start(&mut self, mode: Mode) {
        self.set_mode(mode);
        self.0 &= !CUT;
    }

    /// Records an arriving cell. If the cell starts a frame and `admits` is true, that frame is admitted without
    /// calling the policy.
    #[inline]
    pub(super) fn on_cell(&mut self, is_last: bool, admits: bool) -> Arrived {
        let admits = u8::from(admits) * AT_START;
        let asks = self.0 & AT_START & !admits;
        // An admitted frame overwrites the old state.
        let known = if self.0 & admits == 0 { self.0 & (MODE | CUT) } else { 0 };
        self.0 = known | (u8::from(is_last) * AT_START);
        Arrived(known & MODE | asks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [Mode; 5] = [
        Mode::Pass,
        Mode::RefuseFrame,
        Mode::RefusedByMemory,
        Mode::RefuseRest { keep_last_cell: false },
        Mode::RefuseRest { keep_last_cell: true },
    ];

    /// Model of [`UnderWay`] with a separate field for each value.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Plain {
        mode: Mode,
        at_start: bool,
        is_cut: bool,
    }

    fn all() -> impl Iterator<Item = (UnderWay, Plain)> {
        let plain = |(mode, i): (Mode, u8)| Plain { mode, at_start: i & 1 != 0, is_cut: i & 2 != 0 };
        MODES.into_iter().flat_map(move |mode| (0..4).map(move |i| plain((mode, i)))).map(|plain| {
            let mut packed = UnderWay::NONE;
            packed.set_mode(plain.mode);
            packed.set_at_start(plain.at_start);
            if plain.is_cut {
                assert!(packed.cut());
            }
            (packed, plain)
        })
    }

    fn plain(packed: UnderWay) -> Plain {
        let mut copy = packed;
        Plain { mode: packed.mode(), at_start: packed.is_at_start(), is_cut: !copy.cut() }
    }

    #[test]
    fn storing_the_state_of_a_frame_leaves_the_state_of_all_other_frames_unchanged() {
        assert_eq!(all().count(), 20);
        for (packed, same) in all() {
            assert_eq!(plain(packed), same);
            assert_eq!(packed.passes(), same.mode == Mode::Pass);
            assert_eq!(packed.passes_inside(), same.mode == Mode::Pass && !same.at_start && !same.is_cut);
            for mode in MODES {
                let (mut set, mut started) = (packed, packed);
                set.set_mode(mode);
                assert_eq!(plain(set), Plain { mode, ..same });
                started.start(mode);
                assert_eq!(plain(started), Plain { mode, is_cut: false, ..same });
            }
        }
    }

    #[test]
    fn the_cell_after_a_last_cell_starts_a_frame_even_without_a_policy_call() {
        for (packed, same) in all() {
            for (is_last, admits) in [(false, false), (false, true), (true, false), (true, true)] {
                let mut after = packed;
                let arrived = after.on_cell(is_last, admits);
                assert_eq!(arrived.starts(), same.at_start && !admits, "{same:?}");
                assert_eq!(arrived.passes(), !arrived.starts() && after.passes(), "{same:?}");
                let expected =
                    if same.at_start && admits { Plain { mode: Mode::Pass, is_cut: false, ..same } } else { same };
                assert_eq!(plain(after), Plain { at_start: is_last, ..expected }, "{same:?}, {is_last}, {admits}");
            }
        }
    }
}
