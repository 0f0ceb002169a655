//! The simple way to read: a reference with its own section. [`RcuRef`] borrows the place,
//! [`OwnedRcuRef`] shares it.
//!
//! A guard and the reference that was loaded under it are one value here, so neither can be kept
//! without the other: they are moved and dropped together.

use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;

use super::{Rcu, RcuOption};
use crate::domain::guard::Global;
use crate::domain::impls::shown_as_target;
use crate::domain::srcu::{Sleepable, Srcu};
use crate::domain::tag::{DomainTag, Section};
use crate::os::user_code::{self, Site};
use crate::reclaim::domain_state::Named;
use crate::reclaim::weigh::Weigh;
use crate::srcu::{self, Place, SrcuCounts};

/// A reference to a loaded value, together with the section that protects it. Returned by
/// [`Rcu::read`].
///
/// Dereferences to the value. Dropping it ends the section, with the effects of dropping a guard:
/// see [`Guard`](crate::Guard) and, for sleepable domains, [`SrcuGuard`](crate::SrcuGuard). It
/// borrows the [`Rcu`] but no separate guard, so a function may return it.
///
/// In a [sleepable domain](Srcu) it may be sent to other threads and held across an `.await`. While
/// it is held, grace periods of the domain cannot end and replaced values stay in memory; updaters
/// continue until they reach the domain's limit.
///
/// ```
/// use quiescence::{Rcu, RcuRef, Weigh};
///
/// #[derive(Weigh)]
/// struct Config {
///     name: String,
///     workers: usize,
/// }
///
/// struct Server {
///     config: Rcu<Config>,
/// }
///
/// impl Server {
///     fn config(&self) -> RcuRef<'_, Config> {
///         self.config.read()
///     }
///
///     fn name(&self) -> RcuRef<'_, str> {
///         RcuRef::map(self.config.read(), |config| config.name.as_str())
///     }
/// }
///
/// let server = Server { config: Rcu::new(Config { name: "a".into(), workers: 4 }) };
/// let config = server.config();
/// server.config.store(Config { name: "b".into(), workers: 8 });
/// assert_eq!((config.name.as_str(), config.workers), ("a", 4)); // one version, whole
/// assert_eq!(&*server.name(), "b");
/// ```
#[must_use = "the section ends when this is dropped"]
pub struct RcuRef<'r, T: ?Sized, K: DomainTag = Global>(Held<T, K::Section<'r>>);

/// Like [`RcuRef`], in a [sleepable domain](Srcu), and keeps the [`Rcu`] alive: `Send` and
/// `'static`. Returned by [`Rcu::read_owned`].
///
/// For code that must own everything it uses: a task, an extractor of a web framework, a stream
/// that a handler returns. It can be held across an `.await`, and dropped on any thread.
///
/// ```
/// use quiescence::{OwnedRcuRef, Rcu, tag::Sleepable};
/// use std::sync::Arc;
///
/// #[derive(quiescence::Weigh)]
/// struct Config {
///     greeting: String,
/// }
///
/// #[derive(Clone)]
/// struct State {
///     config: Arc<Rcu<Config, Sleepable>>,
/// }
///
/// /// An argument of a handler: an extractor makes it from the state, and it borrows nothing.
/// struct Current(OwnedRcuRef<Config>);
///
/// fn extract(state: &State) -> Current {
///     Current(state.config.read_owned())
/// }
///
/// async fn handle(Current(config): Current) -> String {
///     tokio::task::yield_now().await; // the version is the same before and after
///     config.greeting.clone()
/// }
///
/// let state = State { config: Arc::new(Rcu::sleepable(Config { greeting: "hello".into() })) };
/// let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
/// let answer = runtime.block_on(async {
///     let request = tokio::spawn(handle(extract(&state)));
///     state.config.store_async(Config { greeting: "good day".into() }).await;
///     request.await.unwrap()
/// });
/// assert_eq!(answer, "hello");
/// ```
#[must_use = "the section ends when this is dropped"]
pub struct OwnedRcuRef<T: ?Sized>(Held<T, OwnedSection>);

/// # A reference that is its own section
impl<T: Send + Sync + 'static, K: DomainTag> Rcu<T, K> {
    /// Returns the current value, in a section of its own.
    ///
    /// This is a guard and a [`load`](Self::load) in one value: the section ends when it is
    /// dropped. Two calls may return two versions, so call it once for each use. To read several
    /// values together, take one guard for all of them; that is cheaper.
    ///
    /// # Progress and cost
    /// Those of a section of the domain ([`read`](crate::read), [`Srcu::read`]) and of one load.
    ///
    /// # Panics
    /// If a thread's sections are nested 2^32 deep.
    ///
    /// ```
    /// let version = quiescence::Rcu::new(1);
    /// assert_eq!(*version.read(), 1);
    /// let seen = version.read();
    /// version.store(2);
    /// assert_eq!((*seen, *version.read()), (1, 2));
    /// ```
    #[inline]
    #[track_caller]
    pub fn read(&self) -> RcuRef<'_, T, K> {
        let section = self.domain().tag().enter(Location::caller());
        // SAFETY: the section borrows the place.
        RcuRef(unsafe { self.hold(section) })
    }

    /// Calls `f` with the current value, in a section of its own, and returns the result. The
    /// section ends even if `f` panics.
    ///
    /// # Panics
    /// As [`read`](Self::read).
    ///
    /// ```
    /// let routes = quiescence::Rcu::new(vec!["10.0.0.0/8"]);
    /// assert_eq!(routes.with(|routes| routes.len()), 1);
    /// ```
    #[inline]
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        let value = self.read();
        user_code::run(Site::Project, || f(&value))
    }

    /// The value now, with the section that protects it.
    ///
    /// # Safety
    /// The place is not dropped, nor borrowed exclusively, as long as the section lives.
    #[inline(always)]
    #[track_caller]
    unsafe fn hold<S: Section<K>>(&self, section: S) -> Held<T, S> {
        let value = self.inner.load_pointer(&section).cast_mut();
        // SAFETY: the place is never empty.
        let value = Shared(unsafe { NonNull::new_unchecked(value) });
        Held { value, section }
    }
}

/// # A reference that is its own section
impl<T: Send + Sync + 'static, K: DomainTag> RcuOption<T, K> {
    /// Returns the current value, if there is one, in a section of its own. See [`Rcu::read`].
    ///
    /// # Panics
    /// As [`Rcu::read`].
    ///
    /// ```
    /// static MOTD: quiescence::RcuOption<String> = quiescence::RcuOption::empty();
    /// assert!(MOTD.read().is_none());
    /// MOTD.store(Some("hello".into()));
    /// assert_eq!(*MOTD.read().unwrap(), "hello");
    /// ```
    #[inline]
    #[track_caller]
    pub fn read(&self) -> Option<RcuRef<'_, T, K>> {
        let section = self.domain().tag().enter(Location::caller());
        // SAFETY: the section borrows the place.
        unsafe { self.hold(section) }.map(RcuRef)
    }

    /// Calls `f` with the current value, or `None`, and returns the result. See [`Rcu::with`].
    ///
    /// # Panics
    /// As [`Rcu::read`].
    #[inline]
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(Option<&T>) -> R) -> R {
        let value = self.read();
        user_code::run(Site::Project, || f(value.as_deref()))
    }

    /// The value now, if there is one, with the section that protects it.
    ///
    /// # Safety
    /// The place is not dropped, nor borrowed exclusively, as long as the section lives.
    #[inline(always)]
    #[track_caller]
    unsafe fn hold<S: Section<K>>(&self, section: S) -> Option<Held<T, S>> {
        let value = Shared(NonNull::new(self.load_pointer(&section).cast_mut())?);
        Some(Held { value, section })
    }
}

/// # In a sleepable domain
impl<T: Send + Sync + 'static> Rcu<T, Sleepable> {
    /// Creates a value with a [sleepable domain](Srcu) of its own, so that readers of other values
    /// never delay its grace periods. Meant for values that tasks read. [`Srcu::rcu`] makes several
    /// values in one domain, or one in a named domain.
    ///
    /// In a static, put it in a [`LazyLock`](std::sync::LazyLock): its references are `Send` and
    /// `'static`. Elsewhere put it in an [`Arc`] and use [`read_owned`](Self::read_owned).
    ///
    /// Allocates the value, and about 2 KiB for the domain.
    ///
    /// ```
    /// use quiescence::{Rcu, tag::Sleepable};
    /// use std::sync::LazyLock;
    ///
    /// static CONFIG: LazyLock<Rcu<String, Sleepable>> =
    ///     LazyLock::new(|| Rcu::sleepable("v1".into()));
    ///
    /// let seen = CONFIG.read();
    /// std::thread::spawn(move || assert_eq!(*seen, "v1")).join().unwrap();
    /// CONFIG.store("v2".into());
    /// ```
    pub fn sleepable(value: T) -> Self
    where
        T: Weigh,
    {
        Srcu::new().rcu(value)
    }

    /// Returns the current value, in a section of its own, with a reference to the `Rcu`: the
    /// result is `Send` and `'static`.
    ///
    /// # Progress and cost
    /// Those of [`Srcu::read`] and of an `Arc::clone`. The clone is a locked instruction on a cache
    /// line that all such readers share; [`read`](Self::read) has none.
    ///
    /// # Panics
    /// As [`Srcu::read`].
    ///
    /// ```
    /// use quiescence::Rcu;
    /// use std::sync::Arc;
    ///
    /// let config = Arc::new(Rcu::sleepable(String::from("v1")));
    /// let seen = config.read_owned();
    /// config.store("v2".into());
    /// drop(config); // `seen` keeps it alive
    /// std::thread::spawn(move || assert_eq!(*seen, "v1")).join().unwrap();
    /// ```
    #[track_caller]
    pub fn read_owned(self: &Arc<Self>) -> OwnedRcuRef<T> {
        let section = OwnedSection::begin(Arc::clone(self) as _, Location::caller());
        // SAFETY: the section keeps the place alive.
        OwnedRcuRef(unsafe { self.hold(section) })
    }
}

/// # In a sleepable domain
impl<T: Send + Sync + 'static> RcuOption<T, Sleepable> {
    /// Returns the current value, if there is one, with a reference to the cell. See
    /// [`Rcu::read_owned`].
    ///
    /// # Panics
    /// As [`Srcu::read`].
    #[track_caller]
    pub fn read_owned(self: &Arc<Self>) -> Option<OwnedRcuRef<T>> {
        let section = OwnedSection::begin(Arc::clone(self) as _, Location::caller());
        // SAFETY: the section keeps the place alive.
        unsafe { self.hold(section) }.map(OwnedRcuRef)
    }
}

/// # With values
impl Srcu {
    /// Creates a value in this domain: [`Rcu::new_in`] with [`domain`](Self::domain).
    ///
    /// The value keeps the domain alive, so you need not keep an `Srcu` that only this value uses:
    /// ```
    /// use quiescence::Srcu;
    ///
    /// let config = Srcu::named("config").rcu(String::from("v1"));
    /// assert_eq!(*config.read(), "v1");
    /// ```
    ///
    /// Several values in one domain, read under one guard:
    /// ```
    /// # use quiescence::Srcu;
    /// let zones = Srcu::new();
    /// let (serial, name) = (zones.rcu(7), zones.rcu("example.org"));
    /// let guard = zones.read();
    /// assert_eq!((*serial.load(&guard), *name.load(&guard)), (7, "example.org"));
    /// ```
    pub fn rcu<T: Weigh + Send + Sync + 'static>(&self, value: T) -> Rcu<T, Sleepable> {
        Rcu::new_in(value, self.domain())
    }
}

/// A value, and the section that protects it. Invariant: the value stays as long as the section,
/// and is not borrowed exclusively.
struct Held<T: ?Sized, S> {
    value: Shared<T>,
    section: S,
}

/// What a `&T` is, but that it need not be valid when its holder is dropped: the section goes then.
struct Shared<T: ?Sized>(NonNull<T>);

// SAFETY: gives out `&T` only, as a `&T` does, which is `Send` under the same condition.
unsafe impl<T: ?Sized + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for Shared<T> {}

impl<T: ?Sized, S> Held<T, S> {
    #[inline(always)]
    fn get(&self) -> &T {
        // SAFETY: valid as long as the section, which lives.
        unsafe { self.value.0.as_ref() }
    }

    #[inline]
    fn map<U: ?Sized>(self, f: impl FnOnce(&T) -> &U) -> Held<U, S> {
        let value = Shared(NonNull::from(user_code::run(Site::Project, || f(self.get()))));
        Held { value, section: self.section }
    }

    #[inline]
    fn filter_map<U: ?Sized>(self, f: impl FnOnce(&T) -> Option<&U>) -> Result<Held<U, S>, Self> {
        match user_code::run(Site::Project, || f(self.get())).map(NonNull::from) {
            Some(part) => Ok(Held { value: Shared(part), section: self.section }),
            None => Err(self),
        }
    }
}

impl<'r, T: ?Sized, K: DomainTag> RcuRef<'r, T, K> {
    /// Returns a reference to a part of the value, in the same section. An associated function, so
    /// that it hides no method of the value, as with [`Ref::map`](std::cell::Ref::map).
    #[inline]
    pub fn map<U: ?Sized>(this: Self, f: impl FnOnce(&T) -> &U) -> RcuRef<'r, U, K> {
        RcuRef(this.0.map(f))
    }

    /// Returns a reference to a part of the value, if `f` finds it.
    ///
    /// # Errors
    /// The unchanged reference, if not.
    ///
    /// ```
    /// use quiescence::{Rcu, RcuRef};
    ///
    /// let routes = Rcu::new(vec!["10.0.0.0/8"]);
    /// let first = RcuRef::filter_map(routes.read(), |routes| routes.first()).ok().unwrap();
    /// assert_eq!(*first, "10.0.0.0/8");
    /// assert!(RcuRef::filter_map(routes.read(), |routes| routes.get(1)).is_err());
    /// ```
    #[inline]
    pub fn filter_map<U: ?Sized>(
        this: Self,
        f: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<RcuRef<'r, U, K>, Self> {
        this.0.filter_map(f).map(RcuRef).map_err(Self)
    }
}

impl<T: ?Sized> OwnedRcuRef<T> {
    /// Returns a reference to a part of the value, in the same section. See [`RcuRef::map`].
    #[inline]
    pub fn map<U: ?Sized>(this: Self, f: impl FnOnce(&T) -> &U) -> OwnedRcuRef<U> {
        OwnedRcuRef(this.0.map(f))
    }

    /// Returns a reference to a part of the value, if `f` finds it. See [`RcuRef::filter_map`].
    ///
    /// # Errors
    /// The unchanged reference, if not.
    #[inline]
    pub fn filter_map<U: ?Sized>(
        this: Self,
        f: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<OwnedRcuRef<U>, Self> {
        this.0.filter_map(f).map(OwnedRcuRef).map_err(Self)
    }
}

impl<T: ?Sized, K: DomainTag> Deref for RcuRef<'_, T, K> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.0.get()
    }
}

impl<T: ?Sized> Deref for OwnedRcuRef<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.0.get()
    }
}

shown_as_target!(impl<T: ?Sized + fmt::Debug, K: DomainTag> fmt::Debug for RcuRef<'_, T, K>);

shown_as_target!(impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedRcuRef<T>);

shown_as_target!(impl<T: ?Sized + fmt::Display, K: DomainTag> fmt::Display for RcuRef<'_, T, K>);

shown_as_target!(impl<T: ?Sized + fmt::Display> fmt::Display for OwnedRcuRef<T>);

/// A section of a sleepable domain that keeps the place alive which is read in it, and with it the
/// domain. Of whatever type, so that a reference to a part of its value need not name the whole.
type OwnedSection = srcu::Section<Arc<dyn Place>>;

impl<T: Send + Sync + 'static> Place for Rcu<T, Sleepable> {
    fn srcu_counts(&self) -> &SrcuCounts {
        self.inner.srcu_counts()
    }
}

impl<T: Send + Sync + 'static> Place for RcuOption<T, Sleepable> {
    fn srcu_counts(&self) -> &SrcuCounts {
        self.domain().tag().core().srcu_counts()
    }
}
