//! Values behind an RCU pointer: [`Rcu`], [`RcuOption`], and [`Unlinked`] for replaced values.

use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::AtomicPtr;

use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::domain::impls::{default_by, made_of_value};
use crate::domain::sections;
use crate::domain::tag::{DomainTag, Section};
use crate::os::user_code::{self, Site};
use crate::reclaim::cache;
use crate::reclaim::free::AtLimit;
use crate::reclaim::unlink;
use crate::reclaim::weigh::{Scale, Weigh};

pub(crate) mod changes;
mod option;
mod reference;
mod tasks;
mod unlinked;

pub use changes::Version;
pub use reference::{OwnedRcuRef, RcuRef};
pub use unlinked::Unlinked;

/// A value that is read often, at the cost of one load, and replaced now and then.
///
/// A reader sees one whole value, old or new. Old values are dropped after a grace period. Updaters
/// replace the value with [`store`](Self::store), [`swap`](Self::swap), or
/// [`update`](Self::update), which computes the new value from the old one.
///
/// `K` is the domain whose guards protect the value: the global one, unless [`Rcu::new_in`] made
/// it.
///
/// # Memory
/// A replaced value counts against the domain's limits ([`Tuning`](crate::tuning::Tuning)) until it
/// is dropped: as one object, and with its own bytes and those it owns, as [`Weigh`] reports them.
/// A `Vec` of a megabyte counts for a megabyte.
///
/// The value lives in a box of its own, so a load follows one pointer. When the `Rcu` itself is
/// dropped, its value is dropped at once, since no thread can be borrowing it.
///
/// # Progress
/// Updates are lock-free, except at the domain's limit, and except while a [`Version`] of this cell
/// or of one with the same hash has not ended: then an update takes a lock, and may wake threads
/// and tasks. It is one cell in 256 whose address has a given hash.
///
/// # In a static
/// `Rcu::new` allocates, so it is not `const`. In a static, use a [`LazyLock`](std::sync::LazyLock)
/// of it, or an [`RcuOption`], whose [`empty`](RcuOption::empty) and
/// [`empty_in`](RcuOption::empty_in) are `const`.
///
/// ```
/// use quiescence::Rcu;
/// use std::sync::LazyLock;
///
/// static LEVEL: LazyLock<Rcu<String>> = LazyLock::new(|| Rcu::new("info".into()));
/// assert_eq!(*LEVEL.read(), "info");
/// ```
///
/// # Example
/// ```
/// use quiescence::Rcu;
/// use std::thread;
///
/// let table = Rcu::new(vec![1, 2, 3]);
/// thread::scope(|scope| {
///     scope.spawn(|| {
///         let seen = table.read();
///         assert!(seen.len() == 3 || seen.len() == 4);
///     });
///     table.update(|old| {
///         let mut new = old.clone();
///         new.push(4);
///         new
///     });
/// });
/// ```
///
/// # Source
/// McKenney and Slingwine, *Read-Copy Update*, PDCS 1998.
#[doc(alias = "RwLock")]
pub struct Rcu<T: Send + Sync + 'static, K: DomainTag = Global> {
    // Never empty.
    inner: RcuOption<T, K>,
}

/// An [`Rcu`] that may be empty.
///
/// ```
/// let config = quiescence::RcuOption::<String>::empty();
/// assert!(config.read().is_none());
/// config.store(Some("ready".into()));
/// let taken = config.take().expect("stored above");
/// assert_eq!(taken.into_inner(), "ready"); // after a grace period
/// ```
pub struct RcuOption<T: Send + Sync + 'static, K: DomainTag = Global> {
    pointer: AtomicPtr<T>,
    scale: Scale<T>,
    domain: Domain<K>,
}

impl<T: Send + Sync + 'static> Rcu<T> {
    /// Creates a value in the global domain.
    pub fn new(value: T) -> Self
    where
        T: Weigh,
    {
        Self::new_in(value, Domain::global())
    }

    /// Creates a value in the global domain, of a type that does not implement [`Weigh`]. `weight`
    /// returns the bytes of a value and of all that it owns; they count against the domain's limit
    /// once the value is replaced. A result below the value's size counts as that size.
    /// [`Weigh`](Weigh#when-it-is-called) says when it is called, and what happens if it panics.
    ///
    /// ```
    /// use quiescence::Rcu;
    ///
    /// mod foreign {
    ///     pub struct Image(pub Vec<u8>);
    /// }
    ///
    /// let image = Rcu::with_weight(foreign::Image(vec![0; 1 << 20]), |image| image.0.capacity());
    /// image.store(foreign::Image(vec![1; 1 << 20])); // a megabyte waits
    /// ```
    pub fn with_weight(value: T, weight: fn(&T) -> usize) -> Self {
        Self::with_weight_in(value, weight, Domain::global())
    }
}

impl<T: Send + Sync + 'static, K: DomainTag> Rcu<T, K> {
    /// Creates a value in `domain`.
    pub fn new_in(value: T, domain: Domain<K>) -> Self
    where
        T: Weigh,
    {
        Self { inner: RcuOption::new_in(Some(value), domain) }
    }

    /// Like [`with_weight`](Rcu::with_weight), in `domain`.
    pub fn with_weight_in(value: T, weight: fn(&T) -> usize, domain: Domain<K>) -> Self {
        Self { inner: RcuOption::with_weight_in(Some(value), weight, domain) }
    }

    /// Returns the current value. The reference stays valid for the whole section, even if the
    /// value is replaced meanwhile.
    ///
    /// Use this for several loads in one section, and for sections of a [`Reader`](crate::Reader)
    /// or [`Qsbr`](crate::Qsbr). For a single load, [`read`](Self::read) is simpler.
    ///
    /// Wait-free: one load.
    ///
    /// # Panics
    /// If the section belongs to another domain. The compiler rejects this, except between domains
    /// made with [`Domain::new`], where it is checked at run time. In debug builds also if unsafe
    /// code has retired the value while it is still in place.
    #[doc(alias = "rcu_dereference")]
    #[inline]
    #[track_caller]
    pub fn load<'s, S: Section<K>>(&'s self, section: &'s S) -> &'s T {
        // SAFETY: loaded under the section; not null, since `inner` is never empty.
        unsafe { &*self.inner.load_pointer(section) }
    }

    /// Replaces the value; the old one is dropped after a grace period. [Lock-free](Self#progress)
    /// except at the domain's limit. Allocates the new value, or reuses the memory of one that this
    /// thread has replaced earlier. May wait whenever [`Domain::retire`] may, and may drop values
    /// that were replaced earlier; [`Domain::retire`] says which locks must not be held.
    ///
    /// # Panics
    /// At the domain's limit, if the thread is in a section in which it has already replaced a
    /// value over the limit: it may neither wait nor exceed the limit further. Nothing has changed
    /// then. See [`try_store`](Self::try_store).
    ///
    /// In a [sleepable domain](crate::Srcu#at-the-limit) the caller's sections are not known. There
    /// this waits for at most 10 ms, then exceeds the limit. It never panics there.
    #[doc(alias = "rcu_assign_pointer")]
    #[track_caller]
    pub fn store(&self, value: T) {
        self.inner.store(Some(value));
    }

    /// Like [`store`](Self::store), but returns the value where `store` would panic, and in a
    /// sleepable domain where `store` would wait.
    ///
    /// # Errors
    /// `value`: in a section at the domain's limit, if this thread has gone over it already; in a
    /// sleepable domain whenever it is at its limit. (There the old value is weighed before it is
    /// replaced: if another thread has stored a heavier one meanwhile, the rest of that one's
    /// weight exceeds the limit.)
    #[expect(clippy::missing_panics_doc, reason = "the value that is given back was given")]
    pub fn try_store(&self, value: T) -> Result<(), AtLimit<T>> {
        let refused = |value: Option<T>| AtLimit::unchanged(value.expect("given above"));
        self.inner.store_or_refuse(Some(value)).map_err(refused)
    }

    /// Replaces the value and returns the old one, which may still be read.
    /// [Lock-free](Self#progress): one atomic swap. Allocates the new value.
    #[expect(clippy::missing_panics_doc, reason = "an `Rcu` is never empty")]
    pub fn swap(&self, value: T) -> Unlinked<T, K> {
        self.inner.swap(Some(value)).expect("never empty")
    }

    /// Replaces the value by the result of `f`, called with the current value. If another update
    /// comes first, `f` is called again with the newer value. If `f` panics, nothing has changed.
    /// [Lock-free](Self#progress), except that the old value is retired afterwards, which may wait
    /// as [`store`](Self::store) does.
    ///
    /// `f` runs inside a section, so waiting for a grace period in it panics. (In a [sleepable
    /// domain](crate::Srcu) it deadlocks instead.)
    ///
    /// # Panics
    /// As [`store`](Self::store) does, before `f` is called: at the domain's limit, if the
    /// thread is in another section (an online QSBR reader always is) in which it has already gone
    /// over the limit.
    #[track_caller]
    pub fn update(&self, f: impl FnMut(&T) -> T) {
        let tag = self.inner.domain.tag();
        if !unlink::may_replace(tag, self.inner.scale.constant::<T>()) {
            sections::refuse("update", "try_store()");
        }
        drop(self.update_alone(tag.enter(Location::caller()), f));
    }

    /// As [`update_in`](Self::update_in), in a section of its own, which it ends. The caller
    /// retires the old value afterwards, since a reader never waits and never frees.
    fn update_alone(&self, section: K::Section<'_>, f: impl FnMut(&T) -> T) -> Unlinked<T, K> {
        let old = self.replace_in(&section, f);
        drop(section);
        changes::tell(self.inner.place());
        old
    }

    /// Like [`update`](Self::update), in a section of the caller's, and returns the old value.
    ///
    /// Drop the old value after the section, not inside it: see [`Domain::retire`].
    ///
    /// # Panics
    /// As [`load`](Self::load), before `f` is called.
    #[track_caller]
    pub fn update_in<S: Section<K>>(&self, section: &S, f: impl FnMut(&T) -> T) -> Unlinked<T, K> {
        let old = self.replace_in(section, f);
        changes::tell(self.inner.place());
        old
    }

    /// The same, but that those who wait for changes are not told yet.
    #[track_caller]
    fn replace_in<S: Section<K>>(&self, section: &S, mut f: impl FnMut(&T) -> T) -> Unlinked<T, K> {
        let mut current = self.load(section);
        let mut new = cache::boxed(user_code::run(Site::Update, || f(current)));
        loop {
            match self.inner.exchange_if(current, Some(new)) {
                Ok(old) => return old.expect("never empty"),
                Err(refused) => {
                    current = self.load(section);
                    new = refused.expect("given above");
                    user_code::run(Site::Update, || *new = f(current));
                }
            }
        }
    }

    /// Replaces the value if it is still `current`, the very same object; otherwise returns `new`.
    ///
    /// `current` should come from [`load`](Self::load) in `section`, which keeps its address from
    /// being reused, so there is no ABA problem. (Any other reference is harmless: objects are
    /// compared by address.) [Lock-free](Self#progress): one atomic instruction, no allocation.
    ///
    /// A box cannot be put back while a reader may hold it. So the nodes of a linked structure are
    /// shared through [`Arc`](std::sync::Arc); only updaters touch the counts:
    /// ```
    /// use quiescence::Rcu;
    /// use std::sync::Arc;
    ///
    /// struct Node {
    ///     value: u32,
    ///     next: Option<Arc<Node>>,
    /// }
    ///
    /// // The next node is a value of its own, and counts when it is retired itself.
    /// impl quiescence::Weigh for Node {}
    ///
    /// fn push(head: &Rcu<Option<Arc<Node>>>, value: u32) {
    ///     let guard = quiescence::read();
    ///     let mut seen = head.load(&guard);
    ///     let replaced = loop {
    ///         let node = Node { value, next: seen.clone() };
    ///         match head.compare_exchange(&guard, seen, Box::new(Some(Arc::new(node)))) {
    ///             Ok(replaced) => break replaced,
    ///             Err(_) => seen = head.load(&guard), // another push came first
    ///         }
    ///     };
    ///     drop(guard);
    ///     drop(replaced); // retired outside of the section
    /// }
    ///
    /// let head = Rcu::new(None);
    /// (1..=3).for_each(|value| push(&head, value));
    ///
    /// let guard = quiescence::read();
    /// let mut values = Vec::new();
    /// let mut at = head.load(&guard);
    /// while let Some(node) = at {
    ///     values.push(node.value);
    ///     at = &node.next;
    /// }
    /// assert_eq!(values, [3, 2, 1]);
    /// ```
    ///
    /// # Errors
    /// `new`, if the value has been replaced by another one.
    ///
    /// # Panics
    /// If the section belongs to another domain, as in [`load`](Self::load).
    #[track_caller]
    pub fn compare_exchange<S: Section<K>>(
        &self,
        section: &S,
        current: &T,
        new: Box<T>,
    ) -> Result<Unlinked<T, K>, Box<T>> {
        match self.inner.compare_exchange(section, Some(current), Some(new)) {
            Ok(old) => Ok(old.expect("never empty")),
            Err(new) => Err(new.expect("given above")),
        }
    }

    /// Borrows the value. The `Rcu` is borrowed exclusively, so no other thread can read it.
    #[expect(clippy::missing_panics_doc, reason = "an `Rcu` is never empty")]
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().expect("never empty")
    }

    /// Takes the value out. Waits for nothing: no other thread can read it.
    #[expect(clippy::missing_panics_doc, reason = "an `Rcu` is never empty")]
    pub fn into_inner(self) -> T {
        self.inner.into_inner().expect("never empty")
    }

    /// The domain whose sections protect the value.
    pub fn domain(&self) -> &Domain<K> {
        &self.inner.domain
    }
}

/// A value in a box of its own, or null.
#[inline]
fn into_raw<T>(value: Option<T>) -> *mut T {
    value.map_or(ptr::null_mut(), |value| Box::into_raw(cache::boxed(value)))
}

impl<T: Send + Sync + 'static, K: DomainTag> Drop for RcuOption<T, K> {
    fn drop(&mut self) {
        changes::tell(self.place()); // another cell may stand here next
        let pointer = *self.pointer.get_mut();
        if !pointer.is_null() {
            // SAFETY: from a box; no thread can hold a reference that was loaded from here, since
            // such a reference borrows `self`.
            let value = unsafe { Box::from_raw(pointer) };
            user_code::run(Site::Drop, || drop(value));
        }
    }
}

made_of_value!(Rcu<T: Weigh, Send, Sync; 'static>, new);

default_by!(empty, impl<T: Weigh + Send + Sync + 'static> Default for RcuOption<T>);

impl<T: Send + Sync + fmt::Debug + 'static, K: DomainTag> fmt::Debug for Rcu<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rcu").field(&self.read()).finish()
    }
}

impl<T: Send + Sync + fmt::Debug + 'static, K: DomainTag> fmt::Debug for RcuOption<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RcuOption").field(&self.read()).finish()
    }
}
