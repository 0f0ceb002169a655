//! What there is for each CPU: its own part, and the words that others see, each on lines of its
//! own.

use core::cell::UnsafeCell;
use core::ptr::NonNull;

use grace::Sequence;
use grace::limit::Amount;

use crate::engine::tree::cpu::{self, AllWords, Words};
use crate::head::{Head, Queue, Run};
use crate::misuse::Hook;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, constant};

/// Where a CPU is, as the hooks tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Kernel,
    User,
    Idle,
}

/// Its place in the order of hotplug, in a word.
pub(crate) mod phase {
    pub(crate) const OFFLINE: u32 = 0;
    pub(crate) const STARTING: u32 = 1;
    pub(crate) const ONLINE: u32 = 2;
    pub(crate) const DYING: u32 = 3;
    /// Its callbacks are being moved.
    pub(crate) const DEAD: u32 = 4;
}

/// A CPU's own part.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) tree: cpu::Own,
    pub(crate) queue: Queue,
    pub(crate) place: Place,
    /// At this number, if it is still the one that is told, a tick finds nothing to do.
    pub(crate) rests_at: Sequence,
    /// How many of the callbacks ever queued are in `tree.callbacks`, or were. The others have come
    /// since the CPU last looked, as it does first in a hook that is not done at once.
    counted: u64,
    /// While fewer have ever been queued, and no bytes are added, the limit is not near.
    look_at: u64,
}

/// A number that is not told: it comes before the first one, and is come to again after centuries.
const NEVER: Sequence = Sequence::after(0_u64.wrapping_sub(4));
/// The first that is told. The numbers wrap with the third grace period, so that each kernel that
/// boots tests that.
pub(crate) const FIRST: Sequence = Sequence::after(0_u64.wrapping_sub(3));

impl Own {
    /// Counts the callbacks that have come since the CPU last looked. The next tick looks, too.
    #[inline(never)]
    pub(crate) fn count_queued(&mut self, seen: &Seen) {
        let queued = seen.queued();
        self.tree.callbacks.push(queued.wrapping_sub(self.counted));
        self.counted = queued;
        self.rests_at = NEVER;
    }

    /// The limit is not near before so many more callbacks are queued.
    pub(crate) fn look_in(&mut self, seen: &Seen, callbacks: u64) {
        self.look_at = seen.queued().saturating_add(callbacks);
    }

    /// Whether the CPU must see to it that a grace period comes to its end, or has callbacks.
    #[inline]
    pub(crate) fn has_demand(&self, seen: &Seen, told: Sequence) -> bool {
        self.rests_at != told && (self.tree.has_demand(told) || self.counted != seen.queued())
    }
}

impl Seen {
    #[inline]
    fn queued(&self) -> u64 {
        // Relaxed: for the CPU itself, which writes it.
        self.queued.load(Ordering::Relaxed)
    }
}

/// The words that others see: on lines of their own, so that who looks does not slow the CPU down.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) words: Words,
    pub(crate) phase: AtomicU32,
    /// The last four hooks, the newest in the lowest byte.
    hooks: AtomicU32,
    /// Callbacks ever queued here, and of those ever run or moved. They wrap.
    pub(crate) queued: AtomicU64,
    pub(crate) ran: AtomicU64,
    /// Bytes that the objects of those count for which wait here.
    pub(crate) bytes: AtomicU64,
    /// One more than the thread that runs the callbacks, or 0. This CPU sets it, whoever runs them
    /// clears it.
    pub(crate) runner: AtomicUsize,
}

#[repr(align(128))]
#[derive(Debug)]
struct Line<T>(UnsafeCell<T>);

/// One CPU.
#[derive(Debug)]
pub struct PerCpu {
    own: Line<Own>,
    pub(crate) seen: Seen,
}

/// Two pairs of lines.
#[cfg(not(loom))]
const _: () = assert!(size_of::<PerCpu>() == 256, "a CPU has grown");

// SAFETY: `own` is reached only through `PerCpu::own`, whose callers see to it that one at a time
// does; the rest is atomic. The heads in the queue belong to it.
unsafe impl Sync for PerCpu {}

impl PerCpu {
    constant! {
        /// A CPU that is offline, which is an extended quiescent state.
        pub(crate) fn new(sequence: Sequence) -> Self {
            let own = Own {
                tree: cpu::Own::new(sequence),
                queue: Queue::EMPTY,
                place: Place::Kernel,
                rests_at: NEVER,
                counted: 0,
                look_at: 0,
            };
            Self {
                own: Line(UnsafeCell::new(own)),
                seen: Seen {
                    words: Words::new(true),
                    phase: AtomicU32::new(phase::OFFLINE),
                    hooks: AtomicU32::new(0),
                    queued: AtomicU64::new(0),
                    ran: AtomicU64::new(0),
                    bytes: AtomicU64::new(0),
                    runner: AtomicUsize::new(0),
                },
            }
        }
    }

    /// The CPU's own part.
    ///
    /// # Safety
    /// The caller runs on this CPU with interrupts off, or has made the CPU its own by
    /// [`phase::DEAD`]; and holds no other reference from here.
    #[expect(clippy::mut_from_ref, reason = "interrupts off make it the only one")]
    #[inline]
    pub(crate) unsafe fn own(&self) -> &mut Own {
        // SAFETY: the caller's.
        unsafe { &mut *self.own.0.get() }
    }

    /// Queues a callback. Returns whether the CPU's callbacks or their bytes may be near the limit.
    ///
    /// # Safety
    /// As for [`Queue::push`]. `own` is this CPU's.
    #[inline]
    pub(crate) unsafe fn enqueue(
        &self,
        own: &mut Own,
        head: NonNull<Head>,
        run: Run,
        near: &Amount,
    ) -> bool {
        // SAFETY: the caller's: it is valid.
        let bytes = unsafe { head.as_ref() }.bytes();
        // SAFETY: the caller's: it is in no queue.
        unsafe { own.queue.push(head, run) };
        own.rests_at = NEVER;
        let queued = self.seen.queued().wrapping_add(1);
        // Relaxed: a barrier that is to wait for it comes after `call`, however that is ordered.
        self.seen.queued.store(queued, Ordering::Relaxed);
        let is_near = bytes != 0 && self.add_bytes(bytes) >= near.bytes;
        is_near || queued >= own.look_at
    }

    /// How many callbacks, and of how many bytes, have not run; for the CPU itself.
    pub(crate) fn waiting(&self) -> Amount {
        let seen = &self.seen;
        // Relaxed: numbers.
        let ran = seen.ran.load(Ordering::Relaxed);
        let bytes = seen.bytes.load(Ordering::Relaxed);
        Amount { objects: seen.queued().wrapping_sub(ran), bytes }
    }

    /// Adds to the bytes that wait, or, wrapping, subtracts. Only this CPU does. Returns the sum.
    #[inline]
    pub(crate) fn add_bytes(&self, bytes: u64) -> u64 {
        // Relaxed: this CPU's own word; a number for others.
        let sum = self.seen.bytes.load(Ordering::Relaxed).wrapping_add(bytes);
        self.seen.bytes.store(sum, Ordering::Relaxed);
        sum
    }

    /// Notes that a hook was called, unless it was the last one: only this CPU writes that.
    #[inline]
    pub(crate) fn note(&self, hook: Hook) {
        // Relaxed, here and below: for people; one word, so never torn.
        let hooks = self.seen.hooks.load(Ordering::Relaxed);
        if hooks as u8 != hook as u8 {
            self.seen.hooks.store(hooks << 8 | hook as u32, Ordering::Relaxed);
        }
    }

    /// The last four, the newest first.
    pub(crate) fn hooks(&self) -> [Hook; 4] {
        self.seen.hooks.load(Ordering::Relaxed).to_le_bytes().map(Hook::from_code)
    }

    /// Whether that thread runs this CPU's callbacks; `None`: whether any does.
    pub(crate) fn is_run_by(&self, thread: Option<usize>) -> bool {
        // Acquire: pairs with the Release with which it is cleared; what that thread counted is
        // seen by the next one.
        let runner = self.seen.runner.load(Ordering::Acquire);
        runner != 0 && thread.is_none_or(|thread| runner == thread.wrapping_add(1))
    }

    #[inline]
    pub(crate) fn is_online(&self) -> bool {
        // Acquire: pairs with the Release with which hotplug sets it.
        matches!(self.seen.phase.load(Ordering::Acquire), phase::STARTING | phase::ONLINE)
    }
}

impl AllWords for [PerCpu] {
    fn of(&self, cpu: usize) -> Option<&Words> {
        Some(&self.get(cpu)?.seen.words)
    }
}
