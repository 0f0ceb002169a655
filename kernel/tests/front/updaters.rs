//! Callbacks, cookies, waiting and barriers.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use kernel::{GracePeriods, Head, Refused, Zone};

use crate::board::{Machine, on, section, under_each_engine, variants, with_one_idle};

/// Its head is at its beginning.
#[repr(C)]
struct Again {
    head: Head,
    machine: Rc<Machine<2>>,
    runs: Cell<u32>,
}

impl Again {
    fn queue(&self) {
        // SAFETY: the test keeps it until it has run.
        on(0, || unsafe { self.machine.kernel.call(NonNull::from(self).cast(), Self::run) })
            .unwrap();
    }

    unsafe fn run(head: NonNull<Head>) {
        // SAFETY: it was queued above.
        let again = unsafe { head.cast::<Self>().as_ref() };
        again.runs.set(again.runs.get() + 1);
        if again.runs.get() < 3 {
            again.queue();
        }
    }
}

#[test]
fn a_head_may_be_queued_again_by_its_own_callback() {
    let machine = with_one_idle();
    let again = Again { head: Head::new(), machine: machine.clone(), runs: Cell::new(0) };
    again.queue();
    machine.jiffies(100, [0]);
    assert_eq!(again.runs.get(), 3);
}

#[test]
fn a_callback_that_runs_callbacks_runs_none() {
    let machine = with_one_idle();
    machine.queue(|machine| assert!(!machine.kernel.run_callbacks(0, 100)));
    machine.free(0);
    assert_eq!(machine.freed_in(20, [0]), 1, "the second one came later, and once");
}

#[test]
fn a_callback_that_panics_has_run_and_the_next_ones_do() {
    let machine = with_one_idle();
    machine.queue(|_| panic!("as the test wants"));
    machine.free(0);
    let unwound = catch_unwind(AssertUnwindSafe(|| machine.jiffies(20, [0])));
    assert!(unwound.is_err() && machine.freed() == 0);
    machine.waits(0, |machine| machine.jiffy(0), |kernel| kernel.barrier());
    assert_eq!(machine.freed(), 1);
    assert_eq!(machine.kernel.cpu_snapshot(0).unwrap().callbacks, 0);
}

#[test]
fn a_cpu_at_rest_looks_after_a_callback_that_it_queues() {
    under_each_engine!(2, |machine| {
        on(1, || machine.kernel.idle_enter());
        for expected in 1..=3 {
            machine.jiffies(40, [0]);
            machine.free(0);
            assert_eq!(machine.freed_in(40, [0]), 1, "callback {expected}");
        }
    });
}

/// CPU 0 queues a callback of no bytes, then CPU `from` one of 1,000, and `between` is done: the
/// next one of no bytes is told that CPU 0's share of 1,000 is full, until all three have run.
fn is_told_of_bytes(from: usize, between: impl Fn(&Machine<2>)) {
    let machine = Machine::with(2, |options| options.bytes_max = 2_000);
    if from == 0 {
        on(1, || machine.kernel.idle_enter());
    }
    assert_eq!(machine.free(0), Zone::Free);
    assert_eq!(machine.free_of(from, 1_000), Zone::Full, "of a share of 1,000");
    between(&machine);
    assert_eq!(machine.free(0), Zone::Full);
    assert_eq!(machine.freed_in(40, [0]), 3);
    assert_eq!(machine.free(0), Zone::Free);
    machine.jiffies(40, [0]);
}

#[test]
fn callbacks_of_no_bytes_are_told_of_the_bytes_of_others() {
    is_told_of_bytes(0, |_| {});
}

#[test]
fn callbacks_of_no_bytes_are_told_of_the_bytes_of_a_dead_cpu() {
    is_told_of_bytes(1, |machine| machine.stop(1, 0));
}

#[test]
fn a_flood_is_told_and_runs_to_its_end() {
    let calls = if cfg!(miri) { 300 } else { 30_000 };
    let machine = Machine::<2>::with(2, |options| options.callbacks_max = 400);
    on(1, || machine.kernel.idle_enter());
    let zones: Vec<Zone> = (0..calls).map(|_| machine.free(0)).collect();
    let first = |zone| zones.iter().position(|&one| one == zone);
    assert_eq!((first(Zone::Expedite), first(Zone::Full)), (Some(149), Some(199)));
    assert_eq!(machine.freed_in(50, [0]), calls);
    assert_eq!(machine.free(0), Zone::Free);
    machine.jiffies(20, [0]);
}

#[test]
fn a_cookie_is_done_after_a_full_grace_period() {
    let machine = with_one_idle();
    let early = machine.kernel.cookie();
    machine.free(0);
    machine.jiffies(2, [0]);
    assert!(machine.kernel.snapshot().unwrap().sequence.in_progress());
    let late = machine.kernel.cookie();
    assert!(late != early && !machine.kernel.poll(early));
    machine.jiffies(20, [0]);
    assert!(machine.kernel.poll(early) && !machine.kernel.poll(late), "it began before");
    machine.waits(0, |machine| machine.jiffy(0), |kernel| kernel.wait(late));
    assert!(machine.kernel.poll(late));
    on(0, || machine.kernel.wait(late)).expect("it has ended: nothing is waited for");
}

#[test]
fn synchronize_on_the_only_cpu_waits_for_nothing() {
    for variant in variants(3) {
        let machine = Machine::<20>::with(1, |options| options.tree.variant = variant);
        on(0, || machine.kernel.synchronize()).unwrap();
        machine.free(0);
        machine.jiffy(0);
        // Beside a grace period in progress.
        on(0, || machine.kernel.synchronize()).unwrap();
        on(0, || machine.kernel.synchronize_expedited()).unwrap();
        assert_eq!(machine.board.waits.load(SeqCst), 0, "{variant:?}");
        machine.jiffies(20, [0]);
    }
}

#[test]
fn synchronize_needs_no_callback_and_no_tick_but_its_own() {
    let machine = with_one_idle();
    machine.waits(0, |machine| machine.jiffy(0), |kernel| kernel.synchronize());
    // The caller's CPU goes idle meanwhile.
    let is_idle = Cell::new(false);
    let idle = move |machine: &Machine<2>| {
        if !is_idle.replace(true) {
            assert!(on(0, || machine.kernel.idle_enter()), "somebody waits here");
        }
        machine.busy_tick(0);
    };
    machine.waits(0, idle, |kernel| kernel.synchronize());
}

/// Those of these CPUs that were asked to reschedule do so.
fn do_as_asked<const CPUS: usize, E: GracePeriods<CPUS> + 'static>(
    machine: &Machine<CPUS, E>,
    cpus: std::ops::Range<usize>,
) {
    for cpu in cpus.filter(|&cpu| machine.is_asked_to_reschedule(cpu)) {
        on(cpu, || machine.kernel.context_switch());
    }
}

#[test]
fn expedited_beside_a_normal_grace_period_ends_at_once() {
    let machine = Machine::<4>::booted(4);
    on(3, || machine.kernel.idle_enter());
    machine.free(1);
    machine.jiffies(2, [1]);
    assert!(machine.kernel.snapshot().unwrap().sequence.in_progress());
    // No tick at all: CPUs do what they were asked to.
    machine.waits(0, |machine| do_as_asked(machine, 0..4), |kernel| kernel.synchronize_expedited());
    assert_eq!(machine.reschedules(3), 0, "idle");
    assert!(machine.reschedules(1) >= 1 && machine.reschedules(2) >= 1);
    assert_eq!(machine.freed_in(3, [1]), 1, "it has sped up the normal one too");
}

#[test]
fn an_expedited_wait_interrupts_each_cpu_that_comes_to_hold_it_up() {
    under_each_engine!(8, |machine| {
        on(7, || machine.kernel.idle_enter());
        for _ in 0..3 {
            // The others are in the kernel, each with one thread, and do what they were asked to.
            let meanwhile = |machine: &Machine<8, E>| do_as_asked(machine, 1..7);
            machine.waits(0, meanwhile, |kernel| kernel.synchronize_expedited());
        }
        assert_eq!(machine.reschedules(7), 0, "idle");
        let asked: Vec<u32> = (1..7).map(|cpu| machine.reschedules(cpu)).collect();
        assert!(asked.iter().all(|&asked| (3..20).contains(&asked)), "{asked:?}");
    });
}

#[test]
fn a_caller_in_a_section_is_refused() {
    let machine = Machine::<2>::lenient(2);
    let in_section = Err(Refused::InSection);
    section(|| {
        assert_eq!(machine.kernel.synchronize(), in_section);
        assert_eq!(machine.kernel.synchronize_expedited(), in_section);
        assert_eq!(machine.kernel.barrier(), in_section);
        assert_eq!(machine.kernel.wait(machine.kernel.cookie()), in_section);
    });
    assert_eq!(machine.misuses().0, 4);
}
