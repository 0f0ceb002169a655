//! The lanes of a domain, taken together: the list of them, barriers, room, counts, and what a fork does to them.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32 as Word;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grace::limit::{Amount, Zone};

use super::shared::{Inner, Part, Shared};
use super::twice::HeldHeads;
use super::{Pushed, QueuedTwice, Wakes};
use crate::chaos::{self, Mutant};
use crate::event::statistics::Callbacks;
use crate::gp::grace_periods::Me;
use crate::os::sync::{self, AtomicU32, AtomicU64, Condvar, Mutex, MutexGuard, Rank};
use crate::os::{futex, nap};
use crate::reclaim::head::Head;
use crate::reclaim::limit::Charged;
use crate::reclaim::llist::Chain;
use crate::reclaim::running;

/// The lanes of a domain.
#[derive(Debug)]
pub(crate) struct Lanes {
    list: Mutex<Vec<Arc<Shared>>>,
    /// Heads that went through lanes which are no longer in the list. Under its lock.
    gone: AtomicU64,
    /// Threads that wait for room.
    short: Mutex<u32>,
    /// The same, for a look without the lock.
    is_short: AtomicU32,
    room: Condvar,
}

/// The list, locked.
type List<'a> = MutexGuard<'a, Vec<Arc<Shared>>>;

/// A head that a barrier sends through a lane.
#[repr(C)]
struct Mark {
    /// First: a pointer to it is one to the mark.
    head: Head,
    /// Marks that have not come through.
    left: Arc<Word>,
}

/// What a mark has called.
unsafe extern "C" fn came_through(head: *mut Head) {
    // SAFETY: the first part of a mark, which its barrier keeps until it has come through: below.
    let left = Arc::clone(unsafe { &(*head.cast::<Mark>()).left });
    // Release: pairs with the Acquire in `Barrier::finish`; what was run before is visible there.
    if left.fetch_sub(1, Release) == 1 {
        futex::wake_all(&left);
    }
}

/// The marks of a barrier, on their way.
#[must_use = "they are to be waited for"]
pub(crate) struct Barrier {
    lanes: Vec<Arc<Shared>>,
    /// All there are before the first is pushed: they stay where they are.
    marks: Vec<Mark>,
    left: Arc<Word>,
}

impl Lanes {
    pub(crate) const fn new() -> Self {
        Self {
            list: Mutex::new(Rank::Lanes, Vec::new()),
            gone: AtomicU64::new(0),
            short: Mutex::new(Rank::LaneRoom, 0),
            is_short: AtomicU32::new(0),
            room: Condvar::new(),
        }
    }

    /// A new lane in the list.
    pub(crate) fn add(&self, core: &Charged, wakes: Wakes) -> Arc<Shared> {
        let lane = Arc::new(Shared::new(wakes));
        let mut list = sync::lock(&self.list);
        list.push(Arc::clone(&lane));
        core.charge.0.lanes.store(list.len() as u64, Relaxed);
        lane
    }

    /// Callbacks ever pushed and ever run, and what waits.
    pub(crate) fn counts(&self) -> Callbacks {
        // The list stays locked: nothing is handed over meanwhile.
        let list = sync::lock(&self.list);
        let gone = self.gone.load(Relaxed);
        let none = Callbacks { queued: gone, run: gone, bytes_waiting: 0 };
        list.iter().fold(none, |all, lane| {
            // What has finished first: it is never more than what was pushed.
            let run = lane.finished.load(Acquire);
            let queued = lane.front.0.pushed.load(Relaxed);
            let waiting = queued.saturating_sub(run) * super::shared::BYTES_A_HEAD;
            Callbacks {
                queued: all.queued + queued,
                run: all.run + run,
                bytes_waiting: all.bytes_waiting + waiting,
            }
        })
    }

    /// [`Lane::hand_over`](crate::lane::Lane::hand_over).
    pub(crate) fn hand_over(&self, from: &Shared, to: &Shared) -> Result<Pushed, QueuedTwice> {
        let (_list, chain) = self.take_away(from)?;
        if chaos::mutant(Mutant::LostLane) {
            return Ok(Pushed { unattended: false, crowded: false });
        }
        Ok(to.take_over(chain))
    }

    /// What waits in a lane, and the list, which stays locked: no barrier comes meanwhile.
    fn take_away(&self, lane: &Shared) -> Result<(List<'_>, Chain), QueuedTwice> {
        loop {
            let list = sync::lock(&self.list);
            if let Some(chain) = lane.take_away()? {
                return Ok((list, chain));
            }
            drop(list); // callbacks may want it
            drop(lane.until_still(sync::lock(&lane.inner)));
        }
    }

    /// Some callbacks are about to run. Where there is room for many again those who wait are told; not for each few, which
    /// would have them wait anew at once.
    pub(crate) fn made_room(&self, core: &Charged) {
        // Relaxed: whoever is overlooked finds the room by himself, a tick later at most.
        if self.is_short.load(Relaxed) != 0 && core.zone() == Zone::Free {
            drop(sync::lock(&self.short));
            self.room.notify_all();
        }
    }

    /// Whether the calling thread runs callbacks of one of them.
    pub(crate) fn are_run_here(&self) -> bool {
        running::in_callback() && sync::lock(&self.list).iter().any(|lane| lane.is_run_here())
    }

    /// Sends a mark through each lane in which something is.
    pub(crate) fn begin_barrier(&self, core: &Charged) -> Barrier {
        let left = Arc::new(Word::new(0));
        let mut barrier = Barrier { lanes: Vec::new(), marks: Vec::new(), left };
        // Relaxed: about; who has pushed before is seen.
        if core.charge.0.lanes.load(Relaxed) == 0 || chaos::mutant(Mutant::NoMark) {
            return barrier;
        }
        // Locked: no lane ends, or is handed over, before its mark is in it.
        let list = sync::lock(&self.list);
        for lane in list.iter().filter(|lane| !lane.is_empty()) {
            barrier.lanes.push(Arc::clone(lane));
            let left = Arc::clone(&barrier.left);
            barrier.marks.push(Mark { head: Head::new(), left });
        }
        // Relaxed: the pushes release it. Before any of them comes through.
        let marks = u32::try_from(barrier.marks.len()).expect("quiescence: 2^32 lanes of a domain");
        barrier.left.store(marks, Relaxed);
        for (lane, mark) in barrier.lanes.iter().zip(&mut barrier.marks) {
            let mark = ptr::from_mut(mark);
            // SAFETY: the barrier keeps it, and leaves it alone, until it has come through.
            let link = unsafe { Head::set(mark.cast(), came_through) };
            // SAFETY: as above.
            unsafe { lane.push_mark(link) };
        }
        barrier
    }

    /// Before a `fork`, beside those of other domains: the list, so that no lane comes, goes or is
    /// handed over.
    pub(crate) fn hold(&self) -> HeldLanes<'_> {
        HeldLanes { list: sync::lock_another(&self.list), lanes: self }
    }

    /// Before a `fork`, beside those of other domains: how many threads wait for room.
    pub(crate) fn hold_room(&self) -> HeldRoom<'_> {
        HeldRoom(sync::lock_another(&self.short))
    }
}

impl Barrier {
    /// Waits until all marks have come through. Lanes that nobody attends to are run here.
    pub(crate) fn finish(self, core: &Charged, lanes: &Lanes, me: impl Fn() -> Me) {
        // Acquire: pairs with the Release in `came_through`.
        while self.left.load(Acquire) != 0 {
            for lane in lanes.all() {
                // What is wrong with a lane its runner says, or the next push.
                let _: Result<(), QueuedTwice> = attend_for_now(&lane, core, lanes, &me);
            }
            match self.left.load(Acquire) {
                0 => break,
                // No longer than a tick: whoever attends to a lane may leave it.
                left => _ = futex::wait(&self.left, left, Some(nap::TICK)),
            }
        }
    }
}

/// Runs what is in a lane that nobody attends to.
fn attend_for_now(
    lane: &Shared,
    core: &Charged,
    lanes: &Lanes,
    me: impl Fn() -> Me,
) -> Result<(), QueuedTwice> {
    if lane.is_empty() || !lane.begin(Part::Visitor)? {
        return Ok(());
    }
    // Once: what is pushed from now on is not what the barrier waits for, and who pushes it is told that nobody attends.
    lane.round(core, lanes, true, &me)?;
    lane.depart();
    Ok(())
}

impl Lanes {
    fn all(&self) -> Vec<Arc<Shared>> {
        sync::lock(&self.list).clone()
    }

    /// A lane ends: what is left in it is the worker's. It stays in the list until that is in the queues, since a barrier looks
    /// for it here or there; the mark that it sends meanwhile goes the same way, behind what came before it.
    ///
    /// `leave` gives the worker what is left.
    pub(crate) fn end(&self, core: &Charged, lane: &Arc<Shared>, leave: impl Fn(Chain)) {
        let mut list = loop {
            let (list, left) = match self.take_away(lane) {
                Ok(taken) => taken,
                // A head was queued twice: what was queued with it is lost.
                Err(_) => (sync::lock(&self.list), Chain::EMPTY),
            };
            if left.is_empty() {
                break list;
            }
            lane.begin_end();
            drop(list); // the queues' locks come before it, and there may be no room
            leave(left);
        };
        list.retain(|other| !Arc::ptr_eq(other, lane));
        core.charge.0.lanes.store(list.len() as u64, Relaxed);
        // Relaxed: under the list's lock.
        self.gone.fetch_add(lane.finished.load(Acquire), Relaxed);
        lane.end(core);
    }

    /// Waits until there is room, for a tick at most.
    pub(crate) fn wait_for_room(&self, core: &Charged) {
        let mut short = sync::lock(&self.short);
        *short += 1;
        self.is_short.store(*short, Relaxed);
        if core.zone() == Zone::Full {
            short = sync::wait_at_most(&self.room, short, Some(nap::TICK)).0;
        }
        *short -= 1;
        self.is_short.store(*short, Relaxed);
    }
}

/// What is held across a `fork`.
pub(crate) struct HeldLanes<'a> {
    list: List<'a>,
    lanes: &'a Lanes,
}

/// The lanes themselves, held across a `fork`.
pub(crate) struct HeldInners(Vec<MutexGuard<'static, Inner>>);

/// How many threads wait for room, held across a `fork`.
pub(crate) struct HeldRoom<'a>(MutexGuard<'a, u32>);

impl HeldLanes<'_> {
    /// Takes the locks of all lanes.
    ///
    /// # Safety
    /// What is held is let go before `self` is.
    pub(crate) unsafe fn hold_inners(&self) -> HeldInners {
        let inners = self.list.iter().map(|lane| {
            // SAFETY: the list keeps the lanes alive, and by the contract it is locked until these
            // guards are gone.
            let lane: &'static Shared = unsafe { &*Arc::as_ptr(lane) };
            sync::lock_another(&lane.inner)
        });
        HeldInners(inners.collect())
    }

    /// In the child: a lane has no runner, unless it is the forking thread. What waits stays.
    /// Returns what is charged.
    pub(crate) fn after_fork(
        &self,
        held: &mut HeldInners,
        room: &mut HeldRoom<'_>,
        heads: &mut HeldHeads,
        owner: usize,
    ) -> Amount {
        *room.0 = 0;
        self.lanes.is_short.store(0, Relaxed);
        self.list.iter().zip(&mut held.0).fold(Amount::NONE, |all, (lane, inner)| {
            all.plus(lane.after_fork(inner, owner, |head| heads.note(head)))
        })
    }
}
