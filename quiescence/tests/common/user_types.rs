//! What users give the library to work with, for tests of what it does with that.

use std::hash::Hasher;
use std::marker::PhantomData;
use std::sync::Arc;

use quiescence::cell::Counted;
use quiescence::cell::RefCnt;

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
unsafe impl<C: OnClone> Counted for Pointer<C> {
    type Base = u64;

    fn into_ptr(me: Self) -> *mut u64 {
        Counted::into_ptr(me.0)
    }

    fn as_ptr(me: &Self) -> *mut u64 {
        Counted::as_ptr(&me.0)
    }

    unsafe fn from_ptr(address: *const u64) -> Self {
        // SAFETY: by the contract.
        Self::new(unsafe { Counted::from_ptr(address) })
    }
}

/// A counted pointer of which a guard shows a part.
#[derive(Clone, Debug)]
pub(crate) struct Own(pub(crate) Arc<(u64, String)>);

// SAFETY: an `Arc`, and does as its implementation does.
unsafe impl Counted for Own {
    type Base = (u64, String);

    fn into_ptr(me: Self) -> *mut Self::Base {
        Arc::into_raw(me.0).cast_mut()
    }

    fn as_ptr(me: &Self) -> *mut Self::Base {
        Arc::as_ptr(&me.0).cast_mut()
    }

    unsafe fn from_ptr(address: *const Self::Base) -> Self {
        // SAFETY: by the contract.
        Self(unsafe { Arc::from_raw(address) })
    }
}

// SAFETY: what is shown is in the `Arc`.
unsafe impl RefCnt for Own {
    type Target = String;

    fn target(me: &Self) -> &String {
        &me.0.1
    }

    fn base(me: &Self) -> Option<&Self::Base> {
        Some(&me.0)
    }
}

/// All keys have one hash.
#[derive(Default)]
pub(crate) struct Constant;

impl Hasher for Constant {
    fn write(&mut self, _: &[u8]) {}

    fn finish(&self) -> u64 {
        0x1234_5678_9abc_def0
    }
}
