//! Which step is removed in this process.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::table;

/// Names the step that is removed in a process, if it has the hooks.
pub const SWITCH: &str = "QUIESCENCE_MUTANT";

/// Whether this build has the hooks: whether it is of the copy that `cargo xtask mutants` writes.
pub const HAS_HOOKS: bool = cfg!(quiescence_mutants);

/// The number of the removed step; or one of the following, which no name has.
static REMOVED: AtomicU32 = AtomicU32::new(NOT_ASKED);
const NOT_ASKED: u32 = u32::MAX;
const NONE: u32 = u32::MAX - 1;

/// The number of a step, to be compared quickly: FNV-1a of its name. No two names of the table have
/// the same.
pub const fn id(name: &str) -> u32 {
    let (bytes, mut id, mut at) = (name.as_bytes(), 0x811c_9dc5_u32, 0);
    while at < bytes.len() {
        id = (id ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    id
}

/// Whether the step with this number is removed.
///
/// # Panics
/// If the environment names none of the table.
#[inline]
pub fn is_removed(id: u32) -> bool {
    // Relaxed: a number, which nothing goes with.
    match REMOVED.load(Relaxed) {
        NOT_ASKED => asked() == id,
        number => number == id,
    }
}

/// Removes the step for the rest of the process. Returns `false` if another one is removed already.
pub fn remove(name: &str) -> bool {
    let wanted = id(name);
    if is_removed(wanted) {
        return true;
    }
    // Relaxed: as above.
    REMOVED.compare_exchange(NONE, wanted, Relaxed, Relaxed).is_ok()
}

/// Asks the environment. Allocates no more than the value: tests count what is allocated.
#[cold]
fn asked() -> u32 {
    let number = std::env::var(SWITCH).ok().map_or(NONE, |name| {
        assert!(table::names().any(|known| known == name), "{SWITCH}: there is no step {name:?}");
        id(&name)
    });
    // Relaxed: as above. Whichever thread asks, the environment says the same.
    match REMOVED.compare_exchange(NOT_ASKED, number, Relaxed, Relaxed) {
        Ok(_) => number,
        Err(now) => now,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_steps_have_one_number() {
        let numbers: BTreeSet<u32> = table::names().map(id).collect();
        assert_eq!(numbers.len(), table::all().len());
        assert!(!numbers.contains(&NOT_ASKED) && !numbers.contains(&NONE));
    }
}
