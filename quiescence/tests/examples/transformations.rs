//! The pairs of `examples/transformations`: both forms do the same, and lose nothing.

#[path = "../../examples/transformations/chapters/mod.rs"]
pub(crate) mod chapters;

use crate::common::*;
use chapters::{data_locking, deleted_flag, lock_pairs, publish, rcu, shipping, when_to_stop};

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

#[test]
fn nothing_is_lost_by_a_lock_of_each_bucket() {
    both!(data_locking::Table, 64, total);
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
fn routes_are_found_beside_updates() {
    both!(rcu::Table, 64);
}

#[test]
fn nothing_is_added_to_a_session_that_is_closed() {
    both!(deleted_flag::Table, 4, total);
}

#[test]
fn fields_are_of_one_version() {
    both!(publish::Table, 8);
}

#[test]
fn requests_are_computed() {
    both!(when_to_stop::Server, 100);
}
