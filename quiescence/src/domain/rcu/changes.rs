//! Waiting for a cell's next value: [`Version`], the table of versions, and how an update ends
//! them.
//!
//! An up-to-date version has an entry in a table of the process, under the address of its cell. So
//! cells are no larger, and reads cost no more. After its exchange, an update loads one word: how
//! many cells with versions have addresses with the same hash. If it is not 0, the update takes the
//! table's lock, and removes the versions of its cell.
//!
//! **Invariant: the owner of a version sees an update, or the version ends.** If loads after the
//! creation of a version do not see an update, that update removes the version's entry [TK-2]. A
//! wait whose version has no entry ends, and makes a new version. So no pointers are compared,
//! whose addresses may come back, and no value is kept for a version.
//!
//! **Invariant: an entry is removed before its waiter is woken**, so a task that is woken finds it
//! gone. One removal stands for all updates until there is a new version.
//!
//! **Invariant: a thread that waits when its process forks does not stay asleep in the child**,
//! where no thread would wake it. (A signal handler may fork during the wait, and return.) So
//! threads have no wakers, which a child must not call: they sleep on the bell of their cell's
//! slot, which a child changes.
//!
//! Wakers are user code: they are cloned before the lock is taken, and woken and dropped after it
//! is released.

use std::future::poll_fn;
use std::mem;
use std::panic::Location;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::task::{Context, Poll, Waker};

use super::{Rcu, RcuOption};
use crate::domain::own_section;
use crate::domain::tag::DomainTag;
use crate::gp::by_number::ByNumber;
use crate::gp::grace_periods::sleepers;
use crate::gp::wake::Line;
use crate::os::forking::{self, AtFork, ForkMutex};
use crate::os::on_drop::OnDrop;
use crate::os::sync::{AtomicU32, Rank, array_of, const_unless_loom};
use crate::os::user_code::{self, Site};
use crate::os::{fence, futex, thread};

/// The versions of one cell that no update has ended, with the tasks that wait.
type Versions = ByNumber<Option<Waker>>;

/// The cells that have versions, by the hash of their addresses.
type Table = Vec<Vec<(usize, Versions)>>;

const SLOTS: usize = if cfg!(loom) { 2 } else { 256 };

const_unless_loom! {
    static TABLE: ForkMutex<Table> = ForkMutex::new(Rank::Versions, Vec::new());
    /// How many cells are in each slot, for updates to see without the lock.
    static COUNTS: Line<[AtomicU32; SLOTS]> = Line(array_of![AtomicU32::new(0); SLOTS]);
    /// How many versions of each slot were ended: threads sleep until it changes.
    static BELLS: Line<[AtomicU32; SLOTS]> = Line(array_of![AtomicU32::new(0); SLOTS]);
}

/// [`end_versions`], once there is a version. A program that makes none does not have its code.
static END: OnceLock<fn(usize)> = OnceLock::new();

/// Numbers the versions of all cells, also in a child.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl AtFork for Table {
    /// The threads of the tasks' executors are gone. A wait that goes on in the child ends.
    fn in_child(&mut self) {
        mem::forget(mem::take(self)); // wakers are not even dropped here
        BELLS.0.iter().for_each(|bell| _ = bell.fetch_add(1, Relaxed)); // Relaxed: alone here
    }
}

/// The slot of a cell at this address.
#[inline]
fn slot(place: usize) -> usize {
    // The golden ratio spreads cells that are equally far apart (Knuth, 6.4).
    ((place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2())) as usize
}

/// Changes the versions of the cell at this address under the lock. `change` gets a number for a
/// new one. Loads that the caller makes afterwards come after the change [TK-2].
fn with<R>(place: usize, change: impl FnOnce(&mut Versions, u64) -> R) -> R {
    let mut table = TABLE.lock();
    table.resize_with(SLOTS, Vec::new);
    let (cells, count) = (&mut table[slot(place)], &COUNTS.0[slot(place)]);
    let known = cells.iter().position(|(of, _)| *of == place);
    let mut versions = known.map_or_else(Versions::new, |at| cells.swap_remove(at).1);
    // Relaxed: under the lock.
    let result = change(&mut versions, NUMBERS.fetch_add(1, Relaxed));
    if versions.len() != 0 {
        cells.push((place, versions));
        END.get_or_init(|| end_versions);
    }
    // The fences of [TK-2] order it. Not stored in vain: updates load it.
    if count.load(Relaxed) != cells.len() as u32 {
        count.store(cells.len() as u32, Release); // pairs with the Acquire in `tell`: `END`
    }
    fence::full(); // [TK-2] //~ no-version-fence
    result
}

/// The cell at this address has a new value, by an atomic exchange of this thread, or is dropped:
/// ends its versions, and wakes those who wait with them. No lock is held here.
#[inline]
pub(crate) fn tell(place: usize) {
    fence::full_after_locked(); // [TK-2] //~ no-update-fence
    // Acquire: pairs with the Release in `with`, for `END`.
    if COUNTS.0[slot(place)].load(Acquire) != 0
        && let Some(end) = END.get()
    {
        end(place);
    }
}

#[cold]
fn end_versions(place: usize) {
    let (caller, bell) = (thread::id(), &BELLS.0[slot(place)]);
    let (count, wakers) = with(place, |versions, _| {
        // Relaxed: a sleeper looks under the table's lock. Here, so that a child of a fork that
        // comes next finds it done.
        bell.fetch_add(versions.len() as u32, Relaxed); //~ silent-bell
        (versions.len(), versions.take_all())
    });
    // Not for another cell of the slot: its updates may be frequent.
    if count != 0 {
        futex::wake_all(bell);
    }
    sleepers::wake(caller, wakers.flatten().collect()); //~ lost-change
}

/// Drops a waker that need not be called any more: the user's code.
fn end(waker: Option<Waker>) {
    user_code::caught(Site::WakerDrop, || drop(waker));
}

/// How far the updates of an [`Rcu`] or [`RcuOption`] have been seen: the argument of
/// [`Rcu::wait_changed`] and [`Rcu::changed`]. [`Rcu::version`] makes one.
///
/// It has no lifetime, so a struct can hold it beside an `Arc` of the cell. It knows the cell by
/// its address. If it is used with another cell, or in a child made by `fork`, it counts as old:
/// the wait ends at once, and from then on it is a version of that cell. Dropping or overwriting
/// the cell ends it too. **If the cell is moved, take a new version**: should the cell come back to
/// its place, or be exchanged by [`mem::swap`](std::mem::swap), the old version misses what
/// happened meanwhile.
///
/// # Cost
/// Some words of memory, and an entry in a table with one lock for the process. Each poll of a wait
/// takes that lock once or twice, and so does a drop. As long as the version has not ended, so does
/// each update of its cell, and of one cell in 256 (by the hash of their addresses). It is held for
/// a look at one in 256 of the cells that have versions, and for an allocation.
#[derive(Debug)]
pub struct Version {
    place: usize,
    number: u64,
}

impl Version {
    /// A version of the cell at this address: updates that loads of the caller's do not see from
    /// now on end it.
    pub(crate) fn of(place: usize) -> Self {
        let number = with(place, |versions, number| versions.put(number, None));
        Self { place, number }
    }

    /// Whether an update has ended the version, which is a new one then; else notes `waker`.
    fn poll(&mut self, place: usize, mut waker: Option<Waker>) -> Poll<()> {
        let number = loop {
            let found = with(place, |versions, number| match versions.get_mut(self.number) {
                Some(known) => Ok(waker.take().and_then(|waker| known.replace(waker))),
                None => Err(versions.put(number, None)),
            });
            match found {
                Ok(None) => return Poll::Pending,
                // Looks again: a child that its drop has made has no entry.
                Ok(replaced) => end(replaced),
                Err(number) => break number,
            }
        };
        let old = mem::replace(self, Self { place, number });
        if old.place == place {
            mem::forget(old); // it has no entry
        }
        end(waker);
        Poll::Ready(())
    }

    /// Blocks until the version has ended.
    pub(crate) fn wait(&mut self, place: usize) {
        let bell = &BELLS.0[slot(place)];
        // Relaxed, both: an update that has changed it is seen under the lock.
        let mut rung = bell.load(Relaxed);
        while self.poll(place, None).is_pending() {
            futex::wait(bell, rung, None);
            rung = bell.load(Relaxed);
        }
    }
}

impl Drop for Version {
    fn drop(&mut self) {
        end(with(self.place, |versions, _| versions.remove(self.number)).flatten());
    }
}

/// # Waiting for changes
/// As with a `watch` channel: a thread or task is told that there is a new value, and reads the
/// newest. Several updates may be one change. Readers pay nothing, and a cell is no larger.
///
/// ```
/// use quiescence::Rcu;
/// use std::thread;
///
/// let level = Rcu::new(1);
/// let mut seen = level.version(); // first the version, then the value
/// assert_eq!(*level.read(), 1);
/// thread::scope(|scope| {
///     scope.spawn(|| level.store(2));
///     level.wait_changed(&mut seen);
///     assert_eq!(*level.read(), 2);
/// });
/// ```
impl<T: Send + Sync + 'static, K: DomainTag> Rcu<T, K> {
    /// The version of the value now. If a [`load`](Self::load) after this call does not see an
    /// update, that update ends a wait with the version, also one that begins later.
    ///
    /// Take the version first, and read the value then. In the other order an update in between is
    /// missed.
    ///
    /// Takes a lock: see [`Version`], also for what a version costs updates.
    pub fn version(&self) -> Version {
        self.inner.version()
    }

    /// Waits until the value has been replaced since `version`, which is then renewed. Returns at
    /// once if it has been replaced already.
    ///
    /// Any replacement counts, also by an equal value; a change by [`get_mut`](Self::get_mut) does
    /// not. If an update comes between the version and the read, the read sees it, and the next
    /// wait ends all the same: the value is the same then.
    ///
    /// An update wakes the waiting threads and tasks before it waits on account of the value that
    /// it replaces. (If the closure of an [`update`](Self::update) retires objects over the
    /// domain's limit, these are settled first.)
    ///
    /// Blocking: sleeps on a futex, without a time limit; to end the thread, store a value that
    /// says so. In a task, use [`changed`](Self::changed). Do not wait in a callback or in the drop
    /// of a retired value, where this stops the callbacks of all domains.
    ///
    /// # Panics
    /// If the calling thread is in a section of this domain, or is an online QSBR reader of it, as
    /// [`Domain::synchronize`](crate::Domain::synchronize) does, even if the value has been
    /// replaced: an update at the limit would wait for this thread. So drop the guard first; `while
    /// let Some(value) = cell.read()` keeps it over the body. In a
    /// [sleepable domain](crate::Srcu) sections are not known, and it waits.
    #[doc(alias = "watch")]
    #[track_caller]
    pub fn wait_changed(&self, version: &mut Version) {
        self.inner.wait_changed(version);
    }

    /// As [`wait_changed`](Self::wait_changed), for tasks: needs no runtime and blocks no thread.
    ///
    /// **If the future is dropped** before it is ready, its waker is forgotten, and `version` is as
    /// it was: a change is not lost. So it may be a branch of a `select!`.
    ///
    /// The waker is called by the thread that updates, outside of the library's locks, and outside
    /// of sections unless that thread is in one: the caller of
    /// [`compare_exchange`](Self::compare_exchange) or [`update_in`](Self::update_in) always is. If
    /// it panics, that is reported, and ends there.
    ///
    /// ```
    /// use quiescence::Rcu;
    /// use std::sync::Arc;
    ///
    /// async fn follow(limit: Arc<Rcu<u32>>) {
    ///     let mut seen = limit.version();
    ///     while *limit.read() != 0 {
    ///         limit.changed(&mut seen).await;
    ///     }
    /// }
    /// ```
    pub async fn changed(&self, version: &mut Version) {
        self.inner.changed(version).await;
    }

    /// Whether the value has been replaced since `version`, which is then renewed; if not, the task
    /// of `context` is woken once it has. The waker is kept until then, or until `version` is
    /// polled again or dropped.
    ///
    /// For futures of your own, and for streams:
    /// ```
    /// # use quiescence::Rcu;
    /// # use std::sync::Arc;
    /// # mod futures { pub mod stream { pub fn poll_fn<F>(f: F) -> F { f } } }
    /// let level = Arc::new(Rcu::new(1));
    /// let mut seen = level.version();
    /// let changes = futures::stream::poll_fn(move |context: &mut std::task::Context<'_>| {
    ///     level.poll_changed(&mut seen, context).map(Some)
    /// });
    /// ```
    pub fn poll_changed(&self, version: &mut Version, context: &mut Context<'_>) -> Poll<()> {
        self.inner.poll_changed(version, context)
    }
}

/// # Waiting for changes
/// As for an [`Rcu`].
impl<T: Send + Sync + 'static, K: DomainTag> RcuOption<T, K> {
    /// The version of the place now. See [`Rcu::version`].
    ///
    /// ```
    /// use quiescence::RcuOption;
    ///
    /// static PLUGIN: RcuOption<String> = RcuOption::empty();
    /// let mut seen = PLUGIN.version();
    /// PLUGIN.store(Some("loaded".into()));
    /// PLUGIN.wait_changed(&mut seen); // at once
    /// ```
    pub fn version(&self) -> Version {
        forking::watch();
        Version::of(self.place())
    }

    /// Waits until the value has been replaced or taken since `version`. To replace nothing by
    /// nothing counts, too. See [`Rcu::wait_changed`].
    ///
    /// # Panics
    /// As [`Rcu::wait_changed`].
    #[track_caller]
    pub fn wait_changed(&self, version: &mut Version) {
        own_section::may_wait(self.domain.core(), "wait_changed", Location::caller());
        version.wait(self.place());
    }

    /// As [`wait_changed`](Self::wait_changed), for tasks. See [`Rcu::changed`].
    pub async fn changed(&self, version: &mut Version) {
        let Version { place, number } = *version;
        // A future that is dropped while it is pending leaves no waker.
        let forgets = OnDrop(move || {
            end(with(place, |versions, _| versions.get_mut(number).and_then(Option::take)));
        });
        poll_fn(|context| self.poll_changed(version, context)).await;
        mem::forget(forgets); // it is another version
    }

    /// As [`changed`](Self::changed), in a poll. See [`Rcu::poll_changed`].
    pub fn poll_changed(&self, version: &mut Version, context: &mut Context<'_>) -> Poll<()> {
        let waker = user_code::run(Site::WakerClone, || context.waker().clone());
        version.poll(self.place(), Some(waker))
    }

    /// The address by which the table of versions knows the cell.
    pub(super) fn place(&self) -> usize {
        ptr::from_ref(self).addr()
    }
}
