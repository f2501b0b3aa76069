//! Questions to the policy of a port, and the buffers and policies that would have answered them in the same way.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem::size_of;

use typed_index_collections::{TiVec, ti_vec};

use super::Recording;
use crate::index::{Label, LinkIndex};
use crate::metrics::PortResult;
use crate::network::{Link, Network, Routing};
use crate::policy::formula::{Formula, PortInfo};
use crate::policy::{BufferPolicy, CellFollower, Decision, Overflow, PolicyConfig, View};
use crate::rng::Stream;
use crate::units::{Clock, Time};

/// The part of a [`View`] that a policy reads if it [reads nothing else](BufferPolicy::reads_own_view).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    occupancy: u32,
    counted: u32,
    active_vcs: u32,
    vc: Label,
    own: u32,
    tagged: bool,
    capable: bool,
}

/// Estimated memory of a question in a map, in bytes.
const QUESTION_BYTES: usize = 2 * size_of::<(Question, bool)>();

/// The questions that a port's policy was asked.
#[derive(Clone, Debug)]
pub(super) enum PortRecord {
    /// Each question with its answer.
    Answers(BTreeMap<Question, bool>),
    /// The answers may have depended on other values, or there were too many questions.
    Unknown,
}

impl Default for PortRecord {
    fn default() -> Self {
        Self::Answers(BTreeMap::new())
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
    recording: Recording,
}

impl RecordedPolicy {
    pub(crate) fn new(policy: Box<dyn BufferPolicy>, link: LinkIndex, recording: &Recording) -> Self {
        Self { policy, link, record: PortRecord::default(), recording: recording.clone() }
    }
}

impl Drop for RecordedPolicy {
    fn drop(&mut self) {
        let record = std::mem::take(&mut self.record);
        self.recording.records().ports.entry(self.link).or_default().merge(record);
    }
}

impl BufferPolicy for RecordedPolicy {
    fn at_port(&mut self, port_info: &PortInfo<'_>) {
        self.policy.at_port(port_info);
    }

    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
        let before = rng.clone();
        let admitted = self.policy.admit_frame(buffer, vc, rng);
        if *rng != before || !self.policy.reads_own_view() {
            self.record = PortRecord::Unknown;
        }
        let View { occupancy, counted, active_vcs, per_vc, tagged, capable, .. } = *buffer;
        let question = Question { occupancy, counted, active_vcs, vc, own: per_vc[vc], tagged, capable };
        self.record.add(question, admitted, || self.recording.may_grow(QUESTION_BYTES));
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

    fn explain(&self, buffer: &View<'_>, vc: Label) -> Decision {
        self.policy.explain(buffer, vc)
    }
}

/// The settings of a port in a run, and what it met.
#[derive(Debug)]
pub(super) struct PortCertificate {
    buffer: Option<u32>,
    policy: PolicyConfig,
    max_queue: u32,
    replaced_results: u64,
    record: PortRecord,
}

impl PortCertificate {
    pub(super) fn new(link: &Link, result: &PortResult, record: PortRecord) -> Self {
        Self {
            buffer: link.buffer,
            policy: link.policy.clone(),
            max_queue: result.max_queue_cells,
            replaced_results: result.replaced_results,
            record,
        }
    }

    /// Returns whether the port never lacked room for a cell.
    fn never_filled(&self) -> bool {
        self.buffer.is_none_or(|cells| self.max_queue < cells)
    }

    pub(super) fn least_buffer(&self) -> Option<u32> {
        let was_asked = !matches!(&self.record, PortRecord::Answers(answers) if answers.is_empty());
        (self.never_filled() && !was_asked).then_some(self.max_queue)
    }

    /// Returns whether the port of `candidate` would have treated the same cells in the same way.
    pub(super) fn covers(
        &self,
        (candidate, link): (&Network, LinkIndex),
        routing: &Routing,
        clock: Clock,
        in_memory: bool,
    ) -> bool {
        let Link { name, buffer, policy, rate, .. } = &candidate.links[link];
        if (*buffer, policy) == (self.buffer, &self.policy) {
            return true;
        }
        if in_memory || candidate.stores(link).is_some() {
            // The port's policy sees the memory, or packets whose cells have not all arrived.
            let [own, other] = [(&self.policy, self.buffer), (policy, *buffer)].map(|(policy, buffer)| {
                let built = policy.build(buffer, &[]);
                (built.admits_up_to() == Some(u32::MAX)).then(|| built.overflow())
            });
            return own.is_some() && own == other && (in_memory || *buffer == self.buffer);
        }
        let has_room = if self.never_filled() {
            buffer.is_none_or(|cells| self.max_queue <= cells)
        } else {
            *buffer == self.buffer
        };
        if !has_room {
            return false;
        }
        let mut policy = candidate.policy(routing, link);
        policy.at_port(&PortInfo::of(name, *buffer, *rate, clock));
        let names = candidate.vc_names(routing, link);
        let own = self.policy.build(self.buffer, &names);
        if !self.never_filled() && own.overflow() != policy.overflow() {
            return false;
        }
        // Up to this occupancy, the run's policy admitted every frame without being asked.
        let unasked = match &candidate.links[link].marking {
            Some(marking) => marking.dropping(own, self.buffer).admits_up_to(),
            None => own.admits_up_to(),
        };
        // An admitted frame enters the queue that its first cell found, so the queue is at least a cell longer then.
        let longest = if self.never_filled() { self.max_queue.checked_sub(1) } else { Some(self.max_queue) };
        unasked.min(longest) <= policy.admits_up_to()
            && self.replaced_results == 0
            && self.gives_the_same_answers(&mut *policy, (buffer.unwrap_or(u32::MAX), names.len()))
    }

    fn gives_the_same_answers(&self, policy: &mut dyn BufferPolicy, (capacity, vcs): (u32, usize)) -> bool {
        let PortRecord::Answers(answers) = &self.record else { return false };
        let mut rng = Stream::new(0, "no random number may be drawn");
        let before = rng.clone();
        let mut per_vc: TiVec<Label, u32> = ti_vec![0; vcs];
        let same = answers.iter().all(|(question, &admitted)| {
            let Question { occupancy, counted, active_vcs, vc, own, tagged, capable } = *question;
            if policy.admits_up_to().is_some_and(|cells| occupancy <= cells) {
                return admitted;
            }
            per_vc[vc] = own;
            let view =
                View { occupancy, counted, capacity, active_vcs, per_vc: &per_vc, tagged, capable, now: Time(0) };
            policy.reads_own_view() && policy.admit_frame(&view, vc, &mut rng) == admitted
        });
        same && rng == before && Formula::of(policy).is_none_or(|formula| formula.replaced_results() == 0)
    }
}
