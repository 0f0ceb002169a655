//! Tasks that wait in a domain, without a thread of their own: for the end of a grace period, or
//! for callbacks to be run, which makes room and is what a barrier waits for.
//!
//! They are known by their wakers, which are the user's code: cloned before the machine's lock is
//! taken, woken and dropped when it has been let go, by every way out of it.
//!
//! There may be very many of them. What is done for one of them is logarithmic in their number; the
//! end of a grace period looks at all, and finds each of them due at its second look at the latest.
//! A task that is polled again with the waker that it has given takes no lock
//! ([`knows`](GracePeriods::knows)).
//!
//! **A task is not left asleep.** One that waits for a grace period is found by the driver that
//! ends it, under the lock under which it has looked. One that waits for callbacks is found by the
//! thread that runs them, or sees what they left [TK-1].

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

use grace::{Cookie, Sequence};

use super::{GracePeriods, State};
use crate::chaos::{self, Mutant};
use crate::os::fence;
use crate::os::sync::{self, MutexGuard};
use crate::os::user_code::{self, Site};

/// What a task is to be told of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// That this grace period has ended.
    pub(crate) cookie: Option<Cookie>,
    /// That callbacks have been run, so that there may be room.
    pub(crate) room: bool,
}

impl Wanted {
    fn is_done(self, sequence: Sequence) -> bool {
        self.cookie.is_some_and(|cookie| sequence.is_done(cookie))
    }
}

/// A task that is to be told.
#[derive(Debug)]
struct Sleeper {
    wanted: Wanted,
    /// `None` once it is about to be told.
    waker: Option<Waker>,
}

/// Those who are to be told.
#[derive(Debug)]
pub(crate) struct Sleepers {
    /// By number, so the oldest first.
    waiting: BTreeMap<u64, Sleeper>,
    last: u64,
    /// Those whose grace period has ended, until the driver has left: they are the user's code, and
    /// may wait for grace periods themselves.
    due: Vec<Waker>,
}

impl Sleepers {
    pub(crate) const NONE: Self = Self { waiting: BTreeMap::new(), last: 0, due: Vec::new() };

    /// In a child process: their executors' threads are gone, and perhaps in the midst of
    /// something. A future that continues there is woken again when it is polled. Returns the last
    /// number that is forgotten.
    #[cfg(not(loom))]
    pub(crate) fn forget(&mut self) -> u64 {
        std::mem::take(&mut self.waiting).into_values().for_each(std::mem::forget);
        self.due.drain(..).for_each(std::mem::forget);
        self.last
    }

    /// Takes out those who are to be told now; their wakers, oldest first.
    fn extract(&mut self, told: impl Fn(Wanted) -> bool) -> Vec<Waker> {
        let mut wakers = Vec::new();
        self.waiting.retain(|_, sleeper| {
            let is_told = told(sleeper.wanted);
            wakers.extend(sleeper.waker.take_if(|_| is_told));
            !is_told
        });
        wakers
    }

    /// Whether somebody is to be told as soon as the driver leaves.
    pub(crate) fn are_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Whether somebody is to be told some time.
    pub(crate) fn are_there(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Adds one, and returns its number.
    fn add(&mut self, sleeper: Sleeper) -> u64 {
        self.last += 1;
        self.waiting.insert(self.last, sleeper);
        self.last
    }
}

impl GracePeriods {
    /// Notes how many tasks wait. Under the machine's lock.
    fn count_sleepers(&self, state: &State) {
        // Relaxed: the fences of [TK-1] order it.
        self.tasks.store(state.sleepers_to_tell.waiting.len() as u64, Relaxed);
    }

    /// Whether tasks wait here: a hint, but for the worker where the task has called it.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.tasks.load(Relaxed) != 0
    }

    /// A grace period has ended: those who waited for it are told as soon as the driver has left.
    pub(crate) fn note_end_to_sleepers(&self, state: &mut State, sequence: Sequence) {
        if state.sleepers_to_tell.are_there() {
            let due = state.sleepers_to_tell.extract(|wanted| wanted.is_done(sequence));
            state.sleepers_to_tell.due.extend(due);
            self.count_sleepers(state);
        }
    }

    /// Has `waker` told of what is wanted, in place of the one that `number` was given for before.
    /// `None` if the grace period that is wanted has ended. A caller who waits for callbacks looks
    /// once more afterwards [TK-1].
    pub(crate) fn tell(&self, wanted: Wanted, number: Option<u64>, waker: &Waker) -> Option<u64> {
        let waker = user_code::run(Site::WakerClone, || waker.clone());
        let mut sleeper = Sleeper { wanted, waker: Some(waker) };
        let mut state = sync::lock(&self.state);
        let is_done = wanted.is_done(state.protocol.sequence());
        let sleepers = &mut state.sleepers_to_tell;
        let (number, unused) = if is_done {
            let known = number.and_then(|number| sleepers.waiting.remove(&number));
            (None, [Some(sleeper), known])
        } else if let Some(known) = number.and_then(|number| sleepers.waiting.get_mut(&number)) {
            std::mem::swap(known, &mut sleeper);
            (number, [Some(sleeper), None])
        } else {
            (Some(sleepers.add(sleeper)), [None, None])
        };
        self.count_sleepers(&state);
        drop(state);
        unused.into_iter().flatten().for_each(end);
        if wanted.room && !chaos::mutant(Mutant::NoSleeperFence) {
            fence::full(); // [TK-1]
        }
        number
    }

    /// Whether the task that was given this number, and waits for a grace period that has not
    /// ended, will be told: not in a child process, which has forgotten it. Without the lock: it is
    /// taken out where the grace period ends, by the thread that is about to wake it.
    #[cfg(not(loom))]
    pub(crate) fn knows(&self, number: u64) -> bool {
        // Relaxed: it changes in a child process only, which has one thread then.
        number > self.tasks_forgotten.load(Relaxed)
    }

    /// The task with this number need not be told.
    pub(crate) fn tell_no_more(&self, number: u64) {
        let mut state = sync::lock(&self.state);
        let taken = state.sleepers_to_tell.waiting.remove(&number);
        self.count_sleepers(&state);
        drop(state);
        taken.into_iter().for_each(end);
    }

    /// Tells those whose grace periods have ended, where this thread does not drive and holds no
    /// lock. Returns whether there were any: then user code has run, and may have done anything
    /// that a thread can do that is in no section.
    pub(crate) fn tell_those_due<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> (MutexGuard<'a, State>, bool) {
        let due = std::mem::take(&mut state.sleepers_to_tell.due);
        if due.is_empty() || chaos::mutant(Mutant::LostWaker) {
            return (state, false);
        }
        (self.unlocked(state, || wake(due)), true)
    }

    /// Callbacks have been run, or room has come back otherwise, and the calling thread has let a
    /// lock go since, or executed an atomic read-modify-write. Tells those who wait for that; no
    /// lock is held.
    pub(crate) fn tell_of_room(&self) {
        if self.has_sleepers_by_now() {
            self.tell_each_of_room(sync::lock(&self.state));
        }
    }

    fn has_sleepers_by_now(&self) -> bool {
        if !chaos::mutant(Mutant::NoRunnerFence) {
            fence::full_after_locked(); // [TK-1]
        }
        self.has_sleepers()
    }

    /// The same for the worker, which waits for no lock: it comes back while tasks wait.
    #[cfg(not(loom))]
    pub(crate) fn tell_of_room_unless_busy(&self) {
        if self.has_sleepers_by_now()
            && let Some(state) = sync::try_lock(&self.state)
        {
            self.tell_each_of_room(state);
        }
    }

    #[cold]
    fn tell_each_of_room(&self, mut state: MutexGuard<'_, State>) {
        let told = state.sleepers_to_tell.extract(|wanted| wanted.room);
        self.count_sleepers(&state);
        drop(state);
        if !chaos::mutant(Mutant::LostWaker) {
            wake(told);
        }
    }
}

/// The task is not told: its waker's drop is the user's code.
fn end(sleeper: Sleeper) {
    user_code::caught(Site::WakerDrop, || drop(sleeper));
}

/// Wakes tasks, oldest first: the user's code. If one of them forks, the child forgets the others,
/// as it forgets all that wait.
fn wake(tasks: Vec<Waker>) {
    let (mut tasks, thread) = (tasks.into_iter(), thread_id());
    while thread == thread_id()
        && let Some(waker) = tasks.next()
    {
        user_code::caught(Site::Wake, || waker.wake());
    }
    tasks.for_each(std::mem::forget);
}

/// The calling thread's, which is another one in a child process. Loom knows none.
fn thread_id() -> u32 {
    #[cfg(not(loom))]
    return crate::os::thread::id();
    #[cfg(loom)]
    0
}
