//! The formulas of a policy, read, checked and compiled.

use std::collections::{BTreeMap, BTreeSet};

use celltrain_formula::{
    Compiler, Expression, Fault as TextFault, Kind, Meaning, Program, Registers, Vocabulary, Word, is_name, nearest,
    parse,
};

use super::facts::PortFacts;
use super::names::{FIRST_OWN, N, PORT_NAMES, PortName, Source, Y};
use super::{Config, Constant, Start};
use crate::error::Fault;
use crate::per_vc::PerVc;

/// Constants that differ by VC, and variables of state, all together.
const MOST_OWN: usize = 64;
/// Constants in all.
const MOST_CONSTANTS: usize = 100;

/// When a formula is worked out, which decides what it may use.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// Once, as the run starts.
    Start,
    /// When a frame comes.
    Frame,
    /// When a cell comes or goes.
    Cell,
}

/// New values of state, worked out together.
pub(super) type Updates = Vec<(u8, Program)>;

/// All of it, ready to run.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) admit: Program,
    pub(super) on_frame: Updates,
    pub(super) on_admission: Updates,
    pub(super) on_refusal: Updates,
    pub(super) on_departure: Updates,
    pub(super) on_cells: Updates,
    /// With constants and the port's state in place.
    pub(super) registers: Box<Registers>,
    /// Of every VC, by label, what goes into the registers from the first of one's own on when a frame of it comes:
    /// constants by VC, then its state.
    pub(super) by_vc: Vec<f64>,
    /// How many of these a VC has.
    pub(super) per_vc: usize,
    /// Whether it is the same at every port with this buffer.
    pub(super) is_the_same_everywhere: bool,
    /// Results that were replaced as constants were worked out.
    pub(super) replaced: u64,
}

impl Rules {
    /// Those of a policy at a port, for VCs of these names; `None` where they are not known yet.
    pub(super) fn of(config: &Config, facts: &PortFacts, vcs: Option<&[&str]>) -> Result<Self, Vec<Fault>> {
        let mut reading = Reading {
            config,
            facts,
            vcs,
            vocabulary: Vocabulary::default(),
            trees: BTreeMap::new(),
            by_vc: Vec::new(),
            started: Vec::new(),
            next: FIRST_OWN,
            faults: Vec::new(),
            replaced: 0,
            visiting: Vec::new(),
            refused: BTreeSet::new(),
            unsure: BTreeSet::new(),
        };
        let rules = reading.rules();
        let Reading { mut faults, .. } = reading;
        match rules {
            Some(rules) if faults.is_empty() => Ok(rules),
            _ => {
                faults.dedup();
                Err(faults)
            }
        }
    }

    /// Those of a policy that admits every frame, and stands for one that cannot be read here: so nobody takes it for
    /// the same at other ports.
    pub(super) fn admit_all() -> Self {
        let config: Config = Config { admit: "true".into(), ..Config::empty() };
        let rules = Self::of(&config, &PortFacts::unknown(), Some(&[])).expect("what is always true can be read");
        Self { is_the_same_everywhere: false, ..rules }
    }

    pub(super) fn admits_all(&self) -> bool {
        self.admit.constant() == Some(1.0) && self.updates().next().is_none()
    }

    pub(super) fn reads_counts(&self) -> bool {
        let programs = std::iter::once(&self.admit).chain(self.updates());
        programs.into_iter().any(|program| program.reads(N) || program.reads(Y))
    }

    pub(super) fn updates(&self) -> impl Iterator<Item = &Program> {
        let all = [&self.on_frame, &self.on_admission, &self.on_refusal, &self.on_departure, &self.on_cells];
        all.into_iter().flatten().map(|(_, program)| program)
    }
}

/// A constant that differs from VC to VC, worked out.
struct ByVc {
    register: u8,
    /// By label; nothing while VCs are not known.
    values: Vec<f64>,
}

/// State with what it starts with: one value, or one for each VC while these are known.
struct Started {
    register: u8,
    of_vc: bool,
    values: Vec<f64>,
}

struct Reading<'a> {
    config: &'a Config,
    facts: &'a PortFacts,
    vcs: Option<&'a [&'a str]>,
    /// The user's own names so far; the port's are added for each formula.
    vocabulary: Vocabulary,
    /// Every formula that could be read, by key.
    trees: BTreeMap<String, Expression>,
    by_vc: Vec<ByVc>,
    started: Vec<Started>,
    /// The next free register.
    next: u8,
    faults: Vec<Fault>,
    replaced: u64,
    /// Constants that are being worked out, each for the sake of the next.
    visiting: Vec<&'a str>,
    /// Constants with a fault; what uses them has none of its own.
    refused: BTreeSet<&'a str>,
    /// Constants that depend on a rate, or on VCs, that is not known before the run: it cannot be said whether they
    /// divide by zero.
    unsure: BTreeSet<&'a str>,
}

/// When the formulas of an event are worked out.
fn when(event: &str) -> When {
    if ["on_departure", "on_cells"].contains(&event) { When::Cell } else { When::Frame }
}

impl<'a> Reading<'a> {
    #[expect(clippy::arithmetic_side_effects, reason = "places of names, of which there are at most 255")]
    fn rules(&mut self) -> Option<Rules> {
        let config = self.config;
        self.names();
        self.read_all();
        if !self.faults.is_empty() {
            return None;
        }
        for name in config.constants.keys() {
            if self.constant(name).is_none() {
                self.refused.insert(name);
            }
            self.visiting.clear();
        }
        // Constants by VC and state by VC lie side by side, so that they are copied in one go.
        self.state(&config.vc_state, "vc_state", true);
        let per_vc = usize::from(self.next - FIRST_OWN);
        self.state(&config.state, "state", false);
        if !self.faults.is_empty() {
            return None;
        }
        self.infer();
        self.compiled(per_vc)
    }

    /// Reads every text there is.
    fn read_all(&mut self) {
        let config = self.config;
        self.read("admit", &config.admit);
        for (event, updates) in config.events() {
            for (name, text) in updates {
                self.read(&format!("{event}.{name}"), text);
            }
        }
        for (name, constant) in &config.constants {
            if let Constant::Formula(text) = constant {
                self.read(&format!("constants.{name}"), text);
            }
        }
        for (table, states) in [("state", &config.state), ("vc_state", &config.vc_state)] {
            for (name, start) in states {
                if let Start::Formula(text) = start {
                    self.read(&format!("{table}.{name}"), text);
                }
            }
        }
    }

    /// A constant or state that is a mere number has the unit of what it is added to or compared with, and state that of
    /// what it becomes.
    fn infer(&mut self) {
        while let Some((word, kind)) = self.inferred() {
            self.vocabulary.words[word].kind = kind;
            // What is made of it has another unit now.
            for word in 0..self.vocabulary.words.len() {
                let key = format!("constants.{}", self.vocabulary.words[word].name);
                let kind = self.trees.get(&key).and_then(|tree| self.vocabulary(When::Start).check(tree).ok());
                // A unit that was found is never lost again, so this ends.
                if let Some(kind @ Kind::Number(Some(_))) = kind {
                    self.vocabulary.words[word].kind = kind;
                }
            }
        }
    }

    /// A name whose unit is not known so far, and what it is.
    fn inferred(&self) -> Option<(usize, Kind)> {
        let unknown = |name: &str| {
            let is_it = |word: &Word| word.name == name && word.kind == Kind::Number(None);
            self.vocabulary.words.iter().position(is_it)
        };
        let found = |tree: &Expression, vocabulary: &Vocabulary| {
            let hints = vocabulary.hints(tree);
            hints.into_iter().find_map(|(name, unit)| Some((unknown(name)?, Kind::Number(Some(unit)))))
        };
        let frame = self.vocabulary(When::Frame);
        if let Some(found) = found(&self.trees["admit"], &frame) {
            return Some(found);
        }
        let cell = self.vocabulary(When::Cell);
        for (event, updates) in self.config.events() {
            let vocabulary = if when(event) == When::Cell { &cell } else { &frame };
            for name in updates.keys() {
                let tree = &self.trees[&format!("{event}.{name}")];
                if let Some(found) = found(tree, vocabulary) {
                    return Some(found);
                }
                if let (Some(word), Ok(kind @ Kind::Number(Some(_)))) = (unknown(name), vocabulary.check(tree)) {
                    return Some((word, kind));
                }
            }
        }
        None
    }

    /// Checks what is worked out during the run, and compiles it.
    #[expect(clippy::arithmetic_side_effects, reason = "places of names, of which there are at most 255")]
    fn compiled(&mut self, per_vc: usize) -> Option<Rules> {
        let config = self.config;
        let mut compiler = Compiler::new(self.next);
        let admit = self.program("admit", &config.admit, Kind::Truth, "admit", &mut compiler);
        let mut updates = config.events().map(|(event, updates)| {
            let mut programs = Vec::new();
            for (name, text) in updates {
                let word = self.vocabulary.find(name).cloned()?;
                let Meaning::Register(register) = word.meaning else { unreachable!("state is in registers") };
                let key = format!("{event}.{name}");
                let program = self.program(&key, text, word.kind, name, &mut compiler);
                programs.push((register, program?));
            }
            Some(programs)
        });
        let [on_frame, on_admission, on_refusal, on_departure, on_cells] = updates.each_mut().map(Option::take);
        let mut registers = compiler.registers();
        let vcs = self.vcs.map_or(0, <[&str]>::len);
        let mut by_vc = vec![0.0; per_vc * vcs];
        let own = |register: u8| usize::from(register - FIRST_OWN);
        for Started { register, of_vc, values } in &self.started {
            for (vc, &value) in values.iter().enumerate() {
                if *of_vc {
                    by_vc[vc * per_vc + own(*register)] = value;
                } else {
                    registers[usize::from(*register)] = value;
                }
            }
        }
        let is_of_place = |tree: &Expression| tree.names().iter().any(|name| ["C", "V"].contains(name));
        let has_constants_by_vc = self.vocabulary.words.iter().any(|word| matches!(word.meaning, Meaning::ByVc { .. }));
        Some(Rules {
            admit: admit?,
            on_frame: on_frame?,
            on_admission: on_admission?,
            on_refusal: on_refusal?,
            on_departure: on_departure?,
            on_cells: on_cells?,
            registers,
            by_vc,
            per_vc,
            is_the_same_everywhere: !has_constants_by_vc && !self.trees.values().any(is_of_place),
            replaced: self.replaced,
        })
    }

    /// Checks and compiles one formula.
    fn program(&mut self, key: &str, text: &str, kind: Kind, what: &str, compiler: &mut Compiler) -> Option<Program> {
        let event = key.split('.').next().unwrap_or(key);
        let vocabulary = self.vocabulary(when(event));
        let tree = &self.trees[key];
        let made = vocabulary.check_is(tree, kind, what).and_then(|()| compiler.compile(tree, &vocabulary));
        made.map_err(|fault| self.refuse(key, text, &fault)).ok()
    }

    /// Whether the user's own names are names, and each is one thing.
    #[expect(clippy::arithmetic_side_effects, reason = "places of names, of which there are at most 255")]
    fn names(&mut self) {
        let Config { constants, state, vc_state, .. } = self.config;
        let mut seen = BTreeSet::new();
        let tables: [(&str, Vec<&String>); 3] = [
            ("constants", constants.keys().collect()),
            ("state", state.keys().collect()),
            ("vc_state", vc_state.keys().collect()),
        ];
        for (table, names) in tables {
            for name in names {
                let key = format!("{table}.{name}");
                if let Err(problem) = is_name(name) {
                    self.faults.push(Fault::new(key, "", problem));
                } else if PORT_NAMES.iter().any(|known| known.name == name) {
                    let problem = "is a name of the port's already; choose another (docs/models/formula.md lists them)";
                    self.faults.push(Fault::new(key, "", problem));
                } else if !seen.insert(name) {
                    self.faults.push(Fault::new(key, "", "is the name of another constant or state; choose another"));
                }
            }
        }
        let own = state.len() + vc_state.len();
        if constants.len() > MOST_CONSTANTS {
            let problem = format!("has {} names; {MOST_CONSTANTS} are the most", constants.len());
            self.faults.push(Fault::new("constants", "", problem));
        }
        if own > MOST_OWN / 2 {
            let problem = format!("and vc_state have {own} names; {} are the most", MOST_OWN / 2);
            self.faults.push(Fault::new("state", "", problem));
        }
        for (event, updates) in self.config.events() {
            let of_cells = when(event) == When::Cell;
            for name in updates.keys() {
                let key = format!("{event}.{name}");
                if of_cells && vc_state.contains_key(name) {
                    let problem = "is state of a VC, and cells come and go whatever their VC; change it on_frame, \
                                   on_admission or on_refusal";
                    self.faults.push(Fault::new(key, "", problem));
                } else if !state.contains_key(name) && !vc_state.contains_key(name) {
                    let names = state.keys().chain(vc_state.keys()).map(String::as_str);
                    let hint = nearest(name, names).map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
                    let problem = format!("is no state; {hint}It must be a name of state or vc_state");
                    self.faults.push(Fault::new(key, "", problem));
                }
            }
        }
    }

    fn read(&mut self, key: &str, text: &str) {
        match parse(text) {
            Ok(tree) => drop(self.trees.insert(key.to_string(), tree)),
            Err(fault) => self.refuse(key, text, &fault),
        }
    }

    fn refuse(&mut self, key: &str, text: &str, fault: &TextFault) {
        let line = text.replace(|c: char| c.is_control(), " ");
        let excerpt = fault.excerpt(text).into();
        self.faults.push(Fault { excerpt, ..Fault::new(key, format!("\"{line}\""), fault.problem.as_str()) });
    }

    /// The names that a formula may use.
    fn vocabulary(&self, when: When) -> Vocabulary {
        let mut vocabulary = self.vocabulary.clone();
        let capacity = self.facts.capacity;
        for &PortName { name, kind, from, .. } in PORT_NAMES {
            let meaning = match (name, from) {
                ("K", _) => match capacity {
                    Some(k) => Meaning::Constant(k.into()),
                    None => {
                        Meaning::NotHere("the size of the buffer, which must be a number of cells and not \"infinite\"")
                    }
                },
                ("V", _) => Meaning::Constant(self.vcs.map_or(1.0, |vcs| vcs.len() as f64)),
                (_, Source::Port) => Meaning::Constant(self.facts.cells_per_second),
                (_, Source::Queue(register)) if when != When::Start => Meaning::Register(register),
                (_, Source::Frame(register)) if when == When::Frame => Meaning::Register(register),
                _ if when == When::Start => {
                    Meaning::NotHere("which changes, and this is worked out once, as the run starts")
                }
                _ => Meaning::NotHere("which only a frame has that comes, and here a cell comes or goes"),
            };
            vocabulary.words.push(Word { name: name.into(), kind, meaning });
        }
        if when == When::Cell {
            let by_vc = "which differs from VC to VC, and cells come and go whatever their VC";
            for word in &mut vocabulary.words {
                let is_of_vc = self.config.vc_state.contains_key(&word.name);
                if is_of_vc || matches!(word.meaning, Meaning::ByVc { .. }) {
                    word.meaning = Meaning::NotHere(by_vc);
                }
            }
        }
        vocabulary.no_random = match when {
            When::Frame => None,
            When::Start => Some("and this is worked out once, as the run starts"),
            When::Cell => Some("which is drawn for frames only"),
        };
        vocabulary
    }

    /// Works a constant out, and before it those it needs. Nothing is left to do where the answer is `None`.
    fn constant(&mut self, name: &'a str) -> Option<()> {
        let config = self.config;
        if self.vocabulary.words.iter().any(|word| word.name == name) || self.refused.contains(name) {
            return Some(());
        }
        let key = format!("constants.{name}");
        match &config.constants[name] {
            Constant::Value(PerVc::Same(value)) => {
                if !value.is_finite() {
                    self.faults.push(Fault::new(key, value, "is no finite number"));
                    self.refused.insert(name);
                }
                self.define(name, Kind::Number(None), Meaning::Constant(*value));
            }
            Constant::Value(table @ PerVc::ByName(_)) => {
                let faults = table.check(&key, f64::is_finite, "is no finite number");
                if !faults.is_empty() {
                    self.faults.extend(faults);
                    self.refused.insert(name);
                }
                // A VC without a value has a fault of its own, where it is known which VCs there are.
                let value = |vc: &&str| table.of(vc).filter(|value| value.is_finite()).unwrap_or(0.0);
                let values = self.vcs.map(|vcs| vcs.iter().map(value).collect()).unwrap_or_default();
                self.define_by_vc(name, Kind::Number(None), values);
            }
            Constant::Formula(text) => {
                let tree = self.trees[&key].clone();
                self.visiting.push(name);
                for needed in tree.names() {
                    let Some((needed, _)) = config.constants.get_key_value(needed) else { continue };
                    if self.refused.contains(needed.as_str()) {
                        return None;
                    }
                    if let Some(from) = self.visiting.iter().position(|visited| visited == needed) {
                        let circle = self.visiting[from..].join(", which needs ");
                        let problem = format!("goes in a circle: {circle}, which needs {needed}");
                        self.refuse(&key, text, &TextFault::new(tree.place(), problem));
                        self.refused.extend(&self.visiting);
                        return None;
                    }
                    self.constant(needed)?;
                }
                self.visiting.pop();
                let (kind, values) = self.worked_out(&key, text, &tree, None)?;
                if self.is_unsure(&tree) {
                    self.unsure.insert(name);
                }
                match values {
                    Values::Same(value) => self.define(name, kind, Meaning::Constant(value)),
                    Values::ByVc(values) => self.define_by_vc(name, kind, values),
                }
            }
        }
        Some(())
    }

    fn define(&mut self, name: &str, kind: Kind, meaning: Meaning) {
        self.vocabulary.words.push(Word { name: name.into(), kind, meaning });
    }

    fn define_by_vc(&mut self, name: &str, kind: Kind, values: Vec<f64>) {
        let register = self.take_register(&format!("constants.{name}"));
        let sum = values.iter().sum();
        self.started.push(Started { register, of_vc: true, values: values.clone() });
        self.by_vc.push(ByVc { register, values });
        self.define(name, kind, Meaning::ByVc { register, sum });
    }

    #[expect(clippy::arithmetic_side_effects, reason = "places of names, of which there are at most 255")]
    fn take_register(&mut self, key: &str) -> u8 {
        let taken = usize::from(self.next - FIRST_OWN);
        if taken >= MOST_OWN {
            let problem = format!("is one too many: constants by VC and state have {MOST_OWN} names at most");
            self.faults.push(Fault::new(key, "", problem));
            return self.next;
        }
        self.next += 1;
        self.next - 1
    }

    /// What a formula of constants gives.
    #[expect(clippy::arithmetic_side_effects, reason = "places of names, of which there are at most 255")]
    fn worked_out(
        &mut self,
        key: &str,
        text: &str,
        tree: &Expression,
        must_be_same: Option<&'static str>,
    ) -> Option<(Kind, Values)> {
        let mut vocabulary = self.vocabulary(When::Start);
        if let Some(why) = must_be_same {
            for word in &mut vocabulary.words {
                if let Meaning::ByVc { .. } = word.meaning {
                    word.meaning = Meaning::NotHere(why);
                }
            }
        }
        let mut compiler = Compiler::new(self.next);
        let made = vocabulary.check(tree).and_then(|kind| Ok((kind, compiler.compile(tree, &vocabulary)?)));
        let (kind, program) = match made {
            Ok(made) => made,
            Err(fault) => {
                self.refuse(key, text, &fault);
                return None;
            }
        };
        let differs = self.by_vc.iter().any(|constant| program.reads(constant.register));
        let vcs = self.vcs.map_or(0, <[&str]>::len);
        let mut registers = compiler.registers();
        let mut replaced = 0;
        let mut run = |registers: &mut Registers| program.run(registers, &mut || 0.0, &mut replaced);
        let values = if differs {
            let of_vc = |vc: usize| {
                for constant in &self.by_vc {
                    registers[usize::from(constant.register)] = constant.values[vc];
                }
                run(&mut registers)
            };
            Values::ByVc((0..vcs).map(of_vc).collect())
        } else {
            Values::Same(run(&mut registers))
        };
        if replaced > 0 && !self.is_unsure(tree) {
            let problem = "gives no number: it divides by zero, takes the root of a negative number or the logarithm of one \
                           that is not above 0, or comes to more than 1.8e308";
            self.refuse(key, text, &TextFault::new(tree.place(), problem));
            return None;
        }
        self.replaced += replaced;
        Some((kind, values))
    }

    /// Whether a formula depends on what is not known before the run, or before it is known which VCs there are.
    fn is_unsure(&self, tree: &Expression) -> bool {
        let by_vc =
            |name: &str| self.vocabulary.find(name).is_some_and(|word| matches!(word.meaning, Meaning::ByVc { .. }));
        let is_open = |name: &str| name == "C" || self.unsure.contains(name);
        let names = tree.names();
        names.into_iter().any(|name| is_open(name) || (self.vcs.is_none() && (name == "V" || by_vc(name))))
    }

    /// Takes registers for state, and works out what it starts with.
    fn state(&mut self, table: &'a BTreeMap<String, Start>, key: &str, by_vc: bool) {
        let mut words = Vec::new();
        for (name, start) in table {
            let key = format!("{key}.{name}");
            let must_be_same =
                (!by_vc).then_some("which differs from VC to VC, and this state is the port's; use vc_state");
            let (kind, values) = match start {
                Start::Number(value) if value.is_finite() => (Kind::Number(None), Values::Same(*value)),
                Start::Number(value) => {
                    self.faults.push(Fault::new(&*key, value, "is no finite number"));
                    continue;
                }
                Start::Formula(text) => {
                    let tree = self.trees[&key].clone();
                    let Some(worked_out) = self.worked_out(&key, text, &tree, must_be_same) else { continue };
                    worked_out
                }
            };
            words.push((name, key, kind, values));
        }
        for (name, key, kind, values) in words {
            let register = self.take_register(&key);
            self.define(name, kind, Meaning::Register(register));
            let vcs = self.vcs.map_or(0, <[&str]>::len);
            let values = match values {
                Values::Same(value) if by_vc => vec![value; vcs],
                Values::Same(value) => vec![value],
                Values::ByVc(values) => values,
            };
            self.started.push(Started { register, of_vc: by_vc, values });
        }
    }
}

enum Values {
    Same(f64),
    ByVc(Vec<f64>),
}
