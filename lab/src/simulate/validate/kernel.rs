//! What the model needs to know of this machine's kernel, and who else ran on its CPUs.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_getres, clock_gettime};

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

/// How many CPUs are online, which the scheduler's times follow.
pub(super) fn online_cpus() -> Option<usize> {
    Times::now().map(|times| times.cpus)
}

/// What all CPUs have done since the machine was started, and this process, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    at: Instant,
    /// In the kernel's unit.
    busy: u64,
    idle: u64,
    cpus: usize,
    own: f64,
}

impl Times {
    pub(super) fn now() -> Option<Self> {
        let own = clock_gettime(ClockId::ProcessCPUTime);
        let own = own.tv_sec as f64 + own.tv_nsec as f64 / 1e9;
        Self::of(&fs::read_to_string("/proc/stat").ok()?, own, Instant::now())
    }

    /// Of the text of `/proc/stat`: user, nice, system, idle, waiting, interrupts, soft ones, and
    /// what the host took.
    fn of(text: &str, own: f64, at: Instant) -> Option<Self> {
        let numbers: Vec<u64> = text
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .map_while(|number| number.parse().ok())
            .take(8)
            .collect();
        let idle = *numbers.get(3)? + numbers.get(4).copied().unwrap_or(0);
        let all: u64 = numbers.iter().sum();
        let is_cpu = |line: &&str| {
            line.strip_prefix("cpu")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let cpus = text.lines().filter(is_cpu).count();
        Some(Self { at, busy: all - idle, idle, cpus, own })
    }

    /// The share of all CPUs' time since `before` that was not idle and not this process's, from 0
    /// to 1.
    pub(super) fn others_share_since(&self, before: &Times) -> Option<f64> {
        let busy = self.busy.checked_sub(before.busy)? as f64;
        let idle = self.idle.checked_sub(before.idle)? as f64;
        let elapsed = self.at.duration_since(before.at).as_secs_f64();
        let own = (self.own - before.own) / (elapsed * self.cpus as f64);
        (busy + idle > 0.0).then(|| (busy / (busy + idle) - own).clamp(0.0, 1.0))
    }
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
    fn what_is_neither_idle_nor_ones_own_is_of_others() {
        let text = |user: u64, idle: u64| {
            format!("cpu  {user} 0 100 {idle} 0 0 0 0 0 0\ncpu0 1 2\ncpu1 1 2\nintr 5\n")
        };
        let begin = Instant::now();
        let before = Times::of(&text(1_000, 5_000), 3.0, begin).unwrap();
        assert_eq!((before.busy, before.idle, before.cpus), (1_100, 5_000, 2));
        // Two CPUs for ten seconds, of which 1,500 of 2,000 parts were busy; ten seconds of its
        // own.
        let end = begin + Duration::from_secs(10);
        let after = Times::of(&text(2_500, 5_500), 13.0, end).unwrap();
        let share = after.others_share_since(&before);
        assert!((share.unwrap() - 0.25).abs() < 1e-9, "{share:?}");
        assert_eq!(before.others_share_since(&after), None);
        assert!(Times::of("processes 7", 0.0, begin).is_none());
    }
}
