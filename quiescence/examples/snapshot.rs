//! `Snapshot`: a few words that are read whole, as a sequence lock's are, without one.

use std::thread;

use quiescence::cell::Snapshot;

/// How to make nanoseconds of a counter's value: useless if half of it is old.
#[derive(Clone, Copy, Debug)]
struct Conversion {
    base_ticks: u64,
    base_ns: u64,
    ns_per_tick: u64,
}

impl Conversion {
    fn ns(self, ticks: u64) -> u64 {
        self.base_ns + (ticks - self.base_ticks) * self.ns_per_tick
    }
}

fn main() {
    let clock = Snapshot::new(Conversion { base_ticks: 0, base_ns: 0, ns_per_tick: 2 });
    thread::scope(|scope| {
        scope.spawn(|| {
            // The counter slows down, and time must not jump.
            for ticks in 1..=1_000 {
                clock.update(|old| Conversion {
                    base_ticks: ticks,
                    base_ns: old.ns(ticks),
                    ns_per_tick: 2 + ticks % 2,
                });
            }
        });
        for _ in 0..100_000 {
            // Between two and three nanoseconds a tick, as whole conversions have it.
            let ns = clock.load().ns(1_000);
            assert!((2_000..=3_000).contains(&ns), "a torn conversion: {ns} ns");
        }
    });
    println!("at tick 1000: {} ns, by {:?}", clock.load().ns(1_000), clock.into_inner());
}
