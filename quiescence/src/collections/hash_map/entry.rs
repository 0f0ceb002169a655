//! Entries, and the two forms in which buckets have them: in their slots, or behind a pointer.
//!
//! **Inline.** Key and value stand in the slot. For types that are `Copy`, as
//! [`Copied`](crate::Copied) says: these have no drop, and nothing in them changes through a shared
//! reference, so growth may copy them while readers hold references to the old place. A slot whose
//! entry was removed is used again after a grace period.
//!
//! **Boxed.** The slot is a pointer to a box with key and value. A slot is used again at once; it
//! is the box that waits for the grace period. A reader may have a word from before a slot was used
//! again, with the tag of the entry that was there. So it is the pointer whose store is the moment
//! at which an entry comes and goes: it is null before the tag is stored, and until after.

use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop};
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::bucket::Head;
use crate::os::sync::{AtomicPtr, Tracked};
use crate::reclaim::cache;

/// A key and its value.
pub(super) struct Entry<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

/// An entry of a form.
pub(super) type EntryOf<F> = Entry<<F as Form>::Key, <F as Form>::Value>;

/// Where an entry is.
pub(super) type At<F> = *const EntryOf<F>;

/// The box of an entry; null, where entries stand in slots.
pub(super) type BoxOf<F> = *mut EntryOf<F>;

/// The largest entry that stands in a slot.
const INLINE_MAX: usize = 32;

/// Whether entries of this size and alignment, with no drop, may stand in slots. Cookies are words
/// of 64 bits, and stand in the place of a pointer.
pub(super) const fn may_be_inline<K, V>() -> bool {
    size_of::<Entry<K, V>>() <= INLINE_MAX
        && align_of::<Entry<K, V>>() <= 8
        && !mem::needs_drop::<Entry<K, V>>()
        && cfg!(target_pointer_width = "64")
}

/// How entries stand in slots.
///
/// # Safety
/// The constants fit the functions: a slot has `SLOT` bytes, of which `Tracked<1>`, which has none
/// outside of loom, comes first. Memory that is all zero is an empty slot, but for loom's.
pub(super) unsafe trait Form: Sized {
    type Key;
    type Value;
    /// What is written to a slot.
    type Stored: Deref<Target = Entry<Self::Key, Self::Value>>;

    /// Bytes of a slot.
    const SLOT: usize;
    /// Slots of a bucket.
    const SLOTS: usize;
    /// Whether a slot must not be written again before a grace period has gone by.
    const WAITS: bool;
    /// Bytes from a bucket to the next: whole cache lines.
    const STRIDE: usize = (size_of::<Head>() + Self::SLOTS * Self::SLOT).next_multiple_of(64);

    /// Makes a slot of zeroes one that loom knows.
    unsafe fn init(slot: *mut u8);

    /// What is to be written to a slot.
    fn store(entry: Entry<Self::Key, Self::Value>) -> Self::Stored;

    /// The entry, of something that was not written.
    fn unstore(stored: Self::Stored) -> Entry<Self::Key, Self::Value>;

    /// Writes a slot that no reader looks at.
    ///
    /// # Safety
    /// `slot` is a slot of this form; the caller has the bucket; no reader may use what is in it.
    unsafe fn write(slot: *mut u8, stored: Self::Stored);

    /// Copies a slot to one that no reader looks at.
    ///
    /// # Safety
    /// As [`write`](Self::write); `from` has an entry, which is not used any more but by readers
    /// that found it there.
    unsafe fn copy(from: *const u8, slot: *mut u8);

    /// Ends the entry of a slot, if that is its pointer's to say.
    ///
    /// # Safety
    /// The caller has the bucket, and the slot an entry.
    #[inline(always)]
    unsafe fn clear(_slot: *mut u8) {}

    /// The entry of a slot that a tag says is live; null, if it has not come yet, or is gone.
    ///
    /// # Safety
    /// The slot had an entry, or was about to, when its tag was loaded, in the section that is in
    /// progress.
    unsafe fn entry(slot: *const u8) -> At<Self>;

    /// Replaces the entry of a slot at one moment for all readers, where the form can: gives the
    /// old box; else the `stored` again.
    ///
    /// # Safety
    /// The caller has the bucket, and the slot an entry.
    #[inline(always)]
    unsafe fn exchange(slot: *mut u8, stored: Self::Stored) -> Result<BoxOf<Self>, Self::Stored> {
        if Self::WAITS {
            return Err(stored);
        }
        // SAFETY: by the contract.
        let old = unsafe { Self::boxed(slot) };
        // SAFETY: by the contract; readers find the old box in the slot, or the new one.
        unsafe { Self::write(slot, stored) };
        Ok(old)
    }

    /// The box of a slot; null, where there is none.
    ///
    /// # Safety
    /// The caller has the bucket, or the whole table, and the slot has an entry.
    #[inline(always)]
    unsafe fn boxed(slot: *const u8) -> BoxOf<Self> {
        // SAFETY: by the contract.
        if Self::WAITS { ptr::null_mut() } else { unsafe { Self::entry(slot) }.cast_mut() }
    }
}

/// Entries in slots.
pub(super) struct Inline<K, V>(PhantomData<fn() -> (K, V)>);

/// Pointers to boxes in slots.
pub(super) struct Boxed<K, V>(PhantomData<fn() -> (K, V)>);

const TRACKED: usize = size_of::<Tracked<1>>();

/// Seven slots, or six where these, and not seven, fit into one cache line.
const fn slots(bytes: usize) -> usize {
    if cfg!(loom) {
        2
    } else if size_of::<Head>() + 7 * bytes > 64 && size_of::<Head>() + 6 * bytes <= 64 {
        6
    } else {
        7
    }
}

/// Lets loom see an access to a slot.
#[inline(always)]
unsafe fn tracked<'s>(slot: *const u8) -> &'s Tracked<1> {
    // SAFETY: a slot begins with it; it has no bytes outside of loom.
    unsafe { &*slot.cast::<Tracked<1>>() }
}

// SAFETY: the constants are those of an entry; zeroes are never read as one, since no tag says so.
unsafe impl<K, V> Form for Inline<K, V> {
    type Key = K;
    type Value = V;
    type Stored = ManuallyDrop<Entry<K, V>>;

    const SLOT: usize = TRACKED + size_of::<Entry<K, V>>();
    const SLOTS: usize = slots(Self::SLOT);
    const WAITS: bool = true;

    unsafe fn init(slot: *mut u8) {
        // SAFETY: by the contract.
        unsafe { slot.cast::<Tracked<1>>().write(Tracked::new()) };
    }

    #[inline(always)]
    fn store(entry: Entry<K, V>) -> Self::Stored {
        ManuallyDrop::new(entry)
    }

    #[inline(always)]
    fn unstore(stored: Self::Stored) -> Entry<K, V> {
        ManuallyDrop::into_inner(stored)
    }

    #[inline(always)]
    unsafe fn write(slot: *mut u8, stored: Self::Stored) {
        // SAFETY: by the contract.
        unsafe { tracked(slot) }.write(0);
        // SAFETY: within the slot.
        let place = unsafe { slot.add(TRACKED) };
        // SAFETY: no reader uses it; the alignment is at most 8, as `may_be_inline` says.
        unsafe { place.cast::<Self::Stored>().write(stored) };
    }

    #[inline(always)]
    unsafe fn copy(from: *const u8, slot: *mut u8) {
        // SAFETY: by the contract.
        let entry = unsafe { Self::entry(from) };
        // SAFETY: both types are `Copy`, so the bytes are another entry.
        let copy = unsafe { entry.cast::<Self::Stored>().read() };
        // SAFETY: by the contract.
        unsafe { Self::write(slot, copy) };
    }

    #[inline(always)]
    unsafe fn entry(slot: *const u8) -> *const Entry<K, V> {
        // SAFETY: by the contract.
        unsafe { tracked(slot) }.read(0);
        // SAFETY: within the slot.
        unsafe { slot.add(TRACKED) }.cast()
    }
}

// SAFETY: the constants are those of an atomic pointer; zeroes are a null one.
unsafe impl<K, V> Form for Boxed<K, V> {
    type Key = K;
    type Value = V;
    type Stored = Box<Entry<K, V>>;

    const SLOT: usize = TRACKED + size_of::<AtomicPtr<Entry<K, V>>>();
    const SLOTS: usize = slots(Self::SLOT);
    const WAITS: bool = false;

    unsafe fn init(slot: *mut u8) {
        // SAFETY: by the contract.
        let place = unsafe { slot.add(TRACKED) }.cast::<AtomicPtr<Entry<K, V>>>();
        // SAFETY: by the contract.
        unsafe { place.write(AtomicPtr::new(ptr::null_mut())) };
    }

    #[inline(always)]
    fn store(entry: Entry<K, V>) -> Self::Stored {
        cache::boxed(entry)
    }

    #[inline(always)]
    fn unstore(stored: Self::Stored) -> Entry<K, V> {
        *stored
    }

    #[inline(always)]
    unsafe fn write(slot: *mut u8, stored: Self::Stored) {
        // Release: a reader that has an older tag of this slot may load it [HM-1].
        // SAFETY: by the contract.
        unsafe { place(slot) }.store(Box::into_raw(stored), Release); //~ map-relaxed-pointer
    }

    #[inline(always)]
    unsafe fn copy(from: *const u8, slot: *mut u8) {
        // SAFETY: by the contract.
        let entry = unsafe { Self::boxed(from) };
        // Release: as in `write` [HM-1].
        // SAFETY: by the contract.
        unsafe { place(slot) }.store(entry, Release);
    }

    #[inline(always)]
    unsafe fn clear(slot: *mut u8) {
        // Release: the order of our own stores: before the byte of the slot is empty.
        // SAFETY: by the contract.
        unsafe { place::<K, V>(slot) }.store(ptr::null_mut(), Release);
    }

    #[inline(always)]
    unsafe fn entry(slot: *const u8) -> *const Entry<K, V> {
        // Acquire: pairs with the Release in `write` [HM-1]. Who has the bucket needs it, too: the
        // entry's maker may have been another thread.
        // SAFETY: by the contract.
        unsafe { place::<K, V>(slot) }.load(Acquire)
    }
}

/// The pointer of a slot.
#[inline(always)]
unsafe fn place<'s, K, V>(slot: *const u8) -> &'s AtomicPtr<Entry<K, V>> {
    // SAFETY: by the contract of `Form`.
    let place = unsafe { slot.add(TRACKED) };
    // SAFETY: a slot of a boxed form, aligned to 8.
    unsafe { &*place.cast() }
}
