//! The chains of [`cases::hash`](crate::cases::hash) with liburcu, through `c/table.h`.

use std::ffi::c_void;

use super::{Flavour, Registered};
use crate::cases::hash::{BUCKETS, Operation, Table};

/// The C functions of one flavour's table, as in `c/table.h`.
#[repr(C)]
pub(super) struct Functions {
    flavour: &'static Flavour,
    new: unsafe extern "C" fn(u64, *const u64, u64) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    run: unsafe extern "C" fn(*mut c_void, *const Operation, u64, u64) -> u64,
    barrier: unsafe extern "C" fn(),
}

unsafe extern "C" {
    #[link_name = "rivals_memb_table"]
    pub(super) safe static MEMB: Functions;
    #[link_name = "rivals_qsbr_table"]
    pub(super) safe static QSBR: Functions;
}

/// A table of chains whose nodes are retired by `call_rcu`.
pub(super) struct Chains {
    table: *mut c_void,
    functions: &'static Functions,
}

// SAFETY: the table is shared by the threads that run on it, as in any program with liburcu: its
// pointers are exchanged by atomic instructions, and its nodes are read within sections.
unsafe impl Sync for Chains {}

impl Chains {
    pub(super) fn new(keys: &[u64], functions: &'static Functions) -> Self {
        // SAFETY: C copies so many keys; it ends the process if there is no memory.
        let table = unsafe { (functions.new)(BUCKETS as u64, keys.as_ptr(), keys.len() as u64) };
        Self { table, functions }
    }
}

impl Table for Chains {
    fn run(&self, operations: &[Operation], rounds: usize) {
        let _registered = Registered::new(self.functions.flavour);
        let (all, count) = (operations.as_ptr(), operations.len() as u64);
        // SAFETY: this thread is registered, the table is alive, and C reads so many operations.
        let wrong = unsafe { (self.functions.run)(self.table, all, count, rounds as u64) };
        assert_eq!(wrong, 0, "every search found the value of its key");
    }

    fn flush(&self) {
        // SAFETY: this thread is in no section, and is no online reader.
        unsafe { (self.functions.barrier)() };
    }
}

impl Drop for Chains {
    fn drop(&mut self) {
        self.flush();
        // SAFETY: by `&mut self` no thread runs on it any more; it was made by `new`.
        unsafe { (self.functions.free)(self.table) };
    }
}
