//! Frees what was [kept](crate::reclaim::kept) and is protected no more.

use grace::driver::TICK_NS;
use grace::limit::Amount;

use crate::os::user_code::{self, Site};
use crate::os::{clock, nap};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::kept::{InHand, Object, Taken};
use crate::reclaim::running;

use std::sync::atomic::Ordering::Relaxed;

/// The longest that an object which is protected no more waits to be found.
const REST_MAX_NS: u64 = 1_000_000_000;

/// Frees what is protected no more, and waits for threads that are about to free some of it.
pub(crate) fn drain(domain: &DomainState) {
    //~ hazard-kept-in-hand:
    while !free_unprotected(domain) {
        nap::moment();
    }
}

/// Frees what is protected no more. Returns whether that was all there is: no other thread had
/// taken some of it.
pub(crate) fn free_unprotected(domain: &DomainState) -> bool {
    domain.frees_kept.is_none_or(|rescan| rescan(domain))
}

/// As [`free_unprotected`], in a hazard domain.
pub(crate) fn rescan(domain: &DomainState) -> bool {
    let Some(scan) = domain.grace_periods.hazards.filter(|_| !domain.kept.is_empty()) else {
        return true;
    };
    domain.kept.with_all(|in_hand, taken| {
        if !taken.objects.is_empty() {
            free(domain, in_hand, put_back_protected(domain, in_hand, taken, &scan()));
        }
    })
}

/// Puts back what is protected still, of several references to an object one. Returns the rest.
#[expect(clippy::vec_box, reason = "nodes of the list")]
fn put_back_protected(
    domain: &DomainState,
    in_hand: &InHand<'_>,
    mut taken: Taken,
    protected: &[usize],
) -> Vec<Box<Object>> {
    let now_ns = clock::monotonic_ns();
    let mut youngest_ns = REST_MAX_NS;
    let (mut rest, mut last) = (Vec::new(), None);
    taken.objects.sort_by_key(|object| object.frees());
    for object in taken.objects {
        let is_protected = protected.binary_search(&object.address()).is_ok();
        if is_protected && last.replace(object.frees()) != Some(object.frees()) {
            youngest_ns = youngest_ns.min(now_ns.saturating_sub(object.since_ns));
            in_hand.put_back(object);
        } else {
            rest.push(object);
        }
    }
    let due_ns = now_ns.saturating_add(youngest_ns.max(TICK_NS));
    domain.kept.postpone(taken.due_ns, due_ns);
    rest
}

#[expect(clippy::vec_box, reason = "nodes of the list")]
fn free(domain: &DomainState, in_hand: &InHand<'_>, objects: Vec<Box<Object>>) {
    if objects.is_empty() {
        return;
    }
    let mut panicked = 0;
    let (left, freed) = running::running_callbacks(&domain.grace_periods, |running| {
        for object in objects {
            running.begin(1, object.bytes);
            // SAFETY: the scan came after its grace period, and found no slot with its address; or
            // another reference to the object has been put back.
            let free = || unsafe { object.free() };
            panicked += u64::from(!user_code::caught(Site::Callback, free));
        }
        (running.room(), running.made.get())
    });
    // At the end, as what they were charged is given back: so a child counts both or none.
    in_hand.forget(freed);
    domain.grace_periods.counters().callbacks_panicked.fetch_add(panicked, Relaxed); // a statistic
    domain.charge.give_back(left);
    domain.grace_periods.tell_of_room();
}

/// What is kept moves to another domain, which is charged from now on.
pub(crate) fn move_to(domain: &DomainState, other: &DomainState) {
    for object in domain.kept.take().objects {
        domain.kept.forget(Amount::object(object.bytes));
        other.admit_over(Amount::object(object.bytes));
        other.kept.adopt(object);
    }
}
