//! `<urcu/lfstack.h>`: the lock-free stack. `<urcu/rculfstack.h>` is its older form, with the same
//! layout and no lock: its functions are aliases of these (`shim/cds.S`).
//!
//! `pop_all` returns a pointer to the topmost node. The caller's inlined code follows the links.

use std::ffi::c_int;

use quiescence::intrusive::{LockFreeStack, StackNode};

use super::{DESTROY, INIT, LOCK, Locked, Structure, UNLOCK, node};

/// `struct cds_lfs_stack`.
type LockedStack = Locked<LockFreeStack>;

const _: () = assert!(size_of::<LockedStack>() == 48 || cfg!(not(target_arch = "x86_64")));

impl Structure for LockFreeStack {
    const NAME: &str = "struct cds_lfs_stack";
}

exported! {
    fn quiescence_cds_lfs_node_init(node: *mut StackNode) { node.write(StackNode::new()) }

    fn quiescence_cds_lfs_init(stack: *mut LockedStack) {
        LockedStack::posix(stack, INIT);
        stack.cast::<LockFreeStack>().write(LockFreeStack::new());
    }

    fn quiescence___cds_lfs_init(stack: *mut LockFreeStack) { stack.write(LockFreeStack::new()) }

    fn quiescence_cds_lfs_destroy(stack: *mut LockedStack) { LockedStack::posix(stack, DESTROY) }

    fn quiescence_cds_lfs_empty(stack: &LockFreeStack) -> bool { stack.is_empty() }

    /// Callers by the older name read an `int`; those by this one read a byte of it.
    fn quiescence_cds_lfs_push(stack: &LockFreeStack, node: *mut StackNode) -> c_int {
        c_int::from(stack.push(node))
    }

    fn quiescence_cds_lfs_pop_lock(stack: *mut LockedStack) { LockedStack::posix(stack, LOCK) }

    fn quiescence_cds_lfs_pop_unlock(stack: *mut LockedStack) { LockedStack::posix(stack, UNLOCK) }

    fn quiescence___cds_lfs_pop(stack: &LockFreeStack) -> *mut StackNode { node(Ok(stack.pop())) }

    fn quiescence_cds_lfs_pop_blocking(stack: *mut LockedStack) -> *mut StackNode {
        LockedStack::locked(stack, |stack| node(Ok(stack.pop())))
    }

    fn quiescence___cds_lfs_pop_all(stack: &LockFreeStack) -> *mut StackNode {
        node(Ok(stack.pop_all().first()))
    }

    fn quiescence_cds_lfs_pop_all_blocking(stack: *mut LockedStack) -> *mut StackNode {
        LockedStack::locked(stack, |stack| node(Ok(stack.pop_all().first())))
    }
}
