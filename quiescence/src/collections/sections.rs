//! What collections ask of their callers' sections.

use std::ptr;

use crate::domain::domain::Domain;
use crate::domain::tag::{DomainTag, Section};

/// Refuses a section of another domain than that of a `collection`, where the types do not.
#[inline(always)]
pub(super) fn check<D: DomainTag>(
    section: &impl Section<D>,
    domain: &Domain<D>,
    collection: &'static str,
) {
    if !D::STATIC {
        assert!(
            ptr::eq(section.core(), domain.core()),
            "quiescence: the guard is of another domain than the {collection}"
        );
    }
}

/// Refuses what would go over the limit once more in one section.
#[cold]
#[track_caller]
pub(super) fn refuse(what: &str, instead: &str) -> ! {
    panic!(
        "quiescence: {what}() in a section, at the limit of what may wait, and this thread is over \
         it already: do it outside of sections, use {instead}, or raise the limit in the domain's \
         Tuning"
    );
}
