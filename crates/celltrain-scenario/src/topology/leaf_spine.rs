//! A leaf-spine network: leaf switches with hosts, and a link from each leaf switch to every spine switch.
//!
//! Source: this project. The networks of Alizadeh and others (CONGA, SIGCOMM 2014), Figure 1, have the same form.

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::{Graph, NodeKind};
use celltrain_core::units::{BitRate, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::links::{check_delay, check_rate};
use super::{Configure, Congests, Layout, Size};
use crate::limits::{MAX_RATE, MIN_RATE};
use crate::scope::Scope;

/// A leaf-spine network: hosts at leaf switches, and a link from each leaf switch to each spine switch. Nodes are
/// `host1` and so on, leaf by leaf, `leaf1` and `spine1` and so on. The topology has no flows of its own: the tables
/// `requests` and `incast` describe the traffic. The port `bottleneck` is `leaf1->spine1`.
///
/// Source: this project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LeafSpine")]
pub struct Config {
    /// Number of leaf switches.
    #[schemars(range(min = 2, max = 10_000))]
    pub leaves: u32,
    /// Number of spine switches, which is also the number of shortest paths between hosts at different leaf switches.
    #[schemars(range(min = 1, max = 10_000))]
    pub spines: u32,
    /// Number of hosts at each leaf switch.
    #[schemars(range(min = 1, max = 10_000))]
    pub hosts_per_leaf: u32,
    /// Rate of every link between a host and its leaf switch.
    pub host_rate: BitRate,
    /// Propagation delay of every link between a host and its leaf switch, one way.
    pub host_delay: Duration,
    /// Rate of every link between a leaf switch and a spine switch. Default: computed from `oversubscription`, or
    /// `host_rate`.
    #[serde(default)]
    pub uplink_rate: Option<BitRate>,
    /// Sum of the rates of a leaf switch's hosts divided by the sum of the rates of its links to spine switches, instead
    /// of `uplink_rate`.
    #[serde(default)]
    pub oversubscription: Option<f64>,
    /// Propagation delay of every link between a leaf switch and a spine switch, one way. Default: `host_delay`.
    #[serde(default)]
    pub uplink_delay: Option<Duration>,
}

impl Config {
    /// Returns the rate of a link between a leaf switch and a spine switch.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casting a large number gives the largest value of the type"
    )]
    fn rate_of_uplinks(&self) -> BitRate {
        let hosts = f64::from(self.hosts_per_leaf) * self.host_rate.bits_per_second as f64;
        let shared =
            |ratio: f64| BitRate::from_bits_per_second((hosts / (ratio * f64::from(self.spines))).round() as u64);
        self.uplink_rate.or_else(|| self.oversubscription.map(shared)).unwrap_or(self.host_rate)
    }
}

impl Configure for Config {
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "no overflow: the values are products of two numbers up to 10^4"
    )]
    fn size(&self) -> Size {
        let [leaves, spines, per_leaf] = [self.leaves, self.spines, self.hosts_per_leaf].map(u64::from);
        let hosts = leaves * per_leaf;
        let links = 2 * (hosts + leaves * spines);
        Size { key: ("hosts_per_leaf", per_leaf), nodes: hosts + leaves + spines, links, flows: 0, crossings: 0 }
    }

    fn check(&self, scope: &mut Scope<'_>) -> Result<Option<Layout>, Interrupted> {
        check_rate("host_rate", self.host_rate, scope);
        check_delay("host_delay", self.host_delay, scope);
        if let Some(rate) = self.uplink_rate {
            check_rate("uplink_rate", rate, scope);
        }
        if let Some(delay) = self.uplink_delay {
            check_delay("uplink_delay", delay, scope);
        }
        let Some(ratio) = self.oversubscription else { return Ok(None) };
        let mut scope = scope.at("oversubscription");
        let rate = self.rate_of_uplinks();
        if !(ratio > 0.0 && ratio.is_finite()) {
            scope
                .refuse_value(ratio, "is not a positive ratio, such as 2 for hosts with twice the rate of the uplinks");
        } else if let Some(rate) = self.uplink_rate {
            let problem = format!(
                "sets the rate of the uplinks, which uplink_rate = \"{rate}\" sets too; leave out one of these keys"
            );
            scope.refuse_value(ratio, problem);
        } else if rate < MIN_RATE || rate > MAX_RATE {
            scope.refuse_value(ratio, format!("gives uplinks of {rate}; a rate must be from {MIN_RATE} to {MAX_RATE}"));
        }
        Ok(None)
    }

    #[expect(
        clippy::arithmetic_side_effects,
        reason = "no overflow: the values are products of two numbers up to 10^4"
    )]
    fn lay_out(&self, token: &CancellationToken<'_>) -> Result<Layout, Interrupted> {
        let uplink = (self.rate_of_uplinks(), self.uplink_delay.unwrap_or(self.host_delay));
        let mut graph = Graph::default();
        let leaves = token.map(1..=self.leaves, |i| graph.add_node(format!("leaf{i}"), NodeKind::Switch))?;
        let spines = token.map(1..=self.spines, |i| graph.add_node(format!("spine{i}"), NodeKind::Switch))?;
        let bottleneck = graph.links.next_key();
        for &leaf in &leaves {
            token.tick(spines.len())?;
            for &spine in &spines {
                graph.connect(leaf, spine, uplink.0, uplink.1);
            }
        }
        for (&leaf, before) in leaves.iter().zip(0u32..) {
            token.tick(self.hosts_per_leaf as usize)?;
            for number in 1..=self.hosts_per_leaf {
                let host = graph.add_node(format!("host{}", before * self.hosts_per_leaf + number), NodeKind::Host);
                graph.connect(host, leaf, self.host_rate, self.host_delay);
            }
        }
        Ok(Layout { graph, flows: Vec::new(), bottleneck })
    }

    fn congests(&self) -> Congests {
        Congests::Everywhere
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config {
        leaves: 2,
        spines: 3,
        hosts_per_leaf: 2,
        host_rate: BitRate::from_bits_per_second(155_520_000),
        host_delay: Duration::from_microseconds(5),
        uplink_rate: None,
        oversubscription: Some(2.0),
        uplink_delay: Some(Duration::from_microseconds(10)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Faults;
    use crate::topology::Topology;

    fn faults(config: Config) -> Vec<(String, String)> {
        let mut faults = Faults::default();
        let topology = Topology::LeafSpine(config);
        topology.check(true, &mut Scope::root(&mut faults, &[], &CancellationToken::never())).unwrap();
        faults.iter().map(|fault| (fault.key.clone(), fault.value.clone())).collect()
    }

    #[test]
    fn every_leaf_switch_is_connected_to_every_spine_switch_and_to_its_hosts() {
        let Layout { graph, bottleneck, .. } = sample().lay_out(&CancellationToken::never()).unwrap();
        let names: Vec<&str> = graph.links.iter().step_by(2).map(|link| link.name.as_str()).collect();
        let uplinks =
            ["leaf1->spine1", "leaf1->spine2", "leaf1->spine3", "leaf2->spine1", "leaf2->spine2", "leaf2->spine3"];
        assert_eq!(names[..6], uplinks);
        assert_eq!(names[6..], ["host1->leaf1", "host2->leaf1", "host3->leaf2", "host4->leaf2"]);
        assert_eq!(graph.links[bottleneck].name, "leaf1->spine1");
    }

    #[test]
    fn oversubscription_divides_the_link_rate_of_the_hosts_among_the_uplinks_of_a_leaf() {
        // A leaf switch has two hosts of 155.52 Mb/s each. Its three uplinks share half of the hosts' total rate.
        assert_eq!(sample().rate_of_uplinks(), BitRate::from_bits_per_second(51_840_000));
        assert_eq!(Config { oversubscription: None, ..sample() }.rate_of_uplinks(), sample().host_rate);
    }

    #[test]
    fn impossible_oversubscription_ratios_and_two_settings_for_the_same_rate_are_refused() {
        let refused = |ratio: &str| vec![("topology.leaf_spine.oversubscription".to_string(), ratio.to_string())];
        assert_eq!(faults(sample()), []);
        for (ratio, written) in [(0.0, "0"), (-1.0, "-1"), (1e9, "1000000000")] {
            assert_eq!(faults(Config { oversubscription: Some(ratio), ..sample() }), refused(written));
        }
        assert_eq!(faults(Config { uplink_rate: Some(sample().host_rate), ..sample() }), refused("2"));
    }
}
