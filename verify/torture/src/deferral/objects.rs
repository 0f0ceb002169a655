//! What is deferred: objects of all shapes that count themselves while they wait.
//!
//! A [`Parcel`] is counted once the library has taken it, and taken off the count as the first
//! thing that its drop does. So the count of a domain is never more than what really waits there,
//! and the thread that adds to it finds out whether that was too much: no auditor could look more
//! often. In the end as many must have been dropped as were taken.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, fence};

use grace::limit::Amount;
use quiescence::{AtLimit, Domain, Retire, tag::ThreadTag};

use super::{Operation, ThreadContext};
use crate::kinds::FaultKind;
use crate::ledger::Ledger;

/// The largest object, in bytes.
pub(crate) const LARGEST: usize = 4096;

/// What the library must not refuse, where a thread may wait.
pub(crate) const OUTSIDE: &str = "what was deferred outside of sections and callbacks";

/// What may wait where that is not checked.
pub(crate) const UNBOUNDED: Amount = Amount { objects: u64::MAX, bytes: u64::MAX };

/// The objects that wait in a domain.
pub(crate) struct Tally {
    ledger: Arc<Ledger>,
    name: &'static str,
    /// What may wait, at most.
    bound: Amount,
    objects: AtomicI64,
    bytes: AtomicI64,
    admitted: AtomicU64,
    dropped: AtomicU64,
}

impl Tally {
    pub(crate) fn new(context: &ThreadContext, name: &'static str, bound: Amount) -> Arc<Self> {
        Arc::new(Self {
            ledger: Arc::clone(&context.ledger),
            name,
            bound,
            objects: AtomicI64::new(0),
            bytes: AtomicI64::new(0),
            admitted: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        })
    }

    /// An object that will be counted as so many bytes.
    pub(crate) fn parcel(self: &Arc<Self>, bytes: usize) -> Parcel {
        Parcel { tally: Arc::clone(self), bytes: bytes as u64 }
    }

    /// The library has taken an object. (It may have dropped it by now.)
    pub(crate) fn admitted(&self, bytes: usize) {
        // Acquire: pairs with the Release in `Parcel::drop`, by way of the library's own count of
        // the room that there is; what has made the room is off the counts.
        fence(Acquire);
        self.admitted.fetch_add(1, Relaxed);
        let objects = self.objects.fetch_add(1, Relaxed) + 1;
        let bytes = self.bytes.fetch_add(bytes as i64, Relaxed) + bytes as i64;
        let above = |count: i64, bound: u64| u64::try_from(count).is_ok_and(|count| count > bound);
        let is_above = above(objects, self.bound.objects) || above(bytes, self.bound.bytes);
        self.expect(!is_above, FaultKind::Limit, || {
            format!("{objects} objects with {bytes} bytes wait where {:?} may", self.bound)
        });
    }

    /// How many objects wait, at least.
    pub(crate) fn waiting(&self) -> i64 {
        self.objects.load(Acquire) // pairs with the Release in `Parcel::drop`
    }

    /// Says so unless everything that was taken has been dropped, once.
    pub(crate) fn expect_none(&self, after: &str) {
        let (admitted, dropped) = (self.admitted.load(Relaxed), self.dropped.load(Acquire));
        self.expect(admitted == dropped, FaultKind::Count, || {
            format!("{admitted} objects were deferred and {dropped} dropped {after}")
        });
    }

    /// Counts an object of so many bytes, which the library has taken; else that is a fault.
    pub(crate) fn expect_admitted(&self, bytes: usize, is_taken: bool, what: &str) {
        self.expect(is_taken, FaultKind::Limit, || format!("{what} was refused"));
        if is_taken {
            self.admitted(bytes);
        }
    }

    pub(crate) fn fault(&self, kind: FaultKind, detail: impl FnOnce() -> String) {
        self.ledger.fault(kind, self.name, None, None, detail);
    }

    /// A fault unless something holds.
    pub(crate) fn expect(&self, holds: bool, kind: FaultKind, detail: impl FnOnce() -> String) {
        if !holds {
            self.fault(kind, detail);
        }
    }
}

/// Counts itself, while it waits.
pub(crate) struct Parcel {
    tally: Arc<Tally>,
    bytes: u64,
}

impl Parcel {
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        let tally = &self.tally;
        tally.objects.fetch_sub(1, Relaxed);
        tally.bytes.fetch_sub(self.bytes as i64, Relaxed);
        // Release: pairs with the Acquire in `Tally::waiting` and in `Tally::expect_none`.
        tally.dropped.fetch_add(1, Release);
        // Release: pairs with the Acquire in `Tally::admitted`.
        fence(Release);
    }
}

/// Whether this process has been forked off: what another thread was running then is lost, so that
/// the numbers in a callback queue have gaps.
pub(crate) static FORKED: AtomicBool = AtomicBool::new(false);

/// The callbacks of one thread that must run in order.
#[derive(Default)]
pub(crate) struct CallbackQueue {
    /// Tickets that were given out, and callbacks that have run.
    tickets: AtomicU64,
    ran: AtomicU64,
}

impl CallbackQueue {
    /// For the callback that is queued next.
    pub(crate) fn ticket(self: &Arc<Self>) -> Ticket {
        Ticket { number: self.tickets.fetch_add(1, Relaxed), callback_queue: Arc::clone(self) }
    }

    /// How many have run, and how many were queued.
    pub(crate) fn ran_of(&self) -> (u64, u64) {
        // Acquire: pairs with the Release in `Ticket::check`.
        (self.ran.load(Acquire), self.tickets.load(Relaxed))
    }
}

/// The place of a callback in its callback queue.
pub(crate) struct Ticket {
    callback_queue: Arc<CallbackQueue>,
    number: u64,
}

impl Ticket {
    /// It is this one's turn.
    pub(crate) fn check(&self, tally: &Tally) {
        let turn = self.callback_queue.ran.swap(self.number + 1, Release);
        let gap = FORKED.load(Relaxed) && turn <= self.number;
        tally.expect(turn == self.number || gap, FaultKind::Order, || {
            format!("callback {} of a thread ran when it was the turn of {turn}", self.number)
        });
    }
}

/// A domain as one thread sees it, and what waits there. A clone, which is another thread's, has
/// callbacks of its own.
pub(crate) struct Field<K: ThreadTag> {
    pub(crate) context: ThreadContext,
    pub(crate) domain: Domain<K>,
    pub(crate) tally: Arc<Tally>,
    /// Its closures run in order.
    pub(crate) closures: Arc<CallbackQueue>,
}

impl<K: ThreadTag> Clone for Field<K> {
    fn clone(&self) -> Self {
        Self::new(&self.context, &self.domain, &self.tally)
    }
}

/// An object or a closure that was refused, to be deferred where one may wait.
pub(crate) type Later<K> = Box<dyn FnOnce(&Field<K>)>;

/// An owner that is retired in a box, or as it is: two words, or many.
pub(crate) struct Bundle<const WORDS: usize>(Parcel, [u64; WORDS]);

/// The smallest object that is counted.
pub(crate) type Small = Bundle<0>;

impl<const WORDS: usize> Retire for Bundle<WORDS> {
    fn bytes(&self) -> usize {
        self.0.bytes as usize
    }
}

/// An object whose drop retires another.
struct Chain<K: ThreadTag> {
    parcel: Option<Parcel>,
    field: Field<K>,
    left: u64,
}

impl<K: ThreadTag> Drop for Chain<K> {
    fn drop(&mut self) {
        drop(self.parcel.take());
        if self.left != 0 {
            chain(&self.field, self.left - 1);
        }
    }
}

/// Its drop counts; it has no memory that could. The address of its box is 1, an odd one.
struct Nothing;

/// One word that is no address, though its lowest bit is set as in the words of the library's own.
struct OddWord(usize);

/// Objects that cannot count themselves: those without memory, and words. Taken, dropped.
static ODD: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

impl Drop for Nothing {
    fn drop(&mut self) {
        ODD[1].fetch_add(1, Release); // pairs with the Acquire in `expect_no_odd_ones`
    }
}

impl Drop for OddWord {
    fn drop(&mut self) {
        let times = if self.0 & 1 == 1 { 1 } else { 1 << 32 }; // a word that has changed shows
        ODD[1].fetch_add(times, Release); // as above
    }
}

impl Retire for OddWord {
    fn bytes(&self) -> usize {
        size_of::<usize>()
    }
}

/// Says so unless every object without memory, and every odd word, was dropped once: when all is
/// over.
pub(crate) fn expect_no_odd_ones(context: &ThreadContext) {
    let (taken, dropped) = (ODD[0].load(Relaxed), ODD[1].load(Acquire));
    context.equal(FaultKind::Count, "", "odd objects dropped", dropped, taken);
}

impl<K: ThreadTag> Field<K> {
    pub(crate) fn new(context: &ThreadContext, domain: &Domain<K>, tally: &Arc<Tally>) -> Self {
        let (context, domain, tally) = (context.clone(), domain.clone(), Arc::clone(tally));
        Self { context, domain, tally, closures: Arc::default() }
    }

    /// Retires so many objects, drawn. Those that are refused are left for later.
    pub(crate) fn retire_some(&self, waits: bool, count: u64) -> Vec<Later<K>> {
        (0..count).filter_map(|_| self.retire_one(waits, self.context.next()).err()).collect()
    }

    fn retire_one(&self, waits: bool, draw: u64) -> Result<(), Later<K>> {
        let did = |operation| {
            self.context.did(operation);
            self
        };
        let parcel = |bytes| self.tally.parcel(bytes);
        let large = || Bundle(parcel(size_of::<Bundle<62>>()), [draw; 62]);
        match draw % 8 {
            1 => did(Operation::LargeBox).retire(Box::new(large()), waits),
            2 => did(Operation::Arc).retire(Arc::new(large()), waits),
            3 => {
                let one = size_of::<Option<Parcel>>();
                let capacity = 1 + draw as usize / 8 % 64;
                let mut vector = Vec::with_capacity(capacity);
                vector.push(None);
                vector[0] = Some(parcel(vector.capacity() * one));
                did(Operation::Vector).retire(vector, waits)
            }
            4 => did(Operation::Sized).retire_sized(1 + draw as usize / 8 % LARGEST, waits),
            5 => did(Operation::Bundle).retire(Bundle(parcel(100), [draw; 2]), waits),
            6 => did(Operation::LargeBundle).retire(Bundle(parcel(200), [draw; 9]), waits),
            _ => did(Operation::Box).retire(self.small(), waits),
        }
    }

    /// Retires boxes without waiting, up to one more than there may be room for. How many were
    /// taken, and what was refused.
    pub(crate) fn fill(&self, room: u64) -> (u64, Option<Later<K>>) {
        let mut taken = 0;
        let refused = (0..=room).find_map(|_| {
            let done = self.retire(self.small(), false);
            taken += u64::from(done.is_ok());
            done.err()
        });
        (taken, refused)
    }

    /// One such object, in a box.
    pub(crate) fn small(&self) -> Box<Small> {
        Box::new(Bundle(self.tally.parcel(size_of::<Small>()), []))
    }

    pub(crate) fn retire<P: Retire>(&self, object: P, waits: bool) -> Result<(), Later<K>> {
        let (bytes, domain) = (object.bytes(), &self.domain);
        let done = if waits { domain.retire(object) } else { domain.try_retire(object) };
        self.taken(bytes, done, |domain, object| domain.retire(object).is_ok())
    }

    fn retire_sized(&self, bytes: usize, waits: bool) -> Result<(), Later<K>> {
        let parcel = self.tally.parcel(bytes);
        if !waits {
            return self.retire(Bundle(parcel, [0; 1]), waits);
        }
        let done = self.domain.retire_sized(parcel, bytes);
        self.taken(bytes, done, |domain, parcel| domain.retire(parcel).is_ok())
    }

    /// The library has taken so many bytes, or has refused them: then they are left for later,
    /// where one may wait.
    pub(crate) fn taken<P: Send + 'static>(
        &self,
        bytes: usize,
        done: Result<(), AtLimit<P>>,
        defer: fn(&Domain<K>, P) -> bool,
    ) -> Result<(), Later<K>> {
        done.map(|()| self.tally.admitted(bytes)).map_err(|refused| -> Later<K> {
            let object = refused.into_inner();
            Box::new(move |field| {
                let is_taken = defer(&field.domain, object);
                field.tally.expect_admitted(bytes, is_taken, OUTSIDE);
            })
        })
    }

    /// Retires objects that have no memory, or whose one word is no address.
    pub(crate) fn retire_odd_ones(&self, count: u64) {
        self.context.did(Operation::Odd);
        for number in 0..count {
            ODD[0].fetch_add(2, Relaxed);
            // Refused nowhere: the caller is in no section and in no callback. Else they were
            // dropped too late to be counted, and that is reported in the end.
            let taken = self.domain.retire(Box::new(Nothing)).is_ok()
                && self.domain.retire(OddWord(2 * number as usize + 1)).is_ok();
            self.tally.expect(taken, FaultKind::Limit, || format!("{OUTSIDE} was refused"));
        }
    }
}

/// Retires an object whose drop retires another, and so on.
pub(crate) fn chain<K: ThreadTag>(field: &Field<K>, left: u64) {
    let bytes = size_of::<Chain<K>>();
    let parcel = Some(field.tally.parcel(bytes));
    let link = Box::new(Chain { parcel, field: field.clone(), left });
    // Where it is refused it is dropped, and so retired over the limit.
    field.tally.expect_admitted(bytes, field.domain.retire(link).is_ok(), "a drop's retire()");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tests::context;

    #[test]
    fn one_object_or_one_byte_too_many_is_a_fault() {
        for (bytes, within) in [(8, true), (9, false)] {
            let context = context();
            let tally = Tally::new(&context, "test", Amount { objects: 2, bytes: 16 });
            let parcels = [tally.parcel(8), tally.parcel(bytes)];
            tally.admitted(8);
            tally.admitted(bytes);
            assert_eq!(context.ledger.faults(FaultKind::Limit) == 0, within);
            drop(parcels);
            assert_eq!(tally.waiting(), 0);
            tally.expect_none("in the test");
            assert_eq!(context.ledger.faults(FaultKind::Count), 0);
        }
        let context = context();
        let tally = Tally::new(&context, "test", Amount { objects: 1, bytes: 16 });
        tally.admitted(8);
        tally.admitted(8);
        assert_eq!(context.ledger.faults(FaultKind::Limit), 1);
        tally.expect_none("in the test");
        assert_eq!(context.ledger.faults(FaultKind::Count), 1, "none was dropped");
    }

    #[test]
    fn whoever_runs_before_its_turn_or_twice_is_a_fault() {
        let context = context();
        let tally = Tally::new(&context, "test", UNBOUNDED);
        let callback_queue: Arc<CallbackQueue> = Arc::default();
        let ticket = |number| Ticket { callback_queue: Arc::clone(&callback_queue), number };
        (0..2).for_each(|_| callback_queue.ticket().check(&tally));
        assert_eq!(callback_queue.ran_of(), (2, 2));
        assert_eq!(context.ledger.faults(FaultKind::Order), 0);
        ticket(1).check(&tally);
        assert_eq!(context.ledger.faults(FaultKind::Order), 1, "twice");
        ticket(3).check(&tally);
        assert_eq!(context.ledger.faults(FaultKind::Order), 2, "before its turn");
    }

    #[test]
    fn every_shape_is_counted_as_what_the_library_takes_it_for() {
        let context = context();
        let domain = Domain::new();
        let tally = Tally::new(&context, "test", UNBOUNDED);
        let field = Field::new(&context, &domain, &tally);
        for draw in 0..64 {
            let guard = field.domain.read(); // it waits
            assert!(field.retire_one(draw % 2 == 0, draw).is_ok(), "there is room");
            let counted = u64::try_from(field.tally.bytes.load(Relaxed)).expect("some wait");
            let waiting = field.domain.statistics().bytes_waiting;
            // The library's own words count, too; not for more than what it puts into a box.
            assert!((counted..=counted + 128).contains(&waiting), "shape {draw}: {waiting}");
            drop(guard);
            field.domain.barrier();
        }
        assert_eq!(field.tally.waiting(), 0);
    }
}
