//! Where threads that push wait for room, when a domain is at its limit: let go together, each with
//! a share of the room.
//!
//! A thread that happens to have a CPU when room is made could take all of it before the others
//! have woken up, again and again. So those who wait are let go as a *cohort*, and the room is
//! divided among them.
//!
//! **Invariant [L-4]: while a thread of a cohort has not come back yet, a thread that has pushed
//! its share waits, too, but a tick at most.** It is in the next cohort then, which is let go when
//! there is room and the one before has come back whole. So of two threads that push as fast as
//! they can, one gets no more than a share ahead of the other in a tick.

use std::sync::atomic::Ordering::Relaxed;

use grace::limit::{Amount, Zone};
use grace::vain::Vain;

use super::block;
use super::granted::heads;
use crate::os::forking::{AtFork, Wanted};
use crate::os::nap;
use crate::os::sync::{self, AtomicU64, Condvar, Mutex, MutexGuard, Rank, const_unless_loom};
use crate::reclaim::domain_state::DomainState;

/// Those who wait for room in a domain.
#[derive(Debug)]
pub(crate) struct WaitingRoom {
    cohorts: Mutex<Cohorts>,
    /// How many wait or have not come back, for a look without the lock.
    away: AtomicU64,
    let_go: Condvar,
    /// A [`Vain`]: one more than the ticks in which threads have waited and no callback has
    /// returned, or 0 if none runs. It begins anew with each that returns beside threads that wait.
    vain: AtomicU64,
}

/// Who waits, and who was let go and has not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cohorts {
    /// Which cohort is let go next.
    number: u64,
    /// Threads of that one.
    waiting: u64,
    /// Threads of the one before that have not come back.
    returning: u64,
    /// Heads that each of these may push before it waits again.
    share: u64,
}

impl Cohorts {
    const NONE: Self = Self { number: 0, waiting: 0, returning: 0, share: 0 };

    /// Lets the next cohort go, if the one before has come back. Returns whether it has.
    fn release(&mut self, room: u64) -> bool {
        let lets = self.returning == 0 && self.waiting != 0;
        if lets {
            (self.number, self.share) = (self.number + 1, room / self.waiting);
            (self.returning, self.waiting) = (self.waiting, 0);
        }
        lets
    }

    /// Whether the cohort of that number was let go.
    fn is_released(&self, number: u64) -> bool {
        self.number != number
    }

    /// What a thread of that cohort may push now. One that was not let go in time has as much of
    /// what there is as the others who wait.
    fn share_of(&self, number: u64, domain: &DomainState) -> u64 {
        match domain.zone() {
            Zone::Full => 0,
            _ if self.is_released(number) => self.share.max(block::MOST),
            _ => (room(domain) / (self.waiting + self.returning + 1)).max(block::MOST),
        }
    }

    /// A thread of that cohort comes back, let go or not.
    fn come_back(&mut self, number: u64) {
        let of = if self.is_released(number) { &mut self.returning } else { &mut self.waiting };
        // In a child that a handler has forked on top of a wait the count is nothing.
        *of = of.saturating_sub(1);
    }
}

impl WaitingRoom {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                cohorts: Mutex::new(Rank::CallbackQueueRoom, Cohorts::NONE),
                away: AtomicU64::new(0),
                let_go: Condvar::new(),
                vain: AtomicU64::new(0),
            }
        }
    }

    /// Whether some thread waits, or was let go and has not come back.
    pub(super) fn is_used(&self) -> bool {
        self.away.load(Relaxed) != 0 // a hint: the lock is asked by the thread that waits
    }

    fn changed(&self, cohorts: &Cohorts) {
        self.away.store(cohorts.waiting + cohorts.returning, Relaxed);
    }

    /// Waits until there is room and those who were let go before have come back, for a tick at
    /// most.
    ///
    /// A callback that runs may want a lock that threads hold while they push: until it returns no
    /// wait brings room, and after each tick one push more in a row does not wait, up to a chunk.
    pub(crate) fn wait(&self, domain: &DomainState) {
        let vain = Vain(self.vain.load(Relaxed)); // a hint
        if domain.zone() == Zone::Full && !vain.waits(domain.charge.get().objects) {
            return;
        }
        let mut cohorts = sync::lock(&self.cohorts);
        let number = cohorts.number;
        if cohorts.returning != 0 || cohorts.waiting != 0 || domain.zone() == Zone::Full {
            cohorts.waiting += 1;
            self.changed(&cohorts);
            // Once: a thread that wakes up for no reason comes back early, which harms no other.
            cohorts = sync::wait_at_most(&self.let_go, cohorts, Some(nap::TICK)).0;
            cohorts.come_back(number);
            if vain.in_a_row() != 0 && domain.zone() == Zone::Full {
                self.waited_in_vain(vain);
            }
        }
        block::has_waited(cohorts.share_of(number, domain));
        self.let_next_go(domain, cohorts);
    }

    /// A thread that found this has waited a tick: counts it, if no callback has returned meanwhile
    /// and no other thread has counted it.
    fn waited_in_vain(&self, Vain(vain): Vain) {
        _ = self.vain.compare_exchange(vain, vain + 1, Relaxed, Relaxed); // a hint
    }

    /// Some callbacks are about to run. Where there is room for many again those who wait are let
    /// go; not for each few, which would have them wait anew at once.
    pub(crate) fn made_room(&self, domain: &DomainState) {
        self.begin_anew(1);
        // A thread that is overlooked finds the room by itself, a tick later at most.
        if self.is_used() && domain.zone() == Zone::Free {
            self.let_next_go(domain, sync::lock(&self.cohorts));
        }
    }

    /// Callbacks are about to run, or one has returned, and `count` is 1; or all have, and it is 0.
    pub(super) fn begin_anew(&self, count: u64) {
        // Relaxed, both: a hint. Mostly there is nothing to write.
        let vain = Vain(self.vain.load(Relaxed));
        if vain.in_a_row() != count || self.is_used() {
            self.vain.store(vain.anew(count), Relaxed);
        }
    }

    fn let_next_go(&self, domain: &DomainState, mut cohorts: MutexGuard<'_, Cohorts>) {
        let lets = domain.zone() == Zone::Free && cohorts.release(room(domain));
        self.changed(&cohorts);
        if lets {
            // Under the lock: who comes next is not of this cohort.
            self.let_go.notify_all();
        }
    }

    /// Before a `fork`: has the lock taken.
    pub(super) fn hold<'o>(&'o self, wanted: &mut Wanted<'_, 'o>) {
        wanted.add(Rank::CallbackQueueRoom, &self.cohorts);
    }

    /// In the child, which has none of those who wait.
    pub(super) fn after_fork(&self) {
        self.begin_anew(0);
        let mut cohorts = sync::lock(&self.cohorts);
        *cohorts = Cohorts { number: cohorts.number + 1, ..Cohorts::NONE };
        self.changed(&cohorts);
    }
}

impl AtFork for Cohorts {}

/// For how many heads there is room.
fn room(domain: &DomainState) -> u64 {
    let (limit, charged) = (domain.limit(), domain.charge.get());
    heads(Amount {
        objects: limit.objects.saturating_sub(charged.objects),
        bytes: limit.bytes.saturating_sub(charged.bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback_queue::{CallbackQueue, Wakes};
    use crate::raw::Head;
    use crate::{Domain, tuning::Tuning};

    /// All that can happen to three threads, one after the other: at most one cohort is away, no
    /// thread is in two, and each one is let go that stays.
    #[test]
    fn each_cohort_is_released_when_the_one_before_has_come_back() {
        fn explore(cohorts: Cohorts, waits: [Option<u64>; 3], steps: u32) {
            let of_this = |number: &u64| !cohorts.is_released(*number);
            let waiting = waits.iter().flatten().filter(|number| of_this(number)).count() as u64;
            let returning = waits.iter().flatten().filter(|number| !of_this(number)).count() as u64;
            assert_eq!((cohorts.waiting, cohorts.returning), (waiting, returning));
            if steps == 0 {
                return;
            }
            let mut next = cohorts;
            let lets = next.release(100);
            assert_eq!(lets, waiting != 0 && returning == 0, "{cohorts:?}");
            assert!(!lets || next.share == 100 / waiting && next.waiting == 0);
            explore(next, waits, steps - 1);
            for thread in 0..waits.len() {
                let (mut next, mut waits) = (cohorts, waits);
                match waits[thread].take() {
                    Some(number) => next.come_back(number),
                    None => {
                        next.waiting += 1;
                        waits[thread] = Some(next.number);
                    }
                }
                explore(next, waits, steps - 1);
            }
        }
        explore(Cohorts::NONE, [None; 3], 8);
    }

    unsafe extern "C" fn free(head: *mut Head) {
        // SAFETY: from a box, in `push`.
        drop(unsafe { Box::from_raw(head) });
    }

    /// A domain in which so many objects may wait, and a callback queue of it.
    fn queue_of_domain(objects_max: u64) -> (Domain, CallbackQueue) {
        let domain = Domain::new();
        domain.tune(Tuning { objects_max, ..Tuning::default() });
        let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
        (domain, callback_queue)
    }

    /// Pushes so many heads. Returns how many of these pushes were to wait.
    fn push(callback_queue: &CallbackQueue, count: u64) -> u64 {
        let push = |_: &u64| {
            let head = Box::into_raw(Box::new(Head::new()));
            // SAFETY: no thread reads it.
            unsafe { callback_queue.push(head, free) }.unwrap().crowded
        };
        (0..count).filter(push).count() as u64
    }

    /// At the limit, threads that wait at the same time count as one, and a callback that returns
    /// makes all wait again; nothing is counted while none runs.
    #[test]
    fn waits_become_rarer_only_while_no_callback_returns() {
        let (domain, callback_queue) = queue_of_domain(100);
        let core = domain.core();
        let room = &core.callback_queues.waiting_room;
        assert_ne!(push(&callback_queue, 110), 0);
        let vain = || Vain(room.vain.load(Relaxed)).in_a_row();
        room.wait(core);
        assert_eq!(vain(), 0, "beside a reader that stalls all wait");
        room.made_room(core);
        let before = Vain(room.vain.load(Relaxed));
        room.wait(core);
        assert_eq!(vain(), 2);
        room.waited_in_vain(before);
        assert_eq!(vain(), 2, "it began to wait before the other one came back");
        for _ in 0..10 {
            _ = push(&callback_queue, 1);
            let (before, is_turn) = (vain(), core.charge.get().objects.is_multiple_of(vain()));
            room.wait(core);
            assert_eq!(vain() - before, u64::from(is_turn));
        }
        room.begin_anew(1);
        assert_eq!(vain(), 1);
        let before = Vain(room.vain.load(Relaxed));
        room.away.store(1, Relaxed);
        room.begin_anew(1);
        room.waited_in_vain(before);
        assert_eq!(vain(), 1, "a callback has returned while it waited");
        room.away.store(0, Relaxed);
        room.begin_anew(0);
        assert_eq!(vain(), 0, "none runs");
        domain.barrier();
    }

    /// Another thread waits for room: what is to spare is for those who have waited.
    #[test]
    fn a_thread_that_has_had_its_share_waits() {
        let (domain, callback_queue) = queue_of_domain(1_000);
        let core = domain.core();
        let room = &core.callback_queues.waiting_room;
        assert_eq!(push(&callback_queue, 10), 0);
        let another = |change: fn(&mut Cohorts)| {
            let mut cohorts = sync::lock(&room.cohorts);
            change(&mut cohorts);
            room.changed(&cohorts);
        };
        another(|cohorts| cohorts.waiting += 1);
        block::has_waited(0);
        assert_eq!(push(&callback_queue, 10), 10);
        room.made_room(core);
        let share = sync::lock(&room.cohorts).share;
        assert!((900..=980).contains(&share), "all there is, for one: {share}");
        assert_eq!(push(&callback_queue, 10), 10, "it was let go, and has not come back");
        room.wait(core);
        assert_eq!(push(&callback_queue, 10), 0, "a tick is over");
        block::has_waited(5);
        assert_eq!(push(&callback_queue, 10), 6, "the fifth is the last one of its share");
        another(|cohorts| cohorts.come_back(0));
        assert_eq!(push(&callback_queue, 10), 0, "no thread waits");
        domain.barrier();
    }
}
