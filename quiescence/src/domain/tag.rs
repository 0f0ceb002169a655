//! Tags of domains, which tell a section of one domain from a section of another.
//!
//! The global domain ([`guard`](super::guard)) and those declared with [`domain!`](crate::domain!)
//! have a tag type each, so the compiler rejects a section of another domain. Domains made at run
//! time share a type ([`names`](super::names)): a call compares pointers, and panics if the section
//! is another domain's.

use std::panic::Location;

use crate::reclaim::domain_state::{DomainState, Named};

/// The tag of a domain: a [`ThreadTag`](crate::tag::ThreadTag), or
/// [`Sleepable`](crate::tag::Sleepable).
///
/// # Safety
/// A value and all its clones must always name the same domain; if [`STATIC`](Self::STATIC), all
/// values of the type must. Use [`domain!`](crate::domain!).
pub unsafe trait DomainTag: Named + Clone + Send + Sync + 'static {
    /// Whether the type alone identifies the domain.
    const STATIC: bool;

    /// The proof that a section of the domain is in progress.
    type Section<'k>: Section<Self>;

    /// Begins a section of the domain.
    #[doc(hidden)]
    fn enter(&self, location: &'static Location<'static>) -> Self::Section<'_>;
}

/// Proof that a read-side critical section of the domain `K` is in progress.
///
/// # Safety
/// A grace period of `core` that begins while the value lives must not end while it lives.
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

// SAFETY: the borrowed section outlives the reference.
unsafe impl<K: DomainTag, S: Section<K>> Section<K> for &S {
    #[inline(always)]
    fn core(&self) -> *const DomainState {
        S::core(self)
    }
}
