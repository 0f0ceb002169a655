//! Blocks with an age, which stand for memory that is freed too early.
//!
//! The idea is rcutorture's (`kernel/rcu/rcutorture.c`). A published block has age 0. Taking it out
//! of its place makes that 1, and every grace period after that adds 1. A reader may see 0 or 1; if
//! it sees 2, a grace period has ended that should have waited for it, and in a real program the
//! block might have been freed under its eyes. Here it is not: blocks are atomics that live as long
//! as the run, so a fault of the library is a number that is counted and never undefined behaviour.
//! After ten grace periods the block is used again.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::kinds::{Named, Way};
use super::random::scramble;

/// Grace periods that a block goes through before it is used again.
pub(crate) const PIPE_LEN: usize = 10;

/// Blocks of an arena: what ten milliseconds of callbacks hold, and more.
const BLOCKS: u32 = 4096;

/// Words of payload in a block.
const WORDS: usize = 6;

/// A block. See the module.
#[derive(Debug, Default)]
pub(crate) struct Block {
    age: AtomicU32,
    /// How it was taken out, by its number.
    way: AtomicU8,
    /// The [`BlockRef`] made last was never published: its drop means nothing.
    unpublished: AtomicBool,
    /// Which use of the block this is; 0 while it is free.
    serial: AtomicU64,
    /// Follows from the serial; zeros while the block is free.
    payload: [AtomicU64; WORDS],
}

impl Block {
    pub(crate) fn age(&self) -> u32 {
        self.age.load(Relaxed)
    }

    pub(crate) fn way(&self) -> Way {
        Way::ALL[usize::from(self.way.load(Relaxed))]
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial.load(Relaxed)
    }

    /// Whether the payload is the one that was written before `serial` was published.
    pub(crate) fn is_whole(&self, serial: u64) -> bool {
        serial != 0
            && self.serial() == serial
            && words(serial).zip(&self.payload).all(|(word, found)| word == found.load(Relaxed))
    }

    fn write(&self, serial: u64) {
        self.serial.store(serial, Relaxed);
        for (word, place) in words(serial).zip(&self.payload) {
            place.store(if serial == 0 { 0 } else { word }, Relaxed);
        }
    }
}

fn words(serial: u64) -> impl Iterator<Item = u64> {
    (1..=WORDS as u64).map(move |i| scramble(serial.wrapping_mul(31).wrapping_add(i)))
}

/// All blocks of an arena, and which of them are free or on their way to be.
pub(crate) struct Pool {
    blocks: Box<[Block]>,
    free: Mutex<VecDeque<u32>>,
    /// Blocks that are past their first grace period.
    ageing: Mutex<Vec<u32>>,
    serial: AtomicU64,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self {
            blocks: (0..BLOCKS).map(|_| Block::default()).collect(),
            free: Mutex::new((0..BLOCKS).collect()),
            ageing: Mutex::default(),
            serial: AtomicU64::new(1),
        }
    }

    /// A block, unless a fault has made an index of something else.
    pub(crate) fn get(&self, index: u32) -> Option<&Block> {
        self.blocks.get(index as usize)
    }

    fn block(&self, index: u32) -> &Block {
        &self.blocks[index as usize]
    }

    /// Takes a free block, the one that has been free for longest.
    pub(crate) fn take(&self) -> Option<u32> {
        lock(&self.free).pop_front()
    }

    /// Makes a block ready to be published.
    pub(crate) fn prepare(&self, index: u32) {
        let block = self.block(index);
        block.age.store(0, Relaxed);
        block.unpublished.store(false, Relaxed);
        block.write(self.serial.fetch_add(1, Relaxed));
    }

    /// The block has been taken out of its place: no new reader finds it.
    pub(crate) fn removed(&self, index: u32, way: Way) {
        let block = self.block(index);
        block.way.store(way as u8, Relaxed);
        block.age.store(1, Relaxed);
    }

    /// A full grace period has gone by since these blocks were removed or last passed here.
    pub(crate) fn aged(&self, indexes: impl IntoIterator<Item = u32>) {
        let mut young = Vec::new();
        let mut old = Vec::new();
        for index in indexes {
            let age = self.block(index).age.fetch_add(1, Relaxed) + 1;
            if age < PIPE_LEN as u32 { young.push(index) } else { old.push(index) }
        }
        lock(&self.ageing).append(&mut young);
        for &index in &old {
            self.block(index).write(0);
        }
        lock(&self.free).extend(old);
    }

    /// The blocks that the next full grace period makes older; give them to [`aged`](Self::aged).
    pub(crate) fn take_ageing(&self) -> Vec<u32> {
        mem::take(&mut lock(&self.ageing))
    }

    /// How many blocks are neither free nor ageing.
    pub(crate) fn in_use(&self) -> usize {
        self.blocks.len() - lock(&self.free).len() - lock(&self.ageing).len()
    }
}

/// Locks, whichever thread panicked before: the lists are whole between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an `Rcu<T>` or `retire` holds for a block: its drop is the end of a grace period.
pub(crate) struct BlockRef {
    pool: Arc<Pool>,
    index: u32,
    /// The end of the grace period has been noted already.
    noted: AtomicBool,
}

/// Its block is its pool's.
impl quiescence::Weigh for BlockRef {
    const OWNS: bool = false;
}

impl BlockRef {
    /// For a block that is prepared.
    pub(crate) fn new(pool: &Arc<Pool>, index: u32) -> Self {
        Self { pool: Arc::clone(pool), index, noted: AtomicBool::new(false) }
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// The block will be published by another `BlockRef` than the one made for it last.
    pub(crate) fn unpublish(pool: &Pool, index: u32) {
        pool.block(index).unpublished.store(true, Relaxed);
    }

    /// A grace period has gone by since no thread could find this any more.
    pub(crate) fn note_grace_period(&self) {
        if self.noted.swap(true, Relaxed) {
            return;
        }
        let block = self.pool.block(self.index);
        if block.unpublished.swap(false, Relaxed) {
            return;
        }
        // The thread that replaces a value by `store` or `update` never sees the old one, so no
        // thread has noted its removal.
        if block.age() == 0 {
            self.pool.removed(self.index, Way::Store);
        }
        self.pool.aged([self.index]);
    }
}

impl Drop for BlockRef {
    fn drop(&mut self) {
        self.note_grace_period();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_goes_through_the_pipe_and_comes_back() {
        let pool = Pool::new();
        let index = pool.take().expect("all are free");
        pool.prepare(index);
        let block = pool.get(index).expect("taken above");
        let serial = block.serial();
        assert!(block.is_whole(serial));
        pool.removed(index, Way::Call);
        assert_eq!((block.age(), block.way()), (1, Way::Call));
        pool.aged([index]);
        for age in 2..PIPE_LEN as u32 {
            assert_eq!(block.age(), age);
            assert!(block.is_whole(serial));
            assert_eq!(pool.in_use(), 0);
            pool.aged(pool.take_ageing());
        }
        assert!(pool.take_ageing().is_empty());
        assert!(!block.is_whole(serial));
        assert_eq!(lock(&pool.free).back(), Some(&index));
    }

    #[test]
    fn a_reference_notes_one_grace_period_and_an_unpublished_one_none() {
        let pool = Arc::new(Pool::new());
        let index = pool.take().expect("all are free");
        pool.prepare(index);
        let first = BlockRef::new(&pool, index);
        BlockRef::unpublish(&pool, index);
        let second = BlockRef::new(&pool, index);
        drop(first);
        assert_eq!(pool.get(index).map(Block::age), Some(0));
        second.note_grace_period();
        drop(second);
        assert_eq!(pool.get(index).map(Block::age), Some(2));
        assert_eq!(pool.take_ageing(), [index]);
    }
}
