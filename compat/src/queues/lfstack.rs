//! `<urcu/lfstack.h>`: the lock-free stack; and `<urcu/rculfstack.h>`, its older name, with the
//! same layout and no lock.
//!
//! What `pop_all` gives is a pointer to the topmost node, from which the caller continues by
//! itself, inlined.

use std::ffi::c_int;

use quiescence::intrusive::{LockFreeStack, StackNode};

use super::{Locked, node};

/// `struct cds_lfs_stack`.
type LockedStack = Locked<LockFreeStack>;

const _: () = assert!(size_of::<LockedStack>() == 48 || cfg!(not(target_arch = "x86_64")));

const NAME: &str = "struct cds_lfs_stack";

#[unsafe(export_name = "quiescence_cds_lfs_node_init")]
unsafe extern "C" fn node_init(node: *mut StackNode) {
    // SAFETY: liburcu's contract.
    unsafe { node.write(StackNode::new()) };
}

#[unsafe(export_name = "quiescence_cds_lfs_init")]
unsafe extern "C" fn init(stack: *mut LockedStack) {
    // SAFETY: liburcu's contract.
    unsafe { LockedStack::init(stack, NAME) };
    // SAFETY: as above; the stack comes first.
    unsafe { init_without_lock(stack.cast()) };
}

#[unsafe(export_name = "quiescence___cds_lfs_init")]
unsafe extern "C" fn init_without_lock(stack: *mut LockFreeStack) {
    // SAFETY: liburcu's contract.
    unsafe { stack.write(LockFreeStack::new()) };
}

#[unsafe(export_name = "quiescence_cds_lfs_destroy")]
unsafe extern "C" fn destroy(stack: *mut LockedStack) {
    // SAFETY: liburcu's contract.
    unsafe { LockedStack::destroy(stack, NAME) };
}

#[unsafe(export_name = "quiescence_cds_lfs_empty")]
unsafe extern "C" fn empty(stack: *const LockFreeStack) -> bool {
    // SAFETY: liburcu's contract.
    unsafe { &*stack }.is_empty()
}

#[unsafe(export_name = "quiescence_cds_lfs_push")]
unsafe extern "C" fn push(stack: *const LockFreeStack, node: *mut StackNode) -> bool {
    // SAFETY: liburcu's contract.
    let stack = unsafe { &*stack };
    // SAFETY: as above.
    unsafe { stack.push(node) }
}

#[unsafe(export_name = "quiescence_cds_lfs_pop_lock")]
unsafe extern "C" fn pop_lock(stack: *mut LockedStack) {
    // SAFETY: liburcu's contract.
    unsafe { LockedStack::lock(stack, NAME) };
}

#[unsafe(export_name = "quiescence_cds_lfs_pop_unlock")]
unsafe extern "C" fn pop_unlock(stack: *mut LockedStack) {
    // SAFETY: liburcu's contract.
    unsafe { LockedStack::unlock(stack, NAME) };
}

#[unsafe(export_name = "quiescence___cds_lfs_pop")]
unsafe extern "C" fn pop_alone(stack: *const LockFreeStack) -> *mut StackNode {
    // SAFETY: liburcu's contract.
    let stack = unsafe { &*stack };
    // SAFETY: as above.
    node(Ok(unsafe { stack.pop() }))
}

#[unsafe(export_name = "quiescence_cds_lfs_pop_blocking")]
unsafe extern "C" fn pop_blocking(stack: *mut LockedStack) -> *mut StackNode {
    // SAFETY: liburcu's contract, of this function and of the one that is called under the lock.
    let pop = || unsafe { pop_alone(stack.cast()) };
    // SAFETY: as above.
    unsafe { LockedStack::locked(stack, NAME, pop) }
}

#[unsafe(export_name = "quiescence___cds_lfs_pop_all")]
unsafe extern "C" fn pop_all_alone(stack: *const LockFreeStack) -> *mut StackNode {
    // SAFETY: liburcu's contract.
    let unstacked = unsafe { &*stack }.pop_all();
    // The caller walks on by itself.
    node(Ok(unstacked.first()))
}

#[unsafe(export_name = "quiescence_cds_lfs_pop_all_blocking")]
unsafe extern "C" fn pop_all_blocking(stack: *mut LockedStack) -> *mut StackNode {
    // SAFETY: liburcu's contract, of this function and of the one that is called under the lock.
    let pop_all = || unsafe { pop_all_alone(stack.cast()) };
    // SAFETY: as above.
    unsafe { LockedStack::locked(stack, NAME, pop_all) }
}

#[unsafe(export_name = "quiescence_cds_lfs_node_init_rcu")]
unsafe extern "C" fn node_init_rcu(node: *mut StackNode) {
    // SAFETY: liburcu's contract.
    unsafe { node.write(StackNode::new()) };
}

#[unsafe(export_name = "quiescence_cds_lfs_init_rcu")]
unsafe extern "C" fn init_rcu(stack: *mut LockFreeStack) {
    // SAFETY: liburcu's contract.
    unsafe { init_without_lock(stack) };
}

#[unsafe(export_name = "quiescence_cds_lfs_push_rcu")]
unsafe extern "C" fn push_rcu(stack: *const LockFreeStack, node: *mut StackNode) -> c_int {
    // SAFETY: liburcu's contract.
    c_int::from(unsafe { push(stack, node) })
}

/// In a read-side critical section.
#[unsafe(export_name = "quiescence_cds_lfs_pop_rcu")]
unsafe extern "C" fn pop_rcu(stack: *const LockFreeStack) -> *mut StackNode {
    // SAFETY: liburcu's contract.
    unsafe { pop_alone(stack) }
}
