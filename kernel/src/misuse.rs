//! Misplaced hooks: in a debug build, a panic that names the hook; otherwise the call is counted,
//! shown by a snapshot, and refused.
//!
//! If a hook shows that an earlier one was forgotten, the CPU is treated as in the kernel: its
//! sections are protected from then on.

use crate::front::Kernel;
use crate::periods::GracePeriods;
use crate::platform::Platform;
use crate::sync::{AtomicU32, Ordering, constant};

/// The hooks, each told once: its code is its place among them.
macro_rules! hooks {
    ($($(#[$about:meta])* $hook:ident,)*) => {
        /// A function of [`Kernel`] that the kernel calls.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Hook {
            $($(#[$about])* $hook,)*
        }

        impl Hook {
            const ALL: &[Self] = &[$(Self::$hook),*];
        }
    };
}

hooks! {
    /// None yet.
    None,
    /// [`Kernel::context_switch`].
    ContextSwitch,
    /// [`Kernel::tick`].
    Tick,
    /// [`Kernel::cond_resched`].
    CondResched,
    /// [`Kernel::user_enter`].
    UserEnter,
    /// [`Kernel::user_exit`].
    UserExit,
    /// [`Kernel::idle_enter`].
    IdleEnter,
    /// [`Kernel::idle_exit`].
    IdleExit,
    /// [`Kernel::irq_enter`] or [`Kernel::nmi_enter`].
    IrqEnter,
    /// [`Kernel::irq_exit`] or [`Kernel::nmi_exit`].
    IrqExit,
    /// [`Kernel::cpu_starting`].
    CpuStarting,
    /// [`Kernel::cpu_online`].
    CpuOnline,
    /// [`Kernel::cpu_dying`].
    CpuDying,
    /// [`Kernel::cpu_dead`].
    CpuDead,
    /// [`Kernel::run_callbacks`].
    RunCallbacks,
    /// [`Kernel::call`].
    Call,
    /// [`Kernel::synchronize`], [`Kernel::synchronize_expedited`] or [`Kernel::wait`].
    Synchronize,
    /// [`Kernel::barrier`].
    Barrier,
}

impl Hook {
    pub(crate) fn from_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::None)
    }
}

/// Why a call was refused: it queued nothing, or did not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// The caller may not sleep: it is in a section, or has interrupts off.
    InSection,
    /// The caller is a callback: a barrier would wait for it to end.
    InCallback,
    /// Its CPU is not online.
    Offline,
    /// The head is queued already.
    Queued,
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::InSection => "the caller may not sleep, as in a section",
            Self::InCallback => "the caller is a callback, for which it would wait",
            Self::Offline => "the caller's CPU is not online",
            Self::Queued => "the head is already queued",
        })
    }
}

impl core::error::Error for Refused {}

/// The number of misuses, and the hook of the last one.
#[derive(Debug)]
pub(crate) struct Misuses {
    count: AtomicU32,
    last: AtomicU32,
}

impl Misuses {
    constant! {
        pub(crate) fn new() -> Self {
            Self { count: AtomicU32::new(0), last: AtomicU32::new(0) }
        }
    }

    /// Apart, so that hooks that are called where they may be stay short.
    #[cold]
    #[track_caller]
    fn add(&self, hook: Hook, what: &str, panics: bool) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.last.store(u32::from(hook as u8), Ordering::Relaxed);
        assert!(!panics, "{hook:?}: {what}");
    }

    pub(crate) fn seen(&self) -> (u32, Hook) {
        // Relaxed, here and below: numbers for people, each right by itself.
        let last = self.last.load(Ordering::Relaxed) as u8;
        (self.count.load(Ordering::Relaxed), Hook::from_code(last))
    }
}

impl<P: Platform, const CPUS: usize, E: GracePeriods<CPUS>> Kernel<P, CPUS, E> {
    /// Whether a hook for that CPU is called there. The caller has turned interrupts off.
    #[track_caller]
    pub(crate) fn is_here(&self, hook: Hook, cpu: usize) -> bool {
        self.check(hook, self.platform.this_cpu() == cpu, "called on another CPU")
    }

    /// Returns `is_right`. If that is false, counts a misuse of the hook; the caller refuses it.
    ///
    /// # Panics
    /// On a misuse, with [`Options::panics`](crate::Options::panics).
    #[track_caller]
    #[inline]
    pub(crate) fn check(&self, hook: Hook, is_right: bool, what: &str) -> bool {
        if !is_right {
            self.misuses.add(hook, what, self.options.panics);
        }
        is_right
    }
}
