//! The calling thread's slots.
//!
//! [`protect`] finds its pair of slots through a thread-local without a destructor, which can be
//! used throughout a thread's life. Its fast path makes one check: whether one of the two slots is
//! free. The check also covers a thread without a block, and a process whose readers execute
//! fences: these see a pair that is never free ([`NOT_READY`]).

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;
use std::thread::LocalKey;

use super::slots::{Block, Blocks, Pair, Place, Slot, Wants};
use crate::os::fence::{self, Fences};
use crate::os::on_drop::OnDrop;
use crate::os::sync::{AtomicPtr, array_of, const_unless_loom};

/// The pair of a thread that must take the slow path. No thread writes it, and no scan sees it. No
/// model has one.
const NOT_READY: *const Pair =
    if cfg!(loom) { ptr::null() } else { (&raw const NEVER_FREE).cast() };

const_unless_loom! {
    static NEVER_FREE: Pair = Pair(array_of![Slot::new(ptr::without_provenance_mut(1)); 2]);
    /// Of threads and holders.
    pub(crate) static BLOCKS: Blocks = Blocks::new();
    /// No model uses it: nothing is counted.
    static FENCE: fence::Cell = fence::Cell::new();
}

thread_local! {
    /// The slots to be tried first: of a block, which lives for ever, or [`NOT_READY`].
    static PAIR: Cell<*const Pair> = const { Cell::new(NOT_READY) };
    /// The thread's block, if it has one. Without a destructor, so that it can be used until the
    /// very end.
    static BLOCK: Cell<Option<&'static Block>> = const { Cell::new(None) };
    /// Gives the block back when the thread ends.
    static OWNER: OnDrop<fn()> = const { OnDrop(give_back) };
}

fn give_back() {
    // In this order, also for a signal handler that comes in between: without a block it finds no
    // slot to put into `PAIR` again.
    let block = BLOCK.take();
    compiler_fence(SeqCst);
    PAIR.set(NOT_READY);
    compiler_fence(SeqCst);
    if let Some(block) = block {
        block.give_back(&BLOCKS);
    }
}

/// The thread's block; none when the thread is ending.
fn own_block() -> Option<&'static Block> {
    own_block_in(&BLOCK, &BLOCKS, &OWNER)
}

/// The thread's block of this kind, which it has or gets in `block`; none when it is ending, and
/// `owner` has given the block back.
pub(super) fn own_block_in<S: Place, O>(
    block: &'static LocalKey<Cell<Option<&'static Block<S>>>>,
    blocks: &'static Blocks<S>,
    owner: &'static LocalKey<O>,
) -> Option<&'static Block<S>> {
    if let Some(block) = block.get() {
        return Some(block);
    }
    if owner.try_with(|_| ()).is_err() {
        return None;
    }
    fence::chosen(); // before the first protection, never after
    let own = blocks.adopt(Wants::Half).unwrap_or_else(no_memory);
    block.set(Some(own));
    Some(own)
}

#[cold]
pub(super) fn no_memory<S>() -> &'static Block<S> {
    std::alloc::handle_alloc_error(std::alloc::Layout::new::<Block<S>>())
}

/// The fence of a reader of this process between its store and its load.
#[inline]
pub(crate) fn reader_fence() {
    match fence::chosen() {
        Fences::Membarrier => compiler_fence(SeqCst),
        Fences::Portable => fence::full(),
    }
}

/// A protected object, and the slot that protects it.
pub(crate) struct Protected<T> {
    pub(crate) address: *mut T,
    pub(crate) slot: &'static Slot,
}

/// Protects what `source` leads to in a slot of the calling thread. `None` if all eight are in use,
/// or the thread is ending: see [`with_slot`].
#[inline(always)]
pub(crate) fn protect<T>(source: &AtomicPtr<T>) -> Option<Protected<T>> {
    // SAFETY: of a static, or of a block, which lives for ever.
    let [first, second] = unsafe { &(*PAIR.get()).0 };
    let slot = if first.is_free() {
        first
    } else if second.is_free() {
        second
    } else {
        return protect_slowly(source);
    };
    // Light fences: no other process has a pair of slots in `PAIR`.
    Some(Protected { address: slot.protect(source, &FENCE), slot })
}

#[cold]
#[inline(never)]
fn protect_slowly<T>(source: &AtomicPtr<T>) -> Option<Protected<T>> {
    let slot = free_slot()?;
    Some(Protected { address: slot.protect_with(source, reader_fence), slot })
}

/// A free slot of the thread's own.
fn free_slot() -> Option<&'static Slot> {
    let block = own_block()?;
    let pair = block.pairs.iter().find(|pair| pair.0.iter().any(Slot::is_free))?;
    if fence::chosen() == Fences::Membarrier {
        PAIR.set(pair);
    }
    pair.0.iter().find(|slot| slot.is_free())
}

/// Calls `f` with the address that `source` leads to, which is protected until `f` returns. For
/// threads whose slots are all in use, or that are ending.
#[cold]
#[inline(never)]
pub(crate) fn with_slot<T, R>(source: &AtomicPtr<T>, f: impl FnOnce(*mut T) -> R) -> R {
    with_transient(own_block(), &BLOCKS, |slot| {
        let _end = OnDrop(|| slot.release());
        f(slot.protect_with(source, reader_fence))
    })
}

/// Calls `f` with the transient slot of the thread's `own` block; with that of another block, if
/// there is none, or if the slot is in use: by a call that a signal handler has interrupted, or
/// that has cloned something whose clone loads.
pub(super) fn with_transient<S: Place, R>(
    own: Option<&'static Block<S>>,
    blocks: &'static Blocks<S>,
    f: impl FnOnce(&'static S) -> R,
) -> R {
    if let Some(block) = own.filter(|block| block.transient.is_free()) {
        return f(&block.transient);
    }
    fence::chosen(); // before the first protection, never after
    let block = blocks.adopt(Wants::All).unwrap_or_else(no_memory);
    let _end = OnDrop(|| block.give_back(blocks));
    f(&block.transient)
}

/// A block of slots for a holder, which may go to other threads: its first slot is the holder's,
/// and the others stay free.
pub(crate) fn holder() -> &'static Block {
    holder_if_any().unwrap_or_else(no_memory)
}

/// The same; `None` if there is no memory.
pub(crate) fn holder_if_any() -> Option<&'static Block> {
    fence::chosen(); // before the first protection, never after
    BLOCKS.adopt(Wants::All)
}

/// Whether this address is protected now. As [`scan`].
pub(crate) fn is_protected(address: usize) -> bool {
    let mut is_protected = false;
    BLOCKS.scan(|protected| is_protected |= protected.addr() == address);
    is_protected
}

/// The addresses that are protected now, in ascending order. What a thread protects from now on is
/// not what was unlinked before the last heavy fence [HZ-A].
pub(crate) fn scan() -> Vec<usize> {
    let mut addresses = Vec::new();
    BLOCKS.scan(|address| addresses.push(address.addr()));
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}
