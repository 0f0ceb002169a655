//! An engine that is chosen as the kernel boots.

use std::rc::Rc;

use kernel::{Any, NotChosen};

use crate::board::{Machine, count, counter, under_each_engine};

/// Without a CPU that has started.
fn off() -> Rc<Machine<2, Any<2>>> {
    Machine::booted(0)
}

/// Starts them, and has one hold up a grace period of the other. Returns whether it was asked to
/// reschedule soon.
fn is_rescheduled_soon(machine: &Machine<2, Any<2>>) -> bool {
    (0..2).for_each(|cpu| machine.start(cpu));
    let freed = counter();
    machine.call(0, &freed);
    machine.jiffies_beside_a_section(5, 1);
    let is_asked = machine.reschedules(1) != 0;
    machine.jiffies_beside_a_section(30, 1);
    assert_eq!(count(&freed), 0, "the section goes on");
    machine.jiffies(60, [0, 1]);
    assert_eq!(count(&freed), 1);
    is_asked
}

#[test]
fn the_engine_that_is_chosen_is_the_one_that_runs() {
    for name in Any::<2>::NAMES {
        let machine = off();
        assert_eq!(machine.kernel.choose(name), Ok(()));
        let is_soon = ["poll", "poll-per-cpu", "token-relay"].contains(name);
        assert_eq!(is_rescheduled_soon(&machine), is_soon, "{name}");
    }
    assert!(!is_rescheduled_soon(&off()), "if none is chosen it is Tree RCU");
}

#[test]
fn a_choice_comes_before_the_first_cpu_and_once() {
    let machine = off();
    assert_eq!(machine.kernel.choose("rcu_poll"), Err(NotChosen::Unknown));
    assert_eq!(machine.kernel.choose("poll"), Ok(()));
    assert_eq!(machine.kernel.choose("tick"), Err(NotChosen::TooLate));
    assert!(is_rescheduled_soon(&machine));
    let machine = off();
    machine.start(0);
    assert_eq!(machine.kernel.choose("poll"), Err(NotChosen::TooLate));
}

#[test]
fn it_has_the_memory_of_the_largest_engine() {
    let mut largest = 0;
    under_each_engine!(16, {
        largest = largest.max(size_of::<E>());
    });
    let tag = align_of::<Any<16>>();
    assert!(size_of::<Any<16>>() <= largest + tag, "{} {largest}", size_of::<Any<16>>());
}
