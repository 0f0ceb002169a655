//! What a kernel gives: which CPU this is, interrupts off, a clock, and ways to reach other CPUs.

/// What [`Kernel`](crate::Kernel) needs of the kernel around it. None of these is called with the
/// machine's lock held, but [`now_ns`](Self::now_ns).
///
/// # Safety
/// A CPU's own part of the [`Kernel`](crate::Kernel) is reached without a lock: by whoever runs on
/// that CPU with interrupts off. So:
/// - [`this_cpu`](Self::this_cpu) returns a number that no other CPU has, and the same one as long
///   as interrupts are off.
/// - While an [`IrqGuard`](Self::IrqGuard) lives, nothing else runs on its CPU but an NMI; and the
///   thread that has it stays on that CPU.
/// - No function here calls a function of the `Kernel`, but [`wait`](Self::wait), which calls
///   `done`. (An interrupt or another thread that one of them lets in is no call of its own.)
/// - An NMI calls nothing of the `Kernel` but `nmi_enter`, `nmi_exit`, `cookie`, `poll`, `snapshot`
///   and `cpu_snapshot`.
/// - [`thread`](Self::thread) is as it says, [`is_preemptible`](Self::is_preemptible) is false in a
///   section, and `wait` returns when `done` has returned true, and not before.
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
    /// Interrupts are off on this CPU while it lives; then they are as they were before.
    type IrqGuard;

    /// The number of the CPU that runs this, from 0. Called where it cannot change.
    fn this_cpu(&self) -> usize;

    /// Turns interrupts off on this CPU, and with them preemption. May be nested.
    fn irq_off(&self) -> Self::IrqGuard;

    /// Nanoseconds of a clock that all CPUs share. It may wrap, and if it goes backward once, a
    /// grace period is looked at too early. While it stands still, no grace period is scanned.
    fn now_ns(&self) -> u64;

    /// Whether the caller is a thread that may sleep: interrupts on, and in no section.
    fn is_preemptible(&self) -> bool;

    /// A number for the thread that calls, which no other thread has. It is not `usize::MAX`.
    fn thread(&self) -> usize;

    /// Has each of these CPUs pass through its scheduler as soon as it can: an interrupt that sets
    /// "needs rescheduling". May be this one. Called with interrupts off: it does not wait for an
    /// answer.
    fn resched(&self, cpus: &CpuSet);

    /// Has the worker of `cpu`, which is this CPU, call
    /// [`run_callbacks`](crate::Kernel::run_callbacks). The worker looks at
    /// [`has_callbacks`](crate::Kernel::has_callbacks) *after* it has said that it sleeps; a wake
    /// that is lost all the same comes again at the next tick. Called with interrupts off.
    fn wake_worker(&self, cpu: usize);

    /// Sleeps until `done` returns true, and does not unwind. The thread itself calls `done`, in no
    /// section, with interrupts on: once more after it has said that it sleeps, and after each
    /// [`wake_waiters`](Self::wake_waiters). `done` may call the functions here, so none of the
    /// platform's locks is held.
    ///
    /// With `polls` nobody says when there is something to look at: the thread calls `done` again
    /// and again, and lets other threads run in between. If it sleeps instead, it is woken in the
    /// end, but an expedited grace period takes as long as another.
    fn wait(&self, done: &dyn Fn() -> bool, polls: bool);

    /// Something has happened that a thread in [`wait`](Self::wait) may wait for. Called with
    /// interrupts off.
    fn wake_waiters(&self);
}

/// A set of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSet {
    words: [u64; Self::CPUS / 64],
}

impl CpuSet {
    /// CPUs that there can be at most.
    pub const CPUS: usize = 1_024;

    /// No CPU.
    pub const EMPTY: Self = Self { words: [0; Self::CPUS / 64] };

    /// Adds `cpu`, if it is in range.
    pub fn insert(&mut self, cpu: usize) {
        if let Some(word) = self.words.get_mut(cpu / 64) {
            *word |= 1 << (cpu % 64);
        }
    }

    /// Whether `cpu` is in it.
    pub fn contains(&self, cpu: usize) -> bool {
        self.words.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 != 0)
    }

    /// Whether no CPU is.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Its CPUs, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        (0..Self::CPUS).filter(|&cpu| self.contains(cpu))
    }

    /// 64 CPUs each, the lowest first: as an interrupt controller takes them.
    pub const fn words(&self) -> &[u64] {
        &self.words
    }
}
