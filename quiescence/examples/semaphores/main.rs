//! System V semaphores on an id table: what `semop` does, what an old id finds, and how the look-up
//! compares with one lock for all sets.

mod semaphores;

use std::thread;
use std::time::{Duration, Instant};

use semaphores::{ById, Error, Get, OneLock, Op, PRIVATE, Process, Semaphores, Sets};

fn main() {
    println!("several operations at once:");
    several_at_once();
    println!("removal beside look-ups and sleepers:");
    removal();
    println!("calls of semop a second, each thread with a set of its own:");
    if cfg!(debug_assertions) {
        println!("  (not optimised: with --release the two can be compared)");
    }
    let threads = thread::available_parallelism().map_or(1, usize::from).min(4);
    for threads in 1..=threads {
        let (one_lock, by_id) = (rate::<OneLock>(threads), rate::<ById>(threads));
        println!("  {threads} threads: one lock {one_lock:>10}, id table {by_id:>10}");
    }
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

/// Calls a second of so many threads.
fn rate<S: Sets>(threads: usize) -> u64 {
    let system = Semaphores::<S>::new();
    let calls = |process: &Process<'_, S>, id| {
        let (begin, mut calls) = (Instant::now(), 0_u64);
        while begin.elapsed() < Duration::from_millis(50) {
            for _ in 0..100 {
                process.op(id, 0, 1).expect("far from the largest value");
                process.op(id, 0, -1).expect("it was 1");
            }
            calls += 200;
        }
        (calls as f64 / begin.elapsed().as_secs_f64()) as u64
    };
    thread::scope(|scope| {
        let work = || {
            let id = system.semget(PRIVATE, 1, Get::OrNew).expect("a new one");
            calls(&system.process(), id)
        };
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    })
}
