//! An `Arc` in a place: getting it, and replacing it while many threads that have loaded it live,
//! and rest.
//!
//! Some designs look through something for each thread that has ever read. The place holds one of
//! two `Arc`s in turn, so that nothing is allocated or freed.

use std::hint::black_box;
use std::io;
use std::sync::Arc;

use super::crowd::Crowd;
use super::loops::Loop;
use crate::serve::Arcs;
use crate::slices::Row;

/// Getting an `Arc` of one's own, and giving it back.
pub(crate) fn arcs<A: Arcs>() -> Loop {
    Loop::of(A::new(Arc::new(1)), A::read)
}

/// A place with a 1 in it.
pub(crate) fn boxed<A: Arcs>() -> Box<dyn Arcs> {
    Box::new(A::new(Arc::new(1)))
}

/// A place, and whose it is.
type Place = (&'static str, Box<dyn Arcs>);

/// Places, and threads that have loaded once from every one, and rest until this is dropped.
pub(crate) struct Loaders {
    _crowd: Crowd,
    places: Arc<[Place]>,
}

impl Loaders {
    /// Gathers so many threads; all have loaded when this returns.
    ///
    /// # Errors
    /// When the system does not give so many threads, or a place does not hold what was stored.
    ///
    /// # Panics
    /// The threads do then, not the caller.
    pub(crate) fn gather(places: Arc<[Place]>, threads: usize) -> io::Result<Self> {
        let loaded = Arc::clone(&places);
        let load = move |rest: &dyn Fn()| {
            assert!(loaded.iter().all(|(_, place)| place.read() == 1), "every place holds a 1");
            rest();
        };
        Ok(Self { _crowd: Crowd::gather(threads, load)?, places })
    }

    /// A store into the place of this name beside them, which asserts that what was stored last is
    /// what is loaded afterwards.
    pub(crate) fn row(&self, name: &str) -> Row<'_> {
        let place = self.places.iter().find(|(known, _)| *known == name);
        let (name, place) = place.expect("only those that are there are asked");
        Row::new(1, move |part| {
            let arcs = [Arc::new(1), Arc::new(1)];
            let mut number = 0;
            let took = part.times(|| {
                place.store(Arc::clone(black_box(&arcs[number % 2])));
                number += 1;
            });
            place.flush();
            assert_eq!(place.read(), 1, "{name} holds a 1");
            let held = arcs.iter().map(|arc| Arc::strong_count(arc) - 1).sum::<usize>();
            assert_eq!(held, 1, "{name} holds the last one");
            took
        })
    }
}
