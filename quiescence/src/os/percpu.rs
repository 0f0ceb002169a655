//! The current CPU, and restartable sequences: a few instructions that the kernel restarts if they
//! are interrupted.
//!
//! A thread announces a sequence to the kernel in a word of its own (glibc registers the word,
//! `__rseq_offset`). A descriptor says where the sequence begins and ends, and where the thread
//! continues if it is preempted, migrated or gets a signal in between, or if another thread demands
//! it (`membarrier(PRIVATE_EXPEDITED_RSEQ)`). A sequence takes effect by its last instruction, the
//! *commit*; so it happens completely, on one CPU, or not at all. Source: Paul Turner and Andrew
//! Hunter's per-CPU sections; Mathieu Desnoyers's rseq(2), Linux 4.18 and 5.10. The instructions,
//! each with its reason, are in `percpu/x86_64.rs`.
//!
//! A sequence may access only the words that it is given and the thread's rseq area. Without rseq
//! or membarrier, or if the trial (`percpu/trial.rs`) fails, every sequence *refuses*, and its
//! caller uses atomic instructions on the slot of [`slot`] instead: [`PerCpuPath::Portable`].
//!
//! The first thread that needs the path chooses it, once ([`path`]); until then sequences refuse,
//! too. The thread may be in a signal handler, so nothing here allocates, locks, waits for another
//! thread of the program, or changes `errno`. So concurrent threads, or a handler and the thread
//! that it interrupts, each work out an answer, and the first one stands. A `fork` in between
//! leaves nothing half done.
//!
//! **A tracer** (a debugger) that is attached at that time makes the choice the portable path. A
//! debugger may call a function in a thread that it has stopped inside a sequence: it changes the
//! thread's registers, and restores them after the call. The kernel finds the thread outside the
//! range, and sets `rseq_cs` to null. So the thread then continues in the middle of a sequence that
//! is no longer announced, and is not restarted whatever has happened meanwhile: it may commit a
//! count to freed memory. No instruction of a sequence can detect that, since the debugger may stop
//! the thread between the check and the commit.
//!
//! In the environment: `QUIESCENCE_PERCPU=portable`, or `restartable`, which uses sequences even
//! under a tracer; and, for tests, `QUIESCENCE_PERCPU_SLOTS=1`, which limits the number of CPUs
//! that have words of their own.

use std::ffi::CStr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::fence::{self, Fences};
use super::{calls, environment, tracer};

#[cfg(all(quiescence_mutants, target_os = "linux", target_env = "gnu", not(miri)))]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[path = "percpu/hooks.rs"]
mod hooks;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64", not(miri)))]
#[path = "percpu/x86_64.rs"]
mod imp;
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64", not(miri))))]
#[path = "percpu/unsupported.rs"]
mod imp;

#[cfg(all(test, target_os = "linux", target_env = "gnu", target_arch = "x86_64", not(miri)))]
pub(crate) use imp::descriptor;
pub(crate) use imp::{Word, add_at, increment, load_words, take_at};

/// How a process counts per CPU. Chosen once; see [`per_cpu_path`](crate::tuning::per_cpu_path).
///
/// Both paths work in threads that other code has created, with CPU affinities and control groups,
/// while CPUs go offline and come back, after `fork` (but not `vfork`), and in signal handlers, as
/// far as each function says so. A handler must not drop anything that owns heap memory (a domain,
/// a cell, the last `Arc`), wait for a grace period, or retire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PerCpuPath {
    /// In restartable sequences: no atomic instruction, and no grace period waits for a load of a
    /// [`Snapshot`](crate::cell::Snapshot).
    ///
    /// Used on Linux 5.10 or later with glibc 2.35 or later, on x86-64, unless something forbids
    /// rseq(2) or membarrier(2). The code must stay loaded: do not pass a shared object that
    /// contains it to `dlclose`.
    ///
    /// Not used if a debugger or another tracer is attached when the choice is made, unless
    /// `QUIESCENCE_PERCPU=restartable` is set in the environment. A debugger that attaches
    /// **later** must not call functions in this process (`call`, `print f()`, breakpoint
    /// conditions that call functions), nor change where a thread continues (`jump`, `return`). A
    /// thread that it has stopped inside a sequence would continue there instead of restarting the
    /// sequence, and might use memory that was freed meanwhile. Reading memory and single-stepping
    /// are harmless; so are breakpoints outside of the library's own code.
    Restartable,
    /// With atomic instructions, on the slot of the current CPU as the system reports it.
    Portable,
}

/// From one CPU's words to the next one's, as a shift.
pub(crate) const STRIDE_SHIFT: u32 = 16;

/// How often a sequence is begun again before it says no: no thread makes others begin anew for
/// ever, be it another thread's barriers or a debugger's single steps.
#[allow(dead_code)] // where there are no sequences
const ABORTS_MAX: u64 = 8;

/// More CPUs than any Linux is built for.
const SLOTS_MAX: u32 = 1 << 13;

/// [`Chosen::state`] on the portable path: a limit of no CPU, and not the 0 of no choice.
const PORTABLE: u64 = 1;

/// What has been chosen. Every sequence looks at it, so it has a cache line of its own.
#[repr(align(64))]
struct Chosen {
    /// The high half is the *limit*: CPUs with a number below it have words that sequences may
    /// write. It is 0 until sequences may be used, and for ever on the portable path. The low half
    /// is then the *offset*, from the thread pointer to the thread's rseq area, the same in all
    /// threads. (In one word, as loads are what a sequence has most of.)
    state: AtomicU64,
    slots: AtomicU32,
}

const VARIABLE: &CStr = c"QUIESCENCE_PERCPU";

static CHOSEN: Chosen = Chosen { state: AtomicU64::new(0), slots: AtomicU32::new(0) };

/// Where a thread's rseq area is, and below which CPUs sequences may write.
#[derive(Clone, Copy)]
#[allow(dead_code)] // where there are no sequences
struct Area {
    offset: isize,
    limit: u32,
}

impl Area {
    /// As [`Chosen::state`] has it.
    #[inline(always)]
    fn from_state(state: u64) -> Option<Self> {
        let limit = (state >> 32) as u32;
        (limit != 0).then_some(Self { offset: state as i32 as isize, limit })
    }

    /// `None` if it is too far away from the thread pointer: no C library does that.
    fn to_state(self) -> Option<u64> {
        let offset = i32::try_from(self.offset).ok()?.cast_unsigned();
        Some(u64::from(self.limit) << 32 | u64::from(offset))
    }
}

/// The area that sequences use; `None` while they may not be used.
#[inline(always)]
fn area() -> Option<Area> {
    // Acquire: pairs with the exchange in `choose`, which comes after the registrations.
    Area::from_state(CHOSEN.state.load(Acquire))
}

fn path_of(state: u64) -> Option<PerCpuPath> {
    match state {
        0 => None,
        PORTABLE => Some(PerCpuPath::Portable),
        _ => Some(PerCpuPath::Restartable),
    }
}

/// How this process counts. Makes the choice if it has not been made.
#[inline]
pub(crate) fn path() -> PerCpuPath {
    // Acquire: as in `area`.
    path_of(CHOSEN.state.load(Acquire)).unwrap_or_else(choose)
}

#[cold]
#[inline(never)]
fn choose() -> PerCpuPath {
    let said = |path| environment::is(VARIABLE, path);
    let asked_not_to = said("portable") || (!said("restartable") && tracer::is_attached());
    let area = || Some(Area { offset: imp::area_offset()?, limit: slots() as u32 });
    let restartable = (!asked_not_to && fence::chosen() == Fences::Membarrier)
        .then(area)
        .flatten()
        .filter(|area| fence::register_restarts() && imp::is_sound(*area));
    let found = restartable.and_then(Area::to_state).unwrap_or(PORTABLE);
    // AcqRel: pairs with `area`. The first answer stands.
    let stands = match CHOSEN.state.compare_exchange(0, found, AcqRel, Acquire) {
        Ok(_) => {
            environment::complain_unless(VARIABLE, "portable or restartable");
            found
        }
        Err(first) => first,
    };
    if stands == PORTABLE { PerCpuPath::Portable } else { PerCpuPath::Restartable }
}

/// How many CPUs have words of their own: those that may ever come, as the system says.
#[inline]
pub(crate) fn slots() -> usize {
    // Relaxed: every thread gets the same value.
    match CHOSEN.slots.load(Relaxed) {
        0 => {
            let wanted = environment::number(c"QUIESCENCE_PERCPU_SLOTS");
            let slots = wanted.unwrap_or_else(cpus).clamp(1, SLOTS_MAX);
            // The first answer stands: the system might give two.
            match CHOSEN.slots.compare_exchange(0, slots, Relaxed, Relaxed) {
                Ok(_) => slots as usize,
                Err(first) => first as usize,
            }
        }
        slots => slots as usize,
    }
}

/// The slot of the CPU that the caller was on a moment ago: for atomic instructions.
#[inline]
pub(crate) fn slot() -> usize {
    calls::cpu() as usize % slots()
}

/// Has every sequence of this process that is going on begin anew, and is a heavy fence as well.
/// Without sequences it is that fence only.
pub(crate) fn barrier() {
    //~ plain-barrier
    if area().is_none() {
        fence::heavy(std::iter::empty());
        // Once more: a thread may have begun to use sequences while we looked, before the fence. If
        // it had read what the caller has replaced, then before the fence reached its CPU; so it
        // had read the limit before that, and the fence shows us the limit.
        if area().is_none() {
            return;
        }
    }
    fence::heavy_with_restarts();
}

/// Tells the kernel again, in a child process, that barriers will come.
pub(crate) fn register_after_fork() {
    if area().is_some() {
        fence::register_restarts();
    }
}

/// One more than the greatest number that a CPU may have: as the system says, or, where there is no
/// `/sys`, as many as its masks have. Out of the way of [`slot`], which asks at first alone.
#[cold]
#[inline(never)]
fn cpus() -> u32 {
    possible().unwrap_or_else(calls::cpus_of_masks::<{ SLOTS_MAX as usize / 64 }>)
}

/// As the system says: `0-1`, or `0-3,8-11`.
fn possible() -> Option<u32> {
    let mut text = [0; 1 << 10];
    let text = calls::read_file(c"/sys/devices/system/cpu/possible", &mut text).ok()?;
    let last = text.trim_ascii_end().rsplit(|byte| !byte.is_ascii_digit());
    environment::parse::<u32>(last.into_iter().next()?)?.checked_add(1)
}

#[cfg(all(test, target_os = "linux", not(miri)))]
#[test]
fn the_system_says_how_many_cpus_there_may_be() {
    let online = std::thread::available_parallelism().unwrap().get() as u32;
    let possible = possible().expect("Linux has /sys here");
    assert!((online..=SLOTS_MAX).contains(&possible));
    assert!(calls::cpus_of_masks::<{ SLOTS_MAX as usize / 64 }>() >= possible);
}

#[cfg(all(test, target_os = "linux", target_env = "gnu", target_arch = "x86_64", not(miri)))]
#[path = "percpu/tests.rs"]
mod tests;
