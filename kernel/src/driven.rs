//! Any [`Engine`] in a kernel of real CPUs: under the machine's lock, fed with what the CPUs noted
//! without it.
//!
//! An engine is a value that one caller at a time notifies of events. In a
//! [`Kernel`](crate::Kernel) the events happen at the same time, some in an NMI, where no lock may
//! be taken. So the engine hears of them later, and of fewer:
//!
//! - **A quiescent state** is noted by its CPU without the lock, as for Tree RCU: in its own part,
//!   once it has noticed the grace period; or, if it goes idle or was asked for help, in the word
//!   that a scan looks at. [`Engine::context_switch`] follows on a tick, under the lock.
//! - **An extended quiescent state** is never reported to the engine, which takes each CPU to be
//!   awake all the time. Each scan reports a quiescent state of those of its holdouts that are, or
//!   have been, in one.
//! - **A callback** is not handed to the engine. The CPU asks for a grace period by one callback
//!   that stands for all it has; they are tagged with the number of the grace period they need, as
//!   under Tree RCU.
//! - **Softirqs** that the engine raises run here, on whichever CPU has the lock: when a CPU
//!   reports, and when a scan has looked. There is one scan at each tick of a CPU that needs a
//!   grace period, and one more if its callbacks are too many. The polls of an expedited wait count
//!   as ticks, too.
//!
//! # Why an engine may hear late
//! Callbacks and cookies depend on one promise of the engine: between [`Host::began`] and
//! [`Host::ended`] it was notified of a quiescent state of each CPU. It is told only of those
//! that came after `began`: a CPU forgets what it noted when it notices a grace period, and a word
//! counts from the snapshot that the first scan takes. (`began` executes the full fence that
//! [`Words::leave`](crate::engine::tree::cpu::Words::leave) pairs with.) So the promise holds for
//! the quiescent states themselves, whose order among each other does not matter. A CPU that has
//! been quiescent since `began` may be reported more than once, as an engine that hands a token
//! on may ask.
//!
//! An engine with grace periods of each CPU's own ([`PerCpu`], [`Published`]) has those of CPU 0
//! alone here, which all others share.

use grace::{Cookie, Sequence, Urgency};

use crate::engine::on_demand::{OnDemand, Parameters};
use crate::engine::poll::{Global, PerCpu};
use crate::engine::store::Fixed;
use crate::engine::tick::Tick;
use crate::engine::token::{Published, Relay, v2};
use crate::engine::tree::Options;
use crate::engine::tree::cpu::AllWords;
use crate::engine::{Callback, Engine, Host, Mode, Start};
use crate::periods::{Front, GracePeriods};
use crate::platform::CpuSet;
use crate::sync::{Ordering, fence};

/// An engine for [`Driven`], over the CPUs of a kernel that is built for so many.
///
/// # Safety
/// Between [`Host::began`] and [`Host::ended`] of the same grace periods, those of CPU 0, the
/// engine was notified of a quiescent state of each of these CPUs. The two alternate.
pub unsafe trait Drivable<const CPUS: usize>: Engine + Send + Sized {
    /// A new engine.
    fn new() -> Self;

    /// On behalf of which CPU the engine is asked for a grace period that `cpu` needs: CPU 0, if
    /// each has its own, so that all share that one's.
    fn asks_as(cpu: usize) -> usize {
        cpu
    }
}

/// Implements it for engines over [`Fixed`] stores, which have these parameters.
macro_rules! drivable {
    ($($engine:ident($($parameters:expr)?) $(as $cpu:expr)?;)*) => {$(
        // SAFETY: the explorer steps through the engine, and finds no grace period that is shorter.
        unsafe impl<const CPUS: usize> Drivable<CPUS> for $engine<Fixed<CPUS>> {
            fn new() -> Self {
                Self::with(Fixed(CPUS), $($parameters,)? Start::default(), grace::steps::Intact)
            }
            $(
                fn asks_as(_: usize) -> usize {
                    $cpu
                }
            )?
        }
    )*};
}

drivable! {
    Global();
    PerCpu() as 0;
    Tick();
    Published() as 0;
    Relay(v2::Parameters::default());
    OnDemand(Parameters::DEFAULT);
}

/// An engine that a [`Kernel`](crate::Kernel) has in place of Tree RCU.
///
/// ```
/// use kernel::engine::{store::Fixed, tick::Tick};
/// use kernel::{Driven, Kernel, Options, Platform};
///
/// fn rcu<P: Platform>(platform: P) -> Kernel<P, 8, Driven<Tick<Fixed<8>>>> {
///     Kernel::new(platform, Options::new(100, 8))
/// }
/// ```
///
/// It is over as many CPUs as the kernel: one over fewer would wait for no section of the others.
///
/// ```compile_fail,E0277
/// # use kernel::engine::{store::Fixed, tick::Tick};
/// # use kernel::{Driven, Kernel, Options, Platform};
/// #
/// fn rcu<P: Platform>(platform: P) -> Kernel<P, 8, Driven<Tick<Fixed<7>>>> {
///     Kernel::new(platform, Options::new(100, 8))
/// }
/// ```
#[derive(Debug)]
pub struct Driven<E> {
    engine: E,
    sequence: Sequence,
    /// CPUs whose softirq the engine has raised.
    raised: CpuSet,
    /// CPUs whose words a scan has looked at since the grace period began.
    looked: CpuSet,
    /// CPUs that the engine wanted to be rescheduled, and that were not awake then.
    passed_over: CpuSet,
}

/// The engine's host, while a CPU has the lock.
struct Driver<'a, 'f, 'k: 'f> {
    at: &'a mut Front<'f, 'k>,
    sequence: &'a mut Sequence,
    raised: &'a mut CpuSet,
    looked: &'a mut CpuSet,
    passed_over: &'a mut CpuSet,
}

impl Host for Driver<'_, '_, '_> {
    fn raise(&mut self, cpu: usize) {
        self.raised.insert(cpu);
    }

    /// The CPU helps as it passes through its scheduler. One that is idle is not woken: a scan
    /// finds it so, or finds it awake, and has it rescheduled then.
    fn resched(&mut self, cpu: usize) {
        let Some(words) = self.at.words.of(cpu) else { return };
        words.ask(true);
        if words.is_extended() {
            self.passed_over.insert(cpu);
        } else {
            self.at.host.resched(cpu);
        }
    }

    fn invoke(&mut self, _: usize, _: u64) {}

    fn timer(&mut self, jiffies: u32) {
        self.at.host.timer(jiffies);
    }

    fn began(&mut self, of: usize) {
        if of == 0 {
            *self.sequence = self.sequence.begin();
            *self.looked = CpuSet::EMPTY;
            self.at.host.began(of);
            // What was updated before is seen by every CPU that a scan from here on finds in an
            // extended quiescent state: pairs with the fence of `Words::leave` [KN-1].
            fence(Ordering::SeqCst);
        }
    }

    fn ended(&mut self, of: usize) {
        if of == 0 {
            *self.sequence = self.sequence.end();
            self.at.host.ended(of);
        }
    }
}

impl<E: Engine> Driven<E> {
    /// Notifies the engine.
    fn tell(&mut self, at: &mut Front<'_, '_>, what: impl FnOnce(&mut E, &mut dyn Host)) {
        let Self { engine, sequence, raised, looked, passed_over } = self;
        what(engine, &mut Driver { at, sequence, raised, looked, passed_over });
    }

    /// Asks for a grace period on behalf of `cpu`.
    fn ask(&mut self, at: &mut Front<'_, '_>, cpu: usize, urgency: Urgency) {
        let callback = Callback { urgency, bytes: 0 };
        self.tell(at, |engine, host| engine.queue(cpu, callback, host));
    }

    /// That CPU has been quiescent since the grace period began.
    fn pass(&mut self, at: &mut Front<'_, '_>, cpu: usize) {
        self.passed_over.remove(cpu);
        self.tell(at, |engine, host| engine.context_switch(cpu, host));
        self.raised.insert(cpu);
    }

    /// Runs the softirqs that are raised, each once.
    fn run_raised(&mut self, at: &mut Front<'_, '_>) {
        let raised = core::mem::replace(&mut self.raised, CpuSet::EMPTY);
        for cpu in (0..at.words.len()).filter(|&cpu| raised.contains(cpu)) {
            self.tell(at, |engine, host| engine.softirq(cpu, host));
        }
    }

    /// The CPU takes note of what has begun or ended.
    fn notice(&mut self, at: &mut Front<'_, '_>) {
        let own = &mut *at.own;
        if own.sequence != self.sequence {
            own.sequence = self.sequence;
            own.callbacks.advance(self.sequence);
            own.has_passed &= !self.sequence.in_progress();
        }
        own.is_needed = self.sequence.in_progress() && self.engine.is_holdout(0, at.cpu);
    }

    /// Looks at the words of those that the engine waits for, which are asked for help. The first
    /// look in a grace period takes the snapshot of all: an engine may come to wait for a CPU
    /// later, and then what the CPU has done since counts.
    fn look(&mut self, at: &mut Front<'_, '_>) {
        for cpu in 0..at.words.len() {
            let has_snapshot = !self.looked.insert(cpu);
            if has_snapshot && !self.engine.is_holdout(0, cpu) {
                continue;
            }
            let Some(words) = at.words.of(cpu) else { continue };
            let is_quiescent = words.look(has_snapshot, !has_snapshot);
            if !self.engine.is_holdout(0, cpu) {
                continue;
            }
            if is_quiescent {
                self.pass(at, cpu);
                continue;
            }
            words.ask(true);
            if self.passed_over.remove(cpu) {
                at.host.resched(cpu);
            }
        }
        self.run_raised(at);
    }
}

impl<E: Drivable<CPUS>, const CPUS: usize> GracePeriods<CPUS> for Driven<E> {
    const LOOKS_AT_EACH_TICK: bool = true;

    fn new(_: &Options, sequence: Sequence) -> Self {
        let none = CpuSet::EMPTY;
        Self { engine: E::new(), sequence, raised: none, looked: none, passed_over: none }
    }

    fn sequence(&self) -> Sequence {
        self.sequence
    }

    fn is_holdout(&self, cpu: usize) -> bool {
        self.engine.is_holdout(0, cpu)
    }

    fn advance(&mut self, at: &mut Front<'_, '_>) {
        self.notice(at);
        if at.own.has_passed && self.engine.is_holdout(0, at.cpu) {
            self.pass(at, at.cpu);
        }
        let callbacks = &mut at.own.callbacks;
        callbacks.accelerate(self.sequence.snapshot());
        let needs = callbacks.len() != callbacks.ready() || !self.sequence.is_done(at.own.wanted);
        if needs {
            let cpu = at.cpu;
            self.tell(at, |engine, host| engine.tick(cpu, Mode::Kernel, host));
            if self.engine.waiting(E::asks_as(cpu)) == 0 {
                self.ask(at, E::asks_as(cpu), Urgency::Background);
            }
        }
        self.run_raised(at);
        self.notice(at);
    }

    fn timer(&mut self, at: &mut Front<'_, '_>) {
        let cpu = at.cpu;
        self.tell(at, |engine, host| engine.timer(cpu, host));
        self.scan(at);
    }

    fn scan(&mut self, at: &mut Front<'_, '_>) {
        self.look(at);
        self.notice(at);
    }

    fn want(&mut self, at: &mut Front<'_, '_>) -> Cookie {
        let cookie = self.sequence.snapshot();
        self.ask(at, E::asks_as(at.cpu), Urgency::Normal);
        self.run_raised(at);
        self.notice(at);
        cookie
    }

    fn note_overload(&mut self, _: &mut Front<'_, '_>) {}

    fn hurry(&mut self, at: &mut Front<'_, '_>) {
        at.own.is_limit_lifted = true;
        at.own.checked_at = at.own.callbacks.len();
        self.scan(at);
    }
}
