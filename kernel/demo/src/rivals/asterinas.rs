//! Grace periods as Asterinas' OSTD has them: asterinas/asterinas at 1ff59494, the file
//! `ostd/src/sync/rcu/monitor.rs`, whose behaviour this is, in another program. All CPUs share one
//! grace period. It ends when each CPU of the machine has switched to another thread, which is the
//! only quiescent state: an idle CPU switches to none, and a thread alone on its CPU is not
//! switched from, so both hold it up for as long as they last. The CPU that switches last runs all
//! callbacks of that grace period before it goes on, in one go. Those that came meanwhile have the
//! next one. There is no wait for a grace period, no barrier, no hotplug, and nothing that hurries.

use core::mem::replace;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use conformance::{Rcu, Run, What};

use super::list::{Head, List};
use crate::hart::{self, Section, this};
use crate::lock::Lock;
use crate::thread;

/// A grace period: harts of the machine and those that have yet to switch, a bit each; callbacks
/// that it is for, and that came too late for it.
struct Round {
    harts: u64,
    awaited: u64,
    covered: List,
    late: List,
}

impl Round {
    /// The next one begins, if there are callbacks for it.
    fn begin(&mut self) {
        self.covered.append(&mut self.late);
        self.awaited = if self.covered.is_empty() { 0 } else { self.harts };
    }

    /// That hart has switched. Returns what may run.
    fn strike(&mut self, hart: usize) -> List {
        let left = self.awaited & !(1 << hart);
        if replace(&mut self.awaited, left) == 0 || left != 0 {
            return List::EMPTY;
        }
        let ready = replace(&mut self.covered, List::EMPTY);
        self.begin();
        ready
    }
}

pub(crate) struct Asterinas {
    round: Lock<Round>,
    /// Whether one is in progress.
    is_on: AtomicBool,
    waiting: AtomicU64,
}

impl Asterinas {
    pub(crate) const fn new() -> Self {
        let round = Round { harts: 0, awaited: 0, covered: List::EMPTY, late: List::EMPTY };
        let (is_on, waiting) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { round: Lock::new(round), is_on, waiting }
    }

    fn change<R>(&self, what: impl FnOnce(&mut Round) -> R) -> R {
        self.round.with(|round| {
            let result = what(round);
            // Relaxed: a hart that sees the old value takes the lock for nothing, or passes later.
            self.is_on.store(round.awaited != 0, Relaxed);
            result
        })
    }
}

// SAFETY: a callback is in one list from `call` until it is taken out to run.
unsafe impl Rcu for Asterinas {
    type Head = Head;
    const HEAD: Head = Head::new();
    type Section = Section;
    type Interrupt = ();
    const LACKS: &'static [What] = &[
        What::Synchronize,
        What::Expedited,
        What::Cookie,
        What::Barrier,
        What::Own,
        What::Hotplug,
    ];

    fn read(&self) -> Section {
        Section::new()
    }

    unsafe fn call(&self, head: NonNull<Head>, run: Run<Head>) {
        // Relaxed: who waits for it to run knows of it.
        self.waiting.fetch_add(1, Relaxed);
        self.change(|round| {
            // SAFETY: the caller's.
            unsafe { round.late.push(head, run) };
            if round.awaited == 0 {
                round.begin();
            }
        });
    }

    /// At the end of the torture alone: has all harts switch until nothing waits.
    fn barrier(&self) {
        while self.waiting() != 0 {
            thread::switch_all();
            thread::sleep_ticks(1);
        }
    }

    fn context_switch(&self, is_other: bool) {
        // Relaxed: see `change`.
        if !is_other || !self.is_on.load(Relaxed) {
            return;
        }
        let mut ready = self.change(|round| round.strike(this().id));
        if ready.is_empty() {
            return;
        }
        // With interrupts on, as the thread that was to be left; but that is not left meanwhile.
        let _section = Section::new();
        hart::with_irqs_on(|| {
            while let Some((head, run)) = ready.pop() {
                // SAFETY: it was queued with this function, and each hart has switched since.
                unsafe { run(head) };
                // Release: pairs with the Acquire of `waiting`; it has run.
                self.waiting.fetch_sub(1, Release);
            }
        });
    }

    fn irq_enter(&self) {}

    fn cpu_starting(&self, cpu: usize) {
        self.change(|round| round.harts |= 1 << cpu);
    }

    fn is_holdout(&self, cpu: usize) -> bool {
        self.change(|round| round.awaited >> cpu & 1 != 0)
    }

    fn waiting(&self) -> u64 {
        // Acquire: pairs with the Release above.
        self.waiting.load(Acquire)
    }
}
