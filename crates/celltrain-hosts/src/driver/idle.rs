//! Polls in which a stack does nothing.

use std::time::Duration;

use crate::stack::Report;

/// Counts idle polls, in which a stack does nothing.
#[derive(Default)]
pub(super) struct Idle {
    /// True if a packet has arrived since the last poll.
    pub(super) has_packet: bool,
    pub(super) report: Report,
    /// Idle polls within [`IDLE_TIME`].
    polls: Polls,
    /// Idle polls since the timeout was last in the future.
    due: Polls,
}

/// A number of polls, and the time of the first poll.
#[derive(Clone, Copy, Default)]
struct Polls {
    count: u32,
    from: Duration,
}

impl Polls {
    fn since(from: Duration) -> Self {
        Self { count: 0, from }
    }
}

impl Idle {
    /// Records a poll. Returns a description if the stack is polled too often without effect.
    pub(super) fn stuck(
        &mut self,
        now: Duration,
        next: Option<Duration>,
        has_sent: bool,
        report: Report,
    ) -> Option<String> {
        let is_idle = !std::mem::take(&mut self.has_packet) && !has_sent && self.report == report;
        self.report = report;
        let is_due = next.is_some_and(|next| next <= now);
        if !is_due {
            self.due = Polls::since(now);
        }
        if !is_idle {
            return None;
        }
        if now.saturating_sub(self.polls.from) >= IDLE_TIME {
            self.polls = Polls::since(now);
        }
        self.polls.count += 1;
        self.due.count += u32::from(is_due);
        let lasted = now.saturating_sub(self.due.from);
        if self.polls.count > MOST_IDLE_POLLS {
            return Some(format!("{MOST_IDLE_POLLS} polls within 10 ms"));
        }
        (self.due.count > MOST_DUE_POLLS && lasted > DUE_TIME)
            .then(|| format!("{} polls within {} ms", self.due.count, lasted.as_millis()))
    }
}

/// Maximum number of idle polls within [`IDLE_TIME`].
const MOST_IDLE_POLLS: u32 = 100_000;
const IDLE_TIME: Duration = Duration::from_millis(10);

/// Once the timeout has been overdue for longer than [`DUE_TIME`], maximum number of idle polls since it became due. On
/// a slow link or with a coarse clock, few polls fit into [`IDLE_TIME`]. A stack with a coarse clock may return past
/// times until its clock advances.
const MOST_DUE_POLLS: u32 = 10;
const DUE_TIME: Duration = Duration::from_millis(20);
