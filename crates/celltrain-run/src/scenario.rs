//! Handles for scenarios. The scenario of a handle is read and checked only once, however often the handle is used.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::Network;
use celltrain_scenario::{Scenario, Warning, build};
use serde_json::Value;

use crate::answer::outlined;
use crate::as_python;
use crate::expressions::Expression;
use crate::memory::{MemoryEstimate, machine};
use crate::reading::{Estimated, read};
use crate::{Unfinished, describe};

/// A scenario that is read and checked only once, either before the handle is created or on first use.
pub struct Handle {
    /// The text of the scenario; `None` if the scenario was read before the handle was created.
    text: Option<String>,
    read: Mutex<Option<Read>>,
}

/// A checked scenario, or the reason for refusing it.
type Read = Result<Arc<Checked>, String>;

impl Handle {
    /// Creates a handle for a JSON text, which is read on first use.
    pub fn of_text(json: String) -> Self {
        Self { text: Some(json), read: Mutex::new(None) }
    }

    /// Moves the scenario and network from `read` into a handle if the scenario has no fault. Returns the handle, and
    /// the reading without scenario and network.
    pub fn of_reading(read: impl Into<Estimated>) -> (Option<Self>, Estimated) {
        let mut read = read.into();
        let network = Mutex::new(read.reading.network.take());
        let checked = read.reading.scenario.take().zip(read.memory).map(|(scenario, memory)| Checked {
            scenario,
            memory,
            warnings: read.reading.warnings.clone(),
            took: read.took,
            network,
        });
        (checked.map(|checked| Self { text: None, read: Mutex::new(Some(Ok(Arc::new(checked)))) }), read)
    }

    /// Returns the checked scenario. If reading is interrupted, the next call reads it again.
    ///
    /// # Errors
    /// Returns an error if the scenario is refused or reading is interrupted.
    pub fn checked(&self, token: &CancellationToken<'_>) -> Result<Arc<Checked>, Unfinished> {
        let mut read = locked(&self.read);
        let read = match &mut *read {
            Some(read) => read,
            not_yet => not_yet.insert(self.read(token)?),
        };
        Ok(read.clone()?)
    }

    fn read(&self, token: &CancellationToken<'_>) -> Result<Read, Interrupted> {
        let text = self.text.as_deref().expect("a scenario without text has been read before");
        let (handle, reading) = Self::of_reading(read("scenario", machine(), token, |reader| reader.json(text))?);
        let read = handle.and_then(|handle| handle.read.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(read.unwrap_or_else(|| Err(describe::reading(&reading).to_string())))
    }

    /// Returns the time that reading the scenario took; zero if the scenario has not been read.
    pub fn took(&self) -> Duration {
        match &*locked(&self.read) {
            Some(Ok(checked)) => checked.took,
            _ => Duration::ZERO,
        }
    }

    /// Returns the scenario without `name` and `seed`, from its original text or its canonical form.
    pub(crate) fn case(&self) -> Value {
        without_name(serde_json::from_str(&self.json()).unwrap_or_default())
    }

    /// Returns the scenario as JSON: its original text, or the canonical form with every default filled in.
    pub fn json(&self) -> String {
        if let Some(text) = &self.text {
            return text.clone();
        }
        match &*locked(&self.read) {
            Some(Ok(checked)) => checked.json().to_string(),
            _ => unreachable!("a scenario without text has been accepted before"),
        }
    }
}

/// Removes `name` and `seed` from a scenario, which do not belong to a case.
fn without_name(mut scenario: Value) -> Value {
    if let Value::Object(keys) = &mut scenario {
        keys.retain(|key, _| key != "name" && key != "seed");
    }
    scenario
}

/// A scenario that passed its checks, and the network that was built for them.
pub struct Checked {
    scenario: Scenario,
    /// Memory estimate for a run, computed by the checks.
    memory: MemoryEstimate,
    warnings: Vec<Warning>,
    /// Time that reading the scenario took.
    took: Duration,
    /// Network built by the checks. The first run takes this network out of the handle, so that the network does not
    /// exist twice.
    network: Mutex<Option<Network>>,
}

impl Checked {
    /// Returns the scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Returns the canonical form of the scenario: JSON with sorted keys and every default filled in.
    pub fn json(&self) -> Value {
        serde_json::to_value(&self.scenario).expect("the scenario was read from a value of this form")
    }

    /// Returns the case in the form that measures read: the canonical form of the scenario without `name` and `seed`.
    pub fn case(&self) -> Value {
        without_name(self.json())
    }

    /// Returns the text of the scenario from which the keys of stored runs are computed.
    pub fn canonical(&self) -> String {
        as_python::json(&self.case())
    }

    /// Returns the reasons to doubt the scenario's results.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns a network for a run with this seed. The first call returns the network built by the checks; later calls
    /// build a new one.
    ///
    /// # Errors
    /// Returns an error if the token is cancelled.
    pub fn network(&self, seed: u64, token: &CancellationToken<'_>) -> Result<Network, Interrupted> {
        let built = locked(&self.network).take();
        match built {
            // The seed does not affect any other part of a network.
            Some(network) => Ok(Network { seed, ..network }),
            None => build::network_unless(&self.scenario, seed, token),
        }
    }

    /// Returns the memory estimate for a run, which does not depend on the seed.
    pub fn memory(&self) -> MemoryEstimate {
        self.memory
    }

    /// Calls `read` with the network of the scenario, and then stores the network for the next run.
    ///
    /// # Errors
    /// Returns the error of `read`, or an error if interrupted.
    pub fn with_network<T, E: From<Interrupted>>(
        &self,
        token: &CancellationToken<'_>,
        read: impl FnOnce(&Network) -> Result<T, E>,
    ) -> Result<T, E> {
        let network = self.network(self.scenario.seed, token)?;
        let seen = read(&network);
        *locked(&self.network) = Some(network);
        seen
    }

    #[cfg(test)]
    pub(crate) fn holds_a_network(&self) -> bool {
        locked(&self.network).is_some()
    }

    /// Returns for each measure the reason why runs of this scenario do not have the measure; `None` for a measure that
    /// runs have.
    ///
    /// # Errors
    /// Returns an error if the token is cancelled.
    pub fn problems(
        &self,
        measures: &[String],
        token: &CancellationToken<'_>,
    ) -> Result<Vec<Option<String>>, Interrupted> {
        let mut outline = self.with_network(token, |network| Ok::<_, Interrupted>(outlined(network)))?;
        outline["scenario"] = self.json();
        if self.scenario.measure.file_size.is_none() {
            outline["file_delay_ms"] = Value::Null;
        }
        Ok(measures.iter().map(|text| Expression::new(text.as_str()).problem(&outline)).collect())
    }

    /// Drops the stored network, to save memory while many scenarios are waiting for their runs.
    pub fn forget_network(&self) {
        *locked(&self.network) = None;
    }
}

/// Locks a mutex even if it is poisoned, because a panic while a scenario is read or a network is built leaves the
/// value unchanged.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use celltrain_scenario::{read_json, read_toml};

    use super::*;

    const TEXT: &str = r#"
        name = "two"
        duration = "10ms"
        seed = 7
        [topology.n_source]
        sources = 2
        link_delay = "5us"
        [port.bottleneck]
        buffer = 100
        [port.bottleneck.policy.ppd]
    "#;

    fn handle() -> Handle {
        let (handle, Estimated { reading, .. }) = Handle::of_reading(read_toml(TEXT, "two.toml"));
        assert!(reading.faults.is_empty(), "{:?}", reading.faults);
        handle.expect("the scenario is valid")
    }

    fn checked(handle: &Handle) -> Arc<Checked> {
        handle.checked(&CancellationToken::never()).expect("the scenario is valid, and no test cancels the check")
    }

    #[test]
    fn the_canonical_form_of_a_scenario_contains_every_default_and_is_stable_when_parsed_again() {
        let text = handle().json();
        assert!(text.contains(r#""link_rate":"155.52Mbps""#), "{text}");
        let again = Handle::of_text(text.clone());
        assert_eq!(again.json(), text);
        assert_eq!(checked(&again).json().to_string(), text);
        let reading = read_json(&text, "scenario");
        assert_eq!(Some(&serde_json::from_str(&text).expect("the text is valid JSON")), reading.scenario.as_ref());
    }

    #[test]
    fn the_first_run_uses_the_network_built_by_the_check_which_equals_a_newly_built_network() {
        let checked = checked(&handle());
        assert!(checked.holds_a_network());
        let first = checked.network(3, &CancellationToken::never()).expect("no test cancels a run");
        assert!(!checked.holds_a_network(), "the runner owns the network");
        let second = checked.network(3, &CancellationToken::never()).expect("no test cancels a run");
        assert_eq!(format!("{first:?}"), format!("{second:?}"));
        assert_eq!(first.seed, 3);
    }

    #[test]
    fn a_network_that_was_built_for_inspection_is_kept_for_the_next_run() {
        let checked = checked(&handle());
        checked.forget_network();
        let seen = checked.with_network(&CancellationToken::never(), |network| {
            Ok::<_, Interrupted>((network.seed, network.flows.len()))
        });
        assert_eq!(seen, Ok((7, 2)));
        assert!(checked.holds_a_network());
    }

    #[test]
    fn a_scenario_is_parsed_only_once_even_if_it_is_refused() {
        let good = Handle::of_text(handle().json());
        assert!(Arc::ptr_eq(&checked(&good), &checked(&good)));
        let bad = Handle::of_text(handle().json().replace(r#""sources":2"#, r#""sources":0"#));
        let refusal = |handle: &Handle| handle.checked(&CancellationToken::never()).map(|_| ()).unwrap_err();
        let Unfinished::Refused(words) = refusal(&bad) else { panic!("the scenario is refused") };
        assert!(words.contains("topology.n_source.sources"), "{words}");
        assert_eq!(refusal(&bad), Unfinished::Refused(words));
    }

    #[test]
    fn a_measure_that_a_scenario_cannot_have_is_reported_without_a_run() {
        let checked = checked(&handle());
        let texts =
            ["efficiency", "flows.tcp9.timeouts", "scenario.seed", "file_delay_ms.mean", "1 /"].map(String::from);
        let problems = checked.problems(&texts, &CancellationToken::never()).expect("no test cancels a check");
        assert_eq!([&problems[0], &problems[2]], [&None, &None]);
        let problem = |place: usize| problems[place].as_deref().expect("no run has the measure");
        assert!(problem(1).starts_with("'flows.tcp9.timeouts' is not in the result of a run: there is no 'tcp9'"));
        assert!(problem(3).contains("this scenario has no files"));
        assert!(problem(4).starts_with("'1 /' lacks"));
    }

    #[test]
    fn a_measure_of_a_scenario_setting_reads_the_canonical_form_of_the_scenario_without_name_and_seed() {
        let read = handle();
        let mut whole: Value = serde_json::from_str(&read.json()).expect("the text is valid JSON");
        let keys = whole.as_object_mut().expect("a scenario is a table");
        assert_eq!((keys.remove("name"), keys.remove("seed")), (Some("two".into()), Some(7.into())));
        assert_eq!(checked(&read).case(), whole);
        assert_eq!(checked(&Handle::of_text(read.json())).case(), whole);
    }

    #[test]
    fn a_scenario_handle_reports_how_long_reading_its_scenario_took() {
        let handle = Handle::of_text(handle().json());
        assert_eq!(handle.took(), Duration::ZERO, "the scenario has not been read");
        checked(&handle);
        assert!(handle.took() > Duration::ZERO);
    }

    #[test]
    fn if_reading_a_scenario_is_cancelled_the_next_call_reads_it_from_the_beginning() {
        let handle = Handle::of_text(handle().json());
        let asked = Cell::new(0);
        let twice = || {
            asked.set(asked.get() + 1);
            asked.get() < 2
        };
        assert_eq!(handle.checked(&CancellationToken::every(1, &twice)).map(|_| ()), Err(Unfinished::Interrupted));
        assert_eq!(checked(&handle).scenario().seed, 7);
    }
}
