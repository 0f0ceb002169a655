//! The report of a stall: [`StallReport`] and its parts, and how they are printed.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use crate::event::statistics::Statistics;
use crate::gp::stall::SlotBalance;
use crate::os::modules::StackFrame;
use crate::os::stack::StackMissing;
use crate::os::thread_state::ThreadState;

/// A report of a grace period that has exceeded the stall threshold, and of the readers that delay
/// it.
///
/// [`Display`](fmt::Display) prints several lines: every holdout, where its section began, and its
/// stack. Ages are in whole milliseconds: below one it prints 0. See
/// [`set_stall_hook`](crate::report::set_stall_hook).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StallReport {
    /// The domain: its name, as [given](crate::tuning::Builder::name) or declared, `global`, or a
    /// number.
    pub domain: String,
    /// The number of the grace period: [`Statistics::grace_periods`] once it has ended.
    pub grace_period: u64,
    /// How long the grace period had waited for holdouts when the stall was noticed.
    pub age: Duration,
    /// Whether a thread wants it expedited.
    pub is_expedited: bool,
    /// The domain's statistics, with the waiting threads and the backlog behind the grace period.
    pub statistics: Statistics,
    /// The readers that delay the grace period, at most 64 of them. Empty if all have left between
    /// the moment when the stall was noticed and the moment when the report was made.
    ///
    /// Under [`Engine::Token`](crate::tuning::Engine::Token), of the QSBR readers in one chain only
    /// the one that has the token is listed.
    pub holdouts: Vec<Holdout>,
    /// The number of further holdouts.
    pub holdouts_unnamed: usize,
    /// In a [sleepable domain](crate::Srcu): the number of sections that delay the grace period.
    /// Its readers have no names, so [`holdouts`](Self::holdouts) is empty there.
    pub sections: u64,
    /// In a sleepable domain: the counts of each CPU that has counted any section the grace period
    /// waits for. A section that ends on another CPU than it began on leaves both CPUs unbalanced;
    /// the sums over all CPUs differ by [`sections`](Self::sections).
    pub slots: Vec<SlotBalance>,
    /// In a sleepable domain that [tracks its guards](crate::Srcu::track_guards): the oldest listed
    /// guard.
    pub oldest_guard: Option<OldestGuard>,
    /// The number of reports in this process, for all domains, that could not be made because the
    /// hook took too long or the system provided no thread.
    pub reports_lost: u64,
    /// The number of times that the hook panicked in this process.
    pub hook_panics: u64,
}

/// A reader that delays a grace period.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Holdout {
    /// The thread's id in the system (`gettid`); `None` if the system has none.
    pub thread_id: Option<u32>,
    /// The thread's name as the system knows it: on Linux the first 15 bytes.
    pub thread_name: Option<String>,
    /// What the thread was doing.
    pub state: ThreadState,
    /// The kernel function in which the thread sleeps, if the system reports it.
    pub sleeps_in: Option<String>,
    /// Where its outermost section began; for a QSBR reader, where it came online.
    pub began: Option<&'static Location<'static>>,
    /// Whether it is a QSBR reader; such a reader has announced no quiescent state since the grace
    /// period began.
    pub is_qsbr: bool,
    /// The thread's stack while it was in the section, innermost frame first, or why there is none.
    pub stack: Result<Vec<StackFrame>, StackMissing>,
}

/// The oldest of the guards that a sleepable domain has listed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OldestGuard {
    /// Where it was created.
    pub location: &'static Location<'static>,
    /// The system's id of the thread that created it; the guard may have been sent to another
    /// thread since. `None` if the system has no thread ids.
    pub thread_id: Option<u32>,
    /// Its age.
    pub age: Duration,
    /// The number of guards of the domain that are listed, including this one.
    pub listed: usize,
}

impl fmt::Display for StallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, grace_period, age, statistics, .. } = self;
        let age_ms = ms(*age);
        let kind = if self.is_expedited { "an expedited grace period" } else { "a grace period" };
        write!(f, "quiescence: {kind} has not ended after {age_ms} ms: number {grace_period} of ")?;
        let (waiters, callbacks) = (statistics.waiters, statistics.callbacks_waiting());
        let bytes = statistics.bytes_waiting;
        write!(
            f,
            "domain {domain}; waiting threads: {waiters}, callbacks: {callbacks} ({bytes} bytes)"
        )?;
        if self.sections != 0 {
            self.describe_sections(f)?;
        } else if self.holdouts.is_empty() {
            write!(
                f,
                "\n  no reader holds it up any more: no thread has scanned since the last one left"
            )?;
        }
        for holdout in &self.holdouts {
            write!(f, "\n  held up by ")?;
            holdout.describe(f, self.age)?;
        }
        if self.holdouts_unnamed != 0 {
            write!(f, "\n  and held up by {} more", self.holdouts_unnamed)?;
        }
        if self.reports_lost != 0 {
            write!(f, "\n  reports of this process that were lost: {}", self.reports_lost)?;
        }
        if self.hook_panics != 0 {
            write!(f, "\n  panics of the hook for these reports: {}", self.hook_panics)?;
        }
        Ok(())
    }
}

impl StallReport {
    fn describe_sections(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.sections;
        let sections = if count == 1 { "section" } else { "sections" };
        write!(f, "\n  held up by {count} {sections} of a sleepable domain; begun and ended:")?;
        for slot in &self.slots {
            let SlotBalance { cpu, begun, ended } = slot;
            match cpu {
                Some(cpu) => write!(f, "\n    on CPU {cpu}: {begun}, {ended}")?,
                None => write!(f, "\n    in the shared words: {begun}, {ended}")?,
            }
        }
        match &self.oldest_guard {
            Some(guard) => {
                let OldestGuard { location, thread_id, age, listed } = guard;
                let age_ms = ms(*age);
                write!(f, "\n    the oldest of {listed} listed guards was taken ")?;
                match thread_id {
                    Some(thread) => write!(f, "{age_ms} ms ago by thread {thread} at {location}"),
                    None => write!(f, "{age_ms} ms ago at {location}"),
                }
            }
            None => write!(f, "\n    to list guards taken later, call Srcu::track_guards(true)"),
        }
    }
}

impl Holdout {
    fn describe(&self, f: &mut fmt::Formatter<'_>, age: Duration) -> fmt::Result {
        match (self.thread_id, &self.thread_name) {
            (Some(thread), Some(name)) => write!(f, "thread {thread} {name:?}")?,
            (Some(thread), None) => write!(f, "thread {thread}")?,
            (None, _) => write!(f, "a thread without an id")?,
        }
        write!(f, ", {}", self.state)?;
        if let Some(function) = &self.sleeps_in {
            write!(f, " in {function}")?;
        }
        let doing = match self.is_qsbr {
            true => "a QSBR reader without a quiescent state",
            false => "in a section",
        };
        write!(f, ", {doing} for at least {} ms", ms(age))?;
        match (self.began, self.is_qsbr) {
            (Some(began), true) => write!(f, "\n    online since {began}")?,
            (Some(began), false) => write!(f, "\n    begun at {began}")?,
            (None, _) => write!(f, "\n    begun at an unknown place")?,
        }
        match &self.stack {
            Ok(frames) => {
                frames.iter().try_for_each(|frame| write!(f, "\n      {frame}"))?;
                describe_names(f, frames)
            }
            Err(missing) => write!(f, "\n    no stack: {missing}"),
        }
    }
}

fn ms(age: Duration) -> u64 {
    age.as_millis() as u64
}

/// Writes the command that names the frames without a function.
fn describe_names(f: &mut fmt::Formatter<'_>, frames: &[StackFrame]) -> fmt::Result {
    let unnamed = frames.iter().filter(|frame| frame.function.is_none());
    let places = unnamed.filter_map(|frame| Some((frame.module.as_deref()?, frame.offset?)));
    let places = places.map(|(module, offset)| (module.as_os_str(), offset));
    for (index, (module, _)) in places.clone().enumerate() {
        if places.clone().take(index).any(|(of, _)| of == module) {
            continue; // an earlier frame has printed its line
        }
        write!(f, "\n      names: addr2line -Cfipe {}", module.display())?;
        let mut of_module = places.clone().filter(|(of, _)| *of == module);
        of_module.try_for_each(|(_, offset)| write!(f, " {offset:#x}"))?;
    }
    Ok(())
}
