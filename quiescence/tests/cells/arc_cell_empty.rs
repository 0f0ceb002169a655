//! A process forks while threads load from an empty place, before anything was ever put into one.
//! In a process of its own: the first `Arc` in any place changes what is tested.
#![cfg(unix)]

use crate::common::*;
use quiescence::cell::ArcCellOption;

#[test]
#[cfg(unix)]
fn children_of_those_who_loaded_nothing_store() {
    static PLACE: ArcCellOption<u64> = ArcCellOption::empty();
    in_its_own_process!();
    let load = |_| || assert!(PLACE.load().is_none());
    beside(4, load, || {
        for _ in 0..20 {
            in_child(|| {
                PLACE.store(Some(Arc::new(1)));
                PLACE.store(Some(Arc::new(2)));
                assert_eq!(PLACE.load().as_deref(), Some(&2));
            });
        }
    });
}
