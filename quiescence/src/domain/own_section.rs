//! A thread that is about to wait for a section of its own is refused, with the places of both.
//!
//! An error here makes a thread wait for itself. It ends no wait.

use std::panic::Location;

use crate::gp::grace_periods::Me;
use crate::gp::slot::Slot;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::local;

/// The calling thread, which is about to wait for a grace period, or for an update.
///
/// # Panics
/// If it would wait for itself.
pub(crate) fn may_wait(core: &DomainState, what: &str, location: &'static Location<'static>) -> Me {
    if let Some(slot) = local::section_in(core) {
        refuse(what, location, slot);
    }
    Me::this_thread()
}

#[cold]
#[track_caller]
fn refuse(what: &str, location: &Location<'_>, slot: &Slot) -> ! {
    let began = slot.notes.began().map_or_else(|| "an unknown place".into(), ToString::to_string);
    let (would, instead) = match what {
        // An update may come, unless it waits at the limit for this thread.
        "wait_changed" => ("may", "Qsbr::while_offline, or, in a task, changed"),
        _ => ("would", "Qsbr::synchronize, Qsbr::while_offline or, in a task, synchronize_async"),
    };
    if slot.is_qsbr() {
        panic!(
            "quiescence: {what}() at {location} {would} wait for ever: this thread is a QSBR \
             reader of the same domain, online since {began}; use {instead}"
        );
    }
    panic!(
        "quiescence: {what}() at {location} {would} wait for ever: this thread is inside a \
         read-side critical section of the same domain, begun at {began}; drop the guard first"
    );
}
