//! The pairs of `examples/transformations`: both forms do the same, and lose nothing.

#[path = "../../examples/transformations/chapters/mod.rs"]
pub(crate) mod chapters;

use crate::common::*;
use chapters::ladder::{Buckets, Copied, OneLock, Records, Shared, Stage};
use chapters::log::{self, Entries};
use chapters::{deleted_flag, inbox, lock_pairs, shipping};

const THREADS: usize = 3;

/// The sum of what the threads return.
fn on_threads(run: impl Fn(usize) -> u64 + Sync) -> u64 {
    threads(THREADS, run).into_iter().fold(0, u64::wrapping_add)
}

/// Runs both forms; gives what they return.
macro_rules! both {
    ($chapter:ident::$what:ident, $n:expr $(, $total:ident)?) => {{
        let operations = rounds(20_000, 100);
        let (before, after) = ($chapter::before::$what::new($n), $chapter::after::$what::new($n));
        let sums = (
            on_threads(|thread| before.run(thread, operations, 1)),
            on_threads(|thread| after.run(thread, operations, 1)),
        );
        assert_eq!(sums.0, sums.1, "both do the same");
        $(assert_eq!((before.$total(), after.$total()), sums, "nothing is lost");)?
        assert_ne!(sums.0, on_threads(|thread| before.run(thread, operations, 2)), "another seed");
    }};
}

/// What the threads return, and what the table has then.
fn climbed<S: Stage>() -> (u64, u64) {
    let table = S::new(64);
    let added = on_threads(|thread| table.run(thread, rounds(20_000, 100), 1));
    (added, table.total())
}

#[test]
fn no_stage_of_the_ladder_loses_traffic_and_each_finds_the_same_routes() {
    let first = climbed::<OneLock>();
    assert!(first.1 > 0);
    for stage in [climbed::<Buckets>, climbed::<Records>, climbed::<Shared>, climbed::<Copied>] {
        assert_eq!(stage(), first);
    }
}

/// A past error: it was asked in each operation, for which the first stage took its lock once more.
#[test]
fn a_stage_is_asked_once_how_many_routes_it_has() {
    struct Asked(AtomicUsize);
    impl Stage for Asked {
        const NAME: &'static str = "counts";

        fn new(n: usize) -> Self {
            Self(AtomicUsize::new(n))
        }

        fn count(&self) -> usize {
            self.0.fetch_add(1, Relaxed)
        }

        fn port(&self, key: u64) -> u64 {
            key
        }

        fn add(&self, _key: u64, _amount: u64) {}

        fn traffic(&self, _key: u64) -> u64 {
            0
        }
    }
    let table = Asked::new(64);
    table.run(0, 100, 1);
    assert_eq!(table.0.into_inner(), 65);
}

#[test]
fn nothing_is_lost_between_accounts_and_no_transfers_deadlock() {
    both!(lock_pairs::Accounts, 4, total);
}

#[test]
fn every_function_that_is_shipped_is_called() {
    both!(shipping::Records, 64, total);
}

#[test]
fn no_event_is_lost_between_those_who_raise_it_and_its_owner() {
    both!(inbox::Inboxes, 2, total);
}

/// A log that gets full, and one that does not.
#[test]
fn an_entry_that_is_counted_was_written() {
    fn fill(log: impl Entries, room: usize) {
        let operations = rounds(20_000, 100);
        on_threads(|thread| log.run(thread, operations, 1));
        let appended = THREADS * (operations / log::APPEND_EACH);
        assert_eq!(log.get(0).0 + 1, room.min(log::LAST + appended));
    }
    for room in [70, 1 << 10] {
        both!(log::Log, room);
        fill(log::before::Log::new(room), room);
        fill(log::after::Log::new(room), room);
    }
}

#[test]
fn nothing_is_added_to_a_session_that_is_closed() {
    both!(deleted_flag::Table, 4, total);
}
