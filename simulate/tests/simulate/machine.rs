//! The machine that engines find themselves on, seen by engines that only look at it.

use std::cell::RefCell;
use std::rc::Rc;

use kernel::engine::{Access, Callback, Engine, Host, Line, Mode};
use simulate::cost::Costs;
use simulate::setup::{MICROSECOND, MILLISECOND, SECOND};
use simulate::{Report, Setup, Workload, run_engine};

/// What was reported to an engine, with what it counts as time: ticks of CPU 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    ticks: u64,
    timers: Vec<u64>,
    softirqs: u64,
    switches: u64,
    eqs: u64,
    modes: [u64; 3],
    cond_rescheds: u64,
}

/// What an engine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// Nothing, not even run callbacks.
    Watches,
    /// Asks for its timer, in so many jiffies, each time that it has come.
    Timer(u32),
    /// Raises itself from its softirq for ever, once the first tick has raised it.
    Spins,
    /// Reschedules CPU 1 on each tick of CPU 0.
    Pokes,
    /// Takes a lock on each tick.
    Locks,
    /// Runs each callback at once: no engine at all.
    RunsAtOnce,
}

#[derive(Debug)]
struct Probe {
    habit: Habit,
    seen: Rc<RefCell<Seen>>,
}

impl Engine for Probe {
    fn queue(&mut self, cpu: usize, _: Callback, host: &mut dyn Host) {
        if self.habit == Habit::RunsAtOnce {
            host.invoke(cpu, 1);
        }
    }

    fn context_switch(&mut self, _: usize, _: &mut dyn Host) {
        self.seen.borrow_mut().switches += 1;
    }

    fn tick(&mut self, cpu: usize, mode: Mode, host: &mut dyn Host) {
        let mut seen = self.seen.borrow_mut();
        seen.modes[mode as usize] += 1;
        match self.habit {
            Habit::Locks => host.touch(Line::Global(0), Access::Lock),
            Habit::Spins if seen.ticks == 0 => host.raise(cpu),
            _ => {}
        }
        if cpu != 0 {
            return;
        }
        seen.ticks += 1;
        match self.habit {
            Habit::Timer(jiffies) if seen.ticks == 1 => host.timer(jiffies),
            Habit::Pokes => host.resched(1),
            _ => {}
        }
    }

    fn softirq(&mut self, cpu: usize, host: &mut dyn Host) {
        self.seen.borrow_mut().softirqs += 1;
        if self.habit == Habit::Spins {
            host.raise(cpu);
        }
    }

    fn timer(&mut self, _: usize, host: &mut dyn Host) {
        let mut seen = self.seen.borrow_mut();
        let ticks = seen.ticks;
        seen.timers.push(ticks);
        if let Habit::Timer(jiffies) = self.habit {
            host.timer(jiffies);
        }
    }

    fn cond_resched(&mut self, cpu: usize, host: &mut dyn Host) {
        self.seen.borrow_mut().cond_rescheds += 1;
        host.touch(Line::Cpu(cpu), Access::Read);
    }

    fn enter_eqs(&mut self, _: usize, _: &mut dyn Host) {
        self.seen.borrow_mut().eqs += 1;
    }

    fn exit_eqs(&mut self, _: usize, _: &mut dyn Host) {}

    fn is_holdout(&self, _: usize, _: usize) -> bool {
        false
    }

    fn waiting(&self, _: usize) -> u64 {
        0
    }
}

fn ticking(cpus: usize) -> Setup {
    Setup {
        cpus,
        tickless: false,
        warm_up: 0,
        duration: SECOND,
        background_every: 0,
        ..Setup::default()
    }
}

fn workload(name: &str, numbers: &[(&str, u64)]) -> Workload {
    let mut workload = Workload::named(name).unwrap();
    for (name, value) in numbers {
        workload.set(name, *value).unwrap();
    }
    workload
}

fn probe(setup: &Setup, habit: Habit, workload: &Workload) -> (Report, Seen) {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let engine = Box::new(Probe { habit, seen: Rc::clone(&seen) });
    let report = run_engine(setup, engine, "probe", workload).unwrap();
    let seen = seen.borrow().clone();
    (report, seen)
}

/// Work without end, no callbacks.
fn busy() -> Workload {
    workload("read-mostly", &[("operations_per_call", 0)])
}

#[test]
fn a_timer_of_d_jiffies_comes_at_the_next_tick_but_d() {
    for (hz, jiffies) in [(250, 1), (250, 3), (1_000, 1), (100, 7)] {
        let setup = Setup { hz, ..ticking(2) };
        let (_, seen) = probe(&setup, Habit::Timer(jiffies), &workload("idle", &[]));
        // Asked for in a tick, or just after one: the wheel's bucket is one later.
        let step = u64::from(jiffies) + 1;
        let count = (u64::from(hz) - 1) / step;
        assert!(seen.timers.len() as u64 >= count - 1, "{hz} {jiffies}: {:?}", seen.timers);
        assert!(seen.timers.windows(2).all(|pair| pair[1] - pair[0] == step), "{:?}", seen.timers);
    }
}

#[test]
fn ticks_come_hz_times_a_second_and_find_what_there_is() {
    let (report, seen) = probe(&ticking(4), Habit::Watches, &busy());
    // The first of CPU 0 is a jiffy after the start.
    assert!((4 * 250 - 4..=4 * 250).contains(&report.machinery.ticks));
    let [user, kernel, idle] = seen.modes;
    assert_eq!((idle, seen.eqs), (0, 0));
    let share = 100 * kernel / (user + kernel);
    assert!((64..=76).contains(&share), "{share} % of ticks in the kernel, of 70");
    // An idle machine without ticks has next to none, and sleeps in extended quiescent states.
    let setup = Setup { tickless: true, ..ticking(4) };
    let (report, seen) = probe(&setup, Habit::Watches, &workload("idle", &[]));
    assert!(report.machinery.ticks < 20 && seen.eqs > 10, "{:?} {seen:?}", report.machinery);
}

/// What an engine that looks at `cond_resched()` does in it is charged when the tick comes: that
/// must not look like a kernel that was interrupted.
#[test]
fn an_engine_that_hears_of_cond_resched_sees_ticks_in_user_mode() {
    let calls = workload("read-mostly", &[("operations_per_call", 0), ("cond_resched_ns", 700)]);
    let (_, seen) = probe(&ticking(4), Habit::Watches, &calls);
    let share = 100 * seen.modes[Mode::User as usize] / seen.modes.iter().sum::<u64>();
    assert!((24..=36).contains(&share), "{share} % of ticks in user mode, of 30");
    assert!(seen.cond_rescheds > 5_000_000, "{}", seen.cond_rescheds);
    // In a preemptible kernel it does nothing.
    let setup = Setup { preemptible: true, ..ticking(4) };
    assert_eq!(probe(&setup, Habit::Watches, &calls).1.cond_rescheds, 0);
}

#[test]
fn ksoftirqd_shares_with_the_task_and_has_an_idle_cpu_alone() {
    let (report, _) = probe(&ticking(1), Habit::Spins, &busy());
    let share = report.time.engine_ppm() / 10_000;
    assert!((45..=55).contains(&share), "{share} % beside a task");
    assert!(report.worker_awake_max_ns > SECOND - 10 * MILLISECOND, "it never comes to rest");
    let setup = Setup { warm_up: 50 * MILLISECOND, duration: 100 * MILLISECOND, ..ticking(1) };
    let (short, _) = probe(&setup, Habit::Spins, &busy());
    assert_eq!(short.worker_awake_max_ns, setup.duration, "the warm-up is not counted");
    let (report, _) = probe(&ticking(1), Habit::Spins, &workload("idle", &[]));
    let share = report.time.engine_ppm() / 10_000;
    assert!(share >= 97, "{share} % of an idle CPU");
    let nice = Setup { ksoftirqd_percent: 10, ..ticking(1) };
    let (report, _) = probe(&nice, Habit::Spins, &busy());
    let share = report.time.engine_ppm() / 10_000;
    assert!((6..=12).contains(&share), "{share} % if it is nice");
}

#[test]
fn a_poke_is_an_interrupt_and_a_pass_through_the_scheduler() {
    let usual = probe(&ticking(2), Habit::Watches, &busy()).1.switches;
    let (report, seen) = probe(&ticking(2), Habit::Pokes, &busy());
    let pokes = seen.ticks;
    assert_eq!(report.machinery.ipis, pokes);
    assert!(seen.switches - usual >= pokes - 1, "{} of {pokes}", seen.switches - usual);
    assert_eq!(report.machinery.forced_switches, seen.switches - usual);
}

/// A CPU in a long section is not rescheduled before its end; in a preemptible kernel neither,
/// since the section is what readers rely on.
#[test]
fn a_section_is_not_interrupted_by_the_scheduler() {
    let sections = workload(
        "long-readers",
        &[("readers_on_every_cpus", 1), ("read_us", 100_000_000), ("pause_us", 1)],
    );
    for preemptible in [false, true] {
        let setup = Setup { preemptible, ..ticking(2) };
        let (_, seen) = probe(&setup, Habit::Pokes, &sections);
        assert!(seen.switches <= 2, "{}", seen.switches);
    }
    // The same with a loop that offers to be rescheduled.
    let exits = workload("exit-files", &[("exits_on_every_cpus", 1), ("files", 1_000_000)]);
    let (_, seen) = probe(&ticking(2), Habit::Pokes, &exits);
    assert!(seen.switches >= seen.ticks - 10, "{} of {}", seen.switches, seen.ticks);
    assert!(seen.cond_rescheds > 500_000, "one for each file: {}", seen.cond_rescheds);
}

#[test]
fn locks_cost_what_they_should_and_wait_for_each_other() {
    // All ticks of one CPU: the lock stays in its cache.
    let costs = Costs { lock: 10_000_000, lock_transfer: 30_000_000, ..Costs::modern() };
    let setup = Setup { costs, ..ticking(1) };
    let engine_ns = |report: &Report| report.time.engine_ns / report.machinery.ticks;
    let (report, _) = probe(&setup, Habit::Locks, &busy());
    assert!((10_000..10_200).contains(&engine_ns(&report)), "{}", engine_ns(&report));
    // Of two in turn: it is sent each time, but no task waits, half a jiffy apart.
    let (report, _) = probe(&Setup { cpus: 2, ..setup.clone() }, Habit::Locks, &busy());
    assert!((30_000..30_200).contains(&engine_ns(&report)), "{}", engine_ns(&report));
    assert_eq!(report.lines.lock_contended, 0);
    // A hundred and more want it, 4 ms / 200 = 20 us apart, for 30 us each: the queue grows.
    let (report, _) = probe(&Setup { cpus: 200, ..setup }, Habit::Locks, &busy());
    assert!(report.lines.lock_contended > report.lines.lock_visits / 2, "{:?}", report.lines);
}

#[test]
fn callbacks_are_charged_for_and_their_memory_is_counted() {
    let costs = Costs { callback: 2 * 1_000_000, ..Costs::modern() };
    let setup = Setup { costs, ..ticking(2) };
    let flood = workload("update-flood", &[("bytes", 100), ("chunk_operations", 10)]);
    let (report, _) = probe(&setup, Habit::RunsAtOnce, &flood);
    let callbacks = report.callbacks;
    assert!(callbacks.queued > 100_000 && callbacks.queued - callbacks.invoked < 20);
    assert!(report.time.callback_ns.abs_diff(2_000 * callbacks.invoked) < 100 * MICROSECOND);
    assert_eq!((callbacks.waiting_peak, callbacks.waiting_bytes_peak), (10, 1_000));
    assert!(callbacks.early_batches > 0, "no engine at all, and nobody noticed");
    let (report, _) = probe(&setup, Habit::Watches, &flood);
    let callbacks = report.callbacks;
    assert_eq!((callbacks.invoked, callbacks.waiting_peak), (0, callbacks.queued));
    assert_eq!(callbacks.waiting_bytes_peak, 100 * callbacks.queued);
}

#[test]
fn slab_pages_are_visited_and_charged_for() {
    let setup = Setup { duration: 100 * MILLISECOND, ..ticking(2) };
    let slab = |report: &Report| report.slab.unwrap();
    let (report, _) = probe(&setup, Habit::RunsAtOnce, &workload("open-close", &[]));
    let (quick, quick_operations) = (slab(&report), report.operations);
    assert_eq!(quick.allocations, report.callbacks.queued);
    assert_eq!(quick.frees, report.callbacks.invoked);
    let (visits, operations) = (quick.node_lock_visits, quick.allocations + quick.frees);
    assert!(visits * 1_000 < operations, "what is freed at once stays: {quick:?}");
    // Never freed: a page for each 64 objects.
    let costly = workload("open-close", &[("slab_fresh_page_ns", 64_000)]);
    let (report, _) = probe(&setup, Habit::Watches, &costly);
    let kept = slab(&report);
    assert_eq!((kept.frees, kept.pages_given_back), (0, 0));
    assert!(kept.pages_taken.abs_diff(kept.allocations / 64) <= 2);
    assert!(report.operations * 3 < quick_operations * 2, "a microsecond more for each");
    let none = workload("open-close", &[("slab_objects_per_page", 0)]);
    assert_eq!(probe(&setup, Habit::Watches, &none).0.slab, None);
}

/// Below half of the longest task's work, the others had half of it all the same.
#[test]
fn tasks_of_a_round_were_given_half_of_the_longest_ones_work_if_less_was_asked_for() {
    for percent in [0, 10, 30, 50, 70, 100] {
        let rounds = workload("dcachebench", &[("share_percent", percent)]);
        let (report, _) = probe(&ticking(4), Habit::Watches, &rounds);
        // One of four has all of it.
        let (expected, busy) = ((100 + 3 * percent) / 4, report.time.busy_ppm() / 10_000);
        assert!(busy.abs_diff(expected) <= 3, "{busy} % busy, {expected} expected");
    }
}

/// They were counted from the last sample before the window on, up to 0.6 jiffies earlier.
#[test]
fn accesses_before_the_window_were_counted_and_callbacks_that_waited_from_before_were_not() {
    for (warm_up, duration) in [(41, 1), (43, 2), (45, 3), (47, 20), (99, 1)] {
        let [warm_up, duration] = [warm_up, duration].map(|ms| ms * MILLISECOND);
        let setup = Setup { warm_up, duration, hz: 100, ..ticking(4) };
        let (report, _) = probe(&setup, Habit::Locks, &busy());
        assert_eq!(report.lines.lock_visits, report.machinery.ticks, "{warm_up} {duration}");
    }
    let [warm_up, duration] = [20, 1].map(|us| us * MICROSECOND);
    let setup = Setup { warm_up, duration, ..ticking(1) };
    let opens = workload("open-close", &[("operation_ns", 1_000), ("chunk_operations", 10)]);
    let (report, _) = probe(&setup, Habit::Watches, &opens);
    assert_eq!(report.slab.map(|slab| slab.allocations), Some(report.callbacks.queued));
    assert!(report.callbacks.waiting_peak >= 10, "{:?}", report.callbacks);
}
