//! Policies that compare a VC's load ratio with a bound above a threshold: Selective Drop and FBA, with and without
//! weights.
//!
//! Source: ATM Forum 96-1269, sections 6 and 7, and 97-0607; `docs/mechanisms.md` 2.5, 2.6 and 2.12, whose symbols are
//! used.

use typed_index_collections::TiVec;

use super::{BufferPolicy, Decision, PerVc, View, whole_cells};
use crate::coverage::reached;
use crate::index::Label;
use crate::rng::Stream;
use crate::threshold::Threshold;

/// A load-ratio policy, which has no state.
#[derive(Debug)]
pub struct LoadRatio {
    /// Description of the condition under which a frame is refused.
    rule: &'static str,
    k: f64,
    r: f64,
    z: f64,
    falls: bool,
    /// Weights of the shares; if `None`, the VCs with waiting cells share equally.
    weights: Option<Weights>,
}

impl LoadRatio {
    /// Creates a policy whose bound is Z above the threshold R of a buffer of K cells. `rule` describes the condition
    /// under which the policy refuses a frame.
    pub(super) fn new(capacity: u32, threshold: Threshold, z: f64, rule: &'static str) -> Self {
        let (k, r) = (f64::from(capacity), threshold.cells(capacity));
        Self { rule, k, r, z, falls: false, weights: None }
    }

    /// Lets the bound fall from infinity to Z as the buffer fills from R to K.
    pub(super) fn falling(self) -> Self {
        Self { falls: true, ..self }
    }

    /// Applies weights to the shares of the given VCs.
    pub(super) fn weighted(self, weights: &PerVc, vcs: &[&str]) -> Self {
        Self { weights: Some(Weights::new(weights, vcs)), ..self }
    }

    fn bound(&self, x: f64) -> f64 {
        if self.falls { self.z * (self.k - self.r) / (x - self.r) } else { self.z }
    }
}

impl BufferPolicy for LoadRatio {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, _rng: &mut Stream) -> bool {
        let x = f64::from(buffer.occupancy);
        let ratio = || self.weights.as_ref().map_or_else(|| load_ratio(buffer, vc), |of| of.load_ratio(buffer, vc));
        reached!(LoadRatioAtBound if x > self.r && ratio() == self.bound(x));
        x <= self.r || ratio() <= self.bound(x)
    }

    fn reads_own_view(&self) -> bool {
        true
    }

    fn admits_up_to(&self) -> Option<u32> {
        whole_cells(self.r)
    }

    fn explain(&self, buffer: &View<'_>, vc: Label) -> Decision {
        let x = f64::from(buffer.occupancy);
        // The fair share X / N_a, unless no VC is active.
        let fair = (buffer.active_vcs > 0).then(|| x / f64::from(buffer.active_vcs));
        let share = self.weights.as_ref().map_or(fair, |weights| Some(weights.share(buffer, vc)));
        let share = share.filter(|_| !self.falls || x > self.r).map(|share| self.bound(x) * share);
        Decision { rule: self.rule, threshold: Some(self.r), share, ..Decision::default() }
    }
}

/// Returns the load ratio of VC i, `Y_i` / (X / `N_a`): its cells divided by its fair share of the occupied buffer.
pub(super) fn load_ratio(buffer: &View<'_>, vc: Label) -> f64 {
    let y_i = f64::from(buffer.per_vc[vc]);
    y_i * f64::from(buffer.active_vcs) / f64::from(buffer.occupancy)
}

#[derive(Debug)]
pub(super) struct Weights {
    /// `W_i` of each VC, by label.
    pub(super) of: TiVec<Label, f64>,
    /// W: the sum of all `W_i`.
    pub(super) sum: f64,
}

impl Weights {
    pub(super) fn new(weights: &PerVc, vcs: &[&str]) -> Self {
        let of: TiVec<Label, f64> = weights.resolve(vcs).into();
        Self { sum: of.iter().sum(), of }
    }

    /// Returns the weighted load ratio of VC i, (`X_i` W) / (`W_i` X): its cells divided by its share of the occupied
    /// buffer.
    pub(super) fn load_ratio(&self, buffer: &View<'_>, vc: Label) -> f64 {
        f64::from(buffer.per_vc[vc]) * self.sum / (self.of[vc] * f64::from(buffer.occupancy))
    }

    /// Returns X `W_i` / W: VC i's share of the occupied buffer, in cells.
    pub(super) fn share(&self, buffer: &View<'_>, vc: Label) -> f64 {
        f64::from(buffer.occupancy) * self.of[vc] / self.sum
    }
}
