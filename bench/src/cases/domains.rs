//! What a domain costs in memory, by what has been done with it.
//!
//! Thousands are made, and the growth of what the process has in memory is divided by their number:
//! that counts what the library maps by itself, as words for each CPU, just like what it allocates.
//! What was measured is never freed, since memory that was used before would not be seen again.

use std::mem;
use std::sync::Barrier;
use std::thread;

use serde::Deserialize;

use super::object::turn;
use crate::sample::{Sample, alone};
use crate::serve::Domain;

/// What has been done with a domain.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Used {
    /// Nothing.
    Never,
    /// One section was entered and left.
    Read,
    /// Two threads have entered and left a hundred sections each.
    Contended,
    /// The same, and a grace period was waited for.
    Waited,
}

/// Sections of each thread, where they are many.
const SECTIONS: usize = 100;

/// Bytes of memory for each of so many domains.
///
/// Their memory is not given back. One measurement at a time in a process; others wait.
pub(crate) fn measure<P: Domain>(used: Used, count: usize) -> Sample {
    let _turn = turn();
    let before = resident_bytes();
    let mut places: Vec<P> = Vec::with_capacity(count);
    places.extend((0..count).map(|_| P::new()));
    match used {
        Used::Never => {}
        Used::Read => places.iter().for_each(|place| place.read(|| ())),
        Used::Contended | Used::Waited => contend(&places),
    }
    if used == Used::Waited {
        places.iter().for_each(P::wait);
    }
    let bytes = before.zip(resident_bytes()).map(|(before, after)| after.saturating_sub(before));
    mem::forget(places);
    alone(bytes.map_or(f64::NAN, |bytes| bytes as f64 / count as f64))
}

/// Two threads read in each place at the same time. What they leave behind elsewhere goes with
/// them.
fn contend<P: Domain>(places: &[P]) {
    let together = Barrier::new(2);
    thread::scope(|scope| {
        let read_all = || {
            for place in places {
                together.wait();
                (0..SECTIONS).for_each(|_| place.read(|| ()));
            }
        };
        // Joined for their last destructors too.
        for thread in [scope.spawn(read_all), scope.spawn(read_all)] {
            thread.join().expect("a reader does not panic");
        }
    });
}

/// What the process has in memory and shares with no file, after the allocator has given back what
/// it can.
fn resident_bytes() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it locks each arena while it works on it.
    unsafe {
        libc::malloc_trim(0)
    };
    // The kernel walks the pages for it; the counts elsewhere are off by some hundred kilobytes.
    super::kernel_says("/proc/self/smaps_rollup", "Anonymous:").map(|kib| kib << 10)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    #[cfg(target_os = "linux")]
    use crate::common::again::*;

    /// A kilobyte that is there from the first section on. Waits for nothing.
    pub(crate) struct Big(std::sync::OnceLock<Box<[u8; 1024]>>);

    impl Domain for Big {
        fn new() -> Self {
            Self(std::sync::OnceLock::new())
        }

        fn read<R>(&self, inside: impl FnOnce() -> R) -> R {
            self.0.get_or_init(|| Box::new([1; 1024]));
            inside()
        }

        fn wait(&self) {}
    }

    /// In a process of its own: other tests allocate, too.
    #[cfg(target_os = "linux")]
    #[test]
    fn memory_is_counted_when_it_is_used() {
        in_its_own_process!();
        let of = |used| measure::<Big>(used, 2000).values[0];
        let never = of(Used::Never);
        assert!(never < 64.0, "{never}");
        for used in [Used::Read, Used::Contended, Used::Waited] {
            let bytes = of(used);
            assert!((1040.0..1200.0).contains(&bytes), "{used:?}: {bytes}");
        }
    }
}
