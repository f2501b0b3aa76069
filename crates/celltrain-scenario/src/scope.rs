//! The current position of the checks in a scenario, and the faults found so far.

use std::fmt;

use celltrain_core::cancellation::CancellationToken;
use celltrain_core::error;

use crate::document::join;
use crate::fault::{Faults, KeyFault};

/// A position in a scenario, and the list of faults found so far. A check gets the scope of a table, and calls
/// [`Scope::at`] for the keys in the table. The path is converted to text only if a fault is found.
pub struct Scope<'a> {
    path: Path<'a>,
    found: &'a mut Faults,
    /// Faults found by the schema check, which has removed the malformed values.
    malformed: &'a [KeyFault],
    /// Token that cancels the checks.
    token: &'a CancellationToken<'a>,
}

/// A position in a scenario, as a step from the enclosing position.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn text(&self) -> String {
        match *self {
            Path::Root => String::new(),
            Path::Key(around, key) => join(&around.text(), key),
            Path::Item(around, number) => format!("{}[{number}]", around.text()),
        }
    }
}

impl<'a> Scope<'a> {
    /// Creates the scope of a whole scenario, whose malformed values have already been removed.
    pub fn root(found: &'a mut Faults, malformed: &'a [KeyFault], token: &'a CancellationToken<'a>) -> Self {
        Self { path: Path::Root, found, malformed, token }
    }

    /// Returns the scope of a key of this table.
    pub fn at<'b>(&'b mut self, key: &'b str) -> Scope<'b> {
        Scope { path: Path::Key(&self.path, key), found: self.found, malformed: self.malformed, token: self.token }
    }

    /// Returns the scope of an item of this list; `number` starts at 0.
    pub fn item(&mut self, number: usize) -> Scope<'_> {
        Scope { path: Path::Item(&self.path, number), found: self.found, malformed: self.malformed, token: self.token }
    }

    /// Returns the path of this position as text, for example `topology.network.flows[3].to`.
    pub fn path(&self) -> String {
        self.path.text()
    }

    /// Reports a fault at this position, without a value.
    pub fn refuse(&mut self, problem: impl Into<String>) {
        self.found.push(KeyFault::of_key(self.path(), problem));
    }

    /// Reports a fault in the value at this position.
    pub fn refuse_value(&mut self, value: impl fmt::Display, problem: impl Into<String>) {
        self.found.push(KeyFault::of_value(self.path(), value, problem));
    }

    /// Reports a fault in the text at this position.
    pub fn refuse_text(&mut self, value: impl fmt::Display, problem: impl Into<String>) {
        self.refuse_value(quoted(value), problem);
    }

    /// Reports a fault that a model found in its own table, which is at this position. The fault's key may refer to a
    /// value inside a setting, such as `thresholds.tcp1`. A fault in a default value that replaced a malformed value is
    /// ignored.
    pub fn refuse_setting(&mut self, fault: error::Fault) {
        let error::Fault { key, value, problem, excerpt } = fault;
        self.at_setting(&key, |scope| {
            if scope.is_malformed() {
                return;
            }
            let fault = KeyFault { excerpt, ..KeyFault::of_value(scope.path(), value, problem) };
            scope.found.push(fault);
        });
    }

    /// Reports a fault in a setting, unless the setting already has a fault.
    pub fn refuse_setting_once(&mut self, fault: error::Fault) {
        if !self.at_setting(&fault.key, |scope| scope.is_refused()) {
            self.refuse_setting(fault);
        }
    }

    /// Calls `act` at a setting of this table, or at a value inside the setting.
    fn at_setting<T>(&mut self, key: &str, act: impl FnOnce(&mut Scope<'_>) -> T) -> T {
        match key.split_once('.') {
            Some((setting, inner)) => act(&mut self.at(setting).at(inner)),
            None => act(&mut self.at(key)),
        }
    }

    /// Merges equal faults; see [`Faults::merge_equal`].
    pub fn merge_equal(&mut self, from: usize, note: impl Fn(usize) -> String) {
        self.found.merge_equal(from, note);
    }

    /// Calls `refuse` at this position, unless this position already has a fault.
    pub fn once(&mut self, refuse: impl FnOnce(&mut Self)) {
        if !self.is_refused() {
            refuse(self);
        }
    }

    /// Returns whether this position has a fault.
    pub fn is_refused(&self) -> bool {
        !self.found.is_empty() && {
            let path = self.path();
            self.found.iter().any(|fault| fault.key == path)
        }
    }

    /// Returns whether this position, or anything inside it, is malformed.
    pub fn is_malformed(&self) -> bool {
        self.is_among(self.malformed)
    }

    /// Returns whether this position, or anything inside it, has a fault of any kind.
    pub fn is_faulty(&self) -> bool {
        self.is_malformed() || self.is_among(self.found)
    }

    fn is_among(&self, faults: &[KeyFault]) -> bool {
        !faults.is_empty() && {
            let path = self.path();
            let inside = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
            faults.iter().any(|fault| fault.key.strip_prefix(path.as_str()).is_some_and(inside))
        }
    }

    /// Returns the token that cancels the checks.
    pub fn token(&self) -> &'a CancellationToken<'a> {
        self.token
    }

    /// Returns all faults found so far, at any position.
    pub fn found(&self) -> &Faults {
        self.found
    }
}

/// Quotes a string in the same way as in a scenario.
pub fn quoted(value: impl fmt::Display) -> String {
    format!("\"{value}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_a_scenario_is_reported_with_the_path_of_its_key() {
        let (mut found, token) = (Faults::default(), CancellationToken::never());
        let mut root = Scope::root(&mut found, &[], &token);
        root.at("topology").at("network").at("flows").item(3).at("to").refuse_text("x", "is not a host");
        root.at("port").at("sw1->sw2").refuse("has no buffer");
        root.at("policy").refuse_setting(error::Fault::new("thresholds.tcp.1", 7, "is too much"));
        root.at("policy").refuse_setting(error::Fault::new("z", 0, "is too little"));
        let keys: Vec<&str> = found.iter().map(|fault| fault.key.as_str()).collect();
        let expected = ["topology.network.flows[3].to", "port.\"sw1->sw2\"", "policy.thresholds.\"tcp.1\"", "policy.z"];
        assert_eq!(keys, expected);
        assert_eq!(found[0].value, "\"x\"");
    }

    #[test]
    fn an_error_in_one_table_of_a_scenario_is_not_attributed_to_another_table() {
        let malformed = [KeyFault::of_key("vc.tcp12.gfr.mcr", "is missing")];
        let (mut found, token) = (Faults::default(), CancellationToken::never());
        let mut root = Scope::root(&mut found, &malformed, &token);
        root.at("vc").at("tcp2").at("abr").refuse("applies to both directions");
        root.at("vc").at("tcp2").at("abr").once(|abr| abr.refuse("twice"));
        assert_eq!(root.found().count(), 1);
        let mut vc = root.at("vc");
        assert_eq!(["tcp1", "tcp12", "tcp2"].map(|name| vc.at(name).is_malformed()), [false, true, false]);
        assert_eq!(["tcp1", "tcp12", "tcp2"].map(|name| vc.at(name).is_faulty()), [false, true, true]);
        assert_eq!([vc.at("tcp2").is_refused(), vc.at("tcp2").at("abr").is_refused()], [false, true]);
    }
}
