//! Look-ups.
//!
//! ```text
//! get:      a section begins
//! word:     m = the tag word (Acquire), without the lock bit
//!           of each slot whose tag is the key's: key and value (boxed: the pointer, Acquire).
//!              Is it the key? found                                               [HM-1]
//!           has the bucket moved? the same in the bucket of the next table        [HM-3]
//!           is there no node? absent
//!           o = the overflow word (Acquire); a cookie? to `word`                  [HM-2]
//!           n = the node's tag word (Acquire), its slots the same way
//!           the tag word again, the overflow word again: not m and o? to `word`; absent
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

/// Where a reader stands; with the tag word that it goes by, and that of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    Outside,
    Word,
    Slots(Slot, u64, u64),
    Overflow(u64),
    NodeWord(u64, u8),
    WordAgain(u64, u8),
    OverflowAgain(u8),
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
                self.next_slot(key, Slot { area: Area::Head, number: 0 }, word, word)
            }
            At::Slots(slot, word, head) => {
                let order = if self.is_boxed() { Acquire } else { Relaxed };
                let found = (memory.load(me, slot.location(), order, choice) >> slot.shift()) as u8;
                if slot.area == Area::Head && !self.is_boxed() {
                    memory.read_object(me, slot.object());
                }
                if key_of(found) == key as u8 + 1 {
                    return self.ends(world, me, reader, key, Some((slot, found)));
                }
                let next = Slot { number: slot.number + 1, ..slot };
                self.next_slot(key, next, word, head)
            }
            At::ChildWord => {
                let word = memory.load(me, Area::Child.tag_word(), Acquire, choice) & !LOCK;
                self.next_slot(key, Slot { area: Area::Child, number: 0 }, word, 0)
            }
            At::Overflow(head) => {
                let order = self.unless(Mutant::RelaxedOverflowLoad, Acquire);
                match memory.load(me, OVERFLOW, order, choice) {
                    cookie if cookie & 1 == 1 => {
                        if self.is(Mutant::CookieIsAbsence) {
                            At::Leave
                        } else {
                            At::Word
                        }
                    }
                    node => At::NodeWord(head, (node / 2 - 1) as u8),
                }
            }
            At::NodeWord(head, node) => {
                let area = Area::Node(node);
                let word = memory.load(me, area.tag_word(), Acquire, choice);
                self.next_slot(key, Slot { area, number: 0 }, word, head)
            }
            At::WordAgain(head, node) => {
                let is_other = memory.load(me, TAG_WORD, tag_order, choice) & !LOCK != head
                    && !self.is(Mutant::NoTagRecheck)
                    && !self.is(Mutant::NoRecheck);
                if is_other { At::Word } else { At::OverflowAgain(node) }
            }
            At::OverflowAgain(node) => {
                let again = memory.load(me, OVERFLOW, Acquire, choice);
                let is_other = again != 2 * (u64::from(node) + 1)
                    && !self.is(Mutant::NoOverflowRecheck)
                    && !self.is(Mutant::NoRecheck);
                if is_other { At::Word } else { At::Leave }
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

    /// The first slot from this one on that may have the key; or what follows the last.
    fn next_slot(&self, key: Key, from: Slot, word: u64, head: u64) -> At {
        let number = (from.number..2).find(|number| byte(word, *number) == self.tag(key));
        match (number, from.area) {
            (Some(number), area) => At::Slots(Slot { area, number }, word, head),
            (None, Area::Head) if word & MOVED != 0 => At::ChildWord,
            (None, Area::Head) if word & OVER != 0 => At::Overflow(word),
            (None, Area::Head | Area::Child) => At::Leave,
            (None, Area::Node(node)) => At::WordAgain(head, node),
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
