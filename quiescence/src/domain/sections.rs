//! Checks that values and collections make of their callers' sections.

use std::ptr;

use crate::domain::domain::Domain;
use crate::domain::tag::{DomainTag, Section};

/// Whether a section is one of this domain; where the types say so, nothing is compared.
#[inline(always)]
pub(crate) fn is_of<D: DomainTag>(section: &impl Section<D>, domain: &Domain<D>) -> bool {
    D::STATIC || ptr::eq(section.core(), domain.core())
}

/// Panics if the section is not of the domain of the cell or collection, which is named `$what`.
macro_rules! check_section {
    ($section:expr, $domain:expr, $what:literal) => {
        assert!(
            $crate::domain::sections::is_of($section, $domain),
            concat!("quiescence: the guard is of another domain than the ", $what)
        )
    };
}
pub(crate) use check_section;

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
