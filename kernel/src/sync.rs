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
