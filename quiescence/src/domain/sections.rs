//! What values and collections ask of their callers' sections.

use std::ptr;

use crate::domain::domain::Domain;
use crate::domain::tag::{DomainTag, Section};

/// Refuses a section of another domain than that of a `what`. Where the types tell, nothing is
/// compared.
#[inline(always)]
pub(crate) fn check<D: DomainTag>(
    section: &impl Section<D>,
    domain: &Domain<D>,
    what: &'static str,
) {
    if !D::STATIC && !ptr::eq(section.core(), domain.core()) {
        refuse_other(what);
    }
}

#[cold]
#[inline(never)]
fn refuse_other(what: &'static str) -> ! {
    panic!("quiescence: the guard is of another domain than the {what}");
}

/// Refuses what would go over the limit once more in one section.
#[cold]
#[track_caller]
pub(crate) fn refuse(what: &str, instead: &str) -> ! {
    panic!(
        "quiescence: {what}() in a section, at the limit of what may wait, and this thread is over \
         it already: do it outside of sections, use {instead}, or raise the limit in the domain's \
         Tuning"
    );
}
