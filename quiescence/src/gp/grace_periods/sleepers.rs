//! Tasks that wait in a domain, without a thread of their own: for the end of a grace period, or
//! for callbacks to be run, which makes room and is what a barrier waits for.
//!
//! They are known by their wakers, which are the user's code: cloned before the machine's lock is
//! taken, woken and dropped when it has been let go.
//!
//! **A task is not left asleep.** One that waits for a grace period is found by the driver that
//! ends it, under the lock under which it has looked. One that waits for callbacks is found by the
//! thread that runs them, or sees what they left [TK-1].

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
    number: u64,
    wanted: Wanted,
    waker: Waker,
}

/// Those who are to be told, oldest first.
#[derive(Debug)]
pub(crate) struct Sleepers {
    list: Vec<Sleeper>,
    last: u64,
    /// Those whose grace period has ended, until the driver has left: they are the user's code, and
    /// may wait for grace periods themselves.
    due: Vec<Waker>,
}

impl Sleepers {
    pub(crate) const NONE: Self = Self { list: Vec::new(), last: 0, due: Vec::new() };

    /// In a child process: their executors' threads are gone, and perhaps in the midst of
    /// something. A future that continues there is woken again when it is polled.
    #[cfg(not(loom))]
    pub(crate) fn forget(&mut self) {
        self.list.drain(..).for_each(std::mem::forget);
        self.due.drain(..).for_each(std::mem::forget);
    }

    /// A grace period has ended.
    fn ended(&mut self, sequence: Sequence) {
        let done = self.list.extract_if(.., |sleeper| sleeper.wanted.is_done(sequence));
        self.due.extend(done.map(|sleeper| sleeper.waker));
    }

    /// Whether somebody is to be told as soon as the driver leaves.
    pub(crate) fn are_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Whether somebody is to be told some time.
    pub(crate) fn are_there(&self) -> bool {
        !self.list.is_empty()
    }

    /// Takes one out.
    fn take(&mut self, number: Option<u64>) -> Option<Sleeper> {
        let at = self.list.iter().position(|sleeper| Some(sleeper.number) == number)?;
        Some(self.list.remove(at))
    }
}

impl GracePeriods {
    /// Notes how many tasks wait. Under the machine's lock.
    fn count_sleepers(&self, state: &State) {
        // Relaxed: the fences of [TK-1] order it.
        self.tasks.store(state.sleepers_to_tell.list.len() as u64, Relaxed);
    }

    /// Whether tasks wait here: a hint, but for the worker where the task has called it.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.tasks.load(Relaxed) != 0
    }

    /// A grace period has ended: those who waited for it are told as soon as the driver has left.
    pub(crate) fn note_end_to_sleepers(&self, state: &mut State, sequence: Sequence) {
        if state.sleepers_to_tell.are_there() {
            state.sleepers_to_tell.ended(sequence);
            self.count_sleepers(state);
        }
    }

    /// Has `waker` told of what is wanted, in place of the one that `number` was given for before.
    /// `None` if the grace period that is wanted has ended. A caller who waits for callbacks looks
    /// once more afterwards [TK-1].
    pub(crate) fn tell(&self, wanted: Wanted, number: Option<u64>, waker: &Waker) -> Option<u64> {
        let waker = user_code::run(Site::WakerClone, || waker.clone());
        let mut state = sync::lock(&self.state);
        let is_done = wanted.is_done(state.protocol.sequence());
        let sleepers = &mut state.sleepers_to_tell;
        let (number, unused) = if is_done {
            (None, sleepers.take(number).map(|sleeper| (sleeper.waker, Some(waker))))
        } else if let Some(known) =
            sleepers.list.iter_mut().find(|sleeper| Some(sleeper.number) == number)
        {
            known.wanted = wanted;
            (number, Some((std::mem::replace(&mut known.waker, waker), None)))
        } else {
            sleepers.last += 1;
            let number = sleepers.last;
            sleepers.list.push(Sleeper { number, wanted, waker });
            (Some(number), None)
        };
        self.count_sleepers(&state);
        drop(state);
        user_code::run(Site::WakerDrop, || drop(unused));
        if wanted.room && !chaos::mutant(Mutant::NoSleeperFence) {
            fence::full(); // [TK-1]
        }
        number
    }

    /// The task with this number need not be told.
    pub(crate) fn tell_no_more(&self, number: u64) {
        let mut state = sync::lock(&self.state);
        let taken = state.sleepers_to_tell.take(Some(number));
        self.count_sleepers(&state);
        drop(state);
        user_code::run(Site::WakerDrop, || drop(taken));
    }

    /// Tells those whose grace periods have ended, where this thread does not drive and holds no
    /// lock.
    pub(crate) fn tell_those_due<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        let due = std::mem::take(&mut state.sleepers_to_tell.due);
        if due.is_empty() || chaos::mutant(Mutant::LostWaker) {
            return state;
        }
        self.unlocked(state, || wake(due))
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
        let list = &mut state.sleepers_to_tell.list;
        let told = list.extract_if(.., |sleeper| sleeper.wanted.room);
        let told: Vec<_> = told.map(|sleeper| sleeper.waker).collect();
        self.count_sleepers(&state);
        drop(state);
        if !chaos::mutant(Mutant::LostWaker) {
            wake(told);
        }
    }
}

/// Wakes tasks, oldest first: the user's code.
fn wake(tasks: Vec<Waker>) {
    tasks.into_iter().for_each(|waker| _ = user_code::caught(Site::Wake, || waker.wake()));
}
