//! What can be deferred, as a kind of callback each: boxes, other values, closures.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use grace::limit::Amount;

use crate::chaos;
use crate::reclaim::cache;
use crate::reclaim::debug_objects;
use crate::reclaim::handle::Handle;
use crate::reclaim::stream::{self, PAYLOAD_MAX, Progress, Word};

/// What can be [retired](crate::Domain::retire): an owner of memory that says how much it is.
///
/// Implemented for boxes, [`Arc`]s, vectors and strings. **Of these it is their own memory that
/// counts, not what is owned by the values in it**, of which nothing is asked but that they can be
/// dropped: a `Box<Vec<u8>>` counts for 24 bytes. Where that matters say how much it is, with
/// [`Weigh`](crate::Weigh): `retire_sized(value, value.weight())`
/// ([`retire_sized`](crate::Domain::retire_sized)). For an owner of one's own implement it.
///
/// ```
/// struct Table {
///     rows: Vec<[u64; 8]>,
/// }
///
/// impl quiescence::Retire for Table {
///     fn bytes(&self) -> usize {
///         self.rows.capacity() * size_of::<[u64; 8]>()
///     }
/// }
///
/// quiescence::retire(Table { rows: vec![[0; 8]; 1000] }).expect("not in a section");
/// ```
pub trait Retire: Send + 'static {
    /// Bytes of memory that are waited for with this value, to be held against the domain's limit.
    /// Asked once, before it waits. Must not panic: the value would be leaked, since readers may
    /// see it.
    fn bytes(&self) -> usize;

    /// Whether a value of one word is a pointer, so that it is initialised as a whole. Must be
    /// true, so only this crate can say it: no other thread can name the type.
    #[doc(hidden)]
    const POINTER: IsPointer = IsPointer(false);

    /// The memory that is this value's alone, and how many bytes: for the checks of debug builds.
    /// Of none, nothing is checked.
    #[doc(hidden)]
    fn owned(&self) -> (*const (), usize) {
        (std::ptr::null(), 0)
    }

    /// Drops it, once readers have let go.
    #[doc(hidden)]
    fn free(self)
    where
        Self: Sized,
    {
        drop(self);
    }
}

impl<T: ?Sized + Send + 'static> Retire for Box<T> {
    fn bytes(&self) -> usize {
        size_of_val(&**self)
    }

    const POINTER: IsPointer = IsPointer(true);

    fn owned(&self) -> (*const (), usize) {
        (std::ptr::from_ref(&**self).cast(), size_of_val(&**self))
    }

    fn free(self) {
        if cfg!(quiescence_mutants) { chaos::free(self) } else { debug_objects::free(self) }
    }
}

/// One reference is given up after a grace period; that it is the last is assumed for the limit.
impl<T: ?Sized + Send + Sync + 'static> Retire for Arc<T> {
    fn bytes(&self) -> usize {
        size_of_val(&**self)
    }

    const POINTER: IsPointer = IsPointer(true);
}

impl<T: Send + 'static> Retire for Vec<T> {
    fn bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

/// Whether a value is a pointer.
#[derive(Clone, Copy, Debug)]
pub struct IsPointer(bool);

impl Retire for String {
    fn bytes(&self) -> usize {
        self.capacity()
    }
}

/// A value with the bytes that its owner says it has: what
/// [`retire_sized`](crate::Domain::retire_sized) gives back.
#[derive(Debug)]
pub struct WithSize<P> {
    bytes: usize,
    value: P,
}

impl<P> WithSize<P> {
    pub(crate) fn new(value: P, bytes: usize) -> Self {
        Self { bytes, value }
    }

    /// The value.
    pub fn into_inner(self) -> P {
        self.value
    }
}

impl<P: Send + 'static> Retire for WithSize<P> {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What a domain had no room for: the value is in it.
///
/// Given by [`Domain::retire`](crate::Domain::retire), [`try_retire`](crate::Domain::try_retire),
/// [`call`](crate::Domain::call) and others, when so much waits already as the
/// [tuning](crate::Tuning) allows. **Dropping what could not be retired does not drop it at once,**
/// for readers may still see it: it is retired over the limit instead. A closure that was refused
/// and is dropped is not called.
///
/// ```
/// let domain = quiescence::Domain::new();
/// if let Err(refused) = domain.try_retire(Box::new(7)) {
///     let again = refused.into_inner(); // keep it, and try later
/// #   drop(again);
/// }
/// ```
#[must_use = "the value has not been retired; dropping this retires it over the limit"]
pub struct Refused<P: Send + 'static> {
    /// `None` once it is taken out.
    value: Option<P>,
    /// What is to become of it where it is dropped.
    otherwise: Option<(Handle, Otherwise<P>)>,
}

/// What becomes of a value that was refused and is not taken out.
type Otherwise<P> = fn(&Handle, P);

impl<P: Send + 'static> Refused<P> {
    pub(crate) fn closure(value: P) -> Self {
        Self { value: Some(value), otherwise: None }
    }

    pub(crate) fn retired(value: P, handle: Handle, otherwise: Otherwise<P>) -> Self {
        Self { value: Some(value), otherwise: Some((handle, otherwise)) }
    }

    /// The value. Readers may still see it: retire it later, or wait for a grace period before it
    /// is dropped.
    #[expect(clippy::missing_panics_doc, reason = "it is taken out once")]
    pub fn into_inner(mut self) -> P {
        self.value.take().expect("taken out once")
    }
}

impl<P: Send + 'static> Drop for Refused<P> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take()
            && let Some((handle, otherwise)) = &self.otherwise
        {
            otherwise(handle, value);
        }
    }
}

impl<P: Send + 'static> fmt::Debug for Refused<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").finish_non_exhaustive()
    }
}

impl<P: Send + 'static> fmt::Display for Refused<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the domain's limit is reached, and here nothing may wait for a grace period: retire \
             outside of sections, or raise objects_max and bytes_max in the domain's Tuning",
        )
    }
}

impl<P: Send + 'static> std::error::Error for Refused<P> {}

/// Objects that came from boxes, by their addresses.
#[derive(Debug)]
pub(crate) struct Boxed<T>(PhantomData<T>);

impl<T: Send + 'static> Boxed<T> {
    /// What one is charged whose weight is its size.
    pub(crate) const CHARGE: u64 = charge_of_box::<T>(size_of::<T>()) as u64;

    pub(crate) const KIND: stream::CallbackType = stream::CallbackType {
        words: 1,
        pointer: true,
        bytes: Some(Self::CHARGE),
        bytes_of: |_| Self::CHARGE,
        run: Self::run,
        function: None,
    };

    /// One that counts for another number of bytes than its size.
    pub(crate) const WEIGHED: stream::CallbackType = stream::CallbackType {
        words: words::<Counted<*mut T>>(),
        pointer: false,
        bytes: None,
        // SAFETY: the payload is a pointer with its number.
        bytes_of: |payload| unsafe { &*payload.cast::<Counted<*mut T>>() }.bytes,
        run: |_, payload, _, progress| {
            progress.begin(1);
            // SAFETY: the payload is a pointer with its number.
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
            // SAFETY: so many pointers stand side by side.
            let word = unsafe { payload.add(index) };
            // SAFETY: written as a `*mut T`.
            let object = unsafe { word.cast::<*mut T>().read() };
            // SAFETY: it came from a box, and each is run once.
            unsafe { Self::free(object) };
        }
    }

    /// Ends an object that came from a box.
    ///
    /// # Safety
    /// It came from a box, no thread can see it, and it is not used any more.
    pub(crate) unsafe fn free(object: *mut T) {
        debug_objects::forget(object.cast_const().cast());
        if cfg!(quiescence_mutants) {
            // SAFETY: by the contract.
            chaos::free(unsafe { Box::from_raw(object) });
        } else {
            // SAFETY: by the contract.
            unsafe { cache::free(object) };
        }
    }
}

/// Bytes of so many words of a stream: what the library itself holds for what waits. They count,
/// too.
const fn held(words: usize) -> usize {
    words * size_of::<Word>()
}

/// What a boxed object of such a weight is charged: with its words in the stream, of which it has
/// one if its weight is its size, and else three.
#[inline(always)]
pub(crate) const fn charge_of_box<T>(weight: usize) -> usize {
    let words = if weight == size_of::<T>() { 1 } else { 1 + words::<Counted<*mut T>>() };
    weight.saturating_add(held(words))
}

/// Whether a value can stand in a stream as it is.
const fn fits<P>() -> bool {
    size_of::<P>() <= PAYLOAD_MAX * size_of::<Word>() && align_of::<P>() <= align_of::<Word>()
}

const fn words<P>() -> usize {
    let words = size_of::<P>().div_ceil(size_of::<Word>());
    if words == 0 { 1 } else { words }
}

/// Notes that a value is about to wait. Returns what it counts for.
///
/// # Panics
/// In debug builds, if what it owns waits already; or if it does when it is asked for its size.
/// Then the value is forgotten, not dropped: readers may see it.
#[inline]
#[track_caller]
pub(crate) fn note<P: Retire>(value: P) -> (P, Amount) {
    let value = ManuallyDrop::new(value);
    let amount = Amount::object(value.bytes().saturating_add(Value::<P>::HELD) as u64);
    let (memory, bytes) = value.owned();
    debug_objects::note(memory, bytes);
    (ManuallyDrop::into_inner(value), amount)
}

/// Frees a value that readers have let go of.
pub(crate) fn end<P: Retire>(value: P) {
    debug_objects::forget(value.owned().0);
    value.free();
}

/// Values that own what is freed; large ones in a box.
#[derive(Debug)]
pub(crate) struct Value<P>(PhantomData<P>);

impl<P: Retire> Value<P> {
    /// Whether it stands alone, as a pointer; what it counts for cannot change.
    pub(crate) const BARE: bool = P::POINTER.0 && size_of::<P>() == size_of::<Word>();

    pub(crate) const FITS: bool = fits::<Counted<P>>();

    /// What the library holds for one that waits: its words, and its box, if it is in one.
    const HELD: usize = if Self::BARE {
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
        // SAFETY: the payload is a P with its number.
        bytes_of: |payload| unsafe { &*payload.cast::<Counted<P>>() }.bytes,
        run: |_, payload, _, progress| {
            progress.begin(1);
            // SAFETY: the payload is a P with its number; it is run once.
            end(unsafe { payload.cast::<Counted<P>>().read() }.value);
        },
        function: None,
    };

    pub(crate) const FAR: stream::CallbackType = stream::CallbackType {
        words: 1,
        pointer: true,
        bytes: None,
        bytes_of: |payload| {
            // SAFETY: the payload is a pointer to a P with its number, in a box.
            let value = unsafe { payload.cast::<*mut Counted<P>>().read() };
            // SAFETY: as above.
            unsafe { &*value }.bytes
        },
        run: |_, payload, _, progress| {
            progress.begin(1);
            // SAFETY: the payload is a pointer to a P with its number, in a box.
            let value = unsafe { payload.cast::<*mut Counted<P>>().read() };
            // SAFETY: as above; it is run once.
            let value = unsafe { Box::from_raw(value) };
            end(value.value);
        },
        function: None,
    };
}

/// What waits, and the bytes that it was charged: so much is free again when it is run, whatever it
/// says by then.
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

    /// What one counts for: what it captures, and the library's words.
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
                // SAFETY: so many pointers stand side by side.
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
