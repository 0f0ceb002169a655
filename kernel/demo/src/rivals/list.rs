//! What both rivals are made of: heads in lists.

use core::cell::Cell;
use core::ptr::NonNull;

use conformance::Run;

pub(crate) struct Head {
    next: Cell<Option<NonNull<Head>>>,
    run: Cell<Option<Run<Head>>>,
}

// SAFETY: the cells are its list's, which one hart at a time has.
unsafe impl Sync for Head {}

impl Head {
    pub(crate) const fn new() -> Self {
        Self { next: Cell::new(None), run: Cell::new(None) }
    }
}

/// Heads that wait, the oldest first. Each is valid, and in one list.
pub(crate) struct List {
    first: Option<NonNull<Head>>,
    last: Option<NonNull<Head>>,
}

// SAFETY: the heads are the list's.
unsafe impl Send for List {}

impl List {
    pub(crate) const EMPTY: Self = Self { first: None, last: None };

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// # Safety
    /// The head is valid, stays, and is in no list.
    pub(crate) unsafe fn push(&mut self, head: NonNull<Head>, run: Run<Head>) {
        // SAFETY: the caller's.
        unsafe { head.as_ref() }.next.set(None);
        // SAFETY: the caller's.
        unsafe { head.as_ref() }.run.set(Some(run));
        self.append(&mut Self { first: Some(head), last: Some(head) });
    }

    pub(crate) fn pop(&mut self) -> Option<(NonNull<Head>, Run<Head>)> {
        let head = self.first?;
        // SAFETY: it is the list's.
        let one = unsafe { head.as_ref() };
        self.first = one.next.take();
        Some((head, one.run.take()?))
    }

    /// Adds all of another at the end.
    pub(crate) fn append(&mut self, other: &mut Self) {
        let other = core::mem::replace(other, Self::EMPTY);
        match self.last.filter(|_| !self.is_empty()) {
            _ if other.is_empty() => return,
            None => self.first = other.first,
            // SAFETY: it is the list's.
            Some(last) => unsafe { last.as_ref() }.next.set(other.first),
        }
        self.last = other.last;
    }
}
