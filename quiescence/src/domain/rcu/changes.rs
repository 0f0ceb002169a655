//! Waits for a cell's next value: [`Version`], the table of versions, and what an update does for
//! it.
//!
//! A version that is up to date has an entry in a table of the process, by the address of its cell.
//! The cell has no part in that, so it is no larger, and a read costs the same. An update loads one
//! word after its exchange: how many entries there are of cells whose address has that hash. If
//! there are any, it takes the table's lock, and removes those of its cell.
//!
//! **Invariant: whoever has a version sees an update, or the version ends.** An update of the cell
//! whose value is not visible to loads that come after [`Version::of`] removes the entry [TK-2]. A
//! wait ends where there is no entry, with a new version. So no pointers are compared, whose
//! addresses come back, and no value is kept for a version.
//!
//! **Invariant: an entry is removed before its waker is called**: a task that is woken finds it
//! gone. One removal stands for all updates until the version is a new one.
//!
//! Wakers are the user's code: cloned before the lock is taken, woken and dropped after it is
//! released. A thread that waits is a task whose waker rings its [`Bell`].

use std::future::poll_fn;
use std::mem;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Wake, Waker};

use super::{Rcu, RcuOption};
use crate::domain::domain;
use crate::domain::tag::DomainTag;
use crate::gp::by_number::ByNumber;
use crate::gp::grace_periods::sleepers;
use crate::os::forking::{AtFork, ForkMutex};
use crate::os::sync::{AtomicU32, Rank, array_of, const_unless_loom};
use crate::os::user_code::{self, Site};
use crate::os::{fence, futex};

/// A version that no update has ended.
struct Entry {
    place: usize,
    waker: Option<Waker>,
}

/// The entries, by the hash of their cells' addresses.
type Table = [ByNumber<Entry>; SLOTS];

/// How many bits a hash has.
const BITS: u32 = if cfg!(loom) { 1 } else { 8 };
const SLOTS: usize = 1 << BITS;

const_unless_loom! {
    static TABLE: ForkMutex<Table> =
        ForkMutex::new(Rank::Versions, array_of![ByNumber::new(); SLOTS]);
    /// How many entries each slot of the table has, for updates to see without the lock.
    static COUNTS: [AtomicU32; SLOTS] = array_of![AtomicU32::new(0); SLOTS];
}

impl AtFork for Table {
    /// The threads of the tasks' executors are gone. A wait that goes on in the child ends.
    fn in_child(&mut self) {
        self.iter_mut().flat_map(ByNumber::take_all).for_each(mem::forget);
    }
}

/// The place in the table of a cell at this address.
#[inline]
fn slot(place: usize) -> usize {
    // The golden ratio spreads cells that are equally far apart (Knuth, 6.4).
    ((place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize
}

/// Changes the entries of a slot under the lock. What `change` returns is dropped after it.
fn with<R>(place: usize, change: impl FnOnce(&mut ByNumber<Entry>) -> R) -> R {
    let mut table = TABLE.lock();
    let entries = &mut table[slot(place)];
    let result = change(entries);
    // Relaxed: the fences of [TK-2] order it.
    COUNTS[slot(place)].store(entries.len() as u32, Relaxed);
    result
}

/// The cell at this address has a new value, by an atomic exchange of this thread: ends its
/// versions, and wakes their tasks. No lock is held here.
#[inline]
pub(crate) fn tell(place: usize) {
    fence::full_after_locked(); // [TK-2] //~ no-update-fence
    // Relaxed: by the fence.
    if COUNTS[slot(place)].load(Relaxed) != 0 {
        end_versions(place);
    }
}

#[cold]
#[inline(never)]
fn end_versions(place: usize) {
    let mut wakers = Vec::new();
    with(place, |entries| {
        entries.retain(&mut |entry| {
            let is_told = entry.place == place;
            wakers.extend(entry.waker.take_if(|_| is_told));
            !is_told
        });
    });
    sleepers::wake(wakers); //~ lost-change
}

/// How far the updates of an [`Rcu`] or [`RcuOption`] have been seen: what
/// [`Rcu::wait_changed`] and [`Rcu::changed`] wait with. [`Rcu::version`] makes one.
///
/// It is not tied to the cell by a lifetime, so it can stand beside an `Arc` of the cell. After its
/// cell was moved, and in a child made by `fork`, it counts as old: the wait ends at once, and it
/// is a version of the cell from then on. For another cell take another version: it does not know
/// cells apart that have stood at the same address.
///
/// While a wait with it would not end at once, an update of the cell takes a lock that all versions
/// of the process share (some 50 ns); so does one update in 256 of other cells, by hash of their
/// addresses.
#[derive(Debug)]
pub struct Version {
    place: usize,
    number: u64,
}

impl Version {
    /// A version of the cell at this address: updates that loads of the caller's do not see from
    /// now on end it.
    pub(crate) fn of(place: usize) -> Self {
        let number = with(place, |entries| entries.add(Entry { place, waker: None }));
        fence::full(); // [TK-2] //~ no-version-fence
        Self { place, number }
    }

    /// Whether an update has ended the version, which is a new one then; else notes `waker`.
    fn poll(&mut self, place: usize, waker: &Waker) -> Poll<()> {
        let mut waker = Some(user_code::run(Site::WakerClone, || waker.clone()));
        let is_present = self.place == place && self.exchange_waker(&mut waker);
        user_code::caught(Site::WakerDrop, || drop(waker));
        if is_present {
            return Poll::Pending;
        }
        *self = Self::of(place);
        Poll::Ready(())
    }

    /// Puts another waker into the entry, if it is there.
    fn exchange_waker(&self, waker: &mut Option<Waker>) -> bool {
        let exchange = |entry: &mut Entry| mem::swap(&mut entry.waker, waker);
        with(self.place, |entries| entries.get_mut(self.number).map(exchange).is_some())
    }

    /// Blocks until the version has ended.
    pub(crate) fn wait(&mut self, place: usize) {
        let bell = Arc::new(Bell(AtomicU32::new(0)));
        let waker = Waker::from(Arc::clone(&bell));
        while self.poll(place, &waker).is_pending() {
            futex::wait(&bell.0, 0, None);
        }
    }
}

impl Drop for Version {
    fn drop(&mut self) {
        let entry = with(self.place, |entries| entries.remove(self.number));
        user_code::caught(Site::WakerDrop, || drop(entry));
    }
}

/// Leaves no waker behind where a future ends.
struct Forgets<'v>(&'v mut Version);

impl Drop for Forgets<'_> {
    fn drop(&mut self) {
        let mut waker = None;
        self.0.exchange_waker(&mut waker);
        user_code::caught(Site::WakerDrop, || drop(waker));
    }
}

/// What a thread sleeps on: 1 once it has been woken.
struct Bell(AtomicU32);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // Relaxed: the thread looks under the table's lock.
        self.0.store(1, Relaxed);
        futex::wake_all(&self.0);
    }
}

/// # Waiting for changes
/// As with a `watch` channel: who waits is told that there is a new value, and reads the newest.
/// Several updates may be one change. Readers pay nothing for it, and neither does a cell.
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
    /// The version of the value now. Each update that a [`load`](Self::load) after this call does
    /// not see ends a wait with the version, also one that begins later.
    ///
    /// Take the version first, and read the value then. In the other order an update in between is
    /// missed.
    ///
    /// Takes a lock, and a few words of memory until it is dropped. See [`Version`] about the cost
    /// to updates.
    pub fn version(&self) -> Version {
        self.inner.version()
    }

    /// Waits until the value has been replaced since `version`, which is the present one then.
    /// Returns at once if it has been replaced already.
    ///
    /// Any replacement counts, also by an equal value; a change by [`get_mut`](Self::get_mut) does
    /// not. An update tells those who wait right after its exchange, before it waits for anything
    /// itself. (An update that comes while one reads the value may have been seen: then the next
    /// wait ends at once, and the value is the same.)
    ///
    /// Blocking: sleeps on a futex, and there is no time limit: who is to end the thread stores a
    /// value that says so. In a task, use [`changed`](Self::changed).
    ///
    /// # Panics
    /// As [`Domain::synchronize`](crate::Domain::synchronize), if the calling thread is in a
    /// section of this domain: updates at the limit would wait for it. In a
    /// [sleepable domain](crate::Srcu) the sections are not known, and it waits.
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
    /// The waker is called by the thread that updates, outside of the library's locks and sections;
    /// [`compare_exchange`](Self::compare_exchange) and [`update_in`](Self::update_in) call it in
    /// the section of their caller. If it panics, that is reported, and ends there.
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

    /// Whether the value has been replaced since `version`, which is the present one then; if not,
    /// the task of `context` is woken once it has. The waker is kept until then, or until
    /// `version` is polled again or dropped.
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
        (crate::HOOKS.first_use)();
        Version::of(self.place())
    }

    /// Waits until the value has been replaced or taken since `version`. See [`Rcu::wait_changed`].
    ///
    /// # Panics
    /// As [`Rcu::wait_changed`].
    #[track_caller]
    pub fn wait_changed(&self, version: &mut Version) {
        domain::may_wait(self.domain.core(), "wait_changed", Location::caller());
        version.wait(self.place());
    }

    /// As [`wait_changed`](Self::wait_changed), for tasks. See [`Rcu::changed`].
    pub async fn changed(&self, version: &mut Version) {
        let (place, version) = (self.place(), Forgets(version));
        poll_fn(|context| version.0.poll(place, context.waker())).await
    }

    /// As [`changed`](Self::changed), in a poll. See [`Rcu::poll_changed`].
    pub fn poll_changed(&self, version: &mut Version, context: &mut Context<'_>) -> Poll<()> {
        version.poll(self.place(), context.waker())
    }

    /// This thread has replaced the value: ends versions, and wakes those who wait.
    #[inline]
    pub(super) fn tell(&self) {
        tell(self.place());
    }

    fn place(&self) -> usize {
        ptr::from_ref(self).addr()
    }
}
