//! A stream of callbacks: words in pages, written by one thread and read by one thread at a time.
//!
//! A callback is a [`CallbackType`], its kind, and a few words of payload: a pointer to what is to
//! be dropped, or a closure itself. Consecutive callbacks of one kind whose payload is a pointer
//! with lowest bit 0 store their kind once: so most waiting objects cost eight bytes.
//!
//! ```text
//! page:  kind|1 pointer pointer pointer kind|1 word word kind|1 pointer ... END
//! ```
//!
//! The word after a kind is payload, whatever its bits are; a payload of several words always
//! follows its kind, and so does a pointer with lowest bit 1. No callback straddles two pages.
//!
//! **Invariant [DS-1]: the writer does not touch the words of the first `written` callbacks any
//! more.** The writer stores the words, then the count with Release; the reader loads the count
//! with Acquire and reads that many callbacks. Neither waits for the other, and neither executes a
//! locked instruction, except once a page.

use std::alloc::Layout;
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, needs_drop};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::os::sync::{AtomicPtr, AtomicU64, Tracked};
use crate::reclaim::cache;
use crate::reclaim::debug_objects;

/// Words of a page, which with its header is 4 KiB.
const WORDS: usize = if cfg!(loom) { 6 } else { 510 };

/// The longest payload, in words.
const PAYLOAD_MAX: usize = 4;

/// Empty pages that are kept for the writer.
const SPARE_MAX: u64 = 32;

/// A word of a page.
pub(crate) type Word = MaybeUninit<*mut ()>;

/// The words of a payload.
pub(crate) const fn words<P>() -> usize {
    let words = size_of::<P>().div_ceil(size_of::<Word>());
    if words == 0 { 1 } else { words }
}

/// Whether it can be a payload.
pub(crate) const fn fits<P>() -> bool {
    words::<P>() <= PAYLOAD_MAX && align_of::<P>() <= align_of::<Word>()
}

/// Values of this type are pointers, so that all bytes of one are initialised. No other file says
/// so of a type.
#[derive(Debug)]
pub struct IsPointer<P: ?Sized>(PhantomData<P>);

impl<T: ?Sized> IsPointer<Box<T>> {
    pub(crate) const BOX: Self = Self(PhantomData);
}

impl<T: ?Sized> IsPointer<Arc<T>> {
    pub(crate) const ARC: Self = Self(PhantomData);
}

/// A kind of callback.
#[derive(Debug)]
pub(crate) struct CallbackType {
    /// Words of payload, from 1 to [`PAYLOAD_MAX`].
    pub(crate) words: usize,
    /// Whether the payload is one initialised word, so that its kind may be omitted.
    pub(crate) pointer: bool,
    /// How many bytes a callback was charged, if that is the same for all of the kind.
    pub(crate) bytes: Option<u64>,
    /// Computes from a callback's payload how many bytes it was charged. Runs no user code.
    pub(crate) bytes_of: unsafe fn(*const Word) -> u64,
    /// Runs a callback, whose payload this is.
    ///
    /// # Safety
    /// Once, after its grace period, when no slot names what it frees; the kind is this one, and
    /// the payload is a payload of this kind.
    pub(crate) run: unsafe fn(&'static CallbackType, *mut Word),
    /// The layout of what a callback gives back to the global allocator, if it does nothing else:
    /// memory at the pointer that is its payload.
    pub(crate) memory: Option<Layout>,
    /// The function to call with the pointer, if the kind is that of one function.
    pub(crate) function: Option<Function>,
}

/// A C function that is called with one pointer.
pub type Function = unsafe extern "C" fn(*mut c_void);

/// The lowest bit of a word that is a kind, not a pointer. Kinds are aligned, so it is free.
const KIND: usize = 1;

/// In place of a kind: the page ends here.
static END: CallbackType = CallbackType {
    words: 1,
    pointer: false,
    bytes: Some(0),
    bytes_of: |_| 0,
    run: |_, _| (),
    memory: None,
    function: None,
};

/// A page of the stream.
#[derive(Debug)]
struct Page {
    /// The next page; of a spare page, the spare page below it in the list.
    next: AtomicPtr<Page>,
    /// Of a spare page: the length of the list from here on. Only its owner touches it.
    spare: Cell<u64>,
    words: UnsafeCell<[Word; WORDS]>,
    tracked: Tracked<WORDS>,
}

impl Page {
    fn new() -> NonNull<Self> {
        let words = UnsafeCell::new([const { Word::uninit() }; WORDS]);
        NonNull::from(Box::leak(Box::new(Self {
            next: AtomicPtr::new(ptr::null_mut()),
            spare: Cell::new(0),
            words,
            tracked: Tracked::new(),
        })))
    }

    /// A pointer to a word and those after it, for the writer: a payload may have several.
    #[inline(always)]
    fn to_write(&self, at: usize) -> *mut Word {
        if cfg!(loom) {
            self.tracked.write(at);
        }
        // SAFETY: in the array, or it panics; no reference to a word is made.
        unsafe { &raw mut (*self.words.get())[at] }
    }

    /// The same for the reader.
    #[inline(always)]
    fn to_read(&self, at: usize) -> *mut Word {
        if cfg!(loom) {
            self.tracked.read(at);
        }
        // SAFETY: as in `to_write`.
        unsafe { &raw mut (*self.words.get())[at] }
    }

    /// Stores a kind.
    #[inline(always)]
    fn put(&self, at: usize, kind: &'static CallbackType) {
        let word = ptr::from_ref(kind).wrapping_byte_add(KIND);
        // SAFETY: in the page; only the writer accesses it until it is counted [DS-1].
        unsafe { self.to_write(at).cast::<*const CallbackType>().write(word) };
    }
}

/// Frees a page and those after it.
///
/// # Safety
/// No other thread knows of them.
unsafe fn free_list(mut page: *mut Page) {
    while !page.is_null() {
        // SAFETY: from `Page::new`; by the contract no other thread has it.
        let owned = unsafe { Box::from_raw(page) };
        page = owned.next.load(Relaxed);
    }
}

/// The writer's side of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    writer: UnsafeCell<Writer>,
    /// Callbacks written, and before that their bytes. The writer stores it, all threads read it.
    written: AtomicU64,
    bytes: AtomicU64,
    /// Empty pages that the reader has given back.
    spare: AtomicPtr<Page>,
}

/// What only the writer uses.
#[derive(Debug)]
struct Writer {
    /// Where the next word goes.
    page: NonNull<Page>,
    at: usize,
    /// The kind of the last callback in this page; null if there is none yet.
    kind: *const CallbackType,
    /// Empty pages that only the writer knows of.
    spare: *mut Page,
}

/// The position of the reader. One thread at a time reads a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    page: NonNull<Page>,
    at: usize,
    kind: *const CallbackType,
}

// SAFETY: pages lead to each other and are handed over by `written` [DS-1] and `spare`; `writer` is
// the writer's, by the contract of `push`.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}
// SAFETY: a position in pages that move from thread to thread with the right to read.
unsafe impl Send for Cursor {}

impl Stream {
    /// An empty stream, and the position of its first callback.
    pub(crate) fn new() -> (Self, Cursor) {
        let page = Page::new();
        let stream = Self {
            writer: UnsafeCell::new(Writer {
                page,
                at: 0,
                kind: ptr::null(),
                spare: ptr::null_mut(),
            }),
            written: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            spare: AtomicPtr::new(ptr::null_mut()),
        };
        (stream, Cursor { page, at: 0, kind: ptr::null() })
    }

    /// Callbacks written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Acquire) // [DS-1]
    }

    /// Bytes of the callbacks that have been written, or are about to be; the sum wraps.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// The kind of the last callback in this page, if any. For the writer only.
    #[inline]
    pub(crate) fn last_kind(&self) -> Option<&'static CallbackType> {
        // SAFETY: the writer calls this.
        let kind = unsafe { (*self.writer.get()).kind };
        // SAFETY: null, or from a `&'static CallbackType` in `push`.
        unsafe { kind.as_ref() }
    }

    /// Writes a callback of so many bytes; `payload` becomes the stream's. Returns how many are
    /// written by then.
    ///
    /// # Safety
    /// Only the writer, one at a time, calls this. `P` has as many words as `kind` says, or more,
    /// which are left out; and `kind.pointer` is true only if it begins with a pointer.
    #[inline(always)]
    pub(crate) unsafe fn push<P>(
        &self,
        kind: &'static CallbackType,
        payload: P,
        bytes: u64,
    ) -> u64 {
        const { assert!(!needs_drop::<P>(), "nothing is dropped here, whatever happens") };
        debug_assert!(const { fits::<P>() } && kind.words <= const { words::<P>() });
        // SAFETY: the writer's, which is here once; nothing below calls this again.
        let writer = unsafe { &mut *self.writer.get() };
        // Relaxed: a sum, which only the writer stores.
        self.bytes.store(self.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
        let mut at = writer.at;
        // One word is left for `END`. (What fits no page is in a box: it is only compiled.)
        if at >= const { (WORDS - 1).saturating_sub(words::<P>()) } {
            self.turn_page(writer);
            at = 0;
        }
        // SAFETY: the writer's page lives until the reader, which comes behind, has left it.
        let page = unsafe { writer.page.as_ref() };
        let follows = kind.pointer && ptr::eq(writer.kind, kind) && {
            // SAFETY: one initialised word, since it is a pointer.
            let word = unsafe { (&raw const payload).cast::<*mut ()>().read() };
            word.addr() & KIND == 0
        };
        if !follows {
            page.put(at, kind);
            writer.kind = kind;
            at += 1;
        }
        let place = page.to_write(at).cast::<P>();
        // SAFETY: in the page, by the check above; aligned; the writer's alone until it is counted.
        unsafe { place.write(payload) };
        writer.at = at + kind.words;
        // Relaxed: as above.
        let written = self.written.load(Relaxed) + 1;
        self.written.store(written, Release); // [DS-1] //~ relaxed-write
        written
    }

    /// Writes a callback that was read from another stream and is not run from it.
    ///
    /// # Safety
    /// Only the writer, one at a time, calls this. The payload is as it was read.
    pub(crate) unsafe fn push_again(&self, one: &Stored) {
        let mut payload = [Word::uninit(); PAYLOAD_MAX];
        // SAFETY: so many words stand there, and in `payload`.
        unsafe { ptr::copy_nonoverlapping(one.payload, payload.as_mut_ptr(), one.kind.words) };
        // SAFETY: by the contract.
        unsafe { self.push(one.kind, payload, one.bytes()) };
    }

    /// Ends the page, and begins another.
    #[cold]
    fn turn_page(&self, writer: &mut Writer) {
        // SAFETY: as in `push`.
        let page = unsafe { writer.page.as_ref() };
        page.put(writer.at, &END);
        let next = self.empty_page(writer);
        page.next.store(next.as_ptr(), Relaxed); // published by `written` [DS-1]
        (writer.page, writer.at, writer.kind) = (next, 0, ptr::null());
    }

    fn empty_page(&self, writer: &mut Writer) -> NonNull<Page> {
        let mut page = writer.spare;
        if page.is_null() {
            // Acquire: pairs with the Release in `give_back`; the reader has left the pages.
            page = self.spare.swap(ptr::null_mut(), Acquire);
        }
        let Some(spare) = NonNull::new(page) else { return Page::new() };
        // SAFETY: an empty page that no other thread knows of.
        writer.spare = unsafe { spare.as_ref() }.next.swap(ptr::null_mut(), Relaxed);
        spare
    }

    /// Takes back the pages between two positions of the reader, up to [`SPARE_MAX`] for the
    /// writer, and frees the others. Until then they stay unchanged: in a forked child the reader
    /// may be gone, and reading continues from where it began.
    ///
    /// # Safety
    /// Both are positions in this stream, `to` is at or after `from`, no other thread reads, and no
    /// thread will read before `to`.
    pub(crate) unsafe fn give_back(&self, from: Cursor, to: Cursor) {
        let mut page = from.page.as_ptr();
        if ptr::eq(page, to.page.as_ptr()) {
            return;
        }
        // The whole list: the writer, which takes it whole as well, finds none meanwhile and makes
        // a page. Acquire: pairs with the Release below, of another thread that has read.
        let mut top = self.spare.swap(ptr::null_mut(), Acquire);
        while !ptr::eq(page, to.page.as_ptr()) {
            // SAFETY: only the reader, which has left it, has it.
            let empty = unsafe { &*page };
            let next = empty.next.load(Relaxed);
            // SAFETY: null, or in the list that this thread has taken.
            let below = unsafe { top.as_ref() }.map_or(0, |top| top.spare.get());
            if below < SPARE_MAX {
                empty.next.store(top, Relaxed);
                empty.spare.set(below + 1);
                top = page;
            } else {
                empty.next.store(ptr::null_mut(), Relaxed);
                // SAFETY: it has been read, and no other thread knows of it.
                unsafe { free_list(page) };
            }
            page = next;
        }
        // Release: pairs with the Acquire in `empty_page`; the reader has left the pages.
        self.spare.store(top, Release); // [DS-1] //~ relaxed-page
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: no thread writes or reads any more.
        unsafe { free_list(self.writer.get_mut().spare) };
        // SAFETY: as above.
        unsafe { free_list(self.spare.load(Relaxed)) };
    }
}

/// A callback where it stands in a stream.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) kind: &'static CallbackType,
    pub(crate) payload: *mut Word,
}

impl Stored {
    /// How many bytes it was charged. To be called before it runs.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> u64 {
        match self.kind.bytes {
            Some(bytes) => bytes,
            // SAFETY: the payload of a callback of this kind, not yet run.
            None => unsafe { (self.kind.bytes_of)(self.payload) },
        }
    }

    /// Runs it.
    ///
    /// # Safety
    /// Once; its grace period has ended, and no slot names what it frees.
    #[inline(always)]
    pub(crate) unsafe fn run(self) {
        // SAFETY: by the contract, and its payload is of its kind.
        unsafe { (self.kind.run)(self.kind, self.payload) };
    }
}

impl Cursor {
    /// The next callback. The caller owns its payload until it gives the pages back.
    ///
    /// # Safety
    /// At least one callback that was written is not read yet [DS-1]; no other thread reads the
    /// stream.
    #[inline(always)]
    pub(crate) unsafe fn next(&mut self) -> Stored {
        // SAFETY: the reader's page lives until the reader leaves it.
        let mut page = unsafe { self.page.as_ref() };
        let mut payload = page.to_read(self.at);
        // SAFETY: written, by the contract; initialised, as a kind or as a pointer.
        let word = unsafe { payload.cast::<*const CallbackType>().read() };
        if word.addr() & KIND != 0 {
            self.kind = word.wrapping_byte_sub(KIND);
            if ptr::eq(self.kind, &raw const END) {
                page = self.turn_page(page);
            }
            self.at += 1;
            payload = page.to_read(self.at);
        }
        // SAFETY: written by `push` from a `&'static CallbackType`; a page begins with a kind.
        let kind: &'static CallbackType = unsafe { &*self.kind };
        self.at += kind.words;
        Stored { kind, payload }
    }

    /// Ends `one`, which was read last, and those of its kind that follow it in the page, `most` in
    /// all, which are read, too: they [give memory back](CallbackType::memory), and run no user
    /// code. Returns how many.
    ///
    /// # Safety
    /// As [`next`](Self::next), for `most` callbacks from that one on; and as [`Stored::run`].
    #[inline(never)] // else the loop that calls it has too few registers
    pub(crate) unsafe fn free_like(&mut self, one: &Stored, layout: Layout, most: u64) -> u64 {
        // SAFETY: as in `next`.
        let page = unsafe { self.page.as_ref() };
        // SAFETY: written, as in `next`.
        let word = |at| unsafe { page.to_read(at).cast::<*mut ()>().read() };
        let first = self.at - 1;
        let end = WORDS.min(first + most.min(WORDS as u64) as usize);
        self.at = (self.at..end).find(|at| word(*at).addr() & KIND != 0).unwrap_or(end);
        // SAFETY: pointers, which nobody writes before the page is given back.
        let all = unsafe { slice::from_raw_parts(one.payload.cast(), self.at - first) };
        all.iter().for_each(|object: &*mut u8| debug_objects::forget(object.cast()));
        // SAFETY: by the contract; of this layout, by their kind.
        unsafe { cache::release(all, layout) };
        all.len() as u64
    }

    /// Continues to the next page, and the kind with which it begins. The one it leaves is given
    /// back later: see [`Stream::give_back`].
    #[cold]
    fn turn_page<'p>(&mut self, page: &'p Page) -> &'p Page {
        let next = page.next.load(Relaxed); // [DS-1]
        let next = NonNull::new(next).expect("the writer has left the page");
        // SAFETY: as in `next`, for as long as the cursor is there.
        let page = unsafe { next.as_ref() };
        // SAFETY: written, as a callback that was counted stands on it; a kind comes first.
        let word = unsafe { page.to_read(0).cast::<*const CallbackType>().read() };
        *self = Self { page: next, at: 0, kind: word.wrapping_byte_sub(KIND) };
        page
    }

    /// Frees the pages from here on.
    ///
    /// # Safety
    /// No thread writes or reads the stream any more.
    pub(crate) unsafe fn free(self) {
        // SAFETY: by the contract.
        unsafe { free_list(self.page.as_ptr()) };
    }
}
