//! How a [`List`] is changed: [`ListUpdater`].
//!
//! Removed elements cannot be retired under the updaters' lock: that may wait for a grace period,
//! whose readers may be waiting for the lock. So the updater keeps them in a chain, and retires
//! them after it has released the lock. In a section retiring does not wait, so there it happens at
//! once, and the limit can refuse the next removal.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use super::chain::{Ends, Node, follow};
use super::public::List;
use super::reader::Iter;
use crate::domain::guard::Global;
use crate::domain::sections::refuse;
use crate::domain::tag::DomainTag;
use crate::os::sync::MutexGuard;
use crate::os::user_code::{self, Site};
use crate::reclaim::free::AtLimit;
use crate::reclaim::free::Pending;
use crate::reclaim::{cache, defer, unlink};

/// The right to change a [`List`], with a cursor: returned by [`List::update`].
///
/// As in the standard library's `LinkedList`, the cursor is at an element, or between the last and
/// the first one. There [`current`](Self::current) is `None`, the next element is the first one,
/// and the previous element is the last one.
///
/// Removed elements are retired when the updater is dropped, after it has released the lock. The
/// thread may then wait for a grace period, and drop objects that it has retired earlier. **Drop an
/// updater in no section that began after its removals**: nothing can be waited for there, so all
/// that it has removed may exceed the domain's limit. Hold an updater only for a moment, since
/// other updaters wait for it, and do not wait for a grace period meanwhile: a reader may be
/// waiting for the lock.
///
/// ```
/// use quiescence::collections::List;
///
/// let list: List<_> = [1, 2, 4].into_iter().collect();
/// let mut updater = list.update();
/// assert!(updater.find(|number| *number == 4));
/// updater.insert_before(3);
/// updater.move_prev();
/// assert_eq!(updater.peek_prev(), Some(&2));
/// updater.move_prev();
/// assert!(updater.remove_current()); // the cursor moves to the next element
/// assert_eq!(updater.current(), Some(&3));
/// drop(updater);
/// assert!(list.read().iter().eq(&[1, 3, 4]));
/// ```
#[must_use = "other updaters wait until this is dropped"]
pub struct ListUpdater<'l, T: Send + Sync + 'static, D: DomainTag = Global> {
    list: &'l List<T, D>,
    /// Null between the last and the first; else in the list.
    cursor: *mut Node<T>,
    // Let go before what was removed is retired: fields are dropped in their order.
    ends: MutexGuard<'l, Ends<T>>,
    removed: Removed<'l, T, D>,
}

impl<'l, T: Send + Sync + 'static, D: DomainTag> ListUpdater<'l, T, D> {
    pub(super) fn new(list: &'l List<T, D>, ends: MutexGuard<'l, Ends<T>>) -> Self {
        let removed = Removed { list, first: ptr::null_mut(), _elements: PhantomData };
        Self { list, cursor: ptr::null_mut(), ends, removed }
    }

    /// An element, or `None` for null.
    ///
    /// # Safety
    /// `node` is null or in the list.
    unsafe fn value(&self, node: *mut Node<T>) -> Option<&T> {
        // SAFETY: only this updater removes elements, and not while it is borrowed.
        unsafe { node.as_ref() }.map(|node| &node.value)
    }

    /// What follows the cursor; null behind the last.
    fn next(&self) -> *mut Node<T> {
        // SAFETY: null or in the list.
        follow(unsafe { self.cursor.as_ref() }.map_or(&self.list.chain.first, |node| &node.next))
    }

    /// What comes before the cursor; null before the first.
    fn previous(&self) -> *mut Node<T> {
        // SAFETY: null or in the list.
        unsafe { self.cursor.as_ref() }.map_or(self.ends.last(), Node::previous)
    }

    /// The element at the cursor.
    pub fn current(&self) -> Option<&T> {
        // SAFETY: null or in the list.
        unsafe { self.value(self.cursor) }
    }

    /// The element after the cursor; the first one, if the cursor is at no element.
    pub fn peek_next(&self) -> Option<&T> {
        // SAFETY: null or in the list.
        unsafe { self.value(self.next()) }
    }

    /// The element before the cursor; the last one, if the cursor is at no element.
    pub fn peek_prev(&self) -> Option<&T> {
        // SAFETY: null or in the list.
        unsafe { self.value(self.previous()) }
    }

    /// Moves the cursor to the next element: from the last element to none, and from there to the
    /// first.
    pub fn move_next(&mut self) {
        self.cursor = self.next();
    }

    /// Moves the cursor to the previous element: from the first element to none, and from there to
    /// the last.
    pub fn move_prev(&mut self) {
        self.cursor = self.previous();
    }

    /// Moves the cursor to the first element, or to none if the list is empty.
    pub fn move_to_front(&mut self) {
        self.cursor = ptr::null_mut();
        self.move_next();
    }

    /// Moves the cursor to the last element, or to none if the list is empty.
    pub fn move_to_back(&mut self) {
        self.cursor = ptr::null_mut();
        self.move_prev();
    }

    /// Moves the cursor to the next element after it for which `f` returns `true`, or to none.
    /// Returns whether there is such an element.
    pub fn find(&mut self, mut f: impl FnMut(&T) -> bool) -> bool {
        loop {
            self.move_next();
            match self.current() {
                Some(value) if !user_code::run(Site::Choose, || f(value)) => {}
                found => return found.is_some(),
            }
        }
    }

    /// Iterates over all elements, from first to last.
    pub fn iter(&self) -> Iter<'_, T> {
        // SAFETY: as long as the updater is borrowed, no element is removed.
        unsafe { Iter::new(&self.list.chain.first) }
    }

    fn insert(&mut self, previous: *mut Node<T>, value: T) {
        let node = Box::into_raw(cache::boxed(Node::new(value)));
        // SAFETY: this is the updater; `previous` is null or in the list; the box is given away.
        unsafe { self.list.chain.insert(&mut self.ends, previous, node) };
    }

    /// Inserts a value before the cursor's element, or appends it if the cursor is at no element.
    /// The cursor stays.
    pub fn insert_before(&mut self, value: T) {
        self.insert(self.previous(), value);
    }

    /// Inserts a value after the cursor's element, or at the front if the cursor is at no element.
    /// The cursor stays.
    pub fn insert_after(&mut self, value: T) {
        self.insert(self.cursor, value);
    }

    /// Inserts a value at the front. The cursor stays.
    pub fn push_front(&mut self, value: T) {
        self.insert(ptr::null_mut(), value);
    }

    /// Appends a value. The cursor stays.
    pub fn push_back(&mut self, value: T) {
        self.insert(self.ends.last(), value);
    }

    /// Removes the cursor's element, and moves the cursor to the next one. Returns whether there
    /// was an element.
    ///
    /// # Panics
    /// At the domain's limit, if the thread is in a section in which it has already gone over the
    /// limit. Nothing has changed then.
    #[track_caller]
    pub fn remove_current(&mut self) -> bool {
        match self.try_remove_current() {
            Ok(removed) => removed,
            Err(_) => refuse("ListUpdater::remove_current", "try_remove_current()"),
        }
    }

    /// Like [`remove_current`](Self::remove_current), but never panics.
    ///
    /// # Errors
    /// If `remove_current` would panic. Nothing has changed then.
    pub fn try_remove_current(&mut self) -> Result<bool, AtLimit> {
        if self.cursor.is_null() {
            return Ok(false);
        }
        if !self.has_room() {
            return Err(AtLimit::unchanged(()));
        }
        let old = self.cursor;
        // SAFETY: this is the updater, and the cursor is on an element of the list.
        self.cursor = unsafe { self.list.chain.remove(&mut self.ends, old) };
        // SAFETY: taken out above.
        unsafe { self.removed.add(old) };
        Ok(true)
    }

    /// Replaces the cursor's element with one store: a reader sees the old element or the new one.
    /// The cursor is then at the new one.
    ///
    /// # Errors
    /// `value`, if the cursor is at no element.
    ///
    /// # Panics
    /// At the domain's limit, if the thread is in a section in which it has already gone over the
    /// limit. Nothing has changed then.
    #[track_caller]
    pub fn replace_current(&mut self, value: T) -> Result<(), T> {
        match self.try_replace_current(value) {
            Err(_) if !self.cursor.is_null() => {
                refuse("ListUpdater::replace_current", "try_replace_current()")
            }
            result => result,
        }
    }

    /// Like [`replace_current`](Self::replace_current), but never panics.
    ///
    /// # Errors
    /// `value`, if the cursor is at no element, or if `replace_current` would panic. Nothing has
    /// changed then.
    pub fn try_replace_current(&mut self, value: T) -> Result<(), T> {
        if self.cursor.is_null() || !self.has_room() {
            return Err(value);
        }
        let old = self.cursor;
        let node = Box::into_raw(cache::boxed(Node::new(value)));
        // SAFETY: this is the updater; the cursor is on an element of the list; the box is given
        // away.
        unsafe { self.list.chain.replace(&mut self.ends, old, node) };
        self.cursor = node;
        // SAFETY: taken out above.
        unsafe { self.removed.add(old) };
        Ok(())
    }

    /// Whether an element may be removed, to be retired then.
    fn has_room(&self) -> bool {
        unlink::may_replace(self.list.domain().tag(), self.list.scale.constant::<Node<T>>())
    }
}

impl<T: Send + Sync + fmt::Debug + 'static, D: DomainTag> fmt::Debug for ListUpdater<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListUpdater")
            .field("list", &self.iter())
            .field("current", &self.current())
            .finish()
    }
}

/// Elements that were removed, each with the next of them in its `previous`: to be retired when
/// this is dropped.
struct Removed<'l, T: Send + Sync + 'static, D: DomainTag> {
    list: &'l List<T, D>,
    first: *mut Node<T>,
    _elements: PhantomData<Box<Node<T>>>,
}

impl<T: Send + Sync + 'static, D: DomainTag> Removed<'_, T, D> {
    /// Keeps an element; in a section, retires it.
    ///
    /// # Safety
    /// It was taken out of the list, by the thread that calls this.
    unsafe fn add(&mut self, node: *mut Node<T>) {
        if defer::in_section() {
            // SAFETY: by this function's contract.
            return unsafe { self.retire(node) };
        }
        // SAFETY: it is not retired yet.
        unsafe { (*node).keep(self.first) };
        self.first = node;
    }

    /// Has an element dropped after a grace period.
    ///
    /// # Safety
    /// It was taken out of the list, and is retired once.
    unsafe fn retire(&self, node: *mut Node<T>) {
        let (list, tag) = (self.list, self.list.domain().tag());
        // SAFETY: it is not retired yet; others may read it, and T is Sync.
        let value = &unsafe { &*node }.value;
        let bytes = list.scale.charge::<Node<T>>(tag.core(), value);
        // SAFETY: elements are boxes, and this one is out of reach of later sections.
        let node = unsafe { Pending::boxed(tag.core(), node) };
        unlink::retire_box(tag, node, bytes);
    }
}

impl<T: Send + Sync + 'static, D: DomainTag> Drop for Removed<'_, T, D> {
    fn drop(&mut self) {
        // SAFETY: null, or one that was added, which is not retired yet.
        while let Some(removed) = unsafe { self.first.as_ref() } {
            let node = std::mem::replace(&mut self.first, removed.previous());
            // SAFETY: by the contract of `add`.
            unsafe { self.retire(node) };
        }
    }
}
