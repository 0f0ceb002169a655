//! What two CPUs do to each other though they share nothing but a line: counters and locks of their
//! own, as neighbours and apart.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam_utils::CachePadded;

use super::{Geometry, Load};
use crate::cases::form::Form;
use crate::slices::Row;

/// One for each thread, which no other one touches.
#[derive(Default)]
pub(crate) struct Own<T> {
    /// The two of a pair on one line.
    near: CachePadded<[T; 2]>,
    /// Each with its neighbours kept away.
    apart: [CachePadded<T>; 2],
}

impl<T: Count> Own<T> {
    pub(crate) fn boxed(_: &Geometry) -> Box<dyn Load> {
        Box::<Self>::default()
    }
}

impl<T: Count> Load for Own<T> {
    fn row(&self, form: Form) -> Row<'_> {
        Row::new(2, move |part| {
            let (near, apart) = (&self.near[part.me], &*self.apart[part.me]);
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
        let Own { near, apart } = Own::<AtomicU64>::default();
        assert_eq!(line(&raw const near[0]), line(&raw const near[1]));
        assert!(line(&raw const *apart[0]).abs_diff(line(&raw const *apart[1])) >= 2);
        let locks = Own::<Mutex<u64>>::default().near;
        let last = &raw const locks[1] as usize + size_of::<Mutex<u64>>() - 1;
        assert_eq!(&raw const locks[0] as usize / 64, last / 64);
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
        let near = [0, 1].map(|me| [of(&counters.near[me]), held(&locks.near[me])]);
        let apart = [0, 1].map(|me| [of(&counters.apart[me]), held(&locks.apart[me])]);
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
