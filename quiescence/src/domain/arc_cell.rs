//! [`ArcCell`] and [`ArcCellOption`]: a place for an [`Arc`] that is loaded at the price of its
//! clone, and replaced at any time.
//!
//! A load is one restartable sequence: load the pointer, add one to the count in front of what it
//! points to. An updater swaps the pointer and asks for a grace period of restartable reads
//! ([`rseq`](crate::rseq)), which is one system call; after it no thread can add to the old `Arc`'s
//! count by way of the place any more, so the reference that the place had is the updater's, to
//! give to its caller or to drop. There are no slots or lists of threads.
//!
//! This file may touch the pointer and, in a sequence, the count; where that is, is found out by
//! `count`.

mod count;

use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::os::percpu;
use crate::rseq;

/// A place for an `Arc` or none, in pointers. Whatever is in it holds a reference.
struct Place<T> {
    /// From `Arc::into_raw`, or null.
    pointer: AtomicPtr<T>,
    /// Makes it `Send` and `Sync` exactly where an `Arc<T>` is.
    owns: PhantomData<Arc<T>>,
}

impl<T> Place<T> {
    const fn empty() -> Self {
        Self { pointer: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    fn new(arc: Option<Arc<T>>) -> Self {
        Self { pointer: AtomicPtr::new(into_raw(arc)), owns: PhantomData }
    }

    /// One more reference to what is there.
    #[inline(always)]
    fn load(&self) -> Option<Arc<T>> {
        if count::is_countable::<T>() {
            // SAFETY: what is in the place keeps a reference until a grace period after it was
            // taken out [RR-1], and its count is so far in front of it.
            let loaded = unsafe { percpu::load_counted(&self.pointer, count::before::<T>()) };
            if let Some(pointer) = loaded {
                // SAFETY: from `into_raw`, and the reference that was just counted is ours. The
                // count cannot overflow: 2^63 loads that are all forgotten take centuries.
                return unsafe { from_raw(pointer) };
            }
        }
        self.load_in_section()
    }

    #[cold]
    #[inline(never)]
    fn load_in_section(&self) -> Option<Arc<T>> {
        // An empty place needs no section. And where there is something, `rseq::prepare` has run,
        // so that a child process is not left with ours. Acquire: as below.
        if self.pointer.load(Acquire).is_null() {
            return None;
        }
        let section = rseq::section();
        // Acquire: pairs with the AcqRel of who put it there; the object is whole.
        let pointer = self.pointer.load(Acquire);
        if !pointer.is_null() {
            // SAFETY: from `into_raw`; it keeps a reference until this section has ended [RR-2].
            unsafe { Arc::increment_strong_count(pointer) };
        }
        drop(section);
        // SAFETY: the reference that was just counted is ours.
        unsafe { from_raw(pointer) }
    }

    /// Puts another one there, and waits until the reference that the place had is the caller's
    /// alone.
    fn swap(&self, new: Option<Arc<T>>) -> Option<Arc<T>> {
        // AcqRel: what is replaced is whole for us, and the new one for the thread that loads it.
        let old = self.pointer.swap(into_raw(new), AcqRel);
        if !old.is_null() {
            rseq::grace_period();
        }
        // SAFETY: the place's reference, which no thread can find there any more.
        unsafe { from_raw(old) }
    }

    /// Puts another one there if it still is `current`. Returns what was there, and whether that
    /// was replaced.
    fn compare_and_swap(&self, current: *const T, new: Option<Arc<T>>) -> (Option<Arc<T>>, bool) {
        let new = into_raw(new);
        loop {
            // AcqRel, Relaxed: as in `swap`; what is only compared is not looked into.
            let exchanged = self.pointer.compare_exchange(current.cast_mut(), new, AcqRel, Relaxed);
            if let Ok(old) = exchanged {
                if !old.is_null() {
                    rseq::grace_period();
                }
                // SAFETY: the place's reference, as in `swap`.
                return (unsafe { from_raw(old) }, true);
            }
            let other = self.load();
            // It may have come back meanwhile; then what is returned would say that it was
            // replaced.
            if as_raw(other.as_ref()) != current {
                // SAFETY: from `into_raw` above, and in no place.
                drop(unsafe { from_raw(new) });
                return (other, false);
            }
        }
    }

    /// Replaces what is there by what `f` makes of it, and begins anew where it has changed
    /// meanwhile.
    fn rcu(&self, mut f: impl FnMut(&Option<Arc<T>>) -> Option<Arc<T>>) -> Option<Arc<T>> {
        let mut current = self.load();
        loop {
            let new = f(&current);
            let (previous, replaced) = self.compare_and_swap(as_raw(current.as_ref()), new);
            if replaced {
                return previous;
            }
            current = previous;
        }
    }

    fn into_inner(mut self) -> Option<Arc<T>> {
        self.take()
    }

    /// Takes it out where no other thread has the place. No grace period: a load borrows the place,
    /// so none continues.
    fn take(&mut self) -> Option<Arc<T>> {
        let pointer = std::mem::replace(self.pointer.get_mut(), ptr::null_mut());
        // SAFETY: the place's reference.
        unsafe { from_raw(pointer) }
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

fn into_raw<T>(arc: Option<Arc<T>>) -> *mut T {
    match arc {
        Some(arc) => {
            count::learn(); // before anybody can load it
            Arc::into_raw(arc).cast_mut()
        }
        None => ptr::null_mut(),
    }
}

fn as_raw<T>(arc: Option<&Arc<T>>) -> *const T {
    arc.map_or(ptr::null(), Arc::as_ptr)
}

/// # Safety
/// Null, or from [`into_raw`] with a reference that is the caller's to give.
#[inline(always)]
unsafe fn from_raw<T>(pointer: *const T) -> Option<Arc<T>> {
    // SAFETY: by the contract.
    (!pointer.is_null()).then(|| unsafe { Arc::from_raw(pointer) })
}

/// A place for an [`Arc`] that many threads load and some replace.
///
/// [`load`](Self::load) gives an `Arc` of the caller's own, at the price of [`Arc::clone`]; it
/// never waits, and no updater waits for the time that its caller keeps the `Arc`. Updaters pay:
/// one `membarrier(2)` for each replacement, and the old `Arc` is theirs when it returns.
///
/// If the value is read only, and not kept, [`Rcu`](crate::Rcu) costs less.
///
/// # From `arc-swap`
/// The names are those of that crate, for which this can take over in common uses. Since a load
/// gives an `Arc` and not a guard of one, these do not port as they are:
///
/// | there | here |
/// |---|---|
/// | `**cell.load()`, `&**cell.load()` | one star less: `*cell.load()`, `&*cell.load()` |
/// | `&*option.load()`, as in `if let Some(value) = &*option.load()` | no star: `&option.load()`, or `option.load()` |
/// | `Guard::into_inner(cell.load())` | `cell.load()` |
/// | `compare_and_swap(&guard, new)`, or a raw pointer | `&Arc<T>` (`&Option<Arc<T>>`) only; gives an `Arc`, not a guard |
/// | `ArcSwapOption::const_empty()` | [`ArcCellOption::empty`], which is `const` |
/// | `Cache` | nothing: [`Rcu`](crate::Rcu) for loads without a locked instruction |
/// | `map`, `access` | nothing: load, and take the field |
/// | `ArcSwapWeak`, `Rc`, strategies, `Serialize` | nothing |
///
/// # Waiting
/// Where restartable sequences are at hand ([`PerCpuPath::Restartable`](crate::PerCpuPath)) a load
/// is a bounded number of instructions, and no updater waits for one, not even for one that is
/// preempted or stopped. Elsewhere, and after eight interruptions in a row, a load counts itself in
/// and out of a section of a few instructions, by atomic instructions of which it never repeats
/// any; an updater waits for loads that are in such a section, so for one that is preempted there.
///
/// # Signal handlers
/// A handler may call `load`, whatever it interrupted. It must not store, swap or drop the place:
/// that may free memory, and may wait for the thread that it interrupted. **Dropping the last `Arc`
/// frees too**: a handler that drops the one that it loaded, while another thread has replaced it,
/// may be the one that frees. It should keep it (in a place of the program's) for others to drop,
/// or the program should keep an `Arc` to everything that it stores.
///
/// # Memory
/// One pointer. Nothing waits to be freed, and nothing counts against a domain's limit: what a
/// store replaces is dropped before it returns, with all that it owns, unless somebody has it.
///
/// **A precondition where loads are restartable sequences: freed memory stays mapped for a while.**
/// If the heap *unmaps* what is freed at once (it trims its end, or is of the sort that takes freed
/// memory's rights away with `mprotect`) while a reader is in a page fault on just that memory, the
/// kernel ends the process with SIGSEGV, for an access that would have begun anew. With the usual
/// allocators that is the end of a heap, trimmed within the time of one fault; a program that
/// cannot exclude it sets `M_TRIM_THRESHOLD`, and one that looks for uses of freed memory with such
/// a heap runs with `QUIESCENCE_PERCPU=portable`. See "Restartable reads" in `docs/DESIGN.md`, and
/// R-9 in `docs/GUARANTEES.md`.
///
/// Values above 64 KiB, which allocators do unmap at once, or aligned above 4,096 (by
/// `size_of::<T>()` and `align_of::<T>()`, not what they own) always load in sections, and are safe
/// from that; put into a `Box`, as `ArcCell<Box<T>>`, they are cheaper to load.
///
/// Source of the idea: Mathieu Desnoyers's `membarrier` for restartable sequences (Linux 5.10); the
/// vocabulary: Michal Vaner's `arc-swap`.
///
/// ```
/// use quiescence::ArcCell;
/// use std::sync::Arc;
///
/// let config = ArcCell::from_pointee(String::from("first"));
/// let seen = config.load();
/// config.store(Arc::new(String::from("second")));
/// assert_eq!(*seen, "first");
/// assert_eq!(*config.load(), "second");
/// assert_eq!(Arc::strong_count(&seen), 1, "the place has let go of it");
/// ```
///
/// It can be shared where an `Arc<T>` can:
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<quiescence::ArcCell<std::cell::Cell<u8>>>();
/// ```
pub struct ArcCell<T> {
    // Never empty.
    place: Place<T>,
}

/// What is in the place of an [`ArcCell`].
#[inline(always)]
fn full<T>(arc: Option<Arc<T>>) -> Arc<T> {
    match arc {
        Some(arc) => arc,
        // SAFETY: every constructor and every store of an `ArcCell` puts an `Arc` there; it is
        // taken out only when the cell goes.
        None => unsafe { std::hint::unreachable_unchecked() },
    }
}

impl<T> ArcCell<T> {
    /// A place with `arc` in it. Not `const`: for a static, take a `LazyLock`, or
    /// [`ArcCellOption::empty`].
    ///
    /// The first `Arc` that comes into a place in the process makes the choice how it counts per
    /// CPU: see [`per_cpu_path`](crate::per_cpu_path).
    pub fn new(arc: Arc<T>) -> Self {
        Self { place: Place::new(Some(arc)) }
    }

    /// A place with a new `Arc` of `value` in it.
    pub fn from_pointee(value: T) -> Self {
        Self::new(Arc::new(value))
    }

    /// Another reference to the `Arc` that is there now.
    ///
    /// Wait-free; for signal handlers too. Costs what `Arc::clone` costs: one locked instruction,
    /// and the cache line of the count, which all who load share.
    #[inline]
    pub fn load(&self) -> Arc<T> {
        full(self.place.load())
    }

    /// The same as [`load`](Self::load).
    #[inline]
    pub fn load_full(&self) -> Arc<T> {
        self.load()
    }

    /// Puts `arc` there, and drops the reference to the old one.
    ///
    /// Blocks for one `membarrier(2)`: microseconds. See [Waiting](Self#waiting). If that reference
    /// is the last one, the value is dropped here, after all the rest is done: its `Drop` may use
    /// this place, and may panic.
    pub fn store(&self, arc: Arc<T>) {
        drop(self.swap(arc));
    }

    /// Puts `arc` there and gives the old one, which no load finds any more. Blocks as
    /// [`store`](Self::store).
    pub fn swap(&self, arc: Arc<T>) -> Arc<T> {
        full(self.place.swap(Some(arc)))
    }

    /// Puts `new` there if `current` is there, and gives what was there. So it has been replaced if
    /// and only if `Arc::ptr_eq(&answer, current)`.
    ///
    /// Compared are addresses, not values. Since the caller holds `current`, that address is the
    /// caller's alone meanwhile: what is there *is* `current`, perhaps again. Blocks as
    /// [`store`](Self::store) if it replaces, and else is lock-free.
    #[must_use = "says whether it was replaced"]
    pub fn compare_and_swap(&self, current: &Arc<T>, new: Arc<T>) -> Arc<T> {
        full(self.place.compare_and_swap(Arc::as_ptr(current), Some(new)).0)
    }

    /// Replaces what is there by what `f` makes of it, and gives what was there. `f` returns a `T`
    /// or an `Arc<T>`, and is called again where somebody else has replaced it meanwhile. Blocks as
    /// [`store`](Self::store); lock-free among updaters. A panic of `f` changes nothing.
    ///
    /// ```
    /// let count = quiescence::ArcCell::from_pointee(1);
    /// count.rcu(|n| **n + 1);
    /// assert_eq!(*count.load(), 2);
    /// ```
    pub fn rcu<R: Into<Arc<T>>>(&self, mut f: impl FnMut(&Arc<T>) -> R) -> Arc<T> {
        full(self.place.rcu(|current| current.as_ref().map(|current| f(current).into())))
    }

    /// What is in the place. Waits for no thread.
    pub fn into_inner(self) -> Arc<T> {
        full(self.place.into_inner())
    }
}

impl<T> From<Arc<T>> for ArcCell<T> {
    fn from(arc: Arc<T>) -> Self {
        Self::new(arc)
    }
}

impl<T: Default> Default for ArcCell<T> {
    fn default() -> Self {
        Self::from_pointee(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for ArcCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArcCell").field(&self.load()).finish()
    }
}

impl<T: fmt::Display> fmt::Display for ArcCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load().fmt(f)
    }
}

/// As [`ArcCell`], and may be empty. [`empty`](Self::empty) is for statics.
///
/// ```
/// use quiescence::ArcCellOption;
/// use std::sync::Arc;
///
/// static SESSION: ArcCellOption<String> = ArcCellOption::empty();
/// assert!(SESSION.load().is_none());
/// SESSION.store(Some(Arc::new(String::from("token 17"))));
/// assert_eq!(SESSION.load().as_deref().map(String::as_str), Some("token 17"));
/// SESSION.store(None);
/// ```
pub struct ArcCellOption<T> {
    place: Place<T>,
}

impl<T> ArcCellOption<T> {
    /// A place with nothing in it. It is `arc-swap`'s `const_empty`, too.
    pub const fn empty() -> Self {
        Self { place: Place::empty() }
    }

    /// A place with `arc` in it.
    pub fn new(arc: Option<Arc<T>>) -> Self {
        Self { place: Place::new(arc) }
    }

    /// A place with a new `Arc` of `value` in it, if there is one.
    pub fn from_pointee(value: impl Into<Option<T>>) -> Self {
        Self::new(value.into().map(Arc::new))
    }

    /// As [`ArcCell::load`]; an empty place costs no locked instruction.
    #[inline]
    pub fn load(&self) -> Option<Arc<T>> {
        self.place.load()
    }

    /// The same as [`load`](Self::load).
    #[inline]
    pub fn load_full(&self) -> Option<Arc<T>> {
        self.load()
    }

    /// As [`ArcCell::store`]; waits for no thread if the place was empty.
    pub fn store(&self, arc: Option<Arc<T>>) {
        drop(self.swap(arc));
    }

    /// As [`ArcCell::swap`]; waits for no thread if the place was empty.
    pub fn swap(&self, arc: Option<Arc<T>>) -> Option<Arc<T>> {
        self.place.swap(arc)
    }

    /// Empties the place, and gives what was there. Blocks as [`ArcCell::store`].
    pub fn take(&self) -> Option<Arc<T>> {
        self.swap(None)
    }

    /// As [`ArcCell::compare_and_swap`], where `None` is an empty place.
    #[must_use = "says whether it was replaced"]
    pub fn compare_and_swap(
        &self,
        current: &Option<Arc<T>>,
        new: Option<Arc<T>>,
    ) -> Option<Arc<T>> {
        self.place.compare_and_swap(as_raw(current.as_ref()), new).0
    }

    /// As [`ArcCell::rcu`]: `f` returns an `Option<Arc<T>>` or an `Arc<T>`.
    pub fn rcu<R: Into<Option<Arc<T>>>>(
        &self,
        mut f: impl FnMut(&Option<Arc<T>>) -> R,
    ) -> Option<Arc<T>> {
        self.place.rcu(|current| f(current).into())
    }

    /// What is in the place. Waits for no thread.
    pub fn into_inner(self) -> Option<Arc<T>> {
        self.place.into_inner()
    }
}

impl<T> From<Arc<T>> for ArcCellOption<T> {
    fn from(arc: Arc<T>) -> Self {
        Self::new(Some(arc))
    }
}

impl<T> From<Option<Arc<T>>> for ArcCellOption<T> {
    fn from(arc: Option<Arc<T>>) -> Self {
        Self::new(arc)
    }
}

impl<T> Default for ArcCellOption<T> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T: fmt::Debug> fmt::Debug for ArcCellOption<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArcCellOption").field(&self.load()).finish()
    }
}
