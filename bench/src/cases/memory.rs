//! What an object that waits costs in memory, over what it costs anyway.
//!
//! A reader stays in its section, many objects are retired, and the allocator's books are read
//! before and after. Rivals of which not everything waits then have nothing to be measured, and
//! those who hold up the retirer would never end: only those that hoard are asked.

use std::hint::black_box;

use super::allocator::bytes_in_use;
use super::object::OBJECT_BYTES;
use super::replace::{Limit, Make, drain, on_site, while_held};
use crate::sample::{Sample, alone};

/// Bytes of memory for each waiting object, with the allocator's headers, over those for an object
/// of 64 bytes that is allocated and does not wait.
///
/// # Panics
/// If the rival panics.
pub(crate) fn measure(make: Make, objects: u64) -> Sample {
    on_site(make, Limit::High, |site| {
        // In the same turn and thread: others do not free meanwhile.
        let plain = plain_bytes(objects).unwrap_or(f64::NAN);
        let freed_before = site.freed();
        let bytes = while_held(site, |_release| {
            let mut updater = site.updater();
            let before = bytes_in_use();
            updater.replace(objects);
            let (before, after) = before.zip(bytes_in_use())?;
            let waiting = objects.saturating_sub(site.freed() - freed_before);
            Some(after.saturating_sub(before) as f64 / waiting.max(1) as f64)
        });
        drain(site, freed_before, objects);
        alone(bytes.map_or(f64::NAN, |bytes| bytes - plain))
    })
}

/// What an object costs that is allocated and does not wait.
fn plain_bytes(objects: u64) -> Option<f64> {
    let mut boxes = Vec::with_capacity(objects as usize);
    let before = bytes_in_use()?;
    boxes.extend((0..objects).map(|_| Box::new([1_u8; OBJECT_BYTES])));
    black_box(&boxes);
    let after = bytes_in_use()?;
    Some(after.saturating_sub(before) as f64 / objects as f64)
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;
    use crate::common::again::*;
    use crate::rivals;

    /// In a process of its own: other tests allocate and free meanwhile.
    #[test]
    fn a_waiting_object_costs_a_pointer_at_least() {
        in_its_own_process!();
        for (name, make) in rivals::that(|rival| rival.replace.filter(|_| rival.hoards)) {
            let seen = measure(make, 20_000);
            assert!((4.0..500.0).contains(&seen.values[0]), "{name}: {seen:?}");
        }
    }
}
