//! What can be retired. [`stream`](crate::reclaim::stream) decides which values are pointers.

#![deny(unsafe_code)]

use std::sync::Arc;

use crate::reclaim::debug_objects;
use crate::reclaim::stream::IsPointer;

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
#[diagnostic::on_unimplemented(note = "implement it, or pass a raw pointer to `raw::retire_with`")]
pub trait Retire: Send + 'static {
    /// The bytes of memory that are freed with this value; they count against the domain's limit.
    /// Called once, when the value is retired. Must not panic: the value would be leaked, since
    /// readers may see it.
    fn bytes(&self) -> usize;

    /// Whether a value of one word is a pointer.
    #[doc(hidden)]
    const POINTER: Option<IsPointer<Self>> = None;

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

    const POINTER: Option<IsPointer<Self>> = Some(IsPointer::BOX);

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

    const POINTER: Option<IsPointer<Self>> = Some(IsPointer::ARC);
}

impl<T: Send + 'static> Retire for Vec<T> {
    fn bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

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
