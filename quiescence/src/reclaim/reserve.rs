//! The first stage of a retired object: room for it from the calling thread's local stock, taken
//! before the object is unlinked.

use grace::limit::{Amount, Context};

use crate::reclaim::at_limit::{admit, context};
use crate::reclaim::domain_state::{DomainState, Named};
use crate::reclaim::domains;
use crate::reclaim::free::{Address, Boxed};
use crate::reclaim::local;
use crate::reclaim::thread_queue::OwnQueue;

/// Room for one object in the calling thread's queue, from its local stock: for a thread that is
/// about to unlink an object.
#[derive(Debug)]
pub(crate) struct Reservation<'q> {
    pub(super) queue: OwnQueue<'q>,
    pub(super) amount: Amount,
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
    let queue = local::objects(tag.core(), tag)?;
    //~ retire-before-unlink
    queue.local_stock().take(amount).then_some(Reservation { queue, amount })
}

/// Room for an object of `bytes` bytes, from the local stock or the domain, if there is any.
pub(crate) fn reserve_any<K: Named>(tag: &K, bytes: usize) -> Option<Reservation<'_>> {
    let amount = Amount::object(bytes as u64);
    let queue = local::objects(tag.core(), tag)?;
    (queue.local_stock().take(amount) || admit(domains::known(tag), Some(queue), amount))
        .then_some(Reservation { queue, amount })
}

impl Reservation<'_> {
    /// Gives the room back: it is not needed.
    pub(crate) fn put_back(self, domain: &DomainState) {
        self.queue.local_stock().give_back(domain, self.amount);
    }

    /// Changes the reservation to `bytes`, what the object to retire is charged. Never waits: what
    /// is missing goes over the limit.
    #[cold]
    pub(super) fn adjust(&mut self, domain: &DomainState, bytes: usize) {
        let reserved = std::mem::replace(&mut self.amount, Amount::object(bytes as u64));
        let local_stock = self.queue.local_stock();
        local_stock.give_back(domain, reserved.minus(self.amount));
        let missing = self.amount.minus(reserved);
        if !local_stock.take(missing) && !admit(domain, Some(self.queue), missing) {
            domain.admit_over(missing);
        }
    }
}

/// Whether the calling thread is in a section of some domain of registered threads: then it must
/// not wait when it retires [D-1].
pub(crate) fn in_section() -> bool {
    context() == Context::Section
}

/// Whether the caller may unlink an object of `bytes` bytes (`None`: unknown) now, to retire it.
/// Refused only if the thread is in a section, is over the limit in this domain, and its local
/// stock does not cover the object. Takes nothing from the stock.
#[inline]
pub(crate) fn may_replace<K: Named>(tag: &K, bytes: Option<usize>) -> bool {
    if !local::may_be_over_limit() {
        return true;
    }
    let Some(queue) = local::objects(tag.core(), tag) else { return true };
    let mut stock = queue.local_stock().stock();
    let taken = bytes.is_some_and(|bytes| stock.take(Amount::object(bytes as u64)));
    let is_over_limit = local::refresh_over_limit(tag.core());
    local::refresh_may_be_over_limit(); // it may be within the limit in all domains by now
    taken || !is_over_limit || context() != Context::Section
}
