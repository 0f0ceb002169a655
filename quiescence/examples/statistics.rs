//! `statistics` and `fences`: what has happened, and how this process orders readers.
//!
//! The same of a program that is running: start it with `QUIESCENCE_STATS=1`, and look with
//! `rcu top PID`.

use quiescence::report::Latency;

fn main() {
    println!("fences: {:?}", quiescence::tuning::fences());
    let before = quiescence::Domain::global().statistics();
    let registered = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(quiescence::read());
            registered.wait();
            registered.wait();
        });
        registered.wait();
        for _ in 0..100 {
            quiescence::synchronize();
        }
        registered.wait();
    });
    quiescence::retire(Box::new([0u8; 64])).unwrap();
    quiescence::barrier();
    let statistics = quiescence::Domain::global().statistics();
    println!("{statistics:#?}");
    tell(&statistics.latency.since(&before.latency));
    assert_eq!(statistics.callbacks_waiting(), 0);
}

/// What is known of a latency are the bounds of its bucket.
fn tell(latency: &Latency) {
    for (name, share) in [("median", 0.5), ("99 of 100", 0.99)] {
        if let Some(ns) = latency.quantile(share) {
            println!("{name}: from {} to less than {} ns", ns.start, ns.end);
        }
    }
}
