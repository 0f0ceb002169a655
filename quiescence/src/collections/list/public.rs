//! The list as users hold it.

use std::fmt;
use std::iter::FusedIterator;
use std::panic::Location;

use super::chain::{Chain, Ends, Node};
use super::reader::{Iter, ListRef};
use super::updater::ListUpdater;
use crate::collections::impls::{extended, shown_as_all};
use crate::collections::valued::drop_all;
use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::domain::impls::default_by;
use crate::domain::sections;
use crate::domain::tag::{DomainTag, Section};
use crate::os::sync::{Mutex, Rank, const_unless_loom, lock_another};
use crate::os::user_code::{self, Site};
use crate::reclaim::weigh::{Scale, Weigh, owns};

/// A list that readers traverse without a lock, while one updater at a time changes it. It
/// corresponds to the kernel's RCU list (`list_add_rcu`, `list_del_rcu`, `list_replace_rcu`).
///
/// # Promise
/// Each change becomes visible as a whole, by one store of a pointer. A traversal visits each
/// element that is in the list all the time once, in the list's order. It visits an element that is
/// inserted or removed meanwhile once or not at all, and of an element and its replacement exactly
/// one, unless something else happens to them, too. If the reader's current element is removed, the
/// reader continues with that element's successor.
///
/// References to elements stay valid for the section in which they were found, even if the elements
/// are removed. An element is dropped a grace period after its removal.
///
/// # Progress and cost
/// Each step of a reader is wait-free: one load, within a section around the whole traversal.
/// Readers write nothing that other threads read. Updaters exclude each other by a lock:
/// [`update`](Self::update) and all methods that change the list block. **No grace period is waited
/// for under the lock**: removed elements are retired after the lock has been released or, in a
/// section, at once and without waiting. So a thread may update a list while it holds a guard or a
/// reference into it, and readers never wait for updaters. In a child made by `fork` while another
/// thread was updating, the lock stays held; reads work.
///
/// An element is in a box of its own, with 16 bytes in addition to the value.
///
/// # At the limit
/// A removed or replaced element counts against the domain's limit
/// ([`Tuning`](crate::tuning::Tuning)): its own bytes, and those that [`Weigh`] reports. Outside of
/// sections the thread may wait when the updater is dropped, as in
/// [`Rcu::store`](crate::Rcu::store), and may drop objects that it has retired earlier. In a
/// section nothing waits: one element may exceed the limit, and the thread waits when its outermost
/// section ends. The next removal panics, or is refused by the `try_` methods of [`ListUpdater`].
/// In a [sleepable domain](crate::Srcu#at-the-limit), where sections are not known, no removal is
/// refused: the thread waits for at most 10 ms, then exceeds the limit.
///
/// # Source
/// McKenney and Walpole, "Introducing technology into the Linux kernel: a case study", 2008;
/// `include/linux/rculist.h`.
///
/// ```
/// use quiescence::collections::List;
///
/// let handlers = List::new();
/// handlers.push_back(("log", 1));
/// handlers.push_back(("count", 2));
///
/// let reader = handlers.read();
/// let mut names = reader.iter().map(|handler| handler.0);
/// assert_eq!(names.next(), Some("log"));
///
/// // An updater, here on the same thread, while the reader is at the first element.
/// let mut updater = handlers.update();
/// updater.move_to_front();
/// updater.replace_current(("trace", 3)).unwrap();
/// updater.insert_after(("drop", 4));
/// drop(updater);
///
/// assert_eq!(names.next(), Some("count")); // the successor of the element it is at
/// assert!(reader.iter().map(|handler| handler.0).eq(["trace", "drop", "count"]));
/// ```
pub struct List<T: Send + Sync + 'static, D: DomainTag = Global> {
    pub(super) chain: Chain<T>,
    ends: Mutex<Ends<T>>,
    pub(super) scale: Scale<T>,
    domain: Domain<D>,
}

impl<T: Send + Sync + 'static> List<T> {
    const_unless_loom! {
        /// Creates an empty list in the global domain; may be a static.
        ///
        /// ```
        /// use quiescence::collections::List;
        ///
        /// static HANDLERS: List<fn() -> u32> = List::new();
        /// HANDLERS.push_back(|| 7);
        /// assert_eq!(HANDLERS.read().iter().map(|handler| handler()).sum::<u32>(), 7);
        /// ```
        pub fn new() -> Self
        where
            T: Weigh,
        {
            Self::on(Scale::new(), Domain::global())
        }

        /// Creates an empty list in the global domain, for values of a type that does not implement
        /// [`Weigh`]. See [`Rcu::with_weight`](crate::Rcu::with_weight).
        pub fn with_weight(weight: fn(&T) -> usize) -> Self {
            Self::on(Scale::by(weight), Domain::global())
        }
    }
}

impl<T: Send + Sync + 'static, D: DomainTag> List<T, D> {
    const_unless_loom! {
        /// Creates an empty list in `domain`; may be a static, if the domain is a declared one.
        pub fn new_in(domain: Domain<D>) -> Self
        where
            T: Weigh,
        {
            Self::on(Scale::new(), domain)
        }

        /// The same, for values of a type that does not implement [`Weigh`].
        pub fn with_weight_in(weight: fn(&T) -> usize, domain: Domain<D>) -> Self {
            Self::on(Scale::by(weight), domain)
        }

        fn on(scale: Scale<T>, domain: Domain<D>) -> Self {
            let ends = Mutex::new(Rank::Consumers, Ends::new());
            Self { chain: Chain::new(), ends, scale, domain }
        }
    }

    /// Begins a section in which the list can be read.
    ///
    /// # Panics
    /// If a thread's sections are nested 2^32 deep.
    ///
    /// ```
    /// let list: quiescence::collections::List<_> = (1..=3).collect();
    /// assert_eq!(list.read().iter().sum::<i32>(), 6);
    /// ```
    #[inline]
    #[track_caller]
    pub fn read(&self) -> ListRef<'_, T, D> {
        ListRef { list: self, section: self.domain.tag().enter(Location::caller()) }
    }

    /// Iterates over the elements, from first to last, in a section of the caller's.
    ///
    /// # Progress
    /// Wait-free for each element: one load.
    ///
    /// # Panics
    /// If the section belongs to another domain and the types do not show it.
    #[inline]
    #[track_caller]
    pub fn iter<'s, S: Section<D>>(&'s self, section: &'s S) -> Iter<'s, T> {
        sections::check(section, &self.domain, "list");
        // SAFETY: the section is borrowed as long as the iterator; what is removed is retired in
        // its domain.
        unsafe { Iter::new(&self.chain.first) }
    }

    /// Waits until no other thread is updating the list, and returns the right to change it.
    ///
    /// The updater's cursor is before the first element.
    ///
    /// # Progress
    /// Blocking. A thread that calls this, or one of the methods below, while it holds an updater
    /// of the same list deadlocks. So does one that calls it where the list weighs a value, which
    /// it does while it is locked.
    #[track_caller]
    pub fn update(&self) -> ListUpdater<'_, T, D> {
        ListUpdater::new(self, lock_another(&self.ends))
    }

    /// Inserts a value at the front. Blocks as [`update`](Self::update) does; retires nothing.
    pub fn push_front(&self, value: T) {
        self.update().push_front(value);
    }

    /// Appends a value. Blocks as [`update`](Self::update) does; retires nothing.
    pub fn push_back(&self, value: T) {
        self.update().push_back(value);
    }

    /// Removes the elements for which `f` returns `true`, one after the other, and returns their
    /// number.
    ///
    /// `f` is called under the updaters' lock: it must not change the list. If it panics, the
    /// elements chosen so far are removed.
    ///
    /// # Panics
    /// In a section, at the domain's limit: see [above](Self#at-the-limit).
    ///
    /// ```
    /// let list: quiescence::collections::List<_> = (0..10).collect();
    /// assert_eq!(list.remove_if(|number| number % 2 == 1), 5);
    /// assert!(list.read().iter().eq(&[0, 2, 4, 6, 8]));
    /// ```
    #[track_caller]
    pub fn remove_if(&self, mut f: impl FnMut(&T) -> bool) -> usize {
        let mut updater = self.update();
        updater.move_next();
        let mut removed = 0;
        while let Some(value) = updater.current() {
            if user_code::run(Site::Choose, || f(value)) {
                updater.remove_current();
                removed += 1;
            } else {
                updater.move_next();
            }
        }
        removed
    }

    /// Removes the elements for which `f` returns `false`: see [`remove_if`](Self::remove_if).
    ///
    /// # Panics
    /// As [`remove_if`](Self::remove_if).
    #[track_caller]
    pub fn retain(&self, mut f: impl FnMut(&T) -> bool) {
        self.remove_if(|value| !user_code::run(Site::Choose, || f(value)));
    }

    /// Removes all elements, one after the other, beginning at the front.
    ///
    /// # Panics
    /// As [`remove_if`](Self::remove_if).
    #[track_caller]
    pub fn clear(&self) {
        self.remove_if(|_| true);
    }

    /// The number of elements. It may change a moment later. Wait-free.
    pub fn len(&self) -> usize {
        self.chain.len()
    }

    /// Whether the list has no elements. This may change a moment later. Wait-free.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The domain whose sections protect the elements.
    pub fn domain(&self) -> &Domain<D> {
        &self.domain
    }

    /// The first value of a list that is the caller's alone, at its end.
    fn take_first(&mut self) -> Option<T> {
        let node = self.chain.take_first();
        // SAFETY: elements are boxes; no thread can reach this one: a reference to it, or to one
        // that would lead to it, borrows the list.
        (!node.is_null()).then(|| unsafe { Box::from_raw(node) }.value)
    }
}

impl<T: Send + Sync + 'static, D: DomainTag> Drop for List<T, D> {
    /// Drops the elements at once, since no thread can have borrowed them.
    fn drop(&mut self) {
        drop_all(|| self.take_first());
    }
}

default_by!(new, impl<T: Weigh + Send + Sync + 'static> Default for List<T>);

owns! {
    /// The boxes of its elements; not what the elements own, which is weighed where they are
    /// removed.
    [T: Send + Sync + 'static, D: DomainTag] List<T, D>, true, |list| {
        list.len().saturating_mul(size_of::<Node<T>>())
    };
}

shown_as_all!(
    [T: Send + Sync + fmt::Debug + 'static, D: DomainTag] List<T, D>, debug_list,
    |list| &list.read()
);

extended!(
    /// Puts the values behind the last, one after the other; the iterator is not called under the
    /// updaters' lock.
    [T: Send + Sync + 'static, D: DomainTag]
    List<T, D>, T, |list, values| values.into_iter().for_each(|value| list.push_back(value))
);

impl<T: Weigh + Send + Sync + 'static> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let list = Self::new();
        (&list).extend(values);
        list
    }
}

impl<T: Send + Sync + 'static, D: DomainTag> IntoIterator for List<T, D> {
    type Item = T;
    type IntoIter = IntoIter<T, D>;

    /// The values, from the first to the last. Nothing is retired: no other thread has the list.
    fn into_iter(self) -> IntoIter<T, D> {
        IntoIter { list: self }
    }
}

/// The values of a [`List`].
pub struct IntoIter<T: Send + Sync + 'static, D: DomainTag = Global> {
    list: List<T, D>,
}

impl<T: Send + Sync + 'static, D: DomainTag> Iterator for IntoIter<T, D> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.list.take_first()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.list.len(), Some(self.list.len()))
    }
}

impl<T: Send + Sync + 'static, D: DomainTag> ExactSizeIterator for IntoIter<T, D> {}
impl<T: Send + Sync + 'static, D: DomainTag> FusedIterator for IntoIter<T, D> {}

impl<T: Send + Sync + fmt::Debug + 'static, D: DomainTag> fmt::Debug for IntoIter<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}
