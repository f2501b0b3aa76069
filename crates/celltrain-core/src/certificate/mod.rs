//! Certificates: the seeds and settings of buffers and policies under which a run would have been the same run.
//!
//! Source: `docs/design/certificates.md`. A run is a function of the network, the seed and the answers of its policies.
//! A *question* is a call to a policy for a decision, with the values that the policy reads. Its *answer* is the
//! decision. A [`Recording`] collects the questions of a run, with their answers. If another setting gives the same
//! answers and leaves room for the same cells, the whole run is the same, cell by cell, by induction over the
//! questions. So a candidate is checked by asking its policies the recorded questions ([`Certificate::covers`]).
//!
//! A recording wraps each policy, at the only two places where a network creates policies. Without a recording, nothing
//! is wrapped.

mod outline;
mod pools;
mod ports;
mod settings;

use typed_index_collections::TiVec;

use crate::index::{LinkIndex, MemoryIndex};
use crate::memory::MemoryPolicyConfig;
use crate::metrics::RunResult;
use crate::network::{LinkTimes, Network, Recording};
use crate::policy::PolicyConfig;
use outline::Outline;
use pools::PoolCertificate;
use ports::PortCertificate;

/// The reason why a run has no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncertified {
    /// Code outside the core makes decisions: a Python class, or a real stack at the ends of a flow.
    OutsideCode,
    /// A memory's policy needs predictions from another run.
    Predictions,
    /// Slowdowns compare requests with separate runs, whose queues differ.
    Slowdowns,
    /// The records of the run's decisions would take too much memory.
    TooLarge,
}

impl Uncertified {
    /// Returns the reason in words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::OutsideCode => "a Python class or a real stack takes part in the run",
            Self::Predictions => "a policy uses predictions from another run",
            Self::Slowdowns => "measures of slowdowns compare requests with runs of their own",
            Self::TooLarge => "the recorded decisions of the run would take more than 64 MB",
        }
    }

    /// Returns the reason if it is known before the run.
    pub fn before(network: &Network) -> Option<Self> {
        let is_python = network.links.iter().any(|link| matches!(link.policy, PolicyConfig::Python(_)));
        let mut pools = network.memories.iter().flat_map(|memory| &memory.pools);
        if is_python
            || pools.clone().any(|pool| matches!(pool.policy, MemoryPolicyConfig::Python(_)))
            || network.flows.iter().any(|flow| flow.outside)
        {
            return Some(Self::OutsideCode);
        }
        pools.any(|pool| pool.policy.needs_predictions()).then_some(Self::Predictions)
    }
}

/// The questions and answers of a finished run.
#[derive(Debug)]
pub struct Certificate {
    outline: Outline,
    /// The seed, if the run drew random numbers.
    seed: Option<u64>,
    ports: TiVec<LinkIndex, PortCertificate>,
    memories: TiVec<MemoryIndex, PoolCertificate>,
}

impl Certificate {
    /// Creates the certificate of a run that has ended. `recording` must have been the network's
    /// [recording](Network::recording) during the run.
    ///
    /// # Errors
    /// Returns the reason why the run has no certificate.
    pub fn new(network: &Network, recording: &Recording, result: &RunResult) -> Result<Self, Uncertified> {
        if let Some(reason) = Uncertified::before(network) {
            return Err(reason);
        }
        if recording.budget.is_exceeded() {
            return Err(Uncertified::TooLarge);
        }
        let (mut of_ports, mut of_pools) = (recording.ports.locked(), recording.pools.locked());
        let ports = network.links.iter_enumerated().map(|(number, link)| {
            PortCertificate::new(link, &result.ports[number], of_ports.remove(&number).unwrap_or_default())
        });
        let ports = ports.collect();
        let memories = network
            .memories
            .iter()
            .zip(&result.memories)
            .map(|(memory, result)| PoolCertificate::new(memory, result, of_pools.remove(&memory.name)));
        let seed = (!recording.drew_nothing()).then_some(network.seed);
        Ok(Self { outline: Outline::of(network), seed, memories: memories.collect(), ports })
    }

    /// Returns whether a run of `candidate` is the same run, cell by cell: the networks differ only in buffers, shared
    /// memories and policies, and in the seed if the run drew no random number, and the candidate's policies give the same
    /// answers. False if this is not known.
    pub fn covers(&self, candidate: &Network) -> bool {
        let has_seed = self.seed.is_none_or(|seed| seed == candidate.seed);
        if !has_seed || Uncertified::before(candidate).is_some() || Outline::of(candidate) != self.outline {
            return false;
        }
        let (clock, routing) = (candidate.clock(), candidate.routing());
        let times = LinkTimes::of(candidate, clock);
        let in_memory = |link| candidate.memories.iter().any(|memory| memory.ports.contains(&link));
        self.ports
            .iter_enumerated()
            .all(|(link, port)| port.covers((candidate, link), &routing, clock, in_memory(link)))
            && self.memories.iter_enumerated().all(|(index, memory)| {
                let config = &candidate.memories[index];
                memory.is_of(config) || memory.covers(config, || candidate.memory(config, &times, clock))
            })
    }

    /// Returns the smallest buffer of a port with which the run would have been identical, if the port lost no cell for
    /// lack of room and its policy was never called.
    pub fn least_buffer(&self, link: LinkIndex) -> Option<u32> {
        self.ports[link].least_buffer()
    }
}

#[cfg(test)]
mod tests;
