//! System V semaphores on an id table: what `semop` does, and what an old id finds.
//!
//! `rcu bench tools --case semaphores` compares the look-up with one lock for all sets.

mod semaphores;

use std::thread;

use semaphores::{ById, Error, Get, Op, PRIVATE, Semaphores};

fn main() {
    println!("several operations at once:");
    several_at_once();
    println!("removal beside look-ups and sleepers:");
    removal();
}

/// Two philosophers take both forks or none, so they cannot wait for each other for ever; one that
/// ends at the table leaves its forks.
fn several_at_once() {
    let system = Semaphores::<ById>::new();
    let table = system.semget(0xf0, 2, Get::OrNew).expect("a new one");
    system.setall(table, &[1, 1]).expect("it is there");
    let take = [Op::new(0, -1).undo(), Op::new(1, -1).undo()];
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let philosopher = system.process();
                    philosopher.semop(table, &take).expect("not removed");
                    drop(philosopher); // ends, and does not put the forks back
                }
            });
        }
    });
    println!("  2,000 meals, and the forks are {:?} again", system.getall(table).expect("there"));
    let process = system.process();
    let busy = [Op::new(0, 0).no_wait()];
    println!("  to wait for zero without waiting: {}", process.semop(table, &busy).unwrap_err());
}

/// One removes a set while others look it up and sleep in it.
fn removal() {
    let system = Semaphores::<ById>::new();
    let id = system.semget(PRIVATE, 1, Get::OrNew).expect("a new one");
    let ends: Vec<Error> = thread::scope(|scope| {
        let sleepers: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| system.process().op(id, 0, -1).expect_err("none adds one")))
            .collect();
        while system.waiting(id, 0).expect("there") != (3, 0) {
            thread::yield_now();
        }
        system.rmid(id).expect("there");
        sleepers.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    println!("  sleepers got {}, {}, {}", ends[0], ends[1], ends[2]);
    let next = system.semget(PRIVATE, 1, Get::OrNew).expect("a new one");
    let old = system.getval(id, 0).unwrap_err();
    println!("  the next set is {next}; the old id {id} gets {old}");
}
