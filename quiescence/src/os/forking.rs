//! The locks of the whole process during a `fork`; and whether a thread is in the middle of one.
//!
//! A room's lock that all domains share is a [`ForkMutex`], a static. Before it is locked for the
//! first time, it is entered in one list, [`LOCKS`], at its rank. A fork takes the locks in the
//! list, so a program neither takes nor links the locks of rooms that it does not use.
//!
//! **Invariant [FK-1]: while the memory is copied, only the forking thread holds any of these
//! locks.** [`hold`] copies the list, takes its locks in the order of their ranks, and then takes
//! the list's own lock, which stays locked until after the fork. If the list has grown meanwhile,
//! `hold` releases all locks and starts over, at most once for each static, since the new lock's
//! rank may be lower than the ranks of locks that it holds. Otherwise a lock that is not in the
//! list is free: a thread takes it only after it has entered it under the list's lock, for which it
//! now waits. The thread may hold any other lock meanwhile: the list's lock ranks above all others,
//! and the forking thread, which holds it, waits for none of them.
//!
//! So no other thread is in the middle of a change when the memory is copied. In the child all
//! locks are released first. Then each room is repaired under its own lock ([`repair`]), in the
//! order of descending ranks, so that a repair may use rooms of higher ranks: readers of the
//! missing threads are unregistered, a grace period that one of them drove begins again at its
//! fence, and their queues are orphans. The child has no other thread that could interfere, and no
//! user code runs before the last repair.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop};
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Once};

use super::sync::{self, Mutex, MutexGuard, Rank, const_unless_loom};
use super::{fence, percpu, thread};

/// What is done at a fork, and at the end of the process, with what a [`ForkMutex`] guards.
pub(crate) trait AtFork: Send {
    /// Before the fork, when the lock has been taken: has others taken.
    fn hold(&self, _held: &mut Held) {}

    /// In the child: repairs what the missing threads have left.
    fn in_child(&mut self) {}

    /// At an orderly end of the process: asks the room's thread to end, without waiting for it.
    /// Returns whether it is still there.
    fn end(&mut self) -> bool {
        false
    }
}

impl AtFork for () {}

/// A static lock that a fork takes.
pub(crate) struct ForkMutex<T> {
    rank: Rank,
    is_listed: AtomicBool,
    mutex: Mutex<T>,
}

impl<T: AtFork + 'static> ForkMutex<T> {
    const_unless_loom! {
        pub(crate) fn new(rank: Rank, value: T) -> Self {
            Self { rank, is_listed: AtomicBool::new(false), mutex: Mutex::new(rank, value) }
        }
    }

    /// Has forks know of the lock from now on. Waits for no thread that holds it.
    pub(crate) fn list(&'static self) {
        // Acquire: pairs with the Release below: the lock was entered in the list before, and a
        // fork that did not find it there has ended [FK-1].
        if !cfg!(loom) && !self.is_listed.load(Acquire) {
            enter(self.rank, &self.mutex);
            self.is_listed.store(true, Release);
        }
    }

    #[inline(never)] // many places lock one, none of them often
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn lock(&'static self) -> MutexGuard<'static, T> {
        self.list();
        sync::lock(&self.mutex)
    }

    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn is_free(&self) -> bool {
        sync::try_lock(&self.mutex).is_some()
    }
}

/// By rank.
type List = [Option<&'static Mutex<dyn AtFork>>; Rank::COUNT];

const_unless_loom! {
    static LOCKS: Mutex<List> = Mutex::new(Rank::ForkMutexes, [None; Rank::COUNT]);
}

#[cold]
fn enter(rank: Rank, lock: &'static Mutex<dyn AtFork>) {
    let before = sync::lock(&LOCKS)[rank as usize].replace(lock);
    debug_assert!(before.is_none_or(|before| ptr::addr_eq(before, lock)), "two of one rank");
}

/// The locks that are in the list by now.
fn listed() -> List {
    *sync::lock(&LOCKS)
}

/// What the forking thread holds.
pub(crate) struct Held {
    /// Locks to be taken, by rank.
    wanted: Vec<Vec<&'static Mutex<dyn AtFork>>>,
    /// In the order in which they were taken.
    locks: Vec<MutexGuard<'static, dyn AtFork>>,
    list: Option<MutexGuard<'static, List>>,
    /// Owners of some of the locks. Dropped when all locks have been released, and the child has
    /// been repaired.
    owners: Vec<Arc<dyn Send>>,
}

impl Held {
    /// Has `add` add the locks of `owner`, which is kept until all are released.
    pub(crate) fn keep<T: Send + 'static>(
        &mut self,
        owner: T,
        add: impl for<'o> FnOnce(&'o T, &mut Wanted<'_, 'o>),
    ) {
        let owner = Arc::new(owner);
        self.owners.push(Arc::clone(&owner) as _);
        add(&owner, &mut Wanted(self, PhantomData));
    }

    fn unlock(&mut self) {
        self.list = None;
        // The last one first: what a lock guards may own later ones.
        while self.locks.pop().is_some() {}
    }
}

/// Locks of an owner that is kept.
pub(crate) struct Wanted<'h, 'o>(&'h mut Held, PhantomData<Cell<&'o ()>>);

impl<'o> Wanted<'_, 'o> {
    /// Has a lock taken in its turn: its rank is higher than that of the lock that the caller has.
    #[inline(never)]
    pub(crate) fn add(&mut self, rank: Rank, lock: &'o Mutex<dyn AtFork>) {
        // SAFETY: it lives as long as its owner, which is dropped when all have been released.
        self.0.wanted[rank as usize].push(unsafe { &*ptr::from_ref(lock) });
    }
}

thread_local! {
    /// What this thread holds between [`hold`] and [`release`]. It has no destructor, so that a
    /// thread can fork until its very end.
    static HELD: RefCell<Option<ManuallyDrop<Box<Held>>>> = const { RefCell::new(None) };
}

/// Complete once the system calls the functions below.
static WATCHED: Once = Once::new();

/// Has forks attended to from now on. Called when something that a fork must find is used for the
/// first time; often, and under no lock.
pub(crate) fn watch() {
    WATCHED.call_once(|| {
        // No fork where the other is not.
        #[cfg(any(not(unix), miri))]
        let failed = i32::from([prepare, parent, child].is_empty());
        #[cfg(all(unix, not(miri)))]
        // SAFETY: three functions of the right type that live for ever.
        let failed = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
        assert_eq!(failed, 0, "quiescence: pthread_atfork failed");
        (crate::HOOKS.first_use)();
    });
}

/// Before a fork, in the forking thread.
extern "C" fn prepare() {
    // A one-time initialisation must not be in progress when the memory is copied: in the child no
    // thread would finish it.
    WATCHED.call_once(|| ());
    (crate::HOOKS.before_fork)();
    #[cfg(not(target_os = "linux"))] // elsewhere time begins at the first call
    super::clock::monotonic_ns();
    hold();
}

/// After it, in the parent.
extern "C" fn parent() {
    drop(release());
}

/// After it, in the child.
extern "C" fn child() {
    let Some(kept) = release() else { return };
    fence::register_after_fork();
    percpu::register_after_fork();
    thread::after_fork();
    repair();
    drop(kept);
}

/// Takes all locks.
fn hold() {
    let mut owners = Vec::new();
    loop {
        let mut wanted = Vec::new();
        wanted.resize_with(Rank::COUNT, Vec::new);
        let mut held = Box::new(Held { wanted, locks: Vec::new(), list: None, owners });
        let known = listed();
        for (rank, lock) in known.iter().enumerate() {
            held.wanted[rank].extend(lock);
            for lock in mem::take(&mut held.wanted[rank]) {
                let value = sync::lock_another(lock);
                value.hold(&mut held);
                held.locks.push(value);
            }
        }
        let list = held.list.insert(sync::lock(&LOCKS));
        let is_whole = list.iter().zip(&known).all(|(now, then)| now.is_some() == then.is_some());
        if is_whole {
            return HELD.set(Some(ManuallyDrop::new(held)));
        }
        held.unlock();
        owners = held.owners; // also kept until the fork is over: the last ones run user code
    }
}

/// Releases all locks. Returns their owners; `None` if this thread has taken none.
fn release() -> Option<Box<Held>> {
    let mut held = ManuallyDrop::into_inner(HELD.take()?);
    held.unlock();
    Some(held)
}

/// Whether the calling thread is in the middle of a fork, and holds all locks: for functions that
/// another handler of the same fork may call.
pub(crate) fn is_here() -> bool {
    HELD.with_borrow(Option::is_some)
}

/// Whether a child is being repaired.
static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// In the child, after the release.
fn repair() {
    // Relaxed, all of it: there is no other thread.
    IN_CHILD.store(true, Relaxed);
    listed().iter().rev().flatten().for_each(|lock| sync::lock(lock).in_child());
    IN_CHILD.store(false, Relaxed);
}

/// For what may be done only where the other threads are gone.
pub(crate) fn assert_in_child() {
    assert!(IN_CHILD.load(Relaxed), "other threads may be there");
}

/// At an orderly end of the process: asks the threads of all rooms to end. Returns whether any is
/// still there, or may be: the thread that holds a lock may never run again, and is not waited for.
pub(crate) fn end_threads() -> bool {
    let is_there =
        |lock: &Mutex<dyn AtFork>| sync::try_lock(lock).is_none_or(|mut room| room.end());
    listed().iter().flatten().fold(false, |any, lock| is_there(lock) | any)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    struct EntersAnother;

    impl AtFork for EntersAnother {
        fn hold(&self, _held: &mut Held) {
            // The second time this thread holds it.
            if ENTERED.is_free() {
                thread::scope(|scope| _ = scope.spawn(|| drop(ENTERED.lock())));
            }
        }
    }

    const_unless_loom! {
        static ENTERS_ANOTHER: ForkMutex<EntersAnother> =
            ForkMutex::new(Rank::LocalGlobal, EntersAnother);
        static ENTERED: ForkMutex<()> = ForkMutex::new(Rank::Consumers, ());
        static LATE: ForkMutex<()> = ForkMutex::new(Rank::Turn, ());
    }

    /// A lock that is entered while a fork takes the others is taken, though its rank is lower than
    /// those of locks that the fork had by then. One that is entered later is free, and stays so
    /// until the fork is over.
    #[test]
    fn a_lock_that_is_entered_during_a_fork_is_taken_or_free() {
        drop(ENTERS_ANOTHER.lock());
        hold();
        assert!(is_here() && !ENTERS_ANOTHER.is_free() && !ENTERED.is_free());
        let (sender, is_locked) = mpsc::channel();
        let late = thread::spawn(move || {
            let lock = LATE.lock();
            sender.send(()).unwrap();
            drop(lock);
        });
        assert!(is_locked.recv_timeout(Duration::from_millis(20)).is_err() && LATE.is_free());
        drop(release());
        is_locked.recv().unwrap();
        late.join().unwrap();
        assert!(!is_here() && release().is_none());
        drop(ENTERED.lock());
    }
}
