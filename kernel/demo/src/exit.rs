//! The test: a thread that ends with 50,000 open files, 10 us each, on the last hart, whose tick is
//! off meanwhile; it calls `cond_resched` after each, or (in a preemptible kernel, where that is
//! nothing) it does not. Hart 0 queues a callback for each file. How long grace periods last, and
//! how many callbacks wait, under the variants of Tree RCU of 2014.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

use conformance::Rcu;
use conformance::torture::spin;
use kernel::engine::tree::Variant;

use crate::all_harts;
use crate::hart::{HZ, SECOND, this};
use crate::latency::{HEADS, RAN, ran};
use crate::platform::{Board, KERNEL, OPTIONS, RCU};
use crate::sbi::{self, say};
use crate::{thread, watch};

const FILES: usize = HEADS.len();
const FILE: u64 = SECOND / 100_000;

/// Threads that are to end, files that the last one has closed, and whether it offers to be
/// rescheduled.
static EXITS: AtomicUsize = AtomicUsize::new(0);
static CLOSED: AtomicUsize = AtomicUsize::new(0);
static OFFERS: AtomicBool = AtomicBool::new(false);

/// A thread of each hart; that of the last one ends, again and again. The others wake at each tick:
/// a hart without a tick is stopped by the emulator only when the timer of another one runs out.
pub(crate) fn exits() -> ! {
    let hart = this();
    while hart.id + 1 != all_harts() {
        thread::sleep_ticks(1);
    }
    for end in 1..=usize::MAX {
        // Acquire: pairs with the Release of `main`.
        while EXITS.load(Acquire) < end {
            thread::sleep_ticks(1);
        }
        hart.is_tickless.store(true, Relaxed);
        hart.stop_tick(u64::MAX);
        for closed in 1..=FILES {
            spin::<Board>(FILE);
            CLOSED.store(closed, Release);
            if OFFERS.load(Relaxed) {
                KERNEL.cond_resched();
            }
        }
        hart.is_tickless.store(false, Relaxed);
        hart.start_tick();
    }
    unreachable!("it never ends for good")
}

/// Says what it has measured.
pub(crate) fn main() -> ! {
    all_harts();
    let mut is_ok = true;
    for (offers, how) in [(true, "called"), (false, "nothing")] {
        watch::END.store(sbi::time() + 10 * SECOND, Relaxed);
        OFFERS.store(offers, Relaxed);
        CLOSED.store(0, Relaxed);
        EXITS.fetch_add(1, Release);
        let before = RAN.load(Relaxed);
        let (mut queued, mut waiting, mut longest_ns) = (0, 0, 0);
        while RAN.load(Acquire) - before != FILES as u64 {
            thread::sleep_ticks(1);
            let closed = CLOSED.load(Acquire);
            for head in &HEADS[queued..closed] {
                // SAFETY: it stays, and its callback before has run.
                unsafe { RCU.call(NonNull::from(head), ran) };
            }
            queued = closed;
            waiting = waiting.max(queued as u64 + before - RAN.load(Relaxed));
            let seen = KERNEL.snapshot().filter(|seen| seen.sequence.in_progress());
            let age = seen.map_or(0, |seen| (sbi::time() * 100).saturating_sub(seen.began_ns));
            longest_ns = longest_ns.max(age);
        }
        let (variant, ms) = (OPTIONS.tree.variant, longest_ns / 1_000_000);
        say!("| {variant:?} | {how} | {HZ} | {ms} | {waiting} |");
        // Without the call, v2 alone is to end grace periods before the thread has ended.
        let held_up = waiting > FILES as u64 / 2;
        if !offers && held_up == matches!(variant, Variant::V2 { .. }) {
            say!("wrong: grace periods were held up till the end: {held_up}");
            is_ok = false;
        }
    }
    sbi::power_off(is_ok);
}
