//! What hazard pointers protect: the domain that it is retired in by default, the callbacks that
//! free it, and what is done at the limit and at the end of such a domain.

use std::marker::PhantomData;

use grace::limit::{Amount, Context, Zone};

use crate::hazptr;
use crate::os::sync::const_unless_loom;
use crate::reclaim::at_limit::{NESTED_MAX, Room, admit_over, context, leave_to_worker, make_room};
use crate::reclaim::debug_objects;
use crate::reclaim::defer;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domains;
use crate::reclaim::free::charge_of_box;
use crate::reclaim::handle::{Handle, Named};
use crate::reclaim::local;
use crate::reclaim::rescan;
use crate::reclaim::running;
use crate::reclaim::stream::{CallbackType, Progress, Run, Word};
use crate::reclaim::worker;

const_unless_loom! {
    /// The hazard domain of the process, in which cells retire.
    pub(crate) static HAZARDS: DomainState = DomainState::hazard(Some("hazard"));
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

/// Something that a slot can name: how one of a kind is freed.
pub(crate) trait Protectable {
    /// What the slot has the address of.
    type Object;

    /// Bytes of an object by its size, with what is allocated around it.
    const BYTES: usize = size_of::<Self::Object>();

    /// Whether one address may wait only once, as a box's. Then [`free`](Self::free) forgets it.
    const UNIQUE: bool;

    /// Frees it.
    ///
    /// # Safety
    /// Once for each time that it was retired, and no thread reads it any more.
    unsafe fn free(object: *mut Self::Object);
}

/// The callbacks of a kind.
#[derive(Debug)]
struct Callback<P>(PhantomData<P>);

/// What was retired with another number of bytes than its size. The address comes first: see
/// [`Run::parts`].
#[repr(C)]
struct Weighed<T> {
    object: *mut T,
    bytes: u64,
}

impl<P: Protectable> Callback<P> {
    /// What one is charged whose weight is its size.
    const CHARGE: u64 = charge_of_box::<P::Object>(size_of::<P::Object>()) as u64
        + (P::BYTES - size_of::<P::Object>()) as u64;

    const BY_SIZE: CallbackType = CallbackType {
        words: 1,
        pointer: true,
        bytes: Some(Self::CHARGE),
        bytes_of: |_| Self::CHARGE,
        run: Self::run,
        function: None,
    };

    const WEIGHED: CallbackType = CallbackType {
        words: 2,
        pointer: false,
        bytes: None,
        // SAFETY: the payload is an address with its number.
        bytes_of: |payload| unsafe { &*payload.cast::<Weighed<P::Object>>() }.bytes,
        run: |_, payload, _, progress| {
            progress.begin(1);
            // SAFETY: the payload is an address with its number.
            let weighed = unsafe { payload.cast::<Weighed<P::Object>>().read() };
            // SAFETY: it is run once.
            unsafe { P::free(weighed.object) };
        },
        function: None,
    };

    unsafe fn run(_: &'static CallbackType, payload: *mut Word, count: u64, progress: &Progress) {
        while let Some(index) = progress.begin(count) {
            // SAFETY: so many addresses stand side by side.
            let word = unsafe { payload.add(index) };
            // SAFETY: written as such.
            let object = unsafe { word.cast::<*mut P::Object>().read() };
            // SAFETY: each is run once.
            unsafe { P::free(object) };
        }
    }
}

/// What an object of so many bytes is charged.
#[inline(always)]
pub(crate) const fn charge<P: Protectable>(weight: usize) -> u64 {
    let around = P::BYTES - size_of::<P::Object>();
    charge_of_box::<P::Object>(weight).saturating_add(around) as u64
}

/// Frees an object once its grace period is over and no slot names it. May wait where
/// [`defer::retire_raw`] may; inside a section it is never refused.
///
/// # Safety
/// To free it then, on any thread, must be sound: no thread finds it where slots' owners look for
/// it. `bytes` is what [`charge`] gives for it.
#[inline]
#[track_caller]
pub(crate) unsafe fn retire<K: Named, P: Protectable>(tag: &K, object: *mut P::Object, bytes: u64) {
    if P::UNIQUE {
        debug_objects::note(object.cast_const().cast(), size_of::<P::Object>());
    }
    let amount = Amount::object(bytes);
    let queue = local::objects(tag.core(), tag);
    if queue.is_none_or(|queue| !queue.local_stock().take(amount)) {
        // SAFETY: by the contract.
        return unsafe { retire_slowly::<K, P>(tag, object, amount) };
    }
    // SAFETY: by the contract; it has been charged.
    unsafe { add::<K, P>(tag, queue, object, amount) };
}

/// # Safety
/// As [`retire`].
#[cold]
#[track_caller]
unsafe fn retire_slowly<K: Named, P: Protectable>(tag: &K, object: *mut P::Object, amount: Amount) {
    free_kept_near_limit(tag.core());
    let queue = local::objects(tag.core(), tag);
    match make_room(tag, queue, amount, true) {
        Room::Charged => {}
        // Its grace period is over, but a slot may name it.
        // SAFETY: by the contract.
        Room::Waited => return unsafe { free_or_keep::<K, P>(tag, object, amount) },
        Room::Full => admit_over(tag.core(), queue, amount),
    }
    // SAFETY: by the contract; it has been charged.
    unsafe { add::<K, P>(tag, queue, object, amount) };
    leave_to_worker(tag, queue);
}

/// Near the limit, frees what was kept and is protected no more: it would be the worker's at the
/// next tick, and what is protected by the thread that retires it goes over the limit meanwhile.
fn free_kept_near_limit(core: &DomainState) {
    let may_drop = context() != Context::Section && running::nested_in_callbacks() < NESTED_MAX;
    if may_drop && core.zone() != Zone::Free {
        rescan::free_unprotected(core);
    }
}

/// Frees an object for which there is no room, or keeps it over the limit if it is protected.
///
/// # Safety
/// As [`retire`], and a grace period has gone by.
unsafe fn free_or_keep<K: Named, P: Protectable>(tag: &K, object: *mut P::Object, amount: Amount) {
    let core = tag.core();
    if !hazptr::is_protected(object.addr()) {
        // SAFETY: by the contract, and no slot names it [HZ-A].
        return defer::on_the_spot(core, || unsafe { P::free(object) });
    }
    core.admit_over(amount);
    let mut payload = [Word::uninit(); 2];
    let weighed = Weighed { object, bytes: amount.bytes };
    // SAFETY: two words, aligned as such.
    unsafe { payload.as_mut_ptr().cast::<Weighed<P::Object>>().write(weighed) };
    let kind = &Callback::<P>::WEIGHED;
    core.kept.keep_unqueued(&Run { kind, payload: payload.as_mut_ptr(), count: 1 });
    // The worker may have left the domain: it comes by for what is kept.
    worker::announce(&tag.handle());
}

/// # Safety
/// As [`retire`]; it has been charged, and `queue` is this thread's.
#[inline]
unsafe fn add<K: Named, P: Protectable>(
    tag: &K,
    queue: Option<&crate::reclaim::thread_queue::Queue>,
    object: *mut P::Object,
    amount: Amount,
) {
    if amount.bytes == Callback::<P>::CHARGE {
        // SAFETY: by the contract.
        unsafe { defer::add_object(tag, queue, &Callback::<P>::BY_SIZE, object, amount.bytes) };
    } else {
        let weighed = Weighed { object, bytes: amount.bytes };
        // SAFETY: by the contract.
        unsafe { defer::add_object(tag, queue, &Callback::<P>::WEIGHED, weighed, amount.bytes) };
    }
}

/// A hazard domain ends, called through `HOOKS`: frees what waits in it. What is protected outlives
/// it, in [`HAZARDS`].
pub(crate) fn end(core: &DomainState) {
    core.heavy_fence(); // [HP-1]
    let protected = hazptr::scan();
    core.queues.run_all(core, &protected);
    rescan::free_unprotected(core);
    if !core.kept.is_empty() {
        domains::known(&GlobalHazards);
        rescan::move_to(core, &HAZARDS);
        worker::attend(&GlobalHazards.handle());
    }
}
