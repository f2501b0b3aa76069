//! The part of a network that a run and a candidate must have in common, so that a certificate can cover the candidate.

use std::fmt::{self, Write};

use crate::memory::complete_sharing;
use crate::network::Network;
use crate::policy::tail_drop;

/// A digest of everything in a network except the settings that certificates cover. Two networks with the same outline
/// differ at most in these settings: a collision of these 128-bit digests is as unlikely as a hardware fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outline(u128);

impl Outline {
    pub(super) fn of(network: &Network) -> Self {
        let mut bare = Network { recording: None, seed: 0, ..network.clone() };
        let mut digest = Digest::default();
        for link in &mut bare.links {
            if link.edge.is_some() {
                continue;
            }
            link.policy = tail_drop::Config {}.into();
            // With an allocator, the size of the buffer stays in the outline, because allocators read it.
            if link.allocator.is_none() {
                // Of the settings of congestion marking, only the limits depend on the buffer.
                let limits = link.marking.as_ref().map(|marking| marking.limits(link.buffer));
                digest.add(&limits);
                link.buffer = None;
            }
        }
        for memory in &mut bare.memories {
            if memory.is_single_pool() {
                memory.cells = 0;
                for pool in &mut memory.pools {
                    (pool.cells, pool.policy) = (0, complete_sharing::Config::default().into());
                }
            }
        }
        digest.add(&bare);
        Self(digest.0)
    }
}

/// FNV-1a with 128 bits, over the text of values.
struct Digest(u128);

impl Default for Digest {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Digest {
    fn add(&mut self, value: &impl fmt::Debug) {
        write!(self, "{value:?};").expect("a digest takes every text");
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        Ok(())
    }
}
