//! What the system says that a thread is at, as far as it says it (Linux, `/proc`).

use std::fmt;
use std::fs;

/// A thread's state, and the function of the kernel that it sleeps in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Task {
    state: Option<char>,
    sleeps_in: Option<String>,
    /// How long it has had a CPU.
    ran_ns: Option<u64>,
}

impl Task {
    /// Of the thread with this number in this process.
    pub(crate) fn of(thread: u32) -> Self {
        let file = |name: &str| fs::read_to_string(format!("/proc/self/task/{thread}/{name}")).ok();
        let sleeps_in = file("wchan").filter(|name| !matches!(name.as_str(), "" | "0"));
        let ran_ns = file("schedstat").and_then(|text| text.split(' ').next()?.parse().ok());
        // A kernel that does not count says 0.
        let ran_ns = ran_ns.filter(|&ran_ns| ran_ns != 0);
        Self { state: file("stat").as_deref().and_then(state_in), sleeps_in, ran_ns }
    }

    /// In this state, having had a CPU for so long.
    #[cfg(test)]
    pub(crate) fn at(state: char, ran_ns: u64) -> Self {
        Self { state: Some(state), sleeps_in: None, ran_ns: Some(ran_ns) }
    }

    /// Whether the kernel has kept it from running since it was `before`: it waits for a disk or
    /// for memory, which no lock or futex of a program does, or it could run and has had no CPU.
    pub(crate) fn is_kept(&self, before: &Self) -> bool {
        match self.state {
            Some('D') => true,
            Some('R') => self.ran_ns.is_some() && self.ran_ns == before.ran_ns,
            _ => false,
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(state) = self.state else { return Ok(()) };
        write!(f, " (state {state}")?;
        if let Some(sleeps_in) = &self.sleeps_in {
            write!(f, ", in {sleeps_in}")?;
        }
        f.write_str(")")
    }
}

/// The state in a line of `/proc/PID/stat`: what comes after the name, which may have any character
/// in it.
fn state_in(stat: &str) -> Option<char> {
    stat[stat.rfind(')')? + 1..].trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_comes_after_the_name() {
        assert_eq!(state_in("7 (a) R (b)) D 1 2"), Some('D'));
        assert_eq!(state_in("nothing"), None);
        let sleeps_in = Some("folio_wait_bit".to_owned());
        let task = Task { state: Some('D'), sleeps_in, ran_ns: None };
        assert_eq!(task.to_string(), " (state D, in folio_wait_bit)");
    }

    #[test]
    fn who_waits_for_a_disk_or_has_no_cpu_is_kept() {
        let task = |state, ran_ns| Task { state: Some(state), sleeps_in: None, ran_ns };
        assert!(task('D', Some(8)).is_kept(&task('R', Some(7))));
        assert!(task('R', Some(8)).is_kept(&task('R', Some(8))));
        assert!(!task('R', Some(8)).is_kept(&task('R', Some(7))), "it spins");
        assert!(!task('R', None).is_kept(&task('R', None)), "nobody knows");
        assert!(!task('S', Some(8)).is_kept(&task('S', Some(8))));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_tells_of_a_thread_that_runs() {
        let task = Task::of(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned());
        assert_eq!(task.state, Some('R'));
    }
}
