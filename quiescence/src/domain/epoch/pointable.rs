//! [`Pointable`]: what a tagged pointer may point to. And how a word is split into pointer and tag.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ptr;

use crate::reclaim::cache;

/// Types to which a single word can point: every sized type, and `[MaybeUninit<T>]`, whose length
/// is stored in front of the elements.
///
/// The word is an address whose provenance is
/// [exposed](https://doc.rust-lang.org/std/ptr/index.html#exposed-provenance).
pub trait Pointable {
    /// The alignment of the address, a power of two: the tag uses the bits below it.
    const ALIGN: usize;

    /// The initialiser of an object.
    type Init;

    /// The size of an object, if it is the same for all.
    #[doc(hidden)]
    const SIZE_OF_EACH: Option<usize> = None;

    /// Allocates an object, and returns its address.
    ///
    /// # Safety
    /// The address is not used for more than the methods of this trait allow.
    unsafe fn init(init: Self::Init) -> usize;

    /// Returns a reference to the object at the address.
    ///
    /// # Safety
    /// `ptr` is from [`init`](Self::init), not dropped while the reference lives, and no reference
    /// from [`deref_mut`](Self::deref_mut) lives.
    unsafe fn deref<'a>(ptr: usize) -> &'a Self;

    /// Returns a mutable reference to the object at the address.
    ///
    /// # Safety
    /// As [`deref`](Self::deref), and no other reference to it lives.
    unsafe fn deref_mut<'a>(ptr: usize) -> &'a mut Self;

    /// Drops the object at the address, and frees its memory.
    ///
    /// # Safety
    /// `ptr` is from [`init`](Self::init), is dropped once, and no reference to it lives.
    unsafe fn drop(ptr: usize);
}

impl<T> Pointable for T {
    const ALIGN: usize = align_of::<T>();

    type Init = T;

    const SIZE_OF_EACH: Option<usize> = Some(size_of::<T>());

    unsafe fn init(init: T) -> usize {
        Box::into_raw(cache::boxed(init)).expose_provenance()
    }

    #[inline]
    unsafe fn deref<'a>(ptr: usize) -> &'a T {
        // SAFETY: from a box, by the contract.
        unsafe { &*ptr::with_exposed_provenance(ptr) }
    }

    #[inline]
    unsafe fn deref_mut<'a>(ptr: usize) -> &'a mut T {
        // SAFETY: as in `deref`, and there is no other reference.
        unsafe { &mut *ptr::with_exposed_provenance_mut(ptr) }
    }

    unsafe fn drop(ptr: usize) {
        // SAFETY: from a box, dropped once.
        unsafe { cache::free(ptr::with_exposed_provenance_mut::<T>(ptr)) };
    }
}

/// An allocation for so many elements after their number, and where the elements begin.
fn array<T>(len: usize) -> (Layout, usize) {
    let elements = Layout::array::<T>(len).expect("an array of less than half the address space");
    let header = Layout::new::<usize>();
    let (layout, start) = header.extend(elements).expect("room for the length beside the array");
    (layout.pad_to_align(), start)
}

/// The elements of an array, from its address.
///
/// # Safety
/// `ptr` is from `init` and has not been dropped.
unsafe fn elements<T>(ptr: usize) -> *mut [MaybeUninit<T>] {
    let start: *mut usize = ptr::with_exposed_provenance_mut(ptr);
    // SAFETY: `init` has written it.
    let len = unsafe { start.read() };
    // SAFETY: in the allocation, which has room for the elements there.
    let first = unsafe { start.byte_add(array::<T>(len).1) };
    ptr::slice_from_raw_parts_mut(first.cast(), len)
}

impl<T> Pointable for [MaybeUninit<T>] {
    const ALIGN: usize =
        if align_of::<T>() > align_of::<usize>() { align_of::<T>() } else { align_of::<usize>() };

    type Init = usize;

    unsafe fn init(len: usize) -> usize {
        let (layout, _) = array::<T>(len);
        // SAFETY: the layout has room for a length at least.
        let start = unsafe { alloc(layout) }.cast::<usize>();
        if start.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: just allocated, and aligned for it.
        unsafe { start.write(len) };
        start.expose_provenance()
    }

    #[inline]
    unsafe fn deref<'a>(ptr: usize) -> &'a Self {
        // SAFETY: by the contract.
        let elements = unsafe { elements(ptr) };
        // SAFETY: in an allocation that lives, by the contract.
        unsafe { &*elements }
    }

    #[inline]
    unsafe fn deref_mut<'a>(ptr: usize) -> &'a mut Self {
        // SAFETY: by the contract.
        let elements = unsafe { elements(ptr) };
        // SAFETY: as in `deref`; there is no other reference.
        unsafe { &mut *elements }
    }

    unsafe fn drop(ptr: usize) {
        let start: *mut usize = ptr::with_exposed_provenance_mut(ptr);
        // SAFETY: `init` has written it. The elements are dropped by their owner, or not at all.
        let (layout, _) = array::<T>(unsafe { start.read() });
        // SAFETY: allocated with this layout, given back once.
        unsafe { dealloc(start.cast(), layout) };
    }
}

/// The bits of a word that are the tag's.
const fn tag_bits<T: ?Sized + Pointable>() -> usize {
    T::ALIGN - 1
}

/// The address in a word.
#[inline]
pub(super) const fn address<T: ?Sized + Pointable>(word: usize) -> usize {
    word & !tag_bits::<T>()
}

/// The tag in a word.
#[inline]
pub(super) const fn tag<T: ?Sized + Pointable>(word: usize) -> usize {
    word & tag_bits::<T>()
}

/// The word with another tag, of which the bits that do not fit are left out.
#[inline]
pub(super) const fn with_tag<T: ?Sized + Pointable>(word: usize, new: usize) -> usize {
    address::<T>(word) | tag::<T>(new)
}

/// The word for a pointer from elsewhere.
///
/// # Panics
/// If it is not aligned: its low bits would be taken for a tag.
#[inline]
pub(super) fn aligned<T>(pointer: *const T) -> usize {
    let word = pointer.expose_provenance();
    assert_eq!(tag::<T>(word), 0, "unaligned pointer");
    word
}
