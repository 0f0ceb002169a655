//! A process forks while threads load from an empty place, before anything was ever put into one.
//! In a process of its own: the first `Arc` in any place changes what is tested.
#![cfg(unix)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use crate::common;
use quiescence::cell::ArcCellOption;

#[test]
#[cfg(unix)]
fn children_of_those_who_loaded_nothing_store() {
    const TEST: &str = "arc_cell_empty::children_of_those_who_loaded_nothing_store";
    static PLACE: ArcCellOption<u64> = ArcCellOption::empty();
    if common::role().is_none() {
        let output = common::again(TEST, "alone", &[]);
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    assert!(PLACE.load().is_none());
                }
            });
        }
        for _ in 0..20 {
            common::in_child(|| {
                PLACE.store(Some(Arc::new(1)));
                PLACE.store(Some(Arc::new(2)));
                assert_eq!(PLACE.load().as_deref(), Some(&2));
            });
        }
        stop.store(true, Relaxed);
    });
}
