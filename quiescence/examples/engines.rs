//! A domain with an engine of its own: everything on the tick, for a cache that no caller waits
//! for.

use quiescence::{Domain, Rcu, tuning::Engine};

fn main() {
    // Old entries may live a few ticks longer; in exchange no thread ever spins for them, and many
    // of them share one grace period.
    let background = Domain::builder().engine(Engine::Tick).build();
    let cache = Rcu::new_in(vec![1, 2, 3], background.clone());
    for generation in 0..10 {
        cache.update(|old| old.iter().map(|entry| entry + generation).collect());
    }
    assert_eq!(cache.load(&background.read())[0], 46);

    // The default engine with a tighter budget: the worker gets 0.1 % of a CPU for grace periods.
    let frugal = Domain::builder().worker_budget_ppm(1_000).build();
    frugal.retire(Box::new("freed all the same")).unwrap();

    background.barrier();
    frugal.barrier();
    assert_eq!(background.statistics().callbacks_waiting(), 0);
    println!("{} grace periods for 10 updates", background.statistics().grace_periods);
}
