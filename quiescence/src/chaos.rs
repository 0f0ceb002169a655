//! The torture hooks: points where a race could live, and steps that can be removed.
//!
//! In the library all of this is empty and costs nothing. The package `quiescence-chaos` compiles
//! the same sources with the feature `chaos`; `rcu torture` uses that one, installs a function that
//! yields or pauses at the [`Point`]s, and can remove a step with a [`Mutant`] to see that the
//! torture notices. There the memory of retired objects is given back late (`free`), so that a
//! reader that a fault lets see one finds what the object's drop left, and can count the fault.

/// A place in the code where a delay makes a race likelier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// A reader has loaded `gp.ctr` and not yet stored its word.
    EnterBeforeStore,
    /// A reader has stored its word; its section begins.
    Entered,
    /// A reader is about to end its section.
    LeaveBeforeStore,
    /// A reader has ended its section and not yet looked whether somebody waits.
    Left,
    /// An updater has unlinked an object and not yet asked for a grace period.
    Unlinked,
    /// The driver has fenced and not yet announced the number.
    Fenced,
    /// The driver has announced the number and not yet scanned.
    Announced,
    /// The driver has seen holdouts and not yet marked them.
    BeforeMark,
    /// The driver has marked the holdouts and not yet looked again.
    Marked,
    /// A batch of callbacks has been closed and not yet got its cookie.
    BatchClosed,
    /// Callbacks are about to run.
    BeforeCallbacks,
    /// A callback has been written, and the worker has perhaps to be told.
    Added,
    /// Room has been charged, and is perhaps to be given back.
    Charged,
    /// A thread that ends has left its queue to others, and not yet looked what is in it.
    Orphaned,
    /// The worker has said that it leaves a domain alone, and not yet looked a last time.
    Leaving,
    /// A reader of a sleepable domain knows its index and has not yet counted itself in.
    IndexChosen,
    /// The unlock counts of an index have been summed, the lock counts not yet.
    Summed,
    /// The words of the CPUs have been emptied, and what was in them is not yet in the one word.
    Gathered,
    /// A thread is about to unregister.
    BeforeUnregister,
    /// A thread has unregistered, so that its slot is free, and not yet looked whether somebody
    /// waits.
    Unregistered,
    /// The thread that ends a table holds its worker off, and has not yet looked whether there are
    /// nodes.
    TableHeld,
    /// A table's worker finds that it is held off; or who holds it off, that it is at the table's
    /// list.
    TableAwaited,
    /// A table's worker looks at the table's list, or is about to free buckets.
    TableUsed,
}

/// A step that can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// The grace period ends without waiting for holdouts.
    NoWait,
    /// The scan passes over the reader registered last.
    SkipLastReader,
    /// Readers are not entered into the registry's list.
    NoRegistration,
    /// A holdout does not wake the sleeping updater.
    NoWakeUp,
    /// The sleeper does not scan again after it has marked the holdouts.
    NoSecondLook,
    /// The next owner of a slot clears the mark of a sleeping updater.
    LostMark,
    /// The number is taken for one phase bit, with one pass.
    PhaseBit,
    /// Ending a nested section ends the outermost one.
    NestedUnlock,
    /// A request is served by the grace period in progress.
    EarlyCookie,
    /// Callbacks run without waiting for their grace period.
    EarlyCallbacks,
    /// An object is retired before it is unlinked, and freed after that grace period.
    RetireBeforeUnlink,
    /// `barrier` returns without waiting.
    NoBarrier,
    /// The domain is taken to have no other reader.
    AlwaysAlone,
    /// A second synchronizer that finds a driver at work does not wait.
    NoSharing,
    /// The heavy fence does nothing.
    NoHeavyFence,
    /// The light fences do nothing.
    NoLightFence,
    /// A section's end is stored without release.
    RelaxedLeave,
    /// A section's begin is stored without release, so that it hides the end of the one before.
    RelaxedEnter,
    /// A reader that hands the token on does not look a second time whom it has it from.
    NoSecondSource,
    /// A reader that comes online in a relay records the current number.
    OnlineAsPassed,
    /// A reader that comes online in a relay does not take that for a quiescent state.
    OnlineForGood,
    /// The updater does not let those through who copy from a reader that is offline.
    NoPassingOver,
    /// A batch gets its cookie before its callbacks are counted.
    CookieBeforeCount,
    /// The worker leaves a domain alone without a fence before its last look.
    NoIdleFence,
    /// The driver says without a fence that it sleeps until liburcu readers leave.
    NoLiburcuFence,
    /// The driver does not scan again before it sleeps until liburcu readers leave.
    NoLiburcuLook,
    /// A superseded driver reports what it has found.
    SupersededReports,
    /// A superseded driver scans and marks holdouts.
    SupersededMarks,
    /// The thread that takes a driver's place leaves its marks.
    MarksLeft,
    /// Waiters do not take a stalled driver's place.
    NoTakeOver,
    /// Liburcu readers are sent the signal of reports also where they sleep.
    SignalToSleepers,
    /// A thread that ends says so before its last callbacks can be seen.
    RelaxedOrphan,
    /// The writer of a queue counts a callback before its words can be seen.
    RelaxedWrite,
    /// What waits is not bounded.
    NoLimit,
    /// Inside a section a thread goes over the limit as often as it likes.
    NoRefusal,
    /// A thread that went over the limit does not settle that when its section ends.
    NoSettle,
    /// The room that callbacks make is given back twice.
    UnchargedTwice,
    /// The room that callbacks make is not given back where another thread than their own runs
    /// them.
    LostRoom,
    /// A thread that ends keeps what it might still have added.
    LostLocalStock,
    /// Of the callbacks that are run in one go the first few are passed over.
    SkipOne,
    /// The callbacks of a thread that has ended are forgotten.
    LostTail,
    /// A barrier does not scan again at the queue that the callbacks of ended threads move to.
    SharedOnce,
    /// The worker looks into one queue after the other while callbacks move between them.
    OneByOne,
    /// Callbacks wait for company for ever.
    LazyForever,
    /// The worker is not told of callbacks.
    NoAnnouncement,
    /// A child process believes that callbacks are still being run by a thread that it does not
    /// have.
    RunnerAfterFork,
    /// A grace period of restartable reads has no barrier.
    NoRestartBarrier,
    /// A grace period of restartable reads does not look for readers in fallback sections.
    NoFallbackLook,
    /// A child process forgets the fallback section that its fork has interrupted with those of
    /// other threads.
    NoStandIn,
    /// Sequences that are interrupted go on.
    NoRestart,
    /// The barrier of restartable reads is a fence that has no thread begin anew.
    PlainBarrier,
    /// The thread that folds the words of the CPUs does not set the flag.
    NoStallFlag,
    /// The thread that folds the words of the CPUs does not wait until they stand still.
    NoStallBarrier,
    /// The count of a big reference is taken for whole before the words of the CPUs are in it.
    EarlyRelease,
    /// The last reader of a local-global lock does not wake the writer.
    NoWriterWakeUp,
    /// Sleepable domains: a grace period passes over the index that is not current when it begins.
    OneScan,
    /// Sleepable domains: a grace period ends when the indexes have been flipped.
    EarlyHandOut,
    /// Sleepable domains: the indexes are not flipped.
    NoFlip,
    /// Sleepable domains: the lock counts are summed before the unlock counts.
    LocksFirst,
    /// Sleepable domains: a section ends in the index that is current then.
    WrongIndex,
    /// Sums leave out the words of the CPUs.
    SharedOnly,
    /// Hash tables: a bucket is begun at before it stands in the list.
    UnlinkedStart,
    /// Hash tables: a node is linked without release.
    RelaxedLink,
    /// Hash tables: two may take themselves for the thread that has deleted a node.
    NoOwner,
    /// Hash tables: a deleted node is not unlinked.
    NoUnlink,
    /// Hash tables: two may put the same bucket into the list.
    NoClaim,
    /// Hash tables: who has shrunk a table does not look whether it is to grow again.
    LostResize,
    /// Hash tables: who ends a table does not hold its worker off.
    NoHold,
    /// Futures are not woken.
    LostWaker,
    /// Callback queues: who pushes does not release what it has written.
    RelaxedPush,
    /// Callback queues: a thread that finds that none attends does not ring.
    NoBell,
    /// Callback queues: who goes to sleep does not look whether something has come.
    DeafSleep,
    /// Callback queues: callbacks run without a grace period.
    EarlyCallbackQueue,
    /// Callback queues: a barrier passes them over.
    NoMark,
    /// Callback queues: what was left in one that ends is forgotten.
    LostCallbackQueue,
    /// A task that waits for callbacks does not fence before its last look.
    NoSleeperFence,
    /// The thread that has run callbacks does not fence before the look whether tasks wait for
    /// that.
    NoRunnerFence,
    /// The thread that takes a cookie without a lock is not shown that a grace period has begun.
    UnseenBegin,
    /// The begin of a grace period is shown without release, so that it hides the end of the one
    /// before.
    RelaxedBegin,
    /// The thread that takes a cookie without a lock does not fence after the exchange that
    /// unlinked.
    NoUnlinkFence,
    /// A driver that finds no other reader does not fence.
    NoFenceAlone,
    /// Intrusive: a node is linked before its content can be seen.
    UnseenNode,
    /// Intrusive: who takes the last node of a queue empties its head after it has moved the tail
    /// back.
    LateHead,
    /// Intrusive: who takes the last node of a queue does not look whether the tail is still there.
    TailUnchecked,
    /// Intrusive: of several who take all of a queue, each takes the first node.
    TakeUnchecked,
    /// Intrusive: a link that is not written yet is taken for the end of the stack.
    UnlinkedEnd,
    /// Intrusive: the first node is taken the thread that took it meanwhile.
    PopUnchecked,
    /// Intrusive: a node is taken out of a lock-free queue whose tail names it still.
    TailLeftBehind,
}

impl Mutant {
    /// Those that a torture run catches, in the order above.
    pub const ALL: [Self; 40] = [
        Self::NoWait,
        Self::SkipLastReader,
        Self::NoRegistration,
        Self::NoWakeUp,
        Self::NoSecondLook,
        Self::LostMark,
        Self::PhaseBit,
        Self::NestedUnlock,
        Self::EarlyCookie,
        Self::EarlyCallbacks,
        Self::RetireBeforeUnlink,
        Self::NoBarrier,
        Self::AlwaysAlone,
        Self::NoSharing,
        Self::NoLimit,
        Self::NoRefusal,
        Self::NoSettle,
        Self::UnchargedTwice,
        Self::LostRoom,
        Self::LostLocalStock,
        Self::SkipOne,
        Self::LostTail,
        Self::LazyForever,
        Self::NoAnnouncement,
        Self::RunnerAfterFork,
        Self::NoRestartBarrier,
        Self::NoFallbackLook,
        Self::NoRestart,
        Self::PlainBarrier,
        Self::NoStallFlag,
        Self::NoStallBarrier,
        Self::EarlyRelease,
        Self::NoWriterWakeUp,
        Self::OneScan,
        Self::EarlyHandOut,
        Self::NoFlip,
        Self::LocksFirst,
        Self::WrongIndex,
        Self::SharedOnly,
        Self::LostWaker,
    ];

    /// Steps of sleepable domains.
    pub const BANKS: [Self; 7] = [
        Self::OneScan,
        Self::EarlyHandOut,
        Self::NoFlip,
        Self::LocksFirst,
        Self::WrongIndex,
        Self::SharedOnly,
        Self::LostWaker,
    ];

    /// Missing orderings. Real runs hide them; loom and `check` do not.
    pub const ORDERINGS: [Self; 4] =
        [Self::NoHeavyFence, Self::NoLightFence, Self::RelaxedLeave, Self::RelaxedEnter];

    /// Steps of the hash table.
    pub const TABLE: [Self; 5] =
        [Self::UnlinkedStart, Self::RelaxedLink, Self::NoOwner, Self::NoUnlink, Self::NoClaim];

    /// Orderings of the callback queues.
    pub const QUEUES: [Self; 6] = [
        Self::CookieBeforeCount,
        Self::NoIdleFence,
        Self::RelaxedOrphan,
        Self::RelaxedWrite,
        Self::SharedOnce,
        Self::OneByOne,
    ];

    /// Steps of the tools in `sync`.
    pub const TOOLS: [Self; 4] =
        [Self::NoStallFlag, Self::NoStallBarrier, Self::EarlyRelease, Self::NoWriterWakeUp];

    /// Steps of restartable reads.
    pub const RESTART: [Self; 2] = [Self::NoRestartBarrier, Self::NoFallbackLook];

    /// Steps of forks in handlers.
    pub const FORKS: [Self; 1] = [Self::NoStandIn];

    /// Steps of restartable sequences.
    pub const PER_CPU: [Self; 2] = [Self::NoRestart, Self::PlainBarrier];

    /// Steps of the sleep beside liburcu readers.
    pub const LIBURCU: [Self; 2] = [Self::NoLiburcuFence, Self::NoLiburcuLook];

    /// Steps of the hand-over from one driver to another.
    pub const HANDOVER: [Self; 4] =
        [Self::SupersededReports, Self::SupersededMarks, Self::MarksLeft, Self::NoTakeOver];

    /// Steps of the queues and stacks of nodes that callers bring along.
    pub const INTRUSIVE: [Self; 7] = [
        Self::UnseenNode,
        Self::LateHead,
        Self::TailUnchecked,
        Self::TakeUnchecked,
        Self::UnlinkedEnd,
        Self::PopUnchecked,
        Self::TailLeftBehind,
    ];

    /// Steps of cookies that are taken without a lock.
    pub const UNLINKED: [Self; 4] =
        [Self::UnseenBegin, Self::RelaxedBegin, Self::NoUnlinkFence, Self::NoFenceAlone];

    /// Steps of tasks that wait for callbacks.
    pub const SLEEPERS: [Self; 3] = [Self::NoSleeperFence, Self::NoRunnerFence, Self::LostWaker];

    /// Steps of callback queues that loom explores.
    pub const LLIST: [Self; 3] = [Self::RelaxedPush, Self::NoBell, Self::DeafSleep];

    /// Steps of callback queues.
    pub const CALLBACK_QUEUES: [Self; 3] =
        [Self::EarlyCallbackQueue, Self::NoMark, Self::LostCallbackQueue];

    /// Steps of the engine `token`.
    pub const RELAY: [Self; 4] =
        [Self::NoSecondSource, Self::OnlineAsPassed, Self::OnlineForGood, Self::NoPassingOver];
}

#[cfg(feature = "chaos")]
mod imp {
    use super::{Mutant, Point};
    use std::alloc::Layout;
    use std::collections::VecDeque;
    use std::sync::{Mutex, OnceLock, PoisonError};

    static HOOK: OnceLock<fn(Point)> = OnceLock::new();
    static MUTANT: OnceLock<Mutant> = OnceLock::new();

    /// Runs `child` in a child process made by `fork`, which ends with the code that it returns.
    /// Gives the child's number.
    ///
    /// The child has the calling thread only. `child` must need no lock but the library's and the
    /// allocator's: another one may be held there by a thread that it does not have, for ever.
    ///
    /// # Errors
    /// What the system says.
    #[cfg(not(loom))]
    pub fn fork(child: impl FnOnce() -> i32) -> std::io::Result<u32> {
        // Callbacks take it, and hold no other lock then.
        let held = QUARANTINED.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `process::fork` makes the library whole in the child, glibc its allocator; and
        // `child` needs no other lock, by its contract. (If it does it hangs, and touches nothing
        // that is half made.)
        let forked = unsafe { libc::fork() };
        let error = std::io::Error::last_os_error();
        drop(held);
        match forked {
            -1 => Err(error),
            0 => {
                let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
                std::process::exit(code.unwrap_or(101))
            }
            pid => Ok(pid.cast_unsigned()),
        }
    }

    /// Has `hook` called at every point, from now on.
    pub fn install(hook: fn(Point)) {
        let _ = HOOK.set(hook);
    }

    /// Removes the step for the rest of the process. Returns `false` if another one already is.
    pub fn remove_step(mutant: Mutant) -> bool {
        MUTANT.set(mutant).is_ok()
    }

    #[inline]
    pub(crate) fn point(point: Point) {
        if let Some(hook) = HOOK.get() {
            hook(point);
        }
    }

    #[inline]
    pub(crate) fn mutant(mutant: Mutant) -> bool {
        MUTANT.get() == Some(&mutant)
    }

    /// Objects that have been dropped and whose memory is kept.
    const QUARANTINE: usize = 1 << 16;

    /// Memory in quarantine, oldest first.
    static QUARANTINED: Mutex<VecDeque<Memory>> = Mutex::new(VecDeque::new());

    struct Memory {
        start: *mut u8,
        layout: Layout,
    }

    // SAFETY: memory that only the quarantine owns.
    unsafe impl Send for Memory {}

    /// Drops an object, and gives its memory back only after many others'.
    pub(crate) fn free<T: ?Sized>(object: Box<T>) {
        let layout = Layout::for_value(&*object);
        let object = Box::into_raw(object);
        // SAFETY: from a box, and used as an object no more.
        unsafe { std::ptr::drop_in_place(object) };
        if layout.size() == 0 {
            return; // a box of it has no memory
        }
        let mut quarantined = QUARANTINED.lock().unwrap_or_else(PoisonError::into_inner);
        quarantined.push_back(Memory { start: object.cast(), layout });
        if quarantined.len() > QUARANTINE
            && let Some(oldest) = quarantined.pop_front()
        {
            drop(quarantined);
            // SAFETY: from a box of this layout, whose object has been dropped above.
            unsafe { std::alloc::dealloc(oldest.start, oldest.layout) };
        }
    }
}

#[cfg(all(feature = "chaos", not(loom)))]
pub use imp::fork;
#[cfg(feature = "chaos")]
pub use imp::{install, remove_step};

#[cfg(feature = "chaos")]
pub(crate) use imp::{free, mutant, point};

#[cfg(not(feature = "chaos"))]
#[inline(always)]
pub(crate) const fn point(_point: Point) {}

#[cfg(not(feature = "chaos"))]
#[inline(always)]
pub(crate) const fn mutant(_mutant: Mutant) -> bool {
    false
}

#[cfg(not(feature = "chaos"))]
#[inline(always)]
pub(crate) fn free<T: ?Sized>(object: Box<T>) {
    drop(object);
}

/// `Release`, unless that is what is removed.
#[inline(always)]
pub(crate) fn release_unless(removed: Mutant) -> std::sync::atomic::Ordering {
    use std::sync::atomic::Ordering::{Relaxed, Release};
    if mutant(removed) { Relaxed } else { Release }
}
