//! What a kernel gives: which CPU this is, interrupts off, a clock, and ways to reach other CPUs.

/// What [`Kernel`](crate::Kernel) requires of the kernel around it. None of these functions is
/// called with the machine's lock held, except [`now_ns`](Self::now_ns).
///
/// Hooks call [`irq_off`](Self::irq_off) and [`this_cpu`](Self::this_cpu) alone, and so does
/// [`call`](crate::Kernel::call): a scheduler may hold its locks. Only `tick`, `run_callbacks`,
/// `cpu_dead` and the functions that wait call others, which may take such locks.
///
/// # Safety
/// A CPU's own part of the [`Kernel`](crate::Kernel) is accessed without a lock, by code that runs
/// on that CPU with interrupts off. So:
/// - [`this_cpu`](Self::this_cpu) returns a number that no other CPU has, and the same one as long
///   as interrupts are off.
/// - While an [`IrqGuard`](Self::IrqGuard) lives, nothing else runs on its CPU except an NMI, and
///   the thread that holds it stays on that CPU. Where interrupts go off or on, the compiler moves
///   no access to memory across: `asm!` there has no `nomem`.
/// - No function here calls a function of the `Kernel`, except [`wait`](Self::wait), which calls
///   `done`, and outside of `done` may pass through the scheduler, with its hooks. (An interrupt or
///   another thread that runs meanwhile does not count as such a call.)
/// - An NMI calls no function of the `Kernel` except `nmi_enter`, `nmi_exit`, `cookie`, `poll`,
///   `snapshot` and `cpu_snapshot`. These call [`this_cpu`](Self::this_cpu) and
///   [`irq_off`](Self::irq_off) there, perhaps within another call of them.
/// - [`thread`](Self::thread) returns what it promises, [`is_preemptible`](Self::is_preemptible) is
///   false in a section, and `wait` returns when `done` has returned true, and not before.
/// - No function here unwinds, nor does the drop of an `IrqGuard`: callers have objects on their
///   stacks that others reach.
///
/// For an [`Srcu`](crate::Srcu) the same holds, and its documentation says what differs.
///
/// ```compile_fail,E0200
/// # use kernel::{CpuSet, Platform};
/// struct Wrong;
/// impl Platform for Wrong {
///     type IrqGuard = ();
///     fn this_cpu(&self) -> usize { 0 }
///     fn irq_off(&self) {}
///     fn now_ns(&self) -> u64 { 0 }
///     fn is_preemptible(&self) -> bool { true }
///     fn thread(&self) -> usize { 0 }
///     fn resched(&self, _: &CpuSet) {}
///     fn wake_worker(&self, _: usize) {}
///     fn wait(&self, _: &dyn Fn() -> bool, _: bool) {}
///     fn wake_waiters(&self) {}
/// }
/// ```
pub unsafe trait Platform: Sync {
    /// Interrupts are off on this CPU while it lives; dropping it restores the previous state.
    type IrqGuard;

    /// The number of the current CPU, from 0. Called where it cannot change.
    fn this_cpu(&self) -> usize;

    /// Turns interrupts off on this CPU, and with them preemption. May be nested.
    fn irq_off(&self) -> Self::IrqGuard;

    /// Nanoseconds of a clock that all CPUs share. It may wrap. If it ever goes backwards, a grace
    /// period is scanned too early once. While it stands still, no grace period is scanned.
    fn now_ns(&self) -> u64;

    /// Whether the caller is a thread that may sleep: interrupts on, and in no section.
    fn is_preemptible(&self) -> bool;

    /// A number for the calling thread that no other thread has. It is not `usize::MAX`.
    fn thread(&self) -> usize;

    /// Makes each of these CPUs pass through its scheduler as soon as it can, by an interrupt that
    /// sets "needs rescheduling". The current CPU may be among them, and one that has gone offline
    /// just now. Called with interrupts off: it must not wait for an answer.
    fn resched(&self, cpus: &CpuSet);

    /// Makes the worker of `cpu`, which is this CPU, call
    /// [`run_callbacks`](crate::Kernel::run_callbacks). The worker must check
    /// [`has_callbacks`](crate::Kernel::has_callbacks) *after* it has announced that it sleeps; if
    /// a wake-up is lost all the same, another one follows at the next tick. Called with interrupts
    /// off.
    fn wake_worker(&self, cpu: usize);

    /// Sleeps until `done` returns true, and does not unwind. The thread itself calls `done`, in no
    /// section, with interrupts on: once more after it has announced that it sleeps, with a full
    /// fence or a lock in between, and after each [`wake_waiters`](Self::wake_waiters). `done` may
    /// call the functions here, so the thread must hold none of the platform's locks.
    ///
    /// With `polls`, no wake-up announces that there is something to check: the thread calls `done`
    /// repeatedly, and lets other threads run in between. If it sleeps instead, it is woken
    /// eventually, but an expedited grace period then takes as long as any other.
    fn wait(&self, done: &dyn Fn() -> bool, polls: bool);

    /// Wakes the threads in [`wait`](Self::wait): an event has happened for which they may be
    /// waiting. Orders what its caller has stored before its own look for sleepers, by a full fence
    /// or a lock. Called with interrupts off.
    fn wake_waiters(&self);
}

/// A set of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSet {
    words: [u64; Self::CPUS / 64],
}

impl CpuSet {
    /// The largest number of CPUs.
    pub const CPUS: usize = 1_024;

    /// The empty set.
    pub const EMPTY: Self = Self { words: [0; Self::CPUS / 64] };

    /// Adds `cpu`, if it is in range. Returns whether that is new.
    pub fn insert(&mut self, cpu: usize) -> bool {
        self.set(cpu, true)
    }

    /// Takes `cpu` out. Returns whether it was in.
    pub(crate) fn remove(&mut self, cpu: usize) -> bool {
        self.set(cpu, false)
    }

    fn set(&mut self, cpu: usize, is_in: bool) -> bool {
        let Some(word) = self.words.get_mut(cpu / 64) else { return false };
        let before = *word;
        let bit = 1 << (cpu % 64);
        *word = if is_in { before | bit } else { before & !bit };
        before != *word
    }

    /// Whether the set contains `cpu`.
    pub fn contains(&self, cpu: usize) -> bool {
        self.words.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 != 0)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The CPUs of the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        (0..Self::CPUS).filter(|&cpu| self.contains(cpu))
    }

    /// Words of 64 CPUs each, the lowest CPUs first, as interrupt controllers take them.
    pub const fn words(&self) -> &[u64] {
        &self.words
    }
}
