//! What values and collections ask of their callers' sections.

use std::ptr;

use crate::domain::domain::Domain;
use crate::domain::tag::{DomainTag, Section};

/// Whether a section is one of this domain; where the types say so, nothing is compared.
#[inline(always)]
pub(crate) fn is_of<D: DomainTag>(section: &impl Section<D>, domain: &Domain<D>) -> bool {
    D::STATIC || ptr::eq(section.core(), domain.core())
}

/// Refuses a section of another domain than the one of what is called so.
macro_rules! check_section {
    ($section:expr, $domain:expr, $what:literal) => {
        assert!(
            $crate::domain::sections::is_of($section, $domain),
            concat!("quiescence: the guard is of another domain than the ", $what)
        )
    };
}
pub(crate) use check_section;

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
