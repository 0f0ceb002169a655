//! Look-ups.
//!
//! ```text
//! search:   the tag word (Acquire)
//!           of each slot whose tag is the key's: key and value (boxed: the pointer, Acquire).
//!              Is it the key? found                                               [HM-1]
//!           is there no node, and has it not moved? absent
//! further:  o = the overflow word (Acquire)                                        [HM-2]
//!           the tag word (Acquire), without the lock bit
//!           is there a node, but o is a cookie, or the overflow word not o? again
//!           the slots, as above
//!           has it moved? the same in the bucket of the next table                 [HM-3]
//!           is there no node? absent
//!           the tag word of node o (Acquire), its slots the same way               [HM-1]
//!           is the overflow word not o? again; else absent
//! found:    the reference, for as long as the section
//! ```

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::Key;
use super::fault::Mutant;
use super::updater::Slot;
use super::world::{
    Area, LOCK, MOVED, OVER, OVERFLOW, System, TAG_WORD, World, byte, key_of, value_of,
};
use crate::choice::Choice;
use crate::memory::Memory;
use crate::system::Outcome;

/// What a reader knows of the bucket: the node, once it has looked for one.
type Seen = Option<u8>;

/// Where a reader stands; with the tag word that it goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    Outside,
    Word,
    Slots(Slot, u64, Seen),
    Further,
    /// With the overflow word.
    WordAfter(u64),
    Still(u64, u8),
    NodeWord(u8),
    StillAgain(u8),
    ChildWord,
    /// With a reference to what it found.
    Found(Slot, u8),
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reader {
    at: At,
    /// How many keys it has looked up.
    done: u8,
    key: Option<Key>,
    /// What it may find, as a set of values.
    pub(super) may_be: u16,
}

impl Reader {
    pub(super) const FIRST: Self = Self { at: At::Outside, done: 0, key: None, may_be: 0 };

    pub(super) fn is_over(&self, keys: &[Key]) -> bool {
        self.at == At::Outside && usize::from(self.done) == keys.len()
    }

    pub(super) fn is_inside(&self) -> bool {
        self.at != At::Outside
    }

    pub(super) fn looks_up(&self, key: Key) -> bool {
        self.key == Some(key)
    }
}

impl<M: Memory> System<M> {
    pub(super) fn read(
        &self,
        world: &mut World<M>,
        me: usize,
        reader: &mut Reader,
        keys: &[Key],
        choice: &mut Choice,
    ) -> Outcome {
        let Some(&key) = keys.get(usize::from(reader.done)) else { return Outcome::Blocked };
        let is_timed = self.scenario.is_timed;
        let tag_order = self.unless(Mutant::RelaxedTagLoad, Acquire);
        let memory = &mut world.memory;
        reader.at = match reader.at {
            At::Outside => {
                reader.key = Some(key);
                reader.may_be = world.begin_look(me, key, is_timed);
                At::Word
            }
            At::Word => {
                let word = memory.load(me, TAG_WORD, tag_order, choice) & !LOCK;
                self.next_slot(key, Slot { area: Area::Head, number: 0 }, word, None)
            }
            At::Further => {
                let order = self.unless(Mutant::RelaxedOverflowLoad, Acquire);
                At::WordAfter(memory.load(me, OVERFLOW, order, choice))
            }
            At::WordAfter(overflow) => {
                let word = memory.load(me, TAG_WORD, tag_order, choice) & !LOCK;
                let is_node = overflow & 1 == 0;
                match word & (OVER | MOVED) {
                    OVER if is_node => At::Still(word, (overflow / 2 - 1) as u8),
                    OVER if self.is(Mutant::CookieIsAbsence) => At::Leave,
                    OVER => At::Further,
                    _ => self.next_slot(key, Slot { area: Area::Head, number: 0 }, word, None),
                }
            }
            At::Still(word, node) => {
                if self.is_other(memory, me, node, Mutant::NoFirstRecheck, choice) {
                    At::Further
                } else {
                    self.next_slot(key, Slot { area: Area::Head, number: 0 }, word, Some(node))
                }
            }
            At::Slots(slot, word, seen) => {
                let order = if self.is_boxed() { Acquire } else { Relaxed };
                let found = (memory.load(me, slot.location(), order, choice) >> slot.shift()) as u8;
                if slot.area == Area::Head && !self.is_boxed() {
                    memory.read_object(me, slot.object());
                }
                if key_of(found) == key as u8 + 1 {
                    return self.ends(world, me, reader, key, Some((slot, found)));
                }
                let next = Slot { number: slot.number + 1, ..slot };
                self.next_slot(key, next, word, seen)
            }
            At::ChildWord => {
                let word = memory.load(me, Area::Child.tag_word(), Acquire, choice) & !LOCK;
                self.next_slot(key, Slot { area: Area::Child, number: 0 }, word, None)
            }
            At::NodeWord(node) => {
                let area = Area::Node(node);
                let word = memory.load(me, area.tag_word(), Acquire, choice);
                self.next_slot(key, Slot { area, number: 0 }, word, Some(node))
            }
            At::StillAgain(node) => {
                match self.is_other(memory, me, node, Mutant::NoSecondRecheck, choice) {
                    true => At::Further,
                    false => At::Leave,
                }
            }
            At::Found(slot, found) => {
                let now = (memory.load(me, slot.location(), Relaxed, choice) >> slot.shift()) as u8;
                if slot.area == Area::Head && !self.is_boxed() {
                    memory.read_object(me, slot.object());
                    if now != found {
                        let what = format!("a reference to {key:?} has another entry, {now:#x}");
                        return Outcome::Violation(what);
                    }
                }
                *reader = Reader { done: reader.done + 1, ..Reader::FIRST };
                return Outcome::Moved;
            }
            At::Leave => return self.ends(world, me, reader, key, None),
        };
        Outcome::Moved
    }

    /// Whether the overflow word is not this node.
    fn is_other(
        &self,
        memory: &mut M,
        me: usize,
        node: u8,
        mutant: Mutant,
        choice: &mut Choice,
    ) -> bool {
        // Acquire is not needed: it is compared only.
        let is_other = memory.load(me, OVERFLOW, Relaxed, choice) != 2 * (u64::from(node) + 1);
        is_other && !self.is(mutant) && !self.is(Mutant::NoRecheck)
    }

    /// The first slot from this one on that may have the key; or what follows the last.
    fn next_slot(&self, key: Key, from: Slot, word: u64, seen: Seen) -> At {
        let number = (from.number..2).find(|number| byte(word, *number) == self.tag(key));
        match (number, from.area, seen) {
            (Some(number), area, _) => At::Slots(Slot { area, number }, word, seen),
            (None, Area::Head, _) if word & MOVED != 0 => At::ChildWord,
            (None, Area::Head, Some(node)) => At::NodeWord(node),
            (None, Area::Head, None) if word & OVER != 0 => At::Further,
            (None, Area::Head | Area::Child, _) => At::Leave,
            (None, Area::Node(node), _) => At::StillAgain(node),
        }
    }

    /// The look-up is over; its reference lasts.
    fn ends(
        &self,
        world: &mut World<M>,
        me: usize,
        reader: &mut Reader,
        key: Key,
        found: Option<(Slot, u8)>,
    ) -> Outcome {
        let value = found.map_or(0, |(_, entry)| value_of(entry));
        let result = (key, value, reader.may_be);
        if let Some(what) = world.end_look(me, result, self.scenario.is_timed) {
            return Outcome::Violation(what);
        }
        match found {
            Some((slot, entry)) => {
                (reader.at, reader.key, reader.may_be) = (At::Found(slot, entry), None, 0);
            }
            None => *reader = Reader { done: reader.done + 1, ..Reader::FIRST },
        }
        Outcome::Moved
    }
}
