//! What is printed if there is no progress: who holds up the grace period, and the last hooks.

use core::sync::atomic::{AtomicU64, Ordering::*};

use conformance::Rcu;

use crate::hart::{self, HARTS, SECOND, this};
use crate::platform::{KERNEL, RCU};
use crate::sbi::{self, say};

/// Seconds after which the kernel gives up: that a grace period lasts, or that the test goes on
/// beyond its time. The emulator's threads may be kept off their CPUs for long.
const PATIENCE: u64 = 10;

/// When the test should have ended.
pub(crate) static END: AtomicU64 = AtomicU64::new(u64::MAX);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The tick of any hart, in no hook: one looks, ten times a second.
pub(crate) fn tick() {
    let (now, next) = (sbi::time(), NEXT.load(Relaxed));
    // Relaxed: nothing is passed on.
    if now < next || NEXT.compare_exchange(next, now + SECOND / 10, Relaxed, Relaxed).is_err() {
        return;
    }
    let waits = |since: u64| now.saturating_sub(since) > PATIENCE * SECOND;
    // Perhaps the lock is held: the next look says it.
    let grace_period = KERNEL.snapshot().filter(|seen| seen.sequence.in_progress());
    if grace_period.is_some_and(|seen| waits(seen.began_ns / 100)) {
        say!("stalled: a grace period does not end");
    } else if waits(END.load(Relaxed)) {
        say!("stalled: the test does not end");
    } else {
        return;
    }
    report();
    sbi::power_off(false);
}

/// What is known.
pub(crate) fn report() {
    say!("{} callbacks wait", RCU.waiting());
    // The lock may be held for long; of a rival nothing is known.
    match (0..10).find_map(|_| KERNEL.snapshot()) {
        Some(seen) => say!("now {} ns: {seen:?}", sbi::time() * 100),
        None => say!("nothing is known of the machine"),
    }
    for hart in 0..HARTS {
        let seen = (0..10).find_map(|_| KERNEL.cpu_snapshot(hart));
        if let Some(seen) = seen.filter(|seen| seen.is_online || seen.is_holdout) {
            let of = hart::of(hart);
            // Those of another hart may be written meanwhile.
            let times = (hart == this().id).then(|| of.threads.times());
            say!("hart {hart}: {} ticks, {seen:?}, {times:?}", of.ticks.load(Relaxed));
        }
    }
}
