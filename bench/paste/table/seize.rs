// cargo add seize
use std::collections::HashMap;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use seize::{Collector, Guard, reclaim};

fn main() {
    let collector = Collector::new();
    let table = HashMap::from([("10.0.0.0/8", AtomicPtr::new(Box::into_raw(Box::new("eth0"))))]);
    let guard = collector.enter();
    // SAFETY: never null, and freed only after the guards of its readers are gone.
    assert_eq!(unsafe { *guard.protect(&table["10.0.0.0/8"], Acquire) }, "eth0");
    let old = table["10.0.0.0/8"].swap(Box::into_raw(Box::new("eth1")), AcqRel);
    // SAFETY: from a box, unlinked by the swap, and retired once. The last value is yours to free.
    unsafe { guard.defer_retire(old, reclaim::boxed) };
}
