//! The `static` of a kernel, and what carries out its hooks: a CPU with interrupts off, and
//! sometimes the lock.

use grace::Sequence;
use grace::limit::{Amount, Zone, zone};
use grace::steps::Intact;

use crate::engine::Host;
use crate::engine::tree::cpu::{At, Words};
use crate::engine::tree::{self, Plan, Variant};
use crate::lock::Lock;
use crate::misuse::{Hook, Misuses, Refused};
use crate::percpu::{FIRST, Own, PerCpu, Place};
use crate::periods::{Front, GracePeriods, TreeRcu};
use crate::platform::{CpuSet, Platform};
use crate::sync::{AtomicU32, AtomicU64, Ordering, constant};

/// The options of a [`Kernel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The limits of Tree RCU, in ticks.
    pub tree: tree::Options,
    /// The time between two ticks.
    pub tick_ns: u64,
    /// The number of callbacks that may be queued, on all CPUs together. [`Kernel::call`] reports
    /// how near the CPU is to its share. All CPUs that the kernel is *built* for have equal shares,
    /// online or not.
    pub callbacks_max: u64,
    /// The bytes that their objects may count for ([`Head::of`](crate::Head::of)), shared out in
    /// the same way.
    pub bytes_max: u64,
    /// Whether a hook that is called where it may not be panics. If not, the error is counted; a
    /// forgotten earlier hook is made up for, or the call is refused.
    pub panics: bool,
}

impl Options {
    /// Options for `hz` ticks per second, at least one, and so many CPUs: from 256 on, scans are
    /// further apart. A busy CPU is asked to reschedule once a grace period is a twentieth of a
    /// second old; a million callbacks; misuse panics in debug builds.
    pub const fn new(hz: u32, cpus: usize) -> Self {
        Self {
            tree: tree::Options::new(Variant::v2(hz), hz, cpus),
            tick_ns: 1_000_000_000 / hz as u64,
            callbacks_max: 1 << 20,
            bytes_max: 256 << 20,
            panics: cfg!(debug_assertions),
        }
        .resched_after(hz / 20)
    }

    /// Sets the age of a grace period, in ticks, at which each busy CPU is asked to reschedule. Of
    /// those that do not pass through their schedulers, the first is asked again ten ticks later,
    /// and then every five ticks.
    #[must_use]
    pub const fn resched_after(mut self, ticks: u32) -> Self {
        self.tree.variant = Variant::V2 { sched_qs_jiffies: ticks };
        // At half of it holdouts are interrupted.
        self.tree.stall_jiffies = ticks.saturating_add(10).saturating_mul(2);
        self
    }
}

/// What is told to all CPUs, and written under the lock.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Told {
    sequence: AtomicU64,
    /// When the grace period in progress is scanned next, and how long ahead that was.
    scan_at_ns: AtomicU64,
    scan_in_ns: AtomicU64,
}

impl Told {
    #[inline]
    pub(crate) fn sequence(&self) -> Sequence {
        // Acquire: pairs with the Release of `ended` [KN-4]: the sections before are over.
        Sequence::from_bits(self.sequence.load(Ordering::Acquire))
    }

    /// The same for a CPU that only asks whether it has changed, or whether a cookie of its own is
    /// done.
    #[inline]
    pub(crate) fn glance(&self) -> Sequence {
        // Relaxed: nothing is accessed that a grace period protects.
        Sequence::from_bits(self.sequence.load(Ordering::Relaxed))
    }

    /// Whether it is time to scan. If the clock has gone backward it is.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        // Relaxed: a hint, looked at again under the lock.
        let left = self.scan_at_ns.load(Ordering::Relaxed).wrapping_sub(now_ns);
        left == 0 || left > self.scan_in_ns.load(Ordering::Relaxed)
    }
}

/// Under the lock.
#[derive(Debug)]
pub(crate) struct Locked<E> {
    pub(crate) periods: E,
    pub(crate) online: usize,
    pub(crate) began_ns: u64,
}

impl<E> Locked<E> {
    fn new(periods: E) -> Self {
        Self { periods, online: 0, began_ns: 0 }
    }
}

/// RCU over at most `CPUS` CPUs, from 1 to [`CpuSet::CPUS`]: a `static` of the kernel.
///
/// The crate's [documentation](crate) says what may run when; its README says where each hook goes.
///
/// ```
/// use core::ptr::NonNull;
/// use kernel::{CpuSet, Head, Kernel, Options, Platform};
///
/// /// One CPU, and nothing that interrupts it.
/// struct Still;
///
/// // SAFETY: this program has one thread, and no handler. No function calls the kernel.
/// unsafe impl Platform for Still {
///     type IrqGuard = ();
///
///     fn this_cpu(&self) -> usize {
///         0
///     }
///     fn irq_off(&self) {}
///     fn now_ns(&self) -> u64 {
///         0
///     }
///     fn is_preemptible(&self) -> bool {
///         true
///     }
///     fn thread(&self) -> usize {
///         0
///     }
///     fn resched(&self, _: &CpuSet) {}
///     fn wake_worker(&self, _: usize) {}
///     fn wait(&self, done: &dyn Fn() -> bool, _: bool) {
///         while !done() {}
///     }
///     fn wake_waiters(&self) {}
/// }
///
/// static RCU: Kernel<Still, 1> = Kernel::new(Still, Options::new(100, 1));
///
/// #[repr(C)]
/// struct Object {
///     head: Head,
///     data: u32,
/// }
///
/// unsafe fn free(head: NonNull<Head>) {
///     // SAFETY: it was queued below, and its head is at its beginning.
///     let object = unsafe { Box::from_raw(head.cast::<Object>().as_ptr()) };
///     assert_eq!(object.data, 7);
/// }
///
/// RCU.cpu_starting(0);
/// RCU.cpu_online(0);
/// let cookie = RCU.cookie();
/// assert!(!RCU.poll(cookie));
/// RCU.synchronize().unwrap();
///
/// // A pointer to the whole object, since the callback frees it.
/// let object = NonNull::from(Box::leak(Box::new(Object { head: Head::new(), data: 7 })));
/// // SAFETY: no reader finds the object any more, and it is queued once.
/// unsafe { RCU.call(object.cast(), free) }.unwrap();
/// while !RCU.has_callbacks() {
///     RCU.context_switch();
///     let interrupt = RCU.irq_enter();
///     RCU.tick(&interrupt, false);
///     RCU.irq_exit(interrupt);
/// }
/// RCU.run_callbacks(0, 100);
/// assert!(!RCU.idle_enter(), "the tick may stop");
/// ```
pub struct Kernel<P, const CPUS: usize, E = TreeRcu<CPUS>> {
    pub(crate) told: Told,
    pub(crate) cpus: [PerCpu; CPUS],
    pub(crate) platform: P,
    pub(crate) options: Options,
    /// A CPU's share of what may wait, and what is near that.
    share: Amount,
    pub(crate) near: Amount,
    pub(crate) plan: Plan<Intact>,
    machine: Lock<Option<Locked<E>>>,
    pub(crate) misuses: Misuses,
    /// Callers that wait in a barrier.
    pub(crate) barriers: AtomicU32,
    /// How often callbacks were moved to another CPU.
    pub(crate) moves: AtomicU32,
}

impl<P, const CPUS: usize, E> core::fmt::Debug for Kernel<P, CPUS, E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Kernel").field("told", &self.told).finish_non_exhaustive()
    }
}

const fn at_least_one(number: u64) -> u64 {
    if number == 0 { 1 } else { number }
}

impl<P: Platform, const CPUS: usize, E: GracePeriods<CPUS>> Kernel<P, CPUS, E> {
    constant! {
        /// Creates it with all CPUs offline. The first hook lays out the engine, first on its
        /// stack, with interrupts off: about 100 bytes for each of `CPUS`; with the engine
        /// [`PerCpu`](crate::engine::poll::PerCpu), or any engine of [`Any`](crate::Any), four
        /// bytes times the square of `CPUS` more.
        pub fn new(platform: P, options: Options) -> Self {
            const { assert!(0 < CPUS && CPUS <= CpuSet::CPUS, "there are 1 to 1,024 CPUs") };
            let share = Amount {
                objects: at_least_one(options.callbacks_max / CPUS as u64),
                bytes: at_least_one(options.bytes_max / CPUS as u64),
            };
            #[cfg(not(loom))]
            let cpus = [const { PerCpu::new(FIRST) }; CPUS];
            #[cfg(loom)]
            let cpus = core::array::from_fn(|_| PerCpu::new(FIRST));
            Self {
                platform,
                options,
                share,
                near: Amount {
                    objects: share.objects - share.objects / 4,
                    bytes: share.bytes - share.bytes / 4,
                },
                plan: Plan {
                    options: options.tree.helped(E::LOOKS_AT_EACH_TICK),
                    steps: Intact,
                },
                told: Told {
                    sequence: AtomicU64::new(FIRST.to_bits()),
                    scan_at_ns: AtomicU64::new(0),
                    scan_in_ns: AtomicU64::new(0),
                },
                machine: Lock::new(None),
                cpus,
                misuses: Misuses::new(),
                barriers: AtomicU32::new(0),
                moves: AtomicU32::new(0),
            }
        }
    }

    /// Calls `what` on this CPU, with interrupts off; then does what it asked for. `None` if the
    /// CPU is not online.
    ///
    /// # Panics
    /// If it is not, with [`Options::panics`].
    #[track_caller]
    pub(crate) fn on<R>(
        &self,
        hook: Hook,
        what: impl FnOnce(&mut OnCpu<'_, P, CPUS, E>) -> R,
    ) -> Option<R> {
        let _irq = self.platform.irq_off();
        let cpu = self.platform.this_cpu();
        let seen = self.cpus.get(cpu).filter(|seen| seen.is_online());
        self.check(hook, seen.is_some(), "this CPU is not online");
        seen?.note(hook);
        Some(self.with_own(cpu, what))
    }

    /// The same for what only code in the kernel does. If the CPU is not awake, a hook before was
    /// forgotten; it goes on when that is made up for.
    #[track_caller]
    pub(crate) fn on_awake<R>(
        &self,
        hook: Hook,
        what: impl FnOnce(&mut OnCpu<'_, P, CPUS, E>) -> R,
    ) -> Option<R> {
        const WHAT: &str = "after an `irq_enter`, `idle_exit` or `user_exit` was forgotten";
        self.on(hook, |at| {
            at.settle(hook, !at.words().is_extended(), WHAT);
            what(at)
        })
    }

    /// This CPU and its own part, if it is awake, for what is done often and needs neither the lock
    /// nor the platform. The caller has turned interrupts off, and has no other from here.
    #[inline]
    pub(crate) fn awake<'a>(&'a self, irq: &'a P::IrqGuard) -> Option<(&'a PerCpu, &'a mut Own)> {
        // One that is not online is extended.
        self.here(irq, |cpu| !cpu.seen.words.is_extended())
    }

    /// The same if something is so which it is on no CPU that is not online.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "interrupts off make it the only one")]
    pub(crate) fn here<'a>(
        &'a self,
        _irq: &'a P::IrqGuard,
        is_so: impl FnOnce(&PerCpu) -> bool,
    ) -> Option<(&'a PerCpu, &'a mut Own)> {
        let cpu = self.cpus.get(self.platform.this_cpu()).filter(|cpu| is_so(cpu))?;
        // SAFETY: this is that CPU, which is online, with interrupts off; the platform keeps all
        // others off it, and calls no hook.
        Some((cpu, unsafe { cpu.own() }))
    }

    /// Like [`on`](Self::on), for a CPU that need not be online, but is in range.
    pub(crate) fn with_own<R>(
        &self,
        cpu: usize,
        what: impl FnOnce(&mut OnCpu<'_, P, CPUS, E>) -> R,
    ) -> R {
        let asked =
            Asked { told: &self.told, resched: None, timer: None, began: false, ended: false };
        // SAFETY: the callers run on that CPU, which is online, with interrupts off, or bury it;
        // the platform keeps all others off it, and calls no hook. What is called from here on gets
        // this reference, and makes no other.
        let own = unsafe { self.cpus[cpu].own() };
        let mut at = OnCpu { kernel: self, cpu, own, asked, wakes_worker: false };
        let result = what(&mut at);
        // Not moved: a set of CPUs is large, and most hooks ask for nothing.
        if let Some(cpus) = &at.asked.resched {
            self.platform.resched(cpus);
        }
        if at.asked.ended {
            self.platform.wake_waiters();
        }
        if at.wakes_worker {
            self.platform.wake_worker(cpu);
        }
        result
    }

    /// Calls `what` with the lock. The caller has turned interrupts off.
    pub(crate) fn machine<R>(&self, what: impl FnOnce(&mut Locked<E>) -> R) -> R {
        let mut guard = self.machine.lock();
        what(guard.get_or_insert_with(|| Locked::new(E::new(&self.plan.options, FIRST))))
    }

    /// This is the engine, unless there is one. Returns whether it is.
    pub(crate) fn lay_out(&self, periods: E) -> bool {
        let mut guard = self.machine.lock();
        let is_first = guard.is_none();
        guard.get_or_insert_with(|| Locked::new(periods));
        is_first
    }

    /// The same, if the lock is free soon; `None` also while nothing is laid out.
    pub(crate) fn try_machine<R>(&self, what: impl FnOnce(&mut Locked<E>) -> R) -> Option<R> {
        self.machine.lock_soon()?.as_mut().map(what)
    }

    /// Looks how near the callbacks of this CPU are to its share, and says when to look again.
    /// Turns interrupts on as they were.
    #[cold]
    #[inline(never)]
    pub(crate) fn zone(&self, irq: P::IrqGuard) -> Result<Zone, Refused> {
        let Some((cpu, own)) = self.here(&irq, PerCpu::is_online) else { return Ok(Zone::Free) };
        let waiting = cpu.waiting();
        let is_near = waiting.bytes >= self.near.bytes;
        let left = self.near.objects.saturating_sub(waiting.objects);
        own.look_in(&cpu.seen, if is_near { 0 } else { left });
        Ok(zone(waiting, self.share))
    }

    /// Sets the phase of a CPU if it is the one that must come before.
    #[track_caller]
    pub(crate) fn moves_on(&self, hook: Hook, cpu: usize, from: u32, to: u32) -> bool {
        // AcqRel: what was done to the CPU's own part before is seen by who has it now.
        let is_right = self.cpus.get(cpu).is_some_and(|cpu| {
            let phase = &cpu.seen.phase;
            phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        self.check(hook, is_right, "the CPU is not where hotplug says, or there is none")
    }
}

/// A CPU that a hook runs on.
pub(crate) struct OnCpu<'k, P, const CPUS: usize, E> {
    pub(crate) kernel: &'k Kernel<P, CPUS, E>,
    pub(crate) cpu: usize,
    pub(crate) own: &'k mut Own,
    asked: Asked<'k>,
    pub(crate) wakes_worker: bool,
}

impl<'k, P: Platform, const CPUS: usize, E: GracePeriods<CPUS>> OnCpu<'k, P, CPUS, E> {
    /// The words of the CPU.
    pub(crate) fn words(&self) -> &'k Words {
        &self.kernel.cpus[self.cpu].seen.words
    }

    /// Whether the CPU must see to it that a grace period comes to its end, or has callbacks.
    pub(crate) fn has_demand(&self) -> bool {
        self.own.has_demand(&self.kernel.cpus[self.cpu].seen, self.kernel.told.sequence())
    }

    /// What the tree's functions work on, with all callbacks. The next tick looks what they did.
    pub(crate) fn tree(&mut self) -> Front<'_, 'k> {
        self.own.count_queued(&self.kernel.cpus[self.cpu].seen);
        let (plan, words) = (&self.kernel.plan, &self.kernel.cpus[..]);
        At { plan, cpu: self.cpu, own: &mut self.own.tree, words, host: &mut self.asked }
    }

    /// What was called is refused, unless `is_right`: returns that. If it is not, a hook before it
    /// was forgotten: the CPU is taken to be in the kernel, and its sections protect again.
    #[track_caller]
    pub(crate) fn settle(&mut self, hook: Hook, is_right: bool, what: &str) -> bool {
        if !is_right {
            self.make_up();
        }
        self.kernel.check(hook, is_right, what)
    }

    #[cold]
    #[inline(never)]
    fn make_up(&mut self) {
        self.own.place = Place::Kernel;
        if self.words().is_extended() {
            self.words().leave();
        }
    }

    /// Calls `what` with the machine's lock.
    pub(crate) fn locked<R>(
        &mut self,
        what: impl FnOnce(&mut Locked<E>, &mut Front<'_, 'k>) -> R,
    ) -> R {
        let kernel = self.kernel;
        kernel.machine(|machine| {
            let mut tree = self.tree();
            let result = what(machine, &mut tree);
            if core::mem::take(&mut self.asked.began) {
                machine.began_ns = kernel.platform.now_ns();
            }
            if let Some(jiffies) = self.asked.timer.take() {
                let (now, ns) = (kernel.platform.now_ns(), u64::from(jiffies));
                // Half a tick early: the tick that is meant may come a little before its time.
                let tick_ns = kernel.options.tick_ns;
                let ns = ns.saturating_mul(tick_ns).saturating_sub(tick_ns / 2);
                // Relaxed: under the lock; without it only a hint.
                kernel.told.scan_in_ns.store(ns, Ordering::Relaxed);
                kernel.told.scan_at_ns.store(now.wrapping_add(ns), Ordering::Relaxed);
            }
            result
        })
    }

    /// The CPU notices, reports and asks; and scans, if that is due.
    pub(crate) fn work(&mut self) {
        let kernel = self.kernel;
        self.locked(|machine, tree| {
            let before = machine.periods.sequence();
            machine.periods.advance(tree);
            // One that has just begun is scanned when it says; and a timer that was asked for just
            // now has not run out, whatever the one before did.
            let goes_on = before.in_progress() && machine.periods.sequence() == before;
            let looks = machine.periods.looks_at_each_tick();
            let may_be_due = (goes_on || looks) && tree.host.timer.is_none();
            if may_be_due && kernel.told.is_due(kernel.platform.now_ns()) {
                machine.periods.timer(tree);
            } else if looks && tree.own.has_demand(machine.periods.sequence()) {
                machine.periods.scan(tree);
            }
        });
    }

    /// Does at once what the next ticks would do, for a caller on this CPU that is in no section.
    /// Asks those that a grace period waits for to reschedule, but for those `asked` already, with
    /// the number that they were asked at.
    pub(crate) fn expedite(&mut self, asked: &mut (Sequence, CpuSet)) {
        let kernel = self.kernel;
        let own_cpu = self.cpu;
        self.locked(|machine, tree| {
            // What was noted before the CPU notices does not count.
            machine.periods.advance(tree);
            tree.note_quiescent();
            machine.periods.advance(tree);
            let sequence = machine.periods.sequence();
            // A driven engine may wait for CPUs before it begins, such as one that has its token.
            if !sequence.in_progress() && !machine.periods.looks_at_each_tick() {
                return;
            }
            machine.periods.scan(tree);
            if machine.periods.sequence() != sequence {
                return;
            }
            if asked.0 != sequence {
                *asked = (sequence, CpuSet::EMPTY);
            }
            for (cpu, seen) in kernel.cpus.iter().enumerate() {
                let holds_up = cpu != own_cpu && machine.periods.is_holdout(cpu);
                if holds_up && !seen.seen.words.is_extended() && asked.1.insert(cpu) {
                    seen.seen.words.ask(true);
                    tree.host.resched(cpu);
                }
            }
        });
    }

    /// Callbacks were queued, or have run: does what their number asks for. Not where they are
    /// queued, whose caller may have locks that the platform's functions want.
    pub(crate) fn counted(&mut self) {
        let kernel = self.kernel;
        let seen = &kernel.cpus[self.cpu].seen;
        self.own.count_queued(seen);
        let (options, callbacks) = (&kernel.plan.options, &self.own.tree.callbacks);
        // Relaxed: this CPU's own word.
        let waiting =
            Amount { objects: callbacks.len(), bytes: seen.bytes.load(Ordering::Relaxed) };
        let is_near = zone(waiting, kernel.share) != Zone::Free;
        let hurries = is_near && callbacks.len() != callbacks.ready();
        let is_excess = self.own.tree.is_excess(options) || hurries;
        // All that are ready run in one pass.
        self.own.tree.is_limit_lifted |= is_near;
        if is_excess || self.own.tree.overload_changes(options) {
            self.locked(|machine, tree| {
                machine.periods.note_overload(tree);
                if is_excess {
                    machine.periods.hurry(tree);
                }
            });
        }
    }
}

/// What the tree asks for meanwhile.
#[derive(Debug)]
pub struct Asked<'k> {
    told: &'k Told,
    resched: Option<CpuSet>,
    timer: Option<u32>,
    began: bool,
    ended: bool,
}

impl Asked<'_> {
    /// The number is told to all, as it is under the lock.
    fn tell(&self, next: impl FnOnce(Sequence) -> Sequence) {
        // Relaxed: written under the lock alone.
        let now = Sequence::from_bits(self.told.sequence.load(Ordering::Relaxed));
        // Release: pairs with the Acquire of `Told::sequence` [KN-4]; all sections are over. A
        // beginning is told before the fence that follows it, as cookies need.
        self.told.sequence.store(next(now).to_bits(), Ordering::Release);
    }
}

impl Host for Asked<'_> {
    /// Nothing: whoever has business looks at its tick.
    fn raise(&mut self, _: usize) {}

    fn resched(&mut self, cpu: usize) {
        self.resched.get_or_insert(CpuSet::EMPTY).insert(cpu);
    }

    /// The front runs callbacks itself.
    fn invoke(&mut self, _: usize, _: u64) {}

    fn timer(&mut self, jiffies: u32) {
        self.timer = Some(jiffies);
    }

    fn began(&mut self, _: usize) {
        self.began = true;
        self.tell(Sequence::begin);
    }

    fn ended(&mut self, _: usize) {
        self.ended = true;
        self.tell(Sequence::end);
    }
}
