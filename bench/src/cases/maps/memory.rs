//! What an entry of a map takes of memory, keys and values included.
//!
//! By the allocator's books, which say exactly what is in use, and by what the process has mapped
//! besides: some maps have their tables from the kernel. What the process has in memory would say
//! less: an allocator that has given one map's memory to the next one takes none for it.

use super::{Keys, Kinds};
use crate::cases::allocator::bytes_in_use_and_mapped;
use crate::cases::object::in_turn;
use crate::sample::Sample;

/// Small maps that come and go before a large one is measured.
const SETTLED_BY: u32 = 4;

/// Bytes for each of so many entries, with the allocator's headers: of a map that has grown, and of
/// one with room from the start.
///
/// One measurement at a time in a process; others wait.
pub(crate) fn measure(kinds: Kinds, keys: Keys, entries: u64) -> Sample {
    in_turn(|| {
        let bytes = |room| bytes(kinds, keys, entries, room).unwrap_or(f64::NAN);
        Sample::new([0, entries as usize].map(bytes), None)
    })
}

fn bytes(kinds: Kinds, keys: Keys, entries: u64, room: usize) -> Option<f64> {
    // What a design has once, for all of its maps, is none of their memory; and what another map
    // has left to be freed is freed.
    for _ in 0..SETTLED_BY {
        let small = kinds.make(keys, 0);
        small.fill(0..1000);
        small.flush();
    }
    let before = bytes_in_use_and_mapped()?;
    let table = kinds.make(keys, room);
    table.fill(0..entries);
    // What growing has left behind is garbage and no part of the map.
    table.flush();
    let after = bytes_in_use_and_mapped()?;
    drop(table);
    Some(after.saturating_sub(before) as f64 / entries as f64)
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::super::tests::with;
    use super::*;
    use crate::common::again::*;

    /// In a process of its own: other tests allocate and free meanwhile.
    #[test]
    fn an_entry_takes_its_key_and_value_at_least() {
        in_its_own_process!();
        let all = [(Keys::Words, 16.0), (Keys::Strings, 24.0 + 8.0 + 20.0)];
        for (name, kinds, keys, least) in with(all) {
            let seen = measure(kinds, keys, 30_000);
            let is_plausible = |bytes: &f64| (least..20.0 * least).contains(bytes);
            assert!(seen.values.iter().all(is_plausible), "{name}: {keys:?}: {seen:?}");
        }
    }
}
