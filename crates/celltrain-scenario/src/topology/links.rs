//! Rates and delays of links, and tables with rates and delays for the links of individual hosts.

use std::collections::BTreeMap;

use celltrain_core::index::LinkIndex;
use celltrain_core::units::{BitRate, Duration};
use celltrain_formula::names::by_name;

use crate::limits::{MAX_DELAY, MAX_RATE, MIN_RATE};
use crate::scope::Scope;

/// Returns the rate of an OC-3. ATM Forum 96-1269, section 3.1: all links run at 155.52 Mb/s, cells included.
pub fn oc3() -> BitRate {
    BitRate::from_bits_per_second(155_520_000)
}

/// Refuses a rate outside the valid range of links.
pub fn check_rate(key: &str, rate: BitRate, scope: &mut Scope<'_>) {
    if rate < MIN_RATE || rate > MAX_RATE {
        scope.at(key).refuse_text(rate, format!("is not a positive rate from {MIN_RATE} to {MAX_RATE}"));
    }
}

/// Refuses a delay outside the valid range of links.
pub fn check_delay(key: &str, delay: Duration, scope: &mut Scope<'_>) {
    if delay > MAX_DELAY {
        scope.at(key).refuse_text(delay, format!("must be a delay of at most {MAX_DELAY}"));
    }
}

/// Tables of the rates and delays of hosts' links, by the name of the host. The name of a host is a stem and a number,
/// such as `host1`.
#[derive(Clone, Copy)]
pub(super) struct Access<'a> {
    pub(super) rates: &'a BTreeMap<String, BitRate>,
    pub(super) delays: &'a BTreeMap<String, Duration>,
}

impl Access<'_> {
    /// Refuses names that match none of the hosts `stem1` to `stemN`, and rates and delays outside the ranges for
    /// links.
    pub(super) fn check(self, stem: &str, hosts: u32, scope: &mut Scope<'_>) {
        let names = self.rates.keys().map(|name| (RATES, name));
        for (key, name) in names.chain(self.delays.keys().map(|name| (DELAYS, name))) {
            if !stands_for_some(name, stem, hosts) {
                let problem = format!(
                    "is not one of {stem}1 to {stem}{hosts}; write one of these names, a range of \
                                       them, or default"
                );
                scope.at(key).at(name).refuse(problem);
            }
        }
        for (name, &rate) in self.rates {
            check_rate(name, rate, &mut scope.at(RATES));
        }
        for (name, &delay) in self.delays {
            check_delay(name, delay, &mut scope.at(DELAYS));
        }
    }

    /// Returns the rate and the delay of a host's link. `rate` and `delay` are the defaults for hosts without an entry.
    pub(super) fn of(self, host: &str, rate: BitRate, delay: Duration) -> (BitRate, Duration) {
        (of_host(self.rates, host).unwrap_or(rate), of_host(self.delays, host).unwrap_or(delay))
    }

    /// Returns the number of keys in the two tables together.
    pub(super) fn len(self) -> usize {
        self.rates.len().saturating_add(self.delays.len())
    }
}

const RATES: &str = "access_rates";
const DELAYS: &str = "access_delays";
/// Key of the entry for all hosts without an entry of their own.
const DEFAULT: &str = "default";

/// Looks up a host in a table: the entry with the host's name, or else the first range that contains the host, or else
/// the entry `default`.
fn of_host<T: Copy>(table: &BTreeMap<String, T>, host: &str) -> Option<T> {
    by_name(table, host).or_else(|| table.get(DEFAULT)).copied()
}

/// Returns whether a key is the name of a host, a range of hosts, or `default`.
fn stands_for_some(name: &str, stem: &str, hosts: u32) -> bool {
    let number = |name: &str| name.parse::<u32>().ok().filter(|n| (1..=hosts).contains(n) && *name == n.to_string());
    let Some(numbers) = name.strip_prefix(stem) else { return name == DEFAULT };
    match numbers.split_once('-') {
        // A range of hosts may extend beyond the last host.
        Some((first, last)) => number(first).is_some_and(|first| last.parse::<u32>().is_ok_and(|last| last >= first)),
        None => number(numbers).is_some(),
    }
}

/// Returns the first link from which on all given paths are identical; `None` if there is no such link.
#[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are indices of lists in memory")]
pub(crate) fn meeting(paths: &[&[LinkIndex]]) -> Option<LinkIndex> {
    let (first, others) = paths.split_first()?;
    let shared = |behind: &usize| {
        let link = |path: &[LinkIndex]| path.len().checked_sub(behind + 1).map(|place| path[place]);
        link(first).is_some() && others.iter().all(|path| link(path) == link(first))
    };
    let shared = (0..first.len()).take_while(shared).count();
    (shared > 0).then(|| first[first.len() - shared])
}
