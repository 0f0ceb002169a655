//! What cells and collections call to replace an object: room for it, taken before it is unlinked,
//! and its way into [`defer`] by its address.
//!
//! An error here charges a domain too much or too little, or leaks. Nothing is freed here but what
//! is [`Timed`].

#![deny(unsafe_code)]

use grace::limit::{Amount, Context};

use crate::reclaim::at_limit::{Patience, admit, context, may_free_here};
use crate::reclaim::defer;
use crate::reclaim::domain_state::{self, DomainState, Named};
use crate::reclaim::free::{Address, Boxed, Pending, Pointee, Timed, Value};
use crate::reclaim::local;
use crate::reclaim::retire::Retire;
use crate::reclaim::thread_queue::{Contents, OwnQueue};

/// Frees the object after a grace period. May wait for one and free it before returning. Never
/// refuses: where it must not wait it goes over the limit.
#[inline(always)]
#[track_caller]
pub(crate) fn retire_address<K: Named, P: Pointee>(
    tag: &K,
    object: Pending<'_, Address<P>>,
    amount: Amount,
) {
    object.note();
    // It is not refused.
    let _queued = defer::queue(tag, object, amount, Patience::InAnyCase);
}

/// The same of the box that `object` came from.
#[inline(always)]
#[track_caller]
pub(crate) fn retire_box<K: Named, T: Send + 'static>(
    tag: &K,
    object: Option<Pending<'_, Address<Boxed<T>>>>,
    bytes: usize,
) {
    let Some(object) = object else { return };
    //~ retire-before-unlink
    retire_address(tag, object, Amount::object(bytes as u64));
}

/// As [`retire_box`], but never waits: drops it on the spot if its grace period has ended and that
/// may be done here, else retires it, over the limit if need be.
pub(crate) fn retire_box_over<K: Named, T: Send + 'static>(
    tag: &K,
    object: Timed<'_, Address<Boxed<T>>>,
    bytes: usize,
) {
    let amount = Amount::object(bytes as u64);
    if object.is_ripe() && may_free_here() {
        let is_kept = object.end(amount);
        assert!(!is_kept, "no slot names what cells of a domain hold");
        return;
    }
    let object = object.into_pending();
    object.note();
    // It is not refused.
    let _queued = defer::queue(tag, object, amount, Patience::Unowed);
}

// ---- room, before an object is unlinked ---------------------------------------------------------

/// Room for one object in the calling thread's queue, from its local stock, or in the shared one if
/// the thread is ending: for a thread that is about to unlink an object.
#[derive(Debug)]
pub(crate) struct Reservation<'q> {
    queue: Option<OwnQueue<'q>>,
    amount: Amount,
}

/// Room for an object that is charged for its size, if the thread's local stock has it and the
/// thread is over the limit in no domain, neither with an object nor with a closure. So the thread
/// may unlink an object of any weight: for what it weighs more, it waits or goes over the limit.
#[inline]
pub(crate) fn reserve_by_size<K: Named, T: Send + 'static>(tag: &K) -> Option<Reservation<'_>> {
    if local::may_be_over_limit() {
        return None;
    }
    let amount = Amount::object(Address::<Boxed<T>>::CHARGE);
    let queue = local::queue(tag.core(), tag, Contents::Objects)?;
    //~ retire-before-unlink
    queue.local_stock().take(amount).then_some(Reservation { queue: Some(queue), amount })
}

/// Room for an object of `bytes` bytes, from the local stock or the domain, if there is any.
pub(crate) fn reserve_any<K: Named>(tag: &K, bytes: usize) -> Option<Reservation<'_>> {
    let amount = Amount::object(bytes as u64);
    let queue = local::queue(tag.core(), tag, Contents::Objects);
    admit(domain_state::known(tag), queue, amount).then_some(Reservation { queue, amount })
}

impl Reservation<'_> {
    /// Drops the box that `object` came from after a grace period, which is charged `bytes`.
    #[inline]
    #[track_caller]
    pub(crate) fn retire<K: Named, T: Send + 'static>(
        mut self,
        tag: &K,
        object: Option<Pending<'_, Address<Boxed<T>>>>,
        bytes: usize,
    ) {
        if object.is_some() && bytes as u64 != self.amount.bytes {
            self.adjust(tag.core(), bytes);
        }
        self.retire_as_reserved(tag, object);
    }

    /// The same of a box that is charged what was reserved. (Here nothing is borrowed: so nothing
    /// is written to memory.)
    #[inline]
    #[track_caller]
    pub(crate) fn retire_as_reserved<K: Named, T: Send + 'static>(
        self,
        tag: &K,
        object: Option<Pending<'_, Address<Boxed<T>>>>,
    ) {
        let Some(object) = object else { return self.put_back(tag.core()) };
        object.note();
        defer::add(tag, self.queue, object, self.amount.bytes);
    }

    /// Gives the room back: it is not needed.
    pub(crate) fn put_back(self, domain: &DomainState) {
        self.give_back(domain, self.amount);
    }

    fn give_back(&self, domain: &DomainState, amount: Amount) {
        match self.queue {
            Some(queue) => queue.local_stock().give_back(domain, amount),
            None => domain.charge.give_back(amount),
        }
    }

    /// Changes the reservation to `bytes`, what the object to retire is charged. Never waits: what
    /// is missing goes over the limit.
    #[cold]
    fn adjust(&mut self, domain: &DomainState, bytes: usize) {
        let reserved = std::mem::replace(&mut self.amount, Amount::object(bytes as u64));
        self.give_back(domain, reserved.minus(self.amount));
        let missing = self.amount.minus(reserved);
        if !admit(domain, self.queue, missing) {
            domain.admit_over(missing);
        }
    }
}

/// Whether the caller may unlink an object of `bytes` bytes (`None`: unknown) now, to retire it.
/// Refused only if the thread is in a section, is over the limit in this domain, and its local
/// stock does not cover the object; and not in a sleepable domain. Takes nothing from the stock.
#[inline(always)]
pub(crate) fn may_replace<K: Named>(tag: &K, bytes: Option<usize>) -> bool {
    !local::may_be_over_limit() || may_replace_over_limit(tag, bytes)
}

/// The same where the thread may be over the limit in some domain.
#[cold]
#[inline(never)]
fn may_replace_over_limit(tag: &dyn Named, bytes: Option<usize>) -> bool {
    if tag.core().grace_periods.is_sleepable() {
        return true;
    }
    let Some(queue) = local::queue(tag.core(), tag, Contents::Objects) else { return true };
    let mut stock = queue.local_stock().stock();
    let taken = bytes.is_some_and(|bytes| stock.take(Amount::object(bytes as u64)));
    let is_over_limit = local::refresh_over_limit(tag.core());
    local::refresh_may_be_over_limit(); // it may be within the limit in all domains by now
    let may = taken || !is_over_limit || context() != Context::Section;
    if !may {
        local::make_overdue(); // as where an object is refused
    }
    may
}

/// Drops `value`, for which there is no room, if its grace period has ended; in a section, or too
/// deep in other drops, retires it over the limit.
pub(crate) fn end_after_wait<K: Named, P: Retire>(tag: &K, value: Timed<'_, Value<P>>) {
    if value.is_ripe() && may_free_here() {
        let _is_kept = value.end(Amount::NONE); // no slot names a value
        return;
    }
    let _queued: Result<(), _> = defer::retire_value(tag, value.into_pending(), Patience::Over);
}
