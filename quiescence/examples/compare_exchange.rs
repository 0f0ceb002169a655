//! `compare_exchange` and `update_in`: updates that depend on what was seen, without a lock.

use quiescence::Rcu;

fn main() {
    let limit = Rcu::new(10u32);
    let guard = quiescence::read();
    let seen = limit.load(&guard);

    // Somebody else is quicker.
    limit.store(11);

    match limit.compare_exchange(&guard, seen, Box::new(20)) {
        Ok(_) => unreachable!("the value has changed since"),
        Err(mine) => println!("not replaced by {mine}: it is no longer {seen}"),
    }
    let old = limit.update_in(&guard, |now| now * 2);
    assert_eq!((*old, *limit.load(&guard)), (11, 22));

    // The section first: in it nothing is freed.
    drop(guard);
    drop(old);
}
