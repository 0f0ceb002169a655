//! Objects of a hazard domain that were protected when they were due to be freed.
//!
//! They have left their queue, whose other callbacks have run, and stay charged to the domain.
//! Their grace period is over: they need no other fence, only a scan that finds no slot with their
//! address ([`hazptr`](crate::hazptr), [HZ-A]). An object is kept once for each reference to it
//! that was given up, and the limit counts them all, until the next scan leaves one of each kind:
//! see [`Object::frees`].
//!
//! **Invariant: the objects counted are those in the list or in a thread's hand.** A thread that
//! has taken the list has an [`InHand`] until it has dealt with it. A drop that it calls may fork;
//! then the child counts the objects in the list and in this thread's hand.
//!
//! `rescan` frees them. The worker scans the slots for them at the next tick, and then after as
//! long as the youngest of them has been kept by then, at most one second. So an object whose
//! protection lasted long is freed later than one whose protection was short, and a process in
//! which an object is protected for ever wakes up once a second.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use grace::driver::TICK_NS;
use grace::limit::Amount;

use crate::os::clock;
use crate::reclaim::stream::{CallbackType, Stored, Word};

/// Words of the payload of an object that a slot may name: its address first.
const PAYLOAD: usize = 2;

/// The objects of a domain that are kept.
#[derive(Debug)]
pub(crate) struct Kept {
    /// A stack: pushed on by the threads that scan, taken as a whole.
    top: AtomicPtr<Object>,
    objects: AtomicU64,
    bytes: AtomicU64,
    /// Objects ever kept that came from no queue of the domain.
    unqueued: AtomicU64,
    /// When they are to be looked for again, as `clock::monotonic_ns`.
    due_ns: AtomicU64,
    /// Threads that have taken the list.
    in_hand: AtomicU32,
}

/// An object that is kept.
#[derive(Debug)]
pub(crate) struct Object {
    next: *mut Self,
    kind: &'static CallbackType,
    payload: [Word; PAYLOAD],
    /// What it was charged.
    pub(crate) bytes: u64,
    pub(crate) since_ns: u64,
}

/// The object at the address that the top or a link has. The address is all that it says: when
/// `put_back` loaded it, another object may have been there, which has been taken and freed since.
fn object_at(link: *mut Object) -> *mut Object {
    ptr::with_exposed_provenance_mut(link.addr())
}

impl Object {
    /// Frees it, or gives one of several references up.
    ///
    /// # Safety
    /// No slot has named it since its grace period [HZ-A]; or another [of those](Self::frees) has
    /// been put back since.
    pub(crate) unsafe fn free(mut self) {
        // SAFETY: by the contract; it is taken out once.
        unsafe { (self.kind.run)(self.kind, self.payload.as_mut_ptr()) };
    }

    /// What it frees, and how: equal for references to one object alone, of which one is enough to
    /// keep it. (No other address is anything's twice, while a slot names it; except that of
    /// objects of no bytes, none of which can be told from another: one of those stays.)
    ///
    /// If that one is freed before the others, a scan has found no slot with the address, after the
    /// grace periods of all of them. Then none of them is protected any more, as a slot that names
    /// it later has found a further reference [HZ-A], [AC-1].
    pub(crate) fn frees(&self) -> (usize, *const CallbackType) {
        (self.address(), self.kind)
    }

    /// The address that slots may name.
    pub(crate) fn address(&self) -> usize {
        // SAFETY: the first word of the payload is the address: see `Kept::keep_if_protected`.
        unsafe { self.payload[0].assume_init() }.addr()
    }
}

impl Kept {
    pub(crate) const fn new() -> Self {
        Self {
            top: AtomicPtr::new(ptr::null_mut()),
            objects: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            unqueued: AtomicU64::new(0),
            due_ns: AtomicU64::new(0),
            in_hand: AtomicU32::new(0),
        }
    }

    /// How much is kept.
    pub(crate) fn amount(&self) -> Amount {
        // Relaxed: counts.
        Amount { objects: self.objects.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }

    /// How many objects were ever kept that no queue of the domain has counted.
    pub(crate) fn unqueued(&self) -> u64 {
        self.unqueued.load(Relaxed) // a count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.load(Acquire) == 0 // pairs with the Release in `add`
    }

    /// When they are to be looked for again, if any are kept.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.due_ns.load(Relaxed))
    }

    /// Keeps an object, if it is one of those that are protected, which are in ascending order.
    /// Returns what it was charged.
    pub(crate) fn keep_if_protected(&self, one: &Stored, protected: &[usize]) -> Option<Amount> {
        // SAFETY: a pointer is the first word of the payload.
        let object = unsafe { one.payload.cast::<*mut ()>().read() };
        protected.binary_search(&object.addr()).ok()?;
        Some(self.copy(one))
    }

    /// Keeps an object that has been in no queue.
    pub(crate) fn keep(&self, one: &Stored) {
        self.unqueued.fetch_add(1, Relaxed); // a count
        self.copy(one);
    }

    /// Keeps an object, whose payload is copied. Returns what it was charged. Only of kinds that
    /// slots may name: the address comes first in their payloads.
    fn copy(&self, one: &Stored) -> Amount {
        debug_assert!(one.kind.words <= PAYLOAD, "an address, and what it is charged");
        let (bytes, now_ns) = (one.bytes(), clock::monotonic_ns());
        let mut payload = [Word::uninit(); PAYLOAD];
        let words = one.kind.words.min(PAYLOAD);
        // SAFETY: so many words stand there, and in `payload`.
        unsafe { ptr::copy_nonoverlapping(one.payload, payload.as_mut_ptr(), words) };
        //~ hazard-kept-lost
        let object =
            Object { next: ptr::null_mut(), kind: one.kind, payload, bytes, since_ns: now_ns };
        self.add(Box::new(object), now_ns.saturating_add(TICK_NS));
        Amount::object(bytes)
    }

    /// Keeps a new one, which is to be looked for at that time.
    fn add(&self, object: Box<Object>, due_ns: u64) {
        self.bytes.fetch_add(object.bytes, Relaxed); // a count
        // Release: pairs with the Acquire in `is_empty`. The worker's turn comes by itself; a due
        // time that it misses it finds a tick later.
        let is_first = self.objects.fetch_add(1, Release) == 0;
        self.put_back(object);
        // After that: a thread that has not taken it with the others has set their time before.
        if is_first {
            self.due_ns.store(due_ns, Relaxed);
        } else {
            // Another time than it was, so that such a thread does not postpone this one's, too.
            let sooner = |other_ns: u64| Some(due_ns.min(other_ns.saturating_sub(1)));
            let _changed = fetch_update!(self.due_ns, Relaxed, Relaxed, sooner);
        }
    }

    /// Puts one into the list, which is counted.
    fn put_back(&self, object: Box<Object>) {
        self.put_back_meanwhile(object, || ());
    }

    /// The same, where something may come in between: for a test.
    #[inline(always)]
    fn put_back_meanwhile(&self, object: Box<Object>, mut meanwhile: impl FnMut()) {
        let object = Box::into_raw(object);
        object.expose_provenance(); // for `object_at`
        // Release: pairs with the Acquire in `take` [HP-3]. Taken as a whole, so no address comes
        // back unseen. Acquire: the time that was set before the last of them is there.
        let _below: Result<_, _> = fetch_update!(self.top, AcqRel, Relaxed, |top| {
            // SAFETY: from a box, and in no list.
            unsafe { (*object).next = top };
            meanwhile();
            Some(object)
        });
    }

    /// Takes all of them. They count until they are [forgotten](Self::forget): so the worker comes
    /// by again for those that are put back.
    pub(crate) fn take(&self) -> Taken {
        let due_ns = clock::monotonic_ns().saturating_add(TICK_NS);
        self.due_ns.store(due_ns, Relaxed); // as in `add`
        let mut objects = Vec::new();
        // Acquire: pairs with the Release in `put_back` [HP-3]. Release: the thread that finds none
        // left finds this one counted in `in_hand`.
        let mut next = self.top.swap(ptr::null_mut(), AcqRel);
        while !next.is_null() {
            // SAFETY: from a box, and ours since it was taken.
            let object = unsafe { Box::from_raw(object_at(next)) };
            next = object.next;
            objects.push(object);
        }
        Taken { objects, due_ns }
    }

    /// So much of what was taken has been freed, or moves elsewhere.
    pub(crate) fn forget(&self, amount: Amount) {
        // Relaxed, both: counts.
        self.objects.fetch_sub(amount.objects, Relaxed);
        self.bytes.fetch_sub(amount.bytes, Relaxed);
    }

    /// Those that were put back are to be looked for at `due_ns`, unless a new one has come that is
    /// to be looked for before.
    pub(crate) fn postpone(&self, taken_due_ns: u64, due_ns: u64) {
        // Relaxed: as in `add`.
        let _ = self.due_ns.compare_exchange(taken_due_ns, due_ns, Relaxed, Relaxed);
    }

    /// Adds one that another domain has kept.
    pub(crate) fn adopt(&self, object: Box<Object>) {
        self.unqueued.fetch_add(1, Relaxed); // a count
        self.add(object, 0);
    }

    /// Takes all of them, and calls `f` with them. Returns whether no other thread had any of them,
    /// before and after.
    pub(crate) fn with_all(&self, f: impl FnOnce(&InHand<'_>, Taken)) -> bool {
        // AcqRel: the thread that finds no other here finds what others have put back.
        let is_first = self.in_hand.fetch_add(1, AcqRel) == 0;
        let in_hand = InHand { kept: self, amount: Cell::new(Amount::NONE), outer: HANDS.get() };
        // The lifetime is left out: it goes from there before it ends, in its drop.
        HANDS.set(ptr::from_ref(&in_hand).cast());
        let taken = self.take();
        let amounts = taken.objects.iter().map(|object| Amount::object(object.bytes));
        in_hand.amount.set(amounts.fold(Amount::NONE, Amount::plus));
        // Acquire: as above.
        let is_only = self.in_hand.load(Acquire) == 1;
        f(&in_hand, taken);
        is_first && is_only
    }

    /// In a child process: what another thread had in hand is lost, and what this one has is
    /// counted.
    pub(crate) fn after_fork(&self) {
        let (mut there, mut hands) = (Amount::NONE, 0);
        // Relaxed, all of it: the only thread.
        let mut node = self.top.load(Relaxed);
        while !node.is_null() {
            // SAFETY: in the list, which no other thread takes.
            let one = unsafe { &*object_at(node) };
            there = there.plus(Amount::object(one.bytes));
            node = one.next;
        }
        let mut hand = HANDS.get();
        // SAFETY: null, or one that is alive: its drop takes it out.
        while let Some(in_hand) = unsafe { hand.as_ref() } {
            if ptr::eq(in_hand.kept, self) {
                (there, hands) = (there.plus(in_hand.amount.get()), hands + 1);
            }
            hand = in_hand.outer;
        }
        self.objects.store(there.objects, Relaxed);
        self.bytes.store(there.bytes, Relaxed);
        self.in_hand.store(hands, Relaxed);
    }
}

/// What was taken, and when the rest is due.
#[derive(Debug)]
pub(crate) struct Taken {
    #[expect(clippy::vec_box, reason = "nodes of the list, which are put back as they are")]
    pub(crate) objects: Vec<Box<Object>>,
    pub(crate) due_ns: u64,
}

thread_local! {
    /// What the calling thread has in hand, the innermost first; or null. Without a destructor.
    static HANDS: Cell<*const InHand<'static>> = const { Cell::new(ptr::null()) };
}

/// A thread has taken some: on its stack, where it stays.
#[derive(Debug)]
pub(crate) struct InHand<'k> {
    kept: &'k Kept,
    /// How much of that is counted and stands in no list.
    amount: Cell<Amount>,
    /// What the thread had in hand already: a drop may have come to the limit.
    outer: *const InHand<'static>,
}

impl InHand<'_> {
    /// Puts one back that was taken.
    pub(crate) fn put_back(&self, object: Box<Object>) {
        self.amount.set(self.amount.get().minus(Amount::object(object.bytes)));
        self.kept.put_back(object);
    }

    /// So much of what was taken has been freed.
    pub(crate) fn forget(&self, amount: Amount) {
        self.amount.set(self.amount.get().minus(amount));
        self.kept.forget(amount);
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        HANDS.set(self.outer);
        // Release: pairs with the Acquire in `Kept::with_all`; what was in hand has been freed.
        self.kept.in_hand.fetch_sub(1, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::reclaim::free::{Address, Boxed, Callback};

    /// A past error: what was kept while others were looked for was put off with these, which had
    /// been kept for long.
    #[test]
    fn what_comes_while_others_are_looked_for_is_not_put_off_with_them() {
        let (kept, mut object) = (Kept::new(), 7_u8);
        let mut payload = Address::<Boxed<u8>>(&raw mut object);
        let one = Stored { kind: &Address::<Boxed<u8>>::KIND, payload: (&raw mut payload).cast() };
        kept.keep(&one);
        let taken = kept.take();
        kept.keep(&one);
        kept.postpone(taken.due_ns, u64::MAX);
        assert!(kept.due_ns().is_some_and(|due_ns| due_ns <= taken.due_ns), "it is put off");
        drop(kept.take()); // nothing is freed
    }

    /// A past error: the upper one led there by a pointer to the freed one, as Miri tells.
    #[test]
    fn what_is_put_back_above_one_that_is_freed_meanwhile_leads_to_the_one_at_its_address() {
        let kept = Kept::new();
        let new = || {
            let kind = &Address::<Boxed<u8>>::KIND;
            let (next, payload) = (ptr::null_mut(), [Word::uninit(); PAYLOAD]);
            Box::new(Object { next, kind, payload, bytes: 0, since_ns: 0 })
        };
        kept.put_back(new());
        let replace = || {
            let old = ptr::from_ref(&*kept.take().objects.remove(0)); // freed by now
            let mut others: Vec<_> = (0..100).map(|_| new()).collect();
            let same = others.iter().position(|object| ptr::eq(&raw const **object, old));
            kept.put_back(others.swap_remove(same.unwrap_or(0)));
        };
        kept.put_back_meanwhile(new(), replace);
        assert_eq!(kept.take().objects.len(), 2);
    }
}
