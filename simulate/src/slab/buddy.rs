//! The page allocator of a memory node: blocks are split into halves, and halves are merged.
//!
//! The smallest block here is one of the slab's pages. An allocation splits the smallest free block
//! that is large enough. A freed block merges with its other half, its *buddy*, if that is free,
//! and so on (K. Knowlton, Communications of the ACM 8(10), 1965; `mm/page_alloc.c`). Each step is
//! a list operation under the zone's lock; functions return the number of steps. Pages of more than
//! one frame, like the slab's, do not go through the page allocator's per-CPU lists, so each of
//! them takes the lock.

use super::list::List;

/// Sizes of blocks: from four frames (order 2, a slab page of 16 KiB) to 1,024 (order 10).
const LEVELS: usize = 9;
/// What stands in place of the level of a block that is not free, or of its later frames.
const TAKEN: u8 = u8::MAX;

/// The free blocks of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Buddy {
    /// Of each frame the level of the free block that begins here, or `TAKEN`; and its place on the
    /// level's list.
    frames: Vec<(u8, i64)>,
    /// The free blocks of each level, the one that came last first.
    free: [List; LEVELS],
}

impl Buddy {
    fn push(&mut self, level: usize, frame: u32) {
        self.frames[frame as usize] = (level as u8, self.free[level].push(frame));
    }

    /// Takes a block of the smallest size. Returns it, and the list operations that took: one, and
    /// one more for each time that a larger block was split.
    pub(super) fn take(&mut self) -> (u32, u32) {
        let smallest = self.free.iter().position(|free| !free.is_empty());
        let (level, frame) = match smallest.and_then(|level| Some((level, self.free[level].pop()?)))
        {
            Some(found) => found,
            None => {
                let frame = self.frames.len() as u32;
                self.frames.resize(self.frames.len() + (1 << (LEVELS - 1)), (TAKEN, 0));
                (LEVELS - 1, frame)
            }
        };
        self.frames[frame as usize].0 = TAKEN;
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
            let (free, place) = self.frames[buddy as usize];
            if usize::from(free) != level {
                break;
            }
            self.frames[buddy as usize].0 = TAKEN;
            self.free[level].remove(place);
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
        let mut buddy = Buddy::default();
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
        let (mut buddy, mut taken) = (Buddy::default(), Vec::new());
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
        taken.drain(..).for_each(|frame| _ = buddy.give_back(frame));
        let levels: Vec<u8> = buddy.frames.iter().map(|frame| frame.0).collect();
        let is_whole = |block: &[u8]| {
            usize::from(block[0]) == LEVELS - 1 && block[1..].iter().all(|&level| level == TAKEN)
        };
        assert!(levels.chunks(1 << (LEVELS - 1)).all(is_whole));
    }
}
