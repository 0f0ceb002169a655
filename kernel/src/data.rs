//! Cells that readers read in sections, and whose old values are freed after a grace period.
//!
//! Names are those of the crate `ostd` 0.19. What differs:
//! - There is one parameter more: the [`Domain`] says which kernel a cell belongs to. A kernel has
//!   `type Rcu<P> = kernel::Rcu<P, MyDomain>`.
//! - The object that the pointer owns has a [`Head`] in it. `Box` and `Arc` have none;
//!   [`RcuBox`](crate::RcuBox) does.
//! - [`RcuDrop`] takes such a pointer. That of ostd takes any `T: Send + 'static`, and also
//!   implements `Clone`, `Default`, `Eq`, `Ord` and `Hash`.
//! - `read_with` takes the domain's section. That of ostd takes any guard of its atomic mode.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::{self, NonNull};

use grace::limit::Zone;

use crate::head::{Head, Run};
use crate::misuse::Refused;
use crate::pointer::NonNullPtr;
use crate::sync::{AtomicPtr, Ordering, constant};

/// The kernel to which cells belong: its sections, and its [`Kernel`](crate::Kernel).
///
/// A cell or a list of one domain is none of another, also if one domain is a subtype of the other.
/// Of these the first compiles alone:
///
/// ```
/// # use kernel::{NonNullPtr, Rcu};
/// type Domain = fn(&'static ());
/// fn same<P: NonNullPtr>(cell: &Rcu<P, Domain>) -> &Rcu<P, Domain> {
///     cell
/// }
/// ```
/// ```compile_fail
/// # use kernel::{NonNullPtr, Rcu};
/// # type Domain = fn(&'static ());
/// fn other<P: NonNullPtr>(cell: &Rcu<P, fn(&())>) -> &Rcu<P, Domain> {
///     cell
/// }
/// ```
/// ```compile_fail
/// # use kernel::RcuList;
/// # type Domain = fn(&'static ());
/// fn other<T>(list: &RcuList<T, fn(&())>) -> &RcuList<T, Domain> {
///     list
/// }
/// ```
///
/// # Safety
/// - While a [`Section`](Self::Section) lives, the code that has it is in a section, as the kernel
///   whose [`Kernel::call`](crate::Kernel::call) is called understands it. It is not `Send`, unless
///   it may end on another CPU. The compiler moves no access to memory across its beginning or its
///   end: where these are plain stores, there is a `compiler_fence`.
/// - [`call`](Self::call) passes on this head and this function, and no others. It returns an error
///   only if nothing was queued: who gets one has the object back.
/// - An NMI updates no cell, and drops no [`RcuDrop`].
pub unsafe trait Domain: 'static {
    /// A section: preemption is off while it lives. It cannot be sent to another thread.
    type Section;

    /// Begins a section.
    fn section() -> Self::Section;

    /// Calls [`Kernel::call`](crate::Kernel::call).
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    unsafe fn call(head: NonNull<Head>, run: Run) -> Result<Zone, Refused>;

    /// An old value waits for a grace period, and so near to the limit is this CPU. Called after an
    /// update, which may be in a section.
    fn told(zone: Zone) {
        let _ = zone;
    }
}

/// Has the owner dropped after a grace period. If the call is refused, which the kernel counts as a
/// misuse, the object leaks.
///
/// # Safety
/// The raw pointer comes from `into_raw`, and no reader finds it any more.
unsafe fn retire<P: NonNullPtr + Send, D: Domain>(raw: NonNull<P::Target>) {
    unsafe fn drop_now<P: NonNullPtr>(head: NonNull<Head>) {
        // SAFETY: it is the head of the object that `retire` queued.
        let raw = unsafe { P::of_head(head) };
        // SAFETY: a grace period has gone by, so no reader has it.
        drop(unsafe { P::from_raw(raw) });
    }
    // SAFETY: the caller's.
    let head = unsafe { P::head_of(raw) };
    // SAFETY: the object's one owner has given it away, so its head is in no queue, and stays in
    // its place until `drop_now`, which may run anywhere, since the owner is `Send`.
    let queued = unsafe { D::call(head, drop_now::<P>) };
    if let Ok(zone) = queued {
        D::told(zone);
    }
}

/// Of this type alone, also where it is a subtype of another.
pub(crate) type Of<T> = PhantomData<fn(T) -> T>;

/// What is in an [`Rcu`], which is never empty.
fn never_none<T>(found: Option<T>) -> T {
    found.expect("an `Rcu` is never empty")
}

fn raw_of<P: NonNullPtr>(owner: Option<P>) -> *mut P::Target {
    owner.map_or(ptr::null_mut(), |owner| owner.into_raw().as_ptr())
}

/// A cell with an owner in it, such as a box, of which readers read what it owns.
///
/// Reading takes no lock and no atomic read-modify-write. Updates do not wait for readers, nor for
/// each other: the old owner is dropped after a grace period, without an allocation, by the thread
/// that runs the CPU's callbacks. Its `Drop` may do what a callback may.
pub struct Rcu<P: NonNullPtr, D>(RcuOption<P, D>);

/// A section, and what a cell had in it when it began.
#[must_use]
pub struct RcuReadGuard<'a, P: NonNullPtr, D: Domain>(RcuOptionReadGuard<'a, P, D>);

/// Like [`Rcu`], with or without an owner in it.
pub struct RcuOption<P: NonNullPtr, D> {
    raw: AtomicPtr<P::Target>,
    owns: PhantomData<(P, Of<D>)>,
}

// SAFETY: it is an owner, which may be dropped on another CPU.
unsafe impl<P: NonNullPtr + Send, D> Send for RcuOption<P, D> {}
// SAFETY: readers on all CPUs have what the owner owns, and any of them may replace the owner.
unsafe impl<P: NonNullPtr + Send + Sync, D> Sync for RcuOption<P, D> {}

/// Like [`RcuReadGuard`], of a cell that may have none. It stays on its thread, as raw pointers do.
#[must_use]
pub struct RcuOptionReadGuard<'a, P: NonNullPtr, D: Domain> {
    raw: *mut P::Target,
    cell: &'a RcuOption<P, D>,
    section: D::Section,
}

impl<P: NonNullPtr + Send, D: Domain> Rcu<P, D> {
    /// Creates a cell.
    pub fn new(pointer: P) -> Self {
        Self(RcuOption::new(Some(pointer)))
    }

    /// Replaces the owner; the old one is dropped after a grace period. Of two updates at the same
    /// time one is lost, unless a lock is held; see also [`RcuReadGuard::compare_exchange`].
    pub fn update(&self, new_ptr: P) {
        self.0.update(Some(new_ptr));
    }

    /// Begins a section, and reads.
    pub fn read(&self) -> RcuReadGuard<'_, P, D> {
        RcuReadGuard(self.0.read())
    }

    /// Reads in a section that has begun.
    pub fn read_with<'a>(&'a self, guard: &'a D::Section) -> P::Ref<'a> {
        never_none(self.0.read_with(guard))
    }
}

impl<P: NonNullPtr + Send, D: Domain> RcuOption<P, D> {
    /// Creates a cell.
    pub fn new(pointer: Option<P>) -> Self {
        Self { raw: AtomicPtr::new(raw_of(pointer)), owns: PhantomData }
    }

    constant! {
        /// Creates an empty cell.
        pub fn new_none() -> Self {
            Self { raw: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
        }
    }

    /// Replaces the owner, if there is one; the old one is dropped after a grace period. Of two
    /// updates at the same time one is lost, unless a lock is held; see also
    /// [`RcuOptionReadGuard::compare_exchange`].
    pub fn update(&self, new_ptr: Option<P>) {
        // AcqRel: readers' Acquire pairs with the Release [KN-6]: they see the new value whole;
        // the Acquire is for the old value, which another CPU may have written.
        let old = self.raw.swap(raw_of(new_ptr), Ordering::AcqRel);
        if let Some(old) = NonNull::new(old) {
            // SAFETY: it was in the cell, and is in there no more.
            unsafe { retire::<P, D>(old) };
        }
    }

    /// What is in the cell.
    fn load(&self) -> *mut P::Target {
        // Acquire: pairs with the Release of an update [KN-6]; the value is seen whole.
        self.raw.load(Ordering::Acquire)
    }

    /// Begins a section, and reads.
    pub fn read(&self) -> RcuOptionReadGuard<'_, P, D> {
        // The section begins before the load.
        let section = D::section();
        RcuOptionReadGuard { raw: self.load(), cell: self, section }
    }

    /// Reads in a section that has begun.
    pub fn read_with<'a>(&'a self, _: &'a D::Section) -> Option<P::Ref<'a>> {
        // SAFETY: the section goes on during `'a`, and the cell exists as long: the value is not
        // freed meanwhile, whoever replaces it.
        NonNull::new(self.load()).map(|raw| unsafe { P::raw_as_ref(raw) })
    }
}

impl<P: NonNullPtr, D> Drop for RcuOption<P, D> {
    fn drop(&mut self) {
        // Acquire: another CPU may have written it. No guard is left: each borrows the cell.
        if let Some(raw) = NonNull::new(self.raw.load(Ordering::Acquire)) {
            // SAFETY: it is the cell's, and no reader has it.
            drop(unsafe { P::from_raw(raw) });
        }
    }
}

impl<P: NonNullPtr + Send, D: Domain> RcuReadGuard<'_, P, D> {
    /// What the cell had in it.
    pub fn get(&self) -> P::Ref<'_> {
        never_none(self.0.get())
    }

    /// The section.
    pub fn section(&self) -> &D::Section {
        self.0.section()
    }

    /// Replaces the owner that was read, and ends the section. Until then no other object can be in
    /// the place of the old one, so if the pointer is the same, nobody has replaced it.
    ///
    /// # Errors
    /// Another owner is in the cell: the new one is given back.
    pub fn compare_exchange(self, new_ptr: P) -> Result<(), P> {
        let given_back = self.0.compare_exchange(Some(new_ptr));
        given_back.map_err(never_none)
    }
}

impl<P: NonNullPtr + Send, D: Domain> RcuOptionReadGuard<'_, P, D> {
    /// What the cell had in it.
    pub fn get(&self) -> Option<P::Ref<'_>> {
        // SAFETY: it was in the cell when the section had begun, and that goes on.
        NonNull::new(self.raw).map(|raw| unsafe { P::raw_as_ref(raw) })
    }

    /// Whether the cell was empty.
    pub fn is_none(&self) -> bool {
        self.raw.is_null()
    }

    /// The section.
    pub fn section(&self) -> &D::Section {
        &self.section
    }

    /// Replaces the owner that was read, or its absence, and ends the section. See
    /// [`RcuReadGuard::compare_exchange`].
    ///
    /// # Errors
    /// Something else is in the cell: the new owner is given back.
    pub fn compare_exchange(self, new_ptr: Option<P>) -> Result<(), Option<P>> {
        let new = raw_of(new_ptr);
        // AcqRel: as in `update`. Acquire: nothing is done with what is found instead.
        match self.cell.raw.compare_exchange(self.raw, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                if let Some(old) = NonNull::new(self.raw) {
                    // SAFETY: it was in the cell, and is in there no more.
                    unsafe { retire::<P, D>(old) };
                }
                Ok(())
            }
            // SAFETY: it is the owner that was given, and has been in no cell.
            Err(_) => Err(NonNull::new(new).map(|new| unsafe { P::from_raw(new) })),
        }
    }
}

/// An owner that is dropped after a grace period when this is dropped: of an object that readers
/// may have found by ways of their own.
#[repr(transparent)]
pub struct RcuDrop<T: NonNullPtr + Send, D: Domain> {
    value: ManuallyDrop<T>,
    domain: Of<D>,
}

impl<T: NonNullPtr + Send, D: Domain> RcuDrop<T, D> {
    /// Wraps an owner.
    pub fn new(value: T) -> Self {
        Self { value: ManuallyDrop::new(value), domain: PhantomData }
    }
}

impl<T: NonNullPtr + Send, D: Domain> Deref for RcuDrop<T, D> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: NonNullPtr + Send, D: Domain> Drop for RcuDrop<T, D> {
    fn drop(&mut self) {
        // SAFETY: it is taken once, since this is dropped once.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        // SAFETY: nobody has the owner any more, so no reader that begins now finds its object.
        unsafe { retire::<T, D>(value.into_raw()) };
    }
}

/// Says which type it is: what it owns is for readers, in sections.
macro_rules! debug {
    ($($name:ident $($bound:ident)?: $($life:lifetime)?;)*) => {$(
        impl<P: NonNullPtr $(+ $bound)?, D: Domain> fmt::Debug for $name<$($life,)? P, D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

debug! {
    Rcu: ;
    RcuOption: ;
    RcuDrop Send: ;
    RcuReadGuard: '_;
    RcuOptionReadGuard: '_;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::{Cell, RefCell};
    use std::boxed::Box;
    use std::rc::Rc;
    use std::sync::{Mutex, MutexGuard};
    use std::thread_local;
    use std::vec::Vec;

    use super::*;
    use crate::pointer::RcuBox;

    thread_local! {
        static QUEUED: RefCell<Vec<(NonNull<Head>, Run)>> = const { RefCell::new(Vec::new()) };
        static SECTIONS: Cell<u32> = const { Cell::new(0) };
        static REFUSES: Cell<bool> = const { Cell::new(false) };
        static TOLD: Cell<Option<Zone>> = const { Cell::new(None) };
        /// What happens just before a section begins.
        static BEFORE: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
    }

    /// A kernel of this thread, whose grace periods end when a test says so.
    struct Here;

    struct Section;

    impl Drop for Section {
        fn drop(&mut self) {
            SECTIONS.set(SECTIONS.get() - 1);
        }
    }

    // SAFETY: no test ends a grace period while there is a section.
    unsafe impl Domain for Here {
        type Section = Section;

        fn section() -> Section {
            if let Some(before) = BEFORE.take() {
                before();
            }
            SECTIONS.set(SECTIONS.get() + 1);
            Section
        }

        unsafe fn call(head: NonNull<Head>, run: Run) -> Result<Zone, Refused> {
            if REFUSES.get() {
                return Err(Refused::Offline);
            }
            QUEUED.with_borrow_mut(|queued| queued.push((head, run)));
            Ok(Zone::Expedite)
        }

        fn told(zone: Zone) {
            TOLD.set(Some(zone));
        }
    }

    /// Ends a grace period. Returns how many callbacks have run.
    fn grace_period() -> usize {
        assert_eq!(SECTIONS.get(), 0);
        let queued = QUEUED.take();
        let count = queued.len();
        for (head, run) in queued {
            // SAFETY: it was queued so.
            unsafe { run(head) };
        }
        count
    }

    /// Counts how many of it there are.
    struct One(u32);

    thread_local! {
        static ALIVE: Cell<u32> = const { Cell::new(0) };
    }

    fn one(number: u32) -> RcuBox<One> {
        ALIVE.set(ALIVE.get() + 1);
        RcuBox::new(One(number))
    }

    impl Drop for One {
        fn drop(&mut self) {
            ALIVE.set(ALIVE.get() - 1);
        }
    }

    #[test]
    fn an_old_value_is_dropped_after_a_grace_period_and_not_before() {
        let rcu: Rcu<_, Here> = Rcu::new(one(1));
        let guard = rcu.read();
        rcu.update(one(2));
        assert_eq!((guard.get().0, rcu.read().get().0, ALIVE.get()), (1, 2, 2));
        assert_eq!(rcu.read_with(guard.section()).deref_target().0, 2);
        assert_eq!(TOLD.take(), Some(Zone::Expedite));
        drop(guard);
        assert_eq!((grace_period(), ALIVE.get()), (1, 1));
        drop(rcu);
        assert_eq!((grace_period(), ALIVE.get()), (0, 0), "nobody could read it");
    }

    #[test]
    fn who_exchanges_what_is_there_no_more_gets_the_new_one_back() {
        let rcu: Rcu<_, Here> = Rcu::new(one(1));
        let (first, second) = (rcu.read(), rcu.read());
        assert!(first.compare_exchange(one(2)).is_ok());
        let given_back = second.compare_exchange(one(3)).map_err(RcuBox::into_inner);
        assert_eq!(given_back.map_err(|value| value.0), Err(3));
        assert_eq!(rcu.read().get().0, 2);
        assert_eq!((grace_period(), ALIVE.get()), (1, 1));
    }

    #[test]
    fn a_cell_may_be_empty() {
        let rcu: RcuOption<_, Here> = RcuOption::new_none();
        assert!(rcu.read().is_none() && rcu.read_with(rcu.read().section()).is_none());
        assert!(rcu.read().compare_exchange(Some(one(1))).is_ok());
        let guard = rcu.read();
        assert_eq!(guard.get().unwrap().0, 1);
        assert!(guard.compare_exchange(None).is_ok());
        assert_eq!((ALIVE.get(), grace_period(), ALIVE.get()), (1, 1, 0));
        rcu.update(Some(one(2)));
        rcu.update(None);
        assert!(rcu.read().get().is_none());
        assert_eq!((grace_period(), ALIVE.get()), (1, 0), "none is no old value");
    }

    #[test]
    fn an_owner_may_be_dropped_later_without_a_cell() {
        let owner: RcuDrop<_, Here> = RcuDrop::new(one(5));
        assert_eq!(owner.0, 5);
        drop(owner);
        assert_eq!((ALIVE.get(), grace_period(), ALIVE.get()), (1, 1, 0));
    }

    #[test]
    fn what_a_kernel_refuses_is_not_dropped() {
        let rcu: Rcu<_, Here> = Rcu::new(one(1));
        REFUSES.set(true);
        let old = RcuBox::ref_as_raw(rcu.read_with(&Here::section()));
        rcu.update(one(2));
        assert_eq!((grace_period(), ALIVE.get(), TOLD.take()), (0, 2, None));
        // SAFETY: it has leaked, so it is nobody's.
        drop(unsafe { RcuBox::from_raw(old) });
        assert_eq!(ALIVE.get(), 1);
    }

    #[test]
    fn what_is_replaced_before_a_section_begins_is_not_read_in_it() {
        let rcu: Rc<Rcu<_, Here>> = Rc::new(Rcu::new(one(1)));
        let its = rcu.clone();
        BEFORE.set(Some(Box::new(move || {
            its.update(one(2));
            assert_eq!(grace_period(), 1);
        })));
        let guard = rcu.read();
        let found = RcuBox::ref_as_raw(guard.get());
        assert_eq!(found, RcuBox::ref_as_raw(rcu.read().get()), "the old one has been dropped");
    }

    /// Whether a type is `Send`, and `Sync`: where it is not, the trait's constants are found.
    struct Probe<T>(PhantomData<T>);

    trait Otherwise {
        const IS_SEND: bool = false;
        const IS_SYNC: bool = false;
    }

    impl<T> Otherwise for Probe<T> {}

    impl<T: Send> Probe<T> {
        const IS_SEND: bool = true;
    }

    impl<T: Sync> Probe<T> {
        const IS_SYNC: bool = true;
    }

    #[test]
    fn cells_are_shared_by_threads_if_what_they_own_is() {
        macro_rules! is {
            ($type:ty) => {
                (Probe::<$type>::IS_SEND, Probe::<$type>::IS_SYNC)
            };
        }
        assert_eq!(is!(Rcu<RcuBox<u32>, Here>), (true, true));
        assert_eq!(is!(RcuOption<RcuBox<Mutex<Cell<u32>>>, Here>), (true, true));
        // A reader would have the `Cell`, and any thread drop the guard.
        assert_eq!(is!(Rcu<RcuBox<Cell<u32>>, Here>), (true, false));
        assert_eq!(is!(Rcu<RcuBox<MutexGuard<'static, u32>>, Here>), (false, false));
        // Sections stay on their thread, though this `Section` would not.
        assert!(is!(Section).0);
        assert_eq!(is!(RcuReadGuard<'static, RcuBox<u32>, Here>), (false, false));
        assert_eq!(is!(RcuOptionReadGuard<'static, RcuBox<u32>, Here>), (false, false));
    }
}
