//! `<urcu/wfstack.h>`: the stack with wait-free push.
//!
//! C passes the stack as a transparent union of pointers, as in `wfcqueue.rs`. `pop_all` returns a
//! pointer to the topmost node (`struct cds_wfs_head` is a node), from which the caller continues.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use quiescence::intrusive::{Patience, Popped, StackNode, Stacked, WaitFreeStack, WouldBlock};

use super::{DESTROY, INIT, LOCK, Locked, Structure, UNLOCK, node, say_last};

/// `struct cds_wfs_stack`.
type LockedStack = Locked<WaitFreeStack>;

const _: () = assert!(size_of::<LockedStack>() == 48 || cfg!(not(target_arch = "x86_64")));

impl Structure for WaitFreeStack {
    const NAME: &str = "struct cds_wfs_stack";
}

/// Returns the popped node to C, and stores in `state`, unless that is null, whether it was the
/// last.
///
/// # Safety
/// `state` is writable, or null.
unsafe fn popped(popped: Result<Option<Popped>, WouldBlock>, state: *mut c_int) -> *mut StackNode {
    let last = matches!(popped, Ok(Some(Popped { last: true, .. })));
    // SAFETY: by this function's contract.
    unsafe { say_last(state, last) };
    node(popped.map(|popped| popped.map(|popped| popped.node)))
}

exported! {
    fn quiescence_cds_wfs_init(stack: *mut LockedStack) {
        LockedStack::posix(stack, INIT);
        stack.cast::<WaitFreeStack>().write(WaitFreeStack::new());
    }

    fn quiescence___cds_wfs_init(stack: *mut WaitFreeStack) { stack.write(WaitFreeStack::new()) }

    fn quiescence_cds_wfs_destroy(stack: *mut LockedStack) { LockedStack::posix(stack, DESTROY) }

    fn quiescence_cds_wfs_empty(stack: &WaitFreeStack) -> bool { stack.is_empty() }

    fn quiescence_cds_wfs_push(stack: &WaitFreeStack, node: *mut StackNode) -> c_int {
        c_int::from(stack.push(node))
    }

    fn quiescence_cds_wfs_pop_lock(stack: *mut LockedStack) { LockedStack::posix(stack, LOCK) }

    fn quiescence_cds_wfs_pop_unlock(stack: *mut LockedStack) { LockedStack::posix(stack, UNLOCK) }

    fn quiescence_cds_wfs_pop_with_state_blocking(
        stack: *mut LockedStack,
        state: *mut c_int
    ) -> *mut StackNode {
        LockedStack::locked(stack, |stack| popped(Ok(stack.pop()), state))
    }

    fn quiescence___cds_wfs_pop_with_state_blocking(
        stack: &WaitFreeStack,
        state: *mut c_int
    ) -> *mut StackNode {
        popped(Ok(stack.pop()), state)
    }

    fn quiescence___cds_wfs_pop_with_state_nonblocking(
        stack: &WaitFreeStack,
        state: *mut c_int
    ) -> *mut StackNode {
        popped(stack.try_pop(), state)
    }

    fn quiescence___cds_wfs_pop_all(stack: &WaitFreeStack) -> *mut StackNode {
        node(Ok(stack.pop_all().first()))
    }

    fn quiescence_cds_wfs_pop_all_blocking(stack: *mut LockedStack) -> *mut StackNode {
        LockedStack::locked(stack, |stack| node(Ok(stack.pop_all().first())))
    }

    /// The topmost node of what `pop_all` has given, which is null for none. Inlined code may have
    /// the mark of an empty stack (the address 1) instead.
    fn quiescence_cds_wfs_first(top: *mut StackNode) -> *mut StackNode {
        if top.addr() == 1 { ptr::null_mut() } else { top }
    }

    fn quiescence_cds_wfs_next_blocking(above: NonNull<StackNode>) -> *mut StackNode {
        node(Stacked::below(above, Patience::Wait))
    }

    fn quiescence_cds_wfs_next_nonblocking(above: NonNull<StackNode>) -> *mut StackNode {
        node(Stacked::below(above, Patience::Refuse))
    }
}
