//! `<urcu/wfstack.h>`: the stack with wait-free push.
//!
//! A stack is passed as a union of pointers, with a lock behind it or without, which is a pointer
//! to the stack. What `pop_all` gives is a pointer to the topmost node (`struct cds_wfs_head` is a
//! node), from which the caller continues.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use quiescence::intrusive::{Patience, Popped, StackNode, Stacked, WaitFreeStack};

use super::{Locked, node, say_last};

/// `struct cds_wfs_stack`.
type LockedStack = Locked<WaitFreeStack>;

const _: () = assert!(size_of::<LockedStack>() == 48 || cfg!(not(target_arch = "x86_64")));

const NAME: &str = "struct cds_wfs_stack";

#[unsafe(export_name = "quiescence_cds_wfs_node_init")]
unsafe extern "C" fn node_init(node: *mut StackNode) {
    // SAFETY: liburcu's contract.
    unsafe { node.write(StackNode::new()) };
}

#[unsafe(export_name = "quiescence_cds_wfs_init")]
unsafe extern "C" fn init(stack: *mut LockedStack) {
    // SAFETY: liburcu's contract.
    unsafe { LockedStack::init(stack, NAME) };
    // SAFETY: as above; the stack comes first.
    unsafe { init_without_lock(stack.cast()) };
}

#[unsafe(export_name = "quiescence___cds_wfs_init")]
unsafe extern "C" fn init_without_lock(stack: *mut WaitFreeStack) {
    // SAFETY: liburcu's contract.
    unsafe { stack.write(WaitFreeStack::new()) };
}

#[unsafe(export_name = "quiescence_cds_wfs_destroy")]
unsafe extern "C" fn destroy(stack: *mut LockedStack) {
    // SAFETY: liburcu's contract.
    unsafe { LockedStack::destroy(stack, NAME) };
}

#[unsafe(export_name = "quiescence_cds_wfs_empty")]
unsafe extern "C" fn empty(stack: *const WaitFreeStack) -> bool {
    // SAFETY: liburcu's contract.
    unsafe { &*stack }.is_empty()
}

#[unsafe(export_name = "quiescence_cds_wfs_push")]
unsafe extern "C" fn push(stack: *const WaitFreeStack, node: *mut StackNode) -> c_int {
    // SAFETY: liburcu's contract.
    let stack = unsafe { &*stack };
    // SAFETY: as above.
    c_int::from(unsafe { stack.push(node) })
}

#[unsafe(export_name = "quiescence_cds_wfs_pop_lock")]
unsafe extern "C" fn pop_lock(stack: *mut LockedStack) {
    // SAFETY: liburcu's contract.
    unsafe { LockedStack::lock(stack, NAME) };
}

#[unsafe(export_name = "quiescence_cds_wfs_pop_unlock")]
unsafe extern "C" fn pop_unlock(stack: *mut LockedStack) {
    // SAFETY: liburcu's contract.
    unsafe { LockedStack::unlock(stack, NAME) };
}

#[unsafe(export_name = "quiescence_cds_wfs_pop_blocking")]
unsafe extern "C" fn pop_blocking(stack: *mut LockedStack) -> *mut StackNode {
    // SAFETY: liburcu's contract; null is for no state.
    unsafe { pop_with_state_blocking(stack, ptr::null_mut()) }
}

#[unsafe(export_name = "quiescence_cds_wfs_pop_with_state_blocking")]
unsafe extern "C" fn pop_with_state_blocking(
    stack: *mut LockedStack,
    state: *mut c_int,
) -> *mut StackNode {
    // SAFETY: liburcu's contract, of this function and of the one that is called under the lock.
    let pop = || unsafe { pop_alone_with_state_blocking(stack.cast(), state) };
    // SAFETY: as above.
    unsafe { LockedStack::locked(stack, NAME, pop) }
}

#[unsafe(export_name = "quiescence___cds_wfs_pop_blocking")]
unsafe extern "C" fn pop_alone_blocking(stack: *const WaitFreeStack) -> *mut StackNode {
    // SAFETY: liburcu's contract; null is for no state.
    unsafe { pop_alone_with_state_blocking(stack, ptr::null_mut()) }
}

#[unsafe(export_name = "quiescence___cds_wfs_pop_with_state_blocking")]
unsafe extern "C" fn pop_alone_with_state_blocking(
    stack: *const WaitFreeStack,
    state: *mut c_int,
) -> *mut StackNode {
    // SAFETY: liburcu's contract.
    let stack = unsafe { &*stack };
    // SAFETY: as above.
    let popped = unsafe { stack.pop() };
    // SAFETY: as above.
    unsafe { say_last(state, popped.is_some_and(|popped| popped.last)) };
    node(Ok(popped.map(|popped| popped.node)))
}

#[unsafe(export_name = "quiescence___cds_wfs_pop_nonblocking")]
unsafe extern "C" fn pop_alone_nonblocking(stack: *const WaitFreeStack) -> *mut StackNode {
    // SAFETY: liburcu's contract; null is for no state.
    unsafe { pop_alone_with_state_nonblocking(stack, ptr::null_mut()) }
}

#[unsafe(export_name = "quiescence___cds_wfs_pop_with_state_nonblocking")]
unsafe extern "C" fn pop_alone_with_state_nonblocking(
    stack: *const WaitFreeStack,
    state: *mut c_int,
) -> *mut StackNode {
    // SAFETY: liburcu's contract.
    let stack = unsafe { &*stack };
    // SAFETY: as above.
    let popped = unsafe { stack.try_pop() };
    let last = matches!(popped, Ok(Some(Popped { last: true, .. })));
    // SAFETY: as above.
    unsafe { say_last(state, last) };
    node(popped.map(|popped| popped.map(|popped| popped.node)))
}

#[unsafe(export_name = "quiescence___cds_wfs_pop_all")]
unsafe extern "C" fn pop_all_alone(stack: *const WaitFreeStack) -> *mut StackNode {
    // SAFETY: liburcu's contract.
    let stacked = unsafe { &*stack }.pop_all();
    // The caller walks on by itself.
    node(Ok(stacked.first()))
}

#[unsafe(export_name = "quiescence_cds_wfs_pop_all_blocking")]
unsafe extern "C" fn pop_all_blocking(stack: *mut LockedStack) -> *mut StackNode {
    // SAFETY: liburcu's contract, of this function and of the one that is called under the lock.
    let pop_all = || unsafe { pop_all_alone(stack.cast()) };
    // SAFETY: as above.
    unsafe { LockedStack::locked(stack, NAME, pop_all) }
}

/// The topmost node of what `pop_all` has given, which is null for none. Inlined code may have the
/// mark of an empty stack (the address 1) instead.
#[unsafe(export_name = "quiescence_cds_wfs_first")]
extern "C" fn first(top: *mut StackNode) -> *mut StackNode {
    if top.addr() == 1 { ptr::null_mut() } else { top }
}

#[unsafe(export_name = "quiescence_cds_wfs_next_blocking")]
unsafe extern "C" fn next_blocking(above: NonNull<StackNode>) -> *mut StackNode {
    // SAFETY: liburcu's contract.
    node(unsafe { Stacked::below(above, Patience::Wait) })
}

#[unsafe(export_name = "quiescence_cds_wfs_next_nonblocking")]
unsafe extern "C" fn next_nonblocking(above: NonNull<StackNode>) -> *mut StackNode {
    // SAFETY: liburcu's contract.
    node(unsafe { Stacked::below(above, Patience::Refuse) })
}
