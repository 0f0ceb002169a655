//! arc-swap: reference counts, with debts instead of counts on the fast path.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::Scheme;

/// A shared pointer to a counted object.
#[derive(Debug)]
pub(in crate::bench) struct Swapped;

impl Scheme for Swapped {
    const NUMBER: usize = 6;
    type Place<T: Send + Sync + 'static> = ArcSwap<T>;
    type Thread<'a> = ();

    fn new() -> Self {
        Self
    }

    fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> ArcSwap<T> {
        ArcSwap::from_pointee(value)
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<T: Send + Sync + 'static, R>(
        &self,
        _thread: &mut (),
        place: &ArcSwap<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R {
        look(&place.load())
    }

    #[inline(always)]
    fn replace<T: Send + Sync + 'static>(&self, _thread: &mut (), place: &ArcSwap<T>, value: T) {
        place.store(Arc::new(value));
    }
}
