//! The RCU of DragonOS (`kernel/src/rcu`, 1257bce2), as far as its grace periods go: one state
//! under one lock, a word for each CPU's context, and one worker for the callbacks of all.
//!
//! - A grace period waits for the CPUs that were in the kernel when it began. A CPU in idle or user
//!   mode is not waited for: its word says so, and a number in the word grows as the CPU goes
//!   there, which whoever has the lock sees.
//! - Each pass through the scheduler takes the lock, whether or not there is a grace period.
//! - Callbacks run on one thread, on CPU 0 here, which also asks for their grace period: up to 64
//!   in a batch. Nothing limits how many wait, and nobody can ask to hurry.
//!
//! Left out: a queue for each CPU (one here), and that after 100 ms a tick asks for the scheduler,
//! and after 1 s an interrupt does (here each tick passes through it).

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::*, fence};

use conformance::{Rcu, Run, What};

use super::list::{Head, List, Lock};
use crate::hart::{self, HARTS, Section, this};
use crate::{sbi, thread};

/// A context's word: idle or user mode; so many handlers; how often it has left the kernel.
const EXTENDED: u64 = 1;
const HANDLER: u64 = 2;
const LEFT: u64 = 0x1_0000;

/// Callbacks in a batch.
const BATCH: usize = 64;

fn is_watching(context: u64) -> bool {
    context % LEFT != EXTENDED
}

struct State {
    completed: u64,
    is_active: bool,
    is_requested: bool,
    /// CPUs, a bit each: that take part, and that are waited for.
    participating: u64,
    holdouts: u64,
    /// The words when it began.
    contexts: [u64; HARTS],
    /// Callbacks that are ready, that wait for this grace period, and for the next.
    done: List,
    wait: List,
    next: List,
}

pub(crate) struct DragonOs {
    state: Lock<State>,
    contexts: [AtomicU64; HARTS],
    /// Callbacks ever queued, and run.
    queued: AtomicU64,
    ran: AtomicU64,
}

impl DragonOs {
    pub(crate) const fn new() -> Self {
        let state = State {
            completed: 0,
            is_active: false,
            is_requested: false,
            participating: 0,
            holdouts: 0,
            contexts: [0; HARTS],
            done: List::EMPTY,
            wait: List::EMPTY,
            next: List::EMPTY,
        };
        Self {
            state: Lock::new(state),
            contexts: [const { AtomicU64::new(0) }; HARTS],
            queued: AtomicU64::new(0),
            ran: AtomicU64::new(0),
        }
    }

    /// Ends and begins what can end and begin.
    fn pump(&self, state: &mut State) {
        loop {
            for (cpu, word) in self.contexts.iter().enumerate() {
                let now = word.load(SeqCst);
                if !is_watching(now) || now / LEFT != state.contexts[cpu] / LEFT {
                    state.holdouts &= !(1 << cpu);
                }
            }
            if state.is_active && state.holdouts == 0 {
                fence(SeqCst);
                state.completed += 1;
                state.is_active = false;
                state.done.append(&mut state.wait);
            } else if !state.is_active && state.is_requested {
                state.wait.append(&mut state.next);
                fence(SeqCst);
                state.contexts = core::array::from_fn(|cpu| self.contexts[cpu].load(SeqCst));
                (state.is_active, state.is_requested) = (true, false);
                state.holdouts = state.participating;
            } else {
                return;
            }
        }
    }

    /// Changes the state, and wakes whom that concerns.
    fn change(&self, what: impl FnOnce(&mut State)) {
        let is_ready = self.state.with(|state| {
            what(state);
            self.pump(state);
            !state.done.is_empty()
        });
        thread::wake_waiters();
        if is_ready {
            self.wake_worker();
        }
    }

    fn wake_worker(&self) {
        let worker = hart::of(0);
        let is_awake = worker.has_work.swap(true, Relaxed);
        worker.need_resched.store(true, Relaxed);
        if !is_awake && this().id != 0 {
            sbi::interrupt(1);
        }
    }

    /// This CPU's context changes: by an addition, which wraps.
    fn add(&self, change: u64) {
        let cpu = this().id;
        let word = &self.contexts[cpu];
        let leaves = |before: u64| is_watching(before) && !is_watching(before.wrapping_add(change));
        let next = |before: u64| {
            Some(before.wrapping_add(change).wrapping_add(if leaves(before) { LEFT } else { 0 }))
        };
        let before = word.fetch_update(SeqCst, SeqCst, next).unwrap_or_default();
        if leaves(before) && self.is_holdout(cpu) {
            self.change(|_| {});
        }
    }
}

// SAFETY: a callback is in one list from `call` until it is taken out to run.
unsafe impl Rcu for DragonOs {
    type Head = Head;
    const HEAD: Head = Head::new();
    type Section = Section;
    type Interrupt = ();
    const LACKS: &'static [What] = &[What::Expedited, What::Cookie, What::Own];

    fn read(&self) -> Section {
        Section::new()
    }

    unsafe fn call(&self, head: NonNull<Head>, run: Run<Head>) {
        self.queued.fetch_add(1, Relaxed);
        // SAFETY: the caller's.
        self.state.with(|state| unsafe { state.next.push(head, run) });
        self.wake_worker();
    }

    fn synchronize(&self) {
        let mut wanted = 0;
        self.change(|state| {
            state.is_requested = true;
            wanted = state.completed + 1 + u64::from(state.is_active);
        });
        thread::wait(&|| self.state.with(|state| state.completed >= wanted), false);
        fence(SeqCst);
    }

    /// They run in the order in which they were queued.
    fn barrier(&self) {
        let queued = self.queued.load(Acquire);
        thread::wait(&|| self.ran.load(Acquire) >= queued, false);
    }

    fn context_switch(&self, _: bool) {
        self.change(|state| state.holdouts &= !(1 << this().id));
    }

    fn idle_enter(&self) -> bool {
        self.add(EXTENDED);
        false
    }

    fn idle_exit(&self) {
        self.add(EXTENDED.wrapping_neg());
    }

    fn irq_enter(&self) {
        self.add(HANDLER);
    }

    fn irq_exit(&self, (): ()) -> bool {
        self.add(HANDLER.wrapping_neg());
        false
    }

    fn cpu_starting(&self, cpu: usize) {
        self.state.with(|state| state.participating |= 1 << cpu);
        fence(SeqCst);
    }

    fn cpu_dying(&self, cpu: usize) {
        self.change(|state| {
            state.participating &= !(1 << cpu);
            state.holdouts &= !(1 << cpu);
        });
    }

    fn has_callbacks(&self) -> bool {
        let has_some = |state: &mut State| {
            !state.done.is_empty() || !state.next.is_empty() && !state.is_requested
        };
        this().id == 0 && self.state.with(has_some)
    }

    /// The worker's batch.
    fn run_callbacks(&self, cpu: usize, _: u64) -> bool {
        if cpu != 0 {
            return false;
        }
        self.change(|state| state.is_requested |= !state.next.is_empty());
        for _ in 0..BATCH {
            let Some((head, run)) = self.state.with(|state| state.done.pop()) else { break };
            // SAFETY: it was queued with this function, and its grace period has ended.
            unsafe { run(head) };
            // Release: pairs with the Acquires of who looks.
            self.ran.fetch_add(1, Release);
        }
        thread::wake_waiters();
        self.has_callbacks()
    }

    fn is_holdout(&self, cpu: usize) -> bool {
        self.state.with(|state| state.is_active && state.holdouts >> cpu & 1 != 0)
    }

    fn waiting(&self) -> u64 {
        self.queued.load(Relaxed) - self.ran.load(Acquire)
    }
}
