//! What waits after the last store of a burst, and until when: nothing asks for it to be freed, and
//! the thread that has stored rests.

use std::thread;
use std::time::{Duration, Instant};

use super::allocator::bytes_in_use;
use super::replace::{Limit, Make, on_site};
use crate::sample::Sample;

/// From one look at what is left to the next.
const LOOK: Duration = Duration::from_micros(20);

/// What is not freed after this time is taken for never freed.
const PATIENCE: Duration = Duration::from_secs(1);

/// Stores so many times in a row into a cell of this rival. Nanoseconds from the last store until
/// all values that were replaced were freed, [`PATIENCE`] or more if they were not; values that
/// waited after it; and bytes of memory that were taken then and not before.
///
/// # Panics
/// If the rival panics.
pub(crate) fn measure(make: Make, stores: u64) -> Sample {
    on_site(make, Limit::Usual, |site| {
        let freed_before = site.freed();
        let mut updater = site.updater();
        let before = bytes_in_use();
        updater.replace(stores);
        let last = Instant::now();
        let bytes = before.zip(bytes_in_use());
        let bytes = bytes.map_or(f64::NAN, |(before, now)| now.saturating_sub(before) as f64);
        let left = || stores.saturating_sub(site.freed() - freed_before);
        let waiting = left();
        while left() > 0 && last.elapsed() < PATIENCE {
            thread::sleep(LOOK);
        }
        Sample::new([last.elapsed().as_nanos() as f64, waiting as f64, bytes], None)
    })
}
