//! The callback queues of a domain, taken together: the list of them, barriers, room, counts, and
//! what a fork does to them.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grace::limit::Amount;

use super::waiting_room::WaitingRoom;
use super::{GIVEN_UP, Part, QueuedTwice, Shared, Wakes};
use crate::event::statistics::Callbacks;
use crate::gp::grace_periods::Me;
use crate::os::forking::Wanted;
use crate::os::sync::{
    self, AtomicU32 as Word, AtomicU64, Mutex, MutexGuard, Rank, const_unless_loom,
};
use crate::os::{futex, nap};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::head::Head;
use crate::reclaim::llist::Chain;
use crate::reclaim::running;

/// The callback queues of a domain.
#[derive(Debug)]
pub(crate) struct CallbackQueues {
    list: Mutex<Vec<Arc<Shared>>>,
    /// Heads that went through callback queues which are no longer in the list. Under its lock.
    gone: AtomicU64,
    /// Threads that wait for room.
    pub(crate) waiting_room: WaitingRoom,
}

/// The list, locked.
type List<'a> = MutexGuard<'a, Vec<Arc<Shared>>>;

/// A head that a barrier sends through a callback queue. It is its own owner: the barrier may be
/// left by a panic while marks are on their way.
#[repr(C)]
struct Mark {
    /// First: a pointer to it is one to the mark.
    head: Head,
    /// Marks that have not come through.
    left: Arc<Word>,
}

/// What a mark has called.
unsafe extern "C" fn came_through(head: *mut Head) {
    // SAFETY: the first part of a mark in a box, which `Mark::push` has given up; it is run once.
    let Mark { left, .. } = *unsafe { Box::from_raw(head.cast::<Mark>()) };
    // Release: pairs with the Acquire in `Barrier::finish`; what was run before is visible there.
    if left.fetch_sub(1, Release) == 1 {
        futex::wake_all(&left);
    }
}

impl Mark {
    /// Sends a new one through a callback queue.
    fn push(callback_queue: &Shared, left: &Arc<Word>) {
        let mark = Box::into_raw(Box::new(Self { head: Head::new(), left: Arc::clone(left) }));
        // SAFETY: from a box.
        let link = unsafe { Head::set(mark.cast(), came_through) };
        // SAFETY: it is the callback queue's from here on, until it has come through.
        unsafe { callback_queue.push_mark(link) };
    }
}

/// The marks of a barrier, on their way.
#[must_use = "they are to be waited for"]
pub(crate) struct Barrier {
    /// How many have not come through.
    left: Arc<Word>,
    /// [`GIVEN_UP`] before they were pushed.
    given_up: u64,
}

impl CallbackQueues {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                list: Mutex::new(Rank::CallbackQueues, Vec::new()),
                gone: AtomicU64::new(0),
                waiting_room: WaitingRoom::new(),
            }
        }
    }

    /// A new callback queue in the list.
    pub(crate) fn add(&self, domain: &DomainState, wakes: Wakes) -> Arc<Shared> {
        let callback_queue = Arc::new(Shared::new(wakes));
        let mut list = sync::lock(&self.list);
        list.push(Arc::clone(&callback_queue));
        // Under the lock, as in `end`: a fork finds it listed and counted, or neither.
        domain.charge.queues.fetch_add(1, Relaxed);
        callback_queue
    }

    /// Callbacks ever pushed and ever run, and what waits.
    pub(crate) fn counts(&self) -> Callbacks {
        // The list stays locked: nothing is handed over meanwhile.
        let list = sync::lock(&self.list);
        Callbacks::steadiest(self.gone.load(Relaxed), &mut || {
            list.iter().fold(Callbacks::default(), |all, one| all.plus(one.counts()))
        })
    }

    /// What waits in a callback queue, and the list, which stays locked: no barrier comes
    /// meanwhile.
    pub(super) fn take_away(
        &self,
        domain: &DomainState,
        callback_queue: &Shared,
    ) -> Result<(List<'_>, Chain), QueuedTwice> {
        loop {
            let list = sync::lock(&self.list);
            if let Some(chain) = callback_queue.take_away(domain)? {
                return Ok((list, chain));
            }
            drop(list); // callbacks may want it
            drop(callback_queue.until_still(sync::lock(&callback_queue.inner)));
        }
    }

    /// Whether the calling thread runs callbacks of one of them.
    pub(crate) fn are_run_here(&self) -> bool {
        running::in_callback()
            && sync::lock(&self.list).iter().any(|callback_queue| callback_queue.is_run_here())
    }

    /// Sends a mark through each callback queue in which something is.
    pub(crate) fn begin_barrier(&self) -> Barrier {
        // Acquire: pairs with the Release in `Inner::give_up`. Before the marks are pushed.
        let given_up = GIVEN_UP.load(Acquire);
        let barrier = Barrier { left: Arc::new(Word::new(0)), given_up };
        // Locked: no callback queue ends, or is handed over, before its mark is in it.
        let list = sync::lock(&self.list);
        //~ no-mark:
        let has_something = |callback_queue: &&Arc<Shared>| !callback_queue.is_empty();
        let callback_queues: Vec<_> = list.iter().filter(has_something).collect();
        let marks = u32::try_from(callback_queues.len())
            .expect("quiescence: 2^32 callback queues of a domain");
        // Relaxed: the pushes release it. Before any of them comes through.
        barrier.left.store(marks, Relaxed);
        callback_queues.iter().for_each(|one| Mark::push(one, &barrier.left));
        barrier
    }

    /// Before a `fork`: has the locks taken, so that no callback queue comes, goes or is handed on.
    pub(crate) fn hold<'o>(&'o self, wanted: &mut Wanted<'_, 'o>) {
        wanted.add(Rank::CallbackQueues, &self.list);
        self.waiting_room.hold(wanted);
    }

    /// In the child: a callback queue has no runner, unless it is the forking thread. What waits
    /// stays. Returns what is charged.
    pub(crate) fn after_fork(&self) -> Amount {
        self.waiting_room.after_fork();
        let list = sync::lock(&self.list);
        list.iter().fold(Amount::NONE, |all, one| all.plus(one.after_fork()))
    }
}

impl Barrier {
    /// Whether all marks have come through.
    #[cfg(test)]
    pub(crate) fn is_over(&self) -> bool {
        self.left.load(Acquire) == 0
    }

    /// Waits until all marks have come through. Callback queues that no thread attends to are run
    /// here.
    ///
    /// `me` may panic, and so may this: then the marks come through later, for no thread.
    pub(crate) fn finish(mut self, domain: &DomainState, me: impl Fn() -> Me) {
        // Acquire: pairs with the Release in `came_through`.
        while self.left.load(Acquire) != 0 {
            let callback_queues = sync::lock(&domain.callback_queues.list).clone();
            for callback_queue in callback_queues {
                // What is wrong with a callback queue its runner says, or the next push.
                let _: Result<(), QueuedTwice> = attend_for_now(&callback_queue, domain, &me);
            }
            // Acquire: as in `begin_barrier`.
            if GIVEN_UP.load(Acquire) != self.given_up {
                self = domain.callback_queues.begin_barrier(); // marks may have been among that
                continue;
            }
            match self.left.load(Acquire) {
                0 => break,
                // No longer than a tick: the thread that attends to a callback queue may leave it.
                left => _ = futex::wait(&self.left, left, Some(nap::TICK)),
            }
        }
    }
}

/// Runs what is in a callback queue that no thread attends to.
fn attend_for_now(
    callback_queue: &Shared,
    domain: &DomainState,
    me: impl Fn() -> Me,
) -> Result<(), QueuedTwice> {
    if callback_queue.is_empty() {
        return Ok(());
    }
    let Some(_attending) = callback_queue.begin(Part::Visitor)? else { return Ok(()) };
    // Once: what is pushed from now on is not what the barrier waits for, and who pushes it is
    // notified that no thread attends.
    callback_queue.round(domain, true, &me)?;
    Ok(())
}

impl CallbackQueues {
    /// A callback queue ends: what is left in it is the worker's. It stays in the list until that
    /// is in the queues, since `Domain::barrier` looks for it here or there; the mark that it sends
    /// meanwhile goes the same way, behind what came before it. A barrier that looks here only, as
    /// C's does, misses it: C's callback queues are handed over first.
    ///
    /// `leave` gives the worker what is left.
    pub(crate) fn end(
        &self,
        domain: &DomainState,
        callback_queue: &Arc<Shared>,
        leave: impl Fn(Chain),
    ) {
        let mut list = loop {
            let Ok((list, left)) = self.take_away(domain, callback_queue) else {
                continue; // a head was queued twice: what was queued with it is lost
            };
            if left.is_empty() {
                break list;
            }
            // From now on barriers find something in it, and visitors nothing.
            sync::lock(&callback_queue.inner).ends = true;
            drop(list); // the queues' locks come before it, and there may be no room
            leave(left);
        };
        list.retain(|other| !Arc::ptr_eq(other, callback_queue));
        domain.charge.queues.fetch_sub(1, Relaxed);
        // Relaxed: under the list's lock.
        self.gone.fetch_add(callback_queue.finished.load(Acquire), Relaxed);
        callback_queue.end(domain);
    }
}
