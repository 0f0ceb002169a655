//! [`Deferred`]: a function that waits among the retired objects of its thread.

use std::mem::MaybeUninit;

use crate::reclaim::retire::Retire;

/// Where a closure is: here, if it is a word at most, or in a box.
type Place = MaybeUninit<*mut ()>;

/// A function that is called when this is dropped, as whatever closure it was. Among objects, and
/// not among closures, so that the thread which has deferred it runs it.
pub(super) struct Deferred {
    place: Place,
    call: unsafe fn(&mut Place),
    bytes: usize,
}

// SAFETY: by the contract of `Deferred::new` any thread may call the function.
unsafe impl Send for Deferred {}

impl Deferred {
    /// The function, with the bytes that it counts for beside its closure.
    ///
    /// # Safety
    /// `f` may be called, once, on any thread, as late as what is made here is dropped.
    pub(super) unsafe fn new<F: FnOnce() -> R, R>(f: F, bytes: usize) -> Self {
        let mut place = Place::uninit();
        if const { size_of::<F>() <= size_of::<Place>() && align_of::<F>() <= align_of::<Place>() }
        {
            // SAFETY: it has room for an F, and the alignment.
            unsafe { place.as_mut_ptr().cast::<F>().write(f) };
            return Self { place, call: call_here::<F, R>, bytes };
        }
        place.write(Box::into_raw(Box::new(f)).cast());
        Self { place, call: call_boxed::<F, R>, bytes: bytes + size_of::<F>() }
    }
}

/// Calls the function that is in the place.
///
/// # Safety
/// It is an F, and this is the only call.
unsafe fn call_here<F: FnOnce() -> R, R>(place: &mut Place) {
    // SAFETY: by the contract.
    drop(unsafe { place.as_mut_ptr().cast::<F>().read() }());
}

/// Calls the function in the box that the place leads to.
///
/// # Safety
/// It is a box of an F, and this is the only call.
unsafe fn call_boxed<F: FnOnce() -> R, R>(place: &mut Place) {
    // SAFETY: by the contract.
    let boxed = unsafe { place.assume_init() }.cast::<F>();
    // SAFETY: from a box of an F, once.
    drop(unsafe { Box::from_raw(boxed) }());
}

impl Retire for Deferred {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        // SAFETY: made by `new` with the function for its place; this is the only drop.
        unsafe { (self.call)(&mut self.place) };
    }
}
