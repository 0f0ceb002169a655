//! What two CPUs do to each other though they share nothing but a line: counters and locks of their
//! own, as neighbours and apart.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Geometry, Load};
use crate::cases::form::Form;
use crate::slices::Row;

/// The two of a pair on one line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Near<T>([T; 2]);

/// One with its neighbours kept away: two lines, since some CPUs fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// One for each thread, which no other one touches.
#[derive(Default)]
pub(crate) struct Own<T> {
    near: Near<T>,
    apart: [Apart<T>; 2],
}

impl<T: Count> Own<T> {
    pub(crate) fn boxed(_: &Geometry) -> Box<dyn Load> {
        Box::<Self>::default()
    }
}

impl<T: Count> Load for Own<T> {
    fn row(&self, form: Form) -> Row<'_> {
        Row::new(2, move |part| {
            let (near, apart) = (&self.near.0[part.me], &self.apart[part.me].0);
            let own = if form == Form::Before { near } else { apart };
            part.times(|| own.count())
        })
    }
}

/// What a thread counts in.
pub(crate) trait Count: Default + Sync + 'static {
    fn count(&self);
}

/// A counter.
impl Count for AtomicU64 {
    #[inline(always)]
    fn count(&self) {
        // Relaxed: the cost is that of the line, not of an order.
        self.fetch_add(1, Ordering::Relaxed);
    }
}

/// A lock, with what it protects.
impl Count for Mutex<u64> {
    #[inline(always)]
    fn count(&self) {
        *self.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices;

    #[test]
    fn neighbours_share_a_line_and_the_others_do_not() {
        let line = |place: *const AtomicU64| place as usize / 64;
        let (near, apart): (Near<AtomicU64>, [Apart<AtomicU64>; 2]) = Default::default();
        assert_eq!(line(&raw const near.0[0]), line(&raw const near.0[1]));
        assert!(line(&raw const apart[0].0).abs_diff(line(&raw const apart[1].0)) >= 2);
        let locks: Near<Mutex<u64>> = Near::default();
        let last = &raw const locks.0[1] as usize + size_of::<Mutex<u64>>() - 1;
        assert_eq!(&raw const locks.0[0] as usize / 64, last / 64);
    }

    #[test]
    fn each_thread_has_its_own_in_either_form() {
        let (counters, locks) = (Own::<AtomicU64>::default(), Own::<Mutex<u64>>::default());
        for form in [Form::Before, Form::After] {
            slices::once(&counters.row(form), 240);
            slices::once(&locks.row(form), 240);
        }
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let held = |lock: &Mutex<u64>| *lock.lock().unwrap();
        let near = [0, 1].map(|me| [of(&counters.near.0[me]), held(&locks.near.0[me])]);
        let apart = [0, 1].map(|me| [of(&counters.apart[me].0), held(&locks.apart[me].0)]);
        for [one, other] in [near, apart] {
            for (one, other) in one.into_iter().zip(other) {
                // The first to be done has done all, and an eighth to warm up; the other as much of
                // it as it could.
                assert_eq!(one.max(other), 270);
                assert!(one.min(other) >= 30, "{one} and {other}");
            }
        }
    }
}
