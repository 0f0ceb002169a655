// cargo add crossbeam-epoch
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use crossbeam_epoch::{Atomic, Owned, pin};

fn main() {
    let config = Atomic::new("eth0");
    let guard = pin();
    // SAFETY: never null, and freed only after the guards of its readers are gone.
    assert_eq!(unsafe { config.load(Acquire, &guard).deref() }, &"eth0");
    let old = config.swap(Owned::new("eth1"), AcqRel, &guard);
    // SAFETY: the swap has unlinked it, and no other thread retires it. The last value is yours
    // to free.
    unsafe { guard.defer_destroy(old) };
}
