//! The first stage and the last: a callback that waits for its grace period ([`Pending`]), of each
//! kind (objects by their addresses, other values, closures); how it is stored; how many bytes it
//! is charged; how it is freed or called; and in what it goes back to the user if it is refused
//! ([`AtLimit`]).
//!
//! **Code that retires can free neither too early nor twice:** a [`Pending`] goes into a queue of
//! its domain, which runs it when its cookie is done; or it is [`Timed`], and ended only after the
//! cookie is done that was taken after the unlinking. If it is dropped, it leaks.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, needs_drop};
use std::sync::atomic::Ordering::Relaxed;

use grace::Cookie;
use grace::limit::Amount;

use crate::hazptr;
use crate::os::fence;
use crate::os::user_code::{self, Site};
use crate::reclaim::domain_state::{DomainState, Handle};
use crate::reclaim::retire::Retire;
use crate::reclaim::running::running_callbacks;
use crate::reclaim::stream::{CallbackType, Stored, Word, fits, words};
use crate::reclaim::thread_queue::{Contents, OwnQueue};
use crate::reclaim::{cache, debug_objects};

// ---- one that waits -----------------------------------------------------------------------------

/// A callback that is to run after a grace period of `domain`.
#[derive(Debug)]
#[must_use = "dropped, it leaks"]
pub(crate) struct Pending<'d, C> {
    callback: ManuallyDrop<C>,
    domain: &'d DomainState,
}

impl<'d, C: Callback> Pending<'d, C> {
    /// # Safety
    /// To run it once, on any thread, after a grace period of `domain` from now on, is sound.
    #[inline(always)]
    pub(crate) unsafe fn new(domain: &'d DomainState, callback: C) -> Self {
        Self { callback: ManuallyDrop::new(callback), domain }
    }

    /// Adds it to a queue of its domain; it has been charged `bytes`. Returns how many have been
    /// added by then.
    ///
    /// # Panics
    /// In a queue of another domain; and in one of a hazard domain, unless it is an address. Then
    /// it is leaked.
    #[inline(always)]
    pub(crate) fn add(self, queue: OwnQueue<'_>, bytes: u64) -> u64 {
        assert!(queue.is_of(self.domain), "another domain's grace periods");
        // In a hazard domain the first word is read as an address.
        let hazards = &self.domain.grace_periods.hazards;
        assert!(self.callback.address().is_some() || hazards.is_none(), "slots name addresses");
        // One pointer can tell its charge, unless that of all is known and this one's is another.
        let tells = match C::BYTES {
            Some(all) => all == bytes,
            None => C::POINTER,
        };
        if tells {
            // SAFETY: by the contract of `new`.
            unsafe { store(queue, self.callback, bytes) }
        } else {
            let counted = ManuallyDrop::new(Counted { callback: self.take_back(), bytes });
            // SAFETY: as above.
            unsafe { store(queue, counted, bytes) }
        }
    }

    /// The callback itself.
    #[inline(always)]
    fn take_back(self) -> C {
        ManuallyDrop::into_inner(self.callback)
    }

    /// With the cookie of a grace period from now on.
    pub(crate) fn since_now(self) -> Timed<'d, C> {
        // As the locked instruction that unlinks would be [UL-1].
        fence::full();
        let cookie = self.domain.grace_periods.snapshot_after_unlinking();
        Timed { pending: self, cookie }
    }

    /// # Safety
    /// The domain has given this cookie after the object was unlinked.
    pub(crate) unsafe fn since(self, cookie: Cookie) -> Timed<'d, C> {
        Timed { pending: self, cookie }
    }
}

/// Adds to the queue, in a box if it is too large.
///
/// # Safety
/// As [`OwnQueue::add`].
#[inline(always)]
unsafe fn store<C: Callback>(queue: OwnQueue<'_>, callback: ManuallyDrop<C>, bytes: u64) -> u64 {
    if const { fits::<C>() } {
        // SAFETY: by the contract; it is of its kind.
        unsafe { queue.add(&C::KIND, callback, bytes) }
    } else {
        // SAFETY: as above.
        unsafe { queue.add(&Box::<C>::KIND, ManuallyDrop::new(Box::new(callback)), bytes) }
    }
}

/// One that waits, and the cookie that is done once it may run.
#[derive(Debug)]
#[must_use = "dropped, it leaks"]
pub(crate) struct Timed<'d, C> {
    pending: Pending<'d, C>,
    cookie: Cookie,
}

impl<'d, C: Callback> Timed<'d, C> {
    /// It waits all the same.
    pub(crate) fn into_pending(self) -> Pending<'d, C> {
        self.pending
    }

    /// Whether its grace period has ended.
    pub(crate) fn is_ripe(&self) -> bool {
        self.pending.domain.grace_periods.sequence().is_done(self.cookie)
    }

    /// Runs it, in the same surroundings as a callback. In a hazard domain keeps it instead, over
    /// the limit, if a slot names it: not in a queue, which another thread may be running for as
    /// long as it likes. Returns whether it is kept.
    ///
    /// # Panics
    /// If its grace period has not ended; and in a hazard domain, unless it is an address.
    #[must_use = "the worker is to be told of what is kept"]
    pub(crate) fn end(self, amount: Amount) -> bool {
        assert!(self.is_ripe(), "its grace period has not ended");
        let domain = self.pending.domain;
        if domain.grace_periods.hazards.is_some() {
            let address = self.pending.callback.address().expect("slots name addresses");
            // After the fence of that [HP-1].
            if hazptr::is_protected(address) {
                domain.admit_over(amount);
                let counted = Counted { callback: self.pending.take_back(), bytes: amount.bytes };
                let mut counted = ManuallyDrop::new(counted); // it is copied from here
                let payload = (&raw mut counted).cast();
                domain.kept.keep(&Stored { kind: &Counted::<C>::KIND, payload });
                return true;
            }
        }
        let callback = self.pending.take_back();
        let whole = running_callbacks(&domain.grace_periods, |_| {
            // SAFETY: by the contract of `Pending::new`; its grace period has ended, and in a
            // hazard domain no slot names it, and none will [HZ-A].
            user_code::caught(Site::OnTheSpot, || unsafe { callback.run() })
        });
        domain.grace_periods.counters().callbacks_panicked.fetch_add(u64::from(!whole), Relaxed);
        false
    }
}

// ---- in a stream --------------------------------------------------------------------------------

/// A callback as it stands in a stream.
pub(crate) trait Callback: Sized {
    /// Whether it is one pointer: see [`CallbackType::pointer`].
    const POINTER: bool = false;

    /// How many bytes each is charged, if that is the same for all.
    const BYTES: Option<u64> = None;

    /// See [`CallbackType::memory`].
    const MEMORY: Option<Layout> = None;

    /// In which of its thread's queues it waits.
    const CONTENTS: Contents = Contents::Objects;

    /// How many bytes it was charged. Runs no user code.
    fn bytes(&self) -> u64 {
        Self::BYTES.expect("said here or by the kind")
    }

    /// The address that hazard slots name, if it begins with that.
    #[inline(always)]
    fn address(&self) -> Option<usize> {
        None
    }

    /// Runs it.
    ///
    /// # Safety
    /// Its grace period has ended, and no thread uses what it frees.
    unsafe fn run(self);

    /// Its kind.
    const KIND: CallbackType = CallbackType {
        words: words::<Self>(),
        pointer: Self::POINTER,
        bytes: Self::BYTES,
        // SAFETY: the payload is a Self.
        bytes_of: |payload| unsafe { &*payload.cast::<Self>() }.bytes(),
        run: |_, payload| {
            // SAFETY: the payload is a Self, and is run once.
            let callback = unsafe { payload.cast::<Self>().read() };
            // SAFETY: by the contract of `OwnQueue::add`.
            unsafe { callback.run() };
        },
        memory: Self::MEMORY,
        function: None,
    };
}

/// A callback with the bytes that it was charged: these are given back when it is run, whatever
/// its weight would be by then.
// In the order of C: hazard slots name the address in an `Address`, which comes first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Counted<C> {
    pub(crate) callback: C,
    pub(crate) bytes: u64,
}

impl<C: Callback> Callback for Counted<C> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    unsafe fn run(self) {
        // SAFETY: by the contract.
        unsafe { self.callback.run() };
    }
}

/// One that is too large for a stream.
impl<C: Callback> Callback for Box<C> {
    const POINTER: bool = true;
    const BYTES: Option<u64> = C::BYTES;
    const CONTENTS: Contents = C::CONTENTS;

    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    unsafe fn run(self) {
        // SAFETY: by the contract.
        unsafe { (*self).run() };
    }
}

// ---- objects by their addresses -----------------------------------------------------------------

/// Objects that are retired by their addresses: how one is freed.
pub(crate) trait Pointee {
    /// What is at the address.
    type Object;

    /// Bytes of an object by its size, with what is allocated around it.
    const BYTES: usize = size_of::<Self::Object>();

    /// Whether it is a box, whose address may wait only once. [`free`](Self::free) forgets it.
    const UNIQUE: bool = true;

    /// Frees it.
    ///
    /// # Safety
    /// Once for each time that it was retired, and no thread reads it any more.
    unsafe fn free(object: *mut Self::Object);
}

/// Objects that came from boxes.
#[derive(Debug)]
pub(crate) struct Boxed<T>(PhantomData<T>);

impl<T: Send + 'static> Pointee for Boxed<T> {
    type Object = T;

    unsafe fn free(object: *mut T) {
        debug_objects::forget(object.cast_const().cast());
        // SAFETY: by the contract.
        unsafe { cache::free(object) }; //~ late-free-box
    }
}

/// The address of an object that waits.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Address<P: Pointee>(pub(crate) *mut P::Object);

impl<'d, T: Send + 'static> Pending<'d, Address<Boxed<T>>> {
    /// An object that came from a box; `None` if it is null.
    ///
    /// # Safety
    /// It is null or came from a box; and sections of `domain` that begin from now on cannot reach
    /// it.
    #[inline(always)]
    pub(crate) unsafe fn boxed(domain: &'d DomainState, object: *mut T) -> Option<Self> {
        // SAFETY: by the contract. (So its lowest bit need not be looked at, if T is aligned.)
        unsafe { std::hint::assert_unchecked(object.is_aligned()) };
        // SAFETY: by the contract.
        (!object.is_null()).then(|| unsafe { Self::new(domain, Address(object)) })
    }
}

impl<P: Pointee> Pending<'_, Address<P>> {
    /// Notes that the object is about to wait.
    ///
    /// # Panics
    /// In debug builds, if it waits already.
    #[inline]
    #[track_caller]
    pub(crate) fn note(&self) {
        if P::UNIQUE {
            let object = self.callback.0.cast_const().cast();
            debug_objects::note(object, size_of::<P::Object>());
        }
    }
}

impl<P: Pointee> Callback for Address<P> {
    const POINTER: bool = true;
    const BYTES: Option<u64> = Some(Self::CHARGE);
    //~ late-memory:
    const MEMORY: Option<Layout> = match P::UNIQUE && !needs_drop::<P::Object>() {
        true => Some(Layout::new::<P::Object>()),
        false => None,
    };

    #[inline(always)]
    fn address(&self) -> Option<usize> {
        Some(self.0.addr())
    }

    unsafe fn run(self) {
        // SAFETY: by the contract.
        unsafe { P::free(self.0) };
    }
}

// ---- values -------------------------------------------------------------------------------------

/// A value that owns what is freed.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Value<P>(P);

impl<P: Retire> Value<P> {
    /// Whether it is stored without its charge, as one pointer: its `bytes` cannot change.
    pub(crate) const BARE: bool = P::POINTER.is_some() && size_of::<P>() == size_of::<Word>();
}

impl<'d, P: Retire> Pending<'d, Value<P>> {
    pub(crate) fn value(domain: &'d DomainState, value: P) -> Self {
        // SAFETY: a P, which is Send and 'static.
        unsafe { Self::new(domain, Value(value)) }
    }

    /// What it is charged. Calls user code.
    pub(crate) fn amount(&self) -> Amount {
        Amount::object(self.callback.0.bytes().saturating_add(Value::<P>::HELD) as u64)
    }

    /// Notes that what it owns is about to wait.
    ///
    /// # Panics
    /// In debug builds, if it waits already.
    #[track_caller]
    pub(crate) fn note(&self) {
        let (memory, bytes) = self.callback.0.owned();
        debug_objects::note(memory, bytes);
    }
}

impl<P: Retire> Pending<'_, Value<P>> {
    /// Gives the value back to the user, who may drop it; until it is taken out, `otherwise` is
    /// called in place of its drop.
    pub(crate) fn refuse(self, handle: Handle, otherwise: fn(&Handle, P)) -> AtLimit<P> {
        let Value(value) = self.take_back();
        debug_objects::forget(value.owned().0);
        AtLimit::retired(value, handle, otherwise)
    }
}

impl<P: Retire> Callback for Value<P> {
    const POINTER: bool = Self::BARE;

    fn bytes(&self) -> u64 {
        // Only of a `Box` or an `Arc`, where this is no user's code; all others are `Counted`.
        debug_assert!(Self::BARE);
        (self.0.bytes() + Self::HELD) as u64
    }

    unsafe fn run(self) {
        debug_objects::forget(self.0.owned().0);
        self.0.free();
    }
}

// ---- closures -----------------------------------------------------------------------------------

/// A closure.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Closure<F>(pub(crate) F);

impl<'d, F: FnOnce() + Send + 'static> Pending<'d, Closure<F>> {
    #[inline(always)]
    pub(crate) fn closure(domain: &'d DomainState, f: F) -> Self {
        // SAFETY: an F, which is Send and 'static.
        unsafe { Self::new(domain, Closure(f)) }
    }
}

impl<F: FnOnce() + Send + 'static> Pending<'_, Closure<F>> {
    /// Gives the closure back to the user.
    pub(crate) fn refuse(self) -> AtLimit<F> {
        AtLimit::unchanged(self.take_back().0)
    }
}

impl<F: FnOnce() + Send + 'static> Callback for Closure<F> {
    const BYTES: Option<u64> = Some(Self::AMOUNT.bytes);
    const CONTENTS: Contents = Contents::Closures;

    unsafe fn run(self) {
        (self.0)();
    }
}

// ---- refused ------------------------------------------------------------------------------------

/// The error of a call that could not wait for room at its domain's memory limit, which the
/// domain's [tuning](crate::tuning::Tuning) sets. Nothing has changed. Holds the argument of the
/// call, if it had one.
///
/// From [`Domain::retire`](crate::Domain::retire) and [`try_retire`](crate::Domain::try_retire) it
/// holds an object that readers may still see. **Dropping the error does not drop that object at
/// once**: it retires the object over the limit instead. Any other argument is dropped with the
/// error: a value that was not stored or inserted, or a closure, which is not called.
///
/// ```
/// let domain = quiescence::Domain::new();
/// if let Err(refused) = domain.try_retire(Box::new(7)) {
///     let again = refused.into_inner(); // keep it, and try later
/// #   drop(again);
/// }
/// ```
#[must_use = "nothing has changed; an object that is dropped in it is retired over the limit"]
pub struct AtLimit<P: Send + 'static = ()> {
    /// `None` once it is taken out.
    value: Option<P>,
    /// What to do with the value if this is dropped with it.
    otherwise: Option<(Handle, Otherwise<P>)>,
}

/// What is done with a refused value that was not taken out.
type Otherwise<P> = fn(&Handle, P);

impl<P: Send + 'static> AtLimit<P> {
    /// No reader can see the value, so it is simply dropped.
    pub(crate) fn unchanged(value: P) -> Self {
        Self { value: Some(value), otherwise: None }
    }

    fn retired(value: P, handle: Handle, otherwise: Otherwise<P>) -> Self {
        Self { value: Some(value), otherwise: Some((handle, otherwise)) }
    }

    /// Returns the argument of the refused call. If it is an object that was to be retired, readers
    /// may still see it: retire it later, or wait for a grace period before you drop it.
    #[expect(clippy::missing_panics_doc, reason = "it is taken out once")]
    pub fn into_inner(mut self) -> P {
        self.value.take().expect("taken out once")
    }
}

impl<P: Send + 'static> Drop for AtLimit<P> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take()
            && let Some((handle, otherwise)) = &self.otherwise
        {
            otherwise(handle, value);
        }
    }
}

impl<P: PartialEq + Send + 'static> PartialEq for AtLimit<P> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<P: Eq + Send + 'static> Eq for AtLimit<P> {}
