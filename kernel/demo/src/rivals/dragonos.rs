//! Grace periods as DragonOS has them: DragonOS-Community/DragonOS at 1257bce2, the directory
//! `kernel/src/rcu`, whose behaviour this is, in another program. There is one state, under one
//! lock, and a word for each CPU, which says whether the CPU is in the kernel and how often it has
//! left it. A grace period waits for the CPUs that were in the kernel when it began, until each has
//! left it or has passed through its scheduler, which takes the lock at each pass. It begins as
//! soon as a thread asks for it, and ends at once when the last CPU has passed. One worker, on CPU
//! 0 here, asks for the grace periods of all callbacks, and runs these. After 100 ms the tick of a
//! CPU that is waited for asks for its scheduler. Nothing limits how many callbacks wait, and
//! nobody can ask to hurry.
//!
//! Left out: queues of each CPU, of which eight in turn are run (one here); that a batch ends after
//! 3 ms; and that after 1 s another CPU interrupts (each that is waited for has a tick here).

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::*, fence};

use conformance::{Rcu, Run, What};

use super::list::{Head, List};
use crate::hart::{self, HARTS, SECOND, Section, this};
use crate::lock::Lock;
use crate::{sbi, thread};

/// A hart's word is the sum of these: idle or in a program; each handler; each time that it has
/// left the kernel.
const AWAY: u64 = 1;
const HANDLER: u64 = 2;
const LEAVE: u64 = 0x1_0000;

fn is_away(word: u64) -> bool {
    word % LEAVE == AWAY
}

/// After so long a tick asks for the scheduler.
const LATE: u64 = SECOND / 10;

struct Books {
    /// Odd while a grace period is in progress; one more when it begins, and when it ends.
    sequence: u64,
    is_wanted: bool,
    /// Harts that are online, a bit each.
    online: u64,
    /// Their words when it began.
    words: [u64; HARTS],
    /// Callbacks: for the next grace period, for this one, and to be run.
    fresh: List,
    covered: List,
    ready: List,
}

pub(crate) struct DragonOs {
    books: Lock<Books>,
    words: [AtomicU64; HARTS],
    /// Harts that are waited for, a bit each: written under the lock.
    holdouts: AtomicU64,
    began_at: AtomicU64,
    /// Callbacks ever queued, and run.
    queued: AtomicU64,
    ran: AtomicU64,
}

impl DragonOs {
    pub(crate) const fn new() -> Self {
        let books = Books {
            sequence: 0,
            is_wanted: false,
            online: 0,
            words: [0; HARTS],
            fresh: List::EMPTY,
            covered: List::EMPTY,
            ready: List::EMPTY,
        };
        Self {
            books: Lock::new(books),
            words: [const { AtomicU64::new(0) }; HARTS],
            holdouts: AtomicU64::new(0),
            began_at: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            ran: AtomicU64::new(0),
        }
    }

    /// Under the lock, takes out holdouts that have left the kernel. If none remains, the grace
    /// period ends, and the next one begins if it is wanted. Returns whether one has ended.
    fn settle(&self, books: &mut Books) -> bool {
        let mut has_ended = false;
        loop {
            // Relaxed, here and below: written under the lock.
            let holdouts = self.holdouts.load(Relaxed);
            for hart in (0..HARTS).filter(|hart| holdouts >> hart & 1 != 0) {
                // SeqCst: pairs with the addition of `moves`. If the hart is seen to have left, its
                // sections of before come before the end.
                let word = self.words[hart].load(SeqCst);
                if is_away(word) || word / LEAVE != books.words[hart] / LEAVE {
                    self.strike(hart);
                }
            }
            if self.holdouts.load(Relaxed) != 0 {
                return has_ended;
            }
            if books.sequence % 2 == 1 {
                books.sequence += 1;
                books.ready.append(&mut books.covered);
                has_ended = true;
            }
            if !books.is_wanted {
                return has_ended;
            }
            books.is_wanted = false;
            books.sequence += 1;
            books.covered.append(&mut books.fresh);
            // Relaxed: a tick that sees the old time asks too soon, for nothing.
            self.began_at.store(sbi::time(), Relaxed);
            // SeqCst, before the words: pairs with `moves`. Either a hart that leaves the kernel
            // sees that it is waited for, or it is seen to have left.
            self.holdouts.store(books.online, SeqCst);
            // Full fence: pairs with the one of `moves`. A hart that is seen away finds in its next
            // section what was written before the grace period.
            fence(SeqCst);
            // SeqCst: as above.
            books.words = core::array::from_fn(|hart| self.words[hart].load(SeqCst));
        }
    }

    /// Under the lock: that hart is not waited for.
    fn strike(&self, hart: usize) {
        // SeqCst: as the store in `settle`.
        self.holdouts.fetch_and(!(1 << hart), SeqCst);
    }

    /// Changes the state, and wakes whom that concerns.
    fn change(&self, what: impl FnOnce(&mut Books)) {
        let (has_ended, is_ready) = self.books.with(|books| {
            what(books);
            (self.settle(books), !books.ready.is_empty())
        });
        if has_ended {
            thread::wake_waiters();
        }
        if is_ready {
            self.wake_worker();
        }
    }

    fn wake_worker(&self) {
        let worker = hart::of(0);
        // Relaxed: the worker looks under the lock after it has cleared the mark.
        if !worker.has_work.swap(true, Relaxed) {
            worker.need_resched.store(true, Relaxed);
            if this().id != 0 {
                sbi::interrupt(1);
            }
        }
    }

    /// This hart enters the kernel, or leaves it: the change is added to its word, and wraps.
    fn moves(&self, change: u64) {
        let hart = this().id;
        // Relaxed: it alone writes its word; a handler puts back what it adds, but for `LEAVE`.
        let before = self.words[hart].load(Relaxed);
        let leaves = !is_away(before) && is_away(before.wrapping_add(change));
        let change = change.wrapping_add(if leaves { LEAVE } else { 0 });
        // SeqCst: pairs with `settle`, which sees the sections of before if it sees this.
        self.words[hart].fetch_add(change, SeqCst);
        // Full fence: pairs with the one of `settle`.
        fence(SeqCst);
        if leaves && self.is_holdout(hart) {
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
        // Relaxed: who waits for it to run knows of it.
        self.queued.fetch_add(1, Relaxed);
        // SAFETY: the caller's.
        self.books.with(|books| unsafe { books.fresh.push(head, run) });
        self.wake_worker();
    }

    fn synchronize(&self) {
        let mut ended = 0;
        self.change(|books| {
            books.is_wanted = true;
            ended = (books.sequence + 3) & !1;
        });
        thread::wait(&|| self.books.with(|books| books.sequence >= ended), false);
    }

    /// They run in the order in which they were queued.
    fn barrier(&self) {
        let queued = self.queued.load(Relaxed);
        // Acquire: pairs with the Release of `run_callbacks`.
        thread::wait(&|| self.ran.load(Acquire) >= queued, false);
    }

    fn context_switch(&self, _: bool) {
        self.change(|_| self.strike(this().id));
    }

    fn tick(&self, (): &(), _: bool) {
        let (hart, began_at) = (this(), self.began_at.load(Relaxed));
        if self.is_holdout(hart.id) && sbi::time().saturating_sub(began_at) > LATE {
            hart.need_resched.store(true, Relaxed);
        }
    }

    fn idle_enter(&self) -> bool {
        self.moves(AWAY);
        false
    }

    fn idle_exit(&self) {
        self.moves(AWAY.wrapping_neg());
    }

    fn irq_enter(&self) {
        self.moves(HANDLER);
    }

    fn irq_exit(&self, (): ()) -> bool {
        self.moves(HANDLER.wrapping_neg());
        false
    }

    fn cpu_starting(&self, cpu: usize) {
        self.change(|books| books.online |= 1 << cpu);
    }

    fn cpu_dying(&self, cpu: usize) {
        self.change(|books| {
            books.online &= !(1 << cpu);
            self.strike(cpu);
        });
    }

    fn has_callbacks(&self) -> bool {
        let has_some = |books: &mut Books| {
            !books.ready.is_empty() || !books.fresh.is_empty() && !books.is_wanted
        };
        this().id == 0 && self.books.with(has_some)
    }

    fn run_callbacks(&self, cpu: usize, budget: u64) -> bool {
        if cpu != 0 {
            return false;
        }
        self.change(|books| books.is_wanted |= !books.fresh.is_empty());
        for _ in 0..budget {
            let Some((head, run)) = self.books.with(|books| books.ready.pop()) else { break };
            // SAFETY: it was queued with this function, and its grace period has ended.
            unsafe { run(head) };
            // Release: pairs with the Acquires of who looks; it has run.
            self.ran.fetch_add(1, Release);
        }
        thread::wake_waiters();
        self.has_callbacks()
    }

    fn is_holdout(&self, cpu: usize) -> bool {
        // SeqCst: pairs with `settle`.
        self.holdouts.load(SeqCst) >> cpu & 1 != 0
    }

    fn waiting(&self) -> u64 {
        // Acquire, and first: what has run was queued before, so the difference is not below 0.
        let ran = self.ran.load(Acquire);
        self.queued.load(Relaxed) - ran
    }
}
