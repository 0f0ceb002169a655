//! Frees what was [kept](crate::reclaim::kept) and is protected no more.

use grace::driver::TICK_NS;
use grace::limit::Amount;

use crate::chaos::{self, Mutant};
use crate::hazptr;
use crate::os::{clock, nap, unwind};
use crate::reclaim::charge::Charged;
use crate::reclaim::kept::Object;
use crate::reclaim::running::{self, Uncharged};

use std::sync::atomic::Ordering::Relaxed;

/// The longest that an object which is protected no more waits to be found.
const REST_MAX_NS: u64 = 1_000_000_000;

/// Frees what is protected no more, and waits for threads that are about to free some of it.
pub(crate) fn drain(core: &Charged) {
    while !free_unprotected(core) && !chaos::mutant(Mutant::HazardKeptInHand) {
        nap::moment();
    }
}

/// Frees what is protected no more. Returns whether that was all there is: no other thread had
/// taken some of it.
pub(crate) fn free_unprotected(core: &Charged) -> bool {
    let (in_hand, is_all) = core.kept.take_in_hand();
    let taken = core.kept.take();
    if !taken.is_empty() {
        free(core, keep_protected(core, taken));
    }
    drop(in_hand);
    is_all
}

/// Keeps again what is protected still. Returns the rest.
fn keep_protected(core: &Charged, taken: Vec<Object>) -> Vec<Object> {
    let protected = hazptr::scan();
    let now_ns = clock::monotonic_ns();
    let is_protected = |object: &Object| protected.binary_search(&object.address()).is_ok();
    let (kept, rest): (Vec<_>, Vec<_>) = taken.into_iter().partition(is_protected);
    let age_ns = |object: &Object| now_ns.saturating_sub(object.since_ns);
    let youngest_ns = kept.iter().map(age_ns).min();
    let rest_ns = youngest_ns.unwrap_or(0).clamp(TICK_NS, REST_MAX_NS);
    let due_ns = now_ns.saturating_add(rest_ns);
    if !kept.is_empty() {
        core.kept.set_due(due_ns);
    }
    kept.into_iter().for_each(|object| core.kept.push(object, due_ns));
    rest
}

fn free(core: &Charged, objects: Vec<Object>) {
    if objects.is_empty() {
        return;
    }
    let uncharged = Uncharged::new();
    let mut panicked = 0;
    running::running_callbacks(core, &uncharged, || {
        for object in objects {
            uncharged.begin_run(Amount::object(object.bytes).bytes);
            // SAFETY: the scan came after its grace period, and found no slot with its address.
            let free = || unsafe { object.free(&uncharged.progress) };
            panicked += u64::from(!unwind::caught(free));
        }
    });
    core.counters().callbacks_panicked.fetch_add(panicked, Relaxed); // a statistic
    core.charge.0.give_back(uncharged.room());
    core.tell_of_room();
}

/// What is kept moves to another domain, which is charged from now on.
pub(crate) fn move_to(core: &Charged, other: &Charged) {
    for object in core.kept.take() {
        other.admit_over(Amount::object(object.bytes));
        other.kept.push(object, 0);
    }
}
