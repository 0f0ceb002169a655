//! liburcu's names, symbols and layouts on quiescence's grace periods.
//!
//! This crate is the one core behind all the libraries that `cargo xtask compat` links:
//! `libquiescence.so.0`. What clients see, `urcu_memb_read_lock`, `urcu_memb_gp` and the like, is
//! defined by the thin libraries around it, out of `shim/`, once for each flavour: data and
//! thread-local symbols are what C defines best, and what their functions do beyond a reader's few
//! instructions is here, with the flavour as the first argument (`shim/core.h`). The concurrent
//! data structures are `quiescence::intrusive`'s; here they are given C's signatures.
//!
//! It touches `quiescence`, and of the system only what a C interface cannot do without:
//! thread-specific keys, joinable threads and their affinity.

/// Defines functions for C, each under the name that it is exported by. What is unsafe in one is so
/// by the contract of liburcu's function, which the module says, or has a `SAFETY` sentence.
macro_rules! exported {
    ($(
        $(#[$about:meta])*
        fn $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)? $body:block
    )*) => {$(
        $(#[$about])*
        #[unsafe(no_mangle)]
        #[allow(unsafe_op_in_unsafe_fn, reason = "all of it rests on C's contract")]
        unsafe extern "C" fn $name($($argument: $type),*) $(-> $answer)? $body
    )*};
}

/// The same for functions of a flavour, whose number C gives first.
macro_rules! of_flavors {
    ($(
        $(#[$about:meta])*
        fn $name:ident($flavor:ident $(, $argument:ident: $type:ty)*) $(-> $answer:ty)? $body:block
    )*) => { exported! {$(
        $(#[$about])*
        fn $name($flavor: std::ffi::c_uint $(, $argument: $type)*) $(-> $answer)? {
            let $flavor = $crate::flavor::Flavor::called($flavor);
            $body
        }
    )*} };
}

mod call_rcu;
mod defer;
mod errno_guard;
mod fatal;
mod flavor;
mod flavor_copy;
mod fork;
mod futex;
mod hazard;
mod lfht;
mod memory;
mod poll;
mod queues;
mod reader;
mod signals;
mod threads;
mod workqueue;
