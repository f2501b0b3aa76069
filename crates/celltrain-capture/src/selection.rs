//! Selection of the ports, VCs, flows and time window of a run to observe.

use std::fmt::{self, Display, Formatter, Write};

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use celltrain_core::index::{FlowIndex, LinkIndex, VcIndex};
use celltrain_core::network::Network;
use celltrain_core::units::{Duration, Time};

/// Selection of the part of a run to observe, by names of ports, VCs and flows and by a time window. An empty selection
/// observes the whole run, but cells only at the bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    ports: Option<Vec<String>>,
    vcs: Option<Vec<String>>,
    flows: Option<Vec<String>>,
    window: Option<[Duration; 2]>,
}

/// A selection in which the names are converted to indices into the network.
pub struct Selected {
    /// True for each link whose frames are observed.
    pub frames: TiVec<LinkIndex, bool>,
    /// True for each link whose cells are observed.
    pub cells: TiVec<LinkIndex, bool>,
    /// True for each VC that is observed.
    pub vcs: TiVec<VcIndex, bool>,
    /// True for each flow that is observed.
    pub flows: TiVec<FlowIndex, bool>,
    /// True if connections of requests are observed. They are observed unless flows or VCs are selected.
    pub requests: bool,
    /// First instant in the time window, and first instant after the window.
    pub window: [Time; 2],
}

impl Selected {
    /// Returns whether the connection of a flow or a request is observed.
    pub fn keeps(&self, flow: FlowIndex) -> bool {
        self.flows.get(flow).copied().unwrap_or(self.requests)
    }
}

impl Selection {
    /// Selects these ports, VCs and flows, in a time window such as `1.2s:1.3s`, for runs of `duration`.
    ///
    /// # Errors
    /// If the time window is invalid. The error describes the problem.
    pub fn new(
        duration: Duration,
        [ports, vcs, flows]: [Option<Vec<String>>; 3],
        window: Option<&str>,
    ) -> Result<Self, Wrong> {
        let window = window.map(|text| read_window(text, duration)).transpose()?;
        Ok(Self { ports, vcs, flows, window })
    }

    /// Returns the end of the time window, or `None` if the window has no end.
    pub fn until(&self) -> Option<Duration> {
        self.window.map(|[_, until]| until)
    }

    /// Converts the names in the selection to indices into a network.
    ///
    /// # Errors
    /// If a selected port, VC or flow does not exist. The error contains its name.
    pub fn of(&self, network: &Network) -> Result<Selected, Wrong> {
        let ports: Vec<&str> = network.links.iter().map(|link| link.name.as_str()).collect();
        let vcs: Vec<&str> = network.vcs.iter().map(|vc| vc.name.as_str()).collect();
        let flows: Vec<&str> = network.flows.iter().map(|flow| flow.name.as_str()).collect();
        let bottleneck = |name: &str| (name == "bottleneck").then_some(network.bottleneck.into());
        let at_ports =
            self.ports.as_ref().map(|names| find("ports", "a port", names, &ports, bottleneck)).transpose()?;
        let of_vcs = self.vcs.as_ref().map(|names| find("vcs", "a VC", names, &vcs, |_| None)).transpose()?;
        if let Some(names) = self.flows.as_ref().filter(|_| flows.is_empty()) {
            let groups: Vec<&str> = network.requests.groups.iter().map(|group| group.name.as_str()).collect();
            let problem = format!(
                "is not a flow: this network has no flows, only requests ({}). Leave the option out to record the packets \
                 of all requests",
                listed(&groups)
            );
            return Err(Wrong { option: "flows", value: names.join(", "), problem });
        }
        let of_flows = self.flows.as_ref().map(|names| find("flows", "a flow", names, &flows, |_| None)).transpose()?;
        let flow_vcs = |chosen: &TiSlice<FlowIndex, bool>| {
            let mut own: TiVec<VcIndex, bool> = ti_vec![false; vcs.len()];
            for (flow, _) in network.flows.iter().zip(chosen).filter(|(_, chosen)| **chosen) {
                own[flow.data_vc] = true;
                own[flow.ack_vc] = true;
            }
            own
        };
        let vc_flows = |chosen: &TiSlice<VcIndex, bool>| -> TiVec<FlowIndex, bool> {
            network.flows.iter().map(|flow| chosen[flow.data_vc] || chosen[flow.ack_vc]).collect()
        };
        if let (Some(own), Some(of_flows), Some(names)) = (&of_vcs, &of_flows, &self.vcs) {
            let theirs = flow_vcs(of_flows);
            if !own.iter().zip(&theirs).any(|(own, theirs)| *own && *theirs) {
                let known: Vec<&str> =
                    vcs.iter().zip(&theirs).filter(|(_, has)| **has).map(|(name, _)| *name).collect();
                let problem = format!("excludes every VC that the option flows selects: {}", listed(&known));
                return Err(Wrong { option: "vcs", value: names.join(", "), problem });
            }
        }
        let clock = network.clock();
        let end = network.end(clock);
        let only_bottleneck = || network.links.keys().map(|link| link == network.bottleneck).collect();
        Ok(Selected {
            requests: self.flows.is_none() && self.vcs.is_none(),
            frames: at_ports.clone().unwrap_or_else(|| ti_vec![true; ports.len()]),
            cells: at_ports.unwrap_or_else(only_bottleneck),
            vcs: both(of_vcs.clone(), of_flows.as_deref().map(flow_vcs), vcs.len()),
            flows: both(of_flows, of_vcs.as_deref().map(vc_flows), flows.len()),
            window: match self.window {
                None => [Time::default(), Time(end.0.saturating_add(1))],
                Some([from, to]) => {
                    // A time window that extends to the end of the run also includes events at the last instant of the
                    // run.
                    let last = if to >= network.duration { Time(end.0.saturating_add(1)) } else { at(network, to) };
                    [at(network, from), last]
                }
            },
        })
    }
}

fn at(network: &Network, since_start: Duration) -> Time {
    Time::default() + network.clock().span(since_start)
}

/// An error in an option that selects a part of a run: the option's name, its value and the problem, often with a
/// suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Name of the option.
    pub option: &'static str,
    /// Value of the option.
    pub value: String,
    /// Description of the problem with the value.
    pub problem: String,
}

impl Display for Wrong {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {:?} {}", self.option, self.value, self.problem)
    }
}

/// Maximum number of known names that an error lists.
const SHOWN: usize = 12;

impl Wrong {
    /// Creates the error for a value that is not a known name.
    pub fn new(option: &'static str, value: &str, problem: &str, known: &[&str]) -> Self {
        let near = known.iter().min_by_key(|known| strsim::damerau_levenshtein(known, value));
        let guess = near.filter(|near| strsim::damerau_levenshtein(near, value) <= value.chars().count().max(3) / 2);
        let mut problem = problem.to_owned();
        if let Some(guess) = guess {
            write!(problem, "; did you mean {guess}?").expect("writing to a string cannot fail");
        }
        write!(problem, " (choose from {})", listed(known)).expect("writing to a string cannot fail");
        Self { option, value: value.to_owned(), problem }
    }
}

/// Lists at most [`SHOWN`] names for an error, followed by the number of other names.
pub(crate) fn listed(names: &[&str]) -> String {
    let more = names.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    names[..names.len() - more].join(", ") + &rest
}

/// Returns for each known name whether `names` contains this name.
fn find<I>(
    option: &'static str,
    what: &str,
    names: &[String],
    known: &[&str],
    other: impl Fn(&str) -> Option<usize>,
) -> Result<TiVec<I, bool>, Wrong> {
    let mut chosen = vec![false; known.len()];
    for name in names {
        let at = known.iter().position(|known| known == name).or_else(|| other(name));
        let Some(at) = at else {
            return Err(Wrong::new(option, name, &format!("is not {what} of this network"), known));
        };
        chosen[at] = true;
    }
    Ok(chosen.into())
}

/// Returns the intersection of two selections among `all` items.
fn both<I>(a: Option<TiVec<I, bool>>, b: Option<TiVec<I, bool>>, all: usize) -> TiVec<I, bool> {
    match (a, b) {
        (Some(a), Some(b)) => a.iter().zip(&b).map(|(a, b)| *a && *b).collect(),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => ti_vec![true; all],
    }
}

/// Parses a time window such as `1.2s:1.3s`. The start or the end of the window may be omitted.
fn read_window(text: &str, duration: Duration) -> Result<[Duration; 2], Wrong> {
    let wrong = |problem: String| Wrong { option: "window", value: text.to_owned(), problem };
    let Some((from, to)) = text.split_once(':') else {
        return Err(wrong("is not a time window such as 1.2s:1.3s".to_owned()));
    };
    let end = |part: &str, default: Duration| {
        if part.trim().is_empty() {
            return Ok(default);
        }
        part.trim().parse::<Duration>().map_err(|error| wrong(format!("has the end {part:?}, which is not {error}")))
    };
    let (from, to) = (end(from, Duration::default())?, end(to, duration)?);
    if from == to {
        return Err(wrong("is empty: its start and its end are equal".to_owned()));
    }
    if from > to {
        return Err(wrong("ends before it begins; write the earlier time first".to_owned()));
    }
    if from >= duration || to > duration {
        return Err(wrong(format!("lies outside the run, which lasts {duration}")));
    }
    Ok([from, to])
}
