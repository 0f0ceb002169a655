//! Restartable sequences in the instructions of aarch64: built with `--cfg quiescence_rseq_aarch64`
//! only, since they have run in an emulator (qemu, two CPUs, Linux 6.1, glibc 2.36), whose memory
//! is ordered as its host's, and never on the hardware.
//!
//! What the kernel does, what a sequence is made of, and why, is said in `x86_64.rs`; it is the
//! same here, but for this:
//! - The thread pointer is `tpidr_el0`, so the area's address is computed, once for a sequence.
//! - A descriptor's address is `adrp` and `add`, within 4 GiB.
//! - No instruction both reads and writes memory without being atomic, so a count is `ldr`, `add`,
//!   `str`, of which the `str` is the commit: the value that was read is still the word's, or the
//!   thread has been interrupted.
//! - A count that others write too is added to by `ldxr`, `add`, `stxr`, which needs no LSE. `stxr`
//!   is the commit. Whether it has stored is looked at outside the range, and if not, everything
//!   begins anew.
//! - Conditional branches reach 1 MiB, and the abort handlers stand in another section: so
//!   conditions jump over a `b`.
//! - The signature is 0xd428bc00, a `brk`, as glibc registers it.
//! - Loads are not ordered among each other, but by their addresses: what is read through a loaded
//!   pointer is not older than the pointer. The look at `stop` and the commit need no order: the
//!   barrier of the thread that has set it has the sequence begin anew.

use std::arch::{asm, global_asm};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use crate::os::calls::Timespec;

#[cfg(quiescence_mutants)]
use super::hooks::announced;
use super::{ABORTS_MAX, Area, STRIDE_SHIFT, area};

#[path = "trial.rs"]
mod trial;

pub(super) use trial::passes as is_sound;

// Weak, so that a program starts where the C library has no rseq: they are then null.
global_asm!(".weak __rseq_offset", ".weak __rseq_size");

/// Where threads have their rseq areas, from the thread pointer; `None` where the C library has
/// registered none.
pub(super) fn area_offset() -> Option<isize> {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: loads two addresses from the global offset table; null where glibc has no such
    // variable.
    unsafe {
        asm!(
            "adrp {offset}, :got:__rseq_offset",
            "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
            "adrp {size}, :got:__rseq_size",
            "ldr {size}, [{size}, :got_lo12:__rseq_size]",
            offset = out(reg) offset, size = out(reg) size,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: glibc's constant, of this type.
    let size = unsafe { size.read() };
    // SAFETY: as above.
    (size != 0).then_some(unsafe { offset.read() })
}

/// The address of this thread's area.
#[inline(always)]
fn address(area: Area) -> usize {
    let pointer: usize;
    // SAFETY: loads the thread pointer.
    unsafe {
        asm!(
            "mrs {pointer}, tpidr_el0",
            pointer = out(reg) pointer,
            options(nomem, nostack, preserves_flags)
        );
    }
    pointer.wrapping_add_signed(area.offset)
}

/// Leaves a sequence announced or not, as the hooks say.
#[cfg(quiescence_mutants)]
macro_rules! filter_announced {
    () => {
        "and {t}, {t}, {announced}"
    };
}
#[cfg(not(quiescence_mutants))]
macro_rules! filter_announced {
    () => {
        ""
    };
}

/// A sequence in the area `$area`: the instructions of its body, the last of which is the commit;
/// what comes after the commit; and what to do if it does not happen. A body leaves by `b 77f`.
macro_rules! sequence {
    (
        $area:expr, [$($body:tt)*], then [$($then:tt)*], otherwise [$($otherwise:tt)*],
        $($operands:tt)*
    ) => {
        assembled!(
            [
                ".pushsection __rseq_cs, \"aw\"",
                ".balign 32",
                "22:",
                ".long 0, 0",
                ".quad 33f, 44f - 33f, 55f",
                ".popsection",

                "66:",
                "adrp {t}, 22b",
                "add {t}, {t}, :lo12:22b",
                filter_announced!(),
                "str {t}, [{area}, #8]",
                "33:",
                "ldr {t:w}, [{area}, #4]",
                "cmp {t:w}, {limit:w}",
                "b.lo 34f",
                "b 77f",
                "34:",
                $($body)*
                "44:",
                $($then)*
                "45:",

                ".pushsection __rseq_failure, \"ax\"",
                ".inst 0xd428bc00",
                "55:",
                "sub {left}, {left}, #1",
                "cbz {left}, 77f",
                "b 66b",
                "77:",
                $($otherwise)*
                ".popsection",
            ],
            hooks [announced = in(reg) announced(),],
            area = in(reg) address($area),
            limit = in(reg) $area.limit,
            t = out(reg) _,
            $($operands)*
        )
    };
}

/// Changes the word of this CPU, which stands `{bytes}` after that of `{first}`: `$instruction`
/// makes the new value `{word}` of the old one and `{amount}`.
macro_rules! counting {
    ($area:expr, [$($before:tt)*], [$($instruction:tt)*], $($operands:tt)*) => {
        sequence!(
            $area,
            [
                $($before)*
                "lsl {t}, {t}, #{shift}",
                "add {t}, {t}, {first}",
                "ldr {word}, [{t}, #{bytes}]",
                $($instruction)*
                "str {word}, [{t}, #{bytes}]",
            ],
            then [],
            otherwise ["b {no}",],
            shift = const STRIDE_SHIFT, word = out(reg) _,
            left = inout(reg) ABORTS_MAX => _,
            no = label { return false },
            $($operands)*
        )
    };
}

/// Adds one to the word of this CPU, if it can be done in a sequence.
///
/// # Safety
/// `first` is the word of CPU 0, and all slots have one.
#[inline(always)]
pub(crate) unsafe fn increment(first: *mut u64) -> bool {
    let Some(area) = area() else { return false };
    // SAFETY: the words are there, by the contract.
    unsafe {
        counting!(area, [], ["add {word}, {word}, #1",], first = in(reg) first, bytes = const 0,)
    };
    true
}

/// Adds so much to the word of this CPU that stands `BYTES` after the one that `place` points to,
/// unless that is null: then it says no. The place is looked at in the sequence; what is at it
/// depends on its address.
///
/// # Safety
/// `place` is null or points to the word of CPU 0, and all slots have one, as long as no
/// [`barrier`](super::barrier) has come after it was taken out.
#[inline(always)]
pub(crate) unsafe fn add_at<const BYTES: usize>(place: &AtomicPtr<u64>, amount: u64) -> bool {
    let Some(area) = area() else { return false };
    // SAFETY: the words are there, by the contract.
    unsafe {
        counting!(
            area, ["ldr {first}, [{place}]", "cbnz {first}, 35f", "b 77f", "35:",],
            ["add {word}, {word}, {amount}",],
            place = in(reg) place.as_ptr(), first = out(reg) _, bytes = const BYTES,
            amount = in(reg) amount,
        );
    }
    true
}

/// Takes so much from the word of this CPU that `place` points to, unless that is null, or there is
/// less: then it says no.
///
/// # Safety
/// As [`add_at`].
#[inline(always)]
pub(crate) unsafe fn take_at(place: &AtomicPtr<u64>, amount: u64) -> bool {
    let Some(area) = area() else { return false };
    // SAFETY: the words are there, by the contract.
    unsafe {
        counting!(
            area, ["ldr {first}, [{place}]", "cbnz {first}, 35f", "b 77f", "35:",],
            ["cmp {word}, {amount}", "b.hs 36f", "b 77f", "36:", "sub {word}, {word}, {amount}",],
            place = in(reg) place.as_ptr(), first = out(reg) _, bytes = const 0,
            amount = in(reg) amount,
        );
    }
    true
}

/// Words that need not hold anything.
pub(crate) type Word = MaybeUninit<u64>;

/// Loads a pointer and the `N` words that it points to. `None` if it cannot be done in a sequence.
///
/// # Safety
/// `place` points to so many words, as long as no [`barrier`](super::barrier) has come after they
/// were taken out.
#[inline(always)]
pub(crate) unsafe fn load_words<const N: usize>(place: &AtomicPtr<Word>) -> Option<[Word; N]> {
    const { assert!(N <= 1 << 10) };
    let area = area()?;
    let mut words = [Word::uninit(); N];
    let left: u64;
    // SAFETY: the words are there until the sequence has happened, by the contract; as many as
    // there are in `words`.
    unsafe {
        sequence!(
            area,
            [
                "ldr {t}, [{place}]",
                ".set .Lquiescence_at, 0",
                ".rept {count}",
                "ldr {word}, [{t}, #.Lquiescence_at]",
                "str {word}, [{words}, #.Lquiescence_at]",
                ".set .Lquiescence_at, .Lquiescence_at + 8",
                ".endr",
            ],
            then [],
            otherwise ["mov {left}, #0", "b 45b",],
            place = in(reg) place.as_ptr(), words = in(reg) words.as_mut_ptr(), count = const N,
            word = out(reg) _,
            left = inout(reg) ABORTS_MAX => left,
        );
    }
    (left != 0).then_some(words)
}

/// Adds one to a word in a sequence that takes long and is not begun again. Returns whether it has
/// happened. The word is this CPU's, or `first` itself if `shared`. For the trial and for tests.
///
/// # Safety
/// As [`increment`]; or the word is the caller's.
#[inline(never)]
pub(super) unsafe fn add_slowly(area: Area, first: *mut u64, shared: bool, turns: u64) -> bool {
    // SAFETY: the words are there, by the contract.
    unsafe {
        sequence!(
            area,
            [
                "lsl {t}, {t}, #{shift}",
                "and {t}, {t}, {which}",
                "add {t}, {t}, {first}",
                "ldr {value}, [{t}]",
                "mov {turn}, {turns}",
                "99:",
                "sub {turn}, {turn}, #1",
                "cbnz {turn}, 99b",
                "add {value}, {value}, #1",
                "str {value}, [{t}]",
            ],
            then [],
            otherwise ["b {no}",],
            first = in(reg) first, turns = in(reg) turns.max(1), shift = const STRIDE_SHIFT,
            which = in(reg) u64::from(shared).wrapping_sub(1),
            value = out(reg) _, turn = out(reg) _,
            left = inout(reg) 1_u64 => _,
            no = label { return false },
        );
    }
    true
}

/// The number of this thread's CPU, as its rseq area has it.
///
/// # Safety
/// There is such an area.
pub(super) unsafe fn cpu_of(area: Area) -> u32 {
    let cpu: u32;
    // SAFETY: a word of the thread's own, by the contract.
    unsafe {
        asm!(
            "ldr {cpu:w}, [{area}, #4]",
            cpu = out(reg) cpu, area = in(reg) address(area),
            options(readonly, nostack, preserves_flags)
        );
    }
    cpu
}

/// Starts a thread that makes one restarting barrier after another, with a pause between, until
/// `done` is not
/// 0. Returns whether there is such a thread. More is said in `x86_64.rs`.
///
/// # Safety
/// All signals are blocked, so that no handler will ever run on that thread.
pub(super) unsafe fn start_interrupter(done: &'static AtomicU64, pause: &'static Timespec) -> bool {
    /// Where the kernel writes the thread's number when it begins, and 0 when it ends. No thread
    /// reads it.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID;
    let mut started = flags as isize;
    // SAFETY: the caller's registers are kept, but for those named; the other thread never leaves
    // the text, uses no stack, and reads and writes statics.
    unsafe {
        asm!(
            "mrs x3, tpidr_el0",
            "svc #0",
            "cbnz x0, 33f",
            "22:",
            "mov x8, #{membarrier}",
            "mov x0, #{restart}",
            "mov x1, #0",
            "mov x2, #0",
            "svc #0",
            "mov x8, #{nanosleep}",
            "mov x0, {pause}",
            "mov x1, #0",
            "svc #0",
            "ldr x0, [{done}]",
            "cbz x0, 22b",
            "mov x8, #{exit}",
            "mov x0, #0",
            "svc #0",
            "brk #1",
            "33:",
            membarrier = const libc::SYS_membarrier,
            restart = const libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ,
            nanosleep = const libc::SYS_nanosleep,
            exit = const libc::SYS_exit,
            done = in(reg) done.as_ptr(),
            pause = in(reg) std::ptr::from_ref(pause),
            inout("x0") started,
            inout("x1") 0_usize => _, // the same stack
            inout("x2") NUMBER.as_ptr() => _,
            out("x3") _,
            inout("x4") NUMBER.as_ptr() => _,
            inout("x8") libc::SYS_clone => _,
            options(nostack)
        );
    }
    started > 0
}
