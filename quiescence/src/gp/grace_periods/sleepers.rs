//! Tasks that wait in a domain, without a thread of their own: for the end of a grace period, or
//! for callbacks to be run, which makes room and is what a barrier waits for.
//!
//! Their wakers are the user's code: cloned before the machine's lock is taken, woken and dropped
//! after it is released, on every path.
//!
//! There may be very many of them. An operation on one takes logarithmic time, on average; the end
//! of a grace period checks all, and finds each of them due at its second check at the latest. A
//! task that is polled again with the same waker takes no lock ([`knows`](GracePeriods::knows)).
//!
//! **A task is not left asleep.** One that waits for a grace period is found by the driver that
//! ends it: the task has checked under the same lock. One that waits for callbacks is found by the
//! thread that runs them, or sees the room that they made [TK-1].

use std::fmt::Debug;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

use grace::{Cookie, Sequence};

use super::{GracePeriods, Locked, State};
use crate::gp::by_number::ByNumber;
use crate::os::user_code::{self, Site};
use crate::os::{fence, thread};

/// What a task waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The end of this grace period.
    pub(crate) cookie: Option<Cookie>,
    /// Room, which there may be once callbacks have been run.
    pub(crate) room: bool,
}

impl Wanted {
    fn is_done(self, sequence: Sequence) -> bool {
        self.cookie.is_some_and(|cookie| sequence.is_done(cookie))
    }
}

/// A task that waits.
#[derive(Debug)]
struct Sleeper {
    wanted: Wanted,
    /// `None` once it is about to be woken.
    waker: Option<Waker>,
}

/// The tasks that wait; nothing before the first. What is done with them is behind a trait, so that
/// programs without tasks do not link it.
#[derive(Debug)]
pub(crate) struct Sleepers(Option<Box<dyn Told>>);

/// Tasks that have been taken out, and what wakes them, unless the calling thread is another one
/// than this. Without that they are not dropped, so programs without tasks have no code for it.
type Taken = (ManuallyDrop<Vec<Waker>>, fn(u32, ManuallyDrop<Vec<Waker>>));

/// The tasks that wait, as the threads that wake them see them.
trait Told: Send + Debug {
    fn waiting(&mut self) -> &mut ByNumber<Sleeper>;

    /// How many wait, and how many are to be woken as soon as the driver leaves.
    fn counts(&self) -> [usize; 2];

    /// A grace period has ended.
    fn note_end(&mut self, sequence: Sequence);

    /// Takes out those whose grace period has ended.
    fn take_due(&mut self) -> Taken;

    /// Takes out those that wait for room.
    fn take_roomless(&mut self) -> Taken;

    /// As [`Sleepers::forget`].
    fn forget(&mut self) -> u64;
}

#[derive(Debug)]
struct Tasks {
    /// The oldest first.
    waiting: ByNumber<Sleeper>,
    /// The wakers of tasks whose grace period has ended. They are woken when the driver has left:
    /// they are the user's code, and may wait for grace periods themselves.
    due: Vec<Waker>,
}

impl Tasks {
    /// Takes out the tasks for which `told` is true. Returns their wakers, oldest first.
    fn extract(&mut self, told: &dyn Fn(Wanted) -> bool) -> Vec<Waker> {
        let mut wakers = Vec::new();
        self.waiting.retain(&mut |sleeper| {
            let is_told = told(sleeper.wanted);
            wakers.extend(sleeper.waker.take_if(|_| is_told));
            !is_told
        });
        wakers
    }
}

impl Told for Tasks {
    fn waiting(&mut self) -> &mut ByNumber<Sleeper> {
        &mut self.waiting
    }

    fn counts(&self) -> [usize; 2] {
        [self.waiting.len(), self.due.len()]
    }

    fn note_end(&mut self, sequence: Sequence) {
        let due = self.extract(&|wanted| wanted.is_done(sequence));
        self.due.extend(due);
    }

    fn take_due(&mut self) -> Taken {
        taken(std::mem::take(&mut self.due))
    }

    fn take_roomless(&mut self) -> Taken {
        taken(self.extract(&|wanted| wanted.room))
    }

    fn forget(&mut self) -> u64 {
        self.waiting.take_all().for_each(std::mem::forget);
        self.due.drain(..).for_each(std::mem::forget);
        self.waiting.last()
    }
}

impl Sleepers {
    pub(crate) const NONE: Self = Self(None);

    /// In a child process: the threads of their executors are gone, perhaps in the middle of
    /// something. A future that continues there registers again when it is polled. Returns the
    /// highest number that is forgotten.
    pub(crate) fn forget(&mut self) -> u64 {
        self.0.as_mut().map_or(0, |tasks| tasks.forget())
    }

    fn waiting_or_new(&mut self) -> &mut ByNumber<Sleeper> {
        let new = || Box::new(Tasks { waiting: ByNumber::new(), due: Vec::new() }) as _;
        self.0.get_or_insert_with(new).waiting()
    }

    fn remove(&mut self, number: u64) -> Option<Sleeper> {
        self.0.as_mut()?.waiting().remove(number)
    }

    fn counts(&self) -> [usize; 2] {
        self.0.as_ref().map_or([0; 2], |tasks| tasks.counts())
    }

    /// Whether a task is to be woken as soon as the driver leaves.
    pub(crate) fn are_due(&self) -> bool {
        self.counts()[1] != 0
    }

    /// Whether a task waits.
    pub(crate) fn are_there(&self) -> bool {
        self.counts()[0] != 0
    }
}

impl GracePeriods {
    /// Stores how many tasks wait. Under the machine's lock.
    fn count_sleepers(&self, state: &State) {
        // Relaxed: the fences of [TK-1] order it.
        self.tasks.store(state.sleepers_to_tell.counts()[0] as u64, Relaxed);
    }

    /// Whether tasks wait here: a hint, except to the worker that a task has called.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.tasks.load(Relaxed) != 0
    }

    /// A grace period has ended: its tasks are woken as soon as the driver has left.
    pub(crate) fn note_end_to_sleepers(&self, state: &mut State, sequence: Sequence) {
        if let Some(tasks) = &mut state.sleepers_to_tell.0 {
            tasks.note_end(sequence);
            self.count_sleepers(state);
        }
    }

    /// Registers `waker` to be woken for `wanted`, in place of the one with this `number`. Returns
    /// its number; `None` if the grace period that is wanted has ended. A caller that waits for
    /// callbacks checks once more afterwards [TK-1].
    pub(crate) fn tell(&self, wanted: Wanted, number: Option<u64>, waker: &Waker) -> Option<u64> {
        let waker = user_code::run(Site::WakerClone, || waker.clone());
        let mut sleeper = Sleeper { wanted, waker: Some(waker) };
        let mut state = self.lock();
        let is_done = wanted.is_done(state.machine().sequence());
        let (number, unused) = if is_done {
            (None, [Some(sleeper), number.and_then(|number| state.sleepers_to_tell.remove(number))])
        } else {
            let waiting = state.sleepers_to_tell.waiting_or_new();
            if let Some(known) = number.and_then(|number| waiting.get_mut(number)) {
                std::mem::swap(known, &mut sleeper);
                (number, [Some(sleeper), None])
            } else {
                (Some(waiting.add(sleeper)), [None, None])
            }
        };
        self.count_sleepers(&state);
        drop(state);
        unused.into_iter().flatten().for_each(end);
        //~ no-sleeper-fence:
        if wanted.room {
            fence::full(); // [TK-1]
        }
        number
    }

    /// Whether the task with this number, whose grace period has not ended, will be woken: not in a
    /// child process, which has forgotten it. Needs no lock: only the thread that is about to wake
    /// a task takes it out at the end of its grace period.
    pub(crate) fn knows(&self, number: u64) -> bool {
        // Relaxed: it changes in a child process only, which has one thread then.
        number > self.tasks_forgotten.load(Relaxed)
    }

    /// The task with this number need not be woken.
    pub(crate) fn tell_no_more(&self, number: u64) {
        let mut state = self.lock();
        let taken = state.sleepers_to_tell.remove(number);
        self.count_sleepers(&state);
        drop(state);
        taken.into_iter().for_each(end);
    }

    /// Wakes the tasks whose grace periods have ended. This thread does not drive, and holds no
    /// other lock. Returns whether there were any: then user code has run, and may have done
    /// anything that a thread in no section can do.
    pub(crate) fn tell_those_due(&self, state: &mut Locked<'_>) -> bool {
        //~ lost-waker:
        if !state.sleepers_to_tell.are_due() {
            return false;
        }
        let due = state.sleepers_to_tell.0.as_mut().map(|tasks| tasks.take_due());
        let caller = thread::id(); // under the lock, which a fork takes
        state.unlocked(|| due.into_iter().for_each(|(due, wake)| wake(caller, due)));
        true
    }

    /// Wakes the tasks that wait for room, after callbacks have been run or room has come back
    /// otherwise. Since then the calling thread has released a lock, or executed an atomic
    /// read-modify-write. It holds no lock.
    pub(crate) fn tell_of_room(&self) {
        if self.has_sleepers_by_now() {
            self.tell_each_of_room(self.lock());
        }
    }

    fn has_sleepers_by_now(&self) -> bool {
        fence::full_after_locked(); // [TK-1] //~ no-runner-fence
        self.has_sleepers()
    }

    /// The same for the worker, which waits for no lock: it comes back while tasks wait.
    pub(crate) fn tell_of_room_unless_busy(&self) {
        if self.has_sleepers_by_now()
            && let Some(state) = self.try_lock()
        {
            self.tell_each_of_room(state);
        }
    }

    #[cold]
    fn tell_each_of_room(&self, mut state: Locked<'_>) {
        let caller = thread::id();
        let told = state.sleepers_to_tell.0.as_mut().map(|tasks| tasks.take_roomless());
        self.count_sleepers(&state);
        drop(state);
        told.into_iter().for_each(|(told, wake)| wake(caller, told)); //~ lost-waker
    }
}

fn taken(tasks: Vec<Waker>) -> Taken {
    (ManuallyDrop::new(tasks), |caller, tasks| wake(caller, ManuallyDrop::into_inner(tasks)))
}

/// Drops a task that is not woken: the drop of its waker is the user's code.
fn end(sleeper: Sleeper) {
    user_code::caught(Site::WakerDrop, || drop(sleeper));
}

/// Wakes tasks, oldest first: the user's code. `caller` is the thread that has taken them out, as
/// of before that. If one of them forks, or a signal handler does, the child forgets the others, as
/// it forgets all that wait.
pub(crate) fn wake(caller: u32, tasks: Vec<Waker>) {
    let mut tasks = tasks.into_iter();
    // Another id: this is a child process now.
    while caller == thread::id()
        && let Some(waker) = tasks.next()
    {
        user_code::caught(Site::Wake, || waker.wake());
    }
    tasks.for_each(std::mem::forget);
}
