//! What hazard pointers protect: the domain that it is retired in by default, and what is done
//! at the limit and at the end of such a domain.

use grace::Start;
use grace::limit::Amount;

use crate::gp::engine::Settings;
use crate::gp::tuning::{AtomicTuning, Kind};
use crate::hazptr;
use crate::os::sync::const_unless_loom;
use crate::reclaim::domain_state::{self, DomainState, Handle, Named};
use crate::reclaim::free::{Address, Pending, Pointee};
use crate::reclaim::thread_queue::Ended;
use crate::reclaim::{rescan, unlink, worker};

const_unless_loom! {
    /// The hazard domain of the process, in which cells retire.
    pub(crate) static HAZARDS: DomainState =
        DomainState::hazard(Some("hazard"), end, rescan::rescan);
}

impl DomainState {
    const_unless_loom! {
        /// A domain of hazard pointers, at whose end `ends` is called.
        pub(crate) fn hazard(
            name: Option<&'static str>,
            ends: fn(&Ended<'_>),
            frees_kept: fn(&Self) -> bool,
        ) -> Self {
            let mut domain = Self::new(Start::ZERO, Settings::DEFAULT);
            domain.grace_periods.observers.declared_name = name;
            domain.grace_periods.hazards = Some(hazptr::scan);
            domain.grace_periods.tuning = AtomicTuning::new(Kind::Hazard);
            domain.ends = ends;
            domain.frees_kept = Some(frees_kept);
            domain
        }
    }
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
/// [`unlink::retire_box`] may; inside a section it is never refused.
///
/// # Safety
/// To free it then, on any thread, must be sound: no thread finds it where slots' owners look for
/// it. `bytes` is what [`Address::charge`] gives for it.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn retire<K: Named, P: Pointee>(tag: &K, object: *mut P::Object, bytes: u64) {
    // What is charged is what is queued, and so what is given back: at most so much for an object.
    let amount = Amount::object(bytes);
    // SAFETY: by the contract.
    let object = unsafe { Pending::new(tag.core(), Address::<P>(object)) };
    unlink::retire_address(tag, object, amount);
}

/// A hazard domain ends: frees what waits in it. What is protected outlives
/// it, in [`HAZARDS`].
pub(crate) fn end(domain: &Ended<'_>) {
    domain.grace_periods.heavy_fence(); // [HP-1]
    domain.queues.run_all(domain);
    rescan::free_unprotected(domain);
    if !domain.kept.is_empty() {
        domain_state::known(&GlobalHazards);
        rescan::move_to(domain, &HAZARDS);
        worker::attend(&GlobalHazards.handle());
    }
}
