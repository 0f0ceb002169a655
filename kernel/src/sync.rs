//! Atomics: the core library's, or loom's where it explores this crate.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// A function that is `const`, but for loom, whose atomics are not made by a constant.
macro_rules! constant {
    (
        $(#[$about:meta])*
        $seen:vis fn $name:ident($($what:ident: $type:ty),*) -> $result:ty $body:block
    ) => {
        #[cfg(not(loom))]
        $(#[$about])*
        $seen const fn $name($($what: $type),*) -> $result $body

        #[cfg(loom)]
        $(#[$about])*
        $seen fn $name($($what: $type),*) -> $result $body
    };
}
pub(crate) use constant;

/// Waits a moment for another CPU.
pub(crate) fn pause() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// An atomic word that is compared, hashed and cloned by what it holds: an engine's state is a
/// value to those who explore it.
#[derive(Debug)]
pub(crate) struct Word(AtomicU32);

impl Word {
    constant! {
        pub(crate) fn new(value: u32) -> Self {
            Self(AtomicU32::new(value))
        }
    }

    fn value(&self) -> u32 {
        // Relaxed: whoever compares or clones an engine has it to itself.
        self.0.load(Ordering::Relaxed)
    }
}

impl core::ops::Deref for Word {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        &self.0
    }
}

impl Clone for Word {
    fn clone(&self) -> Self {
        Self::new(self.value())
    }
}

impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Eq for Word {}

impl core::hash::Hash for Word {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.value().hash(state);
    }
}
