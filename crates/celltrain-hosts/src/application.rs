//! Applications determine which data a sender writes, and when. They do not depend on the transport stack.

use std::time::Duration;

/// The data that an application writes.
pub enum Application {
    /// Unlimited data.
    Bulk,
    /// A file of this many bytes.
    File(u64),
    /// Bursts of this many bytes. A pause follows the last acknowledgement of each burst.
    Bursts {
        /// Bytes of each burst.
        bytes: u64,
        /// Returns the length of the next pause.
        pause: Box<dyn FnMut() -> Duration + Send>,
    },
}

/// The sending application of a flow.
pub struct Source {
    application: Application,
    written: u64,
    /// Number of bytes that the application wants to write up to now.
    wanted: u64,
    /// End of the current pause.
    next: Option<Duration>,
}

impl Source {
    /// Creates an application that has written nothing.
    pub fn new(application: Application) -> Self {
        let wanted = match application {
            Application::Bulk => u64::MAX,
            Application::File(bytes) | Application::Bursts { bytes, .. } => bytes,
        };
        Self { application, written: 0, wanted, next: None }
    }

    /// Returns the number of bytes that the application writes now, at most `room`, and the offset of the first byte.
    /// `acknowledged` bytes have been acknowledged so far.
    pub fn write(&mut self, now: Duration, acknowledged: u64, room: usize) -> (u64, usize) {
        if let Application::Bursts { bytes, pause } = &mut self.application {
            if self.next.is_none() && acknowledged >= self.wanted {
                self.next = Some(now + pause());
            }
            if self.next.is_some_and(|next| now >= next) {
                self.next = None;
                self.wanted += *bytes;
            }
        }
        let offset = self.written;
        let bytes = usize::try_from(self.wanted - offset).unwrap_or(usize::MAX).min(room);
        self.written += bytes as u64;
        (offset, bytes)
    }

    /// Returns the end of the current pause.
    pub fn next(&self) -> Option<Duration> {
        self.next
    }

    /// Returns whether the application has written all its data.
    pub fn has_ended(&self) -> bool {
        matches!(self.application, Application::File(_)) && self.written == self.wanted
    }

    /// Returns the number of bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }
}

/// Fills `bytes` with a stream's data from `offset` on: lines of fifteen hexadecimal digits that give the line's
/// offset, as in captures of celltrain's TCP.
pub fn payload(offset: u64, bytes: &mut [u8]) {
    for (at, byte) in (offset..).zip(bytes) {
        let (line, column) = (at & !15, at % 16);
        *byte = match column {
            15 => b'\n',
            _ => b"0123456789abcdef"[(line >> (4 * (14 - column)) & 15) as usize],
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn an_application_writes_its_file_in_pieces_whenever_the_send_buffer_has_free_space() {
        let mut source = Source::new(Application::File(1000));
        assert_eq!(source.write(MS, 0, 600), (0, 600));
        assert!(!source.has_ended());
        assert_eq!(source.write(MS, 0, 600), (600, 400));
        assert_eq!((source.write(MS, 1000, 600), source.next(), source.has_ended()), ((1000, 0), None, true));
    }

    #[test]
    fn an_application_starts_a_burst_one_pause_after_the_previous_burst_was_acknowledged() {
        let mut source = Source::new(Application::Bursts { bytes: 300, pause: Box::new(|| 5 * MS) });
        assert_eq!(source.write(MS, 0, 1000), (0, 300));
        assert_eq!((source.write(2 * MS, 299, 1000), source.next()), ((300, 0), None));
        assert_eq!((source.write(3 * MS, 300, 1000), source.next()), ((300, 0), Some(8 * MS)));
        assert_eq!((source.write(7 * MS, 300, 1000), source.next()), ((300, 0), Some(8 * MS)));
        assert_eq!((source.write(8 * MS, 300, 1000), source.next()), ((300, 300), None));
        assert_eq!((source.written(), source.has_ended()), (600, false));
    }

    #[test]
    fn stream_data_spells_out_its_own_byte_offsets() {
        let mut bytes = [0; 40];
        payload(0, &mut bytes);
        assert_eq!(&bytes, b"000000000000000\n000000000000010\n00000000");
        let mut part = [0; 20];
        payload(13, &mut part);
        assert_eq!(part, bytes[13..33]);
    }
}
