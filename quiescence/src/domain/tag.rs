//! Tags of domains: what lets a section of one domain be told from a section of another.
//!
//! The global domain ([`guard`](super::guard)) and those declared with [`domain!`](crate::domain!)
//! are types, so the compiler refuses a section of another domain. Domains made at run time share a
//! type ([`names`](super::names)); there a pointer is compared, and another domain's panics.

use std::panic::Location;

use crate::reclaim::domain_state::DomainState;
use crate::reclaim::handle::{Handle, Named};

/// Names a domain of whatever sort: those of [`ThreadTag`](crate::ThreadTag), and
/// [`Sleepable`](crate::Sleepable).
///
/// # Safety
/// `core` must give the same domain for the same value and all its clones, for ever; if
/// [`STATIC`](Self::STATIC), for all values of the type. Use [`domain!`](crate::domain!).
pub unsafe trait DomainTag: Clone + Send + Sync + 'static {
    /// Whether the type alone names the domain.
    const STATIC: bool;

    /// What a section of it is proved by.
    type Section<'k>: Section<Self>;

    /// Begins a section, of whatever sort the domain has.
    #[doc(hidden)]
    fn enter(&self, location: &'static Location<'static>) -> Self::Section<'_>;

    /// The domain.
    #[doc(hidden)]
    fn core(&self) -> &DomainState;

    /// The domain, kept alive.
    #[doc(hidden)]
    fn handle(&self) -> Handle;
}

impl<K: DomainTag> Named for K {
    #[inline(always)]
    fn core(&self) -> &DomainState {
        DomainTag::core(self)
    }

    fn handle(&self) -> Handle {
        DomainTag::handle(self)
    }
}

/// Proof that a read-side critical section of the domain `K` is in progress.
///
/// # Safety
/// While the value lives, no grace period of `core` that begins may end.
#[diagnostic::on_unimplemented(
    message = "this is no section of the domain `{K}`",
    label = "a guard of another domain, or none at all",
    note = "the value is protected by sections of `{K}`: read in that domain: with `quiescence::read()` if it is `Global`, `Srcu::read` if it is `Sleepable`, else `Domain::of({K}).read()`"
)]
pub unsafe trait Section<K: DomainTag> {
    /// The domain that the section belongs to.
    #[doc(hidden)]
    fn core(&self) -> *const DomainState;
}

// SAFETY: the section that is borrowed lasts longer.
unsafe impl<K: DomainTag, S: Section<K>> Section<K> for &S {
    #[inline(always)]
    fn core(&self) -> *const DomainState {
        S::core(self)
    }
}
