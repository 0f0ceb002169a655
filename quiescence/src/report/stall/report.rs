//! What is notified of a stall: [`StallReport`] and its parts, and how they are printed.

use std::fmt;
use std::panic::Location;
use std::path::PathBuf;
use std::time::Duration;

use crate::event::statistics::Statistics;
use crate::os::stack::StackMissing;
use crate::os::thread_state::ThreadState;

/// A grace period that has not ended for longer than the limit, and who holds it up.
///
/// Printed ([`Display`](fmt::Display)) it is several lines, which name every holdout, where its
/// section began, and its stack. See [`set_stall_hook`](crate::report::set_stall_hook).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StallReport {
    /// The domain: the name that it was [given](crate::tuning::Builder::name) or is declared by,
    /// `global`, or a number.
    pub domain: String,
    /// Which grace period of the domain: [`Statistics::grace_periods`] when it will have ended.
    pub grace_period: u64,
    /// How long holdouts have been waited for, when it was noticed.
    pub age: Duration,
    /// Whether somebody wants it expedited.
    pub is_expedited: bool,
    /// The counts of the domain, with those who wait and the backlog behind the grace period.
    pub statistics: Statistics,
    /// The readers that hold the grace period up, up to 64 of them. None if all have left between
    /// the moment when it was noticed and the one when the report was made.
    ///
    /// Under [`Engine::Token`](crate::tuning::Engine::Token): of the QSBR readers that stand in one
    /// chain, the one at which the token is.
    pub holdouts: Vec<Holdout>,
    /// How many holdouts there are besides.
    pub holdouts_unnamed: usize,
    /// In a [sleepable domain](crate::Srcu): the sections that hold the grace period up. Its
    /// readers have no names, so [`holdouts`](Self::holdouts) is empty there.
    pub sections: u64,
    /// In a sleepable domain: what each CPU has counted of the sections that are waited for, where
    /// that is anything. A section that ends on another CPU than it began on leaves both
    /// unbalanced; the sums differ by [`sections`](Self::sections).
    pub slots: Vec<SlotBalance>,
    /// In a sleepable domain that [tracks its guards](crate::Srcu::track_guards): the oldest one
    /// that it knows of.
    pub oldest_guard: Option<OldestGuard>,
    /// Reports of this process, of any domain, that could not be made: the hook took too long, or
    /// the system gave no thread.
    pub reports_lost: u64,
    /// Times that the hook panicked in this process.
    pub hook_panics: u64,
}

/// A reader that holds a grace period up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Holdout {
    /// The thread's id in the system (`gettid`); `None` where there is none.
    pub thread_id: Option<u32>,
    /// The thread's name as the system knows it: on Linux the first 15 bytes.
    pub thread_name: Option<String>,
    /// What the thread was doing.
    pub state: ThreadState,
    /// The function of the kernel that the thread slept in, where the system tells.
    pub sleeps_in: Option<String>,
    /// Where its outermost section began; for a QSBR reader: where it came online.
    pub began: Option<&'static Location<'static>>,
    /// Whether it is a QSBR reader, which has announced no quiescent state since the grace period
    /// began.
    pub is_qsbr: bool,
    /// The thread's stack while it was in the section, innermost frame first; or why there is none.
    pub stack: Result<Vec<StackFrame>, StackMissing>,
}

/// What one CPU has counted in the index of a sleepable domain that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotBalance {
    /// The CPU's number; `None` for those who count in words that all share.
    pub cpu: Option<u32>,
    /// Sections that began there since the domain was made.
    pub begun: u64,
    /// Sections that ended there.
    pub ended: u64,
}

/// The oldest guard of a sleepable domain among those that are listed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OldestGuard {
    /// Where it was taken.
    pub location: &'static Location<'static>,
    /// The system's id of the thread that took it; it may have been sent to another one since.
    /// `None` where there is none.
    pub thread_id: Option<u32>,
    /// How long ago.
    pub age: Duration,
    /// How many guards of the domain are listed, it included.
    pub listed: usize,
}

/// A frame of a stack.
///
/// The library reads neither symbols nor debug information. `addr2line` (of binutils, or LLVM's)
/// names function and line, and what was inlined there, from [`module`](Self::module) and
/// [`offset`](Self::offset); a report that is printed has the command for each stack. A hook may
/// also name them in the process, from [`address`](Self::address), by a crate that reads symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackFrame {
    /// The instruction pointer: where the thread was, or where the callee returns to.
    pub address: usize,
    /// The file that has the code: the program, or a shared library. `None` if it is in none.
    pub module: Option<PathBuf>,
    /// Where the instruction is in the file, as the file's own tables count; of a caller: where its
    /// call is, which is a little before [`address`](Self::address). `None` if it is in no file.
    pub offset: Option<usize>,
    /// The function, if the dynamic linker knows it: those that shared libraries export. Not
    /// demangled.
    pub function: Option<String>,
}

impl fmt::Display for StallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, grace_period, age, statistics, .. } = self;
        let kind = if self.is_expedited { "an expedited grace period" } else { "a grace period" };
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
        if self.holdouts_unnamed != 0 {
            write!(f, "\n  and held up by {} readers more", self.holdouts_unnamed)?;
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
                let OldestGuard { location, thread_id, age, listed } = guard;
                write!(f, "\n    of {listed} guards that are listed, the oldest was taken ")?;
                match thread_id {
                    Some(thread) => write!(f, "{age:.1?} ago by thread {thread} at {location}"),
                    None => write!(f, "{age:.1?} ago at {location}"),
                }
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
        write!(f, ", {doing} for at least {age:.1?}")?;
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

/// How to have those frames named that have no function.
fn describe_names(f: &mut fmt::Formatter<'_>, frames: &[StackFrame]) -> fmt::Result {
    let unnamed = frames.iter().filter(|frame| frame.function.is_none());
    let places = unnamed.filter_map(|frame| Some((frame.module.as_deref()?, frame.offset?)));
    let places = places.map(|(module, offset)| (module.as_os_str(), offset));
    let mut named = Vec::new();
    for (module, _) in places.clone() {
        if named.contains(&module) {
            continue;
        }
        named.push(module);
        write!(f, "\n      names: addr2line -Cfipe {}", module.display())?;
        let mut of_module = places.clone().filter(|(of, _)| *of == module);
        of_module.try_for_each(|(_, offset)| write!(f, " {offset:#x}"))?;
    }
    Ok(())
}

impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, module, offset, function } = self;
        let (Some(module), Some(offset)) = (module, offset) else {
            return write!(f, "{address:#x}");
        };
        write!(f, "{}+{offset:#x}", module.display())?;
        match function {
            Some(function) => write!(f, " ({function})"),
            None => Ok(()),
        }
    }
}
