//! What there is to see: for a report of a stall, and for tests. The kernel prints; this does not.

use grace::Sequence;

use crate::front::Kernel;
use crate::misuse::Hook;
use crate::periods::GracePeriods;
use crate::platform::Platform;
use crate::sync::Ordering;

/// The machine at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The grace period in progress, or the last one. Numbers begin three before they wrap.
    pub sequence: Sequence,
    /// When it began, by the platform's clock.
    pub began_ns: u64,
    /// How many CPUs are online.
    pub online: usize,
    /// The number of hooks that were called where they may not be, and the last of them.
    pub misuses: (u32, Hook),
}

/// The state of a CPU. The fields taken from the tree are of one moment; each other field is of its
/// own moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSnapshot {
    /// It is online.
    pub is_online: bool,
    /// The grace period in progress waits for it.
    pub is_holdout: bool,
    /// It is idle, in user mode or offline, and in no interrupt there.
    pub is_extended: bool,
    /// Callbacks that were queued on it and have not run.
    pub callbacks: u64,
    /// The bytes that their objects count for.
    pub bytes: u64,
    /// The last four hooks, the newest first; one that comes several times in a row counts once.
    /// [`Kernel::call`] is not among them.
    pub hooks: [Hook; 4],
}

impl<P: Platform, const CPUS: usize, E: GracePeriods<CPUS>> Kernel<P, CPUS, E> {
    /// The state of the machine. `None` if its lock is held for long, as may happen after a crash
    /// of the kernel, or if no CPU has ever started, and no engine was chosen.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let _irq = self.platform.irq_off();
        self.try_machine(|machine| Snapshot {
            sequence: machine.periods.sequence(),
            began_ns: machine.began_ns,
            online: machine.online,
            misuses: self.misuses.seen(),
        })
    }

    /// The state of a CPU. `None` in the same cases, or if there is no such CPU.
    pub fn cpu_snapshot(&self, cpu: usize) -> Option<CpuSnapshot> {
        let _irq = self.platform.irq_off();
        let own = self.cpus.get(cpu)?;
        let is_holdout = self.try_machine(|machine| machine.periods.is_holdout(cpu))?;
        // Acquire: for people, each a whole word; but what has run was queued before, so it is
        // loaded before too, or the difference might be below 0.
        let ran = own.seen.ran.load(Ordering::Acquire);
        Some(CpuSnapshot {
            is_online: own.is_online(),
            is_holdout,
            is_extended: own.seen.words.is_extended(),
            callbacks: own.seen.queued.load(Ordering::Acquire).wrapping_sub(ran),
            bytes: own.seen.bytes.load(Ordering::Relaxed),
            hooks: own.hooks(),
        })
    }
}
