//! The threads that hold guards.
//!
//! ```text
//! protect:  s = a slot of the own block that is none (Acquire)                      [HP-2]
//!           p = src (Relaxed)
//!           s = p (Release); light fence; q = src (Acquire)                         [HP-1]
//!           q = p? that is the guard; else p = q, and again
//!           (of compat: the own place, which needs no look; s = none before each new try)
//! end:      s = none (Release), in any thread                                       [HP-2]
//! clone:    count += 1 (Relaxed); end; later count -= 1 (AcqRel): was it 1? free
//! ```

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::fault::Mutant;
use super::world::{BLOCKS, CHANNEL, COUNT, NONE, SOURCE, System, World, slot};
use super::{Op, SLOTS};
use crate::choice::Choice;
use crate::memory::Memory;
use crate::system::Outcome;

/// Where a reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    Begin,
    /// It looks whether its slot of this number is free.
    Look,
    Load,
    /// With what it believes to be published, as it stands in its slot.
    Protect(u64),
    Fence(u64),
    Again(u64),
    /// Of compat: its place is to be none before it has another object.
    Unprotect(u64),
    Use,
    Count,
    Copy,
    End,
    /// With a reference of its own, or a copy in its second slot.
    UseOwn,
    EndOwn,
    Receive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reader {
    pub(super) at: At,
    /// How many of its operations are over.
    pub(super) done: u8,
    /// The slot of its guard: the block, and which of its slots.
    slot: (u8, u8),
    object: u8,
}

impl Reader {
    pub(super) const FIRST: Self = Self { at: At::Begin, done: 0, slot: (0, 0), object: 0 };

    /// The same after an operation. What it held does not matter any more.
    fn finished(self) -> Self {
        Self { done: self.done + 1, ..Self::FIRST }
    }
}

impl<M: Memory> System<M> {
    pub(super) fn read(&self, world: &mut World<M>, me: usize, choice: &mut Choice) -> Outcome {
        let mut reader = world.readers[me];
        let Some(op) = self.scenario.readers[me].get(usize::from(reader.done)) else {
            return Outcome::Blocked;
        };
        let at_slot = slot(reader.slot.0, reader.slot.1);
        let memory = &mut world.memory;
        match reader.at {
            At::Begin if *op == Op::Take => {
                if !memory.may_load(me, CHANNEL, |value| value != NONE) {
                    return Outcome::Blocked;
                }
                memory.skip_to(me, CHANNEL, |value| value != NONE);
                reader.at = At::Receive;
            }
            At::Begin if self.scenario.is_compat() => {
                reader.slot = (me as u8, 0);
                reader.at = At::Protect(memory.load(me, SOURCE, Relaxed, choice) + 1);
            }
            At::Begin => {
                reader.slot = (me as u8, 0);
                let is_blind = self.is(Mutant::BlindOwner);
                reader.at = if is_blind { At::Load } else { At::Look };
                if self.scenario.is_late && reader.done == 0 {
                    memory.update(me, BLOCKS, Release, |old| old | 1 << me);
                }
            }
            At::Receive => {
                // What a channel does is its own: release and acquire.
                let sent = memory.load(me, CHANNEL, Acquire, choice) as u8 - 1;
                let (from, object) = (sent / 16, sent % 16);
                reader.slot = (from / SLOTS as u8, from % SLOTS as u8);
                reader.object = object;
                reader.at = At::Use;
            }
            At::Look => {
                let order = self.unless_one_of(&[Mutant::RelaxedOwner, Mutant::Reuse], Acquire);
                if memory.load(me, at_slot, order, choice) == NONE {
                    reader.at = At::Load;
                } else {
                    reader.slot.1 = (reader.slot.1 + 1) % self.scenario.slots;
                }
            }
            At::Load => {
                // Without a second load the first one is to see the object whole, at least.
                let order = if self.is(Mutant::NoRecheck) { Acquire } else { Relaxed };
                reader.at = At::Protect(memory.load(me, SOURCE, order, choice) + 1);
            }
            At::Protect(object) => {
                let order = self.unless_one_of(&[Mutant::RelaxedProtect, Mutant::Reuse], Release);
                memory.store(me, at_slot, object, order);
                reader.at = At::Fence(object);
            }
            At::Fence(object) => {
                if self.scenario.portable && !self.is(Mutant::NoReaderFence) {
                    memory.fence(me);
                }
                reader.object = object as u8 - 1;
                let has_recheck = !self.is(Mutant::NoRecheck);
                reader.at = if has_recheck { At::Again(object) } else { self.guarded(*op) };
            }
            At::Again(object) => {
                let found = memory.load(me, SOURCE, Acquire, choice) + 1;
                reader.at = match found == object {
                    true => self.guarded(*op),
                    false if self.scenario.is_compat() => {
                        reader.object = 0;
                        At::Unprotect(found)
                    }
                    false => At::Protect(found),
                };
            }
            At::Unprotect(found) => {
                let order = self.unless(Mutant::RelaxedRelease, Release);
                memory.store(me, at_slot, NONE, order);
                reader.at = At::Protect(found);
            }
            At::Use => {
                if let Some(what) = world.access(me, reader.object) {
                    return Outcome::Violation(what);
                }
                if *op == Op::Give {
                    let slot = reader.slot.0 * SLOTS as u8 + reader.slot.1;
                    let guard = u64::from(slot * 16 + reader.object) + 1;
                    world.memory.store(me, CHANNEL, guard, Release);
                    reader = reader.finished();
                } else {
                    reader.at = At::End;
                }
            }
            At::Count => {
                if let Some(what) = world.access(me, reader.object) {
                    return Outcome::Violation(what);
                }
                if reader.object == 0 {
                    world.memory.update(me, COUNT, Relaxed, |old| old + 1);
                }
                reader.at = if self.is(Mutant::LateCount) { At::UseOwn } else { At::End };
            }
            At::Copy => {
                let second = slot(reader.slot.0, 1 - reader.slot.1);
                memory.store(me, second, u64::from(reader.object) + 1, Release);
                reader.at = At::End;
            }
            At::End => {
                let order = self.unless_one_of(&[Mutant::RelaxedRelease, Mutant::Release], Release);
                memory.store(me, at_slot, NONE, order);
                match op {
                    Op::Clone if self.is(Mutant::LateCount) => reader.at = At::Count,
                    Op::Clone => reader.at = At::UseOwn,
                    _ => reader = reader.finished(),
                }
            }
            At::UseOwn => {
                if let Some(what) = world.access(me, reader.object) {
                    return Outcome::Violation(what);
                }
                reader.at = At::EndOwn;
            }
            At::EndOwn if self.is(Mutant::CopiedProtection) => {
                let second = slot(reader.slot.0, 1 - reader.slot.1);
                memory.store(me, second, NONE, Release);
                reader = reader.finished();
            }
            At::EndOwn => {
                // Others than the first object are in the place to the end.
                if reader.object == 0
                    && let Some(what) = self.put(world, me, 0)
                {
                    return Outcome::Violation(what);
                }
                reader = reader.finished();
            }
        }
        world.readers[me] = reader;
        Outcome::Moved
    }

    /// Where a reader stands that has its guard.
    fn guarded(&self, op: Op) -> At {
        match op {
            Op::Clone if self.is(Mutant::CopiedProtection) => At::Copy,
            Op::Clone if self.is(Mutant::LateCount) => At::End,
            Op::Clone => At::Count,
            _ => At::Use,
        }
    }
}
