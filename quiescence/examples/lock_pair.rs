//! `lock_pair`: two of the standard library's locks at once, without a deadlock. A program takes
//! the function from `transformations/chapters/lock_pair.rs`, which needs nothing of this library.

use std::sync::Mutex;
use std::thread;

#[path = "transformations/chapters/lock_pair.rs"]
mod lock_pair;

use lock_pair::lock_pair;

fn main() {
    let (savings, current) = (Mutex::new(100_000), Mutex::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1_000 {
                let (mut from, mut to) = lock_pair(&savings, &current).unwrap();
                *from -= 30;
                *to += 30;
            }
        });
        // The other way round, in the same order of locks.
        scope.spawn(|| {
            for _ in 0..1_000 {
                let (mut from, mut to) = lock_pair(&current, &savings).unwrap();
                *from -= 10;
                *to += 10;
            }
        });
    });
    let (savings, current) = (savings.into_inner().unwrap(), current.into_inner().unwrap());
    println!("{savings} saved, {current} at hand");
    assert_eq!((savings, current), (80_000, 20_000));
}
