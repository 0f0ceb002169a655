//! The last stage: how each kind of callback (boxes, other values, closures) is freed or called,
//! and how many bytes it is charged.

use std::marker::PhantomData;

use grace::limit::Amount;

use crate::reclaim::cache;
use crate::reclaim::debug_objects;
use crate::reclaim::retire::Retire;
use crate::reclaim::stream::{self, PAYLOAD_MAX, Progress, Word};

/// Objects that came from boxes, by their addresses.
#[derive(Debug)]
pub(crate) struct Boxed<T>(PhantomData<T>);

impl<T: Send + 'static> Boxed<T> {
    /// The charge of an object whose weight is its size.
    pub(crate) const CHARGE: u64 = charge_of_box::<T>(size_of::<T>()) as u64;

    pub(crate) const KIND: stream::CallbackType = stream::CallbackType {
        words: 1,
        pointer: true,
        bytes: Some(Self::CHARGE),
        bytes_of: |_| Self::CHARGE,
        run: Self::run,
        function: None,
    };

    /// The kind of an object whose weight is not its size.
    pub(crate) const WEIGHED: stream::CallbackType = stream::CallbackType {
        words: words::<Counted<*mut T>>(),
        pointer: false,
        bytes: None,
        // SAFETY: the payload is a pointer with its charge.
        bytes_of: |payload| unsafe { &*payload.cast::<Counted<*mut T>>() }.bytes,
        run: |_, payload, _, progress| {
            progress.begin(1);
            // SAFETY: the payload is a pointer with its charge.
            let object = unsafe { payload.cast::<Counted<*mut T>>().read() };
            // SAFETY: it came from a box, and is run once.
            unsafe { Self::free(object.value) };
        },
        function: None,
    };

    unsafe fn run(
        _: &'static stream::CallbackType,
        payload: *mut Word,
        count: u64,
        progress: &Progress,
    ) {
        while let Some(index) = progress.begin(count) {
            // SAFETY: `count` pointers are adjacent.
            let word = unsafe { payload.add(index) };
            // SAFETY: written as a `*mut T`.
            let object = unsafe { word.cast::<*mut T>().read() };
            // SAFETY: it came from a box, and each is run once.
            unsafe { Self::free(object) };
        }
    }

    /// Frees an object that came from a box.
    ///
    /// # Safety
    /// It came from a box, no thread can see it, and it is not used any more.
    pub(crate) unsafe fn free(object: *mut T) {
        debug_objects::forget(object.cast_const().cast());
        // SAFETY: by the contract.
        unsafe { cache::free(object) }; //~ late-free-box
    }
}

/// Bytes of `words` words of a stream: the library's own memory for a callback that waits, which is
/// charged, too.
const fn held(words: usize) -> usize {
    words * size_of::<Word>()
}

/// What a boxed object of this weight is charged: its weight and its words in the stream, which are
/// one if its weight is its size, else three (kind, pointer, charge).
#[inline(always)]
pub(crate) const fn charge_of_box<T>(weight: usize) -> usize {
    let words = if weight == size_of::<T>() { 1 } else { 1 + words::<Counted<*mut T>>() };
    weight.saturating_add(held(words))
}

/// Whether a value can be stored in a stream without a box.
const fn fits<P>() -> bool {
    size_of::<P>() <= PAYLOAD_MAX * size_of::<Word>() && align_of::<P>() <= align_of::<Word>()
}

const fn words<P>() -> usize {
    let words = size_of::<P>().div_ceil(size_of::<Word>());
    if words == 0 { 1 } else { words }
}

/// Frees a value whose grace period has ended.
pub(crate) fn end<P: Retire>(value: P) {
    debug_objects::forget(value.owned().0);
    value.free();
}

/// Values that own what is freed; large ones in a box.
#[derive(Debug)]
pub(crate) struct Value<P>(PhantomData<P>);

impl<P: Retire> Value<P> {
    /// Whether it is stored without its charge, as one pointer: its `bytes` cannot change.
    pub(crate) const BARE: bool = P::POINTER.0 && size_of::<P>() == size_of::<Word>();

    pub(crate) const FITS: bool = fits::<Counted<P>>();

    /// The library's own memory for a value that waits: its words, and its box if it has one.
    pub(crate) const HELD: usize = if Self::BARE {
        held(1)
    } else if Self::FITS {
        held(1 + words::<Counted<P>>())
    } else {
        held(1) + size_of::<Counted<P>>()
    };

    pub(crate) const POINTER: stream::CallbackType = stream::CallbackType {
        words: 1,
        pointer: true,
        bytes: None,
        // SAFETY: the payload is a P.
        bytes_of: |payload| (unsafe { &*payload.cast::<P>() }.bytes() + Self::HELD) as u64,
        run: |_, payload, _, progress| {
            progress.begin(1);
            // SAFETY: the payload is a P; it is run once.
            end(unsafe { payload.cast::<P>().read() });
        },
        function: None,
    };

    pub(crate) const NEAR: stream::CallbackType = stream::CallbackType {
        words: words::<Counted<P>>(),
        pointer: false,
        bytes: None,
        // SAFETY: the payload is a P with its charge.
        bytes_of: |payload| unsafe { &*payload.cast::<Counted<P>>() }.bytes,
        run: |_, payload, _, progress| {
            progress.begin(1);
            // SAFETY: the payload is a P with its charge; it is run once.
            end(unsafe { payload.cast::<Counted<P>>().read() }.value);
        },
        function: None,
    };

    pub(crate) const FAR: stream::CallbackType = stream::CallbackType {
        words: 1,
        pointer: true,
        bytes: None,
        bytes_of: |payload| {
            // SAFETY: the payload is a pointer to a P with its charge, in a box.
            let value = unsafe { payload.cast::<*mut Counted<P>>().read() };
            // SAFETY: as above.
            unsafe { &*value }.bytes
        },
        run: |_, payload, _, progress| {
            progress.begin(1);
            // SAFETY: the payload is a pointer to a P with its charge, in a box.
            let value = unsafe { payload.cast::<*mut Counted<P>>().read() };
            // SAFETY: as above; it is run once.
            let value = unsafe { Box::from_raw(value) };
            end(value.value);
        },
        function: None,
    };
}

/// A value that waits, and the bytes that it was charged: these are given back when it is run,
/// whatever its `Retire::bytes` would return by then.
#[derive(Debug)]
pub(crate) struct Counted<P> {
    pub(crate) value: P,
    pub(crate) bytes: u64,
}

/// Closures; large ones in a box.
#[derive(Debug)]
pub(crate) struct Closure<F>(PhantomData<F>);

impl<F: FnOnce() + Send + 'static> Closure<F> {
    pub(crate) const FITS: bool = fits::<F>();

    /// The charge of a closure: what it captures, and the library's words.
    pub(crate) const AMOUNT: Amount = {
        let held = if Self::FITS { held(1 + words::<F>()) } else { held(1) + size_of::<F>() };
        Amount::object(held as u64)
    };

    pub(crate) const NEAR: stream::CallbackType = stream::CallbackType {
        words: words::<F>(),
        pointer: false,
        bytes: Some(Self::AMOUNT.bytes),
        bytes_of: |_| Self::AMOUNT.bytes,
        run: |_, payload, _, progress| {
            progress.begin(1);
            // SAFETY: the payload is an F; it is run once.
            (unsafe { payload.cast::<F>().read() })();
        },
        function: None,
    };

    pub(crate) const FAR: stream::CallbackType = stream::CallbackType {
        words: 1,
        pointer: true,
        bytes: Some(Self::AMOUNT.bytes),
        bytes_of: |_| Self::AMOUNT.bytes,
        run: |_, payload, count, progress| {
            while let Some(index) = progress.begin(count) {
                // SAFETY: `count` pointers are adjacent.
                let word = unsafe { payload.add(index) };
                // SAFETY: written as a pointer to an F in a box.
                let f = unsafe { word.cast::<*mut F>().read() };
                // SAFETY: as above; each is run once.
                (unsafe { Box::from_raw(f) })();
            }
        },
        function: None,
    };
}
