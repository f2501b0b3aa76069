//! Records the questions to the policy of a port, with its answers, as [certificates](crate::certificate) define both
//! words.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::mem::size_of;

use super::formula::PortInfo;
use super::{BufferPolicy, CellFollower, Decision, HeadPolicy, Overflow, View};
use crate::index::{Label, LinkIndex};
use crate::recording::{Budget, Records};
use crate::rng::Stream;

/// The part of a [`View`] that a policy reads if it [reads nothing else](BufferPolicy::reads_own_view).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) occupancy: u32,
    pub(crate) counted: u32,
    pub(crate) active_vcs: u32,
    pub(crate) vc: Label,
    pub(crate) own: u32,
    pub(crate) tagged: bool,
    pub(crate) capable: bool,
}

impl Hash for Question {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { occupancy, counted, active_vcs, vc, own, tagged, capable } = *self;
        let flags = u64::from(tagged) << 1 | u64::from(capable);
        hasher.write_u64(u64::from(occupancy) << 32 | u64::from(own));
        hasher.write_u64(u64::from(counted) << 32 | u64::from(active_vcs));
        hasher.write_u64(u64::from(vc.number()) << 2 | flags);
    }
}

/// Hashes questions in fewer instructions than the standard hasher. A multiplication moves differences to the upper bits,
/// and a shift back to the lower ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QuestionHasher(u64);

impl Hasher for QuestionHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("questions are hashed as words")
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

/// Answers of a policy, by question. The order of the questions is irrelevant, because a certificate needs all of them.
type Answers = HashMap<Question, bool, BuildHasherDefault<QuestionHasher>>;

/// Estimated memory of a question in a map, in bytes.
const QUESTION_BYTES: usize = 2 * size_of::<(Question, bool)>();

/// Questions to a port's policy.
#[derive(Clone, Debug)]
pub(crate) enum PortRecord {
    /// Answers of the policy, by question.
    Answers(Answers),
    /// The answers may have depended on other values, or there were too many questions.
    Unknown,
}

impl Default for PortRecord {
    fn default() -> Self {
        Self::Answers(Answers::default())
    }
}

impl PortRecord {
    fn add(&mut self, question: Question, admitted: bool, may_grow: impl FnOnce() -> bool) {
        let Self::Answers(answers) = self else { return };
        let is_known = match answers.entry(question) {
            Entry::Occupied(known) => *known.get() == admitted,
            Entry::Vacant(new) => {
                new.insert(admitted);
                may_grow()
            }
        };
        if !is_known {
            *self = Self::Unknown;
        }
    }

    /// Adds the questions of another port with the same number, such as in a second run that computes predictions.
    fn merge(&mut self, other: Self) {
        match other {
            Self::Answers(answers) => answers.into_iter().for_each(|(question, was)| self.add(question, was, || true)),
            Self::Unknown => *self = Self::Unknown,
        }
    }
}

/// A policy whose questions and answers are recorded.
pub(crate) struct RecordedPolicy {
    pub(crate) policy: Box<dyn BufferPolicy>,
    link: LinkIndex,
    record: PortRecord,
    records: Records<LinkIndex, PortRecord>,
    budget: Budget,
}

impl RecordedPolicy {
    pub(crate) fn new(
        policy: Box<dyn BufferPolicy>,
        link: LinkIndex,
        records: &Records<LinkIndex, PortRecord>,
        budget: &Budget,
    ) -> Self {
        Self { policy, link, record: PortRecord::default(), records: records.clone(), budget: budget.clone() }
    }
}

impl Drop for RecordedPolicy {
    fn drop(&mut self) {
        let record = std::mem::take(&mut self.record);
        self.records.locked().entry(self.link).or_default().merge(record);
    }
}

impl BufferPolicy for RecordedPolicy {
    fn at_port(&mut self, port_info: &PortInfo<'_>) {
        self.policy.at_port(port_info);
    }

    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
        if let PortRecord::Unknown = self.record {
            return self.policy.admit_frame(buffer, vc, rng);
        }
        let before = rng.mark();
        let admitted = self.policy.admit_frame(buffer, vc, rng);
        if rng.mark() != before || !self.policy.reads_own_view() {
            self.record = PortRecord::Unknown;
        }
        let View { occupancy, counted, active_vcs, per_vc, tagged, capable, .. } = *buffer;
        let question = Question { occupancy, counted, active_vcs, vc, own: per_vc[vc], tagged, capable };
        self.record.add(question, admitted, || self.budget.may_grow(QUESTION_BYTES));
        admitted
    }

    fn overflow(&self) -> Overflow {
        self.policy.overflow()
    }

    fn admits_up_to(&self) -> Option<u32> {
        self.policy.admits_up_to()
    }

    fn reads_counts(&self) -> bool {
        self.policy.reads_counts()
    }

    fn reads_own_view(&self) -> bool {
        self.policy.reads_own_view()
    }

    fn follower(&mut self) -> Option<&mut dyn CellFollower> {
        self.policy.follower()
    }

    fn head_policy(&mut self) -> Option<&mut dyn HeadPolicy> {
        self.policy.head_policy()
    }

    fn marks_admitted(&self) -> bool {
        self.policy.marks_admitted()
    }

    fn explain(&self, buffer: &View<'_>, vc: Label) -> Decision {
        self.policy.explain(buffer, vc)
    }
}
