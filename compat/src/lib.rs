//! liburcu's names, symbols and layouts on quiescence's grace periods.
//!
//! This crate is the core behind all the libraries that `cargo xtask compat` links:
//! `libquiescence.so.0`. The thin libraries around it (`shim/`), one for each flavour, define the
//! symbols that clients see, such as `urcu_memb_read_lock` and `urcu_memb_gp`: C is the best
//! language for data and thread-local symbols. They contain a reader's few instructions. All else
//! is here, in functions whose first argument is the flavour (`shim/core.h`). The concurrent data
//! structures are those of `quiescence::intrusive`; here they get C's signatures.
//!
//! It uses `quiescence`, and of the system only what a C interface cannot do without, such as
//! thread-specific keys, joinable threads and their affinity, signal masks, and the dynamic linker.

/// Defines functions for C, each under its exported name. Unsafe code in them rests on the contract
/// of liburcu's function, which the module states, or has a `SAFETY` sentence.
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

/// The same for functions of a flavour: C passes its number as the first argument.
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
mod hazard;
mod lfht;
mod memory;
mod poll;
mod queues;
mod reader;
mod threads;
mod workqueue;
