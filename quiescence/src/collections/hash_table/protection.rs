//! What a table must know about its readers.

use crate::domain::domain::Domain;
use crate::domain::tag::DomainTag;

/// How a table's nodes are protected: what its worker does to be a reader, and to wait for readers.
/// Implemented by every [`Domain`]; by others for readers that are not Rust's.
///
/// # Safety
/// `synchronize` returns after every section that had begun when it was called has ended: those of
/// `section`, and those in which the table's functions are called.
pub unsafe trait Protection: Clone + Send + Sync + 'static {
    /// Calls `f` in a section.
    fn section(&self, f: &mut dyn FnMut());

    /// Waits for a grace period. Called outside sections.
    fn synchronize(&self);

    /// The calling thread, which is a reader, begins to wait for another one.
    fn offline(&self) {}

    /// It has waited.
    fn online(&self) {}

    /// The worker begins to work on a table of these readers.
    fn begin(&self) {}

    /// It has worked.
    fn end(&self) {}
}

// SAFETY: that is what a domain does.
unsafe impl<K: DomainTag> Protection for Domain<K> {
    fn section(&self, f: &mut dyn FnMut()) {
        let _section = self.read();
        f();
    }

    fn synchronize(&self) {
        Self::synchronize(self);
    }
}
