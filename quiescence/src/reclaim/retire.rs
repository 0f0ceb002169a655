//! What can be retired, and what users are given back at the limit.

use std::fmt;
use std::sync::Arc;

use crate::reclaim::debug_objects;
use crate::reclaim::domain_state::Handle;

/// An owner of memory that can be [retired](crate::Domain::retire), and that reports its size in
/// bytes.
///
/// Implemented for boxes, [`Arc`]s, vectors and strings. **These count only their own memory, not
/// memory owned by the values in them**: a `Box<Vec<u8>>` counts as 24 bytes. If that matters, pass
/// the size to [`retire_sized`](crate::Domain::retire_sized). [`Weigh`](crate::Weigh) can compute
/// it: `retire_sized(value, value.weight())`. Implement this trait for your own owner types.
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
    /// The bytes of memory that are freed with this value; they count against the domain's limit.
    /// Called once, when the value is retired. Must not panic: the value would be leaked, since
    /// readers may see it.
    fn bytes(&self) -> usize;

    /// Whether a value of one word is a pointer, so that all its bytes are initialised. Unsound if
    /// wrong, so only this crate can set it: no other crate can name the type.
    #[doc(hidden)]
    const POINTER: IsPointer = IsPointer(false);

    /// The memory that only this value owns, and how many bytes: for the checks of debug builds.
    /// With 0 bytes nothing is checked.
    #[doc(hidden)]
    fn owned(&self) -> (*const (), usize) {
        (std::ptr::null(), 0)
    }

    /// Drops it, after its grace period.
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
        debug_objects::free(self) //~ late-free
    }
}

/// Drops one reference after a grace period. For the limit it counts as if it were the last one.
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
pub struct IsPointer(pub(crate) bool);

impl Retire for String {
    fn bytes(&self) -> usize {
        self.capacity()
    }
}

/// A value together with the number of bytes that the caller gave.
/// [`retire_sized`](crate::Domain::retire_sized) returns it at the limit.
#[derive(Debug)]
pub struct WithSize<P> {
    bytes: usize,
    value: P,
}

impl<P> WithSize<P> {
    pub(crate) fn new(value: P, bytes: usize) -> Self {
        Self { bytes, value }
    }

    /// Returns the value.
    pub fn into_inner(self) -> P {
        self.value
    }
}

impl<P: Send + 'static> Retire for WithSize<P> {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

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

    pub(crate) fn retired(value: P, handle: Handle, otherwise: Otherwise<P>) -> Self {
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

impl<P: Send + 'static> fmt::Debug for AtLimit<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtLimit").finish_non_exhaustive()
    }
}

impl<P: Send + 'static> fmt::Display for AtLimit<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the domain's limit is reached, and here nothing may wait for a grace period: retire \
             outside of sections, or raise objects_max and bytes_max in the domain's Tuning",
        )
    }
}

impl<P: Send + 'static> std::error::Error for AtLimit<P> {}
