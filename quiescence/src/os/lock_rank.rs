//! The order of the library's locks: one table, [`Rank`], and the assertion that holds it.
//!
//! **Invariant: a thread that waits for a lock holds only locks of lower ranks.** So the waits of
//! all threads cannot form a cycle. Each [`Mutex`](super::sync::Mutex) has a rank; a build with
//! debug assertions checks it at each acquisition, and panics if the order is broken, whether or
//! not threads contend. A build without them has neither the ranks nor the check.
//!
//! - `sync::try_lock` does not wait, so it may be called in any order. A lock that it has taken
//!   counts as held: the next lock that the thread waits for must have a higher rank.
//! - A thread holds two locks of one rank only if `sync::lock_another` takes the second.
//! - A thread that waits on a condition variable holds no other lock, and no lock is held when user
//!   code is called; [`Rank::Consumers`], which users hold, is exempt.
//! - A `fork` takes the locks that are marked *fork* and have been used, in the order of the table:
//!   all of one rank, in every domain, before the first of the next rank (`os/forking.rs`). Locks
//!   that are not marked are fields of users' objects, and a program must not fork while another
//!   thread is in a method of such an object; or the table says why a fork need not take them.
//! - The locks of `quiescence-compat` come before all of these.
//!
//! The counts are plain numbers in a thread-local, which signal handlers and ending threads may
//! use; nothing is allocated. A lock is added to the counts after it is taken, and removed before
//! it is released. So a handler that runs in between may find a count that is too low, but never
//! one that is too high. Loom runs all its threads on one thread of the system, so there is no
//! check under loom.

use std::cell::Cell;

/// The rank of a lock. A lock is taken after those of the ranks above it in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(dead_code, reason = "some locks exist in some builds only")]
pub(crate) enum Rank {
    /// Held by the thread that consumes from a `WaitFreeQueue`, or updates a `List`: users hold it
    /// across whatever they call.
    Consumers,
    /// Not a lock: counted while a thread borrows its own table. User code must not run meanwhile,
    /// since it may need to borrow the same table.
    ThreadTable,
    /// The statistics server's socket and client. *fork*
    StatsServer,
    /// The board of the hash tables: the requests to their worker. *fork*
    Tables,
    /// The worker's list of domains that have something to do. *fork*
    Worker,
    /// The list of domains in use. *fork*
    Domains,
    /// The list of a domain's thread queues; the holder writes to those that threads share which
    /// are ending. *fork*
    Queues,
    /// One thread queue: its segments, and which thread runs it. *fork*
    Queue,
    /// The list of a domain's callback queues. *fork*
    CallbackQueues,
    /// One callback queue: which thread attends to it. *fork*
    CallbackQueue,
    /// How many threads wait for room in a domain's callback queues. *fork*
    CallbackQueueRoom,
    /// A domain's machine, and its driver. *fork*
    GracePeriods,
    /// What a sleepable domain's driver knows of its sections: taken under the lock above only, so
    /// a fork finds it free.
    Sections,
    /// A domain's readers. *fork*
    Registry,
    /// The heads of callbacks that wait, if they are checked. *fork*
    Heads,
    /// The guards of sleepable domains, if they are listed. *fork*
    Guards,
    /// No thread waits for it: it has a child forget fallback sections. *fork*
    FallbackSections,
    /// What the stall reporter is to report. *fork*
    Reporter,
    /// The user's stall hook: cloned under the lock, called after it. *fork*
    StallHook,
    /// The versions of cells that are waited for. *fork*
    Versions,
    /// The turns of the threads that wait for a `LocalGlobalLock`.
    LocalGlobal,
    /// Held by the thread that folds the words of the CPUs of one of the tools, or has them used
    /// again.
    Turn,
    /// Held by the thread that makes a chunk of an `IdMap`.
    IdChunks,
    /// The marks of some entries of an `IdMap`.
    IdMarks,
    /// The tables of a `CopyMap`, and which move goes on; or its nodes.
    CopyMap,
    /// What the updaters of a `Snapshot` share.
    Snapshot,
    /// What the thread of an asynchronous barrier and its task share.
    BarrierTask,
    /// The file of the statistics server's socket, removed at the end of the process.
    SocketFile,
    /// Functions to call at the end of the process, and threads to wait for then, under miri.
    AtExit,
    /// The portable futex. *fork*: late, since a thread that holds another lock may wake a sleeper.
    Futex,
    /// The list of the locks that a fork takes: `os/forking.rs`. *fork*: last, since a thread that
    /// holds another lock may enter one.
    ForkMutexes,
}

impl Rank {
    /// How many ranks there are.
    pub(super) const COUNT: usize = Self::ForkMutexes as usize + 1;
}

/// How many ranks a lock has: one where they are checked, none in other builds.
const RANKS: usize = cfg!(all(debug_assertions, not(loom))) as usize;

thread_local! {
    /// How many locks of each rank the thread holds.
    static HELD: [Cell<u32>; Rank::COUNT] = const { [const { Cell::new(0) }; Rank::COUNT] };
    /// How many locks the thread holds: most often none, and a search of the counts is dear in a
    /// build without optimisation.
    static ALL: Cell<u32> = const { Cell::new(0) };
}

/// The rank of one lock.
#[derive(Debug)]
pub(crate) struct OfLock([Rank; RANKS]);

impl OfLock {
    pub(crate) const fn new(rank: Rank) -> Self {
        Self([rank; RANKS])
    }

    /// The thread is about to wait for the lock; `another` says whether it may hold some of this
    /// rank.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn check(&self, another: bool) {
        for rank in self.0 {
            if let Some(held) = held(rank as usize + usize::from(another)) {
                panic!(
                    "quiescence: a lock of rank {rank:?} is waited for under one of rank {held}, \
                     against the order in os/lock_rank.rs"
                );
            }
        }
    }

    /// The lock has been taken.
    #[inline]
    pub(crate) fn taken(&self) -> Held {
        self.0.iter().for_each(|rank| count(*rank, 1));
        Held(self.0)
    }
}

/// A lock that the thread holds; dropped before the lock is released.
#[derive(Debug)]
pub(crate) struct Held([Rank; RANKS]);

impl Held {
    /// Calls `wait`, which releases the lock and takes it again.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn without<R>(self, wait: impl FnOnce() -> R) -> (Self, R) {
        let lock = OfLock(self.0);
        drop(self);
        assert_none_held("a condition variable is waited on");
        let result = wait();
        (lock.taken(), result)
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        self.0.iter().for_each(|rank| count(*rank, -1));
    }
}

fn count(rank: Rank, change: i32) {
    HELD.with(|held| {
        let count = &held[rank as usize];
        let new = count.get().checked_add_signed(change);
        count.set(new.expect("quiescence: a lock is let go by a thread that does not hold it"));
        // After the count, which decides: a handler in between may find one lock too many here.
        ALL.set(ALL.get().wrapping_add_signed(change));
    });
}

/// The highest rank of a lock that is held, if it is `first` or higher.
fn held(first: usize) -> Option<usize> {
    if ALL.get() == 0 {
        return None;
    }
    HELD.with(|held| (first..Rank::COUNT).rev().find(|rank| held[*rank].get() != 0))
}

/// Panics, in a build with debug assertions, if the thread holds one of the library's locks: `what`
/// is done under none. [`Rank::Consumers`] is exempt.
#[inline]
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn assert_none_held(what: &str) {
    if RANKS != 0
        && let Some(held) = held(Rank::Consumers as usize + 1)
    {
        panic!("quiescence: {what} under a lock of rank {held} of os/lock_rank.rs");
    }
}

#[cfg(all(test, debug_assertions, not(loom)))]
mod tests {
    use super::{Rank, assert_none_held};
    use crate::os::sync::{Condvar, Mutex, lock, lock_another, try_lock, wait_at_most};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    static DOMAINS: Mutex<()> = Mutex::new(Rank::Domains, ());
    static QUEUE: Mutex<()> = Mutex::new(Rank::Queue, ());
    static OTHER_QUEUE: Mutex<()> = Mutex::new(Rank::Queue, ());

    /// The message of the panic of a thread that calls `f`, if it panics.
    fn complaint(f: impl FnOnce() + Send) -> Option<String> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let result = catch_unwind(AssertUnwindSafe(f));
                assert_none_held("the end of the thread is");
                result.err().map(|payload| *payload.downcast::<String>().unwrap())
            });
            thread.join().unwrap()
        })
    }

    /// What threads do, and what they say of it in a panic; nothing, if it is right.
    #[test]
    fn a_lock_of_a_lower_rank_is_not_waited_for() {
        const DOMAINS_WAITED: &str = "a lock of rank Domains is waited for";
        let changed = Condvar::new();
        let waits = || drop(wait_at_most(&changed, lock(&QUEUE), Some(Duration::from_millis(1))));
        // One test for all: they share the locks.
        let cases: [(&(dyn Fn() + Sync), &str); 10] = [
            (&|| drop((lock(&DOMAINS), lock(&QUEUE))), ""),
            (&|| drop((lock(&QUEUE), lock(&DOMAINS))), DOMAINS_WAITED),
            // Two of one rank only by `lock_another`.
            (&|| drop((lock(&QUEUE), lock(&OTHER_QUEUE))), "a lock of rank Queue is waited for"),
            (&|| drop((lock(&QUEUE), lock_another(&OTHER_QUEUE))), ""),
            (&|| drop((lock(&QUEUE), lock_another(&DOMAINS))), DOMAINS_WAITED),
            // `try_lock` does not wait; a lock that it takes counts.
            (&|| drop((lock(&QUEUE), try_lock(&DOMAINS).unwrap())), ""),
            (&|| drop((try_lock(&QUEUE), lock(&DOMAINS))), DOMAINS_WAITED),
            // They may be released in any order, and then nothing is held. A condition variable
            // hands over one lock; under another one it is not waited on.
            (&|| [lock(&DOMAINS), lock(&QUEUE)].into_iter().for_each(drop), ""),
            (&|| drop((waits(), lock(&DOMAINS))), ""),
            (&|| drop((lock(&DOMAINS), waits())), "a condition variable is waited on"),
        ];
        for (number, (acts, says)) in cases.into_iter().enumerate() {
            let acts = || {
                acts();
                drop(lock(&DOMAINS));
            };
            let said = complaint(acts).unwrap_or_default();
            assert_eq!(said.is_empty(), says.is_empty(), "{number}: {said}");
            assert!(said.contains(says), "{number}: {said}");
        }
        // A panic of a thread that holds a lock does not take the lock from others.
        drop((lock(&DOMAINS), lock(&QUEUE)));
    }
}
