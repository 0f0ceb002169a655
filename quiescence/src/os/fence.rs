//! Asymmetric fences: readers pay nothing, updaters pay for both.
//!
//! A pair of a *light* fence in a reader and a *heavy* fence in an updater orders like a pair of
//! sequentially consistent fences. With `membarrier(2)` the light fence is one for the compiler
//! only, and the heavy fence makes the kernel run a full fence on every CPU that currently
//! runs a thread of this process; threads that do not run were fenced by the context switch. If
//! the kernel has no membarrier or forbids it, both are sequentially consistent fences.
//!
//! Which of the two is decided once, before the first reader is registered, and never changes: a
//! reader that has begun with light fences could not be told in time to execute full ones.
//! `QUIESCENCE_FENCES=portable` in the environment chooses the portable pair; any other value is
//! reported on standard error.

use std::ffi::CStr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};

use super::calls::{has_one_thread, membarrier as call};
use super::environment;
pub(crate) use super::for_loom::FenceCell as Cell;
use super::sync::fence;

/// How readers are ordered against updaters. Chosen once for the process, at its first use of the
/// library ([`fences`](crate::tuning::fences)), and for single domains by
/// [`Builder::fences`](crate::tuning::Builder::fences).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fences {
    /// Readers execute no fence instruction; a grace period executes one `membarrier(2)`.
    Membarrier,
    /// Readers and updaters execute sequentially consistent fences.
    Portable,
}

/// A choice between what the system has and a portable twin, which a variable may ask for. Made by
/// the first use, which may be in a signal handler. Each thread that comes before it is made finds
/// out for itself, and the first result stands: so no thread waits for another.
pub(crate) struct Choice {
    variable: &'static CStr,
    chosen: AtomicU32,
}

const UNDECIDED: u32 = 0;
const SYSTEM: u32 = 1;
const PORTABLE: u32 = 2;

impl Choice {
    pub(crate) const fn new(variable: &'static CStr) -> Self {
        Self { variable, chosen: AtomicU32::new(UNDECIDED) }
    }

    /// Whether the portable twin is chosen: the variable says `portable`, or the system `lacks` the
    /// other.
    #[inline]
    pub(crate) fn is_portable(&self, lacks: impl FnOnce() -> bool) -> bool {
        // Acquire: pairs with the exchange in `choose`; what `lacks` has set up is done.
        match self.chosen.load(Acquire) {
            UNDECIDED => self.choose(lacks),
            chosen => chosen == PORTABLE,
        }
    }

    #[cold]
    #[inline(never)]
    fn choose(&self, lacks: impl FnOnce() -> bool) -> bool {
        let found =
            if environment::is(self.variable, "portable") || lacks() { PORTABLE } else { SYSTEM };
        // AcqRel: pairs with `is_portable`.
        match self.chosen.compare_exchange(UNDECIDED, found, AcqRel, Acquire) {
            Ok(_) => {
                environment::complain_unless(self.variable, "portable");
                found == PORTABLE
            }
            Err(first) => first == PORTABLE,
        }
    }
}

/// The choice for this process, made on the first call: see [`Choice`].
#[inline]
pub(crate) fn chosen() -> Fences {
    static CHOICE: Choice = Choice::new(c"QUIESCENCE_FENCES");
    match CHOICE.is_portable(|| !(cfg!(loom) || register_early())) {
        false => Fences::Membarrier,
        true => Fences::Portable,
    }
}

/// The reader's half under [`Fences::Membarrier`]: the compiler moves no access across it.
#[inline(always)]
pub(crate) fn light(cell: &Cell) {
    std::sync::atomic::compiler_fence(SeqCst);
    cell.pass(); //~ no-light-fence
}

/// A full fence of the calling thread alone: the reader's half under [`Fences::Portable`], and the
/// updater's if every reader that it is paired with executes a full fence as well.
pub(crate) fn full() {
    fence(SeqCst);
}

/// A full fence of the calling thread that comes right after it has taken a lock or executed an
/// atomic read-modify-write. On x86-64 such an instruction is a full fence by itself, so this is
/// for the compiler only; compare the kernel's `smp_mb__after_spinlock` and `smp_mb__after_atomic`.
/// (In the language's model, which loom and Miri follow, it is no fence.)
#[inline(always)]
pub(crate) fn full_after_locked() {
    if cfg!(all(target_arch = "x86_64", not(loom), not(miri))) {
        std::sync::atomic::compiler_fence(SeqCst);
    } else {
        full();
    }
}

/// The updater's half. `cells` are those of all readers; only loom uses them.
pub(crate) fn heavy<'a>(cells: impl Iterator<Item = &'a Cell>) {
    if cfg!(loom) {
        //~ no-heavy-fence {
        full();
        cells.for_each(Cell::pass);
        full();
        //~ }
        return;
    }
    match chosen() {
        Fences::Membarrier => membarrier(FENCE),
        Fences::Portable => full(),
    }
}

/// Registers with the kernel for heavy fences; and, while the process has one thread, for those
/// with restarts. At each registration of a process with several threads the kernel waits for a
/// grace period of its own, some 10 ms, which a process without counters need not pay twice.
fn register_early() -> bool {
    let is_registered = register(FENCE);
    if is_registered && has_one_thread() {
        let _later: bool = register_restarts();
    }
    is_registered
}

/// In a child process: registers with the kernel again for heavy fences.
pub(crate) fn register_after_fork() {
    if chosen() == Fences::Membarrier {
        register(FENCE);
    }
}

/// Whether the kernel will run [`heavy_with_restarts`] for this process.
pub(crate) fn register_restarts() -> bool {
    register(FENCE_WITH_RESTARTS)
}

/// A heavy fence that also restarts every restartable sequence that is in progress in this process.
/// Called only if [`register_restarts`] has returned true.
pub(crate) fn heavy_with_restarts() {
    membarrier(FENCE_WITH_RESTARTS);
}

/// A command of `membarrier(2)`, and the one that registers the process for it, numbered as
/// `linux/membarrier.h` does.
type Command = [i32; 2];

/// `PRIVATE_EXPEDITED`.
const FENCE: Command = [1 << 3, 1 << 4];
/// `PRIVATE_EXPEDITED_RSEQ`.
const FENCE_WITH_RESTARTS: Command = [1 << 7, 1 << 8];
/// Which commands the kernel has.
const QUERY: i32 = 0;

/// Whether the kernel will run [`membarrier`] for this process.
fn register([fence, registration]: Command) -> bool {
    call(QUERY).is_ok_and(|commands| commands & fence != 0)
        && call(registration).is_ok()
        && call(fence).is_ok()
}

fn membarrier([fence, _]: Command) {
    // Readers rely on this fence, and nothing else in user space can replace it.
    call(fence).unwrap_or_else(|errno| environment::membarrier_fails(errno));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::*};
    use std::time::{Duration, Instant};

    use super::*;
    #[cfg(all(target_os = "linux", not(miri)))]
    use crate::common::{again::*, processes::*};

    #[test]
    #[cfg(target_os = "linux")]
    fn commands_have_the_numbers_that_the_kernel_gives_them() {
        assert_eq!(QUERY, libc::MEMBARRIER_CMD_QUERY);
        use libc::{
            MEMBARRIER_CMD_PRIVATE_EXPEDITED as PLAIN,
            MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ as RSEQ,
            MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED as REGISTER,
            MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ as REGISTER_RSEQ,
        };
        assert_eq!([FENCE, FENCE_WITH_RESTARTS], [[PLAIN, REGISTER], [RSEQ, REGISTER_RSEQ]]);
    }

    /// The first update of a counter, or of a map, took some 10 ms: the process had a worker by
    /// then, and the kernel waits for a grace period of its own before it registers such a process.
    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn a_process_was_not_registered_for_restarts_while_it_had_one_thread() {
        in_its_own_process!();
        let has_them = call(QUERY).is_ok_and(|commands| commands & FENCE_WITH_RESTARTS[0] != 0);
        // A child has one thread, and inherits no registration: this process has none yet.
        in_child(|| {
            if has_them && chosen() == Fences::Membarrier {
                assert_eq!(call(FENCE_WITH_RESTARTS[0]), Ok(0));
            }
        });
    }

    /// A word in a pair of cache lines of its own.
    #[derive(Default)]
    #[repr(align(128))]
    struct Word(AtomicU64);

    /// Waits until the other thread has called this as often.
    fn meet(mine: &Word, other: &Word) {
        let arrived = mine.0.load(Relaxed) + 1;
        mine.0.store(arrived, Release);
        let mut looks = 0_u32;
        // Acquire: what the other thread has stored is visible.
        while other.0.load(Acquire) < arrived {
            looks += 1;
            if looks.is_multiple_of(1_000) {
                std::thread::yield_now();
            }
        }
    }

    /// A reader stores one word and loads another, with a light fence between; an updater stores
    /// the latter and loads the former, with `updaters` between. Does this `rounds` times, but for
    /// two seconds at most. Returns how often neither has seen the other's store.
    fn missed(rounds: u64, updaters: impl Fn()) -> u64 {
        let [x, y, seen, reader, updater, stop] = [const { Word(AtomicU64::new(0)) }; 6];
        let deadline = Instant::now() + Duration::from_secs(2);
        let far: Vec<Word> = (0..8_192).map(|_| Word::default()).collect();
        let cell = Cell::new();
        let mut missed = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=rounds {
                    meet(&reader, &updater);
                    // The store below waits in the store buffer behind these, which miss the
                    // cache, while the load hits it.
                    y.0.load(Relaxed);
                    let first = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                    for n in 0..24 {
                        far[(first + n * 337) as usize % far.len()].0.store(round, Relaxed);
                    }
                    x.0.store(round, Relaxed);
                    light(&cell);
                    if chosen() == Fences::Portable {
                        full(); // the light fence of this process
                    }
                    seen.0.store(y.0.load(Relaxed), Relaxed);
                    meet(&reader, &updater);
                    if stop.0.load(Relaxed) == round {
                        break;
                    }
                }
            });
            for round in 1..=rounds {
                meet(&updater, &reader);
                // Varies how the two threads interleave.
                x.0.load(Relaxed);
                (0..round % 32).for_each(|_| std::hint::spin_loop());
                y.0.store(round, Relaxed);
                updaters();
                let found = x.0.load(Relaxed);
                let is_last = Instant::now() >= deadline;
                if is_last {
                    stop.0.store(round, Relaxed); // before `meet`
                }
                meet(&updater, &reader);
                missed += u64::from(found != round && seen.0.load(Relaxed) != round);
                if is_last {
                    break;
                }
            }
        });
        missed
    }

    /// All grace periods depend on this: if a reader stores and loads with a light fence between,
    /// and an updater with a heavy one, one of them sees the other's store. On a machine with two
    /// CPUs this fails if the heavy fence is one of the updater alone.
    #[test]
    fn a_heavy_fence_pairs_with_light_ones() {
        assert_eq!(missed(100_000, || heavy(std::iter::empty())), 0);
    }
}
