//! Replacing an `Arc` that many threads have loaded: they live, and rest.
//!
//! Some designs look through something for each thread that has ever read. The place holds one of
//! two `Arc`s in turn, so that nothing is allocated or freed.

use std::hint::black_box;
use std::io;
use std::sync::Arc;

use super::crowd::Crowd;
use crate::rivals::{Rival, Stored};
use crate::slices::Row;

/// The rivals whose `Arc`s are replaced.
pub fn rivals() -> Vec<&'static Rival> {
    super::those(|rival| rival.store.is_some())
}

fn places() -> Vec<Stored> {
    rivals().iter().filter_map(|rival| rival.store).collect()
}

/// Threads that have loaded once from every place, and rest until this is dropped.
#[derive(Debug)]
pub struct Loaders(#[expect(dead_code, reason = "held")] Crowd);

impl Loaders {
    /// Gathers so many threads; all have loaded when this returns.
    ///
    /// # Errors
    /// When the system does not give so many threads, or a place does not hold what was stored.
    ///
    /// # Panics
    /// The threads do then, not the caller.
    pub fn gather(threads: usize) -> io::Result<Self> {
        let load = |rest: &dyn Fn()| {
            let places = places();
            let loaded: u64 = places.iter().map(|place| (place.load)()).sum();
            assert_eq!(loaded, places.len() as u64, "every place holds a 1");
            rest();
        };
        Ok(Self(Crowd::gather(threads, load)?))
    }

    /// A store beside them, which asserts that what was stored last is what is loaded afterwards.
    pub(crate) fn row<'a>(&'a self, rival: &'a Rival) -> Row<'a> {
        let place = rival.store.expect("only rivals that store are asked");
        Row::new(1, move |part| {
            let arcs = [Arc::new(1), Arc::new(1)];
            let mut number = 0;
            let took = part.times(|| {
                (place.store)(Arc::clone(black_box(&arcs[number % 2])));
                number += 1;
            });
            (place.flush)();
            assert_eq!((place.load)(), 1, "{} holds a 1", rival.name);
            let held = arcs.iter().map(|arc| Arc::strong_count(arc) - 1).sum::<usize>();
            assert_eq!(held, 1, "{} holds the last one", rival.name);
            took
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices;

    #[test]
    fn every_place_holds_what_was_stored_last_whoever_has_loaded() {
        let loaders = Loaders::gather(20).expect("twenty threads");
        for rival in rivals() {
            for stores in [1, 100] {
                assert!(slices::once(&loaders.row(rival), stores) > 0.0, "{}", rival.name);
            }
        }
    }
}
