//! A stream of callbacks: words in pages, written by one thread and read by one at a time.
//!
//! A callback is a [`CallbackType`] and a few words of payload: a pointer to what is to be dropped,
//! or a closure itself. Callbacks of one kind that need one word with a lowest bit of 0, a pointer,
//! stand one after the other and name their kind once: so most waiting objects cost eight bytes.
//!
//! ```text
//! page:  kind|1 pointer pointer pointer kind|1 word word kind|1 pointer ... END
//! ```
//!
//! The word after a kind's is payload, whatever its bits are; a payload of several words is always
//! written after its kind, and so is a pointer with a lowest bit of 1. No callback straddles two
//! pages.
//!
//! **Invariant [DS-1]: what is written before `written` says so is not touched by the writer any
//! more.** The writer stores the words, then the count with Release; the reader loads the count
//! with Acquire and reads as many callbacks. Neither waits for the other, and neither executes a
//! locked instruction, but once a page.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use grace::limit::Amount;

use crate::chaos::{self, Mutant};
use crate::os::sync::{AtomicPtr, AtomicU64, Tracked};

/// Words of a page: with its head, 4 KiB.
const WORDS: usize = if cfg!(loom) { 6 } else { 510 };

/// The longest payload, in words.
pub(crate) const PAYLOAD_MAX: usize = 4;

/// Empty pages that are kept for the writer.
const SPARE_MAX: u64 = 32;

/// A word of a page.
pub(crate) type Word = MaybeUninit<*mut ()>;

/// What callbacks of one kind are.
#[derive(Debug)]
pub(crate) struct CallbackType {
    /// Words of payload, from 1 to [`PAYLOAD_MAX`].
    pub(crate) words: usize,
    /// Whether the payload is one initialised word, so that it may stand without its kind.
    pub(crate) pointer: bool,
    /// How many bytes a callback counts for, where all of the kind count for the same.
    pub(crate) bytes: Option<u64>,
    /// How many bytes it counts for, from its payload: as it was charged. Runs no user code.
    pub(crate) bytes_of: unsafe fn(*const Word) -> u64,
    /// Runs so many callbacks, whose payloads stand side by side, from the one that `Progress` is
    /// at; more than one only of kinds with `pointer`. Each is taken as begun before it runs.
    pub(crate) run: unsafe fn(&'static CallbackType, *mut Word, u64, &Progress),
    /// What is called with the pointer, where each function is a kind of its own.
    pub(crate) function: Option<Function>,
}

/// A function of C's that is called with one pointer.
pub type Function = unsafe extern "C" fn(*mut c_void);

/// How many callbacks of a run have begun.
#[derive(Debug)]
pub(crate) struct Progress(Cell<u64>);

impl Progress {
    pub(crate) const fn new() -> Self {
        Self(Cell::new(0))
    }

    /// How many have begun.
    #[inline]
    pub(crate) fn begun(&self) -> u64 {
        self.0.get()
    }

    /// Begins the next one, if it is one of so many. Returns which one it is.
    #[inline]
    pub(crate) fn begin(&self, count: u64) -> Option<usize> {
        let next = self.0.get();
        (next < count).then(|| {
            self.0.set(next + 1);
            next as usize
        })
    }

    /// For the next run.
    pub(crate) fn reset(&self) {
        self.0.set(0);
    }
}

/// The lowest bit of a word: not a pointer, but a kind. Kinds are aligned.
const KIND: usize = 1;

/// In place of a kind: the page ends here.
static END: CallbackType = CallbackType {
    words: 1,
    pointer: false,
    bytes: Some(0),
    bytes_of: |_| 0,
    run: |_, _, _, _| (),
    function: None,
};

/// A page of the stream.
#[derive(Debug)]
struct Page {
    /// The page after this one; in an empty page that is kept, the one below it.
    next: AtomicPtr<Page>,
    /// How many empty pages there are from this one on. Of its owner alone.
    spare: Cell<u64>,
    words: [std::cell::UnsafeCell<Word>; WORDS],
    tracked: Tracked<WORDS>,
}

impl Page {
    fn new() -> *mut Self {
        let words = std::array::from_fn(|_| std::cell::UnsafeCell::new(Word::uninit()));
        Box::into_raw(Box::new(Self {
            next: AtomicPtr::new(ptr::null_mut()),
            spare: Cell::new(0),
            words,
            tracked: Tracked::new(),
        }))
    }

    /// A pointer to a word and to those after it: a payload has several, and runs stand side by
    /// side.
    #[inline]
    fn from(&self, at: usize) -> *mut Word {
        std::cell::UnsafeCell::raw_get(self.words[at..].as_ptr())
    }
}

/// Gives a page and those after it back.
///
/// # Safety
/// No other thread knows of them.
unsafe fn free_list(mut page: *mut Page) {
    while !page.is_null() {
        // SAFETY: from `Page::new`, by the contract ours alone.
        let owned = unsafe { Box::from_raw(page) };
        page = owned.next.load(Relaxed);
    }
}

/// A stream, from the side of its writer.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Where the next word goes. The writer's own.
    page: Cell<*mut Page>,
    at: Cell<usize>,
    /// The kind of the callback that was written last into this page; null at its begin.
    kind: Cell<*const CallbackType>,
    /// Empty pages that only the writer knows of.
    own_spare: Cell<*mut Page>,
    /// Callbacks written. The writer stores it, everybody reads it.
    written: AtomicU64,
    /// Empty pages that the reader has given back.
    spare: AtomicPtr<Page>,
}

/// How far a reader has come. One at a time reads a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    page: *mut Page,
    at: usize,
    kind: *const CallbackType,
}

// SAFETY: pages lead to each other and are handed over by `written` [DS-1] and `spare`; the cells
// are the writer's, by the contract of `push`.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}
// SAFETY: a position in pages that move from thread to thread with the right to read.
unsafe impl Send for Cursor {}

impl Stream {
    /// An empty stream, and the begin of it.
    pub(crate) fn new() -> (Self, Cursor) {
        let page = Page::new();
        let stream = Self {
            page: Cell::new(page),
            at: Cell::new(0),
            kind: Cell::new(ptr::null()),
            own_spare: Cell::new(ptr::null_mut()),
            written: AtomicU64::new(0),
            spare: AtomicPtr::new(ptr::null_mut()),
        };
        (stream, Cursor { page, at: 0, kind: ptr::null() })
    }

    /// Callbacks written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Acquire) // [DS-1]
    }

    /// The kind of the callback that was written last into this page, if any. The writer's.
    #[inline]
    pub(crate) fn last_kind(&self) -> Option<&'static CallbackType> {
        // SAFETY: null, or from a `&'static CallbackType` in `push`.
        unsafe { self.kind.get().as_ref() }
    }

    /// Writes a callback; `payload` becomes the stream's.
    ///
    /// # Safety
    /// Only the writer, one at a time, calls this. `P` has the size and alignment that `kind` says:
    /// at most its words, each aligned as a pointer; and `kind.pointer` holds for kinds whose `P`
    /// is a pointer.
    #[inline]
    pub(crate) unsafe fn push<P>(&self, kind: &'static CallbackType, payload: P) {
        debug_assert!(size_of::<P>() <= kind.words * size_of::<Word>());
        debug_assert!(align_of::<P>() <= align_of::<Word>());
        let payload = std::mem::ManuallyDrop::new(payload);
        let named = ptr::eq(self.kind.get(), kind) && kind.pointer && {
            // SAFETY: one initialised word, since it is a pointer.
            let word = unsafe { ptr::from_ref(&payload).cast::<*mut ()>().read() };
            word.addr() & KIND == 0
        };
        let mut at = self.at.get();
        let needed = if named { 1 } else { 1 + kind.words };
        // One word is left for `END`.
        if at + needed >= WORDS {
            self.turn_page();
            // SAFETY: as for this call. At the begin of a page, so it has room.
            return unsafe { self.push(kind, std::mem::ManuallyDrop::into_inner(payload)) };
        }
        if !named {
            self.put(at, ptr::from_ref(kind).cast_mut().cast::<()>().map_addr(|addr| addr | KIND));
            self.kind.set(kind);
            at += 1;
        }
        let place = self.place(at).cast::<std::mem::ManuallyDrop<P>>();
        // SAFETY: in the page, by the check above, aligned, and the writer's until it is counted.
        unsafe { place.write(payload) };
        self.at.set(at + if named { 1 } else { kind.words });
        // Relaxed: the writer's own. Release: [DS-1].
        self.written
            .store(self.written.load(Relaxed) + 1, chaos::release_unless(Mutant::RelaxedWrite));
    }

    /// Writes callbacks that were read from another stream, and are not run from there.
    ///
    /// # Safety
    /// Only the writer, one at a time, calls this. The payload is as it was read.
    pub(crate) unsafe fn push_run(&self, run: &Run) {
        let push = match run.kind.words {
            1 => Self::push_words::<1>,
            2 => Self::push_words::<2>,
            3 => Self::push_words::<3>,
            _ => Self::push_words::<PAYLOAD_MAX>,
        };
        for index in 0..run.count as usize {
            // SAFETY: so many payloads stand side by side; more than one only of kinds of one word.
            let payload = unsafe { run.payload.add(index) };
            // SAFETY: by the contract, and the payload has so many words.
            unsafe { push(self, run.kind, payload) };
        }
    }

    /// Writes a callback whose payload is copied from elsewhere.
    ///
    /// # Safety
    /// As [`push`](Self::push), of what is read.
    unsafe fn push_words<const N: usize>(&self, kind: &'static CallbackType, payload: *const Word) {
        // SAFETY: by the contract, so many words.
        let payload = unsafe { payload.cast::<[Word; N]>().read() };
        // SAFETY: by the contract.
        unsafe { self.push(kind, payload) };
    }

    /// Stores one word of the writer's.
    #[inline]
    fn put(&self, at: usize, word: *mut ()) {
        // SAFETY: in the page, and the writer's until it is counted [DS-1].
        unsafe { self.place(at).write(Word::new(word)) };
    }

    /// Where a word of the writer's is.
    #[inline]
    fn place(&self, at: usize) -> *mut Word {
        // SAFETY: the writer's page lives until the reader, which comes behind it, has read it.
        let page = unsafe { &*self.page.get() };
        page.tracked.write(at);
        page.from(at)
    }

    /// Ends the page and begins another.
    #[cold]
    fn turn_page(&self) {
        self.put(self.at.get(), ptr::from_ref(&END).cast_mut().cast::<()>().map_addr(|a| a | KIND));
        let next = self.empty_page();
        // SAFETY: as in `place`.
        let page = unsafe { &*self.page.get() };
        page.next.store(next, Relaxed); // published by `written` [DS-1]
        self.page.set(next);
        self.at.set(0);
        self.kind.set(ptr::null());
    }

    fn empty_page(&self) -> *mut Page {
        let mut page = self.own_spare.get();
        if page.is_null() {
            // Acquire: pairs with the Release in `give_back`; the thread that read it has done with
            // it.
            page = self.spare.swap(ptr::null_mut(), Acquire);
        }
        // SAFETY: an empty page that no other thread knows of, or null.
        match unsafe { page.as_ref() } {
            None => Page::new(),
            Some(spare) => {
                self.own_spare.set(spare.next.swap(ptr::null_mut(), Relaxed));
                page
            }
        }
    }

    /// Takes back the pages between two positions of the reader. Until then they stay as they are:
    /// a child process that finds a reader gone continues from where that one began.
    ///
    /// # Safety
    /// Both are of this stream, `to` comes at or after `from`, no other thread reads, and no thread
    /// will read before `to`.
    pub(crate) unsafe fn give_back(&self, from: Cursor, to: Cursor) {
        let mut page = from.page;
        while !ptr::eq(page, to.page) {
            // SAFETY: read, so it leads to the next one.
            let next = unsafe { &*page }.next.load(Relaxed);
            self.give_back_one(page);
            page = next;
        }
    }

    /// For the writer, if it has not enough of them.
    fn give_back_one(&self, page: *mut Page) {
        // SAFETY: the reader's, which leaves it.
        let empty = unsafe { &*page };
        let mut top = self.spare.load(Acquire);
        loop {
            // SAFETY: if it is not null, it is in the list, and only the writer takes pages out:
            // the whole list, by a swap. It may be writing into this very page then; `spare` is not
            // touched by that, and a stale count does no harm, for the exchange fails. A page is
            // freed by readers only, of whom we are the one.
            let below = unsafe { top.as_ref() }.map_or(0, |top| top.spare.get());
            if below >= SPARE_MAX {
                empty.next.store(ptr::null_mut(), Relaxed);
                // SAFETY: it is read, and no other thread knows of it.
                return unsafe { free_list(page) };
            }
            empty.next.store(top, Relaxed);
            empty.spare.set(below + 1);
            // AcqRel: the Release pairs with the Acquire in `empty_page`; the Acquire lets the next
            // round look at a page that somebody else has given back.
            match self.spare.compare_exchange_weak(top, page, AcqRel, Acquire) {
                Ok(_) => return,
                Err(other) => top = other,
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: no thread writes or reads any more.
        unsafe { free_list(self.own_spare.get()) };
        // SAFETY: as above.
        unsafe { free_list(self.spare.load(Relaxed)) };
    }
}

/// Callbacks of one kind that stand side by side.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) kind: &'static CallbackType,
    pub(crate) payload: *mut Word,
    pub(crate) count: u64,
}

impl Run {
    /// What each of its callbacks counts for, as it was charged. Before they are run.
    pub(crate) fn bytes_each(&self) -> u64 {
        let bytes = match self.kind.bytes {
            Some(bytes) => bytes,
            // SAFETY: the payload of one callback of this kind, not yet run.
            None => unsafe { (self.kind.bytes_of)(self.payload) },
        };
        Amount::object(bytes).bytes
    }
}

impl Cursor {
    /// The next callbacks, at most `max`, which is at least 1; all of one kind, and count for as
    /// many bytes each. Their payload is the caller's until it reads on.
    ///
    /// # Safety
    /// At least `max` callbacks that were written are not read yet [DS-1]; no other thread reads
    /// the stream.
    pub(crate) unsafe fn next(&mut self, max: u64) -> Run {
        let mut word = self.word();
        while word.addr() & KIND != 0 {
            let kind = word.map_addr(|addr| addr & !KIND).cast::<CallbackType>();
            if ptr::eq(kind, &raw const END) {
                self.turn_page();
                word = self.word();
                continue;
            }
            self.kind = kind;
            self.at += 1;
            // SAFETY: written by `push` from a `&'static CallbackType`.
            let known: &'static CallbackType = unsafe { &*kind };
            if !known.pointer || self.word().addr() & KIND != 0 {
                let payload = self.place();
                self.at += known.words;
                return Run { kind: known, payload, count: 1 };
            }
            break;
        }
        // SAFETY: pointers stand behind their kind, on the same page.
        let kind: &'static CallbackType = unsafe { &*self.kind };
        let payload = self.place();
        let mut count = 1;
        self.at += 1;
        while kind.bytes.is_some() && count < max && self.word().addr() & KIND == 0 {
            self.at += 1;
            count += 1;
        }
        Run { kind, payload, count }
    }

    /// The word that comes next; it is a kind, or a pointer, or both are ruled out by the caller.
    fn word(&self) -> *mut () {
        // SAFETY: written, by the contract of `next`; initialised, as a kind or as a pointer.
        unsafe { self.place().cast::<*mut ()>().read() }
    }

    fn place(&self) -> *mut Word {
        // SAFETY: the reader's page lives until it leaves it.
        let page = unsafe { &*self.page };
        page.tracked.read(self.at);
        page.from(self.at)
    }

    /// Continues to the next page. The one it leaves is given back later: see
    /// [`Stream::give_back`].
    fn turn_page(&mut self) {
        // SAFETY: as in `place`.
        let next = unsafe { &*self.page }.next.load(Relaxed); // [DS-1]
        *self = Self { page: next, at: 0, kind: ptr::null() };
    }

    /// Frees the pages from here on.
    ///
    /// # Safety
    /// No thread writes or reads the stream any more.
    pub(crate) unsafe fn free(self) {
        // SAFETY: by the contract.
        unsafe { free_list(self.page) };
    }
}
