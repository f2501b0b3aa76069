//! A formula policy during a run: its inputs, its decisions, and the updates of its state.

use celltrain_formula::Registers;
use celltrain_formula::rules::update;

use super::Table;
use super::names::{FIRST_OWN, N, NOW, SOJOURN, TAGGED, X, Y};
use super::port_info::PortInfo;
use super::rules::Rules;
use crate::error::Fault;
use crate::index::Label;
use crate::policy::{AtHead, CellFollower, Decision, Head, HeadPolicy, View};
use crate::rng::Stream;
use crate::units::{Clock, Span, Time};

/// The compiled rules and their state.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) rules: Rules,
    units_per_second: f64,
    /// Updates in time; `None` if there are none.
    periodic: Option<Periodic>,
    /// Number of waiting cells, if the policy follows cells.
    waiting: u32,
    /// Number of cells between `on_cells` updates, and the number of cells until the next update.
    every: u32,
    left: u32,
    pub(super) replaced: u64,
}

/// The times of `on_period` updates.
#[derive(Clone, Copy, Debug)]
struct Periodic {
    period: Span,
    next: Time,
    /// True if the updates depend on the time.
    reads_now: bool,
}

impl Periodic {
    fn of(config: &Table, rules: &Rules, clock: Clock) -> Option<Self> {
        let period = Span(clock.span(config.period?).0.max(1));
        let reads_now = rules.on_period.iter().any(|(_, program)| program.reads(NOW));
        (!rules.on_period.is_empty()).then_some(Self { period, next: Time(period.0), reads_now })
    }
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "no overflow: these are indices of names and counts of waiting cells"
)]
impl Running {
    /// Creates the policy of a port crossed by VCs with these names.
    ///
    /// # Errors
    /// Returns all faults in the formulas.
    pub(super) fn new(config: &Table, port_info: &PortInfo<'_>, vcs: &[String]) -> Result<Self, Vec<Fault>> {
        let vcs: Vec<&str> = vcs.iter().map(String::as_str).collect();
        Ok(Self::with(Rules::of(config, port_info, Some(&vcs))?, config, port_info))
    }

    /// Creates a policy that admits every frame, for unchecked formulas and for ports without VCs.
    pub(super) fn admits_all(config: &Table, port_info: &PortInfo<'_>) -> Self {
        Self::with(Rules::admit_all(), config, port_info)
    }

    fn with(rules: Rules, config: &Table, port_info: &PortInfo<'_>) -> Self {
        let every = config.every.unwrap_or(1).max(1);
        let replaced = rules.replaced;
        Self {
            periodic: Periodic::of(config, &rules, port_info.clock),
            rules,
            units_per_second: port_info.clock.units_per_second as f64,
            waiting: 0,
            every,
            left: every,
            replaced,
        }
    }

    /// Makes the periodic updates that are due at `now` or were due before.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        if self.periodic.is_some_and(|periodic| periodic.next <= now) {
            self.make_updates(now);
        }
    }

    #[inline(never)]
    fn make_updates(&mut self, now: Time) {
        let Self { rules, periodic: Some(periodic), replaced, .. } = self else { return };
        rules.registers[usize::from(X)] = f64::from(self.waiting);
        while periodic.next <= now {
            if periodic.reads_now {
                rules.registers[usize::from(NOW)] = periodic.next.0 as f64 / self.units_per_second;
            }
            let before = (*rules.registers, *replaced);
            update(&rules.on_period, &mut rules.registers, &mut || 0.0, replaced);
            periodic.next += periodic.period;
            let changes_nothing = !periodic.reads_now && before == (*rules.registers, *replaced);
            if periodic.next <= now && changes_nothing {
                // After an update that changes no value, further updates change no value either.
                let missed = (now - periodic.next).0 / periodic.period.0 + 1;
                periodic.next += periodic.period * missed;
            }
        }
    }

    /// Decides whether a frame may enter.
    pub(super) fn admits(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
        self.catch_up(buffer.now);
        let Self { rules, units_per_second, replaced, .. } = self;
        let Rules { admit, on_frame, on_admission, on_refusal, registers, by_vc, per_vc, .. } = rules;
        registers[usize::from(X)] = f64::from(buffer.occupancy);
        registers[usize::from(N)] = f64::from(buffer.active_vcs);
        registers[usize::from(Y)] = f64::from(buffer.per_vc[vc]);
        registers[usize::from(TAGGED)] = f64::from(u8::from(buffer.tagged));
        registers[usize::from(NOW)] = buffer.now.0 as f64 / *units_per_second;
        let own = usize::from(FIRST_OWN)..usize::from(FIRST_OWN) + *per_vc;
        let of_vc = vc.number() as usize * *per_vc;
        let of_vc = &mut by_vc[of_vc..of_vc + *per_vc];
        // Most policies store nothing per VC, and even copying an empty slice costs a call.
        if !of_vc.is_empty() {
            registers[own.clone()].copy_from_slice(of_vc);
        }
        let draw = &mut || rng.unit();
        update(on_frame, registers, draw, replaced);
        let admitted = admit.run(registers, draw, replaced) != 0.0;
        update(if admitted { on_admission } else { on_refusal }, registers, draw, replaced);
        if !of_vc.is_empty() {
            of_vc.copy_from_slice(&registers[own]);
        }
        admitted
    }

    /// Returns the registers after the latest frame, with the constants and state of VC `vc`.
    pub(super) fn registers_of(&self, vc: Label) -> Box<Registers> {
        let Rules { registers, by_vc, per_vc, .. } = &self.rules;
        let mut registers = registers.clone();
        let from = vc.number() as usize * per_vc;
        registers[usize::from(FIRST_OWN)..][..*per_vc].copy_from_slice(&by_vc[from..from + per_vc]);
        registers
    }

    /// Returns the largest X up to which every frame is admitted without a random number, a state update or a count:
    /// `u32::MAX`, 0 or `None`.
    pub(super) fn admits_up_to(&self) -> Option<u32> {
        if !self.admits_when_empty() {
            return None;
        }
        Some(if self.rules.admits_all() { u32::MAX } else { 0 })
    }

    fn admits_when_empty(&self) -> bool {
        let Rules { admit, is_the_same_everywhere, .. } = &self.rules;
        if !is_the_same_everywhere || self.rules.updates().next().is_some() || admit.draws() || admit.reads(NOW) {
            return false;
        }
        [0.0, 1.0].into_iter().all(|tagged| {
            let mut registers = self.rules.registers.clone();
            registers[usize::from(TAGGED)] = tagged;
            let mut replaced = 0;
            admit.run(&mut registers, &mut || 0.0, &mut replaced) != 0.0 && replaced == 0
        })
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are counts of waiting cells")]
impl Running {
    /// Counts a cell that has entered, and makes the updates of every n-th cell.
    fn count_entry(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.every;
            let rules = &mut self.rules;
            rules.registers[usize::from(X)] = f64::from(self.waiting);
            update(&rules.on_cells, &mut rules.registers, &mut || 0.0, &mut self.replaced);
        }
    }

    fn count_departure(&mut self) {
        let rules = &mut self.rules;
        rules.registers[usize::from(X)] = f64::from(self.waiting);
        update(&rules.on_departure, &mut rules.registers, &mut || 0.0, &mut self.replaced);
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are counts of waiting cells")]
impl CellFollower for Running {
    fn on_enter(&mut self, _vc: Label, cells: u32) {
        for _ in 0..cells {
            self.waiting += 1;
            self.count_entry();
        }
    }

    fn on_leave(&mut self, cells: u32) {
        for _ in 0..cells {
            self.waiting -= 1;
            self.count_departure();
        }
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are indices of names")]
impl HeadPolicy for Running {
    fn on_head(&mut self, head: &Head, rng: &mut Stream) -> AtHead {
        self.catch_up(head.now);
        let Self { rules, units_per_second, replaced, .. } = self;
        let Rules { drop_head, on_head, on_drop, on_send, registers, by_vc, per_vc, .. } = rules;
        registers[usize::from(X)] = f64::from(head.behind);
        registers[usize::from(NOW)] = head.now.0 as f64 / *units_per_second;
        registers[usize::from(SOJOURN)] = head.waited.0 as f64 / *units_per_second;
        let own = usize::from(FIRST_OWN)..usize::from(FIRST_OWN) + *per_vc;
        let of_vc = head.vc.number() as usize * *per_vc;
        let of_vc = &mut by_vc[of_vc..of_vc + *per_vc];
        registers[own.clone()].copy_from_slice(of_vc);
        let draw = &mut || rng.unit();
        update(on_head, registers, draw, replaced);
        let drops = drop_head.as_ref().is_some_and(|condition| condition.run(registers, draw, replaced) != 0.0);
        update(if drops { on_drop } else { on_send }, registers, draw, replaced);
        of_vc.copy_from_slice(&registers[own]);
        if drops { AtHead::Drop } else { AtHead::Send }
    }

    fn follows_cells(&self) -> bool {
        let Rules { on_departure, on_cells, on_period, .. } = &self.rules;
        [on_departure, on_cells, on_period].into_iter().any(|updates| !updates.is_empty())
    }

    fn on_enter(&mut self, waiting: u32, now: Time) {
        self.catch_up(now);
        self.waiting = waiting;
        self.count_entry();
    }

    fn on_departure(&mut self, _vc: Label, left: u32, now: Time) {
        self.catch_up(now);
        self.waiting = left;
        self.count_departure();
    }

    fn explain_head(&self, head: &Head) -> Decision {
        Decision {
            rule: "the condition drop_head holds",
            waited: Some(head.waited.0 as f64 / self.units_per_second),
            ..Decision::default()
        }
    }
}
