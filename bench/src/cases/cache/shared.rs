//! What two CPUs do to each other though they share nothing but a line: counters and locks of their
//! own, as neighbours and apart.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::Load;
use crate::cases::form::Form;
use crate::shapes::Counting;
use crate::slices::Row;

/// One for each thread, which no other one touches.
pub(crate) struct Own<T> {
    /// The two of a pair on one line.
    near: CachePadded<[T; 2]>,
    /// Each with its neighbours kept away.
    apart: [CachePadded<T>; 2],
}

impl<T: Counting> Own<T> {
    pub(crate) fn load() -> Load {
        let own = Arc::new(Self::new());
        Box::new(move |form| own.row(form))
    }

    fn new() -> Self {
        let (near, apart) = ([T::new(), T::new()], [T::new(), T::new()]);
        Self { near: CachePadded::new(near), apart: apart.map(CachePadded::new) }
    }

    fn row(self: &Arc<Self>, form: Form) -> Row<'static> {
        let own = Arc::clone(self);
        Row::new(2, move |part| {
            let (near, apart) = (&own.near[part.me], &*own.apart[part.me]);
            let own = if form == Form::Before { near } else { apart };
            part.times(|| own.add())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::locks::Locked;
    use crate::slices;

    #[test]
    fn neighbours_share_a_line_and_the_others_do_not() {
        let line = |place: *const AtomicU64| place as usize / 64;
        let Own { near, apart } = Own::<AtomicU64>::new();
        assert_eq!(line(&raw const near[0]), line(&raw const near[1]));
        assert!(line(&raw const *apart[0]).abs_diff(line(&raw const *apart[1])) >= 2);
        let locks = Own::<Locked<Mutex<u64>>>::new().near;
        let last = &raw const locks[1] as usize + size_of::<Mutex<u64>>() - 1;
        assert_eq!(&raw const locks[0] as usize / 64, last / 64);
    }

    /// What two threads have counted in either form.
    fn counted<T: Counting>() -> [[u64; 2]; 2] {
        let own = Arc::new(Own::<T>::new());
        Form::BOTH.iter().for_each(|form| _ = slices::once(&own.row(*form), 240));
        [own.near.each_ref().map(T::sum), own.apart.each_ref().map(|one| one.sum())]
    }

    #[test]
    fn each_thread_has_its_own_in_either_form() {
        let all = [counted::<AtomicU64>(), counted::<Locked<Mutex<u64>>>()];
        for [one, other] in all.into_iter().flatten() {
            // The first to be done has done all, and an eighth to warm up; the other as much of it
            // as it could.
            assert_eq!(one.max(other), 270);
            assert!(one.min(other) >= 30, "{one} and {other}");
        }
    }
}
