//! The compiled formulas of a policy, and the values that a port provides.

use celltrain_formula::rules::{self, Host, On, Texts, Updates};
use celltrain_formula::{Clause, Evaluator, Meaning, Program, Registers, Word};

use super::Table;
use super::names::{N, NOW, PORT_NAMES, Source, Y};
use super::port_info::PortInfo;
use crate::error::Fault;

/// All compiled formulas of a policy.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) admit: Program,
    pub(super) on_frame: Updates,
    pub(super) on_admission: Updates,
    pub(super) on_refusal: Updates,
    pub(super) on_departure: Updates,
    pub(super) on_cells: Updates,
    /// `None` if no frame is dropped at the head of the queue.
    pub(super) drop_head: Option<Program>,
    pub(super) on_head: Updates,
    pub(super) on_drop: Updates,
    pub(super) on_send: Updates,
    pub(super) on_period: Updates,
    /// Registers with the constants and the initial state of the port.
    pub(super) registers: Box<Registers>,
    /// Values of every VC, by label: its constants, then its state. When a frame of the VC arrives, they are copied to
    /// the registers from `FIRST_OWN` on.
    pub(super) by_vc: Vec<f64>,
    /// Number of values per VC in `by_vc`.
    pub(super) per_vc: usize,
    /// True if the rules are the same at every port with this buffer size.
    pub(super) is_the_same_everywhere: bool,
    /// Number of results replaced while computing constants.
    pub(super) replaced: u64,
}

/// The known properties of a port, and the VCs that cross the port, if known.
struct AtPort<'a> {
    port_info: &'a PortInfo<'a>,
    vcs: Option<&'a [&'a str]>,
}

impl Host for AtPort<'_> {
    fn words(&self, on: On) -> Vec<Word> {
        let meaning = |name: &str, from: Source| match (name, from) {
            ("K", _) => match self.port_info.capacity {
                Some(k) => Meaning::Constant(k.into()),
                None => Meaning::NotHere(
                    "this value is the size of the buffer, which must be a number of cells and not \"infinite\"",
                ),
            },
            ("V", _) => Meaning::Constant(self.vcs.map_or(1.0, |vcs| vcs.len() as f64)),
            ("tick", _) => Meaning::Constant(1.0 / self.port_info.clock.units_per_second as f64),
            (_, Source::Port) => Meaning::Constant(self.port_info.cells_per_second),
            _ if on == On::Start => Meaning::NotHere(
                "this value changes during the run, but this formula is evaluated only once, at the start",
            ),
            (_, Source::Queue(register)) => Meaning::Register(register),
            (_, Source::Frame(register)) if is_of_arrivals(on) => Meaning::Register(register),
            (_, Source::Clock(register)) if !is_of_cells(on) => Meaning::Register(register),
            (_, Source::Head(register)) if is_of_head(on) => Meaning::Register(register),
            (_, Source::Head(_)) => Meaning::NotHere(
                "only the frame at the head of the queue has this value; use it in drop_head, on_head, on_drop or \
                 on_send, and keep it in state for other formulas",
            ),
            _ if is_of_head(on) => Meaning::NotHere(
                "only arriving frames have this value, but this formula is evaluated at the head of the queue",
            ),
            _ if on == ON_PERIOD => {
                Meaning::NotHere("only arriving frames have this value, but this formula is evaluated periodically")
            }
            _ => {
                Meaning::NotHere("only arriving frames have this value, but this formula is evaluated for single cells")
            }
        };
        let word = |(name, from): &(rules::Name, Source)| Word {
            name: name.name.into(),
            kind: name.kind,
            meaning: meaning(name.name, *from),
        };
        PORT_NAMES.iter().map(word).collect()
    }

    fn is_open(&self, name: &str) -> bool {
        matches!(name, "C" | "tick") || (name == "V" && self.vcs.is_none())
    }

    fn no_random(&self, on: On) -> Option<&'static str> {
        (is_of_cells(on) || on == ON_PERIOD).then_some("random numbers are available only in formulas about frames")
    }

    fn no_vc(&self, on: On) -> Option<[&'static str; 2]> {
        let of_vcs = if is_of_cells(on) {
            "this value differs between VCs, but this formula is evaluated for cells of all VCs"
        } else if on == ON_PERIOD {
            "this value differs between VCs, but this formula is evaluated for all VCs together"
        } else {
            return None;
        };
        Some([
            of_vcs,
            "is state of a VC, but this formula is evaluated for all VCs; change the state in on_frame, on_admission \
             or on_refusal",
        ])
    }

    fn taken(&self) -> [&'static str; 2] {
        ["the port's", "docs/models/formula.md"]
    }

    fn targets(&self) -> &'static str {
        "the name of a variable in state or vc_state"
    }
}

/// Returns whether this event concerns individual cells.
fn is_of_cells(on: On) -> bool {
    matches!(on, On::Event("on_departure" | "on_cells"))
}

/// Returns whether this event concerns the frame at the head of the queue.
fn is_of_head(on: On) -> bool {
    matches!(on, On::Event("drop_head" | "on_head" | "on_drop" | "on_send"))
}

/// Returns whether this event concerns an arriving frame.
fn is_of_arrivals(on: On) -> bool {
    !is_of_cells(on) && !is_of_head(on) && on != ON_PERIOD
}

const ON_PERIOD: On = On::Event("on_period");

impl Rules {
    /// Compiles the rules of a policy at a port, for VCs with these names. `vcs` is `None` if the VCs are not known
    /// yet.
    pub(super) fn of(config: &Table, port_info: &PortInfo<'_>, vcs: Option<&[&str]>) -> Result<Self, Vec<Fault>> {
        let (questions, events) = (config.questions(), config.events());
        let texts = Texts { vcs, ..config.texts(&questions, &events) };
        let rules::Rules { answers, updates, registers, by_vc, per_vc, has_constants_by_vc, names, replaced } =
            texts.compile(&AtPort { port_info, vcs })?;
        let mut answers = answers.into_iter();
        let admit = answers.next().expect("the program for the decision was compiled");
        let [on_frame, on_admission, on_refusal, on_departure, on_cells, on_head, on_drop, on_send, on_period] =
            <[Updates; 9]>::try_from(updates).expect("the array has the updates of every event");
        let is_of_place = ["C", "V", "tick"].into_iter().any(|name| names.contains(name));
        Ok(Self {
            admit,
            on_frame,
            on_admission,
            on_refusal,
            on_departure,
            on_cells,
            drop_head: answers.next(),
            on_head,
            on_drop,
            on_send,
            on_period,
            registers,
            by_vc,
            per_vc,
            is_the_same_everywhere: !has_constants_by_vc && !is_of_place,
            replaced,
        })
    }

    /// Lists the clauses of `admit` that are false with the values in the given registers.
    pub(super) fn why_not(
        config: &Table,
        port_info: &PortInfo<'_>,
        vcs: &[&str],
        registers: &Registers,
    ) -> Vec<Clause> {
        let (questions, events) = (config.questions(), config.events());
        let texts = Texts { vcs: Some(vcs), ..config.texts(&questions, &events) };
        let Ok((tree, vocabulary)) = texts.question(&AtPort { port_info, vcs: Some(vcs) }, "admit") else {
            return Vec::new();
        };
        Evaluator::new(&vocabulary, registers, &mut || 0.5).why_not(&tree, &config.admit)
    }

    /// Creates rules that admit every frame, for rules that cannot be compiled at this port. These rules apply to this
    /// port only, because the rules of other ports may compile.
    pub(super) fn admit_all() -> Self {
        let config: Table = Table { admit: "true".into(), ..Table::default() };
        let rules =
            Self::of(&config, &PortInfo::unknown(), Some(&[])).expect("the constant condition is a valid formula");
        Self { is_the_same_everywhere: false, ..rules }
    }

    pub(super) fn admits_all(&self) -> bool {
        self.admit.constant() == Some(1.0) && self.updates().next().is_none()
    }

    pub(super) fn reads_counts(&self) -> bool {
        let programs = std::iter::once(&self.admit).chain(self.updates());
        programs.into_iter().any(|program| program.reads(N) || program.reads(Y))
    }

    /// Returns whether `admit` depends on no state, no time and no random number.
    pub(super) fn reads_own_view(&self) -> bool {
        self.updates().next().is_none() && !self.admit.draws() && !self.admit.reads(NOW)
    }

    pub(super) fn updates(&self) -> impl Iterator<Item = &Program> {
        let of_arrivals = [&self.on_frame, &self.on_admission, &self.on_refusal];
        let others = [&self.on_departure, &self.on_cells, &self.on_head, &self.on_drop, &self.on_send, &self.on_period];
        of_arrivals.into_iter().chain(others).flatten().map(|(_, program)| program)
    }
}
