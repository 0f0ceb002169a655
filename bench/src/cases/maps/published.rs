//! The mixes of the crate `bustle`, with which the maps of other crates were measured.
//!
//! The crate draws the keys and runs the threads, so that figures can be held beside published
//! ones. The mixes and their sizes are those of Wejdenstål's `conc-map-bench`, which has published
//! figures of most of these maps. There a map has room for 2^25 entries, three quarters of which
//! are there beforehand, but for "rapid grow", which begins empty.
//!
//! The time is taken here: the crate takes it in a thread that begins, and ends, when it gets a
//! CPU, which may be late where its other threads keep all of them busy.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bustle::{Collection, CollectionHandle, Workload};

use super::Map;
use crate::cases::object::Turn;
use crate::rivals::Rival;

/// A mix that figures were published of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mix {
    /// 98 % look-ups, 1 % insertions, 1 % removals.
    ReadHeavy,
    /// 10 % look-ups, 40 % insertions, 40 % removals, 10 % updates.
    Exchange,
    /// 5 % look-ups, 80 % insertions, 5 % removals, 10 % updates, beginning with an empty map.
    RapidGrow,
}

impl Mix {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::ReadHeavy, Self::Exchange, Self::RapidGrow];

    fn shares(self) -> bustle::Mix {
        let (read, insert, remove, update) = match self {
            Self::ReadHeavy => (98, 1, 1, 0),
            Self::Exchange => (10, 40, 40, 10),
            Self::RapidGrow => (5, 80, 5, 10),
        };
        bustle::Mix { read, insert, remove, update, upsert: 0 }
    }

    /// The share of the room that is filled beforehand.
    fn prefilled(self) -> f64 {
        if self == Self::RapidGrow { 0.0 } else { 0.75 }
    }
}

/// Operations of all threads in a second, of a map with room for 2^`room_log2` entries, three
/// quarters as many operations as there is room. The same seed draws the same keys.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If the rival has no maps, or one that finds a key that is not there, or misses one.
pub(crate) fn measure(rival: &Rival, mix: Mix, room_log2: u8, threads: usize, seed: u64) -> f64 {
    let _turn = Turn::wait();
    let kinds = rival.maps.expect("only rivals with maps are asked");
    let mut workload = Workload::new(threads, mix.shares());
    workload.initial_capacity_log2(room_log2).prefill_fraction(mix.prefilled());
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    workload.seed(bytes);
    (kinds.published)(&workload)
}

/// Runs the workload on a map: operations in a second.
pub(super) fn run<M: Map<u64>>(workload: &Workload) -> f64 {
    *turns() = Turns::default();
    let operations = workload.run_silently::<Shared<M>>().total_ops as f64;
    let turns = turns();
    let (begun, ended) = turns.begun.zip(turns.ended).expect("threads have had handles");
    operations / ended.duration_since(begun).as_secs_f64()
}

/// When the last handle was taken, and when the last one was given back. Threads take a handle to
/// fill the map, and another one for the operations, just before they begin together.
#[derive(Debug, Default)]
struct Turns {
    begun: Option<Instant>,
    ended: Option<Instant>,
}

/// Of the one measurement of the process.
fn turns() -> MutexGuard<'static, Turns> {
    static TURNS: Mutex<Turns> = Mutex::new(Turns { begun: None, ended: None });
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A map as the crate wants it.
struct Shared<M>(Arc<M>);

/// The map, and what one thread holds.
struct Handle<M: Map<u64>>(Arc<M>, M::Thread);

impl<M: Map<u64>> Collection for Shared<M> {
    type Handle = Handle<M>;

    fn with_capacity(capacity: usize) -> Self {
        Self(Arc::new(M::with_capacity(capacity)))
    }

    fn pin(&self) -> Handle<M> {
        let handle = Handle(Arc::clone(&self.0), self.0.thread());
        turns().begun = Some(Instant::now());
        handle
    }
}

impl<M: Map<u64>> Drop for Handle<M> {
    fn drop(&mut self) {
        turns().ended = Some(Instant::now());
    }
}

impl<M: Map<u64>> CollectionHandle for Handle<M> {
    type Key = u64;

    #[inline]
    fn get(&mut self, key: &u64) -> bool {
        self.0.contains(&mut self.1, key)
    }

    #[inline]
    fn insert(&mut self, key: &u64) -> bool {
        self.0.insert(&mut self.1, key, 0)
    }

    #[inline]
    fn remove(&mut self, key: &u64) -> bool {
        self.0.remove(&mut self.1, key)
    }

    #[inline]
    fn update(&mut self, key: &u64) -> bool {
        self.0.update(&mut self.1, key, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rivals;
    use super::*;

    #[test]
    fn every_map_passes_the_checks_of_the_crate_in_every_mix() {
        for rival in rivals() {
            for mix in Mix::ALL {
                // That it finds what is there, and nothing else, is asserted within.
                let per_second = measure(rival, mix, 12, 2, 7);
                assert!(per_second > 0.0 && per_second.is_finite(), "{}: {mix:?}", rival.name);
            }
        }
    }
}
