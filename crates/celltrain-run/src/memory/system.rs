//! The memory of this machine.

use std::fs;
use std::path::Path;

use super::Machine;

/// Returns the free memory. On Linux, this is the minimum of the machine's available memory and the unused parts of the
/// limits of the process and its control groups. On macOS, this is the machine's total memory. On other systems, the
/// free memory is unknown.
pub(super) fn free() -> Machine {
    let limits = [("Max data size", "VmData:"), ("Max address space", "VmSize:")];
    let left = limits.into_iter().filter_map(|(limit, has)| left(limit, has));
    Machine { memory: available().into_iter().chain(group()).chain(left).min() }
}

/// Returns the memory used by this process, or its address space if the address space is limited; `None` except on
/// Linux.
pub(super) fn used() -> Option<u64> {
    let is_limited = soft_limit("Max address space").is_some();
    kib("/proc/self/status", if is_limited { "VmSize:" } else { "VmRSS:" })
}

fn available() -> Option<u64> {
    if cfg!(target_os = "macos") {
        let told = std::process::Command::new("/usr/sbin/sysctl").args(["-n", "hw.memsize"]).output().ok()?;
        return String::from_utf8(told.stdout).ok()?.trim().parse().ok();
    }
    kib("/proc/meminfo", "MemAvailable:")
}

/// Returns the unused part of a limit of this process; `None` if the process has no such limit.
fn left(limit: &str, has: &str) -> Option<u64> {
    Some(soft_limit(limit)?.saturating_sub(kib("/proc/self/status", has)?))
}

/// Returns the soft limit of this name; `None` if the process has no such limit.
fn soft_limit(name: &str) -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    // The first number on the line is the soft limit, the second the hard limit.
    limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Returns the value of a line in a file in `/proc` format, converted from KiB to bytes.
fn kib(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the free memory in the process's control groups and their ancestors. Inactive file pages count as free,
/// because the kernel reclaims these pages first.
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
        // In a container, the path of the group may be a path on the host. The root is then the group of the container
        // itself.
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
