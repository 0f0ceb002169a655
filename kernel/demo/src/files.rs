//! The test: 2014's loop in which each process opens and closes a file, over a slab allocator
//! (D. Hansen, J. Corbet: RCU, `cond_resched()`, and performance regressions, LWN 603252). A file
//! is freed by a callback; callbacks come back all at once, and what the slab does for them depends
//! on how many those are. How often its shared locks are taken in a million operations, under the
//! variants of Tree RCU of 2014; what a thousand take, in instructions and lines: the emulator's
//! plugin counts.
//!
//! As in the simulator's replay, a hart closes the file that another one opened, of which its own
//! callback frees the object; or else its own, so that each keeps its pages. An operation calls
//! `cond_resched()` six times, and one in twenty is a program's, so that 95 % of ticks find the
//! kernel. No thread blocks, and callbacks run where a softirq would: no pass through the scheduler
//! but those that an engine asks for.

use core::fmt::Write;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

use conformance::{Machine, Rcu};

use crate::dcache::{Mark, done, mark};
use crate::hart::{self, HARTS, HZ, SECOND, this};
use crate::platform::{Board, KERNEL, RCU};
use crate::sbi::{self, Console};
use crate::slab::{self, TABLE};
use crate::{all_harts, parameters, watch};

/// Of so many operations one is a program's.
const PROGRAM_EVERY: u64 = 20;
/// Calls of `cond_resched()` in an operation.
const OFFERS: usize = 6;
/// How often a softirq of callbacks runs after one, if it raises itself, and how many it runs.
const PASSES: usize = 10;
const CALLBACKS: u64 = 10;
/// Operations to a unit of what the plugin counts.
const UNIT: u64 = 1_000;

/// The file that each hart closes next; one more than its number.
static OPEN: [AtomicUsize; HARTS] = [const { AtomicUsize::new(0) }; HARTS];
/// Whether a hart closes a file of its own.
static KEEPS_OWN: AtomicBool = AtomicBool::new(false);

/// Opens a file and closes one.
fn operation(harts: usize) {
    let new = slab::allocate();
    let whose = match KEEPS_OWN.load(Relaxed) {
        true => this().id,
        false => this().roll(harts as u64) as usize,
    };
    // AcqRel: the object goes from hart to hart.
    if let Some(old) = OPEN[whose].swap(new + 1, AcqRel).checked_sub(1) {
        // SAFETY: it stays, and is in no queue.
        unsafe { RCU.call(NonNull::from(&TABLE[old].head), slab::free) };
    }
    (0..OFFERS).for_each(|_| KERNEL.cond_resched());
    match this().roll(PROGRAM_EVERY) {
        0 => Board::run_program(100),
        _ => hart::give_turn(),
    }
    let hart = this();
    let has_more = |_| RCU.run_callbacks(hart.id, CALLBACKS);
    if hart.has_work.swap(false, Relaxed) && (0..PASSES).all(has_more) {
        hart.has_work.store(true, Relaxed);
    }
}

/// Of each hart: the loop. That of hart 0 says what was measured.
pub(crate) fn opens() -> ! {
    let (hart, harts) = (this(), all_harts());
    hart.is_lazy.store(true, Relaxed);
    hart.is_of_2014.store(true, Relaxed);
    if hart.id == 0 {
        measure(harts);
    }
    loop {
        operation(harts);
    }
}

/// Hart 0's share of the loop, and what came of it.
fn measure(harts: usize) -> ! {
    let seconds = parameters().seconds;
    watch::END.store(sbi::time() + 10 * seconds * SECOND, Relaxed);
    for (keeps_own, own) in [(true, "itself"), (false, "any hart")] {
        KEEPS_OWN.store(keeps_own, Relaxed);
        let until = |time: u64| {
            while sbi::time() < time {
                operation(harts);
            }
            (slab::counts(), done()[0])
        };
        let begun = sbi::time();
        let before = until(begun + seconds * SECOND / 2);
        mark(Mark::Begin);
        let after = until(begun + seconds * SECOND * 3 / 2);
        let periods = (after.1.wrapping_sub(before.1) / 2).max(1);
        let [operations, node, zone] = core::array::from_fn(|at| after.0[at] - before.0[at]);
        (0..operations / UNIT).for_each(|_| mark(Mark::Unit));
        let [node, zone] = [node, zone].map(|visits| visits * 1_000_000 / operations);
        let (ms, batch) = (seconds * 1_000 / periods, operations / periods / harts as u64);
        _ = write!(Console, "| {own} | {HZ} | {ms} | {batch} | {node} | {zone}");
        mark(Mark::End);
    }
    sbi::power_off(true);
}
