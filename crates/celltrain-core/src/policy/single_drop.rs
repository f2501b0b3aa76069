//! Single drop: a VC that reaches its threshold loses one frame, and no other until it has been below the threshold
//! again.
//!
//! Source: ATM Forum 97-0831, section 3, whose symbols `x_i` and `r_i` are used; `docs/mechanisms.md` 2.10, A-14. One
//! loss is enough to halve the window of a TCP connection. So the thresholds determine the windows, and therefore the
//! rates, of VCs that share a FIFO. Differences from the source: a VC's cells are compared with its threshold only when
//! one of its own frames starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::{TiVec, ti_vec};

use super::{BufferPolicy, Configure, Decision, PerVc, Settings, View};
use crate::coverage::reached;
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;

/// Single drop: a VC that has reached its threshold when a frame starts loses that frame. It loses no other until one
/// of its frames starts below the threshold.
///
/// Source: ATM Forum 97-0831, section 3 and Table 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SingleDrop")]
pub struct Config {
    /// `r_i`: the number of waiting cells at which a VC loses a frame; a number, or a table keyed by VC name.
    #[schemars(extend("x-unit" = "cells"))]
    pub thresholds: PerVc,
}

/// The policy.
#[derive(Debug)]
pub struct SingleDrop {
    r: TiVec<Label, f64>,
    /// For each VC, by label, true if it has been below its threshold since it last lost a frame.
    armed: TiVec<Label, bool>,
}

impl Configure for Config {
    type Policy = SingleDrop;

    fn settings(&self) -> Settings<'_> {
        Settings { per_vc: vec![("thresholds", &self.thresholds)], ..Settings::default() }
    }

    fn check(&self, capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
        let problem = "must be a threshold of at least 1 cell; otherwise the VC would lose its first frame";
        let mut faults = self.thresholds.check("thresholds", |r| r >= 1.0, problem);
        if let Some(k) = capacity {
            let problem = format!("is above the buffer of {k} cells; a VC could not reach it");
            faults.extend(self.thresholds.check("thresholds", |r| r <= f64::from(k) || r.is_nan(), &problem));
        }
        faults
    }

    fn build(&self, _capacity: u32, vcs: &[&str]) -> SingleDrop {
        SingleDrop { r: self.thresholds.resolve(vcs).into(), armed: ti_vec![true; vcs.len()] }
    }
}

impl BufferPolicy for SingleDrop {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, _rng: &mut Stream) -> bool {
        let is_below = f64::from(buffer.per_vc[vc]) < self.r[vc];
        let was_armed = std::mem::replace(&mut self.armed[vc], is_below);
        reached!(SecondFrameSpared if !is_below && !was_armed);
        is_below || !was_armed
    }

    fn explain(&self, _buffer: &View<'_>, vc: Label) -> Decision {
        Decision { rule: "Y_i reaches R_i", share: Some(self.r[vc]), ..Decision::default() }
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(capacity: u32) -> Config {
    Config { thresholds: PerVc::Same(f64::from((capacity / 4).saturating_add(1))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::Bench;

    fn lost(bench: &Bench) -> u64 {
        bench.port.counters().discarded_frame
    }

    #[test]
    fn single_drop_drops_one_frame_each_time_a_vc_reaches_its_threshold() {
        let mut bench = Bench::new(&Config { thresholds: PerVc::Same(4.0) }, 100, 1);
        for (frames, expected) in [(2, 0), (1, 2), (5, 2)] {
            for _ in 0..frames {
                bench.offer_frame(0, 2);
            }
            assert_eq!(lost(&bench), expected);
        }
        while bench.port.take().is_some() {}
        bench.offer_frame(0, 2);
        bench.offer_frame(0, 2);
        assert_eq!(lost(&bench), 2, "the VC is below its threshold again, and no frame is lost");
        bench.offer_frame(0, 2);
        assert_eq!(lost(&bench), 4);
    }

    #[test]
    fn under_single_drop_each_vc_has_its_own_threshold() {
        let thresholds = PerVc::from([("vc0", 2.0), ("vc1", 6.0)]);
        let mut bench = Bench::new(&Config { thresholds }, 100, 2);
        for _ in 0..3 {
            bench.offer_frame(0, 2);
            bench.offer_frame(1, 2);
        }
        assert_eq!(lost(&bench), 2, "only VC 0 reached its threshold");
    }

    #[test]
    fn a_single_drop_threshold_below_one_cell_or_above_the_buffer_is_refused() {
        let problems = |r, capacity| -> Vec<String> {
            let faults = Config { thresholds: PerVc::Same(r) }.check(capacity, &[]);
            faults.into_iter().map(|fault| fault.problem).collect()
        };
        assert_eq!(
            problems(0.0, Some(100)),
            ["must be a threshold of at least 1 cell; otherwise the VC would lose its first frame"]
        );
        assert_eq!(problems(f64::NAN, Some(100)).len(), 1);
        assert_eq!(problems(101.0, Some(100)), ["is above the buffer of 100 cells; a VC could not reach it"]);
        assert!(problems(100.0, Some(100)).is_empty() && problems(101.0, None).is_empty());
    }
}
