//! The page allocator of a memory node: blocks that are split and merged by halves.
//!
//! The smallest block here is a page of the slab's. One that is wanted is split from the smallest
//! free block that there is; one that comes back merges with its other half, its *buddy*, if that
//! is free, and so on (K. Knowlton, Communications of the ACM 8(10), 1965; `mm/page_alloc.c`). Each
//! step is a list operation under the zone's lock: how many there were is what is returned. Pages
//! of more than one frame, as the slab's are, do not go through the page allocator's lists of each
//! CPU: every one of them takes the lock.

/// Sizes of blocks: from four frames (order 2, a slab page of 16 KiB) to 1,024 (order 10).
const LEVELS: usize = 9;
const NONE: u32 = u32::MAX;
/// What stands in place of the level of a block that is not free, or of its later frames.
const TAKEN: u8 = u8::MAX;

#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The level of the free block that begins here, or `TAKEN`.
    level: u8,
    next: u32,
    previous: u32,
}

/// The free blocks of a node.
#[derive(Clone, Debug)]
pub(super) struct Buddy {
    frames: Vec<Frame>,
    /// Of each level the free block that came last.
    first: [u32; LEVELS],
}

impl Buddy {
    pub(super) const fn new() -> Self {
        Self { frames: Vec::new(), first: [NONE; LEVELS] }
    }

    fn push(&mut self, level: usize, frame: u32) {
        let first = core::mem::replace(&mut self.first[level], frame);
        self.frames[frame as usize] = Frame { level: level as u8, next: first, previous: NONE };
        if first != NONE {
            self.frames[first as usize].previous = frame;
        }
    }

    fn remove(&mut self, level: usize, frame: u32) {
        let Frame { next, previous, .. } = self.frames[frame as usize];
        match previous {
            NONE => self.first[level] = next,
            _ => self.frames[previous as usize].next = next,
        }
        if next != NONE {
            self.frames[next as usize].previous = previous;
        }
        self.frames[frame as usize].level = TAKEN;
    }

    /// Takes a block of the smallest size. Returns it, and the list operations that took: one, and
    /// one more for each time that a larger block was split.
    pub(super) fn take(&mut self) -> (u32, u32) {
        let level = self.first.iter().position(|&first| first != NONE).unwrap_or_else(|| {
            let frame = self.frames.len() as u32;
            let whole = Frame { level: TAKEN, next: NONE, previous: NONE };
            self.frames.resize(self.frames.len() + (1 << (LEVELS - 1)), whole);
            self.push(LEVELS - 1, frame);
            LEVELS - 1
        });
        let frame = self.first[level];
        self.remove(level, frame);
        for half in (0..level).rev() {
            self.push(half, frame + (1 << half));
        }
        (frame, 1 + level as u32)
    }

    /// Gives a block of the smallest size back. Returns the list operations that took: one, and
    /// one more for each time that it merged.
    pub(super) fn give_back(&mut self, frame: u32) -> u32 {
        let (mut frame, mut level) = (frame, 0);
        while level < LEVELS - 1 {
            let buddy = frame ^ (1 << level);
            if usize::from(self.frames[buddy as usize].level) != level {
                break;
            }
            self.remove(level, buddy);
            frame = frame.min(buddy);
            level += 1;
        }
        self.push(level, frame);
        1 + level as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_block_is_split_from_the_smallest_and_merges_with_its_other_half() {
        let mut buddy = Buddy::new();
        let taken: Vec<_> = (0..5).map(|_| buddy.take()).collect();
        assert_eq!(taken, [(0, 9), (1, 1), (2, 2), (3, 1), (4, 3)]);
        assert_eq!(buddy.give_back(0), 1, "its other half is in use");
        assert_eq!(buddy.give_back(2), 1);
        assert_eq!(buddy.give_back(3), 2, "it merges once: 0 is free, but not 1");
        assert_eq!(buddy.give_back(1), 3);
        assert_eq!(buddy.give_back(4), 9, "all of it is one block again");
        assert_eq!(buddy.take(), (0, 9));
    }

    #[test]
    fn blocks_are_taken_once_and_all_come_together_again() {
        let mut random = Random::new(1);
        let (mut buddy, mut taken) = (Buddy::new(), Vec::new());
        for step in 0..20_000 {
            let growth = if step % 4_000 < 2_000 { 700_000 } else { 300_000 };
            if taken.is_empty() || random.chance_ppm(growth) {
                let (frame, _) = buddy.take();
                assert!(!taken.contains(&frame), "{frame} was taken twice");
                taken.push(frame);
            } else {
                let which = random.below(taken.len() as u64) as usize;
                buddy.give_back(taken.swap_remove(which));
            }
        }
        taken.drain(..).for_each(|frame| {
            buddy.give_back(frame);
        });
        let levels: Vec<u8> = buddy.frames.iter().map(|frame| frame.level).collect();
        let is_whole = |block: &[u8]| {
            usize::from(block[0]) == LEVELS - 1 && block[1..].iter().all(|&level| level == TAKEN)
        };
        assert!(levels.chunks(1 << (LEVELS - 1)).all(is_whole));
    }
}
