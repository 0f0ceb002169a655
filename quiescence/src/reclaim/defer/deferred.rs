//! Functions of C's with a pointer each, `defer_rcu`: as closures are queued, and as objects are
//! run, by their thread.
//!
//! liburcu says so: a thread whose ring is full waits for readers and calls what is in it. So what
//! the functions free is in the cache of the CPU that has allocated it, and that allocates next.
//! Here the thread asks for a grace period when it has a batch, waits for nothing, and calls the
//! batch when that has ended, a few hundred at a time. The worker calls what is left where the
//! thread defers no more, or is in sections whenever it does.
//!
//! Each function is a kind of callback ([`CallbackType`]), which the stream names once for all that
//! follow: so what waits costs eight bytes, and a call a comparison and three stores.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use grace::Urgency;
use grace::batch::{BATCH, BATCH_ALONE};
use grace::limit::{Amount, Context};

use super::{add_by, close_if_full, run_or_advance, run_share};
use crate::gp::grace_periods::Me;
use crate::os::on_drop::OnDrop;
use crate::reclaim::at_limit::{Patience, admit, context, leave_to_worker, make_room};
use crate::reclaim::domain_state::{DomainState, Named};
use crate::reclaim::free::Pending;
use crate::reclaim::head::Anywhere;
use crate::reclaim::local;
use crate::reclaim::stream::{CallbackType, Function, Word};
use crate::reclaim::thread_queue::{Contents, OwnQueue, Wants};
use crate::reclaim::worker;

/// What one counts for: the library's word. What the pointer leads to, no thread knows.
const AMOUNT: Amount = Amount::object(size_of::<Word>() as u64);

/// A batch beside other readers, whose grace period takes a fence: as many as liburcu's ring has.
const BATCH_BESIDE_READERS: u64 = 4_096;

/// How many are deferred between two looks whether those of before are ready.
const LOOK_EVERY: u64 = 64;

/// How many are called in one go; more than are deferred between two looks.
const SHARE: u64 = BATCH_ALONE;

/// What has come of a function that was to be deferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it may be the caller's part to do something"]
pub enum Deferred {
    /// It waits.
    Queued,
    /// It waits; and it is time for the thread to do its part:
    /// [`run_deferred`](crate::liburcu_readers::LiburcuDomain::run_deferred).
    Due,
    /// It does not: the domain is at its limit, or the thread has no queue yet.
    Refused,
}

/// Defers a function, if the thread has a queue at hand, and its local stock pays for it.
///
/// # Safety
/// `function(argument)` may be called once, on any thread, after a grace period.
#[inline]
pub(crate) unsafe fn defer<K: Named>(
    tag: &K,
    function: Function,
    argument: *mut c_void,
) -> Deferred {
    let Some(queue) = local::last_queue(tag.core(), Contents::Closures) else {
        return Deferred::Refused;
    };
    if !queue.local_stock().take(AMOUNT) {
        return Deferred::Refused;
    }
    // SAFETY: by the contract; it is charged, and the queue is this thread's.
    let due = unsafe { add_deferred(tag, Some(queue), function, argument) };
    if due && has_part(tag.core(), queue) { Deferred::Due } else { Deferred::Queued }
}

/// Defers a function, over the limit if it must be. Outside of sections and callbacks it runs first
/// what is ready of this thread's, and waits for room then, but a tick at most: the caller may hold
/// a lock that a function takes.
///
/// # Safety
/// As for [`defer`].
#[cold]
pub(crate) unsafe fn defer_in_any_case<K: Named>(
    tag: &K,
    function: Function,
    argument: *mut c_void,
) {
    let domain = tag.core();
    let queue = local::queue(domain, tag, Contents::Closures);
    if !admit(domain, queue, AMOUNT) {
        if let Some(queue) = queue
            && context() == Context::Outside
        {
            queue.close(domain, Urgency::Expedited);
            domain.grace_periods.advance(Me::this_thread());
            run_share(domain, &queue, BATCH);
        }
        let _room = make_room(tag, queue, Contents::Closures, AMOUNT, Patience::Tick);
    }
    // SAFETY: by the contract; it is charged, and the queue is this thread's.
    unsafe { add_deferred(tag, queue, function, argument) };
    leave_to_worker(tag, queue);
}

/// Adds a function that has been charged. Returns whether it is time to look what is due.
///
/// # Safety
/// As for [`defer`]; and `queue` is this thread's.
#[inline]
unsafe fn add_deferred<K: Named>(
    tag: &K,
    queue: Option<OwnQueue<'_>>,
    function: Function,
    argument: *mut c_void,
) -> bool {
    let is_same = |kind: &&CallbackType| {
        kind.function.is_some_and(|of_kind| ptr::fn_addr_eq(of_kind, function))
    };
    let known = queue.and_then(OwnQueue::last_kind).filter(is_same);
    match known.or_else(|| KNOWN.of(function)) {
        Some(kind) => add_by(tag, queue, Contents::Closures, |queue| {
            // SAFETY: a pointer, and a function that is called with it, by the contract once.
            unsafe { queue.add(kind, argument, AMOUNT.bytes) }
        }),
        // SAFETY: by the contract.
        None => unsafe { add_as_closure(tag, queue, function, argument) },
    }
}

/// Adds a function that has no kind of its own.
///
/// # Safety
/// As for [`add_deferred`].
#[cold]
unsafe fn add_as_closure<K: Named>(
    tag: &K,
    queue: Option<OwnQueue<'_>>,
    function: Function,
    argument: *mut c_void,
) -> bool {
    let argument = Anywhere(argument);
    let pending = Pending::closure(tag.core(), move || {
        let _running = running();
        // SAFETY: by the contract of `defer`: once, after a grace period.
        unsafe { function(argument.get()) };
    });
    add_by(tag, queue, Contents::Closures, |queue| pending.add(queue, AMOUNT.bytes))
}

fn batch_of(domain: &DomainState) -> u64 {
    // Relaxed: a hint.
    if domain.grace_periods.alone.load(Relaxed) { BATCH_ALONE } else { BATCH_BESIDE_READERS }
}

/// Whether the thread has its part to do: a batch is full, or one of before has perhaps waited long
/// enough.
#[cold]
fn has_part(domain: &DomainState, queue: OwnQueue<'_>) -> bool {
    if queue.is_full(domain, batch_of(domain)) {
        return true;
    }
    if queue.local_stock().added(queue.written()) < LOOK_EVERY {
        return false;
    }
    queue.local_stock().take_added(queue.written());
    queue.wants() == Wants::Looks
}

/// The part of a thread that defers: it asks for a grace period, takes steps of it, and calls what
/// is ready. In a section and in a callback that is left to the worker [D-1].
#[cold]
pub(crate) fn run_deferred(tag: &dyn Named) {
    let domain = tag.core();
    let Some(queue) = local::queue(domain, tag, Contents::Closures) else { return };
    let closed = close_if_full(domain, queue, batch_of(domain));
    //~ deferred-in-section:
    if context() != Context::Outside {
        if closed {
            worker::hurry(&tag.handle());
        }
        return;
    }
    if run_or_advance(domain, &queue, SHARE) {
        run_share(domain, &queue, SHARE);
    }
}

// ---- kinds --------------------------------------------------------------------------------------

/// The kinds of functions that were deferred, by their addresses; each is there for ever. Functions
/// that find it full wait as closures.
struct Kinds<const N: usize>([AtomicPtr<CallbackType>; N]);

static KNOWN: Kinds<256> = Kinds::new();

impl<const N: usize> Kinds<N> {
    const fn new() -> Self {
        Self([const { AtomicPtr::new(ptr::null_mut()) }; N])
    }

    /// The function's kind, if it has one or there is room for it.
    #[cold]
    fn of(&self, function: Function) -> Option<&'static CallbackType> {
        // The multiplier is 2^64 divided by the golden ratio: neighbours are spread.
        let hash = (function as usize as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        let places = (0..N).map(|step| &self.0[(hash as usize + step) % N]);
        for place in places {
            // Acquire: pairs with the exchange in `enter`; the kind was written before.
            // SAFETY: null, or from a box that is never freed.
            let known = unsafe { place.load(Acquire).as_ref() };
            let found = known.unwrap_or_else(|| enter(place, kind(function)));
            let is_its = |known| ptr::fn_addr_eq(known, function);
            //~ deferred-as-another:
            if found.function.is_some_and(is_its) {
                return Some(found);
            }
        }
        None
    }
}

/// Puts a kind into an empty place. Returns what is there then: another one, if somebody was
/// faster.
fn enter(place: &AtomicPtr<CallbackType>, kind: CallbackType) -> &'static CallbackType {
    let made = Box::into_raw(Box::new(kind));
    // AcqRel: pairs with the Acquire in `of`, or with the exchange of who was faster.
    match place.compare_exchange(ptr::null_mut(), made, AcqRel, Acquire) {
        // SAFETY: from a box, and never freed from now on.
        Ok(_) => unsafe { &*made },
        Err(others) => {
            // SAFETY: from a box, above, which no other thread has seen.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: from a box that is never freed.
            unsafe { &*others }
        }
    }
}

fn kind(function: Function) -> CallbackType {
    CallbackType {
        words: 1,
        pointer: true,
        bytes: Some(AMOUNT.bytes),
        bytes_of: |_| AMOUNT.bytes,
        run: |kind, payload| {
            let Some(function) = kind.function else { return };
            let _running = running();
            // SAFETY: written as a pointer.
            let argument = unsafe { payload.cast::<*mut c_void>().read() };
            // SAFETY: by the contract of `defer`: once, after a grace period.
            unsafe { function(argument) };
        },
        memory: None,
        function: Some(function),
    }
}

thread_local! {
    /// Runs of deferred functions that the thread is in, one inside the other.
    static RUNNING: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread runs deferred functions, until the result is dropped.
fn running() -> OnDrop<impl FnMut()> {
    RUNNING.set(RUNNING.get() + 1);
    OnDrop(|| RUNNING.set(RUNNING.get() - 1))
}

/// Whether the calling thread is running a deferred function, of whatever domain.
pub(crate) fn is_running_deferred() -> bool {
    RUNNING.get() != 0
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::Domain;

    unsafe extern "C" fn nothing(_: *mut c_void) {}

    unsafe extern "C" fn add_one(count: *mut c_void) {
        // SAFETY: a counter of a test, which waits for this.
        unsafe { &*count.cast::<AtomicU32>() }.fetch_add(1, Relaxed);
    }

    /// A table that is full has nothing for the next one, and still what it had.
    #[test]
    fn each_function_has_one_kind() {
        // Each taken once: two pointers to a function need not be equal, and under Miri are not.
        let functions: [unsafe extern "C" fn(*mut c_void); 3] = [nothing, add_one, run_nothing];
        let kinds = Kinds::<2>::new();
        let [first, second] = [0, 1].map(|number| kinds.of(functions[number]).unwrap());
        assert!(ptr::eq(kinds.of(functions[0]).unwrap(), first) && !ptr::eq(first, second));
        assert!(kinds.of(functions[2]).is_none());
        assert!(ptr::eq(kinds.of(functions[1]).unwrap(), second));
    }

    unsafe extern "C" fn run_nothing(argument: *mut c_void) {
        std::hint::black_box(argument); // another function than the one above
    }

    /// From the eighth on, each function had its thread look at its queue.
    #[test]
    fn a_thread_that_defers_looks_at_its_queue_once_a_round() {
        let domain = Domain::new();
        let looks = |_: &u32| {
            let queue = local::queue(domain.core(), domain.tag(), Contents::Closures);
            // SAFETY: does nothing; it is not charged, and so given back below nothing.
            unsafe { add_deferred(domain.tag(), queue, nothing, ptr::null_mut()) }
        };
        let round = grace::batch::TEND_EVERY + 1;
        assert_eq!((0..10 * round).filter(looks).count(), 10);
        domain.barrier();
    }

    #[test]
    fn functions_are_called_with_or_without_a_kind_of_their_own() {
        let (domain, count) = (Domain::new(), AtomicU32::new(0));
        let argument = ptr::from_ref(&count).cast_mut().cast();
        for _ in 0..3 {
            // SAFETY: called by the barrier, before the counter goes.
            unsafe { defer_in_any_case(domain.tag(), add_one, argument) };
            let queue = local::last_queue(domain.core(), Contents::Closures);
            // SAFETY: as above; it is not charged, and so given back below nothing.
            unsafe { add_as_closure(domain.tag(), queue, add_one, argument) };
        }
        domain.barrier();
        assert_eq!(count.load(Relaxed), 6);
    }

    thread_local! {
        static HERE: Cell<u32> = const { Cell::new(0) };
    }

    unsafe extern "C" fn count_here(_: *mut c_void) {
        HERE.set(HERE.get() + 1);
    }

    /// A thread that defers calls its own functions: the worker does not come.
    #[test]
    #[cfg_attr(miri, ignore = "thousands of callbacks")]
    fn the_thread_that_defers_calls() {
        let domain = Domain::new();
        let tag = domain.tag();
        domain.core().queues.announced.store(true, Relaxed); // as if it had been told
        // SAFETY: a function that may be called anywhere, with anything.
        unsafe { defer_in_any_case(tag, count_here, ptr::null_mut()) };
        for _ in 0..4 * BATCH_BESIDE_READERS {
            // SAFETY: as above.
            match unsafe { defer(tag, count_here, ptr::null_mut()) } {
                Deferred::Queued => {}
                Deferred::Due => run_deferred(tag),
                // SAFETY: as above.
                Deferred::Refused => unsafe { defer_in_any_case(tag, count_here, ptr::null_mut()) },
            }
        }
        assert!(HERE.get() > 0);
        domain.barrier();
    }

    /// What is ready when a section begins, too, is not called in it [D-1].
    #[test]
    fn in_a_section_nothing_is_called() {
        let domain = Domain::new();
        let tag = domain.tag();
        for _ in 0..BATCH_ALONE {
            // SAFETY: a function that may be called anywhere, with anything.
            unsafe { defer_in_any_case(tag, count_here, ptr::null_mut()) };
        }
        let queue = local::last_queue(domain.core(), Contents::Closures).unwrap();
        queue.close(domain.core(), Urgency::Normal);
        domain.synchronize();
        let guard = domain.read();
        let before = HERE.get();
        run_deferred(tag);
        assert_eq!(HERE.get(), before);
        drop(guard);
        domain.barrier();
    }

    /// In a section it only adds [D-1].
    #[test]
    #[cfg_attr(miri, ignore = "thousands of callbacks, and a turn after each")]
    fn in_a_section_it_only_adds() {
        let (domain, count) = (Domain::new(), AtomicU32::new(0));
        let argument = ptr::from_ref(&count).cast_mut().cast();
        // SAFETY: called by the barrier, before the counter goes.
        unsafe { defer_in_any_case(domain.tag(), add_one, argument) };
        let guard = domain.read();
        for _ in 0..2 * BATCH_BESIDE_READERS {
            // SAFETY: as above.
            let deferred = unsafe { defer(domain.tag(), add_one, argument) };
            if deferred == Deferred::Refused {
                // SAFETY: as above.
                unsafe { defer_in_any_case(domain.tag(), add_one, argument) };
            }
            run_deferred(domain.tag());
        }
        assert!(count.load(Relaxed) <= 1, "what is older than the section, by the worker");
        drop(guard);
        domain.barrier();
        assert_eq!(u64::from(count.load(Relaxed)), 2 * BATCH_BESIDE_READERS + 1);
    }
}
