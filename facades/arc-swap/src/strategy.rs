//! Names for how a place protects what is in it. All of them work in the same way.

use crate::RefCnt;

mod sealed {
    pub trait Sealed {}
}

/// The strategy of [`ArcSwap`](crate::ArcSwap).
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultStrategy {
    _private: (),
}

impl DefaultStrategy {
    pub(crate) const NEW: Self = Self { _private: () };
}

/// The same.
#[doc(hidden)]
pub type IndependentStrategy = DefaultStrategy;

/// What is a strategy for this pointer.
pub trait Strategy<T: RefCnt>: sealed::Sealed {}

/// Strategies that can compare and swap: all.
pub trait CaS<T: RefCnt>: Strategy<T> {}

impl sealed::Sealed for DefaultStrategy {}
#[cfg(feature = "rwlock-strategy")]
impl sealed::Sealed for std::sync::RwLock<()> {}

impl<T: RefCnt, S: sealed::Sealed> Strategy<T> for S {}
impl<T: RefCnt, S: sealed::Sealed> CaS<T> for S {}
