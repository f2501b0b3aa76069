//! The scenario tables that describe requests: connections that open during the run, send a number of bytes, and close.

use std::fmt;

use celltrain_core::requests::{PairOrder, QueryTimes};
use celltrain_core::tcp::TcpConfig;
use celltrain_core::traffic::on_off::Times;
use celltrain_core::units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stack::StackConfig;

/// Requests that arrive at random times. Each request is a separate TCP connection from one host to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Requests")]
pub struct RequestOptions {
    /// Mean share of the rate of the sending hosts' links that the cells of the requests take. Sizes are rounded up to
    /// full segments. Handshakes and acknowledgements are not counted.
    pub load: f64,
    /// Sizes of the requests: a distribution of sizes, or one size for all requests.
    pub sizes: SizeOptions,
    /// Rule that selects the pair of hosts of each request.
    #[serde(default)]
    pub pairs: PairOptions,
    /// Hosts that send, by name, range (`host1-5`) or pattern (`host*`). Default: all hosts.
    #[serde(default = "all_hosts")]
    pub sources: Vec<String>,
    /// Hosts that receive, by name, range or pattern. Default: all hosts.
    #[serde(default = "all_hosts")]
    pub destinations: Vec<String>,
    /// True if connections open with a handshake. If false, a connection sends its first data at once.
    #[serde(default = "yes")]
    pub handshake: bool,
    /// TCP of these requests. Default: the TCP of all flows.
    #[serde(default)]
    pub tcp: Option<TcpConfig>,
    /// Real transport stack of these requests, instead of a TCP. Default: the stack of all flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackConfig>,
}

/// Queries: several hosts send their answers to one host at once, each over a separate TCP connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Incast")]
pub struct IncastOptions {
    /// n: number of hosts that answer a query. The hosts are drawn at random for each query.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub senders: u32,
    /// Size of all answers to a query together. Each answering host sends an equal share.
    pub bytes: Bytes,
    /// Time between two queries, or the mean of this time if intervals are random. The same time precedes the first
    /// query.
    #[schemars(example = "10ms")]
    pub interval: Duration,
    /// Selects fixed or random intervals between queries.
    #[serde(default)]
    pub times: Times,
    /// Hosts that send queries, by name, range (`host1-5`) or pattern (`host*`). One of these hosts is drawn at random
    /// for each query. Default: all hosts.
    #[serde(default = "all_hosts")]
    pub receivers: Vec<String>,
    /// Maximum delay of an answer. Each answer starts after a random delay between 0 and this value.
    #[serde(default)]
    pub spread: Duration,
    /// True if connections open with a handshake. If false, a connection sends its first data at once.
    #[serde(default = "yes")]
    pub handshake: bool,
    /// TCP of the answers. Default: the TCP of all flows.
    #[serde(default)]
    pub tcp: Option<TcpConfig>,
    /// Real transport stack of the answers, instead of a TCP. Default: the stack of all flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackConfig>,
}

/// The sizes of requests: one size, the name of a distribution, or the rows of a cumulative distribution function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(
    rename = "Sizes",
    extend(
        "x-expect" = "\"web_search\", \"data_mining\", a size such as \"20kB\", a file with the ending .csv, or rows of bytes and probability such as [[1000, 0.5], [20000, 1]]"
    )
)]
pub enum SizeOptions {
    /// One size for all requests.
    Constant(Bytes),
    /// Sizes in bytes, each with the probability that a request has at most this size. The distribution function is
    /// linear between these points.
    Points(Vec<(f64, f64)>),
    /// The name of a distribution, or a file with rows of bytes and probability.
    Named(String),
}

impl fmt::Display for SizeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeOptions::Constant(bytes) => bytes.fmt(f),
            SizeOptions::Points(points) => write!(f, "{} rows", points.len()),
            SizeOptions::Named(name) => f.write_str(name),
        }
    }
}

/// Rule that selects the pairs of hosts of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Pairs")]
pub enum PairOptions {
    /// The pair of hosts is drawn at random for each request.
    #[default]
    Random,
    /// All pairs of hosts take turns, in a random order that is drawn once.
    AllToAll,
}

impl From<PairOptions> for PairOrder {
    fn from(options: PairOptions) -> Self {
        match options {
            PairOptions::Random => PairOrder::Random,
            PairOptions::AllToAll => PairOrder::InTurn,
        }
    }
}

/// Returns the distribution of the intervals between queries.
pub(crate) fn query_times(times: Times) -> QueryTimes {
    match times {
        Times::Fixed => QueryTimes::Fixed,
        Times::Exponential => QueryTimes::Exponential,
    }
}

fn all_hosts() -> Vec<String> {
    vec!["*".to_string()]
}

fn yes() -> bool {
    true
}
