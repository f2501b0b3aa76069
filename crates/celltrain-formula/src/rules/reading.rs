//! Reads, checks and compiles formulas.

mod constants;

use std::collections::{BTreeMap, BTreeSet};

use super::{Constant, Host, On, Rules, Start, Texts, Updates};
use crate::{
    Compiler, Expression, Fault, Kind, Meaning, Program, SettingFault, Vocabulary, Word, is_name, nearest, parse,
};
use constants::{MOST_OWN, NOT_FINITE, Values};

const MOST_CONSTANTS: usize = 100;

impl Texts<'_> {
    /// Reads, checks and compiles the formulas.
    ///
    /// # Errors
    /// Returns all faults found.
    pub fn compile(self, host: &dyn Host) -> Result<Rules, Vec<SettingFault>> {
        let mut reading = Reading::new(self, host);
        let rules = reading.rules();
        reading.or_faults(rules)
    }

    /// Reads the formula of a question. Returns the formula with the names it may use.
    ///
    /// # Errors
    /// Returns all faults found.
    pub fn question(self, host: &dyn Host, key: &'static str) -> Result<(Expression, Vocabulary), Vec<SettingFault>> {
        let mut reading = Reading::new(self, host);
        let found = reading.rules().map(|_| (reading.trees[key].clone(), reading.vocabulary(On::Event(key))));
        reading.or_faults(found)
    }

    /// Evaluates one formula as a run starts. Returns the values by label, or no values if the VCs are not known.
    ///
    /// # Errors
    /// Returns all faults found.
    pub fn at_start(self, host: &dyn Host, (key, text): (&str, &str)) -> Result<Vec<f64>, Vec<SettingFault>> {
        let mut reading = Reading::new(self, host);
        reading.names();
        reading.read_all();
        reading.read(key, text);
        if reading.faults.is_empty() {
            reading.all_constants();
        }
        let values = if reading.faults.is_empty() { reading.number(key, text) } else { None };
        reading.or_faults(values)
    }
}

/// Values of a constant that differs from VC to VC.
struct ByVc {
    register: u8,
    /// One value per VC, by label. Empty until the VCs are known.
    values: Vec<f64>,
}

/// State with its initial values: one value or, if the VCs are known, one for each VC.
struct Started {
    register: u8,
    of_vc: bool,
    values: Vec<f64>,
}

struct Reading<'a> {
    texts: Texts<'a>,
    host: &'a dyn Host,
    /// The user's own names so far. The host's names are added for each formula.
    vocabulary: Vocabulary,
    /// Every formula that could be parsed, by key.
    trees: BTreeMap<String, Expression>,
    by_vc: Vec<ByVc>,
    started: Vec<Started>,
    /// The next free register.
    next: u8,
    faults: Vec<SettingFault>,
    replaced: u64,
    /// Constants that are being evaluated. Each depends on the next.
    visiting: Vec<&'a str>,
    /// Faulty constants. A formula that uses a faulty constant gets no additional fault.
    refused: BTreeSet<&'a str>,
    /// Constants that depend on a rate or on VCs, both unknown before the run. Before the run, it is unknown whether
    /// they divide by zero.
    unsure: BTreeSet<&'a str>,
}

impl<'a> Reading<'a> {
    fn new(texts: Texts<'a>, host: &'a dyn Host) -> Self {
        Self {
            texts,
            host,
            vocabulary: Vocabulary::default(),
            trees: BTreeMap::new(),
            by_vc: Vec::new(),
            started: Vec::new(),
            next: texts.first,
            faults: Vec::new(),
            replaced: 0,
            visiting: Vec::new(),
            refused: BTreeSet::new(),
            unsure: BTreeSet::new(),
        }
    }

    /// Returns the result, or the faults if any were found.
    fn or_faults<T>(mut self, made: Option<T>) -> Result<T, Vec<SettingFault>> {
        match made {
            Some(made) if self.faults.is_empty() => Ok(made),
            _ => {
                self.faults.dedup();
                Err(self.faults)
            }
        }
    }

    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: a formula has at most 255 names")]
    fn rules(&mut self) -> Option<Rules> {
        self.names();
        self.read_all();
        if !self.faults.is_empty() {
            return None;
        }
        self.all_constants();
        // Per-VC constants and per-VC state are adjacent, so that one copy is sufficient.
        self.state(self.texts.vc_state, self.host.state_by_vc(), true);
        let per_vc = usize::from(self.next - self.texts.first);
        self.state(self.texts.state, "state", false);
        if !self.faults.is_empty() {
            return None;
        }
        self.infer();
        self.compiled(per_vc)
    }

    /// Evaluates a numeric formula at the start of the run. Returns the values by label.
    fn number(&mut self, key: &str, text: &str) -> Option<Vec<f64>> {
        let tree = self.trees[key].clone();
        match self.worked_out(key, text, &tree, None)? {
            (Kind::Truth, _) => {
                let problem = "is a condition, but must be a number, such as if c then 1 else 0";
                self.refuse(key, text, &Fault::new(tree.place(), problem));
                None
            }
            (_, Values::Same(value)) => Some(vec![value; self.texts.vcs.map_or(0, <[&str]>::len)]),
            (_, Values::ByVc(values)) => Some(values),
        }
    }

    fn all_constants(&mut self) {
        for name in self.texts.constants.keys() {
            if self.constant(name).is_none() {
                self.refused.insert(name);
            }
            self.visiting.clear();
        }
    }

    /// Parses all formulas.
    fn read_all(&mut self) {
        let Texts { constants, state, vc_state, questions, events, .. } = self.texts;
        for (key, text, _) in questions {
            self.read(key, text);
        }
        for (event, updates) in events {
            for (name, text) in *updates {
                self.read(&format!("{event}.{name}"), text);
            }
        }
        for (name, constant) in constants {
            if let Constant::Formula(text) = constant {
                self.read(&format!("constants.{name}"), text);
            }
        }
        for (table, states) in [("state", state), (self.host.state_by_vc(), vc_state)] {
            for (name, start) in states {
                if let Start::Formula(text) = start {
                    self.read(&format!("{table}.{name}"), text);
                }
            }
        }
    }

    /// Infers units of plain numbers: a constant or a state variable gets the unit of the values that it is added to or
    /// compared with. A state variable also gets the unit of its new values.
    fn infer(&mut self) {
        while let Some((word, kind)) = self.inferred() {
            self.vocabulary.words[word].kind = kind;
            // Constants that are computed from this name may then get a unit as well.
            for word in 0..self.vocabulary.words.len() {
                let key = format!("constants.{}", self.vocabulary.words[word].name);
                let kind = self.trees.get(&key).and_then(|tree| self.vocabulary(On::Start).check(tree).ok());
                // A unit that is known stays known, so the loop ends.
                if let Some(kind @ Kind::Number(Some(_))) = kind {
                    self.vocabulary.words[word].kind = kind;
                }
            }
        }
    }

    /// Returns a name whose unit is still unknown, with the kind inferred for it. An operand that has names without a
    /// unit counts only if no other operand gives a unit: the unit of `a / B` changes if `a` turns out to be in cells.
    fn inferred(&self) -> Option<(usize, Kind)> {
        self.by_questions(true)
            .or_else(|| self.by_events(true))
            .or_else(|| self.by_events(false))
            .or_else(|| self.by_questions(false))
    }

    fn by_questions(&self, certain: bool) -> Option<(usize, Kind)> {
        let hint = |key| self.hinted(&self.trees[key], &self.vocabulary(On::Event(key)), certain);
        self.texts.questions.iter().find_map(|&(key, ..)| hint(key))
    }

    fn by_events(&self, certain: bool) -> Option<(usize, Kind)> {
        for (event, updates) in self.texts.events {
            let vocabulary = self.vocabulary(On::Event(event));
            for name in updates.keys() {
                let tree = &self.trees[&format!("{event}.{name}")];
                if let Some(found) = self.hinted(tree, &vocabulary, certain) {
                    return Some(found);
                }
                let all_known = tree.names().into_iter().all(|name| self.without_unit(name).is_none());
                match (self.without_unit(name), vocabulary.check(tree)) {
                    (Some(word), Ok(kind @ Kind::Number(Some(_)))) if all_known || !certain => {
                        return Some((word, kind));
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// Returns the first name in a formula that gets a unit from an operand, with its kind.
    fn hinted(&self, tree: &Expression, vocabulary: &Vocabulary, certain: bool) -> Option<(usize, Kind)> {
        let hints = vocabulary.hints(tree, certain);
        hints.into_iter().find_map(|(name, unit)| Some((self.without_unit(name)?, Kind::Number(Some(unit)))))
    }

    /// Returns the place of a user's name if its unit is still unknown.
    fn without_unit(&self, name: &str) -> Option<usize> {
        let is_it = |word: &Word| word.name == name && word.kind == Kind::Number(None);
        self.vocabulary.words.iter().position(is_it)
    }

    /// Checks and compiles the formulas evaluated during the run.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: a formula has at most 255 names")]
    fn compiled(&mut self, per_vc: usize) -> Option<Rules> {
        let mut compiler = Compiler::new(self.next);
        let Texts { questions, events, first, vcs, .. } = self.texts;
        // Compile the formulas of all questions, so that every fault is reported.
        let answers: Vec<Option<Program>> = questions
            .iter()
            .map(|&(key, text, kind)| self.program((key, key), text, kind, key, &mut compiler))
            .collect();
        let updates: Vec<Option<Updates>> =
            events.iter().map(|&(event, updates)| self.updates(event, updates, &mut compiler)).collect();
        let mut registers = compiler.registers();
        let vcs = vcs.map_or(0, <[&str]>::len);
        let mut by_vc = vec![0.0; per_vc * vcs];
        let own = |register: u8| usize::from(register - first);
        for Started { register, of_vc, values } in &self.started {
            for (vc, &value) in values.iter().enumerate() {
                if *of_vc {
                    by_vc[vc * per_vc + own(*register)] = value;
                } else {
                    registers[usize::from(*register)] = value;
                }
            }
        }
        Some(Rules {
            answers: answers.into_iter().collect::<Option<_>>()?,
            updates: updates.into_iter().collect::<Option<_>>()?,
            registers,
            by_vc,
            per_vc,
            has_constants_by_vc: !self.by_vc.is_empty(),
            names: self.trees.values().flat_map(Expression::names).map(String::from).collect(),
            replaced: self.replaced,
        })
    }

    /// Compiles the formulas of an event.
    fn updates(
        &mut self,
        event: &'static str,
        updates: &BTreeMap<String, String>,
        compiler: &mut Compiler,
    ) -> Option<Updates> {
        let words = self.vocabulary(On::Event(event));
        let one = |(name, text): (&String, &String)| {
            let word = words.find(name)?;
            let Meaning::Register(register) = word.meaning else { unreachable!("changing values are in registers") };
            let program = self.program((event, &format!("{event}.{name}")), text, word.kind, name, compiler)?;
            Some((register, program))
        };
        updates.iter().map(one).collect()
    }

    /// Checks and compiles one formula.
    fn program(
        &mut self,
        (event, key): (&'static str, &str),
        text: &str,
        kind: Kind,
        what: &str,
        compiler: &mut Compiler,
    ) -> Option<Program> {
        let vocabulary = self.vocabulary(On::Event(event));
        let tree = &self.trees[key];
        let made = vocabulary.check_is(tree, kind, what).and_then(|()| compiler.compile(tree, &vocabulary));
        made.map_err(|fault| self.refuse(key, text, &fault)).ok()
    }

    /// Checks that the user's names are valid, and that each is defined once.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: a formula has at most 255 names")]
    fn names(&mut self) {
        let Texts { constants, state, vc_state, events, .. } = self.texts;
        let of_host = self.host.words(On::Start);
        let mut seen = BTreeSet::new();
        let tables: [(&str, Vec<&String>); 3] = [
            ("constants", constants.keys().collect()),
            ("state", state.keys().collect()),
            (self.host.state_by_vc(), vc_state.keys().collect()),
        ];
        for (table, names) in tables {
            for name in names {
                let key = format!("{table}.{name}");
                if let Err(problem) = is_name(name) {
                    self.faults.push(SettingFault::new(key, "", problem));
                } else if of_host.iter().any(|known| known.name == *name) {
                    let [of, page] = self.host.taken();
                    let problem = format!("is already one of {of} variables; choose another name ({page} lists them)");
                    self.faults.push(SettingFault::new(key, "", problem));
                } else if !seen.insert(name) {
                    self.faults.push(SettingFault::new(
                        key,
                        "",
                        "is the name of another constant or state; choose another",
                    ));
                }
            }
        }
        let own = state.len() + vc_state.len();
        if constants.len() > MOST_CONSTANTS {
            let problem = format!("has {} names; at most {MOST_CONSTANTS} are possible", constants.len());
            self.faults.push(SettingFault::new("constants", "", problem));
        }
        if own > MOST_OWN / 2 {
            let by_vc = self.host.state_by_vc();
            let problem = format!("and {by_vc} have {own} names; at most {} are possible", MOST_OWN / 2);
            self.faults.push(SettingFault::new("state", "", problem));
        }
        for (event, updates) in events {
            for name in updates.keys() {
                let key = format!("{event}.{name}");
                let is_settable = || self.host.settable().contains(&name.as_str());
                if let Some([_, problem]) =
                    self.host.no_vc(On::Event(event)).filter(|_| vc_state.contains_key(name.as_str()))
                {
                    self.faults.push(SettingFault::new(key, "", problem));
                } else if !state.contains_key(name) && !vc_state.contains_key(name) && !is_settable() {
                    let names = state.keys().chain(vc_state.keys()).map(String::as_str);
                    let names = names.chain(self.host.settable().iter().copied());
                    let targets = self.host.targets();
                    let problem = match nearest(name, names) {
                        Some(meant) => format!("is not a state variable; did you mean {meant}? It must be {targets}"),
                        None => format!("is not a state variable; it must be {targets}"),
                    };
                    self.faults.push(SettingFault::new(key, "", problem));
                }
            }
        }
    }

    fn read(&mut self, key: &str, text: &str) {
        // TOML's `nan` and `inf` arrive as strings.
        let bare = text.trim_start_matches(['+', '-']);
        if matches!(bare, "nan" | "inf") && !self.texts.constants.contains_key(bare) {
            self.faults.push(SettingFault::new(key, text, NOT_FINITE));
            return;
        }
        match parse(text) {
            Ok(tree) => drop(self.trees.insert(key.to_string(), tree)),
            Err(fault) => self.refuse(key, text, &fault),
        }
    }

    fn refuse(&mut self, key: &str, text: &str, fault: &Fault) {
        let line = text.replace(|c: char| c.is_control(), " ");
        let excerpt = fault.excerpt(text).into();
        self.faults
            .push(SettingFault { excerpt, ..SettingFault::new(key, format!("\"{line}\""), fault.problem.as_str()) });
    }

    /// Returns the names that a formula may use.
    fn vocabulary(&self, on: On) -> Vocabulary {
        let mut vocabulary = self.vocabulary.clone();
        if let Some([by_vc, _]) = self.host.no_vc(on) {
            for word in &mut vocabulary.words {
                let is_of_vc = self.texts.vc_state.contains_key(&word.name);
                if is_of_vc || matches!(word.meaning, Meaning::ByVc { .. }) {
                    word.meaning = Meaning::NotHere(by_vc);
                }
            }
        }
        vocabulary.words.extend(self.host.words(on));
        vocabulary.no_random = match on {
            On::Start => Some("this formula is evaluated only once, at the start of the run"),
            On::Event(_) => self.host.no_random(on),
        };
        vocabulary
    }
}
