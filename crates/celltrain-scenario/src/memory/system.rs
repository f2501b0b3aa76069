//! The memory of this machine.

use std::fs;
use std::path::Path;

use crate::Machine;

/// What there is now: on Linux the least of the machine's available memory, what the limits of its control groups leave
/// and what the process's own limits do; all the machine has on macOS; nothing is known elsewhere.
pub(super) fn free() -> Machine {
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
