//! CPUs that come and go, in the midst of it.

use std::cell::Cell;

use crate::board::{Machine, on, under_each_engine};

#[test]
fn a_cpu_that_comes_online_after_a_scan_has_chosen_is_waited_for_by_the_next() {
    under_each_engine!(3, {
        let machine = Machine::<3, E>::booted(2);
        machine.free(0);
        // CPU 2 was offline when the scan looked; CPU 1 is in a section.
        machine.jiffies(6, [0]);
        machine.start(2);
        assert_eq!(machine.freed_in(10, [0, 1]), 1, "its sections began after");
        machine.free(0);
        assert_eq!(machine.freed_in(10, [0, 1]), 0, "it is in a section now");
        assert_eq!(machine.freed_in(10, [2, 1, 0]), 1);
    });
}

#[test]
fn a_barrier_waits_for_callbacks_that_move_while_it_waits() {
    let machine = Machine::<3>::booted(3);
    on(2, || machine.kernel.idle_enter());
    [0, 1].into_iter().for_each(|cpu| _ = machine.free_many(cpu, 40));
    let step = Cell::new(0);
    let meanwhile = move |machine: &Machine<3>| {
        step.set(step.get() + 1);
        match step.get() {
            1..9 => {
                machine.jiffy(0);
                machine.switches(1, [1]);
            }
            9 => on(1, || assert!(machine.kernel.run_callbacks(1, 5))),
            10 => machine.stop(1, 0),
            _ => machine.jiffy(0),
        }
    };
    // A few of CPU 1's have run when it goes.
    machine.waits(0, meanwhile, |kernel| kernel.barrier());
    assert_eq!(machine.freed(), 80);
    assert!(!machine.kernel.cpu_snapshot(1).unwrap().is_online);
}

#[test]
fn what_a_caller_waits_for_is_looked_after_when_its_cpu_has_died() {
    under_each_engine!(3, |machine| {
        on(2, || machine.kernel.idle_enter());
        let is_first = Cell::new(true);
        let meanwhile = move |machine: &Machine<3, E>| {
            if is_first.replace(false) {
                // The thread has slept, and wakes elsewhere.
                machine.stop(1, 0);
                assert!(on(0, || machine.kernel.idle_enter()), "CPU 0 looks after it now");
            }
            machine.busy_tick(0);
        };
        machine.waits(1, meanwhile, |kernel| kernel.synchronize());
    });
}
