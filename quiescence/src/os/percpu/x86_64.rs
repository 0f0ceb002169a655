//! Restartable sequences in the instructions of x86-64, each with its reason.
//!
//! # What the kernel does
//! Before the kernel returns to a thread that was preempted, migrated, interrupted by a barrier, or
//! is about to run a signal handler, it reads the thread's *rseq area* (`struct rseq`): `cpu_id` at
//! 4, which it keeps current; `rseq_cs` at 8, null or the address of a *descriptor*. If the thread
//! is in the range of the descriptor (`start <= ip < start + length`), the kernel makes it continue
//! at the descriptor's abort address, with all other registers unchanged. In either case it sets
//! `rseq_cs` to null. It makes a signal's frame after that, so a handler returns to the abort
//! address, never into a sequence; and the handler may execute sequences of its own. There is no
//! other state in the kernel, and nothing to enter or leave.
//!
//! # The instructions of a sequence
//! 1. **The descriptor** is constant: 32 bytes, aligned to 32 (as the kernel's structure requires),
//!    in a section of its own, `__rseq_cs`. The section is writable, since the dynamic linker fills
//!    in addresses. Version and flags are 0: every kind of interruption restarts the sequence.
//! 2. **`lea`, `mov fs:[area + 8]`** announce it by one store, so the kernel sees null, another
//!    descriptor, or this one. They precede the range: after an abort `rseq_cs` is null, so a
//!    restarted thread must announce the sequence again. A thread interrupted between the store and
//!    the first instruction of the range is at `start`, which is in the range. A thread interrupted
//!    before the store loses nothing if a handler's own sequences overwrite or clear the word.
//! 3. **`mov t, fs:[area + 4]`** is in the range: the CPU number is right until the commit, or the
//!    thread is interrupted. (Loading 32 bits clears the upper half of `t`.)
//! 4. **`cmp`, `jae`** leave the sequence if the CPU has no words, or the thread has no rseq: its
//!    `cpu_id` is then -1 or -2, which as an unsigned number is above every limit. A jump out of
//!    the range is allowed anywhere before the commit, since nothing has happened yet. A thread
//!    outside the range is in no sequence, whatever `rseq_cs` says.
//! 5. **The body** writes only registers, and memory of its own (which a restart writes again). It
//!    contains no system call (the kernel forbids that), no call, and does not use the stack. So
//!    `nostack` is right, and the red zone is safe: the kernel leaves it alone when it makes a
//!    signal's frame.
//! 6. **The commit** is the last instruction. The kernel interrupts a thread only between
//!    instructions, so the commit may be a read-modify-write of memory: `inc [word]` without
//!    `lock`, since any other thread that writes the word runs on the same CPU, hence before or
//!    after it, and other CPUs only read it. `lock inc` is another commit, for words that other
//!    CPUs write. After the commit `ip` is at `44`, outside the range: so a sequence that has
//!    happened is never restarted.
//! 7. **Nothing is cleared at the end.** A descriptor that stays announced means nothing outside
//!    its range, and the kernel clears it at the next interruption. But for that the kernel reads
//!    the descriptor, so **the code must stay loaded**. If a shared object is unloaded (`dlclose`)
//!    while the last sequence of some thread was in it, the kernel finds no descriptor and ends the
//!    process with SIGSEGV. The library's handlers for `fork`, its worker and its thread-locals
//!    require the same.
//! 8. **The signature**: the kernel jumps to an abort address only if the four bytes before it are
//!    0x53053053, with which the C library registered the area. Otherwise anyone who can write to
//!    memory could make it jump anywhere. With the three bytes before them they are one instruction
//!    that faults (`ud1 edi, [rip + 0x53053053]`), which disassemblers can read.
//! 9. **The abort handler** is in another section, `__rseq_failure`, away from the fast path. If
//!    the sequence returns a value, the handler counts and restarts it, at `66`, or gives up. Only
//!    the handler writes `left`, so the count is right however often the body is interrupted. If
//!    the sequence returns nothing, the handler jumps to Rust code, which counts and restarts it;
//!    so the fast path sets no count.
//!
//! # What the compiler knows
//! - Inputs are never written, so a sequence can be restarted with them. All outputs are `out` or
//!   `inout`, which share no register with an input; `lateout` might.
//! - Flags and memory are clobbered (no `nomem`), so the compiler moves no access of its own across
//!   a sequence. The thread pointer is `fs`, of which it knows nothing.
//! - Labels are numeric and local, so every place into which a function is inlined may have a copy,
//!   also in other crates, with and without optimisation. Labels have two equal digits (`22`,
//!   `33`...), without `0` and `1`, which could be read as binary numbers.
//! - `label` is a jump to Rust code, which costs nothing if the sequence happens. It is not stable
//!   together with outputs, so a sequence that returns a value sets `left` to 0 instead, and
//!   continues at `44`.
//! - A linker that drops unused functions (`--gc-sections`) keeps those whose descriptors share a
//!   section with a descriptor that is used, which costs a little size. Descriptors have no
//!   sections by function, since no linker would then drop them with their functions.
//!
//! # Where it does not run
//! valgrind and qemu's user mode have no rseq(2); glibc reports that, and the path is the portable
//! one. In a debugger that steps single instructions, each step is an interruption: after
//! [`ABORTS_MAX`] of them the sequence gives up. ([`PerCpuPath`](super::PerCpuPath) says what a
//! debugger must not do.) A child made by `vfork` must not use the library: it runs on its parent's
//! area, of which its kernel thread knows nothing.
//!
//! With hooks the commit of a count is split into a load, a wait and a store. So a fault in the
//! restart, which would otherwise lose a count very rarely, loses many (`hooks.rs`).

use std::arch::x86_64::__m128i;
use std::arch::{asm, global_asm};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use libc::timespec;

#[cfg(quiescence_mutants)]
use super::hooks::{announced, spins};
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
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
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

/// A wait in the midst of a sequence, of so many turns. It may take the place of `spin`.
#[cfg(quiescence_mutants)]
macro_rules! wait {
    () => {
        "mov {spin}, {spins}\n 88: sub {spin}, 1\n jae 88b"
    };
}
#[cfg(not(quiescence_mutants))]
macro_rules! wait {
    () => {
        ""
    };
}

/// Leaves a sequence announced or not, as the hooks say.
#[cfg(quiescence_mutants)]
macro_rules! filter_announced {
    () => {
        "and {t}, {announced}"
    };
}
#[cfg(not(quiescence_mutants))]
macro_rules! filter_announced {
    () => {
        ""
    };
}

/// The commit of a count: `$instruction` in memory, or in a register between a load and a store.
#[cfg(quiescence_mutants)]
macro_rules! commit {
    ($instruction:literal) => {
        concat!(
            "add {t}, {first}\n mov {word}, qword ptr [{t} + {bytes}]\n",
            wait!(),
            "\n",
            $instruction,
            " {word}, {amount}\n mov qword ptr [{t} + {bytes}], {word}"
        )
    };
}
#[cfg(not(quiescence_mutants))]
macro_rules! commit {
    ($instruction:literal) => {
        concat!($instruction, " qword ptr [{first} + {t} + {bytes}], {amount}")
    };
}

/// `asm!` of these instructions and operands; of the hooks' operands too where there are hooks.
/// (Rust 1.93 would allow an attribute on an operand.)
#[cfg(quiescence_mutants)]
macro_rules! assembled {
    ([$($instructions:tt)*], hooks [$($hooks:tt)*], $($operands:tt)*) => {
        std::arch::asm!($($instructions)* $($hooks)* $($operands)* options(nostack))
    };
}
#[cfg(not(quiescence_mutants))]
macro_rules! assembled {
    ([$($instructions:tt)*], hooks [$($hooks:tt)*], $($operands:tt)*) => {
        std::arch::asm!($($instructions)* $($operands)* options(nostack))
    };
}

/// The descriptor of a sequence.
macro_rules! descriptor {
    () => {
        ".pushsection __rseq_cs, \"aw\"\n .balign 32\n 22: .long 0, 0\n \
         .quad 33f, 44f - 33f, 55f\n .popsection"
    };
}
#[cfg(test)]
pub(crate) use descriptor;

/// Adds one to the word of `{first}` at `{t}`, by a load and a store far from each other.
macro_rules! slow_addition {
    () => {
        "mov {value}, qword ptr [{first} + {t}]\n mov {turn}, {turns}\n \
         99: dec {turn}\n jnz 99b\n inc {value}\n mov qword ptr [{first} + {t}], {value}"
    };
}
#[cfg(test)]
pub(super) use slow_addition;

/// A sequence in the area `$area`: the instructions of its body, the last of which is the commit;
/// of what to do if it is interrupted; and of what to do if it does not happen. The last
/// paragraph is the abort handler.
macro_rules! sequence {
    (
        $area:expr, [$($body:tt)*], interrupted [$($interrupted:tt)*],
        otherwise [$($otherwise:tt)*], hooks [$($hooks:tt)*], $($operands:tt)*
    ) => {
        assembled!(
            [
                descriptor!(),
                "66:",
                "lea {t}, [rip + 22b]",
                filter_announced!(),
                "mov qword ptr fs:[{offset} + 8], {t}",
                "33:",
                "mov {t:e}, dword ptr fs:[{offset} + 4]",
                "cmp {t:e}, {limit:e}",
                "jae 77f",
                $($body)*
                "44:",

                ".pushsection __rseq_failure, \"ax\"",
                ".byte 0x0f, 0xb9, 0x3d",
                ".long 0x53053053",
                "55:",
                $($interrupted)*
                "77:",
                $($otherwise)*
                ".popsection",
            ],
            hooks [announced = in(reg) announced(), $($hooks)*],
            offset = in(reg) $area.offset,
            limit = in(reg) $area.limit,
            t = out(reg) _,
            $($operands)*
        )
    };
}

/// Adds `{amount}` to the word of CPU `{t}`, which stands `{bytes}` after that of `{first}`; what
/// is done to a `word` of it in a register is given. Returns `None` if it is interrupted.
macro_rules! counting {
    ($area:expr, [$($before:tt)*], $instruction:literal, $($operands:tt)*) => {
        sequence!(
            $area,
            [
                $($before)*
                "shl {t}, {shift}",
                commit!($instruction),
            ],
            interrupted ["jmp {interrupted}",], otherwise ["jmp {no}",],
            hooks [word = out(reg) _, spin = out(reg) _, spins = in(reg) spins(),],
            shift = const STRIDE_SHIFT,
            interrupted = label { return None },
            no = label { return Some(false) },
            $($operands)*
        )
    };
}

/// Whether a sequence has happened, if there are any: it is begun anew where it is interrupted.
macro_rules! attempts {
    (|$area:ident| $attempt:expr) => {{
        let Some($area) = area() else { return false };
        match $attempt {
            Some(happened) => happened,
            // The area, which is the same, is asked for: what else an attempt needs goes there in
            // two registers. For three words, the usual road would have room on the stack.
            None => attempts_again(move || area().and_then(|$area| $attempt)),
        }
    }};
}

#[cold]
#[inline(never)]
fn attempts_again(attempt: impl Fn() -> Option<bool>) -> bool {
    (1..ABORTS_MAX).find_map(|_| attempt()).unwrap_or(false)
}

/// Adds one to the word of this CPU, if it can be done in a sequence.
///
/// # Safety
/// `first` is the word of CPU 0, and all slots have one.
#[inline(always)]
pub(crate) unsafe fn increment(first: *mut u64) -> bool {
    // SAFETY: the same contract.
    attempts!(|area| unsafe { increment_once(area, first) })
}

/// Adds so much to the word of this CPU that stands `BYTES` after the one that `place` points to,
/// unless that is null: then it says no. The place is looked at in the sequence.
///
/// # Safety
/// `place` is null or points to the word of CPU 0, and all slots have one, as long as no
/// [`barrier`](super::barrier) has come after it was taken out.
#[inline(always)]
pub(crate) unsafe fn add_at<const BYTES: usize>(place: &AtomicPtr<u64>, amount: u64) -> bool {
    // SAFETY: the same contract.
    attempts!(|area| unsafe { add_at_once::<BYTES>(area, place, amount) })
}

/// Takes so much from the word of this CPU that `place` points to, unless that is null, or there is
/// less: then it says no.
///
/// # Safety
/// As [`add_at`].
#[inline(always)]
pub(crate) unsafe fn take_at(place: &AtomicPtr<u64>, amount: u64) -> bool {
    // SAFETY: the same contract.
    attempts!(|area| unsafe { take_at_once(area, place, amount) })
}

/// # Safety
/// As [`increment`].
#[inline(always)]
unsafe fn increment_once(area: Area, first: *mut u64) -> Option<bool> {
    // SAFETY: the words are there, by the contract.
    unsafe {
        counting!(area, [], "add", first = in(reg) first, bytes = const 0, amount = const 1,);
    }
    Some(true)
}

/// # Safety
/// As [`add_at`].
#[inline(always)]
unsafe fn add_at_once<const BYTES: usize>(
    area: Area,
    place: &AtomicPtr<u64>,
    amount: u64,
) -> Option<bool> {
    // SAFETY: the words are there, by the contract.
    unsafe {
        counting!(
            area, ["mov {first}, qword ptr [{place}]", "test {first}, {first}", "jz 77f",],
            "add",
            place = in(reg) place.as_ptr(), first = out(reg) _, bytes = const BYTES,
            amount = in(reg) amount,
        );
    }
    Some(true)
}

/// # Safety
/// As [`add_at`].
#[inline(always)]
unsafe fn take_at_once(area: Area, place: &AtomicPtr<u64>, amount: u64) -> Option<bool> {
    // SAFETY: the words are there, by the contract. (`{t}` is shifted for the look, and back.)
    unsafe {
        counting!(
            area,
            [
                "mov {first}, qword ptr [{place}]", "test {first}, {first}", "jz 77f",
                "shl {t}, {shift}", "cmp qword ptr [{first} + {t}], {amount}", "jb 77f",
                "shr {t}, {shift}",
            ],
            "sub",
            place = in(reg) place.as_ptr(), first = out(reg) _, bytes = const 0,
            amount = in(reg) amount,
        );
    }
    Some(true)
}

/// Words that need not hold anything.
pub(crate) type Word = MaybeUninit<u64>;

/// Loads a pointer, which is in `{t}` then, and what the body loads from there.
macro_rules! loading {
    ($area:expr, $place:ident, $left:ident, [$($body:tt)*], $($operands:tt)*) => {
        sequence!(
            $area,
            [
                "mov {t}, qword ptr [{place}]",
                wait!(),
                $($body)*
            ],
            interrupted ["dec {left}", "jnz 66b",],
            otherwise ["xor {left:e}, {left:e}", "jmp 44b",],
            hooks [spin = out(reg) _, spins = in(reg) spins(),],
            place = in(reg) $place.as_ptr(),
            left = inout(reg) ABORTS_MAX => $left,
            $($operands)*
        )
    };
}

/// Loads a pointer and the `N` words that it points to. `None` if it cannot be done in a sequence.
///
/// Vector registers take two words each: up to eight words stay there, so that the compiler can go
/// on with them; more are copied. (Word by word is slower by far: what is stored in words and
/// loaded again in pairs has to wait for the stores.)
///
/// # Safety
/// `place` points to so many words, as long as no [`barrier`](super::barrier) has come after they
/// were taken out.
#[inline(always)]
pub(crate) unsafe fn load_words<const N: usize>(place: &AtomicPtr<Word>) -> Option<[Word; N]> {
    const { assert!(N <= 1 << 10) };
    // SAFETY: by the contract.
    if N <= 8 { unsafe { load_few(place) } } else { unsafe { load_many(place) } }
}

/// # Safety
/// As [`load_words`].
#[inline(always)]
unsafe fn load_few<const N: usize>(place: &AtomicPtr<Word>) -> Option<[Word; N]> {
    let area = area()?;
    let (pair0, pair1, pair2, pair3): (__m128i, __m128i, __m128i, __m128i);
    let left: u64;
    // SAFETY: the words are there until the sequence has happened, by the contract; what it leaves
    // out of the registers is not used.
    unsafe {
        loading!(
            area, place, left,
            [
                ".if {count} >= 2\n movups {pair0}, xmmword ptr [{t}]\n .endif",
                ".if {count} == 1\n movq {pair0}, qword ptr [{t}]\n .endif",
                ".if {count} >= 4\n movups {pair1}, xmmword ptr [{t} + 16]\n .endif",
                ".if {count} == 3\n movq {pair1}, qword ptr [{t} + 16]\n .endif",
                ".if {count} >= 6\n movups {pair2}, xmmword ptr [{t} + 32]\n .endif",
                ".if {count} == 5\n movq {pair2}, qword ptr [{t} + 32]\n .endif",
                ".if {count} >= 8\n movups {pair3}, xmmword ptr [{t} + 48]\n .endif",
                ".if {count} == 7\n movq {pair3}, qword ptr [{t} + 48]\n .endif",
            ],
            count = const N,
            pair0 = out(xmm_reg) pair0, pair1 = out(xmm_reg) pair1,
            pair2 = out(xmm_reg) pair2, pair3 = out(xmm_reg) pair3,
        );
    }
    // A pointer among the words is an integer in a vector register, so by the letter of Rust's
    // model it loses its provenance; general registers, as `*mut ()`, would keep it, but take twice
    // the loads. It does no harm in practice: the compiler does not know where bits that `asm!`
    // gives come from, so it takes them to point to anything that others may know of; and that the
    // object is, since its pointer stands in memory that `asm!` may read. SAFETY: eight words.
    let all: [Word; 8] = unsafe { std::mem::transmute([pair0, pair1, pair2, pair3]) };
    (left != 0).then(|| std::array::from_fn(|word| all[word]))
}

/// What is half copied when the sequence begins anew is copied again.
///
/// # Safety
/// As [`load_words`].
#[inline(always)]
unsafe fn load_many<const N: usize>(place: &AtomicPtr<Word>) -> Option<[Word; N]> {
    let area = area()?;
    let mut words = [Word::uninit(); N];
    let left: u64;
    // SAFETY: the words are there until the sequence has happened, by the contract; as many as
    // there are in `words`.
    unsafe {
        loading!(
            area, place, left,
            [
                ".set .Lquiescence_at, 0",
                ".rept {count} / 2",
                "movups {pair}, xmmword ptr [{t} + .Lquiescence_at]",
                "movups xmmword ptr [{words} + .Lquiescence_at], {pair}",
                ".set .Lquiescence_at, .Lquiescence_at + 16",
                ".endr",
                ".if {count} & 1",
                "movq {pair}, qword ptr [{t} + .Lquiescence_at]",
                "movq qword ptr [{words} + .Lquiescence_at], {pair}",
                ".endif",
            ],
            words = in(reg) words.as_mut_ptr(), count = const N, pair = out(xmm_reg) _,
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
                "shl {t}, {shift}",
                "and {t}, {which}",
                slow_addition!(),
            ],
            interrupted [], otherwise ["jmp {no}",], hooks [],
            first = in(reg) first, turns = in(reg) turns.max(1), shift = const STRIDE_SHIFT,
            which = in(reg) u64::from(shared).wrapping_sub(1),
            value = out(reg) _, turn = out(reg) _,
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
            "mov {cpu:e}, dword ptr fs:[{offset} + 4]",
            cpu = out(reg) cpu, offset = in(reg) area.offset,
            options(readonly, nostack, preserves_flags)
        );
    }
    cpu
}

/// Starts a thread that makes one restarting barrier after another, with a pause between, until
/// `done` is not
/// 0. Returns whether there is such a thread.
///
/// The thread is of this text only: it executes system calls, and touches neither stack nor
/// thread-locals, which are its maker's. So it needs none of its own, no library knows of it, and
/// no thread has to wait for its end. The flags are those that glibc gives to its threads, because
/// there are filters of system calls that let no others pass.
///
/// # Safety
/// All signals are blocked, so that no handler will ever run on that thread.
pub(super) unsafe fn start_interrupter(done: &'static AtomicU64, pause: &'static timespec) -> bool {
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
    let mut started = libc::SYS_clone as isize;
    // SAFETY: the caller's registers are kept, but for those named; the other thread never leaves
    // the text, uses no stack, and reads and writes statics.
    unsafe {
        asm!(
            "mov r8, qword ptr fs:[0]", // the thread pointer, which is at its own address
            "syscall",
            "test rax, rax",
            "jnz 33f",
            "22:",
            "mov eax, {membarrier}",
            "mov edi, {restart}",
            "xor esi, esi",
            "xor edx, edx",
            "syscall",
            "mov eax, {nanosleep}",
            "mov rdi, r13",
            "xor esi, esi",
            "syscall",
            "cmp qword ptr [r12], 0",
            "je 22b",
            "mov eax, {exit}",
            "xor edi, edi",
            "syscall",
            "ud2",
            "33:",
            membarrier = const libc::SYS_membarrier,
            restart = const libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ,
            nanosleep = const libc::SYS_nanosleep,
            exit = const libc::SYS_exit,
            inout("rax") started,
            inout("rdi") flags as isize => _,
            inout("rsi") 0_usize => _, // the same stack
            inout("rdx") NUMBER.as_ptr() => _,
            inout("r10") NUMBER.as_ptr() => _,
            out("r8") _,
            in("r12") done.as_ptr(),
            in("r13") std::ptr::from_ref(pause),
            out("rcx") _, out("r11") _,
            options(nostack)
        );
    }
    started > 0
}
