//! Hazard pointers: a thread announces which object it is reading, and only that object is kept.
//!
//! A hazard pointer protects one object for as long as its holder likes, across `.await` and on
//! other threads, and delays the freeing of nothing else. A section protects everything that is
//! read in it and delays everything retired since it began; if it reads many objects, each costs
//! less. So use a hazard pointer for a cell whose values are read one at a time ([`ArcCell`] is
//! built on them), and sections for a structure of many nodes.
//!
//! ```text
//! protected     A held ------------------------>   A is freed when its protection ends;
//! retired       A   B   C                          B and C do not wait for it
//! ```
//!
//! ```
//! use quiescence::hazard::{self, HazardPointer};
//! use std::sync::atomic::{AtomicPtr, Ordering};
//!
//! let place = AtomicPtr::new(Box::into_raw(Box::new(1)));
//!
//! // A reader:
//! let mut holder = HazardPointer::new();
//! // SAFETY: the pointer in `place` is from a box, and is retired after it was taken out.
//! let one = unsafe { holder.protect(&place) }.expect("not null");
//! assert_eq!(*one, 1);
//!
//! // An updater:
//! let old = place.swap(Box::into_raw(Box::new(2)), Ordering::AcqRel);
//! // SAFETY: from a box, and no thread finds it any more.
//! unsafe { hazard::global().retire_raw(old) };
//! assert_eq!(*one, 1); // as long as the protection lives
//! drop(one);
//! hazard::barrier();
//! # drop(unsafe { Box::from_raw(place.into_inner()) });
//! ```
//!
//! Retired objects wait in a [`HazardDomain`]: [`global`], or one of your own with its own limits,
//! statistics and name. Protections belong to no domain: a holder protects whatever it points to.
//! Retired objects share the queues, the memory limit and the worker with objects of RCU, and
//! appear in the same [`Statistics`], in `rcu top` and at the end of the process. A grace period
//! here is one `membarrier(2)` for up to 2,048 objects.
//!
//! Source: Michael, *Hazard Pointers*, IEEE TPDS 2004; the asymmetric fence as in folly's.
//!
//! [`ArcCell`]: crate::ArcCell

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::AtomicPtr as State;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use crate::domain::impls::{shown_as_target, shown_in_part};
use crate::event::statistics::Statistics;
use crate::gp::grace_periods::Me;
use crate::gp::observers::Observers;
use crate::gp::tuning::Tuning;
use crate::hazptr;
use crate::hazptr::slots::{Block, Slot};
use crate::os::sync::AtomicPtr;
use crate::reclaim::domain_state::{DomainState, Handle, Named};
use crate::reclaim::free::{Address, Boxed};
use crate::reclaim::hazards::{self, GlobalHazards, HAZARDS};
use crate::reclaim::weigh::{Scale, Weigh};
use crate::reclaim::{defer, rescan, running, worker};

/// A domain for objects that hazard pointers protect. It holds the retired objects, and has its own
/// limits, statistics and name.
///
/// `const`, for statics. When its last handle is dropped, its objects are freed, except for those
/// that are still protected: they move to the [global](global) domain.
///
/// ```
/// use quiescence::hazard::HazardDomain;
///
/// static NODES: HazardDomain = HazardDomain::named("nodes");
/// NODES.retire(Box::new([0_u8; 64]));
/// NODES.barrier();
/// assert_eq!(NODES.statistics().callbacks_waiting(), 0);
/// ```
#[derive(Default)]
pub struct HazardDomain {
    /// From `Arc::into_raw`, with a reference of ours; null until it is used. Not made under a lock
    /// or a `Once`, which a fork could leave half done. Of the global one it stays null.
    state: State<DomainState>,
    name: Option<&'static str>,
    is_global: bool,
}

static GLOBAL: HazardDomain =
    HazardDomain { state: State::new(ptr::null_mut()), name: None, is_global: true };

/// The hazard domain of the process; cells such as [`ArcCell`](crate::ArcCell) retire into it.
pub fn global() -> &'static HazardDomain {
    &GLOBAL
}

/// [`HazardDomain::barrier`] of the [global] domain.
#[track_caller]
pub fn barrier() {
    GLOBAL.barrier();
}

/// As [`HazardDomain::retire_raw`]. No box while it is weighed, by the user's code, which may
/// panic: readers may see it.
///
/// # Safety
/// As there.
#[inline]
#[track_caller]
unsafe fn retire_raw<K: Named, T: Weigh + Send + 'static>(tag: &K, object: *mut T) {
    // SAFETY: from a box, and not freed before it has been retired.
    let weight = Scale::new().weight(tag.core(), unsafe { &*object });
    let bytes = Address::<Boxed<T>>::charge(weight);
    // SAFETY: from a box, so it is the caller's alone but for those that protect it.
    unsafe { hazards::retire::<K, Boxed<T>>(tag, object, bytes) };
}

impl HazardDomain {
    /// Creates a domain without a name.
    pub const fn new() -> Self {
        Self { state: State::new(ptr::null_mut()), name: None, is_global: false }
    }

    /// Creates a domain with a name, which `rcu top` and reports show.
    pub const fn named(name: &'static str) -> Self {
        Self { state: State::new(ptr::null_mut()), name: Some(name), is_global: false }
    }

    /// Frees `object` once no hazard pointer protects it.
    ///
    /// The object must already be unlinked: no thread that begins a protection from now on may find
    /// it. It is freed by this thread when it next retires, by the worker, or by a thread in
    /// [`barrier`](Self::barrier). If it is not protected, that happens within 10 ms (twice the
    /// [lazy time](Tuning::lazy) of this domain, plus the time that the worker takes). If it is, it
    /// happens after its protection ends, within twice the time for which it was protected, but
    /// 10 ms (a tick) at least and 1 s at most.
    ///
    /// # Progress and cost
    /// As [`Domain::retire`](crate::Domain::retire). At the limit it waits for a fence, never for a
    /// reader. In a section at the limit it exceeds the limit.
    ///
    /// # Panics
    /// In debug builds, if the memory is already retired and not yet freed, which only unsafe code
    /// can cause.
    #[inline]
    #[track_caller]
    pub fn retire<T: Weigh + Send + 'static>(&self, object: Box<T>) {
        // SAFETY: from a box, which is the caller's.
        unsafe { self.retire_raw(Box::into_raw(object)) };
    }

    /// Like [`retire`](Self::retire), for a pointer from [`Box::into_raw`], while other threads
    /// still read the object. Making a `Box` of it at this time would assert that no other thread
    /// reads it, and Miri objects to that.
    ///
    /// ```
    /// let object = Box::into_raw(Box::new(7));
    /// // SAFETY: from a box, and no other thread has it.
    /// unsafe { quiescence::hazard::global().retire_raw(object) };
    /// ```
    ///
    /// # Panics
    /// As [`retire`](Self::retire).
    ///
    /// # Safety
    /// `object` is from a box of this type, is retired once, and is not freed in any other way.
    /// Threads read it only under the protection of hazard pointers.
    #[inline]
    #[track_caller]
    pub unsafe fn retire_raw<T: Weigh + Send + 'static>(&self, object: *mut T) {
        if self.is_global {
            // SAFETY: by the contract.
            unsafe { retire_raw(&GlobalHazards, object) };
        } else {
            // SAFETY: by the contract.
            unsafe { retire_raw(self, object) };
        }
    }

    /// Waits until every object that any thread has retired in this domain so far has been freed,
    /// except for protected ones. Frees some of them itself, so it must not be called while holding
    /// a lock that their drops take, or in a section that the drops wait for.
    ///
    /// # Panics
    /// If a callback or the drop of an object calls it: it would deadlock.
    #[track_caller]
    pub fn barrier(&self) {
        assert!(
            !running::in_callback(),
            "quiescence: barrier() called by a callback or a drop would wait for that to return"
        );
        defer::barrier(self.core(), || Me::NOBODY);
    }

    /// The deferral limits of this domain: as [`Domain::tuning`](crate::Domain::tuning).
    pub fn tuning(&self) -> Tuning {
        self.core().grace_periods.tuning.get()
    }

    /// Sets the deferral limits: as [`Domain::tune`](crate::Domain::tune).
    pub fn tune(&self, tuning: Tuning) {
        self.core().grace_periods.tuning.set(tuning);
        worker::retune(&Named::handle(self));
    }

    /// Counts of what has happened in this domain. A grace period here is one heavy fence.
    pub fn statistics(&self) -> Statistics {
        Statistics::of(self.core())
    }

    fn state(&self) -> NonNull<DomainState> {
        // Acquire: pairs with the exchange in `make_state`.
        NonNull::new(self.state.load(Acquire)).unwrap_or_else(|| self.make_state())
    }

    #[cold]
    #[inline(never)]
    fn make_state(&self) -> NonNull<DomainState> {
        let mut state = DomainState::hazard(self.name, hazards::end, rescan::rescan);
        state.grace_periods.observers.number = Observers::next_number();
        let mine = Arc::into_raw(Arc::new(state)).cast_mut();
        // AcqRel: the thread that finds it finds it whole.
        match self.state.compare_exchange(ptr::null_mut(), mine, AcqRel, Acquire) {
            Ok(_) => NonNull::new(mine),
            Err(first) => {
                // SAFETY: from `into_raw`, and no other thread has it.
                drop(unsafe { Arc::from_raw(mine) });
                NonNull::new(first)
            }
        }
        .expect("a state, once there is one")
    }
}

impl Named for HazardDomain {
    fn core(&self) -> &DomainState {
        if self.is_global {
            return &HAZARDS;
        }
        // SAFETY: `self` has a reference.
        unsafe { &*self.state().as_ptr() }
    }

    fn handle(&self) -> Handle {
        if self.is_global {
            return GlobalHazards.handle();
        }
        // SAFETY: from `Arc::into_raw`, and the reference stays `self`'s.
        let state = ManuallyDrop::new(unsafe { Arc::from_raw(self.state().as_ptr()) });
        Handle::Shared(Arc::clone(&state))
    }
}

impl Drop for HazardDomain {
    fn drop(&mut self) {
        let state = *self.state.get_mut();
        if !state.is_null() {
            // SAFETY: from `Arc::into_raw`, and the reference is ours.
            drop(unsafe { Arc::from_raw(state) });
        }
    }
}

shown_in_part!(
    [] HazardDomain { name: |domain| if domain.is_global { Some("hazard") } else { domain.name } }
);

/// A hazard pointer: protects one object at a time.
///
/// Creating one claims a slot in the process's list of slots, by walking that list; so keep it. It
/// may be sent to other threads. It corresponds to C++26's `hazard_pointer`.
#[derive(Debug)]
pub struct HazardPointer {
    block: &'static Block,
}

impl HazardPointer {
    /// Creates one that protects nothing. Allocates unless a dropped holder or an exited thread has
    /// left a free slot.
    #[expect(clippy::new_without_default, reason = "it is a resource")]
    pub fn new() -> Self {
        Self { block: hazptr::holder() }
    }

    /// Protects the object that `source` points to, until the result is dropped; `None` if it is
    /// null.
    ///
    /// Lock-free: it retries each time the source changes during the call. Two loads, a store and a
    /// [light fence](crate::tuning::Fences).
    ///
    /// # Safety
    /// `source` is null or points to a valid `T`. Each `T` is retired in a [`HazardDomain`] after
    /// it was taken out of the source, and only the domain frees it: an object that the domain gave
    /// back ([`AtLimit`](crate::AtLimit)) is retired again, not freed. Until then its address
    /// stands for no other object.
    #[inline]
    pub unsafe fn protect<'h, T>(&'h mut self, source: &AtomicPtr<T>) -> Option<Protected<'h, T>> {
        let object = NonNull::new(self.slot().protect_with(source, hazptr::reader_fence))?;
        Some(Protected { object, slot: self.slot(), holder: PhantomData })
    }

    /// Protects `expected`, if the source still points to it. Wait-free.
    ///
    /// # Errors
    /// The pointer that the source holds now; nothing is protected then.
    ///
    /// # Safety
    /// As [`protect`](Self::protect); `expected` need not be valid.
    #[inline]
    pub unsafe fn try_protect<'h, T>(
        &'h mut self,
        source: &AtomicPtr<T>,
        expected: *mut T,
    ) -> Result<Option<Protected<'h, T>>, *mut T> {
        let (found, is_same) = self.slot().try_protect(source, expected, hazptr::reader_fence);
        if !is_same {
            self.slot().release();
            return Err(found);
        }
        let protected = |object| Protected { object, slot: self.slot(), holder: PhantomData };
        Ok(NonNull::new(found).map(protected))
    }

    #[inline(always)]
    fn slot(&self) -> &'static Slot {
        self.block.first()
    }
}

impl Drop for HazardPointer {
    fn drop(&mut self) {
        // A protection may have been leaked with `mem::forget`: no reference is left of it.
        self.slot().release();
        self.block.give_back(&hazptr::BLOCKS);
    }
}

/// An object that a [`HazardPointer`] protects.
#[must_use = "the object is protected while this lives"]
pub struct Protected<'h, T> {
    object: NonNull<T>,
    slot: &'static Slot,
    holder: PhantomData<(&'h mut HazardPointer, &'h T)>,
}

// SAFETY: a shared reference, whose protection any thread may end.
unsafe impl<T: Sync> Send for Protected<'_, T> {}
// SAFETY: a shared reference.
unsafe impl<T: Sync> Sync for Protected<'_, T> {}

impl<T> Protected<'_, T> {
    /// The address of the object.
    pub fn as_ptr(&self) -> NonNull<T> {
        self.object
    }
}

impl<T> Deref for Protected<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: protected, and valid by the contract of `protect`.
        unsafe { self.object.as_ref() }
    }
}

impl<T> Drop for Protected<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.slot.release();
    }
}

shown_as_target!(impl<T: fmt::Debug> fmt::Debug for Protected<'_, T>);

/// Slots without holders, for code that keeps its retired objects itself, as C++'s
/// `<hazard_pointer>` does.
///
/// A slot is a word that holds the address of the protected object. The scans of all domains see
/// it, and a [`scan`](raw::scan) sees the slots of all threads.
pub mod raw {
    use crate::hazptr;
    use crate::hazptr::slots::Block;
    use crate::os::fence;
    use crate::os::sync::AtomicPtr;

    /// Returns a slot that is the caller's alone and protects nothing; `None` if there is no
    /// memory.
    ///
    /// To protect an object: store its address with Release, call [`light_fence`], and load the
    /// source again with Acquire. To end the protection: store null with Release. A protection must
    /// not be copied from one slot to another: a scan may read the new slot before it is written
    /// and the old one after it is cleared.
    #[must_use = "a slot that is not released is lost"]
    pub fn acquire() -> Option<&'static AtomicPtr<()>> {
        hazptr::holder_if_any().map(|block| &block.first().0)
    }

    /// The fence of a reader between its store and its load. It compiles to no instruction if the
    /// process uses [`Fences::Membarrier`](crate::tuning::Fences).
    #[inline]
    pub fn light_fence() {
        hazptr::reader_fence();
    }

    /// Returns a slot, which protects nothing from now on.
    ///
    /// # Safety
    /// The slot is from [`acquire`], and has not been returned since.
    pub unsafe fn release(slot: &'static AtomicPtr<()>) {
        // By the contract the first word of a block; blocks stay.
        let block = std::ptr::with_exposed_provenance::<Block>(std::ptr::from_ref(slot).addr());
        // SAFETY: as above; its provenance was exposed where it was made.
        let block: &'static Block = unsafe { &*block };
        block.first().release();
        block.give_back(&hazptr::BLOCKS);
    }

    /// Executes a heavy fence, and calls `f` with each protected address. An object that was
    /// unlinked before and is not among them is protected by no thread, and never will be.
    pub fn scan(f: impl FnMut(*const ())) {
        fence::heavy(std::iter::empty()); // [HP-1]
        hazptr::BLOCKS.scan(f);
    }

    /// The number of slots that [`acquire`] has made, plus the number of threads that have had
    /// slots of their own: at most nine times as many objects are protected.
    pub fn count() -> usize {
        hazptr::BLOCKS.count() as usize
    }
}
