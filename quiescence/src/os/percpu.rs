//! Which processor this is, and restartable sequences: a few instructions that the kernel starts anew when
//! they are interrupted.
//!
//! A thread tells the kernel, in a word of its own (glibc registers the place, `__rseq_offset`), that it is in a
//! sequence; a descriptor says where that begins and ends, and where to go on if the thread is preempted,
//! migrated or gets a signal in between, or if another thread says so
//! (`membarrier(PRIVATE_EXPEDITED_RSEQ)`). A sequence ends with one instruction that makes it happen, the
//! *commit*; so it happens whole, on one processor, or not at all. Source: Paul Turner and Andrew Hunter's
//! per-CPU sections; Mathieu Desnoyers's rseq(2), Linux 4.18 and 5.10.
//!
//! It may touch the words that it is given and the thread's rseq area, and nothing else. Without rseq, or without
//! membarrier, or where the self-test finds fault, every function here says *no*, and its caller does
//! the same with atomic instructions on the slot of [`slot`]: [`PerCpuPath::Portable`]. The choice is
//! made once, by the first who asks ([`path`]), without allocating or locking, so that a signal handler may be
//! that one; until then they say no, too.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::fence::{self, Fences};

/// How a process counts per processor; chosen once. See [`per_cpu_path`](crate::per_cpu_path).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PerCpuPath {
    /// In restartable sequences: no atomic instruction, and no grace period waits for a read of
    /// [`Snapshot`](crate::Snapshot) or [`ArcCell`](crate::ArcCell).
    Restartable,
    /// With atomic instructions, on the slot of the processor that the system names.
    Portable,
}

/// From one processor's words to the next one's, as a shift.
pub(crate) const STRIDE_SHIFT: u32 = 16;

/// How often a sequence is begun again before it says no: nobody makes others begin anew for ever.
const ABORTS_MAX: u64 = 8;

const UNDECIDED: u32 = 0;
const DECIDING: u32 = 1;
const RESTARTABLE: u32 = 2;
const PORTABLE: u32 = 3;

/// What has been chosen.
struct Chosen {
    state: AtomicU32,
    /// Processors with a number below this have words of their own that sequences may write; 0 until sequences
    /// may be used.
    limit: AtomicU32,
}

static CHOSEN: Chosen = Chosen { state: AtomicU32::new(UNDECIDED), limit: AtomicU32::new(0) };

/// How this process counts; `None` while another thread makes the choice.
pub(crate) fn path() -> Option<PerCpuPath> {
    // Acquire: pairs with the Release of whoever chose, whose self-test and registrations come before.
    match CHOSEN.state.load(Acquire) {
        RESTARTABLE => Some(PerCpuPath::Restartable),
        PORTABLE => Some(PerCpuPath::Portable),
        _ => choose(),
    }
}

/// The same, waiting for whoever makes the choice: not for signal handlers.
pub(crate) fn path_for_sure() -> PerCpuPath {
    loop {
        match path() {
            Some(path) => return path,
            None => std::thread::yield_now(),
        }
    }
}

#[cold]
fn choose() -> Option<PerCpuPath> {
    // Relaxed: nobody takes anything from the mark but that it is there.
    CHOSEN.state.compare_exchange(UNDECIDED, DECIDING, Relaxed, Relaxed).ok()?;
    let asked_not_to = std::env::var_os("QUIESCENCE_PERCPU").is_some_and(|v| v == "portable");
    let restartable = !asked_not_to
        && fence::chosen() == Fences::Membarrier
        && imp::is_registered()
        && imp::register();
    let path = if restartable {
        CHOSEN.limit.store(slots() as u32, Relaxed);
        RESTARTABLE
    } else {
        PORTABLE
    };
    // Release: pairs with the Acquire in `path`.
    CHOSEN.state.store(path, Release);
    self::path()
}

/// How many processors have words of their own: those that may ever come, as the system says.
pub(crate) fn slots() -> usize {
    static SLOTS: AtomicU32 = AtomicU32::new(0);
    // Relaxed: whoever asks gets the same answer.
    match SLOTS.load(Relaxed) {
        0 => {
            let slots = imp::processors().clamp(1, 1 << 13);
            // The first answer stands: the system might give two.
            match SLOTS.compare_exchange(0, slots, Relaxed, Relaxed) {
                Ok(_) => slots as usize,
                Err(first) => first as usize,
            }
        }
        slots => slots as usize,
    }
}

/// The slot of the processor that the caller was on a moment ago: for atomic instructions.
pub(crate) fn slot() -> usize {
    imp::processor() as usize % slots()
}

/// Has every sequence of this process that is going on begin anew, and is a heavy fence as well. Without sequences
/// it is that fence only.
pub(crate) fn barrier() {
    if CHOSEN.limit.load(Relaxed) != 0 { imp::barrier() } else { fence::heavy(std::iter::empty()) }
}

/// Tells the kernel again, in a child process, that barriers will come.
pub(crate) fn register_after_fork() {
    if CHOSEN.limit.load(Relaxed) != 0 {
        imp::register();
    }
}

#[inline(always)]
fn limit() -> u64 {
    // Relaxed: what was registered before it was set was so for the whole process, by the kernel.
    u64::from(CHOSEN.limit.load(Relaxed))
}

pub(crate) use imp::{Word, add, add_unless, increment, load_counted, load_words, take};

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64", not(loom)))]
mod imp {
    use std::arch::{asm, global_asm};
    use std::mem::MaybeUninit;
    use std::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU64};

    use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

    use super::{ABORTS_MAX, Relaxed, STRIDE_SHIFT, limit};

    // Weak, so that a program starts where glibc has no rseq.
    global_asm!(".weak __rseq_offset", ".weak __rseq_size");

    /// From the thread pointer to the thread's rseq area; the same in all threads.
    static OFFSET: AtomicIsize = AtomicIsize::new(0);

    pub(super) fn is_registered() -> bool {
        let (offset, size): (*const isize, *const u32);
        // SAFETY: loads two addresses from the global offset table; null where glibc has no such variable.
        unsafe {
            asm!(
                "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
                "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
                offset = out(reg) offset, size = out(reg) size,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        if offset.is_null() || size.is_null() {
            return false;
        }
        // SAFETY: glibc's constants, of these types.
        let (offset, size) = unsafe { (offset.read(), size.read()) };
        OFFSET.store(offset, Relaxed);
        size != 0
    }

    pub(super) fn register() -> bool {
        membarrier_query().contains_command(MembarrierCommand::PrivateExpeditedRseq)
            && membarrier(MembarrierCommand::RegisterPrivateExpeditedRseq).is_ok()
            && membarrier(MembarrierCommand::PrivateExpeditedRseq).is_ok()
    }

    pub(super) fn barrier() {
        if membarrier(MembarrierCommand::PrivateExpeditedRseq).is_err() {
            std::process::abort();
        }
    }

    pub(super) fn processors() -> u32 {
        // SAFETY: asks for a number.
        let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        u32::try_from(processors).unwrap_or(1)
    }

    pub(super) fn processor() -> u32 {
        // SAFETY: asks for a number.
        let processor = unsafe { libc::sched_getcpu() };
        u32::try_from(processor).unwrap_or(0)
    }

    #[inline(always)]
    fn offset() -> isize {
        OFFSET.load(Relaxed)
    }

    /// A sequence. The text before `33` says that it begins, what is in it is given, `44` is where it has
    /// happened, and `55` is where the kernel sends a thread that was interrupted.
    macro_rules! sequence {
        ([$($body:literal),* $(,)?], $($operands:tt)*) => {
            asm!(
                ".pushsection __rseq_cs, \"aw\"",
                ".balign 32",
                "22:",
                ".long 0, 0",
                ".quad 33f, 44f - 33f, 55f",
                ".popsection",
                "66:",
                "lea {t}, [rip + 22b]",
                "mov qword ptr fs:[{offset} + 8], {t}",
                "33:",
                "mov {t:e}, dword ptr fs:[{offset} + 4]",
                "cmp {t}, {limit}",
                "jae 77f",
                $($body,)*
                "44:",
                ".pushsection __rseq_failure, \"ax\"",
                ".byte 0x0f, 0xb9, 0x3d",
                ".long 0x53053053",
                "55:",
                "dec {left}",
                "jnz 66b",
                "77:",
                "jmp {no}",
                ".popsection",
                offset = in(reg) offset(),
                limit = in(reg) limit(),
                $($operands)*
            )
        };
    }

    /// Adds one to the word of this processor, if it can be done in a sequence.
    ///
    /// # Safety
    /// `first` is the word of processor 0, and all slots have one.
    #[inline(always)]
    pub(crate) unsafe fn increment(first: *mut u64) -> bool {
        // SAFETY: the words are there, by the contract.
        unsafe {
            sequence!(
                ["shl {t}, {shift}", "inc qword ptr [{first} + {t}]"],
                first = in(reg) first, shift = const STRIDE_SHIFT,
                t = out(reg) _, left = inout(reg) ABORTS_MAX => _,
                no = label { return false },
                options(nostack)
            );
        }
        true
    }

    /// Adds so much to the word of this processor, if it can be done in a sequence.
    ///
    /// # Safety
    /// As [`increment`].
    #[inline(always)]
    pub(crate) unsafe fn add(first: *mut u64, amount: u64) -> bool {
        // SAFETY: the words are there, by the contract.
        unsafe {
            sequence!(
                ["shl {t}, {shift}", "add qword ptr [{first} + {t}], {amount}"],
                first = in(reg) first, amount = in(reg) amount, shift = const STRIDE_SHIFT,
                t = out(reg) _, left = inout(reg) ABORTS_MAX => _,
                no = label { return false },
                options(nostack)
            );
        }
        true
    }

    /// The same, unless `stop` is set: then it says no.
    ///
    /// # Safety
    /// As [`increment`].
    #[inline(always)]
    pub(crate) unsafe fn add_unless(first: *mut u64, amount: u64, stop: &AtomicU64) -> bool {
        // SAFETY: the words are there, by the contract.
        unsafe {
            sequence!(
                [
                    "cmp qword ptr [{stop}], 0", "jne 77f",
                    "shl {t}, {shift}", "add qword ptr [{first} + {t}], {amount}"
                ],
                first = in(reg) first, amount = in(reg) amount, shift = const STRIDE_SHIFT,
                stop = in(reg) stop.as_ptr(),
                t = out(reg) _, left = inout(reg) ABORTS_MAX => _,
                no = label { return false },
                options(nostack)
            );
        }
        true
    }

    /// Takes so much from the word of this processor, unless `stop` is set or there is less: then it says no.
    ///
    /// # Safety
    /// As [`increment`].
    #[inline(always)]
    pub(crate) unsafe fn take(first: *mut u64, amount: u64, stop: &AtomicU64) -> bool {
        // SAFETY: the words are there, by the contract.
        unsafe {
            sequence!(
                [
                    "cmp qword ptr [{stop}], 0", "jne 77f",
                    "shl {t}, {shift}",
                    "cmp qword ptr [{first} + {t}], {amount}", "jb 77f",
                    "sub qword ptr [{first} + {t}], {amount}"
                ],
                first = in(reg) first, amount = in(reg) amount, shift = const STRIDE_SHIFT,
                stop = in(reg) stop.as_ptr(),
                t = out(reg) _, left = inout(reg) ABORTS_MAX => _,
                no = label { return false },
                options(nostack)
            );
        }
        true
    }

    /// As [`sequence!`], for those that answer something. `left` is 0 if it did not happen.
    macro_rules! answering_sequence {
        ([$($body:literal),* $(,)?], $($operands:tt)*) => {
            asm!(
                ".pushsection __rseq_cs, \"aw\"",
                ".balign 32",
                "22:",
                ".long 0, 0",
                ".quad 33f, 44f - 33f, 55f",
                ".popsection",
                "66:",
                "lea {t}, [rip + 22b]",
                "mov qword ptr fs:[{offset} + 8], {t}",
                "33:",
                "mov {t:e}, dword ptr fs:[{offset} + 4]",
                "cmp {t}, {limit}",
                "jae 77f",
                $($body,)*
                "44:",
                ".pushsection __rseq_failure, \"ax\"",
                ".byte 0x0f, 0xb9, 0x3d",
                ".long 0x53053053",
                "55:",
                "dec {left}",
                "jnz 66b",
                "77:",
                "xor {left:e}, {left:e}",
                "jmp 44b",
                ".popsection",
                offset = in(reg) offset(),
                limit = in(reg) limit(),
                $($operands)*
            )
        };
    }

    /// Loads a pointer and adds one to the count that stands so many bytes before what it points to. Null stays
    /// null. `None` if it cannot be done in a sequence.
    ///
    /// # Safety
    /// `place` is null or has such a count before it, as long as no [`barrier`](super::barrier) has come after it was
    /// taken out.
    #[inline(always)]
    pub(crate) unsafe fn load_counted<T>(place: &AtomicPtr<T>, before: usize) -> Option<*mut T> {
        let (pointer, left): (*mut T, u64);
        // SAFETY: the pointer's object is there until the sequence has happened, by the contract.
        unsafe {
            answering_sequence!(
                [
                    "mov {pointer}, qword ptr [{place}]",
                    "test {pointer}, {pointer}", "jz 44f",
                    "mov {t}, {pointer}", "sub {t}, {before}",
                    "lock inc qword ptr [{t}]"
                ],
                place = in(reg) place.as_ptr(), before = in(reg) before,
                pointer = out(reg) pointer,
                t = out(reg) _, left = inout(reg) ABORTS_MAX => left,
                options(nostack)
            );
        }
        (left != 0).then_some(pointer)
    }

    /// Words that need not hold anything.
    pub(crate) type Word = MaybeUninit<u64>;

    /// Loads a pointer and the `N` words that it points to. `None` if it cannot be done in a sequence.
    ///
    /// # Safety
    /// `place` points to so many words, as long as no [`barrier`](super::barrier) has come after they were taken out.
    #[inline(always)]
    pub(crate) unsafe fn load_words<const N: usize>(place: &AtomicPtr<Word>) -> Option<[Word; N]> {
        const { assert!(N <= 1 << 10) };
        let mut words = [Word::uninit(); N];
        let left: u64;
        // SAFETY: the words are there until the sequence has happened, by the contract; what is half copied when
        // it begins anew is copied again.
        unsafe {
            answering_sequence!(
                [
                    "mov {t}, qword ptr [{place}]",
                    ".set quiescence_at, 0",
                    ".rept {count}",
                    "mov {word}, qword ptr [{t} + quiescence_at]",
                    "mov qword ptr [{words} + quiescence_at], {word}",
                    ".set quiescence_at, quiescence_at + 8",
                    ".endr"
                ],
                place = in(reg) place.as_ptr(), words = in(reg) words.as_mut_ptr(), count = const N,
                word = out(reg) _,
                t = out(reg) _, left = inout(reg) ABORTS_MAX => left,
                options(nostack)
            );
        }
        (left != 0).then_some(words)
    }
}

/// Where there are no restartable sequences: each says no.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64", not(loom))))]
mod imp {
    use std::mem::MaybeUninit;
    use std::sync::atomic::{AtomicPtr, AtomicU64};

    pub(crate) type Word = MaybeUninit<u64>;

    pub(super) fn is_registered() -> bool {
        false
    }

    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn barrier() {
        unreachable!("chosen only where register() succeeds");
    }

    pub(super) fn processors() -> u32 {
        std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn processor() -> u32 {
        // SAFETY: asks for a number.
        let processor = unsafe { libc::sched_getcpu() };
        u32::try_from(processor).unwrap_or(0)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn processor() -> u32 {
        0
    }

    pub(crate) unsafe fn increment(_: *mut u64) -> bool {
        false
    }

    pub(crate) unsafe fn add(_: *mut u64, _: u64) -> bool {
        false
    }

    pub(crate) unsafe fn add_unless(_: *mut u64, _: u64, _: &AtomicU64) -> bool {
        false
    }

    pub(crate) unsafe fn take(_: *mut u64, _: u64, _: &AtomicU64) -> bool {
        false
    }

    pub(crate) unsafe fn load_counted<T>(_: &AtomicPtr<T>, _: usize) -> Option<*mut T> {
        None
    }

    pub(crate) unsafe fn load_words<const N: usize>(_: &AtomicPtr<Word>) -> Option<[Word; N]> {
        None
    }
}
