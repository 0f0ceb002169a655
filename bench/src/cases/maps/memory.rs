//! What an entry of a map takes of memory, keys and values included.
//!
//! By the kernel's books, as [`domains`](crate::cases::domains) has it: some maps take their memory
//! from the allocator and some from the kernel. The allocator has given back before what it can, so
//! that each map is built in fresh pages.

use std::thread;

use super::Keys;
use crate::cases::domains::resident_bytes;
use crate::cases::object::Turn;
use crate::rivals::Rival;

/// What [`measure`] saw, in bytes for each entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Of a map that has grown to its size.
    pub grown: f64,
    /// Of one that was made with room for them.
    pub reserved: f64,
}

/// Bytes for each of so many entries. Nothing where the kernel does not say.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If the rival has no maps.
pub fn measure(rival: &Rival, keys: Keys, entries: u64) -> Option<Entry> {
    let _turn = Turn::wait();
    // In a thread of its own, whose memory the allocator can give back with it.
    thread::scope(|scope| {
        let measured = scope.spawn(|| {
            // What a design has once, for all of its maps, is none of their memory.
            bytes(rival, keys, 1000, 0)?;
            let grown = bytes(rival, keys, entries, 0)?;
            let reserved = bytes(rival, keys, entries, entries as usize)?;
            Some(Entry { grown, reserved })
        });
        measured.join().expect("a measurement does not panic")
    })
}

fn bytes(rival: &Rival, keys: Keys, entries: u64, room: usize) -> Option<f64> {
    let kinds = rival.maps.expect("only rivals with maps are asked");
    let before = resident_bytes()?;
    let table = kinds.make(keys, room);
    table.fill(0..entries);
    // What growing has left behind is garbage and no part of the map.
    table.flush();
    let after = resident_bytes()?;
    drop(table);
    Some(after.saturating_sub(before) as f64 / entries as f64)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::rivals;
    use super::*;
    use crate::cases::alone::is_alone;

    const TEST: &str = "cases::maps::memory::tests::an_entry_takes_its_key_and_value_at_least";

    /// In a process of its own: other tests allocate and free meanwhile.
    #[test]
    fn an_entry_takes_its_key_and_value_at_least() {
        if !is_alone(TEST) {
            return;
        }
        for rival in rivals() {
            for (keys, least) in [(Keys::Words, 16.0), (Keys::Strings, 24.0 + 8.0 + 20.0)] {
                let Some(seen) = measure(rival, keys, 30_000) else { return };
                for bytes in [seen.grown, seen.reserved] {
                    // What another map left to the allocator may be used again.
                    let is_plausible = (0.8 * least..20.0 * least).contains(&bytes);
                    assert!(is_plausible, "{}: {keys:?}: {seen:?}", rival.name);
                }
            }
        }
    }
}
