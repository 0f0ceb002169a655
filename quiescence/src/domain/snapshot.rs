//! [`Snapshot`]: a few words that are read as a whole, and never torn.
//!
//! A load is one restartable sequence: load the pointer to a buffer, copy the buffer. An updater
//! fills a buffer that no thread reads, swaps the pointer, and executes a grace period of
//! restartable reads ([`rseq`](crate::rseq)), which is one system call. Then no thread reads the
//! old buffer any more, and it is used for the next value.
//!
//! **Buffers are freed only when the snapshot is dropped**: a load that runs into a page fault in
//! an old buffer is restarted, but only if the page is still mapped when the kernel handles the
//! fault. So there is one buffer more than there ever were updaters at once, and after the first
//! stores no store allocates.

mod buffer;

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use buffer::Buffer;

use crate::domain::impls::made_of_value;
use crate::os::sync::{self, Mutex, MutexGuard, Rank};
use crate::os::user_code::{self, Site};
use crate::reclaim::weigh::owns;
use crate::rseq;

/// A value of a few words that many threads read as a whole and some replace.
///
/// [`load`](Self::load) copies the value, without a locked instruction and without writing to
/// memory that others read. It takes about a nanosecond for four words, and never waits. Updaters
/// pay: one `membarrier(2)` per replacement. They do not wait for readers, not even for one that is
/// preempted or stopped in the middle of a load.
///
/// For time stamps and their conversion factors, positions, rates, addresses, small tables. A
/// sequence lock would also do, but its readers retry for as long as writers interfere. An
/// [`Rcu`](crate::Rcu) costs less to read, and returns a reference, but its sections delay the
/// freeing of memory.
///
/// `T` is copied as bytes, padding included, so any `Copy` type will do. It may have at most
/// 8,192 bytes: a bigger one does not compile. A size of more than 16 words is rounded up to a size
/// class, at most a quarter larger, and the whole class is copied. Threads only ever get copies, so
/// `T: Send` is enough for a `Snapshot<T>` to be shared.
///
/// # Waiting
/// If restartable sequences are available ([`PerCpuPath::Restartable`](crate::tuning::PerCpuPath)),
/// a load is a bounded number of instructions, and no updater waits for one. Without them, and
/// after eight interruptions in a row, a load runs in a section of a few instructions, which it
/// enters and leaves with atomic instructions that it never repeats. An updater waits for loads in
/// such sections, so also for one that is preempted there. Updaters exclude one another only during
/// a pointer swap.
///
/// # Signal handlers and `fork`
/// A handler may call `load`, whatever it interrupted; it must not update. In a child made by
/// `fork` while another thread was updating, loads work, but an update may find that thread's lock
/// held forever.
///
/// # Memory
/// One buffer more than the largest number of updates that were ever in progress at once. They are
/// kept until the snapshot is dropped. None of this counts against a domain's limit, unless a value
/// that waits to be freed owns the snapshot: then two buffers do.
///
/// Source of the idea: Mathieu Desnoyers's `membarrier` for restartable sequences (Linux 5.10).
///
/// ```
/// use quiescence::cell::Snapshot;
///
/// #[derive(Clone, Copy)]
/// struct Clock { base_ns: u64, mult: u32, shift: u32 }
///
/// let clock = Snapshot::new(Clock { base_ns: 0, mult: 1, shift: 0 });
/// clock.update(|old| Clock { base_ns: old.base_ns + 1_000, ..old });
/// let Clock { base_ns, mult, shift } = clock.load();
/// assert_eq!((base_ns, mult, shift), (1_000, 1, 0));
/// ```
///
/// A value that is too big, or that may not be sent to another thread, does not compile:
/// ```compile_fail,E0080
/// quiescence::cell::Snapshot::new([0_u8; 8_193]).load();
/// ```
/// ```compile_fail,E0277
/// quiescence::cell::Snapshot::new(std::ptr::null::<u8>());
/// ```
pub struct Snapshot<T: Copy + Send> {
    /// The memory of a [`Buffer`]; never null.
    current: AtomicPtr<buffer::Word>,
    updaters: Mutex<Updaters<T>>,
}

/// What updaters share. Held for a few instructions, none of them user code.
struct Updaters<T> {
    /// How often the value has been replaced.
    replaced: u64,
    /// Buffers that no thread reads.
    spares: Vec<Buffer<T>>,
}

impl<T: Copy + Send> Snapshot<T> {
    /// Creates a snapshot of `value`. Allocates, so it is not `const`: in a static, use a
    /// `LazyLock`.
    ///
    /// The first one in the process chooses how the process counts per CPU: see
    /// [`per_cpu_path`](crate::tuning::per_cpu_path).
    pub fn new(value: T) -> Self {
        rseq::prepare();
        Self {
            current: AtomicPtr::new(Buffer::new(value).into_raw()),
            updaters: Mutex::new(Rank::Snapshot, Updaters { replaced: 0, spares: Vec::new() }),
        }
    }

    /// Returns the current value.
    ///
    /// Wait-free, also in signal handlers. Costs two instructions per word and some ten more.
    #[inline]
    pub fn load(&self) -> T {
        let mut value = MaybeUninit::uninit();
        // SAFETY: a buffer of a `T`, which no thread writes to until a grace period after it was
        // taken out of this place [RR-1].
        if unsafe { buffer::read_restartable(&self.current, &mut value) } {
            // SAFETY: it was written.
            return unsafe { value.assume_init() };
        }
        self.load_in_section()
    }

    #[cold]
    #[inline(never)]
    fn load_in_section(&self) -> T {
        let section = rseq::section();
        // Acquire: pairs with the AcqRel in `publish`; the buffer is filled.
        let current = self.current.load(Acquire);
        // SAFETY: a buffer of a `T`, which no thread writes to until this section has ended [RR-2].
        let value = unsafe { current.cast::<T>().read() };
        drop(section);
        value
    }

    /// Replaces the value.
    ///
    /// Blocks for one `membarrier(2)`: microseconds. See [Waiting](Self#waiting). Allocates only if
    /// more updates are in progress than ever before. After it has returned, no load returns the
    /// old value.
    pub fn store(&self, value: T) {
        self.swap(value);
    }

    /// Replaces the value and returns the old one. Blocks as [`store`](Self::store) does.
    pub fn swap(&self, value: T) -> T {
        self.publish(value, None).unwrap_or_else(|()| unreachable!("no condition was given"))
    }

    /// Replaces the value by the result of `f`, called with the current value, and returns the old
    /// one. `f` is called again if the value has been replaced meanwhile, so it must not store here
    /// itself on every call. Blocks as [`store`](Self::store) does. If `f` panics, nothing has
    /// changed.
    pub fn update(&self, mut f: impl FnMut(T) -> T) -> T {
        loop {
            let (old, replaced) = {
                let updaters = self.lock();
                // No thread replaces it, or uses its buffer again, while we have the lock.
                (self.load(), updaters.replaced)
            };
            let new = user_code::run(Site::Update, || f(old));
            if let Ok(old) = self.publish(new, Some(replaced)) {
                return old;
            }
        }
    }

    /// Replaces the value, if it has been replaced exactly so often.
    fn publish(&self, value: T, replaced: Option<u64>) -> Result<T, ()> {
        let spare = self.lock().spares.pop();
        let new = match spare {
            Some(mut spare) => {
                spare.fill(value);
                spare
            }
            None => Buffer::new(value),
        };
        let mut updaters = self.lock();
        if replaced.is_some_and(|replaced| replaced != updaters.replaced) {
            updaters.spares.push(new);
            return Err(());
        }
        updaters.replaced += 1;
        // AcqRel: what is in the new buffer is for the thread that loads the pointer; what is in
        // the old one, for us.
        let old = self.current.swap(new.into_raw(), AcqRel);
        drop(updaters);
        rseq::grace_period();
        // SAFETY: from `into_raw`, and taken out of the place by us alone.
        let old = unsafe { Buffer::from_raw(old) };
        let value = old.value();
        self.lock().spares.push(old);
        Ok(value)
    }

    fn lock(&self) -> MutexGuard<'_, Updaters<T>> {
        sync::lock(&self.updaters)
    }

    /// Borrows the value. The thread that has `&mut` has no readers.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: a buffer of a `T`, and aligned as one; no load continues, since each borrows
        // `self`.
        unsafe { &mut *self.current.get_mut().cast::<T>() }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.load()
    }
}

impl<T: Copy + Send> Drop for Snapshot<T> {
    fn drop(&mut self) {
        let current = std::mem::replace(self.current.get_mut(), ptr::null_mut());
        // SAFETY: from `into_raw`, and no other thread has it.
        drop(unsafe { Buffer::<T>::from_raw(current) });
    }
}

made_of_value!(Snapshot<T: Copy, Send>, new);

owns! {
    /// Two buffers: it has more if several threads have ever updated it at once, one if none has.
    [T: Copy + Send] Snapshot<T>, true, |_snapshot| 2 * Buffer::<T>::LAYOUT.size();
}

impl<T: Copy + Send + fmt::Debug> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.load()).finish()
    }
}
