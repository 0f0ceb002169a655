//! The test: Table 3 of Arcangeli and others, 2003 ("Using Read-Copy-Update Techniques for System V
//! IPC in the Linux 2.5 Kernel"). A task on each hart looks up paths in one directory tree, renames
//! and unlinks files of its own directory, and blocks until all are done with the round; then the
//! next round begins. What a round takes under an engine, in instructions and lines: the emulator's
//! plugin counts.
//!
//! As in the simulator's replay, one task a round has the most to do, and each of the others 70 %
//! of it on average; of a hundred lookups one is followed by an update. All draws are a task's own,
//! so that under each engine the same is done.

use core::fmt::Write;
use core::hint::black_box;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::*};

use conformance::Rcu;
use kernel::RcuList;

use crate::hart::{self, HARTS, SECOND, this};
use crate::lock::Lock;
use crate::platform::{Board, KERNEL, RCU};
use crate::sbi::{self, Console};
use crate::slab::{self, FREED, Object, TABLE};
use crate::thread::{self, When};
use crate::{all_harts, parameters, watch};

/// Lookups of the task that has the most to do in a round.
const LOOKUPS: u64 = 275;
/// Of how many lookups one is followed by a rename or an unlink.
const UPDATE_EVERY: u64 = 100;
/// Files of a task's directory: each has one of two names, or none.
const FILES: usize = 64;
/// Rounds before anything is counted, and for each second that is asked for.
const WARM_UP: u64 = 50;
const ROUNDS: u64 = 1_000;

type Entry = &'static Object;
type Chain = RcuList<Object, Board>;

static CHAINS: [Chain; 256] = [const { Chain::new() }; 256];
/// For who changes a chain.
static CHANGES: Lock<()> = Lock::new(());
/// Tasks that have come to the end of a round, in all rounds.
static ARRIVED: AtomicU64 = AtomicU64::new(0);
/// What had been [`done`] when counting began.
static DONE_BEFORE: Lock<[u64; 2]> = Lock::new([0; 2]);

const ROOT: u64 = HARTS as u64;

const fn key_of(directory: u64, name: u64) -> u64 {
    directory << 8 | name
}

fn chain(key: u64) -> &'static Chain {
    &CHAINS[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize]
}

/// Whether a file is in a hart's directory, and that in the root. A directory's name is its number.
fn look_up(directory: u64, file: u64) -> bool {
    let section = RCU.read();
    [key_of(ROOT, directory), key_of(directory, file)].iter().all(|&key| {
        chain(key).iter(&section).any(|entry| {
            let found = entry.key.load(Relaxed);
            assert!(found != FREED, "a lookup came to an entry that was freed");
            found == key
        })
    })
}

fn new_entry(directory: u64, name: u64) -> Entry {
    let entry = &TABLE[slab::allocate()];
    entry.key.store(key_of(directory, name), Relaxed);
    entry
}

/// What a task has: its dice, and its files.
struct Task {
    hart: u64,
    dice: AtomicU64,
    files: [Option<Entry>; FILES],
}

impl Task {
    fn roll(&self, sides: u64) -> u64 {
        hart::roll(&self.dice, sides)
    }

    /// Makes a file, renames it or unlinks it.
    fn update(&mut self, file: usize) {
        let (old, unlinks) = (self.files[file], self.roll(2) == 0);
        let name = old.map_or(file as u64, |old| (old.key.load(Relaxed) ^ FILES as u64) & 0xFF);
        let is_new = old.is_none() || !unlinks;
        let new = is_new.then(|| new_entry(self.hart, name));
        self.files[file] = new;
        change(new, old);
    }
}

/// Adds an entry, and takes another out, to be freed.
fn change(new: Option<Entry>, old: Option<Entry>) {
    let chain_of = |entry: Entry| chain(entry.key.load(Relaxed));
    CHANGES.with(|()| {
        if let Some(new) = new {
            // SAFETY: it is new, so a grace period has ended since it was in a list.
            unsafe { chain_of(new).push_front(NonNull::from(new)) };
        }
        if let Some(old) = old {
            // SAFETY: it was pushed there, and the lock is held.
            unsafe { chain_of(old).remove(NonNull::from(old)) };
        }
    });
    if let Some(old) = old {
        // SAFETY: it stays, and is in no queue.
        unsafe { RCU.call(NonNull::from(&old.head), slab::free) };
    }
}

/// Of each hart: a task of dcachebench. No tick preempts it, as none did in a kernel of that year.
pub(crate) fn task() -> ! {
    this().is_lazy.store(true, Relaxed);
    let (harts, last) = (all_harts() as u64, WARM_UP + ROUNDS * parameters().seconds);
    let hart = this().id as u64;
    let mut task = Task { hart, dice: AtomicU64::new(hart), files: [None; FILES] };
    change(Some(new_entry(ROOT, hart)), None);
    (0..FILES).for_each(|file| task.update(file));
    // The one that has the most to do is drawn by all alike.
    let longest = AtomicU64::new(1);
    for round in 0..=last {
        let is_longest = hart::roll(&longest, harts) == hart;
        let share = if is_longest { 100 } else { 40 + task.roll(61) };
        for _ in 0..LOOKUPS * share / 100 {
            black_box(look_up(task.roll(harts), task.roll(2 * FILES as u64)));
            if task.roll(UPDATE_EVERY) == 0 {
                task.update(task.roll(FILES as u64) as usize);
            }
            hart::give_turn();
        }
        end_round(round, harts);
    }
    thread::sleep(When::Never);
    unreachable!("nobody wakes it");
}

/// Waits until all tasks have come to the end of the round.
fn end_round(round: u64, harts: u64) {
    let all = (round + 1) * harts;
    // Release: pairs with the Acquire below.
    if ARRIVED.fetch_add(1, AcqRel) + 1 != all {
        return thread::wait(&|| ARRIVED.load(Acquire) >= all, false);
    }
    if round == WARM_UP {
        DONE_BEFORE.with(|before| *before = done());
    }
    mark(if round == WARM_UP { Mark::Begin } else { Mark::Unit });
    thread::wake_waiters();
}

/// Twice the number of grace periods that have ended, which wraps; and how often harts were asked
/// to reschedule.
pub(crate) fn done() -> [u64; 2] {
    // Perhaps the lock is held.
    let seen = core::iter::repeat_with(|| KERNEL.snapshot()).flatten().next();
    let asked = (0..HARTS).map(|hart| hart::of(hart).rescheds.load(Relaxed)).sum();
    [seen.map_or(0, |seen| seen.sequence.to_bits()), asked]
}

/// Says what came of it.
pub(crate) fn main() -> ! {
    let (harts, rounds) = (all_harts() as u64, ROUNDS * parameters().seconds);
    watch::END.store(sbi::time() + rounds * SECOND / 100, Relaxed);
    while ARRIVED.load(Acquire) < (WARM_UP + rounds + 1) * harts {
        thread::sleep_ticks(1);
    }
    let (before, now) = (DONE_BEFORE.with(|before| *before), done());
    let [twice, asked] = [0, 1].map(|at| now[at].wrapping_sub(before[at]));
    _ = write!(Console, "| {rounds} | {} | {asked}", twice / 2);
    mark(Mark::End);
    sbi::power_off(true);
}

/// What the emulator's plugin sees (`plugin/meter.c`): it counts from now on; one more unit of work
/// is done; and the rest of a row is to be printed.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    Begin,
    Unit,
    End,
}

/// The first of the words that tell it, behind the parameters.
const MARKS: *mut u64 = core::ptr::without_provenance_mut(0x801F_0040);

pub(crate) fn mark(mark: Mark) {
    // SAFETY: memory that nobody else uses.
    unsafe { MARKS.wrapping_add(mark as usize).write_volatile(0) };
}
