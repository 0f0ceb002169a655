//! [`Srcu`]: readers that sleep and move, callbacks, waiting, and how long the worker waits.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};

use kernel::Refused;
use kernel::srcu::{AdaptiveDelay, Delay, Published, Situation, Srcu, SrcuGuard, Wait};

use crate::board::{
    Board, TICK_NS, Wires, as_thread, callback, count, counter, interrupt_after, migrate, on,
    run_callback, section, with_meanwhile,
};

const HZ: u32 = 1_000;
/// Rounds of the worker in which a grace period ends that nothing holds up.
const ENOUGH: usize = 10;

struct Domain<D = Published> {
    srcu: Srcu<Wires, 4, D>,
    board: Arc<Board>,
    /// What the worker has waited, in ticks.
    ticks: Cell<u64>,
    freed: Arc<AtomicU32>,
}

/// A section that outlives a borrow of its domain.
struct Section {
    _guard: SrcuGuard<'static, Wires, 4, Published>,
    _domain: Rc<Domain>,
}

impl Section {
    fn of(domain: &Rc<Domain>) -> Self {
        // SAFETY: it is there as long as the section, whose fields are dropped in this order.
        let forever: &'static Domain = unsafe { &*Rc::as_ptr(domain) };
        Self { _guard: forever.srcu.read(), _domain: domain.clone() }
    }
}

impl<D: Delay> Domain<D> {
    fn new(delay: D) -> Rc<Self> {
        let (wires, board) = Wires::to_board(4);
        let srcu = Srcu::new(wires, delay, HZ);
        Rc::new(Self { srcu, board, ticks: Cell::new(0), freed: counter() })
    }

    /// The worker runs, and waits as long as it is told. Returns whether it is to come again.
    fn round(&self) -> bool {
        let wait = self.srcu.run(10);
        let ns = match wait {
            None => 0,
            Some(Wait::Jiffies(jiffies)) => u64::from(jiffies) * TICK_NS,
            Some(Wait::Microseconds(microseconds)) => u64::from(microseconds) * 1_000,
        };
        self.ticks.set(self.ticks.get() + ns / TICK_NS);
        self.board.clock_ns.fetch_add(ns, SeqCst);
        wait.is_some()
    }

    /// It does so until it is to be woken. Returns how many ticks it has waited.
    fn work(&self) -> u64 {
        let before = self.ticks.get();
        assert!((0..ENOUGH).any(|_| !self.round()), "it has nothing to wait for");
        self.ticks.get() - before
    }

    fn queue(&self, run: impl FnOnce() + 'static) {
        // SAFETY: the callback is nobody else's.
        unsafe { self.srcu.call(callback(0, Box::new(run)), run_callback) }.unwrap();
    }

    fn free(&self) {
        let freed = self.freed.clone();
        self.queue(move || _ = freed.fetch_add(1, SeqCst));
    }

    /// How many objects were freed since this was asked last.
    fn freed(&self) -> u32 {
        self.freed.swap(0, SeqCst)
    }

    /// The same when the worker has run.
    fn freed_in_work(&self) -> u32 {
        self.work();
        self.freed()
    }
}

/// How often a worker was woken.
fn wakes(board: &Board) -> u32 {
    board.woken.iter().map(count).sum()
}

fn released() -> Rc<Domain> {
    Domain::new(Published::final_at(HZ))
}

#[test]
fn a_section_that_sleeps_and_moves_is_waited_for() {
    let domain = released();
    let section = on(1, || domain.srcu.read());
    domain.free();
    (0..3 * ENOUGH).for_each(|_| assert!(domain.round(), "it comes again"));
    assert_eq!(domain.freed(), 0);
    on(3, || drop(section));
    assert_eq!(domain.freed_in_work(), 1);
}

#[test]
fn a_section_that_begins_in_a_grace_period_does_not_hold_it_up() {
    let domain = released();
    let first = domain.srcu.read();
    domain.free();
    (0..ENOUGH).for_each(|_| _ = domain.round());
    let second = domain.srcu.read();
    drop(first);
    assert_eq!(domain.freed_in_work(), 1);
    domain.free();
    (0..ENOUGH).for_each(|_| _ = domain.round());
    assert_eq!(domain.freed(), 0, "but the next one");
    drop(second);
    assert_eq!(domain.freed_in_work(), 1);
}

#[test]
fn a_cookie_of_mid_grace_period_is_done_with_the_next() {
    let domain = released();
    let before = domain.srcu.cookie();
    let section = domain.srcu.read();
    let started = domain.srcu.start();
    (0..ENOUGH).for_each(|_| _ = domain.round());
    let later = domain.srcu.cookie();
    assert!(!domain.srcu.poll(before) && !domain.srcu.poll(started));
    drop(section);
    domain.work();
    assert!(domain.srcu.poll(before) && domain.srcu.poll(started));
    assert!(!domain.srcu.poll(later), "nobody has asked for that one");
    domain.srcu.start();
    domain.work();
    assert!(domain.srcu.poll(later));
}

/// Does what waits while the worker runs, and a section that has begun goes on for so many rounds.
/// Returns how many there were.
fn with_worker(
    domain: &Rc<Domain>,
    rounds: u32,
    what: impl FnOnce() -> Result<(), Refused>,
) -> u32 {
    let section = RefCell::new(Some(Section::of(domain)));
    let done = Rc::new(Cell::new(0));
    let (seen, worker) = (done.clone(), domain.clone());
    let meanwhile = move || {
        worker.round();
        seen.set(seen.get() + 1);
        if seen.get() == rounds {
            section.take();
        }
    };
    with_meanwhile(Rc::new(meanwhile), what).unwrap();
    done.get()
}

#[test]
fn synchronize_waits_for_a_section_and_is_woken() {
    for expedited in [false, true] {
        let domain = Domain::new(Published::final_at(HZ));
        let rounds = with_worker(&domain, 20, || match expedited {
            false => domain.srcu.synchronize(),
            true => domain.srcu.synchronize_expedited(),
        });
        assert!(rounds >= 20, "the section has ended first");
    }
}

/// It holds a lock, perhaps, that a later callback takes.
#[test]
fn who_waits_for_a_grace_period_is_woken_before_a_later_callback_runs() {
    let domain = released();
    let woken = Rc::new(Cell::new(None));
    let (worker, seen) = (domain.clone(), woken.clone());
    let meanwhile = move || {
        if seen.get().is_none() {
            let (board, later) = (worker.board.clone(), seen.clone());
            seen.set(Some(0));
            worker.queue(move || later.set(Some(board.wakes.load(SeqCst))));
        }
        worker.round();
    };
    with_meanwhile(Rc::new(meanwhile), || domain.srcu.synchronize()).unwrap();
    domain.work();
    assert_eq!(woken.get(), Some(1));
}

/// What a caller in a hurry waits, in ticks, if a reader is in its section in the first run: the
/// worker has preempted it. By the delay functions of 2022.
#[test]
fn a_short_section_costs_ticks_by_the_delays_of_two_kernels() {
    let delays =
        [Published::V5_18, Published::V5_19_RC1, Published::FIRST_DIFF, Published::final_at(HZ)];
    let ticks = delays.map(|delay| {
        let domain = Domain::new(delay);
        // The first round asks for the worker, and the second one is its first run.
        with_worker(&domain, 2, || domain.srcu.synchronize_expedited());
        domain.ticks.get()
    });
    assert_eq!(ticks, [0, 2, 1, 0], "a jiffy for the worker, and one for the callback");
}

#[test]
fn a_worker_that_comes_early_is_told_how_long_is_left() {
    let domain = Domain::new(AdaptiveDelay::at(HZ));
    domain.free();
    assert_eq!(domain.srcu.run(10), Some(Wait::Jiffies(1)), "nobody is in a hurry");
    domain.board.clock_ns.fetch_add(TICK_NS - 1, SeqCst);
    assert_eq!(domain.srcu.run(10), Some(Wait::Jiffies(1)));
    assert_eq!(domain.freed(), 0);
    domain.board.clock_ns.fetch_add(1, SeqCst);
    assert_eq!(domain.freed_in_work(), 1);
}

/// Whether a grace period ends in a few ticks with a clock that begins there, and is set there
/// while the worker waits.
fn ends_in_time(begins_ns: u64, set_ns: u64) {
    let domain = Domain::new(AdaptiveDelay::at(HZ));
    domain.board.clock_ns.store(begins_ns, SeqCst);
    for _ in 0..2 {
        domain.free();
        assert_eq!(domain.srcu.run(10), Some(Wait::Jiffies(1)), "{begins_ns} {set_ns}");
        if set_ns != begins_ns {
            domain.board.clock_ns.store(set_ns, SeqCst);
        }
        assert!(domain.work() <= 5, "{begins_ns} {set_ns}");
    }
    assert_eq!(domain.freed(), 2);
}

#[test]
fn a_clock_that_begins_in_its_upper_half_or_wraps_delays_nothing() {
    let tick_before = u64::MAX - TICK_NS / 2;
    let begins = [0, tick_before, tick_before - 3 * TICK_NS, (1 << 63) - 1, (1 << 63) + TICK_NS];
    begins.into_iter().for_each(|begins_ns| ends_in_time(begins_ns, begins_ns));
}

#[test]
fn a_clock_that_is_set_back_in_a_grace_period_delays_nothing() {
    let day_ns = 86_400 * 1_000_000_000;
    for (begins_ns, set_ns) in [(day_ns, 0), (day_ns, day_ns - 5 * TICK_NS), (0, u64::MAX / 3 * 2)]
    {
        ends_in_time(begins_ns, set_ns);
    }
}

#[test]
fn a_worker_is_woken_until_it_comes_and_not_for_what_it_has_seen() {
    let domain = released();
    let woken = || count(&domain.board.woken[2]);
    on(2, || domain.free());
    on(2, || domain.free());
    assert_eq!(woken(), 2);
    assert!(domain.round());
    on(2, || domain.free());
    assert_eq!(woken(), 2, "it comes by itself");
    assert_eq!(domain.freed_in_work(), 3);
    on(2, || domain.free());
    assert_eq!(woken(), 3);
}

#[test]
fn a_worker_that_was_to_come_and_has_not_is_woken_again() {
    let domain = Domain::new(AdaptiveDelay::at(HZ));
    domain.free();
    assert_eq!(domain.srcu.run(10), Some(Wait::Jiffies(1)));
    for (ns, woken) in [(0, 0), (TICK_NS, 0), (TICK_NS, 0), (1, 1)] {
        domain.board.clock_ns.fetch_add(ns, SeqCst);
        on(1, || domain.srcu.start());
        assert_eq!(count(&domain.board.woken[1]), woken);
    }
    while domain.srcu.run(0).is_some() && !domain.srcu.poll(domain.srcu.cookie()) {
        domain.board.clock_ns.fetch_add(TICK_NS, SeqCst);
        if domain.board.clock_ns.load(SeqCst) > 100 * TICK_NS {
            break; // with callbacks that are ready, and nothing else
        }
    }
    assert_eq!(domain.freed(), 0);
    let (worker, before) = (domain.clone(), wakes(&domain.board));
    let meanwhile = move || {
        if wakes(&worker.board) != before {
            worker.round();
        }
    };
    with_meanwhile(Rc::new(meanwhile), || domain.srcu.barrier()).unwrap();
    assert_eq!(domain.freed(), 1);
}

#[test]
fn who_asks_while_the_worker_leaves_loses_no_wake_up() {
    let is_within = |moment: &u32| {
        let domain = released();
        let asked = Rc::new(Cell::new(None));
        let (asks, cookie) = (domain.clone(), asked.clone());
        domain.free();
        let interrupt = move || cookie.set(Some(asks.srcu.start()));
        interrupt_after(*moment, Rc::new(interrupt));
        let is_to_come = |_| {
            let seen = wakes(&domain.board);
            domain.round() || wakes(&domain.board) != seen
        };
        assert!((0..3 * ENOUGH).any(|round| !is_to_come(round)));
        let asked = asked.get();
        assert!(asked.is_none_or(|cookie| domain.srcu.poll(cookie)), "{moment}: it sleeps");
        asked.is_some()
    };
    assert!((0..).take_while(is_within).count() > 5);
}

#[test]
fn what_is_asked_before_a_callback_panics_wakes_a_worker() {
    let domain = released();
    let later = domain.clone();
    domain.queue(move || {
        later.free();
        panic!("as the test wants");
    });
    assert!(catch_unwind(AssertUnwindSafe(|| domain.work())).is_err());
    assert_eq!(count(&domain.board.woken[0]), 2);
    assert_eq!(domain.freed_in_work(), 1);
}

#[test]
fn what_a_callback_asks_for_needs_no_wake() {
    let domain = released();
    let later = domain.clone();
    domain.queue(move || {
        assert_eq!(later.srcu.run(10), None, "a callback is no worker");
        later.free();
    });
    domain.free();
    assert_eq!(domain.freed_in_work(), 2);
    assert_eq!(count(&domain.board.woken[0]), 2, "for the first two");
}

#[test]
fn a_budget_bounds_the_callbacks_of_a_run() {
    let domain = released();
    (0..25).for_each(|_| domain.free());
    let mut seen = Vec::new();
    while domain.round() {
        seen.push(domain.freed());
    }
    seen.retain(|&freed| freed != 0);
    assert_eq!((seen, domain.freed()), (vec![10, 10], 5));
}

#[test]
fn a_barrier_waits_for_callbacks_and_begins_no_grace_period() {
    let domain = Domain::new(Published::final_at(HZ));
    domain.srcu.barrier().expect("there is none");
    (0..25).for_each(|_| domain.free());
    let rounds = with_worker(&domain, 20, || domain.srcu.barrier());
    assert!(rounds >= 20 && domain.freed() == 25);
    assert_eq!(domain.srcu.run(10), None);
}

#[test]
fn who_may_not_wait_is_refused() {
    let domain = released();
    assert_eq!(section(|| domain.srcu.synchronize()), Err(Refused::InSection));
    assert_eq!(section(|| domain.srcu.barrier()), Err(Refused::InSection));
    let (inner, has_run) = (domain.clone(), counter());
    let ran = has_run.clone();
    domain.queue(move || {
        ran.fetch_add(1, SeqCst);
        assert_eq!(inner.srcu.synchronize_expedited(), Err(Refused::InCallback));
        assert_eq!(inner.srcu.barrier(), Err(Refused::InCallback));
    });
    domain.work();
    assert_eq!(count(&has_run), 1);
    let head = callback(0, Box::new(|| ()));
    // SAFETY: this thread alone has it: the second time is refused.
    let twice = [0; 2].map(|_| unsafe { domain.srcu.call(head, run_callback) });
    assert_eq!(twice, [Ok(()), Err(Refused::Queued)]);
    domain.work();
}

#[test]
fn a_callback_that_panics_has_run_and_the_next_ones_do() {
    let domain = Domain::new(Published::final_at(HZ));
    domain.queue(|| panic!("as the test wants"));
    domain.free();
    assert!(catch_unwind(AssertUnwindSafe(|| domain.work())).is_err() && domain.freed() == 0);
    with_worker(&domain, 1, || domain.srcu.barrier());
    assert_eq!(domain.freed(), 1);
}

thread_local! {
    /// How often a [`Panics`] was asked something, and which time it panics.
    static ASKED: Cell<u32> = const { Cell::new(0) };
    static PANICS_AT: Cell<u32> = const { Cell::new(0) };
}

/// A delay function that panics once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Panics(Published);

impl Panics {
    fn at(time: u32, otherwise: Published) -> Self {
        ASKED.set(0);
        PANICS_AT.set(time);
        Self(otherwise)
    }

    fn asked(&self) -> &Published {
        ASKED.set(ASKED.get() + 1);
        assert!(ASKED.get() != PANICS_AT.get(), "as the test wants");
        &self.0
    }
}

impl Delay for Panics {
    fn extra_check(&self, count: &mut u32, now: Situation) -> bool {
        self.asked().extra_check(count, now)
    }

    fn asks_after_each_check(&self) -> bool {
        self.asked().asks_after_each_check()
    }

    fn spin_us(&self, is_last: bool) -> u32 {
        self.asked().spin_us(is_last)
    }

    fn first_wait(&self, count: &mut u32, now: Situation) -> Wait {
        self.asked().first_wait(count, now)
    }

    fn wait(&self, count: &mut u32, now: Situation) -> Wait {
        self.asked().wait(count, now)
    }

    fn callback_delay_jiffies(&self, count: &mut u32, now: Situation) -> u32 {
        self.asked().callback_delay_jiffies(count, now)
    }

    fn runs_per_jiffy_max(&self) -> u32 {
        self.asked().runs_per_jiffy_max()
    }
}

fn unwinds<R>(what: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(what)).is_err()
}

/// The head of a `synchronize` is on the stack that unwinds. And no grace period began later, as
/// the one was in progress for ever.
#[test]
fn who_is_unwound_by_a_delay_function_leaves_no_callback_behind() {
    let domain = Domain::new(Panics::at(1, Published::final_at(HZ)));
    assert!(unwinds(|| domain.srcu.synchronize()));
    assert_eq!(domain.srcu.run(10), None);
    domain.free();
    domain.work();
    assert_eq!(domain.freed(), 1);
}

/// It flipped the index a second time, so that nobody waited for a section; or asked again while it
/// unwound; or nobody was to come any more.
#[test]
fn wherever_a_delay_function_panics_sections_are_waited_for_and_callbacks_run() {
    let is_asked = |time: u32, delay: Published| {
        let domain = Domain::new(Panics::at(time, delay));
        let works = || {
            for _ in 0..ENOUGH {
                let seen = wakes(&domain.board);
                let is_woken = !unwinds(|| domain.round()) || wakes(&domain.board) != seen;
                assert!(is_woken, "{time}: nobody comes");
            }
        };
        let freed = domain.freed.clone();
        let head = callback(0, Box::new(move || _ = freed.fetch_add(1, SeqCst)));
        let section = domain.srcu.read();
        // SAFETY: this thread alone has it, and the last call alone succeeds.
        let call = || unsafe { domain.srcu.call(head, run_callback) }.unwrap();
        if unwinds(call) {
            call();
        }
        works();
        assert_eq!(domain.freed(), 0, "{time}: in a section");
        drop(section);
        works();
        assert_eq!(domain.freed(), 1, "{time}");
        assert_eq!(domain.srcu.run(10), None);
        ASKED.get() >= time
    };
    for asks_after_each_check in [false, true] {
        for interval_jiffies in [0, 1] {
            let delay = Published {
                interval_jiffies,
                asks_after_each_check,
                runs_per_jiffy_max: Some(3),
                retry_us: 0,
                last_retry_us: 0,
                ..Published::V5_18
            };
            let step = if cfg!(miri) { 31 } else { 1 };
            let times = (1..).step_by(step).take_while(|time| is_asked(*time, delay));
            assert!(times.count() > 10 / step);
        }
    }
}

/// An object that is marked when it may be freed.
struct Object(AtomicBool);

/// A thread for each CPU: readers that move in their sections, an updater that waits and one that
/// does not, and the worker.
#[test]
fn no_reader_sees_an_object_after_a_grace_period() {
    static OBJECTS: [Object; 400] = [const { Object(AtomicBool::new(false)) }; 400];
    static CURRENT: AtomicUsize = AtomicUsize::new(0);
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    /// The worker sleeps until it is woken once more: one more than it was before, or 0.
    static ASLEEP_AT: AtomicU32 = AtomicU32::new(0);
    let updates = if cfg!(miri) { 20 } else { OBJECTS.len() - 1 };
    let domain = Domain::new(Published { retry_us: 0, last_retry_us: 0, ..Published::V5_18 });
    domain.board.has_threads.store(true, SeqCst);
    let (srcu, board) = (&domain.srcu, &*domain.board);
    /// A thread ends, perhaps by a panic: the others do too.
    struct Over;
    impl Drop for Over {
        fn drop(&mut self) {
            IS_OVER.store(true, SeqCst);
        }
    }
    let (looks, its_board) = (Cell::new(0), domain.board.clone());
    let meanwhile = Rc::new(move || {
        assert!(!IS_OVER.load(SeqCst), "another thread has failed");
        // Only the waiter might wake the worker, and it has not.
        let is_asleep = ASLEEP_AT.load(SeqCst) == wakes(&its_board) + 1;
        looks.set(if is_asleep { looks.get() + 1 } else { 0 });
        assert!(looks.get() < 10, "a wake-up is lost");
        std::thread::yield_now();
    });
    let read = move |cpu| {
        let _over = Over;
        migrate(cpu);
        while !IS_OVER.load(SeqCst) {
            let section = srcu.read();
            let object = &OBJECTS[CURRENT.load(SeqCst)];
            migrate((cpu + 1) % 4);
            std::thread::yield_now();
            assert!(!object.0.load(SeqCst), "it may be freed, and is read");
            drop(section);
            migrate(cpu);
        }
    };
    let work = move || {
        let _over = Over;
        let number = 9; // no CPU's
        as_thread(number, || {
            while !IS_OVER.load(SeqCst) {
                let seen = wakes(board);
                if srcu.run(3).is_none() {
                    ASLEEP_AT.store(seen + 1, SeqCst);
                    while wakes(board) == seen && !IS_OVER.load(SeqCst) {
                        std::thread::yield_now();
                    }
                    ASLEEP_AT.store(0, SeqCst);
                }
                board.clock_ns.fetch_add(TICK_NS, SeqCst);
                std::thread::yield_now();
            }
        });
    };
    std::thread::scope(|threads| {
        let others = [1, 2, 3].map(|cpu| threads.spawn(move || read(cpu)));
        let worker = threads.spawn(work);
        for (old, object) in OBJECTS[..updates].iter().enumerate() {
            CURRENT.store(old + 1, SeqCst);
            if old % 2 == 0 {
                with_meanwhile(meanwhile.clone(), || srcu.synchronize()).unwrap();
                object.0.store(true, SeqCst);
            } else {
                let head = callback(0, Box::new(|| object.0.store(true, SeqCst)));
                // SAFETY: the callback is nobody else's.
                unsafe { srcu.call(head, run_callback) }.unwrap();
            }
        }
        with_meanwhile(meanwhile.clone(), || srcu.barrier()).unwrap();
        IS_OVER.store(true, SeqCst);
        others.into_iter().for_each(|other| other.join().unwrap());
        worker.join().unwrap();
    });
    assert!(OBJECTS[..updates].iter().all(|object| object.0.load(SeqCst)));
}
