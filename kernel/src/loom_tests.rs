//! The front under loom: a CPU that goes in or out of idle, ticks, or comes and goes, beside one
//! whose grace period scans; cookies, barriers, the lock; cells and lists over it; and SRCU.
//!
//! CPU 0 unlinks, queues a callback and ticks a few times; CPU 1 is in a section or two. In every
//! interleaving, and with every value that a load may give, no section that has seen the old value
//! goes on when the callback has run.

use core::cell::Cell;
use core::ptr::NonNull;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Notify};
use std::boxed::Box;

use crate::engine::store::Fixed;
use crate::engine::{tick::Tick, token::Relay};
use crate::lock::Lock;
use crate::srcu::{Published, Srcu};
use crate::{
    CpuSet, Domain, Driven, GracePeriods, Head, Kernel, Link, Linked, Options, Platform, Rcu,
    RcuBox, RcuList, Refused, Run, TreeRcu, Zone,
};

loom::thread_local! {
    static CPU: Cell<usize> = Cell::new(0);
}

/// Two CPUs that are two threads.
struct Threads {
    now_ns: AtomicUsize,
    /// Wakes one that waits without polling.
    wakes: Option<Notify>,
}

impl Threads {
    fn new() -> Self {
        Self { now_ns: AtomicUsize::new(1), wakes: None }
    }
}

// SAFETY: each loom thread is one CPU, and there is no interrupt.
unsafe impl Platform for Threads {
    type IrqGuard = ();

    fn this_cpu(&self) -> usize {
        CPU.with(Cell::get)
    }

    fn irq_off(&self) {}

    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed) as u64
    }

    fn is_preemptible(&self) -> bool {
        true
    }

    fn thread(&self) -> usize {
        self.this_cpu()
    }

    fn resched(&self, _: &CpuSet) {}

    fn wake_worker(&self, _: usize) {}

    fn wait(&self, done: &dyn Fn() -> bool, polls: bool) {
        while !done() {
            match &self.wakes {
                Some(wakes) => wakes.wait(),
                None => {
                    assert!(polls, "nobody wakes it");
                    loom::thread::yield_now();
                }
            }
        }
    }

    fn wake_waiters(&self) {
        self.wakes.iter().for_each(Notify::notify);
    }
}

/// What is unlinked and freed after a grace period of `K`, a [`Kernel`] or an [`Srcu`].
struct Shared<K> {
    kernel: K,
    /// 0 is the old value, which CPU 0 replaces.
    link: AtomicUsize,
    /// What the old value leads to: read in sections, written when it is freed.
    old: UnsafeCell<u32>,
}

type Front<E> = Shared<Kernel<Threads, 2, E>>;

// SAFETY: loom watches `old`; all else is atomic, or a CPU's own.
unsafe impl<K: Sync> Send for Shared<K> {}
// SAFETY: as above.
unsafe impl<K: Sync> Sync for Shared<K> {}

impl<K> Shared<K> {
    fn new(kernel: K) -> Arc<Self> {
        Arc::new(Self { kernel, link: AtomicUsize::new(0), old: UnsafeCell::new(0) })
    }
}

#[repr(C)]
struct Free<K> {
    head: Head,
    shared: Arc<Shared<K>>,
}

unsafe fn free<K>(head: NonNull<Head>) {
    // SAFETY: it is the one that `unlink` gave away.
    let free = unsafe { Box::from_raw(head.cast::<Free<K>>().as_ptr()) };
    // SAFETY: no section sees it any more, which loom checks.
    free.shared.old.with_mut(|old| unsafe { *old = 1 });
}

/// CPU 0: unlinks the old value. Returns the head by which it is freed, by [`free`].
fn unlink<K>(shared: &Arc<Shared<K>>) -> NonNull<Head> {
    shared.link.store(1, Ordering::Release);
    let free = Box::new(Free { head: Head::new(), shared: shared.clone() });
    NonNull::from(Box::leak(free)).cast()
}

/// A CPU ticks in the kernel, after so long that each scan is due.
fn tick<E: GracePeriods<2>>(kernel: &Kernel<Threads, 2, E>) {
    kernel.platform.now_ns.fetch_add(1_000_000, Ordering::Relaxed);
    kernel.tick(&kernel.irq_enter(), false);
}

/// CPU 0: unlinks the old value and has it freed.
fn update<E: GracePeriods<2>>(shared: &Arc<Front<E>>) {
    let head = unlink(shared);
    let kernel = &shared.kernel;
    // SAFETY: the box is the callback's now.
    unsafe { kernel.call(head, free::<Kernel<Threads, 2, E>>) }.unwrap();
    for _ in 0..4 {
        kernel.context_switch();
        tick(kernel);
    }
    // Not before: it has a fence of its own, which would do for that of the grace period.
    kernel.run_callbacks(0, 1);
}

/// A section.
fn read<K>(shared: &Shared<K>) {
    // Relaxed: nothing but the grace period orders it.
    if shared.link.load(Ordering::Relaxed) == 0 {
        // SAFETY: it is not freed before the section ends, which loom checks.
        shared.old.with(|old| assert_eq!(unsafe { *old }, 0));
    }
}

/// A kernel of which no CPU has started.
fn offline<E: GracePeriods<2>>(platform: Threads) -> Kernel<Threads, 2, E> {
    let options = Options { tick_ns: 1, panics: true, ..Options::new(1_000, 2) };
    Kernel::new(platform, options)
}

/// A kernel whose CPUs have started, on CPU 0. The other one is idle, or not.
fn started<E: GracePeriods<2>>(platform: Threads, is_idle: bool) -> Kernel<Threads, 2, E> {
    let kernel = offline(platform);
    for cpu in [1, 0] {
        CPU.with(|own| own.set(cpu));
        kernel.cpu_starting(cpu);
        kernel.cpu_online(cpu);
        if cpu == 1 && is_idle {
            kernel.idle_enter();
        }
    }
    kernel
}

/// Explores a model that has too many schedules: those with two preemptions, unless loom is told.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(model);
}

/// Has another thread be CPU 1.
fn on_cpu_1<R: 'static>(work: impl FnOnce() -> R + 'static) -> loom::thread::JoinHandle<R> {
    loom::thread::spawn(move || {
        CPU.with(|own| own.set(1));
        work()
    })
}

/// CPU 1 unlinks the old value, takes a cookie, and frees when that is done.
fn frees_when_done<K: Sync + 'static, C: 'static>(
    shared: &Arc<Shared<K>>,
    cookie: fn(&K) -> C,
    poll: fn(&K, C) -> bool,
) -> loom::thread::JoinHandle<()> {
    let shared = shared.clone();
    on_cpu_1(move || {
        shared.link.store(1, Ordering::Release);
        let cookie = cookie(&shared.kernel);
        // Later: loom lets the other thread go on.
        loom::thread::yield_now();
        if poll(&shared.kernel, cookie) {
            // SAFETY: no section sees it any more, which loom checks.
            shared.old.with_mut(|old| unsafe { *old = 1 });
        }
    })
}

/// Runs CPU 1, which is idle at first or not, beside CPU 0.
fn model<E: GracePeriods<2> + 'static>(is_idle: bool, cpu_1: fn(&Front<E>)) {
    explore(move || {
        let shared = Shared::new(started::<E>(Threads::new(), is_idle));
        let other = shared.clone();
        let thread = on_cpu_1(move || cpu_1(&other));
        update(&shared);
        thread.join().unwrap();
        // What is left is freed: CPU 1 is idle by now.
        for _ in 0..8 {
            shared.kernel.context_switch();
            tick(&shared.kernel);
            shared.kernel.run_callbacks(0, 1);
        }
        assert!(!shared.kernel.has_callbacks());
    });
}

fn leaves_idle<E: GracePeriods<2> + 'static>() {
    model::<E>(true, |shared| {
        shared.kernel.idle_exit();
        read(shared);
        shared.kernel.idle_enter();
    });
}

fn goes_idle<E: GracePeriods<2> + 'static>() {
    model::<E>(false, |shared| {
        read(shared);
        shared.kernel.idle_enter();
    });
}

fn is_interrupted_in_idle<E: GracePeriods<2> + 'static>() {
    model::<E>(true, |shared| {
        let interrupt = shared.kernel.nmi_enter();
        read(shared);
        shared.kernel.nmi_exit(interrupt);
    });
}

/// Both want the lock.
#[test]
fn two_cpus_that_tick() {
    model::<TreeRcu<2>>(false, |shared| {
        read(shared);
        shared.kernel.context_switch();
        shared.kernel.tick(&shared.kernel.irq_enter(), false);
        read(shared);
        shared.kernel.idle_enter();
    });
}

#[test]
fn a_cpu_that_leaves_idle_while_a_scan_looks() {
    leaves_idle::<TreeRcu<2>>();
}

#[test]
fn a_cpu_that_goes_idle_while_a_scan_looks() {
    goes_idle::<TreeRcu<2>>();
}

#[test]
fn a_handler_in_idle_while_a_scan_looks() {
    is_interrupted_in_idle::<TreeRcu<2>>();
}

#[test]
fn a_driven_engine_while_a_cpu_leaves_idle() {
    leaves_idle::<Driven<Tick<Fixed<2>>>>();
    leaves_idle::<Driven<Relay<Fixed<2>>>>();
}

#[test]
fn a_driven_engine_while_a_cpu_goes_idle() {
    goes_idle::<Driven<Tick<Fixed<2>>>>();
    goes_idle::<Driven<Relay<Fixed<2>>>>();
}

#[test]
fn a_driven_engine_while_a_handler_comes_in_idle() {
    is_interrupted_in_idle::<Driven<Tick<Fixed<2>>>>();
    is_interrupted_in_idle::<Driven<Relay<Fixed<2>>>>();
}

/// CPU 0 waits, alone or not, while CPU 1 starts, is in a section, and perhaps goes again.
fn is_alone_or_not<E: GracePeriods<2> + 'static>(goes: bool) {
    explore(move || {
        let shared = Shared::new(offline::<E>(Threads::new()));
        shared.kernel.cpu_starting(0);
        let other = shared.clone();
        let thread = on_cpu_1(move || {
            other.kernel.cpu_starting(1);
            read(&other);
            if goes {
                assert!(other.kernel.cpu_dying(1));
            } else {
                other.kernel.idle_enter();
            }
        });
        shared.link.store(1, Ordering::Release);
        shared.kernel.synchronize_expedited().unwrap();
        // SAFETY: no section sees it any more, which loom checks.
        shared.old.with_mut(|old| unsafe { *old = 1 });
        thread.join().unwrap();
    });
}

#[test]
fn a_cpu_that_starts_while_another_waits() {
    is_alone_or_not::<TreeRcu<2>>(false);
    is_alone_or_not::<Driven<Tick<Fixed<2>>>>(false);
}

#[test]
fn a_cpu_that_goes_while_another_waits() {
    is_alone_or_not::<TreeRcu<2>>(true);
    is_alone_or_not::<Driven<Tick<Fixed<2>>>>(true);
}

/// Queues a callback that does nothing: a grace period is wanted.
fn call_nothing(kernel: &Kernel<Threads, 2>) {
    unsafe fn nothing(head: NonNull<Head>) {
        // SAFETY: it came from a box, and is nobody's any more.
        drop(unsafe { Box::from_raw(head.as_ptr()) });
    }
    let head = NonNull::from(Box::leak(Box::new(Head::new())));
    // SAFETY: the box is the callback's now.
    unsafe { kernel.call(head, nothing) }.unwrap();
}

/// CPU 1 unlinks, and frees when a cookie is done. CPU 0's grace period may begin before the
/// cookie, and ends while CPU 0 is in a section: a tick interrupts that.
#[test]
fn a_cookie_is_taken_while_another_cpu_begins_a_grace_period() {
    explore(|| {
        let shared = Shared::new(started::<TreeRcu<2>>(Threads::new(), false));
        let cookie = |kernel: &Kernel<_, 2>| {
            let cookie = kernel.cookie();
            kernel.idle_enter();
            cookie
        };
        // It polls as an NMI does in idle.
        let thread = frees_when_done(&shared, cookie, Kernel::poll);
        read(&shared);
        call_nothing(&shared.kernel);
        tick(&shared.kernel);
        shared.kernel.context_switch();
        // A section, as `read` is, in which the tick comes.
        let is_old = shared.link.load(Ordering::Relaxed) == 0;
        (0..2).for_each(|_| tick(&shared.kernel));
        if is_old {
            // SAFETY: it is not freed before the section ends, which loom checks.
            shared.old.with(|old| assert_eq!(unsafe { *old }, 0));
        }
        thread.join().unwrap();
        ticks(&shared.kernel, 4);
        assert!(shared.kernel.cpu_snapshot(0).is_some_and(|seen| seen.callbacks == 0));
    });
}

/// CPU 1 unlinks, begins a grace period and reports; CPU 0 ends it, without a fence of its own.
#[test]
fn a_cookie_of_a_grace_period_that_another_cpu_ends() {
    explore(|| {
        let shared = Shared::new(started::<TreeRcu<2>>(Threads::new(), false));
        let cookie = |kernel: &Kernel<_, 2>| {
            let cookie = kernel.cookie();
            call_nothing(kernel);
            tick(kernel);
            kernel.context_switch();
            tick(kernel);
            cookie
        };
        let thread = frees_when_done(&shared, cookie, Kernel::poll);
        read(&shared);
        tick(&shared.kernel);
        shared.kernel.context_switch();
        tick(&shared.kernel);
        thread.join().unwrap();
        for cpu in [0, 1, 0, 1, 0, 1] {
            CPU.with(|own| own.set(cpu));
            shared.kernel.context_switch();
            tick(&shared.kernel);
        }
        shared.kernel.run_callbacks(1, 1);
        assert!(shared.kernel.cpu_snapshot(1).is_some_and(|seen| seen.callbacks == 0));
    });
}

/// If its wake-up is lost, loom finds that no thread can go on.
#[test]
fn a_barrier_while_another_cpu_runs_the_callbacks() {
    loom::model(|| {
        let platform = Threads { wakes: Some(Notify::new()), ..Threads::new() };
        let shared = Shared::new(started::<TreeRcu<2>>(platform, true));
        let kernel = &shared.kernel;
        // SAFETY: the box is the callback's now.
        unsafe { kernel.call(unlink(&shared), free::<Kernel<Threads, 2>>) }.unwrap();
        while !kernel.has_callbacks() {
            kernel.context_switch();
            tick(kernel);
        }
        let other = shared.clone();
        let thread = on_cpu_1(move || {
            other.kernel.idle_exit();
            other.kernel.barrier().unwrap();
            // SAFETY: the callback has run, which loom checks.
            assert_eq!(other.old.with(|old| unsafe { *old }), 1);
        });
        kernel.run_callbacks(0, 1);
        thread.join().unwrap();
    });
}

#[test]
fn a_lock_that_two_cpus_want() {
    loom::model(|| {
        let lock = Arc::new(Lock::new(UnsafeCell::new(0)));
        let other = lock.clone();
        let add = |lock: &Lock<UnsafeCell<u32>>| {
            // SAFETY: the lock is held, which loom checks.
            lock.lock().with_mut(|value| unsafe { *value += 1 });
        };
        let thread = loom::thread::spawn(move || add(&other));
        add(&lock);
        thread.join().unwrap();
        // SAFETY: the other thread has ended.
        assert_eq!(lock.lock().with(|value| unsafe { *value }), 2);
    });
}

std::thread_local! {
    /// That of the model that runs: all of its threads are one to the operating system.
    static KERNEL: Cell<Option<NonNull<Kernel<Threads, 2>>>> = const { Cell::new(None) };
}

/// The kernel of the model.
struct Here;

// SAFETY: a CPU of a model is in a section unless it is idle, or between two ticks.
unsafe impl Domain for Here {
    type Section = ();

    fn section() {}

    unsafe fn call(head: NonNull<Head>, run: Run) -> Result<Zone, Refused> {
        let kernel = KERNEL.get().unwrap();
        // SAFETY: the model keeps it; the rest is the caller's.
        unsafe { kernel.as_ref().call(head, run) }
    }
}

/// What a cell's box has in it: written before it is there, and when it is dropped.
struct Watched(UnsafeCell<u32>);

// SAFETY: loom watches it.
unsafe impl Sync for Watched {}

impl Watched {
    fn new(number: u32) -> RcuBox<Self> {
        let watched = Self(UnsafeCell::new(0));
        // SAFETY: nobody else has it.
        watched.0.with_mut(|inner| unsafe { *inner = number });
        RcuBox::new(watched)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: no reader has it, which loom checks.
        self.0.with_mut(|inner| unsafe { *inner = 0 });
    }
}

/// A few ticks of CPU 0, in no section, and then its callbacks.
fn ticks(kernel: &Kernel<Threads, 2>, count: usize) {
    for _ in 0..count {
        kernel.context_switch();
        tick(kernel);
    }
    kernel.run_callbacks(0, 10);
}

type Cells = Rcu<RcuBox<Watched>, Here>;

/// CPU 1 reads what CPU 0 has made with `make`, while CPU 0 updates it.
fn reads<T: Send + Sync + 'static>(
    make: fn() -> T,
    read: fn(&T),
    update: fn(&Kernel<Threads, 2>, &T),
) {
    explore(move || {
        let kernel = Arc::new(started(Threads::new(), false));
        KERNEL.set(Some(NonNull::from(&*kernel)));
        let made = Arc::new(make());
        let (its_kernel, its_own) = (kernel.clone(), made.clone());
        let thread = on_cpu_1(move || {
            read(&its_own);
            its_kernel.idle_enter();
        });
        update(&kernel, &made);
        ticks(&kernel, 4);
        thread.join().unwrap();
        (0..3).for_each(|_| ticks(&kernel, 4));
        assert!(kernel.cpu_snapshot(0).is_some_and(|seen| seen.callbacks == 0));
    });
}

/// CPU 1 reads a cell while CPU 0 replaces what is in it.
fn reads_cell(replace: fn(&Kernel<Threads, 2>, &Cells)) {
    let read = |cell: &Cells| {
        let guard = cell.read();
        let found = guard.get();
        // SAFETY: it is not dropped before the section ends, which loom checks.
        let number = found.0.with(|inner| unsafe { *inner });
        assert!(number == 1 || number == 2);
    };
    reads(|| Cells::new(Watched::new(1)), read, replace);
}

#[test]
fn a_cell_is_read_while_another_cpu_replaces_what_is_in_it() {
    reads_cell(|_, cell| cell.update(Watched::new(2)));
}

#[test]
fn a_cell_is_read_while_another_cpu_exchanges_what_is_in_it() {
    reads_cell(|_, cell| assert!(cell.read().compare_exchange(Watched::new(2)).is_ok()));
}

/// A node of a list, whose number is 0 before it is linked, and once it is freed.
#[repr(C)]
struct Node {
    head: Head,
    link: Link,
    number: UnsafeCell<u32>,
}

// SAFETY: loom watches the number; a node is freed by one CPU.
unsafe impl Sync for Node {}
// SAFETY: the field is there, and the list's alone.
unsafe impl Linked for Node {
    const OFFSET: usize = core::mem::offset_of!(Node, link);
}

impl Node {
    fn leaked(number: u32) -> NonNull<Self> {
        let node = Self { head: Head::new(), link: Link::new(), number: UnsafeCell::new(0) };
        // SAFETY: nobody else has it.
        node.number.with_mut(|inner| unsafe { *inner = number });
        NonNull::from(Box::leak(Box::new(node)))
    }

    unsafe fn free(head: NonNull<Head>) {
        // SAFETY: its head is at its beginning, and it was removed a grace period ago.
        let node = unsafe { Box::from_raw(head.cast::<Self>().as_ptr()) };
        // SAFETY: no reader has it, which loom checks.
        node.number.with_mut(|inner| unsafe { *inner = 0 });
    }
}

/// A list, and the node at its front.
struct Listed(RcuList<Node, Here>, NonNull<Node>);

// SAFETY: loom watches what is in the nodes.
unsafe impl Send for Listed {}
// SAFETY: as above.
unsafe impl Sync for Listed {}

#[test]
fn a_list_is_walked_while_another_cpu_adds_and_removes_nodes() {
    let make = || {
        let nodes = [1, 2].map(Node::leaked);
        let list = RcuList::new();
        // SAFETY: they are in no list.
        nodes.iter().for_each(|&node| unsafe { list.push_back(node) });
        Listed(list, nodes[0])
    };
    let read = |Listed(list, _): &Listed| {
        // SAFETY: a node is not freed before the section ends, which loom checks.
        let numbers = list.iter(&()).map(|node| node.number.with(|inner| unsafe { *inner }));
        let found: std::vec::Vec<u32> = numbers.collect();
        assert!([&[1, 2][..], &[1, 2, 3], &[2], &[2, 3]].contains(&&found[..]), "{found:?}");
    };
    reads(make, read, |kernel, &Listed(ref list, first)| {
        // SAFETY: it is in no list.
        unsafe { list.push_back(Node::leaked(3)) };
        // SAFETY: it is in the list.
        unsafe { list.remove(first) };
        // SAFETY: readers do not find it any more.
        unsafe { kernel.call(first.cast(), Node::free) }.unwrap();
    });
}

/// Delays by which a worker waits for nothing.
fn at_once() -> Published {
    let delay = Published { interval_jiffies: 0, retry_us: 0, ..Published::V5_18 };
    Published { last_retry_us: 0, ..delay }
}

/// A reader that counts itself in on CPU 1, and out on CPU 0.
#[test]
fn a_section_that_sleeps_while_another_cpu_checks_the_counts() {
    explore(|| {
        let platform = Threads::new();
        let shared = Shared::new(Srcu::<_, 2>::new(platform, at_once(), 1_000));
        let other = shared.clone();
        let thread = on_cpu_1(move || {
            let section = other.kernel.read();
            read(&other);
            CPU.with(|own| own.set(0));
            drop(section);
        });
        CPU.with(|own| own.set(0));
        let head = unlink(&shared);
        // SAFETY: the box is the callback's now.
        unsafe { shared.kernel.call(head, free::<Srcu<Threads, 2>>) }.unwrap();
        for _ in 0..3 {
            let _ = shared.kernel.run(1);
        }
        thread.join().unwrap();
        (0..4).for_each(|_| _ = shared.kernel.run(1));
        // SAFETY: all threads have ended.
        assert_eq!(shared.old.with(|old| unsafe { *old }), 1, "it was freed");
    });
}

/// One thread unlinks, and frees when a cookie is done. The other one drives a grace period, which
/// may begin before the cookie, between two sections.
#[test]
fn a_cookie_of_an_srcu_is_taken_while_another_thread_begins_a_grace_period() {
    explore(|| {
        let shared = Shared::new(Srcu::<_, 2>::new(Threads::new(), at_once(), 1_000));
        let thread = frees_when_done(&shared, Srcu::cookie, Srcu::poll);
        let section = || {
            let _section = shared.kernel.read();
            read(&shared);
        };
        section();
        let started = shared.kernel.start();
        (0..6).for_each(|_| _ = shared.kernel.run(0));
        assert!(shared.kernel.poll(started));
        section();
        thread.join().unwrap();
    });
}

/// If its wake-up is lost, loom finds that no thread can go on.
#[test]
fn a_thread_that_waits_while_another_runs_what_it_waits_for() {
    loom::model(|| {
        let platform = Threads { wakes: Some(Notify::new()), ..Threads::new() };
        let shared = Shared::new(Srcu::<_, 2>::new(platform, at_once(), 1_000));
        // SAFETY: the box is the callback's now.
        unsafe { shared.kernel.call(unlink(&shared), free::<Srcu<Threads, 2>>) }.unwrap();
        // The grace period ends, and nothing runs.
        (0..6).for_each(|_| _ = shared.kernel.run(0));
        let other = shared.clone();
        let thread = loom::thread::spawn(move || {
            other.kernel.wait_for(1);
        });
        let _ = shared.kernel.run(1);
        thread.join().unwrap();
    });
}
