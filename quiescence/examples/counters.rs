//! `Counter`, `ExactCounter`, `LimitCounter` and `PerCpu`: counting where many threads count all
//! the time.

use std::sync::Mutex;
use std::thread;

use quiescence::sync::{Counter, ExactCounter, LimitCounter, PerCpu};

/// For statistics: a sum that is taken while requests are counted may have some of them.
static REQUESTS: Counter = Counter::new();
/// Goes up and down, and is never seen below zero.
static IN_FLIGHT: ExactCounter = ExactCounter::new();
/// No more than that at once, whichever thread asks.
static BUFFERS: LimitCounter = LimitCounter::new(1_000);

fn main() {
    // What is no number: a T for each CPU.
    let longest = PerCpu::new(|_| Mutex::new(0));

    thread::scope(|scope| {
        for worker in 0..4_u64 {
            let longest = &longest;
            scope.spawn(move || {
                for request in 0..10_000 {
                    REQUESTS.add(1);
                    let buffers = (worker + request) % 7 + 1;
                    if !BUFFERS.try_add(buffers) {
                        continue; // turned away, and nothing was added
                    }
                    IN_FLIGHT.add(1);
                    let mut longest = longest.here().lock().expect("nobody panics");
                    *longest = buffers.max(*longest);
                    drop(longest);
                    IN_FLIGHT.add(-1);
                    BUFFERS.sub(buffers);
                }
            });
        }
        for _ in 0..10 {
            let (in_flight, buffers) = (IN_FLIGHT.sum(), BUFFERS.value());
            assert!((0..=4).contains(&in_flight) && buffers <= BUFFERS.limit());
        }
    });

    assert_eq!((REQUESTS.sum(), IN_FLIGHT.sum(), BUFFERS.value()), (40_000, 0, 0));
    let longest = longest.into_iter().map(|longest| longest.into_inner().expect("nobody panics"));
    println!("{} requests, {} buffers at most", REQUESTS.sum(), longest.max().unwrap_or(0));
    assert!(BUFFERS.try_add(1_000) && !BUFFERS.try_add(1), "all of it, and no more");
}
