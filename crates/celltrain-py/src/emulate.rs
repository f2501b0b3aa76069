//! Emulation of a scenario's network in real time, on Linux.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use celltrain_core::cancellation::CancellationToken;
use celltrain_core::engine::Engine;
use celltrain_core::network::Network;
use celltrain_core::probe::Nothing;
use celltrain_emulate::{Control, Emulation, EmulationError, Host, Lateness, Plan, commands, device, name_stacks};
use celltrain_run::Unfinished;
use celltrain_run::answer::Answer;
use celltrain_run::scenario::Handle;
use celltrain_run::tables::EndedRun;
use celltrain_run::threads::{self, Event};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::cancel::{self, Cancel};
use crate::case::Case;
use crate::{Failure, interpreter};

/// Real-time priority of the emulation's thread, on a scale from 1 to 99. The kernel's own threads have a priority of
/// 50 or more.
const PRIORITY: i32 = 49;

/// Returns the hosts of a scenario's emulation, each with its name, its address, and the shell commands that set up its
/// network device.
#[pyfunction]
#[pyo3(signature = (scenario, cancel=None))]
pub(crate) fn emulated_hosts(
    py: Python<'_>,
    scenario: &Case,
    cancel: Option<Py<Cancel>>,
) -> PyResult<Vec<(String, String, String)>> {
    scenario.with_checked(py, cancel.as_ref(), |checked, token| {
        let mut network = checked.network(checked.scenario().seed, token)?;
        let plan = Plan::new(&mut network)?;
        let host = |host: &Host| {
            (network.nodes[host.node].name.clone(), host.address.to_string(), commands(&network, &plan, host))
        };
        Ok(plan.hosts.iter().map(host).collect())
    })
}

/// Emulates a scenario with these network devices, one file descriptor for each host. Calls `should_continue`
/// regularly, and ends the emulation when this function returns false. Returns the answer of the run, and a report on
/// the emulation.
#[pyfunction]
#[pyo3(signature = (scenario, seed, devices, should_continue, cancel=None))]
pub(crate) fn emulate(
    py: Python<'_>,
    scenario: &Case,
    seed: Option<u64>,
    devices: Vec<i32>,
    should_continue: Py<PyAny>,
    cancel: Option<Py<Cancel>>,
) -> PyResult<(String, String)> {
    let (control, done) = (Control::default(), Mutex::new(None));
    let on = |event| {
        let answered = interpreter::attach(|py| {
            cancel::check(py, cancel.as_ref())?;
            match event {
                Event::Done(_, ended) => {
                    *done.lock().expect("no thread has panicked while it held the lock") = Some(ended);
                }
                Event::Look if control.started.load(Ordering::Relaxed) => {
                    if !should_continue.call0(py)?.is_truthy(py)? {
                        control.over.store(true, Ordering::Relaxed);
                    }
                }
                Event::Look => {}
            }
            Ok::<_, PyErr>(())
        });
        if answered.is_err() {
            control.over.store(true, Ordering::Relaxed);
        }
        answered
    };
    let work = |_, stopped: &AtomicBool| emulated(&scenario.handle, seed, &devices, &control, stopped);
    interpreter::detach(py, || threads::over((1, 1), work, on))?;
    match done.into_inner().expect("no thread has panicked while it held the lock") {
        Some(ended) => Ok(ended.map_err(Failure)?),
        None => Err(PyRuntimeError::new_err("the emulation was aborted without a signal; please report this")),
    }
}

fn emulated(
    scenario: &Handle,
    seed: Option<u64>,
    descriptors: &[i32],
    control: &Control,
    stopped: &AtomicBool,
) -> Result<(String, String), Unfinished> {
    let go_on = || !stopped.load(Ordering::Relaxed);
    let token = &CancellationToken::new(&go_on);
    let checked = scenario.checked(token)?;
    let seed = seed.unwrap_or(checked.scenario().seed);
    let mut network = checked.network(seed, token)?;
    let plan = Plan::new(&mut network)?;
    let network = &network;
    let devices = descriptors.iter().map(|&descriptor| device(descriptor)).collect::<Result<Vec<_>, _>>();
    let devices = devices.map_err(|error| format!("cannot use the hosts' devices: {error}"))?;
    let real_time = interpreter::attach(run_in_real_time).is_ok();
    let (begun, mut lateness) = (Instant::now(), Lateness::default());
    let emulation = Emulation::new(network, &plan, &devices);
    let result = Engine::Fast.run_hosted::<_, EmulationError>(
        network,
        Nothing,
        |_| go_on(),
        |simulation| {
            lateness = emulation.run(simulation, control)?;
            Ok(())
        },
    );
    let mut result = result.map_err(|error| match error {
        EmulationError::Interrupted => Unfinished::Interrupted,
        EmulationError::Device { host, .. } => {
            Unfinished::Refused(format!("host {}: {error}", network.nodes[plan.hosts[host].node].name))
        }
        error => Unfinished::Refused(error.to_string()),
    })?;
    name_stacks(network, &mut result);
    let engine = Engine::Fast.for_network(network);
    let bottleneck = network.links[network.bottleneck].name.clone();
    let name = checked.scenario().name.clone();
    let run = EndedRun::new(name, seed, engine, bottleneck, begun.elapsed().as_secs_f64(), result);
    let answer = Answer { run: &run, wanted: None, token }.text()?;
    Ok((answer, report(network, &plan, &lateness, real_time).to_string()))
}

/// Gives this thread a fixed priority above all ordinary threads (`SCHED_FIFO`). Programs started by this thread do not
/// inherit the priority.
fn run_in_real_time(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    let policy: i32 = os.getattr("SCHED_FIFO")?.bitor(os.getattr("SCHED_RESET_ON_FORK")?)?.extract()?;
    os.call_method1("sched_setscheduler", (0, policy, os.call_method1("sched_param", (PRIORITY,))?))?;
    Ok(())
}

fn report(network: &Network, plan: &Plan, lateness: &Lateness, real_time: bool) -> Value {
    let microseconds = |duration: Duration| duration.as_secs_f64() * 1e6;
    let percentile = |share| lateness.percentile(share).map(microseconds);
    let round_trip = celltrain_core::units::Time(plan.shortest_round_trip.0);
    json!({
        "packets": lateness.packets,
        "lateness_us": {
            "p50": percentile(0.5),
            "p99": percentile(0.99),
            "p999": percentile(0.999),
            "max": percentile(1.0),
        },
        "shortest_round_trip_us": network.clock().seconds(round_trip) * 1e6,
        "real_time": real_time,
        "unused_flows": plan.unused.iter().map(|&flow| &network.flows[flow].name).collect::<Vec<_>>(),
    })
}
