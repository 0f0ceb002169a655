//! What hazard pointers protect: the domain that it is retired in by default, and what is done
//! at the limit and at the end of such a domain.

use grace::limit::Amount;

use crate::hazptr;
use crate::os::sync::const_unless_loom;
use crate::reclaim::defer;
use crate::reclaim::domain_state::{DomainState, Handle, Named};
use crate::reclaim::domains;
use crate::reclaim::free::{Address, Callback, Counted, Pending, Pointee, Ripe};
use crate::reclaim::rescan;
use crate::reclaim::stream::{Run, Word};
use crate::reclaim::thread_queue::Ended;
use crate::reclaim::worker;

const_unless_loom! {
    /// The hazard domain of the process, in which cells retire.
    pub(crate) static HAZARDS: DomainState = DomainState::hazard(Some("hazard"), end);
}

/// Names [`HAZARDS`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct GlobalHazards;

impl Named for GlobalHazards {
    #[inline(always)]
    fn core(&self) -> &DomainState {
        &HAZARDS
    }

    fn handle(&self) -> Handle {
        Handle::Static(&HAZARDS)
    }
}

/// Frees an object once its grace period is over and no slot names it. May wait where
/// [`defer::retire_box`] may; inside a section it is never refused.
///
/// # Safety
/// To free it then, on any thread, must be sound: no thread finds it where slots' owners look for
/// it. `bytes` is what [`Address::charge`] gives for it.
#[inline]
#[track_caller]
pub(crate) unsafe fn retire<K: Named, P: Pointee>(tag: &K, object: *mut P::Object, bytes: u64) {
    // SAFETY: by the contract.
    let object = unsafe { Pending::new(tag.core(), Address::<P>(object)) };
    if let Some(ripe) = defer::retire_address(tag, object, bytes) {
        free_or_keep(tag, ripe, Amount::object(bytes));
    }
}

/// Frees an object for which there is no room, or keeps it over the limit if it is protected.
fn free_or_keep<K: Named, P: Pointee>(tag: &K, ripe: Ripe<'_, Address<P>>, amount: Amount) {
    let domain = tag.core();
    if !hazptr::is_protected(ripe.address()) {
        // SAFETY: no slot names it [HZ-A].
        return unsafe { ripe.end_unprotected() };
    }
    let address = ripe.into_pending().take_back();
    domain.admit_over(amount);
    let mut payload = [Word::uninit(); 2];
    let counted = Counted { callback: address, bytes: amount.bytes };
    // SAFETY: two words, aligned as such.
    unsafe { payload.as_mut_ptr().cast::<Counted<Address<P>>>().write(counted) };
    let kind = &Counted::<Address<P>>::KIND;
    domain.kept.keep_unqueued(&Run { kind, payload: payload.as_mut_ptr(), count: 1 });
    // The worker may have left the domain: it comes by for what is kept.
    worker::announce(&tag.handle());
}

/// A hazard domain ends: frees what waits in it. What is protected outlives
/// it, in [`HAZARDS`].
pub(crate) fn end(domain: &Ended<'_>) {
    domain.grace_periods.heavy_fence(); // [HP-1]
    domain.queues.run_all(domain);
    rescan::free_unprotected(domain);
    if !domain.kept.is_empty() {
        domains::known(&GlobalHazards);
        rescan::move_to(domain, &HAZARDS);
        worker::attend(&GlobalHazards.handle());
    }
}
