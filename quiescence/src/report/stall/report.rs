//! What is notified of a stall: [`StallReport`] and its parts, and how they are printed.

use std::fmt;
use std::panic::Location;
use std::path::PathBuf;
use std::time::Duration;

use crate::event::statistics::Statistics;
use crate::os::stack::StackMissing;
use crate::os::thread::ThreadState;

/// A grace period that has not ended for longer than the limit, and who holds it up.
///
/// Printed ([`Display`](fmt::Display)) it is several lines, which name every holdout, where its
/// section began, and its stack. See [`set_stall_hook`](crate::set_stall_hook).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StallReport {
    pub(super) domain: String,
    pub(super) grace_period: u64,
    pub(super) age: Duration,
    pub(super) expedited: bool,
    pub(super) statistics: Statistics,
    pub(super) holdouts: Vec<Holdout>,
    pub(super) unnamed: usize,
    pub(super) sections: u64,
    pub(super) slots: Vec<SlotBalance>,
    pub(super) oldest_guard: Option<OldestGuard>,
    pub(super) reports_lost: u64,
    pub(super) hook_panics: u64,
}

impl StallReport {
    /// The domain: the name that it was [given](crate::Builder::name) or is declared by, `global`,
    /// or a number.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Which grace period of the domain: [`Statistics::grace_periods`] when it will have ended.
    pub fn grace_period(&self) -> u64 {
        self.grace_period
    }

    /// How long holdouts have been waited for, when it was noticed.
    pub fn age(&self) -> Duration {
        self.age
    }

    /// Whether somebody wants it expedited.
    pub fn is_expedited(&self) -> bool {
        self.expedited
    }

    /// The counts of the domain, with those who wait and the backlog behind the grace period.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The readers that hold the grace period up, up to 64 of them. None if all have left between
    /// the moment when it was noticed and the one when the report was made.
    ///
    /// Under [`Engine::Token`](crate::Engine::Token): of the QSBR readers that stand in one chain,
    /// the one at which the token is.
    pub fn holdouts(&self) -> &[Holdout] {
        &self.holdouts
    }

    /// How many holdouts there are besides.
    pub fn holdouts_unnamed(&self) -> usize {
        self.unnamed
    }

    /// In a [sleepable domain](crate::Srcu): the sections that hold the grace period up. Its
    /// readers have no names, so [`holdouts`](Self::holdouts) is empty there.
    pub fn sections(&self) -> u64 {
        self.sections
    }

    /// In a sleepable domain: what each CPU has counted of the sections that are waited for, where
    /// that is anything. A section that ends on another CPU than it began on leaves both
    /// unbalanced; the sums differ by [`sections`](Self::sections).
    pub fn slots(&self) -> &[SlotBalance] {
        &self.slots
    }

    /// In a sleepable domain that [tracks its guards](crate::Srcu::track_guards): the oldest one
    /// that it knows of.
    pub fn oldest_guard(&self) -> Option<&OldestGuard> {
        self.oldest_guard.as_ref()
    }

    /// Reports of this process, of any domain, that could not be made: the hook took too long, or
    /// the system gave no thread.
    pub fn reports_lost(&self) -> u64 {
        self.reports_lost
    }

    /// Times that the hook panicked in this process.
    pub fn hook_panics(&self) -> u64 {
        self.hook_panics
    }
}

/// A reader that holds a grace period up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Holdout {
    pub(super) thread: u32,
    pub(super) thread_name: Option<String>,
    pub(super) state: ThreadState,
    pub(super) sleeps_in: Option<String>,
    pub(super) began: Option<&'static Location<'static>>,
    pub(super) qsbr: bool,
    pub(super) stack: Result<Vec<StackFrame>, StackMissing>,
}

impl Holdout {
    /// The thread's id in the system (`gettid`); `None` where there is none.
    pub fn thread_id(&self) -> Option<u32> {
        (self.thread != 0).then_some(self.thread)
    }

    /// The thread's name as the system knows it: on Linux the first 15 bytes.
    pub fn thread_name(&self) -> Option<&str> {
        self.thread_name.as_deref()
    }

    /// What the thread was doing.
    pub fn state(&self) -> ThreadState {
        self.state
    }

    /// The function of the kernel that the thread slept in, where the system tells.
    pub fn sleeps_in(&self) -> Option<&str> {
        self.sleeps_in.as_deref()
    }

    /// Where its outermost section began; for a QSBR reader: where it came online.
    pub fn began(&self) -> Option<&'static Location<'static>> {
        self.began
    }

    /// Whether it is a QSBR reader, which has announced no quiescent state since the grace period
    /// began.
    pub fn is_qsbr(&self) -> bool {
        self.qsbr
    }

    /// The thread's stack while it was in the section, innermost frame first.
    ///
    /// # Errors
    /// Why there is none.
    pub fn stack(&self) -> Result<&[StackFrame], &StackMissing> {
        self.stack.as_deref()
    }
}

/// What one CPU has counted in the index of a sleepable domain that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotBalance {
    pub(super) cpu: Option<u32>,
    pub(super) begun: u64,
    pub(super) ended: u64,
}

impl SlotBalance {
    /// The CPU's number; `None` for those who count in words that all share.
    pub fn cpu(&self) -> Option<u32> {
        self.cpu
    }

    /// Sections that began there since the domain was made.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Sections that ended there.
    pub fn ended(&self) -> u64 {
        self.ended
    }
}

/// The oldest guard of a sleepable domain among those that are listed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OldestGuard {
    pub(super) location: &'static Location<'static>,
    pub(super) thread: u32,
    pub(super) age: Duration,
    pub(super) listed: usize,
}

impl OldestGuard {
    /// Where it was taken.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// The system's id of the thread that took it; it may have been sent to another one since.
    /// `None` where there is none.
    pub fn thread_id(&self) -> Option<u32> {
        (self.thread != 0).then_some(self.thread)
    }

    /// How long ago.
    pub fn age(&self) -> Duration {
        self.age
    }

    /// How many guards of the domain are listed, it included.
    pub fn listed(&self) -> usize {
        self.listed
    }
}

/// A frame of a stack. A function that was inlined has a frame of its own, with the same address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackFrame {
    pub(super) address: usize,
    pub(super) function: Option<String>,
    pub(super) file: Option<PathBuf>,
    pub(super) line: Option<u32>,
}

impl StackFrame {
    /// The instruction pointer: where the thread was, or where the callee returns to.
    pub fn address(&self) -> usize {
        self.address
    }

    /// The function, if the program's symbols tell.
    pub fn function(&self) -> Option<&str> {
        self.function.as_deref()
    }

    /// The source file, if the program's debug information tells.
    pub fn file(&self) -> Option<&std::path::Path> {
        self.file.as_deref()
    }

    /// The line in the source file.
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    fn is_start_of_thread(&self) -> bool {
        self.function().is_some_and(|function| function.contains("__rust_begin_short_backtrace"))
    }
}

impl fmt::Display for StallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, grace_period, age, statistics, .. } = self;
        let kind = if self.expedited { "an expedited grace period" } else { "a grace period" };
        write!(f, "quiescence: {kind} has not ended for {age:.1?}: number {grace_period} of ")?;
        let (waiters, callbacks) = (statistics.waiters, statistics.callbacks_waiting());
        let bytes = statistics.bytes_waiting;
        write!(
            f,
            "domain {domain}; waiting: {waiters} threads, {callbacks} callbacks ({bytes} bytes)"
        )?;
        if self.sections != 0 {
            self.describe_sections(f)?;
        } else if self.holdouts.is_empty() {
            write!(
                f,
                "\n  no reader holds it up any more: nobody has looked since the last one left"
            )?;
        }
        for holdout in &self.holdouts {
            write!(f, "\n  held up by ")?;
            holdout.describe(f, self.age)?;
        }
        if self.unnamed != 0 {
            write!(f, "\n  and held up by {} readers more", self.unnamed)?;
        }
        if self.reports_lost != 0 {
            write!(f, "\n  {} reports of this process were lost", self.reports_lost)?;
        }
        if self.hook_panics != 0 {
            write!(f, "\n  the hook for these reports has panicked {} times", self.hook_panics)?;
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
                let OldestGuard { location, thread, age, listed } = guard;
                write!(f, "\n    of {listed} guards that are listed, the oldest was taken ")?;
                write!(f, "{age:.1?} ago by thread {thread} at {location}")
            }
            None => write!(
                f,
                "\n    Srcu::track_guards(true) has guards listed that are taken from then on"
            ),
        }
    }
}

impl Holdout {
    fn describe(&self, f: &mut fmt::Formatter<'_>, age: Duration) -> fmt::Result {
        match (self.thread_id(), &self.thread_name) {
            (Some(thread), Some(name)) => write!(f, "thread {thread} {name:?}")?,
            (Some(thread), None) => write!(f, "thread {thread}")?,
            (None, _) => write!(f, "a thread without an id")?,
        }
        write!(f, ", {}", self.state)?;
        if let Some(function) = &self.sleeps_in {
            write!(f, " in {function}")?;
        }
        let doing = match self.qsbr {
            true => "a QSBR reader without a quiescent state",
            false => "in a section",
        };
        write!(f, ", {doing} for at least {age:.1?}")?;
        match (self.began, self.qsbr) {
            (Some(began), true) => write!(f, "\n    online since {began}")?,
            (Some(began), false) => write!(f, "\n    begun at {began}")?,
            (None, _) => write!(f, "\n    begun at an unknown place")?,
        }
        match &self.stack {
            Ok(frames) => {
                // What is further out is how Rust starts threads.
                let frames = frames.iter().take_while(|frame| !frame.is_start_of_thread());
                { frames }.try_for_each(|frame| write!(f, "\n      {frame}"))
            }
            Err(missing) => write!(f, "\n    no stack: {missing}"),
        }
    }
}

impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(function) => write!(f, "{function}")?,
            None => write!(f, "{:#x}", self.address)?,
        }
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " at {}:{line}", file.display()),
            (Some(file), None) => write!(f, " at {}", file.display()),
            _ => Ok(()),
        }
    }
}
