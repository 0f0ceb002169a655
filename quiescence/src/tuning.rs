//! What a domain's deferral may take: memory, patience, and turns. Adjustable while it works.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::os;

/// What a domain's deferral may take; read by [`Domain::tuning`](crate::Domain::tuning), set by
/// [`Domain::tune`](crate::Domain::tune) at any time, or when the domain is [built](crate::Builder::tuning).
///
/// ```
/// use std::time::Duration;
///
/// let domain = quiescence::Domain::global();
/// let mut tuning = domain.tuning();
/// tuning.bytes_max = 16 << 20;
/// tuning.lazy = Duration::from_millis(20);
/// domain.tune(tuning);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tuning {
    /// Objects and closures that may wait; taken as at least 1. By default as many as fill `bytes_max`
    /// with objects of 256 bytes, but from 65,536 to 1,048,576: an object may own memory that it was
    /// not counted with.
    ///
    /// Threads take room from the domain some at a time, and keep what is left over until they defer again, or
    /// end. So there may be no room though less waits: by a 64th of the limit for each other thread at most,
    /// and by half of it altogether. The same goes for bytes.
    pub objects_max: u64,
    /// Bytes that may wait: the objects' own sizes, or what [`retire_sized`](crate::Domain::retire_sized)
    /// was told. Taken as at least 1; an object that is larger waits alone, or if it cannot, its thread does
    /// ([`try_retire`](crate::Domain::try_retire) gives it back). By default 1/64 of the memory
    /// that this process may have (the machine's, or its control group's if that is less), but at least
    /// 16 MiB. Memory that waits is of no use to anybody: a 64th is lost in the noise of what a program
    /// needs, and holds a second of a flood on most machines.
    pub bytes_max: u64,
    /// How long what is deferred may wait for company before a grace period is asked for on its behalf,
    /// if nobody asks earlier; 100 ms by default. An idle process makes no grace periods.
    pub lazy: Duration,
    /// Callbacks that the worker, or whoever waits, runs in one go, at least; 32 by default, taken as at least 1.
    /// Where thousands are ready, one in 128 of them. (A thread that retires runs 10 for each 9 that it adds.)
    pub run_min: u32,
    /// After this much time in one go the thread that runs callbacks sees to something else first; 3 ms
    /// by default.
    pub run_time: Duration,
    /// A grace period that takes longer is reported, again at each doubling of its age; 1 s by default.
    /// `None` turns the reports off. See [`set_stall_hook`](crate::set_stall_hook).
    pub stall_after: Option<Duration>,
    /// The same for grace periods that somebody wants expedited; 200 ms by default.
    pub stall_after_expedited: Option<Duration>,
}

impl Default for Tuning {
    fn default() -> Self {
        Kept::new().get()
    }
}

/// The part of the memory that may wait, by default: one in so many bytes.
const SHARE: u64 = 64;
const BYTES_LEAST: u64 = 16 << 20;
const BYTES_AN_OBJECT: u64 = 256;
const OBJECTS: std::ops::RangeInclusive<u64> = 65_536..=1_048_576;

/// A tuning that may be changed by one thread while others look.
#[derive(Debug)]
pub(crate) struct Kept {
    /// 0 stands for the default, which is not known before the program runs.
    objects_max: AtomicU64,
    bytes_max: AtomicU64,
    lazy_ns: AtomicU64,
    run_min: AtomicU64,
    run_ns: AtomicU64,
    /// `u64::MAX` for never.
    stall_after_ns: AtomicU64,
    stall_after_expedited_ns: AtomicU64,
}

impl Kept {
    pub(crate) const fn new() -> Self {
        Self {
            objects_max: AtomicU64::new(0),
            bytes_max: AtomicU64::new(0),
            lazy_ns: AtomicU64::new(100_000_000),
            run_min: AtomicU64::new(32),
            run_ns: AtomicU64::new(3_000_000),
            stall_after_ns: AtomicU64::new(1_000_000_000),
            stall_after_expedited_ns: AtomicU64::new(200_000_000),
        }
    }

    // Relaxed, all of it: numbers that order nothing, each good by itself.

    pub(crate) fn objects_max(&self) -> u64 {
        match self.objects_max.load(Relaxed) {
            0 => (default_bytes() / BYTES_AN_OBJECT).clamp(*OBJECTS.start(), *OBJECTS.end()),
            set => set,
        }
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        match self.bytes_max.load(Relaxed) {
            0 => default_bytes(),
            set => set,
        }
    }

    pub(crate) fn lazy_ns(&self) -> u64 {
        self.lazy_ns.load(Relaxed)
    }

    pub(crate) fn run_min(&self) -> u64 {
        self.run_min.load(Relaxed)
    }

    pub(crate) fn run_ns(&self) -> u64 {
        self.run_ns.load(Relaxed)
    }

    /// `u64::MAX` if it is off.
    pub(crate) fn stall_after_ns(&self, expedited: bool) -> u64 {
        if expedited { &self.stall_after_expedited_ns } else { &self.stall_after_ns }.load(Relaxed)
    }

    pub(crate) fn get(&self) -> Tuning {
        let after = |ns: u64| (ns != u64::MAX).then(|| Duration::from_nanos(ns));
        Tuning {
            objects_max: self.objects_max(),
            bytes_max: self.bytes_max(),
            lazy: Duration::from_nanos(self.lazy_ns()),
            run_min: self.run_min() as u32,
            run_time: Duration::from_nanos(self.run_ns()),
            stall_after: after(self.stall_after_ns(false)),
            stall_after_expedited: after(self.stall_after_ns(true)),
        }
    }

    pub(crate) fn set(&self, tuning: Tuning) {
        let after = |after: Option<Duration>| after.map_or(u64::MAX, ns);
        self.objects_max.store(tuning.objects_max.max(1), Relaxed);
        self.bytes_max.store(tuning.bytes_max.max(1), Relaxed);
        self.lazy_ns.store(ns(tuning.lazy), Relaxed);
        self.run_min.store(u64::from(tuning.run_min.max(1)), Relaxed);
        self.run_ns.store(ns(tuning.run_time), Relaxed);
        self.stall_after_ns.store(after(tuning.stall_after), Relaxed);
        self.stall_after_expedited_ns.store(after(tuning.stall_after_expedited), Relaxed);
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What may wait by default; found out once.
pub(crate) fn default_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| (os::memory::available_bytes() / SHARE).max(BYTES_LEAST))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_got_and_nonsense_is_made_sense_of() {
        let kept = Kept::new();
        let mut tuning = kept.get();
        assert!(tuning.bytes_max >= BYTES_LEAST && OBJECTS.contains(&tuning.objects_max));
        tuning.objects_max = 7;
        tuning.stall_after = None;
        tuning.lazy = Duration::MAX;
        kept.set(tuning);
        assert_eq!(kept.get().objects_max, 7);
        assert_eq!(kept.get().stall_after, None);
        assert_eq!(kept.stall_after_ns(false), u64::MAX);
        tuning.bytes_max = 0;
        tuning.run_min = 0;
        kept.set(tuning);
        assert_eq!((kept.bytes_max(), kept.run_min()), (1, 1));
    }
}
