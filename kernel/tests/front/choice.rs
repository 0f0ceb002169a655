//! An engine that is chosen as the kernel boots.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use kernel::{Any, GracePeriods, NotChosen};

use crate::board::{Machine, on, under_each_engine, with_meanwhile};

/// Without a CPU that has started.
fn off() -> Rc<Machine<2, Any<2>>> {
    Machine::booted(0)
}

/// Starts them, and has one hold up a grace period of the other. Returns whether it was asked to
/// reschedule soon.
fn is_rescheduled_soon(machine: &Machine<2, Any<2>>) -> bool {
    (0..2).for_each(|cpu| machine.start(cpu));
    machine.free(0);
    machine.jiffies_beside_a_section(5, 1);
    let is_asked = machine.reschedules(1) != 0;
    machine.jiffies_beside_a_section(30, 1);
    assert_eq!(machine.freed(), 0, "the section goes on");
    assert_eq!(machine.freed_in(60, [0, 1]), 1);
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

/// What four CPUs are asked, and what is freed, jiffy by jiffy: CPU 1 is in a section, first while
/// only a callback waits, then while a thread does; at last all run.
fn seen_of<E: GracePeriods<4> + 'static>(machine: Rc<Machine<4, E>>) -> Vec<Vec<u32>> {
    (0..4).for_each(|cpu| machine.start(cpu));
    let seen = Rc::new(RefCell::new(Vec::new()));
    machine.free(0);
    let (its_seen, its_machine) = (seen.clone(), machine.clone());
    let jiffy = Rc::new(move |runs_all: bool| {
        for cpu in 0..4 {
            match cpu == 1 && !runs_all {
                true => _ = on(cpu, || its_machine.busy_tick(cpu)),
                false => on(cpu, || its_machine.jiffy(cpu)),
            }
        }
        let now = (0..4).map(|cpu| its_machine.reschedules(cpu)).chain([its_machine.freed()]);
        its_seen.borrow_mut().push(now.collect());
    });
    (0..40).for_each(|_| jiffy(false));
    let left = Cell::new(10);
    let meanwhile = move || {
        left.set(left.get() - i32::from(left.get() != 0));
        jiffy(left.get() == 0);
    };
    with_meanwhile(Rc::new(meanwhile), || on(0, || machine.kernel.synchronize())).unwrap();
    seen.take()
}

#[test]
fn each_engine_that_is_chosen_does_what_it_does_by_itself() {
    let (mut names, mut all) = (Any::<4>::NAMES.iter(), BTreeSet::new());
    under_each_engine!(4, {
        let name = names.next().unwrap();
        let chosen = Machine::<4, Any<4>>::booted(0);
        chosen.kernel.choose(name).unwrap();
        let seen = seen_of(chosen);
        assert_eq!(seen, seen_of(Machine::<4, E>::booted(0)), "{name}");
        all.insert(seen);
    });
    assert_eq!(all.len(), 6, "all but `poll` and `poll-per-cpu` can be told from each other");
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
