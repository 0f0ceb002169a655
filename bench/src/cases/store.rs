//! An `Arc` in a place: getting it, and replacing it while many threads that have loaded it live,
//! and rest.
//!
//! Some designs look through something for each thread that has ever read. The place holds one of
//! two `Arc`s in turn, so that nothing is allocated or freed.

use std::hint::black_box;
use std::sync::Arc;

use super::crowd::Rest;
use super::loops::Loop;
use crate::serve::Copied;
use crate::slices::Row;

/// Getting an `Arc` of one's own, and giving it back.
pub(crate) fn arcs<A: Copied<Arc<u64>>>() -> Loop {
    Loop::of(A::new(Arc::new(1)), |place| *place.read())
}

/// A place of some design.
pub(crate) type Cell = Box<dyn Copied<Arc<u64>>>;

/// One with a 1 in it.
pub(crate) fn boxed<A: Copied<Arc<u64>>>() -> Cell {
    Box::new(A::new(Arc::new(1)))
}

/// Whose a place is, and it.
pub(crate) type Place = (&'static str, Cell);

/// What a thread of a [`crowd`](super::crowd) does: it loads once from every place, and rests.
pub(crate) fn loaded(places: &[Place]) -> impl Fn(usize, Rest<'_>) + Sync {
    |_, rest| {
        assert!(places.iter().all(|(_, place)| *place.read() == 1), "every place holds a 1");
        rest.until_sent();
    }
}

/// A store into a place, which asserts that what was stored last is what is loaded afterwards.
pub(crate) fn row((name, place): &Place) -> Row<'_> {
    Row::new(1, move |part| {
        let arcs = [Arc::new(1), Arc::new(1)];
        let mut number = 0;
        let took = part.times(|| {
            place.write(Arc::clone(black_box(&arcs[number % 2])));
            number += 1;
        });
        place.flush();
        assert_eq!(*place.read(), 1, "{name} holds a 1");
        let held = arcs.iter().map(|arc| Arc::strong_count(arc) - 1).sum::<usize>();
        assert_eq!(held, 1, "{name} holds the last one");
        took
    })
}
