//! A formula policy during a run: its inputs, its decisions, and the updates of its state.

use celltrain_formula::Registers;
use celltrain_formula::rules::update;

use super::Table;
use super::names::{FIRST_OWN, N, NOW, TAGGED, X, Y};
use super::port_info::PortInfo;
use super::rules::Rules;
use crate::error::Fault;
use crate::index::Label;
use crate::policy::{CellFollower, View};
use crate::rng::Stream;

/// The compiled rules and their state.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) rules: Rules,
    units_per_second: f64,
    /// Number of waiting cells, if the policy follows cells.
    waiting: u32,
    /// Number of cells between `on_cells` updates, and the number of cells until the next update.
    every: u32,
    left: u32,
    pub(super) replaced: u64,
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
            rules,
            units_per_second: port_info.clock.units_per_second as f64,
            waiting: 0,
            every,
            left: every,
            replaced,
        }
    }

    /// Decides whether a frame may enter.
    pub(super) fn admits(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
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
impl CellFollower for Running {
    fn on_enter(&mut self, _vc: Label, cells: u32) {
        for _ in 0..cells {
            self.waiting += 1;
            self.left -= 1;
            if self.left == 0 {
                self.left = self.every;
                let rules = &mut self.rules;
                rules.registers[usize::from(X)] = f64::from(self.waiting);
                update(&rules.on_cells, &mut rules.registers, &mut || 0.0, &mut self.replaced);
            }
        }
    }

    fn on_leave(&mut self, cells: u32) {
        for _ in 0..cells {
            self.waiting -= 1;
            let rules = &mut self.rules;
            rules.registers[usize::from(X)] = f64::from(self.waiting);
            update(&rules.on_departure, &mut rules.registers, &mut || 0.0, &mut self.replaced);
        }
    }
}
