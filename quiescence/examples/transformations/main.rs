//! Runs each pair of `docs/TRANSFORMATIONS.md` on two threads, and says how long both forms took.
//!
//! One short round each, so the times are a hint. `rcu bench tools` measures them.

pub mod chapters;

use std::thread;
use std::time::{Duration, Instant};

use chapters::{data_locking, deleted_flag, lock_pairs, publish, rcu, shipping, when_to_stop};

const THREADS: usize = 2;

/// How long all threads took, and the sum of what they returned.
fn timed(run: impl Fn(usize) -> u64 + Sync) -> (Duration, u64) {
    let run = &run;
    let begin = Instant::now();
    let sum = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().fold(0, |sum: u64, thread| sum.wrapping_add(thread.join().unwrap()))
    });
    (begin.elapsed(), sum)
}

fn report(chapter: &str, before: (Duration, u64), after: (Duration, u64)) {
    assert_eq!(before.1, after.1, "{chapter}: both forms do the same");
    println!("{chapter:14} before {:9.1?}, after {:9.1?}", before.0, after.0);
}

/// Measures a pair.
macro_rules! pair {
    ($name:literal, $chapter:ident::$what:ident, $n:expr, $operations:expr) => {
        let before = $chapter::before::$what::new($n);
        let after = $chapter::after::$what::new($n);
        report(
            $name,
            timed(|thread| before.run(thread, $operations, 1)),
            timed(|thread| after.run(thread, $operations, 1)),
        );
    };
}

fn main() {
    if cfg!(debug_assertions) {
        println!("(not optimised: with --release the times can be compared)");
    }
    pair!("data-locking", data_locking::Table, 4_096, 50_000);
    pair!("lock-pairs", lock_pairs::Accounts, 1_024, 50_000);
    pair!("shipping", shipping::Records, 4_096, 50_000);
    pair!("rcu", rcu::Table, 1_024, 50_000);
    pair!("deleted-flag", deleted_flag::Table, 1_024, 50_000);
    pair!("publish", publish::Table, 16, 50_000);
    pair!("when-to-stop", when_to_stop::Server, 2_000, 1_000);
}
