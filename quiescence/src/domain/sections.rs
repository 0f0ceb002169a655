//! Checks that values and collections make of their callers' sections.

use std::ptr;

use crate::domain::domain::Domain;
use crate::domain::tag::{DomainTag, Section};

/// Panics if the section is not of the domain of the cell or collection, which is called `what`;
/// where the types say that it is, nothing is compared.
#[inline(always)]
#[track_caller]
pub(crate) fn check<D: DomainTag>(section: &impl Section<D>, domain: &Domain<D>, what: &str) {
    if !D::STATIC && !ptr::eq(section.core(), domain.core()) {
        is_of_another(what);
    }
}

#[cold]
#[track_caller]
fn is_of_another(what: &str) -> ! {
    panic!("quiescence: the guard is of another domain than the {what}");
}

/// Panics: a call would exceed the limit a second time in one section.
#[cold]
#[track_caller]
pub(crate) fn refuse(what: &str, instead: &str) -> ! {
    panic!(
        "quiescence: {what}() in a section: the domain is at its limit, which this thread has \
         already exceeded once; call it outside of sections, use {instead}, or raise the limit in \
         the domain's Tuning"
    );
}
