//! What the model needs to know of this machine's kernel.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_getres};

use crate::machine::Machine;

/// The first Linux with the scheduler EEVDF: major and minor version.
pub(super) const EEVDF_SINCE: (u32, u32) = (6, 6);

/// Major and minor version of a release, as in `6.12.3-generic`.
pub(super) fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The scheduler's ticks a second: the coarse clock moves at each of them.
pub(super) fn ticks_a_second() -> Option<u32> {
    let step = clock_getres(ClockId::MonotonicCoarse);
    let step = Duration::new(u64::try_from(step.tv_sec).ok()?, u32::try_from(step.tv_nsec).ok()?);
    let ticks = (1.0 / step.as_secs_f64()).round();
    // What the model takes; a kernel's are 100 to 1,000.
    (100.0..=1_000.0).contains(&ticks).then_some(ticks as u32)
}

/// How many CPUs are online, which the scheduler's times follow; those that this process may use
/// where the kernel does not say.
pub(super) fn online_cpus(machine: &Machine) -> usize {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    numbered_cpus(&text).max(machine.cpus.len())
}

/// The CPUs that have a line of their own in this text of `/proc/stat`.
fn numbered_cpus(text: &str) -> usize {
    let number = |line: &str| line.strip_prefix("cpu")?.chars().next()?.to_digit(10);
    text.lines().filter_map(number).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_off_releases() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("5.10"), Some((5, 10)));
        assert_eq!(version("6-rc1"), None);
        assert_eq!(version(""), None);
        assert!(
            version("5.18.0").unwrap() < EEVDF_SINCE && version("6.6.1").unwrap() >= EEVDF_SINCE
        );
    }

    #[test]
    fn the_line_of_all_cpus_is_no_cpu() {
        assert_eq!(numbered_cpus("cpu  7 0 9\ncpu0 3 0 4\ncpu11 4 0 5\nintr 5\ncpuset 1\n"), 2);
        assert_eq!(numbered_cpus("processes 7\n"), 0);
    }
}
