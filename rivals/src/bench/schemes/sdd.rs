//! sdd, the epochs below scc's tables.

use std::sync::atomic::Ordering;

use sdd::{AtomicOwned, Guard, Owned, Tag};

use super::Scheme;

/// Epochs, with garbage in the retiring thread's hands.
#[derive(Debug)]
pub(in crate::bench) struct Sdd;

impl Scheme for Sdd {
    const NUMBER: usize = 4;
    type Place<T: Send + Sync + 'static> = AtomicOwned<T>;
    type Thread<'a> = ();

    fn new() -> Self {
        Self
    }

    fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> AtomicOwned<T> {
        AtomicOwned::new(value)
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<T: Send + Sync + 'static, R>(
        &self,
        _thread: &mut (),
        place: &AtomicOwned<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R {
        let guard = Guard::new();
        // Acquire: pairs with the swap in `replace`; the object is seen as it was made.
        let object = place.load(Ordering::Acquire, &guard);
        look(object.as_ref().expect("a place is never empty"))
    }

    #[inline(always)]
    fn replace<T: Send + Sync + 'static>(
        &self,
        _thread: &mut (),
        place: &AtomicOwned<T>,
        value: T,
    ) {
        // Epochs advance when guards end: who updates without one frees nothing.
        let _guard = Guard::new();
        // AcqRel: publishes the new object to the Acquire in `read`, and sees the old one whole.
        let (old, _) = place.swap((Some(Owned::new(value)), Tag::None), Ordering::AcqRel);
        // Which retires it.
        drop(old);
    }

    /// Advances the epoch if nobody is behind; garbage of ended threads is freed by whoever gets it.
    fn flush(&self) {
        let guard = Guard::new();
        guard.set_has_garbage();
        guard.accelerate();
    }
}
