//! The last stage: each kind of callback (objects by their addresses, other values, closures), how
//! it is freed or called, and how many bytes it is charged.

use std::marker::PhantomData;

use grace::limit::Amount;

use crate::reclaim::cache;
use crate::reclaim::debug_objects;
use crate::reclaim::retire::Retire;
use crate::reclaim::stream::{CallbackType, PAYLOAD_MAX, Word};
use crate::reclaim::thread_queue::Contents;

/// A callback as it stands in a stream.
pub(crate) trait Callback: Sized {
    /// Whether it is one pointer: see [`CallbackType::pointer`].
    const POINTER: bool = false;

    /// How many bytes each is charged, if that is the same for all.
    const BYTES: Option<u64> = None;

    /// In which of its thread's queues it waits.
    const CONTENTS: Contents = Contents::Objects;

    /// How many bytes it was charged. Runs no user code.
    fn bytes(&self) -> u64 {
        Self::BYTES.expect("said here or by the kind")
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
        run: |_, payload, count, progress| {
            while let Some(index) = progress.begin(count) {
                // SAFETY: `count` payloads are adjacent.
                let payload = unsafe { payload.add(index * words::<Self>()) };
                // SAFETY: the payload is a Self, and each is run once.
                let callback = unsafe { payload.cast::<Self>().read() };
                // SAFETY: by the contract of `Queue::add`.
                unsafe { callback.run() };
            }
        },
        function: None,
    };
}

/// Bytes of `words` words of a stream: the library's own memory for a callback that waits, which is
/// charged, too.
const fn held(words: usize) -> usize {
    words * size_of::<Word>()
}

/// Whether a value can be stored in a stream without a box.
const fn fits<P>() -> bool {
    size_of::<P>() <= PAYLOAD_MAX * size_of::<Word>() && align_of::<P>() <= align_of::<Word>()
}

const fn words<P>() -> usize {
    let words = size_of::<P>().div_ceil(size_of::<Word>());
    if words == 0 { 1 } else { words }
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

    /// Whether one address may wait only once, as a box's. Then [`free`](Self::free) forgets it.
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

impl<P: Pointee> Address<P> {
    /// The charge of an object whose weight is its size.
    pub(crate) const CHARGE: u64 = Self::charge(size_of::<P::Object>());

    /// The charge of an object of this weight.
    #[inline(always)]
    pub(crate) const fn charge(weight: usize) -> u64 {
        let around = P::BYTES - size_of::<P::Object>();
        charge_of_box::<P::Object>(weight).saturating_add(around) as u64
    }

    /// Notes that the object is about to wait.
    ///
    /// # Panics
    /// In debug builds, if it waits already.
    #[inline]
    #[track_caller]
    pub(crate) fn note(&self) {
        if P::UNIQUE {
            debug_objects::note(self.0.cast_const().cast(), size_of::<P::Object>());
        }
    }
}

impl<P: Pointee> Callback for Address<P> {
    const POINTER: bool = true;
    const BYTES: Option<u64> = Some(Self::CHARGE);

    unsafe fn run(self) {
        // SAFETY: by the contract.
        unsafe { P::free(self.0) };
    }
}

/// What a boxed object of this weight is charged: its weight and its words in the stream, which are
/// one if its weight is its size, else three (kind, pointer, charge).
#[inline(always)]
pub(crate) const fn charge_of_box<T>(weight: usize) -> usize {
    let words = if weight == size_of::<T>() { 1 } else { 1 + words::<Counted<*mut T>>() };
    weight.saturating_add(held(words))
}

// ---- values -------------------------------------------------------------------------------------

/// A value that owns what is freed.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Value<P>(pub(crate) P);

impl<P: Retire> Value<P> {
    /// Whether it is stored without its charge, as one pointer: its `bytes` cannot change.
    pub(crate) const BARE: bool = P::POINTER.0 && size_of::<P>() == size_of::<Word>();

    /// Whether it is stored with its charge and without a box.
    pub(crate) const FITS: bool = fits::<Counted<P>>();

    /// The library's own memory for a value that waits: its words, and its box if it has one.
    pub(crate) const HELD: usize = if Self::BARE {
        held(1)
    } else if Self::FITS {
        held(1 + words::<Counted<P>>())
    } else {
        held(1) + size_of::<Counted<P>>()
    };

    /// Frees it: its grace period has ended.
    pub(crate) fn end(self) {
        debug_objects::forget(self.0.owned().0);
        self.0.free();
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
        self.end();
    }
}

// ---- closures -----------------------------------------------------------------------------------

/// A closure.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Closure<F>(pub(crate) F);

impl<F: FnOnce() + Send + 'static> Closure<F> {
    /// Whether it is stored without a box.
    pub(crate) const FITS: bool = fits::<F>();

    /// The charge of a closure: what it captures, and the library's words.
    pub(crate) const AMOUNT: Amount = {
        let held = if Self::FITS { held(1 + words::<F>()) } else { held(1) + size_of::<F>() };
        Amount::object(held as u64)
    };
}

impl<F: FnOnce() + Send + 'static> Callback for Closure<F> {
    const BYTES: Option<u64> = Some(Self::AMOUNT.bytes);
    const CONTENTS: Contents = Contents::Closures;

    unsafe fn run(self) {
        (self.0)();
    }
}
