//! The torture: readers that check whether what they found is too old, updaters of each kind,
//! threads that sleep, run user programs, disturb other CPUs; CPUs that stop and start.
//!
//! An object is found by readers until it is replaced. From then on it has an age: 1, and one more
//! for each grace period that has gone by since. So a section that began before may find the age
//! 0 or 1 at its end, and none finds 2. (liburcu's `rcutorture.h` counts so.) The counts of what
//! they found are printed; of 2 and more there must be none.

use core::array::from_fn;
use core::fmt;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

use crate::{HeadOf, Machine, Rcu, Run};

/// An object of this age is used again. A reader that finds another use of it counts as this one.
const AGES: usize = 8;
/// Where readers find objects.
pub const SLOTS: usize = 4;
/// Objects of each CPU, for a start.
const OBJECTS: usize = 256;

/// Each with its name.
macro_rules! counted {
    ($($what:ident: $name:literal,)*) => {
        /// What is done, counted and printed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum What {
            $(#[doc = $name] $what,)*
        }
        use What::*;
        const NAMES: &[(What, &str)] = &[$(($what, $name)),*];
    };
}

counted! {
    Section: "sections",
    Handler: "in handlers",
    Nmi: "in NMIs",
    NmiInIdle: "NMIs in idle",
    NmiInUser: "NMIs in user mode",
    Update: "updates",
    Call: "calls",
    Synchronize: "synchronize",
    Expedited: "expedited",
    Cookie: "cookies",
    Barrier: "barriers",
    User: "user programs",
    Sleep: "sleeps",
    Interrupt: "interrupts",
    Own: "of its own",
    NoObject: "without an object",
    Hotplug: "hotplug",
}

/// What a CPU has for the torture: its counts, on lines of its own, and its objects. No atomic
/// instruction counts: it would order a section for the RCU.
#[repr(align(64))]
#[derive(Debug)]
pub struct Cpu<H> {
    counts: [AtomicU64; NAMES.len()],
    /// What readers found, by age.
    found: [AtomicU64; AGES + 1],
    objects: [Object<H>; OBJECTS],
    /// Those that are free: touched by this CPU with interrupts off.
    free: AtomicPtr<Object<H>>,
}

/// An object: its head is at its beginning.
#[repr(C)]
#[derive(Debug)]
pub struct Object<H> {
    head: H,
    age: AtomicU32,
    /// How often it was used.
    uses: AtomicU32,
    next: AtomicPtr<Object<H>>,
}

impl<H> Cpu<H> {
    /// One without free objects: [`Torture::run`] gives it some.
    pub const fn new<R: Rcu<Head = H>>() -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; NAMES.len()],
            found: [const { AtomicU64::new(0) }; AGES + 1],
            objects: [const {
                Object {
                    head: R::HEAD,
                    age: AtomicU32::new(0),
                    uses: AtomicU32::new(0),
                    next: AtomicPtr::new(ptr::null_mut()),
                }
            }; OBJECTS],
            free: AtomicPtr::new(ptr::null_mut()),
        }
    }
}

/// The torture of a kernel: a `static`.
pub struct Torture<M: Machine> {
    cpus: &'static [Cpu<HeadOf<M>>],
    current: [AtomicPtr<Object<HeadOf<M>>>; SLOTS],
    has_begun: AtomicBool,
    is_over: AtomicBool,
    /// CPUs that are tortured, when it has begun.
    tortured: AtomicUsize,
    /// Threads that have ended.
    ended: AtomicU64,
}

impl<M: Machine> fmt::Debug for Torture<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Torture").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

type Found<M> = &'static Object<HeadOf<M>>;

/// Counts one more on this CPU. What an interrupt counts meanwhile is lost, but it is never 0
/// again.
fn add(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}

impl<M: Machine> Torture<M> {
    /// Over these CPUs.
    pub const fn new(cpus: &'static [Cpu<HeadOf<M>>]) -> Self {
        Self {
            cpus,
            current: [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS],
            has_begun: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            tortured: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
        }
    }

    fn this(&self) -> &'static Cpu<HeadOf<M>> {
        &self.cpus[M::this_cpu()]
    }

    fn count(&self, what: What) {
        add(&self.this().counts[what as usize]);
    }

    fn sum(&self, of: impl Fn(&Cpu<HeadOf<M>>) -> &AtomicU64) -> u64 {
        self.cpus.iter().map(|cpu| of(cpu).load(Relaxed)).sum()
    }

    /// Takes a free object of this CPU.
    pub fn take(&self) -> Option<Found<M>> {
        let _irq = M::irqs_off();
        let free = &self.this().free;
        // SAFETY: objects are never freed as memory.
        let object = unsafe { free.load(Relaxed).as_ref() }?;
        free.store(object.next.load(Relaxed), Relaxed);
        object.uses.fetch_add(1, Relaxed);
        object.age.store(0, Release);
        Some(object)
    }

    /// Gives an object back.
    ///
    /// # Safety
    /// It is the caller's: [`take`](Self::take) or [`replace`](Self::replace) has returned it. The
    /// caller gives it up, and its head is not queued. No reader finds it any more, if the RCU is
    /// right.
    pub unsafe fn give(&self, object: Found<M>) {
        object.age.store(AGES as u32, Release);
        let _irq = M::irqs_off();
        let free = &self.this().free;
        object.next.store(free.load(Relaxed), Relaxed);
        free.store(ptr::from_ref(object).cast_mut(), Relaxed);
    }

    /// A grace period has gone by. Returns whether the object was given back.
    fn grow(&self, object: Found<M>) -> bool {
        let age = object.age.load(Relaxed) + 1;
        object.age.store(age, Release);
        let is_old = age as usize == AGES;
        if is_old {
            // SAFETY: it is the caller's, who hears that it has been given back.
            unsafe { self.give(object) };
        }
        is_old
    }

    fn queue(&self, object: Found<M>, run: Run<HeadOf<M>>) {
        self.count(Call);
        // SAFETY: the object is this thread's alone, and not queued; it gives it away.
        unsafe { M::RCU.call(NonNull::from(object).cast(), run) };
    }

    /// A section: finds an object, and looks at it again after `dwell`.
    fn look(&self, slot: u64, what: What, dwell: impl FnOnce()) {
        let _section = M::RCU.read();
        // SAFETY: objects are never freed as memory.
        let object = unsafe { self.current[slot as usize].load(Acquire).as_ref() };
        if let Some(object) = object {
            self.watch(object, what, dwell);
        }
    }

    /// In a section, looks at an object, and again after `dwell`.
    pub fn watch(&self, object: &Object<HeadOf<M>>, what: What, dwell: impl FnOnce()) {
        let uses = object.uses.load(Relaxed);
        dwell();
        let age = object.age.load(Acquire) as usize;
        let is_same = object.uses.load(Relaxed) == uses;
        add(&self.this().found[if is_same { age.min(AGES) } else { AGES }]);
        self.count(what);
    }

    /// What a handler of an interrupt reads.
    pub fn handler(&self) {
        self.look(M::roll(SLOTS as u64), Handler, || dwell::<M>(32, 6));
    }

    /// An NMI, perhaps a simulated one.
    pub fn nmi(&self) {
        let rcu = M::RCU;
        let interrupt = rcu.nmi_enter();
        self.look(M::roll(SLOTS as u64), Nmi, || {
            if has::<M>(Cookie) {
                rcu.poll(rcu.cookie());
            }
            dwell::<M>(512, 3);
        });
        rcu.nmi_exit(interrupt);
    }

    /// One that comes in user mode, in the idle loop, or in neither.
    pub fn nmi_from(&self, is_user: bool, is_idle: bool) {
        match (is_user, is_idle) {
            (true, _) => self.count(NmiInUser),
            (_, true) => self.count(NmiInIdle),
            _ => {}
        }
        self.nmi();
    }

    fn read(&self) {
        let ticks = match M::roll(256) {
            0..4 => 60,
            4..16 => 8,
            16..64 => 1,
            _ => 0,
        };
        self.look(M::roll(SLOTS as u64), Section, || spin::<M>(M::roll(ticks * M::TICK + 100)));
    }

    /// Replaces an object. Returns the old one, if there was one.
    pub fn replace(&self, slot: usize) -> Option<Found<M>> {
        let Some(new) = self.take() else {
            self.count(NoObject);
            return None;
        };
        self.count(Update);
        let old = self.current[slot].swap(ptr::from_ref(new).cast_mut(), AcqRel);
        // SAFETY: objects are never freed as memory.
        let old = unsafe { old.as_ref() }?;
        old.age.store(1, Release);
        Some(old)
    }

    /// This CPU stops, and leaves callbacks to the one that buries it: of all that readers have
    /// found just now.
    pub fn leave(&self) {
        for old in (0..SLOTS).filter_map(|slot| self.replace(slot)) {
            self.queue(old, grow_again::<M>);
        }
    }

    /// Replaces an object, and waits for nothing.
    fn renew(&self) {
        if let Some(old) = self.replace(M::roll(SLOTS as u64) as usize) {
            self.queue(old, grow_again::<M>);
        }
    }

    /// Replaces an object, and waits for grace periods until it may be used again, or has it wait.
    fn update(&self) {
        let Some(old) = self.replace(M::roll(SLOTS as u64) as usize) else { return };
        let rcu = M::RCU;
        loop {
            let way = [Synchronize, Expedited, Cookie, Barrier];
            let way = way.get(M::roll(8) as usize).filter(|way| has::<M>(**way));
            let Some(&way) = way else { return self.queue(old, grow_again::<M>) };
            self.count(way);
            match way {
                Synchronize => rcu.synchronize(),
                Expedited => rcu.synchronize_expedited(),
                Cookie => poll_cookie::<M>(),
                _ => {
                    let age = old.age.load(Relaxed);
                    self.queue(old, grow_once::<M>);
                    rcu.barrier();
                    assert_eq!(old.age.load(Acquire), age + 1, "the callback has not run");
                    if age as usize + 1 == AGES {
                        // SAFETY: `replace` has returned it, and its callback has run.
                        return unsafe { self.give(old) };
                    }
                    continue;
                }
            }
            if self.grow(old) {
                return;
            }
        }
    }

    /// What a thread does until the torture is over, as the dice say. Each CPU has some; one of
    /// them, `is_first`, waits for nothing but the time, so that there are always sections.
    pub fn act(&self, is_first: bool) {
        while self.tortured.load(Acquire) == 0 {
            M::sleep_ticks(1);
        }
        let cpus = self.tortured.load(Relaxed) as u64;
        while !self.is_over.load(Relaxed) {
            match M::roll(32) {
                0..14 => self.read(),
                14..19 if is_first => self.renew(),
                14..19 => self.update(),
                19..22 if has::<M>(Interrupt) => {
                    self.count(Interrupt);
                    M::disturb(M::roll(cpus) as usize, M::roll(2) == 0 && has::<M>(Nmi));
                }
                22..24 => M::yields(),
                24 if has::<M>(User) => {
                    self.count(User);
                    M::run_program(1 + M::roll(1_000_000));
                }
                25 if has::<M>(Own) => M::own(M::TORTURE, false),
                rest => {
                    self.count(Sleep);
                    M::sleep_ticks(M::roll(if rest == 26 { 64 } else { 6 }));
                }
            }
        }
        self.ended.fetch_add(1, Release);
    }

    /// Whether all that can happen has happened: else nothing has been shown.
    fn is_complete(&self, cpus: usize) -> bool {
        let may_lack = |what| what == NoObject || what == Hotplug && cpus == 1 || !has::<M>(what);
        let has_been = |what| self.sum(|cpu| &cpu.counts[what as usize]) != 0;
        NAMES.iter().all(|&(what, _)| may_lack(what) || has_been(what))
            // One CPU alone replaces nothing while a section is open there.
            && (cpus == 1 || self.sum(|cpu| &cpu.found[1]) != 0)
    }

    /// Called on CPU 0, tortures CPUs 0 to so many, of which each has so many threads in
    /// [`act`](Self::act), until that time, and until `has_happened`; one CPU after the other, but
    /// for this, stops and starts. Then prints what was counted. Returns whether it is right, and
    /// never if a grace period does not end: the kernel has a watch of its own.
    ///
    /// # Panics
    /// If it has been called before.
    pub fn run(
        &self,
        (cpus, threads): (usize, usize),
        until: u64,
        has_happened: impl Fn() -> bool,
    ) -> bool {
        assert!(!self.has_begun.swap(true, Relaxed), "the torture runs once");
        for cpu in &self.cpus[..cpus] {
            for object in &cpu.objects {
                object.next.store(cpu.free.load(Relaxed), Relaxed);
                cpu.free.store(ptr::from_ref(object).cast_mut(), Relaxed);
            }
        }
        let first = M::RCU.cookie();
        // Release: pairs with the Acquire of `act`, which then finds the free objects.
        self.tortured.store(cpus, Release);
        while M::now() < until || !self.is_complete(cpus) || !has_happened() {
            M::sleep_ticks(1 + M::roll(20));
            if cpus > 1 && has::<M>(Hotplug) {
                self.count(Hotplug);
                M::plug(1 + M::roll(cpus as u64 - 1) as usize, M::roll(20));
            }
        }
        self.is_over.store(true, Relaxed);
        // Acquire: pairs with the Release of `act`; all that those threads did comes before.
        while self.ended.load(Acquire) < (cpus * threads) as u64 {
            M::sleep_ticks(1);
        }
        M::own(M::TORTURE, true);
        // Each object queues itself again until it is old enough.
        for _ in 0..=AGES {
            M::RCU.barrier();
        }
        self.tell(cpus, M::RCU.poll(first))
    }

    /// Prints what was counted, and returns whether it is right, and a grace period has ended.
    fn tell(&self, cpus: usize, has_ended: bool) -> bool {
        for (what, name) in NAMES {
            let sum = self.sum(|cpu| &cpu.counts[*what as usize]);
            M::say(format_args!("{name:>18}: {sum}"));
        }
        let found: [u64; AGES + 1] = from_fn(|age| self.sum(|cpu| &cpu.found[age]));
        M::say(format_args!("{:>18}: {found:?}", "ages found"));
        let total = cpus * OBJECTS;
        let mut kept = self.current.iter().filter(|slot| !slot.load(Relaxed).is_null()).count();
        for cpu in self.cpus {
            // Relaxed: the threads have ended, and the last barrier came after all callbacks.
            let mut next = cpu.free.load(Relaxed);
            // An object that was given back twice may make a ring.
            // SAFETY: objects are never freed as memory.
            while let Some(object) = unsafe { next.as_ref() }.filter(|_| kept <= total) {
                kept += 1;
                next = object.next.load(Relaxed);
            }
        }
        M::say(format_args!("{:>18}: {kept} of {total}", "objects kept"));
        let wrongs = [
            (found[2..].iter().any(|&found| found != 0), "readers found objects that are too old"),
            (kept < total, "objects are lost"),
            (kept > total, "objects were given back twice"),
            (M::RCU.waiting() != 0, "callbacks are said to wait"),
            (!has_ended || !self.is_complete(cpus), "not all has happened"),
        ];
        for (_, what) in wrongs.iter().filter(|(is_so, _)| *is_so) {
            M::say(format_args!("wrong: {what}"));
        }
        wrongs.iter().all(|(is_so, _)| !is_so)
    }
}

fn has<M: Machine>(what: What) -> bool {
    let lacks = |what| M::Rcu::LACKS.contains(&what);
    let is_of_nmi = matches!(what, NmiInIdle | NmiInUser);
    !(lacks(what) || is_of_nmi && lacks(Nmi) || what == NmiInUser && lacks(User))
}

/// # Safety
/// It is the head of one of our objects.
unsafe fn object_of<M: Machine>(head: NonNull<HeadOf<M>>) -> Found<M> {
    // SAFETY: the caller's; the head is at the object's beginning, and objects are never freed.
    unsafe { head.cast::<Object<HeadOf<M>>>().as_ref() }
}

/// Grows older by one grace period after the other.
unsafe fn grow_again<M: Machine>(head: NonNull<HeadOf<M>>) {
    // SAFETY: `queue` has queued it.
    let object = unsafe { object_of::<M>(head) };
    let torture = M::TORTURE;
    if !torture.grow(object) {
        torture.queue(object, grow_again::<M>);
    }
}

unsafe fn grow_once<M: Machine>(head: NonNull<HeadOf<M>>) {
    // SAFETY: `queue` has queued it.
    let object = unsafe { object_of::<M>(head) };
    object.age.fetch_add(1, Release);
}

/// Looks at a cookie for a while; then waits for it, for it may be that nobody else does.
fn poll_cookie<M: Machine>() {
    let rcu = M::RCU;
    let cookie = rcu.cookie();
    let looks = (0..20).take_while(|_| !rcu.poll(cookie)).inspect(|_| M::sleep_ticks(1));
    if looks.count() == 20 {
        rcu.wait(cookie);
    }
}

/// Once in so many times, stays in a section for up to so many ticks: a grace period that does not
/// wait for it ends meanwhile.
fn dwell<M: Machine>(times: u64, ticks: u64) {
    if M::roll(times) == 0 {
        spin::<M>(M::roll(ticks * M::TICK));
    }
}

/// Does nothing for so long.
pub fn spin<M: Machine>(time: u64) {
    let until = M::now() + time;
    while M::now() < until {
        core::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::fmt::Arguments;

    use super::*;

    /// A kernel of one CPU, with neither programs nor NMIs, whose grace periods end at once.
    struct Plain;

    // SAFETY: `call` passes on what it gets.
    unsafe impl Rcu for Plain {
        type Head = ();
        const HEAD: () = ();
        type Section = ();
        type Interrupt = ();
        const LACKS: &'static [What] = &[User, Nmi, Own, Barrier, Expedited, Hotplug];

        fn read(&self) {}

        unsafe fn call(&self, head: NonNull<()>, run: Run<()>) {
            // SAFETY: the caller's.
            unsafe { run(head) };
        }

        fn synchronize(&self) {}
        fn barrier(&self) {}
        fn context_switch(&self, _: bool) {}
        fn irq_enter(&self) {}
        fn cpu_starting(&self, _: usize) {}

        fn is_holdout(&self, _: usize) -> bool {
            false
        }

        fn waiting(&self) -> u64 {
            0
        }
    }

    static CPUS: [Cpu<()>; 1] = [Cpu::new::<Plain>()];
    static TORTURE: Torture<Plain> = Torture::new(&CPUS);
    static SLEPT: AtomicU32 = AtomicU32::new(0);

    // SAFETY: there is one thread.
    unsafe impl Machine for Plain {
        type Rcu = Self;
        type IrqsOff = ();
        const TICK: u64 = 1;
        const RCU: &'static Self = &Self;
        const TORTURE: &'static Torture<Self> = &TORTURE;

        fn this_cpu() -> usize {
            0
        }

        fn irqs_off() {}

        fn now() -> u64 {
            static CLOCK: AtomicU64 = AtomicU64::new(0);
            CLOCK.fetch_add(1, Relaxed)
        }

        fn roll(sides: u64) -> u64 {
            static DICE: AtomicU64 = AtomicU64::new(0);
            let roll = DICE.load(Relaxed).wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            DICE.store(roll, Relaxed);
            (roll >> 33) % sides
        }

        fn yields() {}

        /// The thread in `run` sleeps first, and meanwhile the other one acts, until it has been
        /// long enough. Handlers come when that one sleeps.
        fn sleep_ticks(_: u64) {
            let slept = SLEPT.fetch_add(1, Relaxed);
            assert!(slept < 1_000, "the torture does not end");
            if slept == 0 {
                return TORTURE.act(false);
            }
            TORTURE.handler();
            TORTURE.is_over.store(slept > 100 && TORTURE.is_complete(1), Relaxed);
        }

        fn disturb(_: usize, with_nmi: bool) {
            assert!(!with_nmi, "there are no NMIs");
        }

        fn run_program(_: u64) {
            unreachable!("there are no programs");
        }

        fn plug(_: usize, _: u64) {}

        fn say(what: Arguments<'_>) {
            std::println!("{what}");
        }
    }

    /// It waited for an NMI in user mode, of which there was none.
    #[test]
    fn the_torture_of_a_kernel_without_programs_and_nmis_ends() {
        assert!(TORTURE.run((1, 1), 0, || true));
    }
}
