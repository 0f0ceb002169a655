//! The semaphores of `examples/semaphores`, with both ways to find a set.

#[path = "../../examples/semaphores/semaphores.rs"]
mod system;

use crate::common::*;
use quiescence::collections::Id;
use system::{ById, Error, Get, OPERATIONS_MAX, OneLock, Op, PRIVATE, Semaphores, Sets, VALUE_MAX};

const ROUNDS: usize = if cfg!(miri) { 10 } else { 300 };

/// The same test for both.
macro_rules! with_both {
    ($($name:ident)*) => {$(
        mod $name {
            #[test]
            fn by_id() {
                super::$name::<super::ById>();
            }

            #[test]
            fn under_one_lock() {
                super::$name::<super::OneLock>();
            }
        }
    )*};
}

with_both! {
    operations_happen_together_or_not_at_all
    what_is_wrong_has_its_name
    keys_lead_to_their_sets
    a_process_that_ends_is_undone
    there_may_be_much_to_undo
    sleepers_have_their_turn
    everybody_learns_of_a_removal
    sets_come_and_go_while_they_are_used
}

fn private<S: Sets>(system: &Semaphores<S>, values: &[i32]) -> Id {
    let id = system.semget(PRIVATE, values.len(), Get::OrNew).unwrap();
    system.setall(id, values).unwrap();
    id
}

/// Lets other threads run until so many wait for a semaphore to become larger, and to become zero.
fn until_waiting<S: Sets>(system: &Semaphores<S>, id: Id, number: u16, waiting: (usize, usize)) {
    until(|| system.waiting(id, number) == Ok(waiting));
}

fn operations_happen_together_or_not_at_all<S: Sets>() {
    let system = Semaphores::<S>::new();
    let (process, id) = (system.process(), private(&system, &[3, 1, 0]));
    process.semop(id, &[Op::new(0, -2), Op::new(1, -1), Op::new(2, 5)]).unwrap();
    assert_eq!(system.getall(id).unwrap(), [1, 0, 5]);
    // The last one would wait.
    let ops = [Op::new(0, -1), Op::new(2, -5), Op::new(1, -1).no_wait()];
    assert_eq!(process.semop(id, &ops), Err(Error::Again));
    assert_eq!(system.getall(id).unwrap(), [1, 0, 5]);
    // In their order: up and down again, and zero in between.
    process.semop(id, &[Op::new(0, -1), Op::new(0, 0).no_wait(), Op::new(0, 4)]).unwrap();
    assert_eq!(system.getval(id, 0), Ok(4));
    let ops = [Op::new(1, 9), Op::new(0, (VALUE_MAX - 3) as i16)];
    assert_eq!(process.semop(id, &ops), Err(Error::Range));
    assert_eq!(system.getall(id).unwrap(), [4, 0, 5]);
}

fn what_is_wrong_has_its_name<S: Sets>() {
    let system = Semaphores::<S>::new();
    let (process, id) = (system.process(), private(&system, &[1]));
    assert_eq!(process.op(id, 1, 1), Err(Error::TooBig));
    assert_eq!(process.semop(id, &[]), Err(Error::Invalid));
    assert_eq!(process.semop(id, &[Op::new(0, 0); OPERATIONS_MAX + 1]), Err(Error::TooMany));
    assert_eq!(system.getval(id, 1), Err(Error::TooBig));
    assert_eq!(system.setval(id, 0, VALUE_MAX + 1), Err(Error::Range));
    assert_eq!(system.setval(id, 0, -1), Err(Error::Range));
    assert_eq!(system.setall(id, &[1, 2]), Err(Error::Invalid));
    assert_eq!(system.semget(PRIVATE, 0, Get::OrNew), Err(Error::Invalid));
    let made_up = Id::from_bits(5 << 32 | 77).unwrap();
    assert_eq!(process.op(made_up, 0, 1), Err(Error::Invalid));
    system.rmid(id).unwrap();
    assert_eq!(process.op(id, 0, 1), Err(Error::Invalid));
    assert_eq!(system.rmid(id), Err(Error::Invalid));
    let next = private(&system, &[7]);
    assert_eq!(next.index(), id.index(), "the index is used again");
    assert_eq!(system.getval(id, 0), Err(Error::Invalid));
    assert_eq!(system.getval(next, 0), Ok(7));
}

fn keys_lead_to_their_sets<S: Sets>() {
    let system = Semaphores::<S>::new();
    assert_eq!(system.semget(5, 1, Get::Existing), Err(Error::NoEntry));
    let id = system.semget(5, 2, Get::OrNew).unwrap();
    assert_eq!(system.semget(5, 2, Get::Existing), Ok(id));
    assert_eq!(system.semget(5, 0, Get::OrNew), Ok(id));
    assert_eq!(system.semget(5, 2, Get::New), Err(Error::Exists));
    assert_eq!(system.semget(5, 3, Get::Existing), Err(Error::Invalid));
    assert_ne!(system.semget(PRIVATE, 1, Get::OrNew), system.semget(PRIVATE, 1, Get::OrNew));
    system.rmid(id).unwrap();
    assert_eq!(system.semget(5, 1, Get::Existing), Err(Error::NoEntry));
    assert_ne!(system.semget(5, 1, Get::New), Ok(id));
}

fn a_process_that_ends_is_undone<S: Sets>() {
    let system = Semaphores::<S>::new();
    let id = private(&system, &[5, 0]);
    let (first, second) = (system.process(), system.process());
    first.semop(id, &[Op::new(0, -2).undo(), Op::new(1, 1)]).unwrap();
    first.semop(id, &[Op::new(0, 1).undo()]).unwrap();
    second.semop(id, &[Op::new(0, -3).undo(), Op::new(1, 4).undo()]).unwrap();
    assert_eq!(system.getall(id).unwrap(), [1, 5]);
    drop(first);
    assert_eq!(system.getall(id).unwrap(), [2, 5], "not what it did without undo");
    // One that waits has its turn by that.
    thread::scope(|scope| {
        let waiting = scope.spawn(|| system.process().op(id, 0, -5));
        until_waiting(&system, id, 0, (1, 0));
        drop(second);
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
    assert_eq!(system.getall(id).unwrap(), [0, 1]);
    // `SETVAL` forgets what was to be undone, and removal all of it.
    let third = system.process();
    third.semop(id, &[Op::new(0, 3).undo(), Op::new(1, 1).undo()]).unwrap();
    system.setval(id, 0, 9).unwrap();
    let gone = private(&system, &[1]);
    third.semop(gone, &[Op::new(0, -1).undo()]).unwrap();
    system.rmid(gone).unwrap();
    let in_its_place = private(&system, &[4]);
    drop(third);
    assert_eq!(system.getall(id).unwrap(), [9, 1]);
    assert_eq!(system.getval(in_its_place, 0), Ok(4));
}

/// Past errors: the sum overflowed under the lock; and it kept its largest value, so that what was
/// taken back was undone.
fn there_may_be_much_to_undo<S: Sets>() {
    let system = Semaphores::<S>::new();
    let other = system.process();
    let rounds = if cfg!(miri) { 10 } else { (1 << 16) + 10 };
    for change in [VALUE_MAX as i16, -VALUE_MAX as i16] {
        let first = (VALUE_MAX - i32::from(change)) / 2;
        for is_taken_back in [false, true] {
            let (undone, id) = (system.process(), private(&system, &[first]));
            for _ in 0..rounds {
                undone.semop(id, &[Op::new(0, change).undo()]).unwrap();
                other.op(id, 0, -change).unwrap();
            }
            for _ in 0..if is_taken_back { rounds } else { 0 } {
                other.op(id, 0, change).unwrap();
                undone.semop(id, &[Op::new(0, -change).undo()]).unwrap();
            }
            drop(undone);
            assert_eq!(system.getval(id, 0), Ok(first));
        }
    }
}

fn sleepers_have_their_turn<S: Sets>() {
    let system = Semaphores::<S>::new();
    let id = private(&system, &[0, 1]);
    let order = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let sleep = |name: &'static str, ops: &'static [Op]| {
            let (system, order) = (&system, &order);
            scope.spawn(move || {
                system.process().semop(id, ops).unwrap();
                order.lock().unwrap().push(name);
            })
        };
        let large = sleep("three", const { &[Op::new(0, -3)] });
        until_waiting(&system, id, 0, (1, 0));
        let zero = sleep("zero", const { &[Op::new(1, 0), Op::new(0, 1)] });
        until_waiting(&system, id, 1, (0, 1));
        let process = system.process();
        process.op(id, 0, 1).unwrap();
        assert_eq!(system.getval(id, 0), Ok(1), "not enough for either");
        process.op(id, 0, 1).unwrap();
        // What waits for zero adds one in its turn, and so there are three.
        process.op(id, 1, -1).unwrap();
        zero.join().unwrap();
        large.join().unwrap();
        assert_eq!(system.getall(id).unwrap(), [0, 0]);
        assert_eq!(order.lock().unwrap().len(), 2);
    });
}

/// Sleepers, and threads that look the set up all the time, while it is removed.
fn everybody_learns_of_a_removal<S: Sets>() {
    for _ in 0..ROUNDS {
        let system = Semaphores::<S>::new();
        let id = private(&system, &[0, 0]);
        let start = Barrier::new(3);
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| system.process().op(id, 0, -1));
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    let process = system.process();
                    let end = loop {
                        if let Err(error) =
                            process.op(id, 1, 1).and_then(|()| process.op(id, 1, -1))
                        {
                            break error;
                        }
                    };
                    assert!(matches!(end, Error::Removed | Error::Invalid), "{end}");
                });
            }
            until_waiting(&system, id, 0, (1, 0));
            start.wait();
            system.rmid(id).unwrap();
            assert_eq!(sleeper.join().unwrap(), Err(Error::Removed));
        });
    }
}

/// Sets are made and removed by some while others use whatever id they find: an operation is done
/// in the set of its id, or refused.
fn sets_come_and_go_while_they_are_used<S: Sets>() {
    let system = Semaphores::<S>::new();
    let current = Mutex::new(private(&system, &[0]));
    let (added, seen) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let come_and_go = |_| {
        || {
            let new = private(&system, &[0]);
            let old = std::mem::replace(&mut *current.lock().unwrap(), new);
            // Those that have found it may add to it until it is removed.
            seen.fetch_add(system.getval(old, 0).unwrap() as usize, Relaxed);
            system.rmid(old).unwrap();
        }
    };
    let add = |_| {
        let process = system.process();
        for _ in 0..ROUNDS * 20 {
            let id = *current.lock().unwrap();
            match process.op(id, 0, 1) {
                Ok(()) => added.fetch_add(1, Relaxed),
                Err(Error::Removed | Error::Invalid) => 0,
                Err(other) => panic!("{other}"),
            };
        }
    };
    beside(1, come_and_go, || threads(2, add));
    let left = system.getval(*current.lock().unwrap(), 0).unwrap() as usize;
    let (seen, added) = (seen.into_inner() + left, added.into_inner());
    assert!(seen <= added, "{seen} of {added}: what one set has was added to it");
}
