//! `lock_pair` of `examples/lock_pair.rs`: the order in which it locks, and what it refuses.

use crate::common::*;
use crate::transformations::chapters::lock_pair::lock_pair;

/// Whichever is named first.
#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "looks at /proc")]
fn the_lock_with_the_lower_address_comes_first() {
    // In the order of their addresses.
    let locks = [Mutex::new("low"), Mutex::new("high")];
    for (first, second) in [(0, 1), (1, 0)] {
        let low = locks[0].lock().unwrap();
        let number = AtomicU32::new(0);
        thread::scope(|scope| {
            let pair = scope.spawn(|| {
                number.store(thread_id(), SeqCst);
                let (first, second) = lock_pair(&locks[first], &locks[second]).unwrap();
                (*first, *second)
            });
            until(|| sleeps_or_is_gone(number.load(SeqCst)));
            assert!(locks[1].try_lock().is_ok(), "locked before the other one is had");
            drop(low);
            let expected = if first == 0 { ("low", "high") } else { ("high", "low") };
            assert_eq!(pair.join().unwrap(), expected, "guards in the order of the arguments");
        });
    }
}

#[test]
fn the_same_lock_twice_is_refused_and_a_poisoned_one_is_given() {
    let (good, bad) = (Mutex::new(1), Mutex::new("two"));
    let message = panic_of(|| drop(lock_pair(&good, &good)));
    assert!(message.contains("a mutex with itself"), "{message}");
    assert!(good.try_lock().is_ok(), "nothing was locked");

    panic_of(|| {
        let _held = bad.lock().unwrap();
        panic!("under the lock");
    });
    let (bad, good) = lock_pair(&bad, &good).unwrap_err().into_inner();
    assert_eq!((*bad, *good), ("two", 1));
}
