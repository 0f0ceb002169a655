//! Faults that were found by reading, each with the test that would have shown it.

use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use kernel::engine::tree::{self, Variant};
use kernel::{Cookie, Head, Hook, Kernel, Options, Refused, Zone};

use crate::board::{
    ENOUGH, Machine, PATIENCE, TICK_NS, count, counter, interrupt_after, migrate, on,
    under_each_engine, with_one_idle,
};

#[test]
fn a_cpu_that_fails_to_start_is_dead_and_may_start_again() {
    let machine = Machine::<2>::booted(1);
    on(1, || machine.kernel.cpu_starting(1));
    machine.free(1);
    // In place of `cpu_online`.
    machine.stop(1, 0);
    assert_eq!(machine.kernel.snapshot().unwrap().online, 1);
    assert_eq!(machine.freed_in(ENOUGH, [0]), 1, "its callbacks have moved");
    machine.start(1);
    assert_eq!(machine.kernel.snapshot().unwrap().online, 2);
    machine.assert_is_waited_for(1);
}

#[test]
fn a_refused_cpu_dying_has_changed_nothing() {
    let machine = Machine::<3>::lenient(3);
    on(1, || machine.kernel.idle_enter());
    assert!(!on(1, || machine.kernel.cpu_dying(1)));
    assert!(!on(1, || machine.kernel.cpu_dying(2)));
    assert_eq!(machine.misuses(), (2, Hook::CpuDying));
    on(1, || machine.kernel.idle_exit());
    assert!(on(1, || machine.kernel.cpu_dying(1)));
    assert!(!on(1, || machine.kernel.cpu_dying(1)));
    assert_eq!(machine.misuses(), (3, Hook::CpuDying), "it has gone already");
    assert_eq!(machine.kernel.snapshot().unwrap().online, 2, "it has gone once");
    on(0, || machine.kernel.cpu_dead(1));
    machine.assert_is_waited_for(2);
}

#[test]
fn has_callbacks_does_not_reach_into_a_cpu_that_is_not_online() {
    let machine = Machine::<2>::booted(2);
    machine.free(1);
    machine.switches(ENOUGH, [0, 1]);
    assert!(on(1, || machine.kernel.has_callbacks()));
    assert!(on(1, || machine.kernel.cpu_dying(1)));
    assert!(!on(1, || machine.kernel.has_callbacks()), "they are who buries it");
    on(0, || machine.kernel.cpu_dead(1));
    machine.jiffies(ENOUGH, [0]);
}

#[test]
fn a_cpu_whose_worker_is_in_a_callback_does_not_die() {
    let machine = Machine::<3>::lenient(2);
    machine.queue(|machine| assert!(!machine.kernel.cpu_dying(0)));
    machine.jiffies(ENOUGH, [1, 0]);
    assert_eq!(machine.misuses(), (1, Hook::CpuDying));
    let seen = machine.kernel.cpu_snapshot(0).unwrap();
    assert!(seen.is_online && seen.callbacks == 0);
    // With its worker parked it does.
    machine.stop(0, 1);
    assert_eq!(machine.misuses().0, 1);
}

#[test]
fn a_callback_that_migrates_its_worker_does_not_stop_the_next_ones() {
    let machine = Machine::<3>::lenient(2);
    machine.queue(|_| migrate(1));
    machine.free(0);
    machine.jiffies(ENOUGH, [1, 0]);
    assert_eq!(machine.misuses(), (1, Hook::RunCallbacks), "it found itself elsewhere");
    machine.free(0);
    assert_eq!(machine.freed_in(ENOUGH, [1, 0]), 2);
}

/// As can be, where a platform gives a thread the number that no thread may have.
#[test]
fn a_worker_that_others_take_callbacks_from_takes_none_that_is_not_ready() {
    thread_local! { static LATER: Arc<AtomicU32> = counter(); }
    let machine = Machine::<3>::lenient(2);
    machine.queue(|machine| {
        machine.queue(|_| LATER.with(|later| _ = later.fetch_add(1, SeqCst)));
        machine.kernel.run_callbacks(0, 1);
    });
    machine.free(0);
    while !on(0, || machine.kernel.has_callbacks()) {
        machine.switches(1, [0, 1]);
    }
    on(0, || crate::board::as_thread(usize::MAX, || machine.kernel.run_callbacks(0, 2)));
    assert_eq!((machine.freed(), LATER.with(|later| count(later))), (1, 0));
    machine.jiffies(ENOUGH, [1, 0]);
    assert_eq!(LATER.with(|later| count(later)), 1);
}

#[test]
fn a_callback_that_was_migrated_is_refused_its_barrier() {
    let machine = Machine::<3>::lenient(2);
    machine.queue(|machine| {
        migrate(1);
        // The thread is the same.
        crate::board::as_thread(0, || {
            assert_eq!(machine.kernel.barrier(), Err(Refused::InCallback));
        });
    });
    machine.jiffies(ENOUGH, [1, 0]);
    assert_eq!(machine.kernel.cpu_snapshot(0).unwrap().callbacks, 0, "it has run");
}

#[test]
fn a_forgotten_idle_exit_is_made_up_for_at_the_next_context_switch() {
    for is_idle in [true, false] {
        let machine = Machine::<2>::lenient(2);
        on(1, || if is_idle { machine.kernel.idle_enter() } else { machine.kernel.user_enter() });
        on(1, || machine.kernel.context_switch());
        assert_eq!(machine.misuses(), (1, Hook::ContextSwitch));
        machine.assert_is_waited_for(1);
        assert_eq!(machine.misuses().0, 1);
    }
}

#[test]
fn a_way_into_user_mode_out_of_idle_leaves_the_cpu_in_the_kernel() {
    let machine = Machine::<2>::lenient(2);
    on(1, || machine.kernel.idle_enter());
    assert!(on(1, || machine.kernel.user_enter()), "the tick of a CPU that is awake goes on");
    assert_eq!(machine.misuses(), (1, Hook::UserEnter));
    assert!(!machine.kernel.cpu_snapshot(1).unwrap().is_extended);
    assert!(!on(1, || machine.kernel.user_enter()));
    assert_eq!(machine.misuses().0, 1);
}

#[test]
fn what_only_the_kernel_does_is_not_done_in_idle() {
    let machine = Machine::<2>::lenient(2);
    let wrong: [fn(&Machine<2>); 4] = [
        |machine| _ = machine.free(1),
        |machine| _ = machine.kernel.synchronize(),
        |machine| machine.kernel.cond_resched(),
        |machine| _ = machine.kernel.run_callbacks(1, 1),
    ];
    for (round, wrong) in (1..).zip(wrong) {
        on(1, || machine.kernel.idle_enter());
        let wrong = |_: &_| {
            wrong(&machine);
            Ok(())
        };
        machine.waits(1, |machine| machine.jiffies(1, [0, 1]), wrong);
        assert_eq!(machine.misuses().0, round);
        assert!(!machine.kernel.cpu_snapshot(1).unwrap().is_extended);
        machine.jiffies(ENOUGH, [0, 1]);
    }
    machine.assert_is_waited_for(1);
}

#[test]
fn a_handler_that_has_switched_threads_does_not_put_its_cpu_back_into_user_mode() {
    let machine = Machine::<2>::lenient(2);
    on(1, || machine.kernel.user_enter());
    let interrupt = machine.enter(1);
    on(1, || machine.kernel.user_exit());
    on(1, || machine.kernel.context_switch());
    assert!(machine.exit(1, interrupt), "the tick of a CPU that is awake goes on");
    assert_eq!(machine.misuses(), (1, Hook::IrqExit));
    machine.assert_is_waited_for(1);
}

#[test]
fn a_call_that_is_refused_says_so() {
    unsafe fn nothing(_: NonNull<Head>) {}
    let machine = Machine::<2>::lenient(1);
    let head = Head::new();
    // SAFETY: it is queued once; the second time is what the test is about, and it is in no queue
    // when it goes.
    let call = |cpu| on(cpu, || unsafe { machine.kernel.call(NonNull::from(&head), nothing) });
    assert_eq!(call(1), Err(Refused::Offline));
    assert_eq!(call(0), Ok(Zone::Free));
    assert_eq!(call(0), Err(Refused::Queued));
    machine.jiffies(ENOUGH, [0]);
    assert_eq!(machine.kernel.cpu_snapshot(0).unwrap().callbacks, 0);
}

#[test]
fn a_call_begins_nothing_and_asks_nobody() {
    let machine = Machine::<2>::with(2, |options| options.tree.qhimark = 10);
    machine.free_many(0, 100);
    assert!(!machine.kernel.snapshot().unwrap().sequence.in_progress(), "a tick does that");
    assert_eq!(machine.board.wakes.load(SeqCst), 0);
    machine.jiffies(2, [0]);
    assert!(machine.kernel.snapshot().unwrap().sequence.in_progress());
    machine.jiffies(ENOUGH, [1]);
    // They are ready at the next tick, and in excess: so all of them run in one pass.
    machine.switches(2, [0]);
    assert!(!on(0, || machine.kernel.run_callbacks(0, 1_000)));
    assert_eq!(machine.freed(), 100);
}

#[test]
fn a_tick_that_comes_a_little_early_scans_all_the_same() {
    // Jiffies until a callback has run, and until a busy CPU is asked to reschedule.
    let run = |jitter_ns: u64| {
        let machine = Machine::<3>::booted(3);
        for cpu in [1, 2] {
            on(cpu, || machine.kernel.idle_enter());
        }
        let jiffies_until = |is_done: &dyn Fn() -> bool| {
            let count = (1..200_u64).find(|jiffy| {
                // One tick is late and the next one early.
                if jiffy % 2 == 0 {
                    machine.board.clock_ns.fetch_sub(jitter_ns, SeqCst);
                } else {
                    machine.board.clock_ns.fetch_add(jitter_ns, SeqCst);
                }
                machine.jiffy(0);
                is_done()
            });
            count.expect("it never came")
        };
        machine.free(0);
        let freed_after = jiffies_until(&|| machine.freed() == 1);
        on(1, || machine.kernel.idle_exit());
        machine.free(0);
        let asked_after = jiffies_until(&|| machine.reschedules(1) != 0);
        machine.jiffies(ENOUGH, [1, 0]);
        (freed_after, asked_after)
    };
    assert_eq!(run(1_000), run(0));
    assert!(run(1_000).1 <= u64::from(PATIENCE) + 5);
}

#[test]
fn expedited_takes_note_of_its_own_cpu_at_the_first_look() {
    let machine = Machine::<3>::booted(3);
    machine.free(1);
    machine.jiffies(2, [1]);
    // CPU 0 has not noticed the grace period in progress.
    let is_first = Cell::new(true);
    let meanwhile = move |machine: &Machine<3>| {
        if is_first.replace(false) {
            assert!(!machine.kernel.cpu_snapshot(0).unwrap().is_holdout);
            assert!(machine.kernel.cpu_snapshot(2).unwrap().is_holdout);
        }
        machine.jiffies(1, [0, 1, 2]);
    };
    machine.waits(0, meanwhile, |kernel| kernel.synchronize_expedited());
    machine.jiffies(ENOUGH, [0, 1, 2]);
}

#[test]
fn a_barrier_bounds_the_bytes_of_a_flood() {
    let machine = Rc::new(Machine::<2>::with(2, |options| options.bytes_max = 2 * 5_000));
    on(1, || machine.kernel.idle_enter());
    let mut is_near = false;
    for _ in 0..500 {
        match machine.free_of(0, 100) {
            Zone::Full => machine.waits(0, |machine| machine.jiffy(0), |kernel| kernel.barrier()),
            zone => is_near |= zone == Zone::Expedite,
        }
        assert!(machine.kernel.cpu_snapshot(0).unwrap().bytes <= 5_000);
    }
    assert!(machine.freed_in(2 * ENOUGH, [0]) == 500 && is_near);
    assert_eq!(machine.kernel.cpu_snapshot(0).unwrap().bytes, 0);
    assert_eq!(machine.free_of(0, 5_000), Zone::Full, "one object alone");
    assert_eq!(machine.free_of(0, 0), Zone::Full);
    machine.jiffies(ENOUGH, [0]);
}

/// With this limit, so many callbacks of so many bytes are run ten at a time, and the many all at
/// once.
fn many_hurry(limit: fn(&mut Options), few: (u32, u32), many: (u32, u32)) {
    under_each_engine!(2, {
        let machine = Machine::<2, E>::with(2, limit);
        on(1, || machine.kernel.idle_enter());
        let are_ready = |(calls, bytes): (u32, u32)| {
            let told = (0..calls).map(|_| machine.free_of(0, bytes)).last();
            machine.switches(2 * ENOUGH, [0]);
            told
        };
        assert_eq!(are_ready(few), Some(Zone::Free));
        assert!(on(0, || machine.kernel.run_callbacks(0, 1_000)));
        assert_eq!(machine.freed(), 10, "blimit: ten at a time");
        machine.work(0);
        assert_eq!(machine.freed(), few.0 - 10);
        assert_eq!(are_ready(many), Some(Zone::Expedite));
        assert!(!on(0, || machine.kernel.run_callbacks(0, 1_000)), "all of them");
        assert_eq!(machine.freed(), many.0);
    });
}

/// Jiffies until a callback of so many bytes has run.
fn jiffies_of(limit: impl FnOnce(&mut Options), bytes: u32) -> Option<usize> {
    let machine = Machine::<2>::with(2, limit);
    on(1, || machine.kernel.idle_enter());
    machine.free_of(0, bytes);
    (1..ENOUGH).find(|_| machine.freed_in(1, [0]) == 1)
}

#[test]
fn callbacks_of_many_bytes_hurry_as_many_callbacks_do() {
    let limit = |options: &mut Options| options.bytes_max = 2 * 5_000;
    many_hurry(limit, (40, 90), (40, 100));
    assert!(jiffies_of(limit, 4_000) < jiffies_of(limit, 3_000), "it is scanned early");
}

#[test]
fn callbacks_near_a_small_limit_hurry_as_many_callbacks_do() {
    many_hurry(|options| options.callbacks_max = 2 * 200, (149, 0), (150, 0));
    let jiffies = |most| jiffies_of(|options| options.callbacks_max = most, 0);
    assert!(jiffies(2) < jiffies(20), "it is scanned early");
}

#[test]
fn a_cpu_that_was_asked_to_reschedule_in_vain_is_asked_again() {
    let machine = Machine::<2>::booted(2);
    machine.free(0);
    machine.jiffies(PATIENCE as usize + 40, [0]);
    let asked = machine.reschedules(1);
    assert!((3..=8).contains(&asked), "ten jiffies later, then every five: {asked}");
    // It passes through its scheduler, and goes on with the same thread.
    on(1, || machine.kernel.context_switch());
    machine.jiffies(ENOUGH, [0]);
    assert_eq!(machine.kernel.cpu_snapshot(0).unwrap().callbacks, 0);
}

#[test]
fn a_cpu_that_comes_again_has_the_limits_of_a_new_one() {
    let machine = Machine::<2>::with(2, |options| {
        (options.tree.qhimark, options.tree.qlowmark) = (20, 5);
    });
    // So many that they all run in one pass.
    machine.free_many(1, 50);
    machine.switches(ENOUGH, [0, 1]);
    machine.stop(1, 0);
    machine.start(1);
    machine.free_many(1, 15);
    machine.switches(ENOUGH, [0, 1]);
    on(1, || machine.kernel.run_callbacks(1, 1_000));
    assert_eq!(machine.freed(), 10, "blimit: ten at a time");
    assert_eq!(machine.freed_in(ENOUGH, [0, 1]), 55);
}

#[test]
fn an_nmi_under_the_machines_lock_is_waited_for() {
    let machine = with_one_idle();
    let nmis = Rc::new(Cell::new(0));
    let nmi = {
        let (machine, nmis) = (machine.clone(), nmis.clone());
        Rc::new(move || machine.nmi(|| nmis.set(nmis.get() + 1)))
    };
    machine.free(0);
    crate::board::with_nmi(nmi, || machine.jiffies(ENOUGH, [0]));
    assert!(nmis.get() > 1 && machine.freed() == 1);
    assert_eq!(machine.board.clock_ns.load(SeqCst), ENOUGH as u64 * TICK_NS);
    assert!(machine.kernel.cpu_snapshot(1).unwrap().is_extended);
}

#[test]
fn an_nmi_that_has_ended_is_not_shown_as_the_last_hook() {
    let machine = with_one_idle();
    for cpu in [0, 1] {
        let nmi = machine.enter_nmi(cpu);
        machine.exit_nmi(cpu, nmi);
        let hooks = machine.kernel.cpu_snapshot(cpu).unwrap().hooks;
        assert_eq!(hooks[..2], [Hook::IrqExit, Hook::IrqEnter], "CPU {cpu}");
    }
}

#[test]
fn a_cpu_takes_as_much_memory_as_the_readme_says() {
    // So many that what is rounded up, for few CPUs, does not show.
    let of_512 = size_of::<Machine<1_024>>() - size_of::<Machine<512>>();
    assert_eq!(of_512.div_ceil(512), 256 + 76, "its own lines, and its part of what is shared");
}

#[test]
fn a_cpu_that_was_asked_for_help_and_has_helped_is_at_rest_again() {
    for variant in [Variant::Today, Variant::v2(1_000)] {
        let machine = Machine::<2>::with(2, |options| {
            options.tree = tree::Options::new(variant, 1_000, 2);
        });
        machine.free(0);
        machine.jiffies_beside_a_section(250, 1);
        assert!(machine.reschedules(1) != 0 && machine.freed() == 0);
        assert_eq!(machine.freed_in(ENOUGH, [1, 0]), 1);
        let is_slow = Rc::new(Cell::new(false));
        let interrupts = is_slow.clone();
        interrupt_after(1, Rc::new(move || interrupts.set(true)));
        on(1, || machine.kernel.context_switch());
        assert!(!is_slow.get(), "{variant:?}: it turns interrupts off a second time");
        machine.jiffy(1);
    }
}

#[test]
fn what_is_waited_for_on_the_only_cpu_is_over() {
    under_each_engine!(2, {
        let machine = Machine::<2, E>::booted(1);
        // No tick comes, and nothing else happens.
        let is_over = |wait: fn(&Kernel<_, 2, E>, Cookie) -> _| {
            let cookie = machine.kernel.cookie();
            machine.waits(0, |_| {}, |kernel| wait(kernel, cookie));
            machine.kernel.poll(cookie)
        };
        assert!(is_over(Kernel::wait));
        assert!(is_over(|kernel, _| kernel.synchronize()));
        // Beside a callback's grace period.
        machine.free(0);
        machine.jiffy(0);
        assert!(is_over(|kernel, _| kernel.synchronize_expedited()));
        machine.jiffies(ENOUGH, [0]);
    });
}
