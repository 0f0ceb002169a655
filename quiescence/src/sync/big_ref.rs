//! A reference count for a long-lived object to which many threads take references all the time.
//!
//! While the object lives, references are counted on the words of the CPUs, whose sum no thread
//! knows. Killing it folds the words into one, which from then on is an ordinary reference count.
//! Then the first reference is given back, and the thread that brings the count to zero releases
//! the value.
//!
//! ```text
//!   get                                       kill, once
//!   word 0 += 1                               fold                                  [FD-1]
//!   refused: count += 1                       count += sum of the words - BIAS      [BR-1]
//!                                             put the first reference
//!   put
//!   word 1 -= 1
//!   refused: count -= 1; at 0: release        [BR-2]
//! ```
//!
//! There are two words, so that a thread that gets and puts has two short chains of additions
//! instead of a long one.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::process::abort;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32};

use super::folding::Folding;
use crate::os::on_drop::OnDrop;
use crate::os::user_code::{self, Site};

/// In the count until it is killed: so it is not 0, whatever has come and gone there.
const BIAS: u64 = 1 << 62;

/// What is done with the value in the end.
type Release<T> = Box<dyn FnOnce(T) + Send>;

struct Shared<T> {
    count: Folding<2>,
    killed: AtomicBool,
    /// What uses this memory: the [`BigRef`], and all references together.
    users: AtomicU32,
    value: UnsafeCell<ManuallyDrop<T>>,
    release: UnsafeCell<Option<Release<T>>>,
}

/// A value with a per-CPU reference count. [`get`](Self::get) and the drop of a [`BigRefHandle`]
/// are cheaper than an uncontended clone and drop of an [`Arc`](std::sync::Arc), and do not slow
/// down when many threads use them.
///
/// In return, no thread notices the last reference by itself. The program must say when no more
/// references will be handed out, by calling [`kill`](Self::kill) or dropping the `BigRef`. From
/// then on it counts as an `Arc` does, and the value is released when the last handle is gone.
///
/// A `BigRef` is not itself a reference: it hands out references, and is shared by `&`, in a static
/// or an [`Rcu`](crate::Rcu). A handle is a reference: it dereferences to the value, cloning it
/// makes another one, and dropping it returns it. So no reference can be obtained after the
/// release.
///
/// ```
/// use quiescence::sync::BigRef;
///
/// let table = BigRef::with_release(vec![1, 2, 3], |table| println!("{} rows", table.len()));
/// let handle = table.get();
/// assert!(table.kill());
/// assert!(table.try_get().is_none(), "no new ones");
/// assert_eq!(handle.clone()[2], 3); // only clones of existing handles are possible now
/// drop(handle); // releases
/// ```
///
/// # Cost
/// One allocation, and 16 bytes for each CPU once it has been used 64 times; `kill` costs a
/// `membarrier(2)`. A handle is one pointer. Source: Kent Overstreet's percpu-refcount, whose owner
/// also drops the first reference by killing.
pub struct BigRef<T> {
    shared: NonNull<Shared<T>>,
    owns: PhantomData<Box<T>>,
}

/// A reference to the value in a [`BigRef`].
pub struct BigRefHandle<T> {
    shared: NonNull<Shared<T>>,
    owns: PhantomData<Box<T>>,
}

// SAFETY: as an `Arc`: it gives out `&T` to all threads, and the last of them drops the value. What
// is done in the end is `Send`, and called once.
unsafe impl<T: Send + Sync> Send for BigRef<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for BigRef<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for BigRefHandle<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for BigRefHandle<T> {}
/// As an `Arc`: what is done in the end cannot be seen before.
impl<T: std::panic::RefUnwindSafe> std::panic::RefUnwindSafe for Shared<T> {}

impl<T> BigRef<T> {
    /// Creates a value that is dropped when its last reference is gone.
    pub fn new(value: T) -> Self {
        Self::make(value, None)
    }

    /// Like [`new`](Self::new), with a release function: the thread that drops the last reference
    /// calls `release` once, with the value. A panic in it propagates in that thread.
    pub fn with_release(value: T, release: impl FnOnce(T) + Send + 'static) -> Self {
        Self::make(value, Some(Box::new(release)))
    }

    fn make(value: T, release: Option<Release<T>>) -> Self {
        // The bias, and the first reference [BR-1].
        let shared = Box::new(Shared {
            count: Folding::new(BIAS + 1, false), //~ early-release
            killed: AtomicBool::new(false),
            users: AtomicU32::new(2),
            value: UnsafeCell::new(ManuallyDrop::new(value)),
            release: UnsafeCell::new(release),
        });
        Self { shared: NonNull::from(Box::leak(shared)), owns: PhantomData }
    }

    /// Returns a reference.
    ///
    /// # Panics
    /// If the `BigRef` has been killed. If another thread may do that at any time, use
    /// [`try_get`](Self::try_get).
    #[must_use = "the reference is given back when the handle is dropped"]
    #[inline]
    #[track_caller]
    pub fn get(&self) -> BigRefHandle<T> {
        self.try_get().expect("quiescence: get() on a BigRef that has been killed; use try_get()")
    }

    /// Returns a reference, unless the `BigRef` has been killed.
    #[must_use = "the reference is given back when the handle is dropped"]
    #[inline]
    pub fn try_get(&self) -> Option<BigRefHandle<T>> {
        let got = self.shared().count.add(1) || self.try_get_slow();
        got.then(|| BigRefHandle { shared: self.shared, owns: PhantomData })
    }

    #[cold]
    #[inline(never)]
    fn try_get_slow(&self) -> bool {
        let count = &self.shared().count;
        // It may be killed, and released, after this look: then there is no way back from zero.
        let get = |references: u64| (references != 0).then_some(references + 1);
        !self.is_killed() && fetch_update!(count.central, Relaxed, Relaxed, get).is_ok()
    }

    /// Stops handing out references, and drops the first one, its own; so the value is released as
    /// soon as all handles are gone, perhaps during this call. Returns whether this call did it; if
    /// not, another one was first, and may still be in progress.
    ///
    /// Does not wait for references, only until the per-CPU words no longer change.
    pub fn kill(&self) -> bool {
        // AcqRel: with `is_killed`; and one of several who kill is first.
        if self.shared().killed.swap(true, AcqRel) {
            return false;
        }
        let count = &self.shared().count;
        count.stop(&count.turn());
        // The first reference is among what comes out, so that is not 0 yet [BR-1].
        count.gather(BIAS.wrapping_neg()); //~ early-release
        put_counted(self.shared);
        true
    }

    /// Whether it has been killed.
    pub fn is_killed(&self) -> bool {
        // Acquire: pairs with the exchange in `kill`.
        self.shared().killed.load(Acquire)
    }

    fn shared(&self) -> &Shared<T> {
        // SAFETY: `users` counts us until we are dropped.
        unsafe { self.shared.as_ref() }
    }
}

impl<T> Drop for BigRef<T> {
    /// Kills it, if no thread has.
    fn drop(&mut self) {
        // Also if what is done in the end panics.
        let _last = OnDrop(|| leave(self.shared));
        self.kill();
    }
}

/// Gives a reference back that the one word knows of.
#[cold]
#[inline(never)]
fn put_counted<T>(shared: NonNull<Shared<T>>) {
    // SAFETY: the reference that is given back keeps it.
    let count = &unsafe { shared.as_ref() }.count.central;
    // AcqRel: what was done with the value, by the thread that gave a reference back, happens
    // before its release. What was given back on the CPUs' words happened before the fold in `kill`
    // [BR-2].
    if count.fetch_sub(1, AcqRel) == 1 {
        release(shared);
    }
}

/// The count is zero.
fn release<T>(shared: NonNull<Shared<T>>) {
    // SAFETY: the references are still counted in `users`.
    let this = unsafe { shared.as_ref() };
    // SAFETY: the count comes to zero once, since nothing gets away from there; no other thread has
    // a reference.
    let value = unsafe { &mut *this.value.get() };
    // SAFETY: as above, it is taken once.
    let value = unsafe { ManuallyDrop::take(value) };
    // SAFETY: as above.
    let release = unsafe { &mut *this.release.get() }.take();
    // The memory first: what follows is not ours, and may panic.
    leave(shared);
    match release {
        Some(release) => user_code::run(Site::Release, || release(value)),
        None => user_code::run(Site::Drop, || drop(value)),
    }
}

/// One user of the memory less.
fn leave<T>(shared: NonNull<Shared<T>>) {
    // SAFETY: the caller is counted until here.
    let users = unsafe { &shared.as_ref().users };
    // AcqRel: what either has done with the memory happens before it is freed.
    if users.fetch_sub(1, AcqRel) == 1 {
        // SAFETY: from a box, and the last one. The value has been taken out.
        drop(unsafe { Box::from_raw(shared.as_ptr()) });
    }
}

impl<T> BigRefHandle<T> {
    fn shared(&self) -> &Shared<T> {
        // SAFETY: `users` counts the references as long as there is one.
        unsafe { self.shared.as_ref() }
    }
}

impl<T> Clone for BigRefHandle<T> {
    #[inline]
    fn clone(&self) -> Self {
        let count = &self.shared().count;
        // Relaxed, as in `Arc`: our own reference keeps it from zero.
        if !count.add(1) && count.central.fetch_add(1, Relaxed) > u64::MAX >> 1 {
            abort(); // leaked so many: it would come round to zero
        }
        Self { shared: self.shared, owns: PhantomData }
    }
}

impl<T> Drop for BigRefHandle<T> {
    #[inline]
    fn drop(&mut self) {
        // The fold in `kill` has what we did with the value before it, as it has this [BR-2]. After
        // either of the two the reference is gone, and perhaps the memory: nothing is touched any
        // more.
        // SAFETY: `users` counts the reference that is given back; so for the next.
        let count = unsafe { &raw const (*self.shared.as_ptr()).count };
        // SAFETY: as above.
        if !unsafe { Folding::add_second(count, 1_u64.wrapping_neg()) } {
            put_counted(self.shared);
        }
    }
}

impl<T> Deref for BigRefHandle<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: it is changed or taken out only when there is no reference.
        unsafe { &*self.shared().value.get() }
    }
}

impl<T: fmt::Debug> fmt::Debug for BigRefHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BigRefHandle").field(&**self).finish()
    }
}

impl<T> fmt::Debug for BigRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BigRef").field("is_killed", &self.is_killed()).finish()
    }
}
