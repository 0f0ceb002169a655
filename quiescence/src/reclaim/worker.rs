//! The worker: one thread per process that does what no other thread does for waiting callbacks.
//!
//! It starts with the first callback that is ever queued. While some domain has callbacks waiting
//! it comes by: closes batches, takes steps of grace periods, runs what is ready. It never waits
//! for one domain's readers, so a stalled domain delays no other one (except through a callback
//! that waits, as one that retires at the limit does). Callbacks that were just queued may wait for
//! more to share a grace period with, as long as the domain's tuning says
//! ([`Tuning::lazy`](crate::tuning::Tuning)); for those that wait for a grace period or are ready
//! the worker comes at every [`TICK`](nap::TICK). When nothing waits anywhere it sleeps without a
//! timer: an idle process is idle.
//!
//! A turn in one domain, all its queues together, ends after a few times the length of a go
//! ([`grace::worker::turn_is_over`]); the next turn continues with the queue after the one at which
//! this turn ended. So no domain delays the others for longer, and no queue the others of its
//! domain; but a go of a few dozen callbacks is not cut short, however long these take.
//!
//! The simulator has a copy of this loop, in `simulate/src/ours/worker.rs`. To be kept equal by
//! hand: the order of a turn in `tend`, which queues `run_queues` runs and where it begins, what
//! `attention_or_forget` asks, when `close_at_ns` is set anew, and when an announcement makes the
//! worker come. The decisions are in `grace::worker`, which both call.
//!
//! The CPU time that the worker spends on a domain's grace periods is measured, and kept within the
//! domain's budget: after an expensive turn it leaves the domain's grace periods alone for longer
//! than a tick, unless they are urgent. In a domain under `poll` the next turn follows at once.
//!
//! **Invariant [W-1]: user code that runs on the worker runs inside `user_code::caught`**:
//! callbacks, drops of objects and of panic payloads, wakers (called, and dropped with their
//! domain), subscribers of `tracing`. So none of their panics ends the thread. If the worker ends
//! all the same, by an error in the library, the next one takes over its domains (`start_anew`),
//! and [`Statistics::worker_restarts`](crate::report::Statistics) counts that.
//!
//! **Invariant [W-2]: before it has begun with a queue, the worker does not wait for that queue's
//! lock, nor for the domain's machine.** A thread that loses its CPU while it holds one of them (a
//! thread of low priority among busy ones: for seconds) delays no other domain: the worker
//! continues, and comes back at the next tick. It still waits for both locks after it has run
//! callbacks, to record that; for the machine's and the registry's once it has begun to drive; for
//! the lock of the list of queues, under which other threads wait for a queue's lock; and when the
//! system or the allocator makes it wait, as when it unmaps memory while another thread is stopped
//! in `mmap`.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use grace::Urgency;
use grace::driver::TICK_NS;
use grace::limit::Zone;
use grace::worker::{RUNS_PER_TURN, advances, closes, first_turn, next_turn, stays, turn_is_over};

use crate::event::trace;
use crate::gp::grace_periods::{Attention, BUSY_NS, Me};
use crate::os::forking::{AtFork, ForkMutex};
use crate::os::sync::{self, Condvar, MutexGuard, Rank, const_unless_loom};
use crate::os::{clock, exit::OwnThread, nap, user_code};
use crate::reclaim::domain_state::{self, DomainState, Handle, Named, WeakHandle};
use crate::reclaim::thread_queue::{Queue, Wants};
use crate::reclaim::{local, rescan};

mod tasks;

use tasks::{Task, Tasks};

const_unless_loom! {
    static WORKER: ForkMutex<State> = ForkMutex::new(Rank::Worker, State {
        thread: OwnThread::NONE,
        domains: Tasks::new(),
        in_hand: None,
        to_end: Vec::new(),
    });
    static WORK: Condvar = Condvar::new();
}

/// How many times the worker has ended by an error, and another one was to replace it.
pub(crate) static RESTARTS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct State {
    thread: OwnThread,
    /// Domains with something to do. Not kept alive: a domain that ends runs what waits in it
    /// itself.
    domains: Tasks,
    /// The domain of the worker's present turn.
    in_hand: Option<WeakHandle>,
    /// Handles that the worker is to drop.
    to_end: Vec<Handle>,
}

/// The time of that turn.
fn due(turn: Attention, now_ns: u64, close_at_ns: u64) -> u64 {
    match turn {
        Attention::AtOnce => now_ns,
        Attention::Within(ns) => now_ns.saturating_add(ns),
        Attention::AtTick => now_ns + TICK_NS,
        Attention::None => close_at_ns.max(now_ns),
    }
}

/// Tells the worker that `handle` has callbacks, or needs a grace period: then it comes within a
/// tick. Returns whether there is a worker.
pub(crate) fn announce(handle: &Handle) -> bool {
    expect(handle, first_turn(handle.grace_periods.attention()))
}

/// Does what can be done of a domain's grace period without waiting. If the engine works at the
/// tick, the worker does the rest, which may know of callbacks alone, and let them wait; or the
/// caller, if the system gives the worker no thread.
pub(crate) fn advance_for_now(tag: &dyn Named) {
    let grace_periods = &tag.core().grace_periods;
    grace_periods.advance(Me::this_thread());
    if grace_periods.attention() != Attention::None && !announce(&tag.handle()) {
        grace_periods.advance_at(Me::this_thread(), true);
    }
}

/// Has the worker come to `handle` now. Returns whether there is a worker.
pub(crate) fn attend(handle: &Handle) -> bool {
    expect(handle, Attention::AtOnce)
}

/// Has the worker come to `handle` at that turn at the latest. Returns whether there is a worker.
fn expect(handle: &Handle, turn: Attention) -> bool {
    let mut state = WORKER.lock();
    let now_ns = clock::monotonic_ns();
    let close_at_ns = now_ns.saturating_add(handle.grace_periods.tuning.lazy_ns());
    let due_ns = due(turn, now_ns, close_at_ns);
    let is_known = handle.queues.announced.swap(true, Relaxed);
    let (mut is_listed, mut is_sooner) = (false, false);
    state.domains.change(ptr::from_ref::<DomainState>(handle), &mut |task| {
        (is_listed, is_sooner) = (true, due_ns < task.due_ns);
        task.due_ns = task.due_ns.min(due_ns);
    });
    // If it is known and not in the list, the worker is in a turn there, and at its end sees what
    // is to do. (If it is in the list and not known, it is there for what it keeps.)
    if !is_known && !is_listed {
        is_sooner = state.domains.add(Task::new(handle.downgrade(), due_ns, close_at_ns));
    }
    // Else the worker wakes up before this task is due, and finds it then.
    if is_sooner {
        WORK.notify_one();
    }
    start(state) // also for a domain that is known: the worker may have ended with the process
}

/// Has the worker come to `handle` now, and close what is open there. Returns whether there is a
/// worker.
pub(crate) fn hurry(handle: &Handle) -> bool {
    // Release: pairs with the Acquire in `tend`; the worker that sees the flag closes what was
    // queued before it was set.
    handle.queues.hurried.store(true, Release);
    attend(handle)
}

/// The tuning of `handle` has changed: its open callbacks wait no longer than the new `lazy` says.
pub(crate) fn retune(handle: &Handle) {
    let mut state = WORKER.lock();
    let lazy_ns = handle.grace_periods.tuning.lazy_ns();
    let close_at_ns = clock::monotonic_ns().saturating_add(lazy_ns);
    // If it is not in the list, the worker is in a turn there, and at its end sees the tuning.
    state.domains.change(ptr::from_ref::<DomainState>(handle), &mut |task| {
        task.close_at_ns = task.close_at_ns.min(close_at_ns);
        task.due_ns = task.due_ns.min(task.close_at_ns);
    });
    WORK.notify_one();
}

/// A domain ends that was in the list of those in use: takes it out of that, of the worker's and of
/// the thread's. No lock of the library is held. At once, so that its memory does not stay
/// allocated until its turn, however long its `lazy` is.
pub(crate) fn domain_ends(domain: &DomainState) {
    domain_state::forget(domain);
    // Relaxed: set by a thread that had a handle; a domain in the list has been announced, unless
    // it may be there for what it keeps.
    if domain.queues.announced.load(Relaxed) || domain.frees_kept.is_some() {
        let forgotten = WORKER.lock().domains.remove(domain);
        drop(forgotten);
    }
    local::ended(domain);
}

/// Has the worker drop a handle: if it is the last one the domain ends, which runs what waits in
/// it, and the calling thread is in a section or a callback. If there is no worker, the next
/// announcement tries again.
pub(crate) fn end_domain(handle: Handle) {
    let mut state = WORKER.lock();
    state.to_end.push(handle);
    WORK.notify_one();
    start(state);
}

/// Starts the thread, unless there is one, and unlocks. Returns whether there is one now. If the
/// system gives none, the callbacks wait for their threads' next updates or a barrier, and the next
/// announcement tries again: the domains of the list are no longer announced.
fn start(mut state: MutexGuard<'static, State>) -> bool {
    let mut refused = Vec::new();
    let started = state.thread.start("quiescence", run);
    if !started {
        let tasks = state.domains.take_all();
        refused.extend(tasks.filter_map(|task| task.domain.upgrade()));
        refused.iter().for_each(|handle: &Handle| handle.queues.announced.store(false, Relaxed));
    }
    drop(state);
    // If one is the last handle its domain ends here, and runs callbacks: without the lock.
    drop(refused);
    started
}

/// The worker has ended by an error in the library: another one replaces it, and takes over its
/// domains. If the system gives no thread, the next announcement tries again.
fn start_anew() {
    RESTARTS.fetch_add(1, Relaxed); // a statistic
    let mut state = WORKER.lock();
    // Not at once: if this domain caused the error, the next worker pauses in between.
    let due_ns = clock::monotonic_ns() + TICK_NS;
    if let Some(domain) = state.in_hand.take() {
        state.domains.add(Task::new(domain, due_ns, due_ns));
    }
    // Unless the process ends: then the worker has ended as it was asked to.
    if !state.thread.note_end() {
        start(state);
    }
}

fn run() {
    // It drops the payload of a panic: the standard library would abort if that drop panicked.
    if !user_code::is_whole(work) {
        start_anew();
    }
}

fn work() {
    let mut state = WORKER.lock();
    let mut restless = false;
    loop {
        state = pause(state, restless);
        if state.thread.is_to_end {
            _ = state.thread.note_end();
            return;
        }
        let due = state.domains.take_due(clock::monotonic_ns());
        let mut turn = due.and_then(|task| Some((task.domain.upgrade()?, task)));
        if let Some((domain, task)) = &turn {
            // During its turn, also if it was in the list only for what it keeps.
            domain.queues.announced.store(true, Relaxed);
            state.in_hand = Some(task.domain.clone());
        }
        let to_end = std::mem::take(&mut state.to_end);
        drop(state);
        drop(to_end);
        #[cfg(test)]
        tests::end_if_asked();
        if let Some((domain, task)) = &mut turn {
            tend(domain, task);
        }
        trace::deliver();
        state = WORKER.lock();
        state.in_hand = None;
        restless = false;
        if let Some((domain, mut task)) = turn {
            // Under the lock that `announce` takes: if nothing is left to do, a callback that is
            // added from now on announces the domain again.
            let attention = attention_or_forget(&domain, &mut task);
            restless = attention == Attention::AtOnce;
            if attention != Attention::None {
                state.domains.add(task);
            }
            drop(state);
            // If it is the last handle its domain ends here, and runs callbacks: without the lock.
            drop(domain);
            state = WORKER.lock();
        }
    }
}

/// Waits until some domain's turn has come. If `restless`, a domain needs another turn at once:
/// only yields the CPU.
fn pause(mut state: MutexGuard<'static, State>, restless: bool) -> MutexGuard<'static, State> {
    if restless {
        drop(state);
        std::thread::yield_now();
        return WORKER.lock();
    }
    while !state.thread.is_to_end && state.to_end.is_empty() {
        let now_ns = clock::monotonic_ns();
        match state.domains.first_due_ns() {
            Some(due_ns) if due_ns <= now_ns => return state,
            Some(due_ns) => {
                let left = Duration::from_nanos(due_ns - now_ns);
                state = sync::wait_at_most(&WORK, state, Some(left)).0;
            }
            None => state = sync::wait(&WORK, state),
        }
    }
    state
}

/// Sets when the domain's next turn is due, and returns whether it needs one; if not, the next
/// callback must announce the domain.
fn attention_or_forget(domain: &DomainState, task: &mut Task) -> Attention {
    let now_ns = clock::monotonic_ns();
    let lazily_at_ns = now_ns.saturating_add(domain.grace_periods.tuning.lazy_ns());
    let mut asked = domain.grace_periods.attention();
    if task.hurries_still {
        asked = asked.max(Attention::Within(BUSY_NS));
    }
    let wants =
        if asked == Attention::None { domain.queues.leave() } else { domain.queues.wants() };
    let hurried = domain.queues.hurried.load(Relaxed);
    // See `retune`.
    task.close_at_ns = task.close_at_ns.min(lazily_at_ns);
    task.due_ns = due(next_turn(asked, wants, hurried || task.has_more), now_ns, task.close_at_ns);
    if domain.grace_periods.hazards.is_some() && wants != Wants::Nothing {
        // Its grace periods wait for no reader: an object is freed within two turns (in the first
        // the worker may leave it to its thread), so within `2 * lazy_ns`.
        task.due_ns = task.due_ns.min(lazily_at_ns);
    }
    // After the queues: running them is what puts objects into `kept`. Not before now, so that its
    // next turn comes after those of all domains that are due by now.
    let kept_due_ns = domain.kept.due_ns().map(|due_ns| due_ns.max(now_ns));
    if let Some(due_ns) = kept_due_ns {
        // If it stays for these alone, which may be due late, it is not announced: what is queued
        // from now on brings its turn forward.
        task.due_ns = if stays(asked, wants) { task.due_ns.min(due_ns) } else { due_ns };
    }
    let stays = stays(asked, wants) || kept_due_ns.is_some();
    if stays { asked.max(Attention::AtTick) } else { Attention::None }
}

/// Does what can be done in a domain without waiting.
fn tend(domain: &DomainState, task: &mut Task) {
    let now_ns = clock::monotonic_ns();
    // Before the queues are looked at: one may be new. Acquire: pairs with the Release in `hurry`.
    let hurried =
        domain.queues.hurried.swap(false, Acquire) | std::mem::take(&mut task.hurries_still);
    //~ lazy-forever:
    if let Some(urgency) = closes(hurried, now_ns >= task.close_at_ns) {
        // A queue whose lock another thread holds is left to the next tick.
        let busy = domain.queues.close_unless_busy(domain, urgency);
        let wait_ns = if busy == 0 { domain.grace_periods.tuning.lazy_ns() } else { TICK_NS };
        task.close_at_ns = now_ns.saturating_add(wait_ns);
        task.hurries_still = hurried && busy != 0;
    }
    // Relaxed: only the worker uses it.
    let rests_until_ns = domain.rests_until_ns.load(Relaxed);
    let rested = clock::monotonic_ns() >= rests_until_ns;
    let task_waits = || matches!(domain.grace_periods.attention(), Attention::Within(_));
    if advances(
        rested,
        hurried,
        || domain.grace_periods.urgency().unwrap_or(Urgency::Normal),
        task_waits,
    ) {
        advance(domain);
    }
    run_queues(domain, task, &domain.queues.all(), hurried);
    domain.queues.forget_orphans(domain);
    if domain.kept.due_ns().is_some_and(|due_ns| due_ns <= clock::monotonic_ns()) {
        rescan::free_unprotected(domain);
    }
    if domain.zone() != Zone::Full {
        // Also if no callback made the room: a limit was raised, or a thread has ended.
        domain.grace_periods.tell_of_room_unless_busy();
    }
    domain.grace_periods.look_for_stall();
}

/// Runs what is ready, one queue after the other, beginning after the queue at which the turn
/// before ended, until this turn ends.
fn run_queues(domain: &DomainState, task: &mut Task, queues: &[Arc<Queue>], hurried: bool) {
    let (began_cpu_ns, began_ns) = (clock::thread_cpu_ns(), clock::monotonic_ns());
    let is_over = || {
        let taken_ns = clock::monotonic_ns().saturating_sub(began_ns);
        turn_is_over(taken_ns, domain.grace_periods.tuning.run_ns()) //~ endless-turn
    };
    let first = std::mem::take(&mut task.next_queue);
    let mut ran = 0;
    task.has_more = false;
    for at in first..first + queues.len() {
        let queue = &queues[at % queues.len()];
        if queue.take_tended() && !hurried {
            continue;
        }
        let mut turns = RUNS_PER_TURN;
        while turns != 0 {
            match queue.run_some_unless_busy(domain, domain.grace_periods.tuning.run_min()) {
                0 => break,
                some => ran += some,
            }
            turns -= 1;
            if is_over() {
                task.next_queue = at % queues.len() + 1;
                turns = 0;
            }
        }
        task.has_more |= turns == 0;
        if task.next_queue != 0 {
            break;
        }
    }
    if ran != 0 {
        let spent_ns = clock::thread_cpu_ns().saturating_sub(began_cpu_ns);
        trace::worker_ran_callbacks(domain.grace_periods.source(), spent_ns);
    }
}

/// Takes steps of a grace period, and notes how long the worker leaves the domain's grace periods
/// alone from now on. A longer rest that was noted before stays.
fn advance(domain: &DomainState) {
    let began_ns = clock::thread_cpu_ns();
    domain.grace_periods.advance_at(Me::NOBODY, true);
    let spent_ns = clock::thread_cpu_ns().saturating_sub(began_ns);
    // Relaxed: a statistic.
    domain.grace_periods.counters().worker_ns.fetch_add(spent_ns, Relaxed);
    if let Some(budget) = domain.budget {
        let rest_ns = budget.rest_ns(spent_ns, nap::TICK.as_nanos() as u64);
        let until_ns = clock::monotonic_ns().saturating_add(rest_ns);
        // Relaxed: only the worker uses it.
        domain.rests_until_ns.fetch_max(until_ns, Relaxed);
    }
}

impl AtFork for State {
    /// There is no worker. The next announcement starts one, which drops the handles in `to_end`.
    fn in_child(&mut self) {
        self.thread = OwnThread::NONE;
        drop(self.domains.take_all());
        self.in_hand = None;
        RESTARTS.store(0, Relaxed);
    }

    /// The worker ends after its turn. A thread that announces a domain afterwards starts another
    /// one.
    fn end(&mut self) -> bool {
        WORK.notify_one();
        self.thread.ask_to_end()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    use super::*;
    use crate::Domain;
    use crate::common::{again::*, threads::*};
    use crate::domain::builder::Builder;
    use crate::domain::hazard::{HazardDomain, HazardPointer};
    use crate::gp::tuning::Tuning;
    use crate::os::forking;
    use crate::os::sync::AtomicPtr;
    use crate::reclaim::domain_state::Named;
    use crate::reclaim::free::{Address, Boxed, Callback};
    use crate::reclaim::stream::Stored;
    use crate::reclaim::thread_queue::{Contents, add};

    /// Has the worker end in its next turn.
    static END: AtomicBool = AtomicBool::new(false);

    pub(super) fn end_if_asked() {
        assert!(!END.swap(false, Relaxed), "a test ends the worker");
    }

    /// The next worker takes over the domains of the one that ended, and later ones.
    #[test]
    fn a_worker_that_ends_all_the_same_is_followed_by_another() {
        for ended in 1..=3 {
            let before = Domain::new();
            let (sender, called) = mpsc::channel();
            let send = sender.clone();
            END.store(true, Relaxed);
            before.call_hurry(move || send.send("in hand").unwrap()).unwrap();
            assert_eq!(called.recv(), Ok("in hand"));
            assert_eq!(before.statistics().worker_restarts, ended);
            let after = Domain::new();
            after.call_hurry(move || sender.send("later").unwrap()).unwrap();
            assert_eq!(called.recv(), Ok("later"));
        }
    }

    /// The worker ends with the process's threads. A domain that it knew of was taken as announced
    /// from then on: no thread started another worker for it, and who waited for room waited for
    /// ever.
    #[test]
    #[cfg_attr(miri, ignore = "a child process")]
    fn a_worker_that_ended_with_the_process_is_followed_by_another() {
        in_its_own_process!();
        let domain = Domain::new();
        domain.tune(Tuning { lazy: Duration::MAX, ..domain.tuning() });
        domain.call(|| ()).unwrap();
        until(|| !forking::end_threads());
        let (sender, called) = mpsc::channel();
        domain.call_hurry(move || sender.send(()).unwrap()).unwrap();
        called.recv().unwrap();
    }

    /// A thread that has gone over the limit with a closure, or in a sleepable domain, has left it
    /// to the worker on adding it: the end of its section takes no lock, not even the worker's,
    /// which another thread holds here.
    #[test]
    fn the_end_of_a_section_does_not_wait_for_the_workers_lock() {
        let (domain, srcu) = (Domain::new(), crate::Srcu::new());
        domain.tune(Tuning { objects_max: 1, ..domain.tuning() });
        srcu.tune(domain.tuning());
        let (sender, ended) = mpsc::channel();
        let section = || {
            let guard = domain.read();
            for _ in 0..2 {
                domain.call(|| ()).unwrap(); // the second is one over the limit
                drop(srcu.try_retire(Box::new(7))); // as well
            }
            (guard, OnDrop(move || sender.send(()).unwrap()))
        };
        while_held(section, |leave| {
            let lock = WORKER.lock();
            leave();
            ended.recv().unwrap();
            drop(lock);
        });
        domain.barrier();
        srcu.barrier();
    }

    /// A domain in which a callback waits that was not announced to the worker thread.
    fn with_callback(builder: Builder) -> Domain {
        let domain = builder.build();
        let core = domain.tag().core();
        let queue = core.queues.add_of_nobody(core, Contents::Closures);
        add(&queue, || ());
        domain
    }

    fn task(domain: &Domain, close_at_ns: u64) -> Task {
        Task::new(domain.tag().handle().downgrade(), clock::monotonic_ns(), close_at_ns)
    }

    /// A past error: while a hazard domain kept an object that had been protected for long, what
    /// was retired there waited until that one was looked for again, up to a second.
    #[test]
    fn what_is_kept_does_not_hold_up_what_is_queued() {
        const LATE_NS: u64 = u64::MAX / 2;
        let (domain, mut holder) = (HazardDomain::new(), HazardPointer::new());
        let place = AtomicPtr::new(Box::into_raw(Box::new(7_u64)));
        // SAFETY: from a box, and retired below.
        let protected = unsafe { holder.protect(&place) };
        // SAFETY: from a box, and no thread finds it any more.
        domain.retire(unsafe { Box::from_raw(place.swap(ptr::null_mut(), Relaxed)) });
        domain.tune(Tuning { lazy: Duration::from_secs(3600), ..domain.tuning() });
        domain.barrier();
        let core: &DomainState = domain_state::Named::core(&domain);
        let due_ns = |change: &mut dyn FnMut(&mut u64)| {
            let (mut state, mut due_ns) = (WORKER.lock(), None);
            state.domains.change(core, &mut |task| {
                change(&mut task.due_ns);
                due_ns = Some(task.due_ns);
            });
            due_ns
        };
        let is_for_kept = |due_ns: &mut _| core.kept.due_ns() == Some(*due_ns);
        let mut make_late = |due_ns: &mut _| {
            if is_for_kept(due_ns) {
                *due_ns = LATE_NS;
            }
        };
        until(|| due_ns(&mut make_late) == Some(LATE_NS));
        domain.retire(Box::new(8));
        assert!(due_ns(&mut |_| ()).is_none_or(|due_ns| due_ns < LATE_NS), "it waits too long");
        drop(protected);
    }

    /// A past error: while hazard domains ended, one after the other, whose objects were protected,
    /// the domain that adopts these was due before all others again at the end of each turn.
    #[test]
    fn a_domain_whose_turn_ends_is_due_after_those_that_are_due_by_then() {
        let (ended, adopts) = (HazardDomain::new(), HazardDomain::new());
        let [ended, core] = [&ended, &adopts].map(domain_state::Named::core);
        let mut payload = Address::<Boxed<u8>>(Box::into_raw(Box::new(7)));
        let one = Stored { kind: &Address::<Boxed<u8>>::KIND, payload: (&raw mut payload).cast() };
        ended.kept.keep(&one);
        rescan::move_to(ended, core);
        let began_ns = clock::monotonic_ns();
        let mut task = Task::new(adopts.handle().downgrade(), began_ns, began_ns);
        assert_eq!(attention_or_forget(core, &mut task), Attention::AtTick);
        assert!(task.due_ns >= began_ns, "{} < {began_ns}", task.due_ns);
    }

    /// A turn in the domain when its open callbacks have waited long enough.
    fn tend_at_its_time(domain: &Domain) -> u64 {
        tend(domain.tag().core(), &mut task(domain, clock::monotonic_ns()));
        domain.statistics().grace_periods
    }

    /// The worker lets open callbacks wait for more, unless a thread hurries.
    #[test]
    fn what_may_wait_for_company_does() {
        let domain = with_callback(Domain::builder());
        let core = domain.tag().core();
        let mut task = task(&domain, clock::monotonic_ns() + 3_600_000_000_000);
        tend(core, &mut task);
        assert_eq!(domain.statistics().grace_periods, 0);
        assert_eq!(attention_or_forget(core, &mut task), Attention::AtTick);
        assert_eq!(task.due_ns, task.close_at_ns, "nothing to do before");
        core.queues.hurried.store(true, Relaxed);
        tend(core, &mut task);
        assert_eq!(domain.statistics().grace_periods, 1);
        assert_eq!(domain.statistics().callbacks_run, 1);
        assert_eq!(attention_or_forget(core, &mut task), Attention::None);
    }

    /// What is ready waits for no tick: many callbacks are run as fast as the worker can.
    #[test]
    fn a_turn_that_leaves_something_ready_is_followed_by_another() {
        let domain = with_callback(Domain::builder());
        let mut tuning = domain.tuning();
        tuning.run_min = if cfg!(miri) { 1 } else { tuning.run_min };
        tuning.run_time = Duration::MAX; // the turn does not end by time
        domain.tune(tuning);
        let core = domain.tag().core();
        let queue = Arc::clone(&core.queues.all()[0]);
        let turn = RUNS_PER_TURN as u64 * u64::from(domain.tuning().run_min);
        (0..turn).for_each(|_| add(&queue, || ()));
        let mut task = task(&domain, clock::monotonic_ns());
        tend(core, &mut task);
        assert_eq!(domain.statistics().callbacks_run, turn);
        assert_eq!(attention_or_forget(core, &mut task), Attention::AtTick);
        assert!(task.due_ns <= clock::monotonic_ns());
        tend(core, &mut task);
        assert_eq!(attention_or_forget(core, &mut task), Attention::None);
    }

    /// However long their `lazy` is: else their memory would stay allocated as long.
    #[test]
    fn domains_that_have_ended_are_forgotten() {
        let patient = || {
            let domain = Domain::new();
            domain.tune(Tuning { lazy: Duration::MAX, ..domain.tuning() });
            domain.call(|| ()).expect("there is room");
            domain
        };
        let ended: Vec<_> = (0..10).map(|_| patient().tag().handle().downgrade()).collect();
        let _last = patient();
        let state = WORKER.lock();
        assert_eq!(ended.iter().filter(|one| state.domains.has(one.address())).count(), 0);
    }

    /// A domain that needs nothing for a moment, and is announced anew, still rests as long.
    #[test]
    fn what_a_domain_owes_outlives_its_task() {
        let domain = with_callback(Domain::builder());
        let core = domain.tag().core();
        core.rests_until_ns.store(u64::MAX, Relaxed);
        assert_eq!(tend_at_its_time(&domain), 0, "it rests");
        core.grace_periods.lock().request(Urgency::Expedited);
        assert_eq!(tend_at_its_time(&domain), 1, "but not where somebody is in a hurry");
        assert_eq!(core.rests_until_ns.load(Relaxed), u64::MAX, "and then it still owes");
        core.rests_until_ns.store(0, Relaxed);
        core.grace_periods.lock().request(Urgency::Background);
        assert_eq!(tend_at_its_time(&domain), 2);
    }

    /// The rest begins when the turn ends: else a long turn would shorten it.
    #[test]
    fn a_turn_is_no_more_than_its_share_of_turn_and_rest() {
        let domain = with_callback(Domain::builder().worker_budget_ppm(1));
        let core = domain.tag().core();
        let began_ns = clock::monotonic_ns();
        assert_eq!(tend_at_its_time(&domain), 1);
        let spent_ns = core.grace_periods.counters().worker_ns.load(Relaxed);
        assert!(spent_ns > 0);
        let rests_until_ns = core.rests_until_ns.load(Relaxed);
        assert!(spent_ns * 1_000_000 <= rests_until_ns - began_ns, "{spent_ns}: {rests_until_ns}");
    }
}
