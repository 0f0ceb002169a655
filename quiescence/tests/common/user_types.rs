//! What users give the library to work with, for tests of what it does with that.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, Release};

use quiescence::Weigh;
use quiescence::cell::{self, RefCnt};

use super::OnDrop;

/// Counts itself where it is dropped. It orders as little as a test can do with, or it would stand
/// in for an ordering of the library's that is missing.
#[derive(Debug)]
pub(crate) struct Dropped(pub(crate) Arc<AtomicUsize>);

impl Weigh for Dropped {}

impl Drop for Dropped {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of tests that wait for a number.
        self.0.fetch_add(1, Release);
    }
}

/// A number, which is counted as long as it lives and is whole.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) number: u64,
    check: u64,
    live: Arc<AtomicUsize>,
}

impl Weigh for Counted {}

impl Counted {
    pub(crate) fn new(number: u64, live: &Arc<AtomicUsize>) -> Self {
        live.fetch_add(1, Relaxed);
        Self { number, check: !number, live: Arc::clone(live) }
    }

    /// The number, if it has not been dropped and nothing of it is of another one.
    pub(crate) fn whole(&self) -> u64 {
        assert_eq!(self.check, !self.number, "dropped or torn");
        self.number
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.whole();
        self.check = self.number;
        // Release: as where `Dropped` is dropped.
        self.live.fetch_sub(1, Release);
    }
}

/// Counts the times that it is woken.
#[derive(Debug, Default)]
pub(crate) struct Woken(pub(crate) AtomicUsize);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Release: as above.
        self.0.fetch_add(1, Release);
    }
}

impl<F: FnMut()> Weigh for OnDrop<F> {}

/// What is done where a [`Pointer`] is cloned.
pub(crate) trait OnClone: Send + Sync + 'static {
    fn on_clone();
}

/// A counted pointer whose clone is the test's.
#[derive(Debug)]
pub(crate) struct Pointer<C>(pub(crate) Arc<u64>, PhantomData<C>);

impl<C> Pointer<C> {
    pub(crate) fn new(value: Arc<u64>) -> Self {
        Self(value, PhantomData)
    }
}

impl<C: OnClone> Clone for Pointer<C> {
    fn clone(&self) -> Self {
        C::on_clone();
        Self::new(Arc::clone(&self.0))
    }
}

// SAFETY: all as `Arc` does it.
unsafe impl<C: OnClone> RefCnt for Pointer<C> {
    type Target = u64;

    fn target(me: &Self) -> &u64 {
        &me.0
    }

    fn base(me: &Self) -> Option<&u64> {
        Some(&me.0)
    }
}

// SAFETY: all as `Arc` does it.
unsafe impl<C: OnClone> cell::Counted for Pointer<C> {
    type Base = u64;

    fn into_ptr(me: Self) -> *mut u64 {
        cell::Counted::into_ptr(me.0)
    }

    fn as_ptr(me: &Self) -> *mut u64 {
        cell::Counted::as_ptr(&me.0)
    }

    unsafe fn from_ptr(address: *const u64) -> Self {
        // SAFETY: by the contract.
        Self::new(unsafe { cell::Counted::from_ptr(address) })
    }
}

thread_local! {
    /// Whether the clone of a [`Shaky`] panics.
    pub(crate) static SHAKES: Cell<bool> = const { Cell::new(false) };
}

/// A pointer whose clone may panic.
pub(crate) type Shaky = Pointer<Shakes>;

#[derive(Debug)]
pub(crate) struct Shakes;

impl OnClone for Shakes {
    fn on_clone() {
        assert!(!SHAKES.get(), "on purpose");
    }
}

/// A hasher by a function of the number that a key is; bytes are made a number first.
macro_rules! hasher {
    ($(#[$meta:meta])* $vis:vis $name:ident: $hash:expr) => {
        $(#[$meta])*
        #[derive(Default)]
        $vis struct $name(u64);

        impl std::hash::Hasher for $name {
            fn write(&mut self, bytes: &[u8]) {
                let more = |sum: u64, byte: &u8| sum.wrapping_mul(31).wrapping_add((*byte).into());
                self.0 = bytes.iter().fold(self.0, more);
            }

            fn write_u64(&mut self, number: u64) {
                self.0 = number;
            }

            fn finish(&self) -> u64 {
                let hash: fn(u64) -> u64 = $hash;
                hash(self.0)
            }
        }
    };
}

pub(crate) use hasher;

hasher! {
    /// All keys have one hash.
    pub(crate) Constant: |_| 0x1234_5678_9abc_def0
}

/// Panics when it is dropped; and so does what it panics with, a few times.
pub(crate) struct Bomb(u32);

pub(crate) const BOMB: Bomb = Bomb(3);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 != 0 && !std::thread::panicking() {
            std::panic::panic_any(Bomb(self.0 - 1));
        }
    }
}
