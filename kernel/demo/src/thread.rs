//! Threads, which stay on their hart; the scheduler; the idle loop; the worker that runs callbacks.
//!
//! Hooks: `context_switch` at each pass through the scheduler; `idle_enter` and `idle_exit` around
//! "wait for interrupt"; `run_callbacks` and `has_callbacks` in the worker.

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicU64, Ordering::*, fence};

use conformance::Rcu;

use crate::hart::{self, HARTS, Hart, this};
use crate::platform::RCU;
use crate::{hotplug, sbi};

/// After so long a thread that polls looks again. Where the emulator counts instructions, it goes
/// on to another hart when a timer runs out.
const POLL: u64 = hart::SECOND / 16_000;
/// Threads of a hart, beside the one that it boots on, which becomes its idle loop.
pub(crate) const THREADS: usize = 5;
/// The idle loop's place among them.
const IDLE: usize = THREADS;
/// Words of a thread's stack.
const STACK: usize = 4 * 1_024;
/// At the end of each stack, or it has overflowed.
const CANARY: u64 = 0x5AFE_5AFE_5AFE_5AFE;
/// Callbacks that the worker runs at once: DragonOS' number, or ours.
const BUDGET: u64 = if cfg!(feature = "dragonos") { 64 } else { 16 };

#[repr(C, align(16))]
struct Stack<const WORDS: usize>([UnsafeCell<u64>; WORDS]);

// SAFETY: each is written by its thread, and before that by the hart that makes it.
unsafe impl<const WORDS: usize> Sync for Stack<WORDS> {}

impl<const WORDS: usize> Stack<WORDS> {
    const fn new() -> Self {
        Self([const { UnsafeCell::new(0) }; WORDS])
    }
}

static STACKS: [[Stack<STACK>; THREADS]; HARTS] =
    [const { [const { Stack::new() }; THREADS] }; HARTS];

/// Where each hart boots, and its idle loop stays. The first hook lays the tree out here. `entry.s`
/// knows the size.
#[unsafe(no_mangle)]
static HART_STACKS: [Stack<{ 2 * STACK }>; HARTS] = [const { Stack::new() }; HARTS];

/// How often something has ended that threads wait for. Release where it is counted, Acquire where
/// it is looked at: who sees the count sees what has ended.
static ENDS: AtomicU64 = AtomicU64::new(0);
/// How often a hart has passed through its scheduler that was asked to, while others polled.
static PASSES: AtomicU64 = AtomicU64::new(0);
/// Harts of threads that poll, a bit each.
static POLLERS: AtomicU64 = AtomicU64::new(0);

/// When a thread runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Never,
    Now,
    /// At that time.
    At(u64),
    /// When [`ENDS`] is another number. A thread that polls: also when [`PASSES`] is another one
    /// than the first, or at the second's time.
    Ends(u64, Option<(u64, u64)>),
    /// When there are callbacks to run.
    Work,
    /// When the hart is to stop.
    Stop,
    /// When it has started again.
    Start,
}

impl When {
    fn is_now(self, hart: &Hart) -> bool {
        match self {
            Self::Never => false,
            Self::Now => true,
            Self::At(time) => sbi::time() >= time,
            Self::Ends(seen, polls) => {
                let is_due =
                    |(passes, until)| PASSES.load(Acquire) != passes || sbi::time() >= until;
                ENDS.load(Acquire) != seen || polls.is_some_and(is_due)
            }
            Self::Work => hart.has_work.load(Relaxed) && !hart.is_of_2014.load(Relaxed),
            // Acquire: pairs with the Release of `hotplug::stop`.
            Self::Stop => hart.stops.load(Acquire),
            // Relaxed: this hart itself has written it.
            Self::Start => !hart.stops.load(Relaxed),
        }
    }
}

struct Thread {
    stack_pointer: Cell<usize>,
    when: Cell<When>,
}

/// Those of a hart: touched by it alone, with interrupts off.
pub(crate) struct Threads {
    all: [Thread; THREADS + 1],
    current: Cell<usize>,
}

unsafe extern "C" {
    fn switch_stacks(from: *mut usize, to: usize);
    fn thread_entry();
}

impl Threads {
    pub(crate) const fn new() -> Self {
        Self {
            all: [const { Thread { stack_pointer: Cell::new(0), when: Cell::new(When::Never) } };
                THREADS + 1],
            current: Cell::new(IDLE),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.current.get() == IDLE
    }

    /// The next one that can run, if any but the idle loop can.
    fn next(&self, hart: &Hart) -> Option<usize> {
        let after = self.current.get() + 1;
        (0..THREADS).map(|step| (after + step) % THREADS).find(|&one| self.is_ready(one, hart))
    }

    fn is_ready(&self, thread: usize, hart: &Hart) -> bool {
        self.all[thread].when.get().is_now(hart)
    }

    /// When each thread of this hart runs, to be printed.
    pub(crate) fn times(&self) -> [When; THREADS] {
        core::array::from_fn(|thread| self.all[thread].when.get())
    }

    /// Whether the thread sleeps until the hart has started again. Interrupts are off.
    pub(crate) fn is_parked(&self, thread: usize) -> bool {
        matches!(self.all[thread].when.get(), When::Start)
    }

    /// When the first one that sleeps wants to wake.
    fn first_wake(&self) -> u64 {
        let times = self.all.iter().map(|thread| match thread.when.get() {
            When::At(time) | When::Ends(_, Some((_, time))) => time,
            _ => u64::MAX,
        });
        times.min().unwrap_or(u64::MAX)
    }
}

/// The number of the thread that runs here.
pub(crate) fn number() -> usize {
    let _irq = hart::irqs_off();
    this().id * (THREADS + 1) + this().threads.current.get()
}

/// Makes a thread of this hart, which begins when it is time.
pub(crate) fn make(thread: usize, when: When, function: fn() -> !) {
    let (_irq, hart) = (hart::irqs_off(), this());
    let stack = &STACKS[hart.id][thread].0;
    // What `restore` in entry.s takes from it: where to go, and in s0 the function.
    let top = STACK - 14;
    let begin =
        [(0, CANARY), (top, thread_entry as *const () as u64), (top + 1, function as usize as u64)];
    for (at, value) in begin {
        // SAFETY: the thread does not run, so its stack is nobody else's.
        unsafe { stack[at].get().write(value) };
    }
    hart.threads.all[thread].stack_pointer.set(stack[top].get() as usize);
    hart.threads.all[thread].when.set(when);
}

/// The hart starts, perhaps again: its idle loop runs, whatever ran when it stopped.
pub(crate) fn begin_idle() {
    this().threads.current.set(IDLE);
    // SAFETY: this hart runs on that stack, and is far from its end.
    unsafe { HART_STACKS[this().id].0[0].get().write(CANARY) };
}

fn check_stack(hart: usize, thread: usize) {
    let stack = STACKS[hart].get(thread).map(|stack| &stack.0[0]);
    // SAFETY: nobody writes there any more but an overflow.
    let canary = unsafe { stack.unwrap_or(&HART_STACKS[hart].0[0]).get().read() };
    assert_eq!(canary, CANARY, "a stack has overflowed");
}

/// Passes through the scheduler. Interrupts are off, and no section is open.
pub(crate) fn schedule() {
    let hart = this();
    debug_assert!(hart.is_preemptible() && !hart::irqs_are_on(), "in no section");
    let was_asked = hart.need_resched.swap(false, Relaxed);
    let threads = &hart.threads;
    let (before, next) = (threads.current.get(), threads.next(hart).unwrap_or(IDLE));
    hart.stretches.of_switch(|| RCU.context_switch(next != before));
    // Relaxed: a poller that is not seen here looks soon.
    let pollers = POLLERS.load(Relaxed) & !(1 << hart.id);
    if was_asked && pollers != 0 {
        // Release: pairs with the Acquires of those who wait; the hook comes before.
        PASSES.fetch_add(1, Release);
        sbi::interrupt(pollers);
    }
    check_stack(hart.id, before);
    if next != IDLE {
        threads.all[next].when.set(When::Now);
        hart.start_tick();
    }
    if next != before {
        threads.current.set(next);
        let from = threads.all[before].stack_pointer.as_ptr();
        // SAFETY: `next` has left its stack pointer by the same way, or `make` has written it;
        // interrupts are off, so nothing else switches here.
        unsafe { switch_stacks(from, threads.all[next].stack_pointer.get()) };
    }
}

/// Lets other threads of this hart run.
pub(crate) fn yields() {
    let _irq = hart::irqs_off();
    schedule();
}

/// Has each hart pass from one thread to another: its worker runs, even if it has nothing to do.
pub(crate) fn switch_all() {
    for hart in (0..HARTS).map(hart::of) {
        hart.has_work.store(true, Relaxed);
        hart.need_resched.store(true, Relaxed);
    }
    sbi::interrupt(u64::MAX >> (64 - HARTS));
}

/// This thread runs again then.
pub(crate) fn sleep(when: When) {
    let _irq = hart::irqs_off();
    let threads = &this().threads;
    threads.all[threads.current.get()].when.set(when);
    schedule();
}

/// For so many ticks.
pub(crate) fn sleep_ticks(ticks: u64) {
    sleep(When::At(sbi::time() + ticks * hart::TICK));
}

#[unsafe(no_mangle)]
extern "C" fn thread_end() -> ! {
    unreachable!("threads do not return")
}

/// Sleeps until `done`: the platform's `wait`. A thread that `polls` looks whenever a hart has
/// passed through its scheduler, as it was asked to, and after [`POLL`].
pub(crate) fn wait(done: &dyn Fn() -> bool, polls: bool) {
    let bit = u64::from(polls) << this().id;
    loop {
        // In each turn: another thread of this hart may have taken it out.
        POLLERS.fetch_or(bit, Relaxed);
        let polling = polls.then(|| (PASSES.load(Acquire), sbi::time() + POLL));
        if let Some((_, until)) = polling {
            this().next_tick(until);
        }
        let seen = ENDS.load(Acquire);
        this().has_waiter.store(true, Relaxed);
        // Full fence: the mark comes before the look at the number when the thread sleeps. Pairs
        // with the one of `wake_waiters`.
        fence(SeqCst);
        if done() {
            break;
        }
        sleep(When::Ends(seen, polling));
    }
    POLLERS.fetch_and(!bit, Relaxed);
}

/// Something has ended: harts on which a thread waits are interrupted, for they may be idle.
pub(crate) fn wake_waiters() {
    ENDS.fetch_add(1, Release);
    // Full fence: pairs with the one of `wait`; a hart whose mark is not seen sees the number.
    fence(SeqCst);
    let others = (0..HARTS).filter(|&other| other != this().id);
    let mask = others.filter(|&other| hart::of(other).has_waiter.swap(false, Relaxed));
    sbi::interrupt(mask.fold(0, |mask, other| mask | 1 << other));
}

/// What a hart does that has nothing to run. Where an interrupt comes here it is one out of idle.
pub(crate) fn idle() -> ! {
    let _irq = hart::irqs_off();
    let hart = this();
    let has_none = || !hart.need_resched.load(Relaxed) && hart.threads.next(hart).is_none();
    loop {
        if has_none() {
            hart.keeps_tick.store(RCU.idle_enter(), Relaxed);
            while has_none() {
                if hart.keeps_tick.load(Relaxed) {
                    hart.next_tick(hart.threads.first_wake());
                } else {
                    if hart.is_ticking.load(Relaxed) {
                        hart.tick_stops.store(hart.tick_stops.load(Relaxed) + 1, Relaxed);
                    }
                    // Hart 0 looks each second whether there is progress.
                    let look = if hart.id == 0 { sbi::time() + hart::SECOND } else { u64::MAX };
                    hart.stop_tick(hart.threads.first_wake().min(look));
                }
                hart::wait_for_interrupt();
                // SAFETY: `_irq` has them off; the idle loop holds nothing.
                unsafe { hart::take_interrupts() };
            }
            RCU.idle_exit();
        }
        schedule();
    }
}

/// Runs what is ready. It has said that it sleeps before it looks for the last time.
pub(crate) fn worker() -> ! {
    let hart = this();
    loop {
        hart.has_work.store(false, Relaxed);
        if !RCU.has_callbacks() {
            sleep(When::Work);
        }
        // Others run at the next tick.
        while RCU.run_callbacks(hart.id, BUDGET) {}
        hotplug::worker_is_between();
    }
}
