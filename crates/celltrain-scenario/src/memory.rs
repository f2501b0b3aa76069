//! What this process may still have of memory, and who of several runs at once has it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use celltrain_core::footprint::Footprint;

use crate::Machine;

/// What runs have of memory, and what there was when none had any.
struct Book {
    runs: u32,
    bytes: u64,
    machine: Machine,
    /// When that was looked up.
    looked: Option<Instant>,
}

static BOOK: Mutex<Book> =
    Mutex::new(Book { runs: 0, bytes: 0, machine: Machine { memory: None, addresses: None }, looked: None });
static GIVEN_BACK: Condvar = Condvar::new();

/// How long a run that waits for memory goes without looking whether it should stop.
const LOOK: Duration = Duration::from_millis(20);
/// How long what was found is good.
const FRESH: Duration = Duration::from_secs(1);

/// What a run of this process may have, were it alone.
pub fn machine() -> Machine {
    look(&mut book())
}

/// Memory that is kept for a run as long as this is there.
pub struct Kept {
    bytes: u64,
}

impl Drop for Kept {
    #[expect(clippy::arithmetic_side_effects, reason = "what was kept is given back")]
    fn drop(&mut self) {
        let mut book = book();
        book.runs -= 1;
        book.bytes -= self.bytes;
        GIVEN_BACK.notify_all();
    }
}

/// Keeps memory for a run, and waits for it while other runs have what it needs; none when it was told to stop
/// meanwhile.
///
/// # Errors
/// With the reason in words, when it would not fit were it alone.
#[expect(clippy::arithmetic_side_effects, reason = "runs at once, and bytes of memory that is there")]
pub fn keep(footprint: &Footprint, stop: &AtomicBool) -> Result<Option<Kept>, String> {
    let mut book = book();
    loop {
        if let Some(free) = look(&mut book).lacks(footprint) {
            return Err(format!("does not fit: {}", footprint.in_words("about", free)));
        }
        let with_others = Footprint { bytes: footprint.bytes.saturating_add(book.bytes), ..*footprint };
        if book.runs == 0 || book.machine.lacks(&with_others).is_none() {
            book.runs += 1;
            book.bytes += footprint.bytes;
            return Ok(Some(Kept { bytes: footprint.bytes }));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        book = GIVEN_BACK.wait_timeout(book, LOOK).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// What there was when last no run had any; looking takes as long as a small run, so it is not done for each.
fn look(book: &mut Book) -> Machine {
    if book.runs == 0 && book.looked.is_none_or(|then| then.elapsed() > FRESH) {
        book.machine = free();
        book.looked = Some(Instant::now());
    }
    book.machine
}

fn book() -> MutexGuard<'static, Book> {
    // A run that panics changes nothing here.
    BOOK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What there is now: on Linux the least of the machine's available memory, what the limits of its control groups leave
/// and what the process's own limits do; all the machine has on macOS; nothing is known elsewhere.
fn free() -> Machine {
    let memory = available().into_iter().chain(group()).chain(left("Max data size", "VmData:")).min();
    Machine { memory, addresses: left("Max address space", "VmSize:") }
}

fn available() -> Option<u64> {
    if cfg!(target_os = "macos") {
        let told = std::process::Command::new("/usr/sbin/sysctl").args(["-n", "hw.memsize"]).output().ok()?;
        return String::from_utf8(told.stdout).ok()?.trim().parse().ok();
    }
    kib("/proc/meminfo", "MemAvailable:")
}

/// What one of the process's limits leaves of what it has.
fn left(limit: &str, has: &str) -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    // The soft limit comes first.
    let most: u64 =
        limits.lines().find_map(|line| line.strip_prefix(limit))?.split_whitespace().next()?.parse().ok()?;
    Some(most.saturating_sub(kib("/proc/self/status", has)?))
}

/// A line of a file in the form of `/proc`, in bytes.
fn kib(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// What the control groups leave that the process is in, and those around them. What they hold of files is given up
/// first.
fn group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let left = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (root, files) = match controllers {
            "" => ("/sys/fs/cgroup", ["memory.max", "memory.current", "inactive_file "]),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "])
            }
            _ => return None,
        };
        // In a container the path may be that outside, and the root is the group itself.
        let inside = Path::new(path.trim_start_matches('/'));
        inside.ancestors().filter_map(|part| left_of_group(&Path::new(root).join(part), files)).min()
    });
    left.min()
}

fn left_of_group(folder: &Path, [most, has, of_files]: [&str; 3]) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let files = stat.lines().find_map(|line| line.strip_prefix(of_files)?.trim().parse::<u64>().ok()).unwrap_or(0);
    Some(number(most)?.saturating_sub(number(has)?.saturating_sub(files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: u64) -> Footprint {
        Footprint { bytes, ..Footprint::default() }
    }

    #[test]
    fn a_run_waits_for_what_others_have_and_one_that_never_fits_is_refused() {
        // Whichever leaves less: the tests may run under a limit of addresses.
        let Machine { memory, addresses } = machine();
        let Some(memory) = memory.into_iter().chain(addresses).min() else { return };
        let stop = AtomicBool::new(false);
        let half = keep(&of(memory / 2), &stop).unwrap().expect("nobody else has any");
        assert!(keep(&of(memory), &stop).is_err_and(|words| words.contains("does not fit")));
        stop.store(true, Ordering::Relaxed);
        assert!(keep(&of(memory / 2), &stop).unwrap().is_none(), "two halves are more than three quarters");
        assert!(keep(&of(memory / 8), &stop).unwrap().is_some());
        drop(half);
        assert!(keep(&of(memory / 2), &stop).unwrap().is_some());
        let Book { runs, bytes, .. } = *book();
        assert_eq!((runs, bytes), (0, 0));
    }
}
