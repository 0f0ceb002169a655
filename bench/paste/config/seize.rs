// cargo add seize
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use seize::{Collector, Guard, reclaim};

fn main() {
    let collector = Collector::new();
    let config = AtomicPtr::new(Box::into_raw(Box::new("eth0")));
    let guard = collector.enter();
    // SAFETY: never null, and freed only after the guards of its readers are gone.
    assert_eq!(unsafe { *guard.protect(&config, Acquire) }, "eth0");
    let old = config.swap(Box::into_raw(Box::new("eth1")), AcqRel);
    // SAFETY: from a box, unlinked by the swap, and retired once. The last value is yours to free.
    unsafe { guard.defer_retire(old, reclaim::boxed) };
}
