//! The calling thread's slots for borrowed references.

use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use super::bias::Bias;
use super::borrows::{Borrow, Borrowed};
use super::slots::{Block, Blocks, Place};
use super::thread::{own_block_in, with_transient};
use crate::os::fence;
use crate::os::on_drop::OnDrop;
use crate::os::sync::{AtomicPtr, const_unless_loom};

const_unless_loom! {
    static BLOCKS: Blocks<Borrow> = Blocks::new();
    /// No model uses it.
    static BIAS: Bias = Bias::new();
}

thread_local! {
    /// The thread's block, if it has one. Without a destructor, as that of its hazard slots.
    static BLOCK: Cell<Option<&'static Block<Borrow>>> = const { Cell::new(None) };
    /// Gives the block back when the thread ends.
    static OWNER: OnDrop<fn()> = const {
        OnDrop(|| BLOCK.take().into_iter().for_each(|block| block.give_back(&BLOCKS)))
    };
}

/// Borrows what is in `cell`, in a slot of the calling thread. `None` if all eight are in use, or
/// the thread is ending: see [`borrow_transiently`].
#[inline(always)]
pub(crate) fn borrow<T>(cell: &AtomicPtr<T>, tag: usize) -> Option<Borrowed<'static, T>> {
    let block = match BLOCK.get() {
        Some(block) => block,
        None => first_block()?,
    };
    let slot = block.slots().find(|slot| slot.is_free())?;
    Some(slot.borrow(cell, tag, reader_fence))
}

#[cold]
#[inline(never)]
fn first_block() -> Option<&'static Block<Borrow>> {
    own_block_in(&BLOCK, &BLOCKS, &OWNER)
}

/// Calls `f` with what is in `cell`, borrowed in a slot that is free again when `f` returns: so `f`
/// gives the borrow back. For threads whose slots are all in use, or that are ending.
#[cold]
#[inline(never)]
pub(crate) fn borrow_transiently<T, R>(
    cell: &AtomicPtr<T>,
    tag: usize,
    f: impl FnOnce(Borrowed<'static, T>) -> R,
) -> R {
    with_transient(first_block(), &BLOCKS, |slot| f(slot.borrow(cell, tag, reader_fence)))
}

/// A reader's fence between its stores and its second load. `uses` is how often its slot was used.
#[inline(always)]
fn reader_fence(uses: u64) {
    compiler_fence(SeqCst);
    BIAS.reader(uses, || BLOCKS.uses());
}

/// The fence of an updater that has taken a reference out of a cell just now.
pub(crate) fn updater_fence() {
    BIAS.updater(|| fence::heavy(std::iter::empty()), || BLOCKS.uses());
}

/// Pays all borrows of `old`. As [`Blocks::pay_all`].
pub(crate) fn pay_all<T>(cell: &AtomicPtr<T>, old: *mut T, tag: usize, add: impl FnMut()) -> bool {
    BLOCKS.pay_all(cell, old, tag, add)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cell::ExactCell;
    use crate::common::threads::beside;
    use crate::hazptr::bias::{BIASED, FAIR};
    use crate::os::fence::Fences;

    /// Bursts of loads and of stores, so that the phases change beside loads and stores of others.
    #[test]
    fn counts_are_exact_while_phases_change() {
        let cell = ExactCell::new(Arc::new(0_u64));
        let (mut biased, mut fair) = (0, 0);
        let loads = |_| {
            || {
                let seen = cell.load();
                let again = cell.load_full();
                assert!(**seen <= *again, "an older value after {seen:?}");
            }
        };
        beside(2, loads, || {
            for round in 0..100_u64 {
                for _ in 0..16_384 {
                    assert_eq!(**cell.load(), round * 64);
                }
                biased += u64::from(BIAS.phase() == BIASED);
                for store in 1..=64 {
                    drop(cell.swap(Arc::new(round * 64 + store)));
                }
                fair += u64::from(BIAS.phase() == FAIR);
            }
        });
        assert_eq!(Arc::try_unwrap(cell.into_inner()), Ok(100 * 64));
        assert!(fair > 0, "64 stores in a row, and never fair");
        assert!(biased > 0 || fence::chosen() == Fences::Portable);
    }
}
