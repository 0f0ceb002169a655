//! The mixes of the crate `bustle`, with which the maps of other crates were measured.
//!
//! The crate draws the keys and runs the threads, so that figures can be held beside published
//! ones. The mixes are those of Wejdenstål's `conc-map-bench`, which has published figures of most
//! of these maps. There a map has room for 2^25 entries.
//!
//! The time is taken here: the crate takes it in a thread that begins, and ends, when it gets a
//! CPU, which may be late where its other threads keep all of them busy.

use std::sync::Arc;
use std::time::Instant;

use bustle::{Collection, CollectionHandle, Workload};
use parking_lot::Mutex;

use super::Map;
use crate::cases::object::turn;

/// Operations of all threads in a second, in these shares of look-ups, insertions, removals and
/// updates, of a map with room for 2^`room_log2` entries, of which a share is filled beforehand;
/// three quarters as many operations as there is room. The same seed draws the same keys.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If a map finds a key that is not there, or misses one.
pub(super) fn measure<M: Map<u64>>(
    [read, insert, remove, update]: [u8; 4],
    prefilled: f64,
    room_log2: u8,
    threads: usize,
    seed: u64,
) -> f64 {
    let _turn = turn();
    let mix = bustle::Mix { read, insert, remove, update, upsert: 0 };
    let mut workload = Workload::new(threads, mix);
    workload.initial_capacity_log2(room_log2).prefill_fraction(prefilled);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    workload.seed(bytes);
    *TURNS.lock() = Turns::default();
    let operations = workload.run_silently::<Shared<M>>().total_ops as f64;
    let turns = TURNS.lock();
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
static TURNS: Mutex<Turns> = Mutex::new(Turns { begun: None, ended: None });

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
        TURNS.lock().begun = Some(Instant::now());
        handle
    }
}

impl<M: Map<u64>> Drop for Handle<M> {
    fn drop(&mut self) {
        TURNS.lock().ended = Some(Instant::now());
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
