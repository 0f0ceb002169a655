//! The hooks at their edges: each test moves between CPUs, so its order is the one it says.

use crate::board::{ENOUGH, Machine, PATIENCE, TICK_NS, on, under_each_engine};
use kernel::engine::store::Fixed;
use kernel::engine::tree::Variant;
use kernel::engine::{on_demand, poll, token};
use kernel::{Driven, TreeRcu};
use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;

#[test]
fn a_cpu_that_was_idle_in_one_grace_period_is_waited_for_by_the_next() {
    under_each_engine!(2, |machine| {
        for _ in 0..3 {
            machine.free(0);
            machine.jiffies(2, [0]);
            on(1, || machine.kernel.idle_enter());
            assert_eq!(machine.freed_in(ENOUGH, [0]), 1);
            on(1, || machine.kernel.idle_exit());
            machine.assert_is_waited_for(1);
        }
    });
}

#[test]
fn idle_cpus_hold_nothing_up_and_are_never_woken() {
    under_each_engine!(4, |machine| {
        for cpu in 1..4 {
            assert!(!on(cpu, || machine.kernel.idle_enter()), "nothing to do: the tick may stop");
        }
        for _ in 0..5 {
            machine.free(0);
            assert_eq!(machine.freed_in(ENOUGH, [0]), 1);
        }
        assert!((1..4).all(|cpu| machine.reschedules(cpu) == 0));
    });
}

#[test]
fn a_cpu_that_goes_idle_while_a_scan_looks_is_seen_by_the_next() {
    let machine = Machine::<2>::booted(2);
    machine.free(0);
    // Scanned once or more, and CPU 1 was awake.
    assert_eq!(machine.freed_in(6, [0]), 0);
    on(1, || machine.kernel.idle_enter());
    assert_eq!(machine.freed_in(ENOUGH, [0]), 1);
    // In and out between two scans.
    on(1, || machine.kernel.idle_exit());
    machine.free(0);
    machine.jiffies(5, [0]);
    on(1, || machine.kernel.idle_enter());
    on(1, || machine.kernel.idle_exit());
    assert_eq!(machine.freed_in(ENOUGH, [0]), 1);
    assert_eq!(machine.reschedules(1), 0);
}

#[test]
fn a_cpu_that_goes_idle_with_callbacks_keeps_its_tick_and_needs_no_other() {
    under_each_engine!(2, |machine| {
        // Nobody has asked for a grace period yet.
        machine.free(0);
        assert!(on(0, || machine.kernel.idle_enter()), "the tick must go on");
        assert!(!on(1, || machine.kernel.idle_enter()));
        let mut ticks = 0;
        while machine.busy_tick(0) {
            ticks += 1;
            assert!(ticks < ENOUGH, "it has callbacks still");
            machine.idle_work(0);
        }
        assert_eq!(machine.freed(), 1);
    });
}

#[test]
fn a_busy_cpu_is_asked_to_reschedule_when_patience_is_at_its_end() {
    let machine = Machine::<3>::booted(3);
    on(2, || machine.kernel.user_enter());
    machine.free(0);
    // A tick in which it begins, and one scan may come late.
    machine.jiffies(PATIENCE as usize, [0]);
    assert_eq!(machine.reschedules(1), 0, "not yet");
    machine.jiffies(10, [0]);
    assert_eq!(machine.reschedules(1), 1, "once");
    assert_eq!(machine.reschedules(2), 0, "in user mode it is left alone");
    on(1, || machine.kernel.context_switch());
    // It need not tick.
    assert_eq!(machine.freed_in(5, [0]), 1, "the next scan sees that it has passed");
}

#[test]
fn a_cpu_that_leaves_idle_as_an_engine_forces_it_is_rescheduled_once_a_scan_finds_it_awake() {
    // Those that reschedule a CPU which runs one thread in the kernel.
    under_each_engine!(@ {
        let machine = Machine::<2, E>::booted(2);
        on(1, || machine.kernel.idle_enter());
        let jiffies = Cell::new(0);
        let meanwhile = move |machine: &Machine<2, E>| {
            if jiffies.replace(jiffies.get() + 1) == 0 {
                // It was forced as the caller asked, and nobody has looked at it since.
                on(1, || machine.kernel.idle_exit());
            }
            assert!(jiffies.get() < 3 * PATIENCE, "it is never rescheduled");
            machine.jiffies_beside_a_section(1, 1);
            if machine.is_asked_to_reschedule(1) {
                on(1, || machine.kernel.context_switch());
            }
        };
        machine.waits(0, meanwhile, |kernel| kernel.synchronize());
        assert!(machine.reschedules(1) >= 1);
    }
        TreeRcu<2>,
        Driven<poll::Global<Fixed<2>>>,
        Driven<poll::PerCpu<Fixed<2>>>,
        Driven<token::Relay<Fixed<2>>>,
        Driven<on_demand::OnDemand<Fixed<2>>>,
    );
}

#[test]
fn callbacks_gather_for_a_jiffy_before_a_grace_period_on_demand() {
    let machine = Machine::<2, Driven<on_demand::OnDemand<Fixed<2>>>>::booted(2);
    on(1, || machine.kernel.idle_enter());
    for _ in 0..3 {
        let before = machine.kernel.snapshot().unwrap().sequence;
        machine.free(0);
        machine.jiffy(0);
        let sequence = machine.kernel.snapshot().unwrap().sequence;
        assert_eq!(sequence, before, "the tick that sets the timer");
        machine.free(0);
        assert_eq!(machine.freed_in(ENOUGH, [0]), 2);
    }
}

#[test]
fn a_worker_is_woken_at_every_tick_until_it_comes() {
    let machine = Machine::<1>::booted(1);
    machine.free(0);
    machine.switches(ENOUGH, [0]);
    let woken = machine.board.woken[0].load(SeqCst);
    assert!(woken > 1 && on(0, || machine.kernel.has_callbacks()), "{woken}");
    machine.busy_tick(0);
    assert_eq!(machine.board.woken[0].load(SeqCst), woken + 1, "a lost wake comes again");
    machine.work(0);
    machine.busy_tick(0);
    assert_eq!(machine.board.woken[0].load(SeqCst), woken + 1);
}

#[test]
fn a_clock_that_goes_backward_stops_nothing() {
    under_each_engine!(2, |machine| {
        machine.board.clock_ns.store(3_600_000_000_000, SeqCst);
        on(1, || machine.kernel.idle_enter());
        for now in [1, u64::MAX - TICK_NS, 0] {
            machine.free(0);
            machine.jiffies(2, [0]);
            machine.board.clock_ns.store(now, SeqCst);
            assert_eq!(machine.freed_in(ENOUGH, [0]), 1, "{now}");
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "20,000 ticks take minutes")]
fn more_cpus_than_a_word_has_bits() {
    const CPUS: usize = 130;
    let machine = Machine::<CPUS>::booted(CPUS);
    machine.free(0);
    assert_eq!(machine.freed_in(ENOUGH, 0..CPUS - 1), 0, "the last one is missing");
    assert!(machine.kernel.cpu_snapshot(CPUS - 1).unwrap().is_holdout);
    assert!(machine.reschedules(CPUS - 1) >= 1);
    assert_eq!(machine.freed_in(5, 0..CPUS), 1);
}

#[test]
fn a_snapshot_says_since_when_and_which_hooks_came_last() {
    use kernel::Hook;
    let machine = Machine::<2>::booted(2);
    machine.board.clock_ns.store(5 * TICK_NS, SeqCst);
    machine.free(0);
    machine.jiffies(4, [0]);
    let seen = machine.kernel.snapshot().unwrap();
    assert!(seen.sequence.in_progress() && seen.online == 2 && seen.misuses.0 == 0);
    assert_eq!(seen.began_ns, 6 * TICK_NS, "at the first tick");
    let cpu = machine.kernel.cpu_snapshot(0).unwrap();
    assert_eq!((cpu.is_online, cpu.callbacks), (true, 1));
    assert_eq!(cpu.hooks[..3], [Hook::IrqExit, Hook::Tick, Hook::IrqEnter]);
    assert_eq!(machine.kernel.cpu_snapshot(2), None);
    machine.jiffies(20, [1, 0]);
}

#[test]
fn cond_resched_helps_under_the_variants_of_which_that_is_said() {
    let ends = |variant| {
        let machine = Machine::<2>::with(2, |options| {
            // No interrupt of an old grace period helps.
            (options.tree.variant, options.tree.stall_jiffies) = (variant, 100_000);
        });
        machine.free(0);
        for _ in 0..200 {
            machine.jiffy(0);
            on(1, || machine.kernel.cond_resched());
            machine.busy_tick(1);
        }
        let ended = machine.freed();
        assert_eq!(ended + machine.freed_in(ENOUGH, [1, 0]), 1, "{variant:?}");
        ended == 1
    };
    assert!(!ends(Variant::V3_15) && !ends(Variant::V2 { sched_qs_jiffies: PATIENCE }));
    assert!(ends(Variant::V0 { period: 10 }) && ends(Variant::V1 { flag_after_jiffies: PATIENCE }));
    assert!(ends(Variant::Today));
}

#[test]
fn todays_callbacks_in_excess_are_told_to_the_others_and_told_when_they_have_run() {
    let machine = Machine::<2>::with(2, |options| {
        (options.tree.variant, options.tree.qovld) = (Variant::Today, 30);
    });
    machine.free_many(0, 30);
    // Long before the age at which holdouts are asked otherwise.
    machine.jiffies_beside_a_section(ENOUGH, 1);
    assert!(machine.reschedules(1) >= 1, "at the second scan");
    assert_eq!(machine.freed_in(ENOUGH, [1, 0]), 30);
    let asked = machine.reschedules(1);
    machine.free(0);
    machine.jiffies_beside_a_section(ENOUGH, 1);
    assert_eq!(machine.reschedules(1), asked, "they are few again");
    machine.jiffies(ENOUGH, [1, 0]);
}
