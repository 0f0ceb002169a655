//! The RCU of Asterinas' OSTD (`ostd/src/sync/rcu/monitor.rs`, 1ff59494), as far as its grace
//! periods go: one monitor for all CPUs.
//!
//! A grace period ends when each CPU of the machine has switched to another thread since it began,
//! which is the only quiescent state. An idle CPU switches to none, and a thread alone on its CPU
//! is not switched from: both hold up every grace period for as long as they last. Whoever switches
//! last runs all callbacks of that grace period before it goes on, in one go. The next one is for
//! those that came meanwhile. There is no wait for a grace period, no hotplug, and nothing that
//! hurries.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use conformance::{Rcu, Run, What};

use super::list::{Head, List, Lock};
use crate::hart::{self, Section, this};
use crate::thread;

struct Monitor {
    /// Those of the grace period in progress, and of the next.
    current: List,
    next: List,
    is_complete: bool,
    /// A bit for each CPU: of the machine; and that has passed.
    all: u64,
    passed: u64,
}

impl Monitor {
    fn restart(&mut self) {
        self.is_complete = false;
        self.passed = 0;
        self.current.append(&mut self.next);
    }

    /// This CPU switches. Returns what may run.
    fn pass(&mut self, cpu: usize, is_monitoring: &AtomicBool) -> List {
        self.passed |= 1 << cpu;
        if self.is_complete || self.passed & self.all != self.all {
            return List::EMPTY;
        }
        self.is_complete = true;
        let done = core::mem::replace(&mut self.current, List::EMPTY);
        if self.next.is_empty() {
            // Relaxed: under the lock; who does not see it is a CPU that passes for nothing.
            is_monitoring.store(false, Relaxed);
        } else {
            self.restart();
        }
        done
    }
}

pub(crate) struct Asterinas {
    is_monitoring: AtomicBool,
    monitor: Lock<Monitor>,
    waiting: AtomicU64,
}

impl Asterinas {
    pub(crate) const fn new() -> Self {
        let monitor = Monitor {
            current: List::EMPTY,
            next: List::EMPTY,
            is_complete: true,
            all: 0,
            passed: 0,
        };
        let (is_monitoring, waiting) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { is_monitoring, monitor: Lock::new(monitor), waiting }
    }
}

// SAFETY: a callback is in one list from `call` until it is taken out to run.
unsafe impl Rcu for Asterinas {
    type Head = Head;
    const HEAD: Head = Head::new();
    type Section = Section;
    type Interrupt = ();
    const LACKS: &'static [What] =
        &[What::Synchronize, What::Expedited, What::Cookie, What::Own, What::Hotplug];

    fn read(&self) -> Section {
        Section::new()
    }

    unsafe fn call(&self, head: NonNull<Head>, run: Run<Head>) {
        self.waiting.fetch_add(1, Relaxed);
        self.monitor.with(|monitor| {
            // SAFETY: the caller's.
            unsafe { monitor.next.push(head, run) };
            if monitor.is_complete {
                monitor.restart();
                self.is_monitoring.store(true, Relaxed);
            }
        });
    }

    /// The torture's, not the design's: has all CPUs switch until nothing waits.
    fn barrier(&self) {
        while self.waiting() != 0 {
            thread::switch_all();
            thread::sleep_ticks(1);
        }
    }

    fn context_switch(&self, is_other: bool) {
        if !is_other || !self.is_monitoring.load(Relaxed) {
            return;
        }
        let mut done = self.monitor.with(|monitor| monitor.pass(this().id, &self.is_monitoring));
        // With interrupts on, as the thread that was to be left; but that is not left meanwhile.
        let _section = Section::new();
        hart::with_irqs_on(|| {
            while let Some((head, run)) = done.pop() {
                // SAFETY: it was queued with this function, and each CPU has switched since.
                unsafe { run(head) };
                // Release: pairs with the Acquire of `waiting`.
                self.waiting.fetch_sub(1, Release);
            }
        });
    }

    fn irq_enter(&self) {}

    fn cpu_starting(&self, cpu: usize) {
        self.monitor.with(|monitor| monitor.all |= 1 << cpu);
    }

    fn is_holdout(&self, cpu: usize) -> bool {
        let is_one = |monitor: &mut Monitor| {
            !monitor.is_complete && monitor.all & !monitor.passed & 1 << cpu != 0
        };
        self.monitor.with(is_one)
    }

    fn waiting(&self) -> u64 {
        self.waiting.load(Acquire)
    }
}
