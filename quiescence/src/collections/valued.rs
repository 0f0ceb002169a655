//! A node that owns a value, for the safe structures built on the intrusive ones.
//!
//! The thread that takes a node out also takes its value, at once; no other thread can. Other
//! threads may still read the *node*, in sections that began before, so its memory is retired. By
//! then the value has been taken, so the end of the node drops no value.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::domain::guard::Global;
use crate::os::on_drop::OnDrop;
use crate::os::user_code::{self, Site};
use crate::reclaim::domain_state::Named;
use crate::reclaim::free::Pending;
use crate::reclaim::weigh::charge_of_box;
use crate::reclaim::{cache, unlink};

/// A node of type `N`, which comes first, and the value.
#[repr(C)]
pub(super) struct Valued<N, T> {
    node: N,
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<N: Send + 'static, T: Send + 'static> Valued<N, T> {
    /// What its memory is charged where it waits. The value does not wait.
    const CHARGE: usize = charge_of_box::<Self>(size_of::<Self>());

    /// In a box of its own, as its node.
    pub(super) fn boxed(node: N, value: T) -> *mut N {
        let value = UnsafeCell::new(MaybeUninit::new(value));
        Box::into_raw(cache::boxed(Self { node, value })).cast()
    }

    /// The value of a node that the caller has taken out, whose memory other threads may read.
    ///
    /// # Safety
    /// The node is one of [`boxed`](Self::boxed), and no other thread has taken it out. The caller
    /// is in the section in which it has done so, or no thread has retired the node yet.
    pub(super) unsafe fn value(node: NonNull<N>) -> T {
        // SAFETY: by this function's contract it is there.
        let value = unsafe { &node.cast::<Self>().as_ref().value };
        // SAFETY: of all threads only this one has the value; others see the node alone.
        let value = unsafe { value.get().read() };
        // SAFETY: it was written where the node was made, and is read once.
        unsafe { value.assume_init() }
    }

    /// Frees the memory of a node after a grace period of the global domain. May wait for one.
    ///
    /// # Safety
    /// The node is one of [`boxed`](Self::boxed), its value has been taken, and sections that begin
    /// from now on do not find it.
    #[track_caller]
    pub(super) unsafe fn retire(node: NonNull<N>) {
        // SAFETY: from a box, and out of reach, by this function's contract.
        let node = unsafe { Pending::boxed(Global.core(), node.cast::<Self>().as_ptr()) };
        unlink::retire_box(&Global, node, Self::CHARGE);
    }

    /// The value of a node that no other thread can reach; the node is freed.
    ///
    /// # Safety
    /// The node is one of [`boxed`](Self::boxed), and is not used any more.
    pub(super) unsafe fn unboxed(node: NonNull<N>) -> T {
        // SAFETY: by this function's contract.
        let value = unsafe { Self::value(node) };
        // SAFETY: from a box; what is left in it needs no drop.
        unsafe { cache::free(node.cast::<Self>().as_ptr()) };
        value
    }
}

/// What a structure of values has by its `new`, `push` and `is_empty`.
macro_rules! collected_by_push {
    ($structure:ident) => {
        $crate::domain::impls::default_by!(new, impl<T: Send + 'static> Default for $structure<T>);

        $crate::domain::impls::shown_in_part!(
            [T: Send + 'static] $structure<T> { is_empty: |this| this.is_empty() }
        );

        $crate::collections::impls::extended!(
            [T: Send + 'static] $structure<T>, T,
            |all, values| values.into_iter().for_each(|value| all.push(value))
        );

        impl<T: Send + 'static> FromIterator<T> for $structure<T> {
            fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
                let structure = Self::new();
                (&structure).extend(values);
                structure
            }
        }
    };
}
pub(super) use collected_by_push;

/// Calls `next`, and drops what it gives, until it gives nothing; the rest as well, if a drop
/// panics.
pub(super) fn drop_all<T>(mut next: impl FnMut() -> Option<T>) {
    let mut rest = OnDrop(|| {
        while let Some(value) = next() {
            user_code::run(Site::Drop, || drop(value));
        }
    });
    // What its drop does is done after a panic here; else it finds nothing.
    (rest.0)();
}
