//! SRCU: sections in which a reader may sleep, and end on another CPU than they began on.
//!
//! # Invariant
//! **No callback runs, and no cookie is done, before every section has ended that had begun when
//! the callback was queued or the cookie was handed out.** A section is the life of a
//! [`SrcuGuard`]. Sections of another [`Srcu`], or of a [`Kernel`](crate::Kernel), are not waited
//! for.
//!
//! # How
//! A reader counts itself in and out of one of two indexes, each time on the CPU it is on.
//! [`grace::srcu`] has the steps, and the machine that decides when to look at which index, when to
//! flip them, and how long to wait in between: its delay function, which is a value ([`Published`],
//! [`AdaptiveDelay`]). Here are the counts, the callbacks, and the driver of that machine
//! ([`Srcu::run`]), which a worker of the kernel calls.
//!
//! # Who accesses what
//! - The counts of a CPU: readers add to them with atomic instructions; the driver adds them up.
//! - The machine and the callbacks: whoever holds the lock, with interrupts off. While it is held,
//!   no callback runs, no CPU's counts are looked at, and no function of the platform is called
//!   except the clock. One thread at a time is the driver.
//! - The machine's number: written under the lock, read by all.
//!
//! A reader takes no lock. Callers of [`Srcu::call`] share one, whatever their CPU: it is for
//! domains that are updated seldom.

use core::ptr::NonNull;

use grace::srcu::{Action, Event, Sequence, SrcuMachine};
use grace::{Segments, Urgency};

pub use grace::srcu::{AdaptiveDelay, Cookie, Delay, Published, Situation, Wait};

use crate::head::{Head, Queue, Run};
use crate::lock::Lock;
use crate::misuse::Refused;
use crate::platform::Platform;
use crate::sync::{AtomicU32, AtomicU64, Ordering, constant, fence, pause};
use crate::updater::Ran;

/// What readers have counted on a CPU, for each index: that they came, and that they went.
#[repr(align(64))]
struct Counts {
    locks: [AtomicU64; 2],
    unlocks: [AtomicU64; 2],
}

impl Counts {
    constant! {
        fn new() -> Self {
            Self {
                locks: [AtomicU64::new(0), AtomicU64::new(0)],
                unlocks: [AtomicU64::new(0), AtomicU64::new(0)],
            }
        }
    }
}

/// A time before which the worker need not come.
#[derive(Clone, Copy)]
struct Due {
    at_ns: u64,
    /// How long ahead that was, or a little more.
    in_ns: u64,
    is_of_wheel: bool,
}

impl Due {
    const NOW: Self = Self { at_ns: 0, in_ns: 0, is_of_wheel: true };

    /// If more is left than there ever was, the time has come, or the clock has gone backward.
    fn left_ns(self, now_ns: u64) -> u64 {
        let left_ns = self.at_ns.wrapping_sub(now_ns);
        if left_ns <= self.in_ns { left_ns } else { 0 }
    }

    /// Whether the worker should have come more than a tick ago.
    fn is_missed(self, now_ns: u64, tick_ns: u64) -> bool {
        self.at_ns.wrapping_add(tick_ns).wrapping_sub(now_ns) > self.in_ns + tick_ns
    }

    fn wait(self, now_ns: u64, tick_ns: u64) -> Wait {
        let in_units = |unit_ns| self.left_ns(now_ns).div_ceil(unit_ns) as u32;
        match self.is_of_wheel {
            true => Wait::Jiffies(in_units(tick_ns)),
            false => Wait::Microseconds(in_units(1_000)),
        }
    }
}

/// Under the lock.
struct Locked<D> {
    machine: SrcuMachine<D>,
    queue: Queue,
    /// Those in the queue, by the machine's numbers.
    callbacks: Segments,
    /// Callbacks ever queued.
    queued: u64,
    /// The thread that is in [`Srcu::run`].
    driver: Option<usize>,
    /// When the next run of the machine's worker is due, and that of callbacks that are ready.
    scan: Due,
    hand_out: Due,
    /// The last tick that the machine was told of, and when it had nothing to do any more.
    ticked_ns: u64,
    idle_since_ns: u64,
}

impl<D: Delay> Locked<D> {
    fn observe(&mut self, event: Event) {
        self.machine.observe(event).expect("each action is answered by its own event");
    }

    /// Tells the machine of the ticks that have gone by: none if the clock has gone backward, or
    /// began in its upper half. They are counted from there then.
    fn pass_time(&mut self, now_ns: u64, tick_ns: u64) {
        let back_ns = (self.ticked_ns.wrapping_sub(now_ns) as i64).max(0) as u64;
        let from_ns = self.ticked_ns.wrapping_sub(back_ns);
        let passed = now_ns.wrapping_sub(from_ns) / tick_ns;
        self.ticked_ns = from_ns.wrapping_add(passed * tick_ns);
        self.machine.tick(u32::try_from(passed).unwrap_or(u32::MAX));
    }

    fn due(&self, wait: Wait, now_ns: u64, tick_ns: u64) -> Due {
        let (from_ns, ns) = match wait {
            Wait::Jiffies(jiffies) => (self.ticked_ns, u64::from(jiffies) * tick_ns),
            Wait::Microseconds(microseconds) => (now_ns, u64::from(microseconds) * 1_000),
        };
        let at_ns = if ns == 0 { now_ns } else { from_ns.wrapping_add(ns) };
        Due { at_ns, in_ns: ns, is_of_wheel: matches!(wait, Wait::Jiffies(_)) }
    }

    /// Takes out a callback that is ready and due.
    fn take(&mut self, now_ns: u64) -> Option<Task> {
        if self.callbacks.ready() == 0 || self.hand_out.left_ns(now_ns) != 0 {
            return None;
        }
        self.callbacks.take(1);
        self.queue.pop().map(|(head, run)| Task::Run(head, run))
    }

    /// Whether nobody drives, and nobody is on its way: the worker is to be woken.
    fn is_left(&self, now_ns: u64, tick_ns: u64) -> bool {
        let is_missed = self.rest(now_ns).is_some_and(|due| due.is_missed(now_ns, tick_ns));
        let waits = matches!(self.machine.pending(), Action::Idle | Action::Await);
        self.driver.is_none() && (is_missed || !waits)
    }

    /// When the worker must come again; `None` if somebody will wake it.
    fn rest(&self, now_ns: u64) -> Option<Due> {
        let scan = match self.machine.pending() {
            Action::Idle => None,
            Action::Await => Some(self.scan),
            // Asked for since the driver looked, or broken off where the delay function unwound.
            _ => Some(Due::NOW),
        };
        let hand_out = (self.callbacks.ready() != 0).then_some(self.hand_out);
        scan.into_iter().chain(hand_out).min_by_key(|due| due.left_ns(now_ns))
    }
}

/// What a driver does without the lock.
enum Task {
    Check(u8),
    Spin(u32),
    Run(NonNull<Head>, Run),
}

/// A domain of sections that may sleep, over at most `CPUS` CPUs: a `static` of the kernel. It
/// needs no hook, and no [`Kernel`](crate::Kernel). An NMI calls none of its functions but
/// [`cookie`](Self::cookie) and [`poll`](Self::poll).
///
/// Its platform is a type of its own, or has a field that says which domain it serves:
/// - [`wake_worker`](Platform::wake_worker) has a worker call [`run`](Self::run), in place of
///   [`Kernel::run_callbacks`](crate::Kernel::run_callbacks), and may ignore its CPU. A wake-up
///   must not be lost: no other follows.
/// - [`resched`](Platform::resched) is never called, and [`wait`](Platform::wait) never polls.
/// - No function of it calls one of this `Srcu`, except in `wait`, which calls `done`.
///
/// ```
/// use kernel::srcu::{Published, Srcu, Wait};
/// # use kernel::{CpuSet, Platform};
/// # use std::thread::{park_timeout as sleep, yield_now};
/// # use std::time::Duration;
/// # fn mark_as_asleep() {}
/// # fn sleep_until_woken() {}
/// # struct Still;
/// # // SAFETY: one thread, and no handler.
/// # unsafe impl Platform for Still {
/// #     type IrqGuard = ();
/// #     fn this_cpu(&self) -> usize { 0 }
/// #     fn irq_off(&self) {}
/// #     fn now_ns(&self) -> u64 { 0 }
/// #     fn is_preemptible(&self) -> bool { true }
/// #     fn thread(&self) -> usize { 0 }
/// #     fn resched(&self, _: &CpuSet) {}
/// #     fn wake_worker(&self, _: usize) {}
/// #     fn wait(&self, done: &dyn Fn() -> bool, _: bool) { while !done() {} }
/// #     fn wake_waiters(&self) {}
/// # }
/// static SRCU: Srcu<Still, 1> = Srcu::new(Still, Published::final_at(250), 250);
///
/// /// The worker's thread: `wake_worker` ends its sleep.
/// fn work() -> ! {
///     loop {
///         mark_as_asleep();
///         match SRCU.run(100) {
///             None => sleep_until_woken(),
///             Some(Wait::Jiffies(0) | Wait::Microseconds(0)) => yield_now(),
///             Some(Wait::Jiffies(jiffies)) => sleep(Duration::from_millis(4) * jiffies),
///             Some(Wait::Microseconds(us)) => sleep(Duration::from_micros(us.into())),
///         }
///     }
/// }
///
/// let guard = SRCU.read(); // and sleep in here
/// let cookie = SRCU.start();
/// assert_eq!(SRCU.run(10), Some(Wait::Jiffies(1)), "the worker comes again after a jiffy");
/// assert!(!SRCU.poll(cookie));
/// drop(guard);
/// # let _ = || {
/// SRCU.synchronize_expedited().unwrap();
/// # };
/// ```
pub struct Srcu<P, const CPUS: usize, D = Published> {
    platform: P,
    tick_ns: u64,
    asks_in_section: bool,
    counts: [Counts; CPUS],
    /// The index that readers use.
    index: AtomicU32,
    /// The machine's number.
    told: AtomicU64,
    locked: Lock<Locked<D>>,
    /// Callbacks ever run.
    ran: AtomicU64,
    /// Threads in [`barrier`](Self::barrier).
    waiters: AtomicU32,
}

impl<P, const CPUS: usize, D> core::fmt::Debug for Srcu<P, CPUS, D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Srcu").field("told", &self.told).finish_non_exhaustive()
    }
}

/// So that the numbers wrap with the third grace period, and each kernel that boots tests that.
const FIRST: Sequence = Sequence::after(0_u64.wrapping_sub(3));

impl<P: Platform, const CPUS: usize, D: Delay> Srcu<P, CPUS, D> {
    constant! {
        /// Creates it, with this delay function, for a kernel with `hz` ticks a second. It takes 64
        /// bytes for each of `CPUS`.
        ///
        /// # Panics
        /// Unless `hz` is from 1 to 1,000,000,000.
        pub fn new(platform: P, delay: D, hz: u32) -> Self {
            const { assert!(0 < CPUS) };
            assert!(0 < hz && hz <= 1_000_000_000, "so many ticks a second there cannot be");
            #[cfg(not(loom))]
            let counts = [const { Counts::new() }; CPUS];
            #[cfg(loom)]
            let counts = core::array::from_fn(|_| Counts::new());
            Self {
                platform,
                tick_ns: 1_000_000_000 / hz as u64,
                asks_in_section: false,
                counts,
                index: AtomicU32::new(0),
                told: AtomicU64::new(FIRST.to_bits()),
                locked: Lock::new(Locked {
                    machine: SrcuMachine::new(delay, FIRST),
                    queue: Queue::EMPTY,
                    callbacks: Segments::new(FIRST),
                    queued: 0,
                    driver: None,
                    scan: Due::NOW,
                    hand_out: Due::NOW,
                    ticked_ns: 0,
                    idle_since_ns: 0,
                }),
                ran: AtomicU64::new(0),
                waiters: AtomicU32::new(0),
            }
        }
    }
}

impl<P, const CPUS: usize, D> Srcu<P, CPUS, D> {
    /// As Linux does, [`synchronize`](Self::synchronize) is in a section of its own while it asks:
    /// a worker that preempts it there finds a reader, and has to come again. Without a need here,
    /// whose numbers are of 64 bits; for experiments.
    #[must_use]
    pub const fn asking_in_section(mut self) -> Self {
        self.asks_in_section = true;
        self
    }
}

impl<P: Platform, const CPUS: usize, D: Delay> Srcu<P, CPUS, D> {
    /// Begins a section. The reader may sleep in it, and go on on another CPU; it may begin others
    /// in it. It must not wait for a grace period of the same domain, which would wait for it.
    /// Costs an atomic addition and a full fence; the section's end costs another addition.
    #[inline]
    pub fn read(&self) -> SrcuGuard<'_, P, CPUS, D> {
        // Relaxed: whichever index it is, it is waited for.
        let index = (self.index.load(Ordering::Relaxed) & 1) as usize;
        // Relaxed: the fence orders it.
        self.add(Ordering::Relaxed, |counts| &counts.locks[index]);
        // Full fence: either the sum of the locks sees the section, or the section sees the update
        // [KN-7]. Pairs with the one of `has_drained`.
        fence(Ordering::SeqCst);
        SrcuGuard { srcu: self, index }
    }

    /// Counts on this CPU. By an atomic instruction: so what others added stays a part of its
    /// release sequence, and a platform with two CPUs of one number is slow, and not wrong.
    #[inline]
    fn add(&self, order: Ordering, count: impl FnOnce(&Counts) -> &AtomicU64) {
        let _irq = self.platform.irq_off();
        let counts = self.counts.get(self.platform.this_cpu()).unwrap_or(&self.counts[0]);
        count(counts).fetch_add(1, order);
    }

    /// Whether the sections of an index have all ended.
    fn has_drained(&self, index: u8) -> bool {
        let index = usize::from(index & 1);
        let sum = |order: Ordering, count: fn(&Counts) -> &[AtomicU64; 2]| {
            let counts = self.counts.iter().map(|counts| count(counts)[index].load(order));
            counts.fold(0, u64::wrapping_add)
        };
        // Acquire: pairs with the Release of a guard's drop [KN-8]; the section is over, and its
        // lock is seen below.
        let unlocks = sum(Ordering::Acquire, |counts| &counts.unlocks);
        // Full fence: pairs with the one of `read` [KN-7].
        fence(Ordering::SeqCst);
        sum(Ordering::Relaxed, |counts| &counts.locks) == unlocks
    }

    /// Calls `what` with the lock, and the time.
    fn locked<R>(&self, what: impl FnOnce(&mut Locked<D>, u64) -> R) -> R {
        let _irq = self.platform.irq_off();
        let mut locked = self.locked.lock();
        let now_ns = self.platform.now_ns();
        locked.pass_time(now_ns, self.tick_ns);
        let result = what(&mut locked, now_ns);
        // Release: pairs with the Acquire of `poll` [KN-8]; the sections of a grace period that has
        // ended are over. One that has begun is told before the fence of its first check.
        self.told.store(locked.machine.sequence().to_bits(), Ordering::Release);
        result
    }

    /// Asks for a grace period, perhaps for a callback; urgent or not, or, without an answer, if
    /// there was nothing to do lately.
    ///
    /// # Safety
    /// The head is as for [`call`](Self::call).
    unsafe fn ask(
        &self,
        urgency: Option<Urgency>,
        callback: Option<(NonNull<Head>, Run)>,
    ) -> Cookie {
        let (cookie, wakes) = self.locked(|own, now_ns| {
            let idle_ns = now_ns.wrapping_sub(own.idle_since_ns);
            let urgency = urgency.unwrap_or_else(|| own.machine.urgency_of_synchronize(idle_ns));
            // The delay function may unwind here: the head is not queued yet.
            let cookie = own.machine.request(urgency);
            let wakes = own.is_left(now_ns, self.tick_ns);
            if let Some((head, run)) = callback {
                // SAFETY: the caller's.
                unsafe { own.queue.push(head, run) };
                own.queued = own.queued.wrapping_add(1);
                own.callbacks.push(1);
                // There is room: no more than two grace periods are waited for.
                own.callbacks.accelerate(cookie);
            }
            (cookie, wakes)
        });
        if wakes {
            self.wake();
        }
        cookie
    }

    /// Wakes a worker.
    fn wake(&self) {
        let _irq = self.platform.irq_off();
        self.platform.wake_worker(self.platform.this_cpu());
    }

    /// Queues `run` to be called with `head` once every section that has begun has ended. It calls
    /// [`Platform::wake_worker`].
    ///
    /// # Errors
    /// [`Refused::Queued`] if the head is found queued: no permission to try.
    ///
    /// A callback may [queue](Self::call) and [ask](Self::start). A wait for this domain is
    /// refused. It must not wait for another one whose worker is the same thread, which could not
    /// run meanwhile; nor may a callback of a [`Kernel`](crate::Kernel) wait for this one, then.
    /// [`Head::of`] and the limits of a `Kernel` have no effect here.
    ///
    /// # Safety
    /// As for [`Kernel::call`](crate::Kernel::call), but for its hooks.
    pub unsafe fn call(&self, head: NonNull<Head>, run: Run) -> Result<(), Refused> {
        // SAFETY: the caller says that it is valid.
        if unsafe { head.as_ref() }.is_queued() {
            return Err(Refused::Queued);
        }
        // SAFETY: the caller's.
        unsafe { self.ask(Some(Urgency::Normal), Some((head, run))) };
        Ok(())
    }

    /// Returns a cookie for a full grace period from here on. Does not begin one.
    pub fn cookie(&self) -> Cookie {
        // Full fence: the caller's update comes before the look [KN-7]. Pairs with the one of
        // `has_drained`: a grace period that is not seen here checks after the update.
        fence(Ordering::SeqCst);
        self.sequence().snapshot()
    }

    /// The same, and begins one.
    pub fn start(&self) -> Cookie {
        // SAFETY: no head.
        unsafe { self.ask(Some(Urgency::Normal), None) }
    }

    /// Whether the grace period of `cookie` has ended. If so, the caller sees everything that was
    /// done in the sections before it.
    pub fn poll(&self, cookie: Cookie) -> bool {
        self.sequence().is_done(cookie)
    }

    fn sequence(&self) -> Sequence {
        // Acquire: pairs with the Release of `locked` [KN-8].
        Sequence::from_bits(self.told.load(Ordering::Acquire))
    }

    /// Waits until every section that has begun has ended, and every callback has run that was
    /// queued before: so do not call it while holding a lock that these take. Expedited by itself
    /// if the domain has had nothing to do for 25 microseconds.
    ///
    /// # Errors
    /// [`Refused::InSection`] if the caller may not sleep; [`Refused::InCallback`] if it is a
    /// callback of this domain. It has not waited then. (A section of this domain is not noticed:
    /// the wait never ends.)
    pub fn synchronize(&self) -> Result<(), Refused> {
        self.synchronize_as(None)
    }

    /// The same, expedited: the delay function hears that somebody is in a hurry. As in Linux, a
    /// wait of a normal grace period that has begun goes on, for up to ten jiffies.
    ///
    /// # Errors
    /// As there.
    pub fn synchronize_expedited(&self) -> Result<(), Refused> {
        self.synchronize_as(Some(Urgency::Expedited))
    }

    /// By a callback, as in Linux: so the wait is as long as that of other callbacks. It wakes the
    /// caller itself: a callback that comes after it may wait for what the caller does next.
    fn synchronize_as(&self, urgency: Option<Urgency>) -> Result<(), Refused> {
        #[repr(C)]
        struct Waiter<'a, P> {
            head: Head,
            is_over: AtomicU32,
            platform: &'a P,
        }
        unsafe fn end<P: Platform>(head: NonNull<Head>) {
            // SAFETY: the waiter is there until it sees the store.
            let waiter = unsafe { head.cast::<Waiter<'_, P>>().as_ref() };
            // The domain's, which outlives this run.
            let platform = waiter.platform;
            // Release: pairs with the Acquire below [KN-8].
            waiter.is_over.store(1, Ordering::Release);
            let _irq = platform.irq_off();
            platform.wake_waiters();
        }
        self.may_wait()?;
        let waiter =
            Waiter { head: Head::new(), is_over: AtomicU32::new(0), platform: &self.platform };
        let section = self.asks_in_section.then(|| self.read());
        // SAFETY: it stays in its place until its function has run.
        unsafe { self.ask(urgency, Some((NonNull::from(&waiter).cast(), end::<P>))) };
        drop(section);
        // Acquire: pairs with the Release of `end` [KN-8]; the sections are over.
        self.platform.wait(&|| waiter.is_over.load(Ordering::Acquire) != 0, false);
        Ok(())
    }

    /// Waits until every callback queued so far has run. Begins no grace period. Do not call it
    /// while holding a lock that callbacks take, also those that are queued meanwhile.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub fn barrier(&self) -> Result<(), Refused> {
        self.may_wait()?;
        let (queued, wakes) =
            self.locked(|own, now_ns| (own.queued, own.is_left(now_ns, self.tick_ns)));
        if wakes {
            self.wake();
        }
        self.wait_for(queued);
        Ok(())
    }

    /// Waits until so many callbacks have run.
    pub(crate) fn wait_for(&self, queued: u64) {
        // Relaxed, here and below: the fence orders it.
        self.waiters.fetch_add(1, Ordering::Relaxed);
        // Full fence: the count comes before the look [KN-10]. Pairs with the one of `leave`.
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release of `Ran` [KN-8]; the callbacks have run.
        let left = || queued.wrapping_sub(self.ran.load(Ordering::Acquire));
        self.platform.wait(&|| left() as i64 <= 0, false);
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    fn may_wait(&self) -> Result<(), Refused> {
        match self.locked(|own, _| own.driver) == Some(self.platform.thread()) {
            true => Err(Refused::InCallback),
            false if !self.platform.is_preemptible() => Err(Refused::InSection),
            false => Ok(()),
        }
    }

    /// Drives the machine as far as it goes without a wait, and runs at most `budget` callbacks.
    /// Returns how long to wait before the next call, perhaps only until other threads have run;
    /// `None` until the worker is woken.
    ///
    /// The worker calls it in no section, with interrupts on and no lock held. It marks itself as
    /// asleep *before* a call that may return `None`. If it comes early, it is told how long is
    /// left. If a callback calls it, or another thread while it runs, it does nothing.
    ///
    /// **Whoever is told to come again comes, or has another thread come.** So a worker for each
    /// `Srcu`, bound to no CPU, is best. If it was bound, and is parked as its CPU goes, call this
    /// on another CPU in `cpu_dead`; if a thread calls it in its [`Platform::wait`], it wakes the
    /// worker when it leaves. What is forgotten is made up for when [`call`](Self::call),
    /// [`start`](Self::start), [`barrier`](Self::barrier) or a `synchronize` comes more than a tick
    /// later: it wakes the worker again.
    ///
    /// A callback that unwinds counts as run. It ends this call, and has a worker woken for the
    /// rest; so does a delay function that unwinds.
    #[must_use = "somebody has to come again then"]
    pub fn run(&self, mut budget: u64) -> Option<Wait> {
        let thread = self.platform.thread();
        self.locked(|own, _| own.driver.is_none().then(|| own.driver = Some(thread)))?;
        let driving = Driving(self);
        let mut event = None;
        while let Some(task) = self.next(event.take(), budget) {
            match task {
                Task::Check(index) => {
                    event = Some(Event::Checked { drained: self.has_drained(index) });
                }
                Task::Spin(microseconds) => {
                    self.spin(u64::from(microseconds) * 1_000);
                    event = Some(Event::Spun);
                }
                Task::Run(head, run) => {
                    budget -= 1;
                    let _ran = Ran(&self.ran);
                    // SAFETY: it was queued with this function, and its grace period has ended.
                    unsafe { run(head) };
                }
            }
        }
        core::mem::forget(driving);
        self.leave()
    }

    /// The caller is not the driver any more: who asks from here on wakes a worker. Returns how
    /// long to wait.
    fn leave(&self) -> Option<Wait> {
        // Full fence: what has run comes before the look [KN-10]. Pairs with that of `wait_for`.
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::Relaxed) != 0 {
            let _irq = self.platform.irq_off();
            self.platform.wake_waiters();
        }
        self.locked(|own, now_ns| {
            own.driver = None;
            own.rest(now_ns).map(|due| due.wait(now_ns, self.tick_ns))
        })
    }

    /// Does what the machine wants that needs no wait. Returns what does.
    fn next(&self, event: Option<Event>, budget: u64) -> Option<Task> {
        self.locked(|own, now_ns| {
            if let Some(event) = event {
                own.observe(event);
            }
            loop {
                let event = match own.machine.pending() {
                    Action::Check { index } => return Some(Task::Check(index)),
                    Action::Spin { microseconds } => return Some(Task::Spin(microseconds)),
                    Action::Queue(wait) => {
                        own.scan = own.due(wait, now_ns, self.tick_ns);
                        own.observe(Event::Queued);
                        break; // even if there is nothing to wait for: other threads may run
                    }
                    Action::Await if own.scan.left_ns(now_ns) == 0 => Event::Runs,
                    Action::Flip { to } => {
                        // Release: more than is needed. No fence is: whichever index a section
                        // uses, both are checked [KN-7].
                        self.index.store(to.into(), Ordering::Release);
                        Event::Flipped
                    }
                    Action::HandOut { sequence, delay_jiffies } => {
                        let is_first = own.callbacks.ready() == 0;
                        own.callbacks.advance(sequence);
                        let due = own.due(Wait::Jiffies(delay_jiffies), now_ns, self.tick_ns);
                        if is_first || due.left_ns(now_ns) < own.hand_out.left_ns(now_ns) {
                            own.hand_out = due;
                        }
                        own.idle_since_ns = now_ns;
                        Event::HandedOut
                    }
                    Action::Idle | Action::Await => break,
                };
                own.observe(event);
            }
            if budget == 0 { None } else { own.take(now_ns) }
        })
    }

    /// Lets so much time pass; also if the clock stands still.
    fn spin(&self, ns: u64) {
        let now_ns = || {
            let _irq = self.platform.irq_off();
            self.platform.now_ns()
        };
        let began_ns = now_ns();
        let looks = (0..ns).take_while(|_| now_ns().wrapping_sub(began_ns) < ns);
        looks.for_each(|_| pause());
    }
}

/// A section of an [`Srcu`]: it ends when this is dropped, by any thread on any CPU.
#[must_use]
#[derive(Debug)]
pub struct SrcuGuard<'a, P: Platform, const CPUS: usize, D: Delay = Published> {
    srcu: &'a Srcu<P, CPUS, D>,
    index: usize,
}

impl<P: Platform, const CPUS: usize, D: Delay> Drop for SrcuGuard<'_, P, CPUS, D> {
    #[inline]
    fn drop(&mut self) {
        let index = self.index;
        // Release: pairs with the Acquire of `has_drained` [KN-8].
        self.srcu.add(Ordering::Release, |counts| &counts.unlocks[index]);
    }
}

/// A thread is the driver.
struct Driving<'a, P: Platform, const CPUS: usize, D: Delay>(&'a Srcu<P, CPUS, D>);

/// A callback or the delay function has unwound.
impl<P: Platform, const CPUS: usize, D: Delay> Drop for Driving<'_, P, CPUS, D> {
    fn drop(&mut self) {
        if self.0.leave().is_some() {
            self.0.wake();
        }
    }
}
