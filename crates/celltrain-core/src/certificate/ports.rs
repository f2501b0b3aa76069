//! Checks whether a run would have been identical with another buffer and policy of a port.

use typed_index_collections::{TiVec, ti_vec};

use crate::index::{Label, LinkIndex};
use crate::metrics::PortResult;
use crate::network::{Link, Network, Routing};
use crate::policy::formula::{Formula, PortInfo};
use crate::policy::recorded::{PortRecord, Question};
use crate::policy::{BufferPolicy, PolicyConfig, View};
use crate::rng::Stream;
use crate::units::{Clock, Time};

/// The settings of a port in a run, its largest queue and the decisions of its policy.
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

    /// Returns whether the port of `candidate` would have treated all cells of the run in the same way.
    pub(super) fn covers(
        &self,
        (candidate, link): (&Network, LinkIndex),
        routing: &Routing,
        clock: Clock,
        in_memory: bool,
    ) -> bool {
        let port @ Link { buffer, policy, .. } = &candidate.links[link];
        if (*buffer, policy) == (self.buffer, &self.policy) {
            return true;
        }
        if in_memory || candidate.stores(link).is_some() {
            // The policy's view includes the shared memory, or packets whose cells have not all arrived. The record
            // lacks both.
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
        policy.at_port(&PortInfo::of(candidate, port, clock));
        let names = candidate.vc_names(routing, link);
        let own = self.policy.build(self.buffer, &names);
        if !self.never_filled() && own.overflow() != policy.overflow() {
            return false;
        }
        // Up to this occupancy, the run's policy admitted every frame without being called.
        let unasked = match &candidate.links[link].marking {
            Some(marking) => marking.dropping(own, self.buffer).admits_up_to(),
            None => own.admits_up_to(),
        };
        // When an admitted frame's first cell joined the queue, the queue grew by a cell. So every admission happened
        // at least one cell below the largest queue.
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
