//! Scripts of an RCU's edges: a forgotten tick, a CPU that goes in the middle of a grace period, an
//! NMI in idle, a flood of callbacks. One thread is every CPU in turn ([`Steps`]), so the order is
//! the one that is written here. A script panics if the RCU is wrong.
//!
//! CPUs 0 to 2 are online when a script begins. Each takes callbacks from those that it is given.

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

use crate::Rcu;

/// Callbacks that a worker runs at once.
const BUDGET: u64 = 7;
/// Callbacks of a flood.
const FLOOD: usize = 300;
/// More than any hook may run of a flood.
const BURST: usize = FLOOD / 3;
/// Enough for any of the scripts.
pub const CALLBACKS: usize = 2 * FLOOD;

/// A machine whose CPUs are one thread's, in turn.
pub trait Steps {
    /// The RCU that is tested.
    type Rcu: Rcu;
    /// Ticks in which a grace period ends that nothing holds up.
    const ENOUGH: usize;

    /// Does something on that CPU, perhaps with interrupts off.
    fn on<T>(&self, cpu: usize, irqs_off: bool, what: impl FnOnce(&Self::Rcu) -> T) -> T;

    /// Time goes on by a tick. Nobody is interrupted.
    fn pass_tick(&self);
}

/// A callback that counts how often it has run.
#[repr(C)]
#[derive(Debug)]
pub struct Callback<H> {
    head: H,
    is_used: AtomicBool,
    ran: AtomicU32,
}

impl<H> Callback<H> {
    /// One that is not queued.
    pub const fn new<R: Rcu<Head = H>>() -> Self {
        Self { head: R::HEAD, is_used: AtomicBool::new(false), ran: AtomicU32::new(0) }
    }
}

unsafe fn ran<H>(head: NonNull<H>) {
    // SAFETY: `Edges::call` has queued it: it is at the beginning of a callback that stays.
    unsafe { head.cast::<Callback<H>>().as_ref() }.ran.fetch_add(1, Relaxed);
}

/// A machine at the beginning of a script.
pub struct Edges<S: Steps> {
    steps: S,
    callbacks: &'static [Callback<<S::Rcu as Rcu>::Head>],
    used: Cell<usize>,
}

impl<S: Steps> fmt::Debug for Edges<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edges").field("used", &self.used).finish_non_exhaustive()
    }
}

impl<S: Steps> Edges<S> {
    /// With [`CALLBACKS`] of which no script has used any.
    pub fn new(steps: S, callbacks: &'static [Callback<<S::Rcu as Rcu>::Head>]) -> Self {
        Self { steps, callbacks, used: Cell::new(0) }
    }

    fn call(&self, cpu: usize) {
        let one = &self.callbacks[self.used.replace(self.used.get() + 1)];
        assert!(!one.is_used.swap(true, Relaxed), "another script has used this callback");
        // SAFETY: it is a `static`, and queued once, as has just been seen.
        self.steps.on(cpu, false, |rcu| unsafe { rcu.call(NonNull::from(one).cast(), ran) });
    }

    /// Callbacks that have run, none of them twice.
    fn count(&self) -> usize {
        let used = &self.callbacks[..self.used.get()];
        let has_run = |one: &Callback<_>| one.ran.load(Relaxed) as usize;
        assert!(used.iter().all(|one| has_run(one) <= 1), "a callback has run twice");
        used.iter().map(has_run).sum()
    }

    #[track_caller]
    fn assert_ran(&self, count: usize, why: &str) {
        assert_eq!(self.count(), count, "{why}");
    }

    /// As [`Steps::on`], what runs at most so many callbacks.
    fn runs<T>(&self, at: (usize, bool), most: usize, what: impl FnOnce(&S::Rcu) -> T) -> T {
        let before = self.count();
        let result = self.steps.on(at.0, at.1, what);
        assert!(self.count() - before <= most, "more callbacks have run than may at once");
        result
    }

    /// The timer interrupts a CPU, wherever it is.
    fn tick(&self, cpu: usize) {
        self.steps.pass_tick();
        self.runs((cpu, true), BURST, |rcu| {
            let interrupt = rcu.irq_enter();
            rcu.tick(&interrupt, false);
            rcu.irq_exit(interrupt);
        });
    }

    fn switch(&self, cpu: usize) {
        self.runs((cpu, true), BURST, |rcu| rcu.context_switch(true));
    }

    fn work(&self, cpu: usize) {
        let has_more = |rcu: &S::Rcu| rcu.has_callbacks() && rcu.run_callbacks(cpu, BUDGET);
        while self.runs((cpu, false), BUDGET as usize, has_more) {}
    }

    fn read(&self, cpu: usize) -> <S::Rcu as Rcu>::Section {
        self.steps.on(cpu, false, Rcu::read)
    }

    fn end(&self, cpu: usize, section: <S::Rcu as Rcu>::Section) {
        self.steps.on(cpu, false, |_| drop(section));
    }

    /// So many ticks of these CPUs, which pass through the scheduler in each.
    fn jiffies(&self, count: usize, cpus: &[usize]) {
        for _ in 0..count {
            for &cpu in cpus {
                self.switch(cpu);
                self.tick(cpu);
                self.work(cpu);
            }
        }
    }

    /// Enough of CPU 0's while another only ticks, in the kernel.
    fn enough_while_ticking(&self, cpu: usize) {
        for _ in 0..S::ENOUGH {
            self.jiffies(1, &[0]);
            self.tick(cpu);
        }
    }

    fn idle(&self, cpu: usize) {
        assert!(!self.steps.on(cpu, true, Rcu::idle_enter), "nothing to do: the tick may stop");
    }

    /// CPUs whose tick was forgotten: one that passes through its scheduler, and then the one that
    /// has callbacks. A quality, not safety: an RCU that reports on ticks alone fails.
    pub fn forgotten_tick(&self) {
        self.idle(2);
        self.call(0);
        for _ in 0..4 * S::ENOUGH {
            self.jiffies(1, &[0]);
            self.switch(1);
        }
        self.assert_ran(1, "CPU 1 has passed through its scheduler");
        self.call(0);
        self.jiffies(S::ENOUGH, &[1]);
        self.jiffies(2 * S::ENOUGH, &[1, 0]);
        self.assert_ran(2, "CPU 0 ticks again");
    }

    /// A section in an NMI that comes in idle, and in an interrupt there: safety.
    pub fn nmi_in_idle(&self) {
        self.idle(2);
        self.idle(1);
        let enter = || self.steps.on(1, true, Rcu::nmi_enter);
        let exit = |nmi| self.steps.on(1, true, |rcu| rcu.nmi_exit(nmi));
        let (nmi, jiffies) = (enter(), || self.jiffies(S::ENOUGH, &[0]));
        let section = self.read(1);
        self.call(0);
        jiffies();
        self.assert_ran(0, "in an NMI");
        self.end(1, section);
        exit(nmi);
        jiffies();
        self.assert_ran(1, "it is over");
        let irq = self.steps.on(1, true, Rcu::irq_enter);
        let section = self.read(1);
        let nmi = enter();
        self.call(0);
        jiffies();
        self.assert_ran(1, "in two handlers");
        exit(nmi);
        jiffies();
        self.assert_ran(1, "the outer one goes on");
        self.end(1, section);
        self.steps.on(1, true, |rcu| rcu.irq_exit(irq));
        jiffies();
        self.assert_ran(2, "it is over, too");
    }

    /// A CPU goes, and its callbacks with it, in the middle of a grace period; and comes again:
    /// safety, and that none is lost.
    pub fn hotplug(&self) {
        let section = self.read(2);
        (0..25).for_each(|_| self.call(1));
        // Some of them wait for a grace period in progress, some for none yet.
        self.jiffies(3, &[1]);
        (0..25).for_each(|_| self.call(1));
        self.steps.on(1, true, |rcu| rcu.cpu_dying(1));
        self.steps.on(0, false, |rcu| rcu.cpu_dead(1));
        self.enough_while_ticking(2);
        self.assert_ran(0, "CPU 2 is in a section");
        self.end(2, section);
        self.jiffies(2 * S::ENOUGH, &[2, 0]);
        self.assert_ran(50, "those of a CPU that is dead");
        self.steps.on(1, true, |rcu| {
            rcu.cpu_starting(1);
            rcu.cpu_online(1);
        });
        let section = self.read(1);
        self.call(0);
        self.jiffies(S::ENOUGH, &[0, 2]);
        self.assert_ran(50, "CPU 1 is back, and in a section");
        self.end(1, section);
        self.jiffies(S::ENOUGH, &[0, 1, 2]);
        self.assert_ran(51, "it is over");
    }

    /// A flood of callbacks while a section lasts: they wait (safety), and run a few at a time,
    /// whichever hook runs them (a quality).
    ///
    /// # Panics
    /// If they do not, as every script does.
    pub fn flood(&self) {
        self.idle(2);
        // A quiescent state of before does not count.
        self.switch(1);
        let section = self.read(1);
        (0..FLOOD).for_each(|_| self.call(0));
        self.enough_while_ticking(1);
        self.assert_ran(0, "CPU 1 is in a section");
        let holdouts = [0, 1].map(|cpu| self.steps.on(0, false, |rcu| rcu.is_holdout(cpu)));
        assert_eq!(holdouts, [false, true], "who holds it up");
        let waiting = || self.steps.on(0, false, Rcu::waiting);
        assert_eq!(waiting(), FLOOD as u64);
        self.end(1, section);
        self.jiffies(S::ENOUGH, &[1, 0]);
        self.assert_ran(FLOOD, "the section is over");
        assert_eq!(waiting(), 0);
    }
}
