//! A callback queue: a queue of heads that a thread of the program runs. Its llist, its runner's
//! rounds, what it has been granted of the domain's limit. What users hold of one is
//! [`CallbackQueue`](crate::callback_queue::CallbackQueue).
//!
//! [`callback_queues`] are those of a domain; [`double_queue`] is the check for heads that are
//! queued twice.
//!
//! **Invariant [L-2]: what waits in a callback queue has been charged, but for two blocks of each
//! thread that pushes.** A callback queue may hold as many as it was granted; a thread that counts
//! beyond that has more granted first, over the limit if it must be. The domain's charge is what is
//! granted less what has begun to run, whichever thread pushes at the same time. A thread counts
//! its pushes a block at a time ([`block`]), so what is not charged yet is less than two blocks of
//! each, and more of a thread that changes callback queues. The thread that takes what was pushed
//! counts it link by link, which corrects the count and has the rest granted, before any of it
//! runs.
//!
//! **Invariant [LN-3]: the grace period of a round is asked for after its heads were taken**, and
//! so after they were pushed [LN-1] and what they end was unlinked. A round runs no more than it
//! has asked for: what is taken by others meanwhile stays for the next one.
//!
//! **Invariant [L-5]: when a head runs, all marks before it have been run.** So a barrier waits for
//! no head that another thread runs and that was pushed after its mark: such a head's function may
//! want a lock that the barrier's caller holds. A chunk ends with its first mark, which is run when
//! the heads before it are counted as finished.
//!
//! A round: take all, ask for a grace period, wait for it, run them, a chunk at a time. What is not
//! being run stands in the llist or in [`Inner::waiting`], so that a fork, a barrier and a
//! successor find it.

mod attending;
mod block;
mod callback_queue;
mod callback_queues;
mod double_queue;
mod forked;
mod granted;
mod outcome;
mod waiting_room;

use attending::Part;
pub use callback_queue::CallbackQueue;
pub(crate) use callback_queues::CallbackQueues;
pub(crate) use double_queue::{forget as forget_head, is_on as is_twice_checked};
pub(crate) use granted::amount;
pub use outcome::{Left, Pushed, QueuedTwice, Wakes};

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use grace::Urgency;
use grace::limit::Zone;

use crate::event::statistics::Callbacks;
use crate::event::trace;
use crate::gp::grace_periods::Me;
use crate::gp::wake::Line;
use crate::os::sync::{self, AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Rank};
use crate::os::{clock, nap, thread};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::head::Head;
use crate::reclaim::llist::{Chain, Found, Link, Llist, Ring};
use crate::reclaim::running;

/// What a head counts for: no thread knows the size of the object that it is in. As many fill the
/// default limit of bytes as that of objects.
pub(crate) const BYTES_A_HEAD: u64 = 256;

/// Heads that are run in one go: what a fork in the midst of them loses, and a quiescent state of
/// the runner, where it is a QSBR reader, is waited for by.
const CHUNK: u64 = 256;

/// How long a runner waits for company, at most: as long as liburcu's worker. Each round is a grace
/// period, which other threads pay for.
const COMPANY: Duration = Duration::from_millis(10);

/// From so many on it has had company. Where one thread allocates and the runner frees, both at
/// once, each call of the allocator costs several times as much as where the runner frees many
/// after each other: `docs/DESIGN.md`, "Callback queues".
const MANY: u64 = 16_384;

/// How often the runner of a quiet callback queue looks, with nothing to do.
const QUIET_LOOK: Duration = nap::TICK;

/// What those who push touch.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) llist: Llist,
    /// How many heads were pushed, as far as has been counted [L-2].
    pub(crate) pushed: AtomicU64,
    /// How many may be pushed before more has to be granted. What is charged to the domain is this
    /// less what has begun to run.
    granted: AtomicU64,
    wakes: Wakes,
    /// By which threads know which callback queue they count for.
    id: u64,
    /// How often what was taken has been counted.
    rounds: AtomicU64,
}

/// A callback queue.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) front: Line<Front>,
    pub(crate) inner: Mutex<Inner>,
    /// Tells those who wait that no callback is being run, that the pause is over, or that nothing
    /// is left to run after it.
    changed: Condvar,
    /// How many heads have been run.
    pub(crate) finished: AtomicU64,
    /// Somebody waits: no company, and an expedited grace period.
    hurried: AtomicBool,
    /// The runner waits for company, and has not been told that there is enough.
    has_little: AtomicBool,
}

/// What only the runner, and those who look for a moment, touch.
#[derive(Debug, Default)]
pub(crate) struct Inner {
    /// What has been taken and not yet run.
    pub(crate) waiting: Chain,
    /// How many links have been put there, ever. A round runs those that had been when it asked for
    /// a grace period [LN-3]: so what is put there, taken away or run by another round meanwhile
    /// changes nothing.
    entered: u64,
    /// How many were taken out of the llist, ever, but for those that were handed over.
    taken: u64,
    /// How many had been counted right before that.
    counted: u64,
    /// How many are being run, marks aside.
    claimed: u64,
    /// Whether some are being run.
    runs: bool,
    /// The thread that attends, as [`thread::token`]; else 0.
    runner: usize,
    part: Part,
    /// A runner is about to come: visitors leave the callback queue to it.
    expected: bool,
    /// Pauses that have not ended.
    paused: u32,
    stopped: bool,
    /// The callback queue ends: what was in it is on its way to the queues. Barriers send their
    /// marks after it; visitors keep out.
    ends: bool,
    /// Threads that wait for `changed`.
    pub(crate) waiters: u32,
}

/// How many times what waited in some callback queue of the process was given up, or what was being
/// run there was lost in a fork. A barrier's marks may have been among that.
static GIVEN_UP: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl Inner {
    /// Whether another thread runs callbacks.
    fn is_running(&self) -> bool {
        self.runs && self.runner != thread::token()
    }

    /// Whether a thread attends that is no visitor.
    fn has_runner(&self) -> bool {
        self.runner != 0 && self.part == Part::Runner
    }

    /// How many of those that wait had been put there when so many had.
    fn left_of(&self, entered: u64) -> u64 {
        entered.saturating_sub(self.entered - self.waiting.links())
    }

    /// Some head was queued twice: forgets what waits, whose order no thread can tell.
    fn give_up(&mut self, Ring(link): Ring) -> QueuedTwice {
        self.waiting = Chain::EMPTY;
        // Release: pairs with the Acquire in `begin_barrier`. A mark that is pushed by a thread
        // which has seen this is not among what was taken before.
        GIVEN_UP.fetch_add(1, Release);
        QueuedTwice { head: link.cast(), about: true }
    }
}

impl Shared {
    pub(crate) fn new(wakes: Wakes) -> Self {
        Self {
            front: Line(Front {
                id: block::next_id(),
                rounds: AtomicU64::new(0),
                llist: Llist::new(),
                pushed: AtomicU64::new(0),
                granted: AtomicU64::new(0),
                wakes,
            }),
            inner: Mutex::new(Rank::CallbackQueue, Inner::default()),
            changed: Condvar::new(),
            finished: AtomicU64::new(0),
            hurried: AtomicBool::new(false),
            has_little: AtomicBool::new(false),
        }
    }

    // ---- those who push -------------------------------------------------------------------------

    /// Has the runner wait for nothing but the grace period.
    pub(crate) fn hurry(&self) {
        // Release: pairs with the runner's Acquire; what was pushed before is taken in the round
        // that is hurried. A thread that finds it set does not ring again: who has set it does, and
        // the runner has not looked since.
        if !self.hurried.swap(true, AcqRel) {
            self.front.0.llist.ring();
        }
    }

    /// Pushes the mark of a barrier, and hurries.
    ///
    /// # Safety
    /// As [`CallbackQueue::push`](crate::callback_queue::CallbackQueue::push).
    pub(crate) unsafe fn push_mark(&self, mark: *mut Link) {
        // SAFETY: by the contract.
        let found = unsafe { self.front.0.llist.push(mark, true) };
        if found == Found::Asleep {
            self.front.0.llist.ring(); // `hurry` need not
        }
        self.hurry();
    }

    // ---- the runner -----------------------------------------------------------------------------

    /// [`CallbackQueue::attend`](crate::callback_queue::CallbackQueue::attend), by a thread that
    /// may wait; `me` is what it has in the domain.
    pub(crate) fn attend(
        &self,
        domain: &DomainState,
        idle_after: Option<Duration>,
        me: impl Fn() -> Me,
        mut after_round: impl FnMut(),
    ) -> Result<Left, QueuedTwice> {
        let Some(mut attending) = self.begin(Part::Runner)? else { return Ok(Left::Taken) };
        loop {
            let heard = self.front.0.llist.heard();
            if sync::lock(&self.inner).stopped {
                return attending.neglect().map(|()| Left::Stopped);
            }
            let hurried = self.hurried.swap(false, Acquire);
            let ran = self.round(domain, hurried, &me)?;
            trace::deliver();
            if ran != 0 {
                after_round();
            }
            if ran == 0 {
                if !self.rest(heard, idle_after) && attending.leave() {
                    return Ok(Left::Idle);
                }
            } else if domain.zone() == Zone::Free {
                let lazy = Duration::from_nanos(domain.grace_periods.tuning.lazy_ns());
                self.wait_for_company(heard, lazy);
            }
        }
    }

    /// Sleeps for so long, unless there is much to do, or somebody rings after `heard`.
    fn wait_for_company(&self, heard: u32, lazy: Duration) {
        // Relaxed: a hint. A thread that does not see it does not ring; the sleep ends by itself.
        self.has_little.store(true, Relaxed);
        let seen = self.counts();
        if !lazy.is_zero() && seen.queued.saturating_sub(seen.run) < MANY {
            self.front.0.llist.doze(heard, Some(lazy.min(COMPANY)));
        }
        self.has_little.store(false, Relaxed);
    }

    /// Sleeps until there is something to do. `false` if there was nothing for so long.
    fn rest(&self, heard: u32, idle_after: Option<Duration>) -> bool {
        let llist = &self.front.0.llist;
        let began_ns = idle_after.map(|_| clock::monotonic_ns());
        match self.front.0.wakes {
            Wakes::Runner => llist.sleep(heard, idle_after),
            Wakes::Never => llist.doze(heard, Some(QUIET_LOOK)),
        }
        let is_over = |began_ns: u64| {
            let idle_ns = idle_after.map_or(u128::MAX, |after| after.as_nanos());
            u128::from(clock::monotonic_ns().saturating_sub(began_ns)) >= idle_ns
        };
        !llist.is_empty() || llist.heard() != heard || !began_ns.is_some_and(is_over)
    }

    /// Waits until something has changed that somebody tells of.
    fn wait<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        inner.waiters += 1;
        inner = sync::wait(&self.changed, inner);
        inner.waiters -= 1;
        inner
    }

    /// Tells those who wait for a change.
    fn tell(&self, inner: &Inner) {
        if inner.waiters != 0 {
            self.changed.notify_all();
        }
    }

    /// Puts what is in the llist with the rest, so that the next push finds that no thread attends.
    pub(crate) fn abandon(&self, inner: &mut Inner) -> Result<(), QueuedTwice> {
        self.append(inner, Llist::abandon)
    }

    /// Puts what is in the llist with the rest. Where a visitor does, the next push finds that no
    /// thread attends: the visitor leaves it to the thread that comes then.
    pub(crate) fn take(&self, inner: &mut Inner) -> Result<(), QueuedTwice> {
        match inner.part {
            Part::Runner => self.append(inner, Llist::take),
            Part::Visitor => self.abandon(inner),
        }
    }

    fn append(
        &self,
        inner: &mut Inner,
        take: impl FnOnce(&Llist) -> *mut Link,
    ) -> Result<(), QueuedTwice> {
        inner.counted = self.front.0.pushed.load(Relaxed); // first: see `correct`
        let (links, count) = (inner.waiting.links(), inner.waiting.count());
        // SAFETY: taken just now, by `Llist::take` or `Llist::abandon`.
        let appended = unsafe { inner.waiting.append(take(&self.front.0.llist)) };
        appended.map_err(|ring| inner.give_up(ring))?;
        inner.entered += inner.waiting.links() - links;
        inner.taken += inner.waiting.count() - count;
        Ok(())
    }

    /// Takes all there is, waits for a grace period, and runs it. Returns how many were run, marks
    /// included.
    pub(crate) fn round(
        &self,
        domain: &DomainState,
        hurried: bool,
        me: impl Fn() -> Me,
    ) -> Result<u64, QueuedTwice> {
        let mut inner = sync::lock(&self.inner);
        if inner.ends {
            return Ok(0); // what is in it now goes another way
        }
        self.take(&mut inner)?; // before the request [LN-3]
        self.correct(domain, &mut inner);
        if inner.waiting.is_empty() {
            return Ok(0);
        }
        let presses = hurried || domain.zone() != Zone::Free;
        let urgency = if presses { Urgency::Expedited } else { Urgency::Normal };
        // After the heads were taken [LN-3], [GP-9].
        let cookie = domain.grace_periods.lock().request(urgency);
        let entered = inner.entered;
        trace::batch_closed(domain.grace_periods.source(), inner.waiting.count(), cookie);
        drop(inner);
        while !domain.grace_periods.wait(cookie, urgency, me()) {} //~ early-callback-queue
        let began_ns = clock::thread_cpu_ns();
        let mut ran = 0;
        loop {
            match self.run_chunk(domain, entered)? {
                0 => break,
                some => ran += some,
            }
        }
        let took_ns = clock::thread_cpu_ns().saturating_sub(began_ns);
        trace::worker_ran_callbacks(domain.grace_periods.source(), took_ns);
        Ok(ran)
    }

    /// Runs some of what waits, of those that waited when so many had `entered`, up to the first
    /// mark [L-5]. Returns how many, marks included.
    fn run_chunk(&self, domain: &DomainState, entered: u64) -> Result<u64, QueuedTwice> {
        let mut inner = sync::lock(&self.inner);
        while inner.paused != 0 && inner.left_of(entered) != 0 {
            inner = self.wait(inner);
        }
        let ripe = inner.left_of(entered); //~ unripe-heads
        let chunk = inner.waiting.split(CHUNK.min(ripe));
        let mut chunk = chunk.map_err(|ring| inner.give_up(ring))?;
        if chunk.is_empty() {
            return Ok(0);
        }
        let count = chunk.count();
        inner.claimed = count;
        inner.runs = true;
        self.give_back(domain, count);
        domain.callback_queues.waiting_room.made_room(domain);
        drop(inner);
        let (mut ran, mut mark) = (0, None);
        running::running_callbacks(&domain.grace_periods, |_| {
            while let Some((link, is_mark)) = chunk.pop() {
                ran += 1;
                if is_mark {
                    mark = Some(link); // the last link
                    continue;
                }
                if double_queue::is_on() {
                    double_queue::forget(link.cast());
                }
                // SAFETY: by the contract of `push`; its grace period is over, and it was taken
                // once.
                unsafe { Head::run(link.cast()) };
                domain.callback_queues.waiting_room.begin_anew(1);
            }
        });
        trace::callbacks_run(domain.grace_periods.source(), count);
        domain.callback_queues.waiting_room.begin_anew(0);
        let mut inner = sync::lock(&self.inner);
        // Under the lock: a fork finds them finished or claimed, not both. Release: who sees the
        // count has what they did behind it.
        self.finished.fetch_add(count, Release);
        inner.claimed = 0;
        inner.runs = false;
        self.tell(&inner);
        drop(inner);
        // Last: who waits for it finds everything counted.
        if let Some(link) = mark {
            // SAFETY: by the contract of `push_mark`; once.
            unsafe { Head::run(link.cast()) };
        }
        Ok(ran)
    }

    // ---- everybody ------------------------------------------------------------------------------

    fn stop(&self, stopped: bool) {
        sync::lock(&self.inner).stopped = stopped;
        self.front.0.llist.ring();
    }

    pub(crate) fn is_empty(&self) -> bool {
        let inner = sync::lock(&self.inner);
        // In this order: what is taken is put with the rest under the lock.
        inner.waiting.is_empty() && !inner.runs && !inner.ends && self.front.0.llist.is_empty()
    }

    /// Heads pushed, as far as has been counted, and run.
    fn counts(&self) -> Callbacks {
        // What has finished first: it is never more than what was pushed.
        let run = self.finished.load(Acquire);
        let queued = self.front.0.pushed.load(Relaxed);
        let bytes_waiting = queued.saturating_sub(run) * BYTES_A_HEAD;
        Callbacks { queued, run, bytes_waiting }
    }

    /// Whether the calling thread runs callbacks of it.
    pub(crate) fn is_run_here(&self) -> bool {
        let inner = sync::lock(&self.inner);
        inner.runs && inner.runner == thread::token()
    }

    /// Waits until no callback is being run, unless by the calling thread.
    pub(crate) fn until_still<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
    ) -> MutexGuard<'a, Inner> {
        while inner.is_running() {
            inner = self.wait(inner);
        }
        inner
    }

    /// All that waits: it is no longer this callback queue's, nor are its numbers. `None` if
    /// callbacks are being run, which must come before what follows them:
    /// [`until_still`](Self::until_still).
    pub(crate) fn take_away(&self, domain: &DomainState) -> Result<Option<Chain>, QueuedTwice> {
        let mut inner = sync::lock(&self.inner);
        if inner.is_running() {
            return Ok(None);
        }
        if inner.runner == 0 {
            self.abandon(&mut inner)?;
        } else {
            self.take(&mut inner)?;
            // If it sleeps, no thread would wake it now.
            self.front.0.llist.ring();
        }
        self.correct(domain, &mut inner);
        let chain = std::mem::replace(&mut inner.waiting, Chain::EMPTY);
        inner.taken -= chain.count();
        self.tell(&inner); // who waits for the end of a pause has nothing to run now
        // What is granted first: else a push might find more than there is.
        self.front.0.granted.fetch_sub(chain.count(), AcqRel);
        self.front.0.pushed.fetch_sub(chain.count(), AcqRel);
        Ok(Some(chain))
    }

    /// Takes over what another callback queue has had, charge and all.
    pub(crate) fn take_over(&self, mut chain: Chain) -> Pushed {
        let front = &self.front.0;
        // What is counted first: else it might look as if more were granted than is needed.
        front.pushed.fetch_add(chain.count(), Relaxed);
        front.granted.fetch_add(chain.count(), Relaxed);
        let (mut unattended, mut hurried) = (false, false);
        while let Some((link, marks)) = chain.pop() {
            hurried |= marks;
            // SAFETY: taken away from another callback queue: it is in none.
            match unsafe { front.llist.push(link, marks) } {
                Found::Asleep => front.llist.ring(),
                Found::Unattended => unattended = true,
                Found::Awake | Found::Itself => {}
            }
        }
        if hurried {
            self.hurry();
        }
        Pushed { unattended, crowded: false }
    }

    /// The callback queue ends, with nothing in it: what it was granted and has not used goes back.
    pub(crate) fn end(&self, domain: &DomainState) {
        let taken = sync::lock(&self.inner).taken;
        let unused = self.front.0.granted.load(Relaxed).saturating_sub(taken);
        domain.charge.give_back(amount(unused));
    }
}
