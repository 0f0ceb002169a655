//! Values behind an RCU pointer: [`Rcu`], [`RcuOption`], and [`Unlinked`] for what was taken out.

use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::AtomicPtr;

use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::domain::sections;
use crate::domain::tag::{DomainTag, Section};
use crate::os::user_code::{self, Site};
use crate::reclaim::cache;
use crate::reclaim::defer;
use crate::reclaim::retire::AtLimit;
use crate::reclaim::weigh::{Scale, Weigh};

mod option;
mod reference;
mod tasks;
mod unlinked;

pub use reference::{OwnedRcuRef, RcuRef};
pub use unlinked::Unlinked;

/// A value that is read often, for the cost of a load, and replaced now and then.
///
/// Readers see one whole value, the old one or the new one. Old values are dropped after a grace
/// period. Updaters replace the value: by [`store`](Self::store), [`swap`](Self::swap), or
/// [`update`](Self::update), which makes the new value from the old one.
///
/// `K` is the domain whose guards protect it: the global one, unless made by [`Rcu::new_in`].
///
/// # Memory
/// A replaced value counts against the domain's limits ([`Tuning`](crate::tuning::Tuning)) until it
/// is dropped: as one object, and with its bytes and all that it owns, as [`Weigh`] says. A `Vec`
/// of a megabyte counts for a megabyte.
///
/// The value is in a box of its own: a load is one pointer away from it. When the `Rcu` itself is
/// dropped, its value is dropped at once, since no thread can have borrowed it.
///
/// # In a static
/// `Rcu::new` allocates, so it is not `const`: a static is a [`LazyLock`](std::sync::LazyLock) of
/// it, or an [`RcuOption`], whose [`empty`](RcuOption::empty) and
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
#[doc(alias = "RwLock")]
pub struct Rcu<T: Send + Sync + 'static, K: DomainTag = Global> {
    // Never empty.
    inner: RcuOption<T, K>,
}

/// As [`Rcu`], and may be empty.
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
    /// A value in the global domain.
    pub fn new(value: T) -> Self
    where
        T: Weigh,
    {
        Self::new_in(value, Domain::global())
    }

    /// A value in the global domain, of a type that does not implement [`Weigh`]: `weight` gives
    /// the bytes of a value and of all that it owns, which count against the domain's limit when
    /// the value is replaced; never less than its size. When it is called, and what becomes of its
    /// panics, is said [there](Weigh#when-it-is-asked).
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
    /// A value in `domain`.
    pub fn new_in(value: T, domain: Domain<K>) -> Self
    where
        T: Weigh,
    {
        Self { inner: RcuOption::new_in(Some(value), domain) }
    }

    /// As [`with_weight`](Rcu::with_weight), in `domain`.
    pub fn with_weight_in(value: T, weight: fn(&T) -> usize, domain: Domain<K>) -> Self {
        Self { inner: RcuOption::with_weight_in(Some(value), weight, domain) }
    }

    /// The value now. It stays valid as long as the section, whatever becomes of this place.
    ///
    /// For several loads in one section, and for sections by [`Reader`](crate::Reader) and
    /// [`Qsbr`](crate::Qsbr); for one load [`read`](Self::read) is simpler.
    ///
    /// Wait-free: one load.
    ///
    /// # Panics
    /// If the section is one of another domain (checked when the program runs only for domains made
    /// with [`Domain::new`]; the compiler refuses the others). In debug builds also if the value
    /// has been retired, by unsafe code, while it is still in its place.
    #[doc(alias = "rcu_dereference")]
    #[inline]
    pub fn load<'s, S: Section<K>>(&'s self, section: &'s S) -> &'s T {
        // SAFETY: loaded under the section; not null, since `inner` is never empty.
        unsafe { &*self.inner.load_pointer(section) }
    }

    /// Replaces the value; the old one is dropped after a grace period. Lock-free but for the
    /// domain's limit; allocates the new value, or uses the memory of one that this thread has
    /// replaced earlier. May wait where [`Domain::retire`] may, and may drop values that were
    /// replaced earlier: see there about locks.
    ///
    /// # Panics
    /// In a section, at the domain's limit, if this thread has replaced a value over the limit in
    /// it before: there it can neither wait nor add to what waits. Nothing has changed then. See
    /// [`try_store`](Self::try_store).
    ///
    /// In a [sleepable domain](crate::Srcu#at-the-limit) the caller's section is not known: there
    /// it waits for 10 ms at most, and then goes over the limit. It never panics there.
    #[doc(alias = "rcu_assign_pointer")]
    #[track_caller]
    pub fn store(&self, value: T) {
        self.inner.store(Some(value));
    }

    /// As [`store`](Self::store), but gives the value back where that would panic; and in a
    /// sleepable domain where that would wait.
    ///
    /// # Errors
    /// `value`, in a section, at the domain's limit, if this thread has gone over it already; in a
    /// sleepable domain at its limit.
    #[expect(clippy::missing_panics_doc, reason = "the value that is given back was given")]
    pub fn try_store(&self, value: T) -> Result<(), AtLimit<T>> {
        let refused = |value: Option<T>| AtLimit::unchanged(value.expect("given above"));
        self.inner.store_or_refuse(Some(value)).map_err(refused)
    }

    /// Replaces the value and gives the old one, which may still be read. Lock-free: one atomic
    /// swap. Allocates the new value.
    #[expect(clippy::missing_panics_doc, reason = "an `Rcu` is never empty")]
    pub fn swap(&self, value: T) -> Unlinked<T, K> {
        self.inner.swap(Some(value)).expect("never empty")
    }

    /// Replaces the value by `f` of it. If another update comes in between, `f` is called again
    /// with the newer value. Lock-free, but that the old value is retired afterwards: that may
    /// wait, as in [`store`](Self::store). If `f` panics, nothing has changed.
    ///
    /// `f` runs inside a section: to wait for a grace period there panics. (In a
    /// [sleepable domain](crate::Srcu) it waits for itself for ever.)
    ///
    /// # Panics
    /// As [`store`](Self::store), before `f` is called: in another section (an online QSBR reader
    /// is always in one), at the domain's limit, if this thread has gone over it already.
    #[track_caller]
    pub fn update(&self, mut f: impl FnMut(&T) -> T) {
        let tag = self.inner.domain.tag();
        if !defer::may_replace(tag, self.inner.scale.constant()) {
            sections::refuse("update", "try_store()");
        }
        let guard = tag.enter(Location::caller());
        let old = self.update_in(&guard, &mut f);
        // Retire after the section: a reader never waits and never frees.
        drop(guard);
        drop(old);
    }

    /// As [`update`](Self::update), under a section that the caller has, and gives the old value.
    ///
    /// Drop the old value after the section, not in it: see [`Domain::retire`] about sections.
    pub fn update_in<S: Section<K>>(
        &self,
        section: &S,
        mut f: impl FnMut(&T) -> T,
    ) -> Unlinked<T, K> {
        let mut current = self.load(section);
        let mut new = cache::boxed(user_code::run(Site::Update, || f(current)));
        loop {
            match self.compare_exchange(section, current, new) {
                Ok(old) => return old,
                Err(refused) => {
                    current = self.load(section);
                    new = refused;
                    user_code::run(Site::Update, || *new = f(current));
                }
            }
        }
    }

    /// Replaces the value if it still is `current`, the very object; else gives `new` back.
    ///
    /// `current` should come from [`load`](Self::load) under `section`, which keeps its address
    /// from being used again: no ABA. (Another reference does no harm: objects are told apart by
    /// address.) Lock-free: one atomic instruction, and no allocation.
    ///
    /// A box cannot be put back while somebody may read it, so the nodes of a linked structure are
    /// shared by [`Arc`](std::sync::Arc), which only updaters count:
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
    /// `new`, if the value is another one by now.
    ///
    /// # Panics
    /// If the section is one of another domain, as [`load`](Self::load) does.
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

    /// The value, which no other thread can read: the place is borrowed exclusively.
    #[expect(clippy::missing_panics_doc, reason = "an `Rcu` is never empty")]
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().expect("never empty")
    }

    /// The value, out of its place. Waits for nothing: no other thread can read it.
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
        let pointer = *self.pointer.get_mut();
        if !pointer.is_null() {
            // SAFETY: from a box; no thread can hold a reference that was loaded from here, since
            // such a reference borrows `self`.
            let value = unsafe { Box::from_raw(pointer) };
            user_code::run(Site::Drop, || drop(value));
        }
    }
}

impl<T: Weigh + Send + Sync + 'static> From<T> for Rcu<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Weigh + Send + Sync + Default + 'static> Default for Rcu<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: Weigh + Send + Sync + 'static> Default for RcuOption<T> {
    fn default() -> Self {
        Self::empty()
    }
}

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

/// What is in it is weighed where it is replaced there.
impl<T: Send + Sync + 'static, K: DomainTag> Weigh for Rcu<T, K> {
    const OWNS: bool = false;
}

/// As [`Rcu`](crate::Rcu).
impl<T: Send + Sync + 'static, K: DomainTag> Weigh for RcuOption<T, K> {
    const OWNS: bool = false;
}
