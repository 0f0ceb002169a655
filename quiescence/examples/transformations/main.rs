//! Runs the ladder of `docs/TRANSFORMATIONS.md` from one lock to RCU, and then each pair, on two
//! threads, and says how long they took.
//!
//! One short round each, so the times are a hint. `rcu bench tools` measures them.

pub mod chapters;

use std::thread;
use std::time::{Duration, Instant};

use chapters::ladder::{self, Stage};
use chapters::log::{self, Entries};
use chapters::one_lock_at_a_time::{self, Containers};
use chapters::{deleted_flag, inbox, lock_pairs, publish, shipping, when_to_stop};

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
    println!("{chapter:18} before {:9.1?}, after {:9.1?}", before.0, after.0);
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

/// Measures a stage of the ladder, and says how many times as fast as the first it is.
fn stage<S: Stage>(first: &mut Option<(Duration, u64)>) {
    let table = S::new(4_096);
    let (took, sum) = timed(|thread| table.run(thread, 50_000, 1));
    let (first, expected) = *first.get_or_insert((took, sum));
    assert_eq!(sum, expected, "{}: every stage does the same", S::NAME);
    let times = first.as_secs_f64() / took.as_secs_f64();
    println!("{:22} {took:9.1?}, {times:.1} times as fast as the first", S::NAME);
}

fn main() {
    if cfg!(debug_assertions) {
        println!("(not optimised: with --release the times can be compared)");
    }
    let mut first = None;
    stage::<ladder::OneLock>(&mut first);
    stage::<ladder::Buckets>(&mut first);
    stage::<ladder::Records>(&mut first);
    stage::<ladder::Shared>(&mut first);
    stage::<ladder::Copied>(&mut first);
    pair!("lock-pairs", lock_pairs::Accounts, 1_024, 50_000);
    pair!("shipping", shipping::Records, 4_096, 50_000);
    pair!("deleted-flag", deleted_flag::Table, 1_024, 50_000);
    pair!("publish", publish::Table, 16, 50_000);
    pair!("owner-reads", inbox::Inboxes, 64, 50_000);
    pair!("ordered-update", log::Log, 1 << 20, 50_000);
    pair!("one-lock-at-a-time", one_lock_at_a_time::Tickets, 64, 50_000);
    pair!("when-to-stop", when_to_stop::Server, 2_000, 1_000);
}
