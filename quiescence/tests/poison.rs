//! In debug builds the memory of a dropped object is filled with a pattern before it is given back,
//! so that a reader that comes too late reads nonsense at once instead of now and then.
//!
//! An allocator of this program's own looks at the memory of [`Page`]s when they are given back.

mod common;

use std::sync::PoisonError;

use common::*;
use memory::watched_allocator;

/// The kernel's `POISON_FREE`.
const POISON: u8 = 0x6b;

/// What pages are made of, and what their memory holds where nothing is poisoned.
const CONTENT: u8 = 0x11;

/// A size that nothing else in this program has.
const BYTES: usize = 4_243;

/// Pages whose memory was poisoned, whole, when it was given back; and others.
static POISONED: AtomicUsize = AtomicUsize::new(0);
static UNTOUCHED: AtomicUsize = AtomicUsize::new(0);

watched_allocator!(|_| (), |memory, layout| {
    if layout.size() == BYTES {
        // SAFETY: that many bytes, all of them written when the page was made.
        let bytes = unsafe { std::slice::from_raw_parts(memory, BYTES) };
        let is_poisoned = bytes.iter().all(|byte| *byte == POISON);
        if is_poisoned { &POISONED } else { &UNTOUCHED }.fetch_add(1, SeqCst);
    }
});

struct Page([u8; BYTES]);

impl Weigh for Page {
    const OWNS: bool = false;
}

impl Page {
    fn new() -> Self {
        Self([CONTENT; BYTES])
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        assert!(self.0.iter().all(|byte| *byte == CONTENT), "poisoned before it was dropped");
    }
}

struct Panicking(Page);

impl Drop for Panicking {
    fn drop(&mut self) {
        assert!(self.0.0[0] != CONTENT, "this drop panics, as it should in this test");
    }
}

/// Runs `f`, which has `pages` pages retired and freed, and looks what their memory held. What `f`
/// returns is dropped afterwards.
fn look<R>(pages: usize, f: impl FnOnce(&Domain) -> R) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = (POISONED.load(SeqCst), UNTOUCHED.load(SeqCst));
    let domain = Domain::new();
    let _kept = f(&domain);
    domain.barrier();
    let poisoned = POISONED.load(SeqCst) - before.0;
    let untouched = UNTOUCHED.load(SeqCst) - before.1;
    let expected = if cfg!(debug_assertions) { (pages, 0) } else { (0, pages) };
    assert_eq!((poisoned, untouched), expected);
}

/// Pages of each test.
const PAGES: usize = if cfg!(miri) { 3 } else { 300 };

#[test]
fn retired_objects_are_poisoned_after_their_drop() {
    look(PAGES, |domain| (0..PAGES).for_each(|_| domain.retire(Box::new(Page::new())).unwrap()));
}

#[test]
fn replaced_values_are_poisoned_too() {
    look(PAGES, |domain| {
        let value = Rcu::new_in(Page::new(), domain.clone());
        (0..PAGES).for_each(|_| value.store(Page::new()));
        value // whose last page is not retired
    });
}

#[test]
fn an_object_whose_drop_panics_is_poisoned_and_given_back() {
    look(3, |domain| (0..3).for_each(|_| domain.retire(Box::new(Panicking(Page::new()))).unwrap()));
}
