//! What the system says that a thread is at, as far as it says it (Linux, `/proc`).

use std::fmt;
use std::fs;

/// A thread's state, and the function of the kernel that it sleeps in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Task {
    state: Option<char>,
    sleeps_in: Option<String>,
}

impl Task {
    /// Of the thread with this number in this process.
    pub(super) fn of(thread: u32) -> Self {
        let file = |name: &str| fs::read_to_string(format!("/proc/self/task/{thread}/{name}")).ok();
        let sleeps_in = file("wchan").filter(|name| !matches!(name.as_str(), "" | "0"));
        Self { state: file("stat").as_deref().and_then(state_in), sleeps_in }
    }

    /// Whether the kernel lets nothing wake it up but what it waits for: a disk, or memory.
    pub(super) fn is_kept(&self) -> bool {
        self.state == Some('D')
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

/// The state in a line of `/proc/PID/stat`: what comes after the name, which may have any character in it.
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
        let task = Task { state: Some('D'), sleeps_in: Some("folio_wait_bit".to_owned()) };
        assert!(task.is_kept());
        assert_eq!(task.to_string(), " (state D, in folio_wait_bit)");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_runs_is_not_kept() {
        let task = Task::of(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned());
        assert_eq!(task.state, Some('R'));
        assert!(!task.is_kept());
    }
}
