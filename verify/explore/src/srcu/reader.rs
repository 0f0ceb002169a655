//! The reader, step by step.
//!
//! ```text
//! lock:    b = srcu_idx & 1 (Relaxed)
//!          (may stall, or migrate, for as long as it likes)
//!          lock[b][this cpu] += 1 (Relaxed, own cpu's)
//!          fence B
//! read:    p = ptr (Acquire); the object p must be initialised and not freed
//! unlock:  fence C
//!          unlock[b][this cpu] += 1 (Relaxed)
//! ```

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::fault::Mutant;
use super::scenario::Task;
use super::world::{INDEX, Turn, World, lock_count, unlock_count};
use crate::memory::{Location, Lock, Memory};
use crate::system::Outcome;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ReaderAt {
    LookUp,
    Count,
    FenceB,
    LoadPointer,
    ReadObject,
    FenceC,
    Uncount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reader {
    sections: u8,
    migrations: u8,
    cpu: u8,
    at: ReaderAt,
    index: u8,
    object: u8,
}

impl Reader {
    pub(super) fn new(task: &Task) -> Self {
        let Task { sections, migrations, cpu } = *task;
        Self { sections, migrations, cpu, at: ReaderAt::LookUp, index: 0, object: 0 }
    }

    pub(super) fn is_done(&self) -> bool {
        self.sections == 0
    }
}

impl<M: Memory> World<M> {
    fn increment(&mut self, cpu: u8, at: Location, turn: &mut Turn<'_>) {
        // Atomic against interrupts of its own CPU, but no locked instruction.
        let me = usize::from(cpu);
        let value = self.memory.load(me, at, Relaxed, turn.choice);
        self.memory.store(me, at, value + 1, Relaxed);
    }

    pub(super) fn read(&mut self, number: usize, turn: &mut Turn<'_>) -> Outcome {
        let Reader { sections, cpu, at, index, object, .. } = self.readers[number];
        if sections == 0 {
            return Outcome::Blocked;
        }
        let me = usize::from(cpu);
        let next = match at {
            ReaderAt::LookUp => {
                let index = (self.memory.load(me, INDEX, Relaxed, turn.choice) & 1) as u8;
                turn.tell(|| format!("reader {number} on cpu {cpu}: looks up index {index}"));
                self.readers[number].index = index;
                ReaderAt::Count
            }
            ReaderAt::Count => {
                turn.tell(|| format!("reader {number}: lock[{index}][{cpu}] += 1"));
                self.increment(cpu, lock_count(index, cpu), turn);
                ReaderAt::FenceB
            }
            ReaderAt::FenceB => {
                turn.tell(|| format!("reader {number}: fence B"));
                if !turn.is(Mutant::NoFenceB) {
                    self.memory.fence(me);
                }
                ReaderAt::LoadPointer
            }
            ReaderAt::LoadPointer => {
                let object = self.memory.load(me, Location::Pointer, Acquire, turn.choice) as u8;
                turn.tell(|| format!("reader {number}: finds object {object}"));
                self.readers[number].object = object;
                ReaderAt::ReadObject
            }
            ReaderAt::ReadObject => {
                turn.tell(|| format!("reader {number}: reads object {object}"));
                if self.freed[usize::from(object)] {
                    return Outcome::Violation(format!(
                        "object {object} is read after it was freed"
                    ));
                }
                if !self.memory.read_object(me, object) {
                    return Outcome::Violation(format!("object {object} is read too early"));
                }
                ReaderAt::FenceC
            }
            ReaderAt::FenceC => {
                turn.tell(|| format!("reader {number}: fence C"));
                if !turn.is(Mutant::NoFenceC) {
                    self.memory.fence(me);
                }
                ReaderAt::Uncount
            }
            ReaderAt::Uncount => {
                let index = if turn.is(Mutant::UnlockOtherIndex) { 1 ^ index } else { index };
                turn.tell(|| format!("reader {number}: unlock[{index}][{cpu}] += 1"));
                self.increment(cpu, unlock_count(index, cpu), turn);
                let reader = &mut self.readers[number];
                reader.sections -= 1;
                (reader.index, reader.object) = (0, 0);
                ReaderAt::LookUp
            }
        };
        self.readers[number].at = next;
        Outcome::Moved
    }

    /// A context switch here, and one there: full barriers, and the run queue's lock in between.
    pub(super) fn migrate(&mut self, number: usize, turn: &mut Turn<'_>) -> Outcome {
        let Reader { sections, migrations, cpu, .. } = self.readers[number];
        if sections == 0 || migrations == 0 {
            return Outcome::Blocked;
        }
        let (from, to) = (usize::from(cpu), usize::from(1 ^ cpu));
        turn.tell(|| format!("reader {number}: migrates to cpu {to}"));
        self.memory.fence(from);
        self.memory.unlock(from, Lock::Registry);
        self.memory.lock(to, Lock::Registry);
        self.memory.fence(to);
        let reader = &mut self.readers[number];
        (reader.cpu, reader.migrations) = (to as u8, migrations - 1);
        Outcome::Moved
    }
}
