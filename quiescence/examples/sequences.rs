//! `SeqLock` and `Latch`: a few words that are written often, and read whole.

use std::thread;

use quiescence::sync::{Latch, NoUninit, SeqLock};

/// Where something is, and how fast it moves: useless if half of it is old.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
struct Track {
    at: [i64; 3],
    by: [i64; 3],
}

// SAFETY: six words of 8 bytes, and no padding. (The crate `bytemuck` derives this, and checks it.)
unsafe impl NoUninit for Track {}

impl Track {
    fn step(self) -> Self {
        let Self { at, by } = self;
        Self { at: [at[0] + by[0], at[1] + by[1], at[2] + by[2]], by }
    }
}

static SEEN: SeqLock<Track> = SeqLock::new(Track { at: [0; 3], by: [1, 2, 3] });

/// What signal handlers and threads that must not wait read.
static RATE: Latch<[u64; 2]> = Latch::new([1, 1]);

fn main() {
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for step in 1..=10_000 {
                    SEEN.update(Track::step); // nanoseconds, also beside readers
                    if step % 1_000 == 0 {
                        RATE.update(|[ticks, ns]| [ticks + 3, ns + 3]);
                    }
                }
            });
        }
        for _ in 0..100_000 {
            let Track { at: [x, y, z], .. } = SEEN.read();
            assert!((y, z) == (2 * x, 3 * x), "torn: {x}, {y}, {z}");
            let [ticks, ns] = RATE.read();
            assert_eq!(ticks, ns);
        }
    });
    assert_eq!(SEEN.read().at, [20_000, 40_000, 60_000]);

    // Several writes that belong together, for other writers; readers see each of them.
    let mut guard = SEEN.lock();
    let home = Track { at: [0; 3], ..*guard };
    guard.set(home);
    guard.set(home.step());
    drop(guard);
    println!("{:?}, at a rate of {:?}", SEEN.read(), RATE.read());
}
