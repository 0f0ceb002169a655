//! Updates, under the bucket's lock.
//!
//! ```text
//! lock:     the tag word, with the lock bit (compare-exchange, Acquire)            [HM-5]
//! attend:   are some stamped? completed (Acquire): is the cookie done? they are free
//!           are some dead, and none stamped? full fence; completed (Relaxed): the cookie of a
//!              full grace period from now on; the dead ones are stamped             [HM-4]
//! end:      has a slot died? the tag word, still locked (exchange, AcqRel); full fence; completed
//!              (Relaxed): a cookie. Are none stamped, or is theirs the same? these are     [HM-4]
//!           the tag word, unlocked (Release)                                         [HM-5]
//! replace,  a free slot: key and value; the tag word, with the tag, the old byte dead, unlocked
//! insert:      (Release)                                                            [HM-1]
//!           none, and the key is not in the head: a free slot of the node, the same way
//!           none there either, or it is: a new node with the old one's entries and this one;
//!              the overflow word (Release); the tag word, with its flag, the old byte dead,
//!              unlocked (Release)                                                   [HM-2]
//! remove:   the byte is dead
//! fold:     the node's entries in free slots; the tag word with their tags, without the node's
//!              flag, still locked (Release); the overflow word: the cookie (Release); unlocked
//! grow:     all entries in the next table; the tag word, moved (Release)            [HM-3]
//! boxed:    insert: the tag word; the pointer (Release); unlocked. replace: the pointer.
//!           remove: the pointer is null (Release); the byte is free
//! ```

use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use super::fault::Mutant;
use super::world::{
    Area, COMPLETED, LOCK, MOVED, NODES, OVER, OVERFLOW, System, TAG_WORD, World, byte, entry,
    with_byte,
};
use super::{DEAD, FREE, Key, Op, STAMPED};
use crate::choice::Choice;
use crate::memory::Memory;
use crate::system::Outcome;

/// A slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    pub(super) area: Area,
    pub(super) number: u8,
}

/// Where an updater stands; with the tag word as it will be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    Lock,
    Attend(u64),
    Fence(u64),
    Cookie(u64),
    Poll(u64),
    Act(u64),
    /// It makes the stores of an update one by one.
    Store,
    /// Slots have died: before the last store they are stamped.
    Exchange(u64),
    LastFence(u64),
    LastCookie(u64),
    Last(u64),
}

/// A store of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Store {
    /// An entry, into a slot.
    Entry(Slot, u8),
    /// The entry of another slot.
    Copy(Slot, Slot),
    /// A tag word.
    Word(Area, u64, bool),
    /// The overflow word.
    Overflow(u64, bool),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Updater {
    pub(super) at: At,
    done: u8,
    stores: Vec<Store>,
    /// Whether a slot of the head has died in this update.
    has_died: bool,
}

impl Updater {
    pub(super) const FIRST: Self =
        Self { at: At::Lock, done: 0, stores: Vec::new(), has_died: false };

    pub(super) fn is_over(&self, ops: &[Op]) -> bool {
        self.at == At::Lock && usize::from(self.done) == ops.len()
    }
}

fn has(word: u64, wanted: u8) -> bool {
    (0..2).any(|slot| byte(word, slot) == wanted)
}

/// The same word, with other bytes in place of these.
fn turn(word: u64, from: u8, to: u8) -> u64 {
    let turned = (0..2).filter(|slot| byte(word, *slot) == from);
    turned.fold(word, |word, slot| with_byte(word, slot, to))
}

fn free_slot(word: u64, area: Area) -> Option<Slot> {
    (0..2).find(|slot| byte(word, *slot) == FREE).map(|number| Slot { area, number })
}

impl<M: Memory> System<M> {
    pub(super) fn update(
        &self,
        world: &mut World<M>,
        me: usize,
        it: usize,
        choice: &mut Choice,
    ) -> Outcome {
        let Updater { at, done, has_died, .. } = world.updaters[it];
        let Some(&op) = self.scenario.updaters[it].get(usize::from(done)) else {
            return Outcome::Blocked;
        };
        let memory = &mut world.memory;
        let area = if world.has_moved { Area::Child } else { Area::Head };
        world.updaters[it].at = match at {
            At::Lock => {
                if memory.newest(area.tag_word()) & LOCK != 0 {
                    return Outcome::Blocked;
                }
                let order = self.unless(Mutant::RelaxedLock, Acquire);
                let word = memory.update(me, area.tag_word(), order, |old, by| old | by, LOCK);
                if self.is_boxed() || area == Area::Child {
                    At::Act(word)
                } else {
                    At::Attend(word)
                }
            }
            At::Attend(word) if self.is(Mutant::NoCookie) => At::Act(turn(word, DEAD, FREE)),
            At::Attend(word) => {
                let is_due = has(word, DEAD) && !has(word, STAMPED);
                match () {
                    () if is_due => At::Fence(word),
                    () if has(word, STAMPED) => At::Poll(word),
                    () => At::Act(word),
                }
            }
            At::Fence(word) => {
                self.cookie_fence(memory, me);
                At::Cookie(word)
            }
            At::Cookie(word) => {
                let cookie = self.cookie(memory, me, choice);
                world.set_cookie(me, cookie);
                At::Act(turn(word, DEAD, STAMPED))
            }
            At::Poll(word) => {
                let order = self.unless(Mutant::RelaxedPoll, Acquire);
                let is_done = memory.load(me, COMPLETED, order, choice) >= world.cookie;
                let word = if is_done { turn(word, STAMPED, FREE) } else { word };
                if is_done && has(word, DEAD) { At::Fence(word) } else { At::Act(word) }
            }
            At::Act(word) => {
                let stores = self.act(world, op, area, word);
                let Some((stores, has_died)) = stores else { return Outcome::Blocked };
                world.updaters[it].stores = stores;
                world.updaters[it].has_died = has_died && !self.is(Mutant::NoCookie);
                At::Store
            }
            At::Store => {
                let next = world.updaters[it].stores.remove(0);
                let is_last = world.updaters[it].stores.is_empty();
                if let (true, Store::Word(Area::Head, word, _)) = (is_last && has_died, next) {
                    let is_early = self.is(Mutant::EarlyCookie);
                    let at = if is_early { At::LastFence(word) } else { At::Exchange(word) };
                    world.updaters[it].at = at;
                    return Outcome::Moved;
                }
                if let Some(what) = self.store(world, me, next, choice) {
                    return Outcome::Violation(what);
                }
                if !is_last {
                    return Outcome::Moved;
                }
                self.ends_update(world, me, it, op)
            }
            At::Exchange(word) => {
                memory.update(me, TAG_WORD, AcqRel, |_, by| by, word | LOCK);
                At::LastFence(word)
            }
            At::LastFence(word) => {
                self.cookie_fence(memory, me);
                At::LastCookie(word)
            }
            At::LastCookie(word) => {
                let cookie = self.cookie(memory, me, choice);
                let is_shared = cookie == world.cookie || self.is(Mutant::SharedCookie);
                At::Last(if !has(word, STAMPED) {
                    world.set_cookie(me, cookie);
                    turn(word, DEAD, STAMPED)
                } else if is_shared {
                    turn(word, DEAD, STAMPED)
                } else {
                    word
                })
            }
            At::Last(word) => {
                memory.store(me, TAG_WORD, word, self.unless(Mutant::RelaxedTag, Release));
                self.ends_update(world, me, it, op)
            }
        };
        Outcome::Moved
    }

    fn ends_update(&self, world: &mut World<M>, me: usize, it: usize, op: Op) -> At {
        if let Some(key) = op.key() {
            world.end_update(me, key, self.scenario.is_timed);
        }
        world.updaters[it].done += 1;
        world.updaters[it].has_died = false;
        At::Lock
    }

    fn cookie_fence(&self, memory: &mut M, me: usize) {
        if !self.is(Mutant::NoCookieFence) {
            memory.fence(me);
        }
    }

    /// The cookie of a full grace period from now on.
    fn cookie(&self, memory: &mut M, me: usize, choice: &mut Choice) -> u64 {
        let number = memory.load(me, COMPLETED, Relaxed, choice);
        let present = u64::from(self.is(Mutant::CookieOfThePresent));
        (number + 3 - 2 * present) & !1
    }

    /// One store.
    fn store(
        &self,
        world: &mut World<M>,
        me: usize,
        store: Store,
        choice: &mut Choice,
    ) -> Option<String> {
        let pointer = if self.is_boxed() { Release } else { Relaxed };
        let pointer = self.unless(Mutant::RelaxedPointer, pointer);
        match store {
            Store::Entry(to, entry) => return Self::fill(world, me, to, entry, pointer),
            Store::Copy(from, to) => {
                let found = world.memory.load(me, from.location(), Relaxed, choice);
                return Self::fill(world, me, to, (found >> from.shift()) as u8, pointer);
            }
            Store::Word(area, word, is_release) => {
                let mutant = match area {
                    Area::Head if word & MOVED != 0 => Mutant::RelaxedMoved,
                    Area::Head => Mutant::RelaxedTag,
                    Area::Node(_) | Area::Child => Mutant::RelaxedNodeTag,
                };
                let order = if is_release { self.unless(mutant, Release) } else { Relaxed };
                world.memory.store(me, area.tag_word(), word, order);
            }
            Store::Overflow(word, is_release) => {
                let order = if is_release { Release } else { Relaxed };
                let order = self.unless(Mutant::RelaxedOverflow, order);
                world.memory.store(me, OVERFLOW, word, order);
            }
        }
        None
    }

    fn fill(
        world: &mut World<M>,
        me: usize,
        to: Slot,
        entry: u8,
        order: Ordering,
    ) -> Option<String> {
        let at = to.location();
        let packed = &mut world.packed[at.index()];
        *packed = *packed & !(0xff << to.shift()) | u64::from(entry) << to.shift();
        let packed = *packed;
        let fault = world.write(me, to);
        world.memory.store(me, at, packed, order);
        fault
    }

    /// The stores of an operation. None if it cannot be.
    /// And whether a slot of the head dies.
    fn act(
        &self,
        world: &mut World<M>,
        op: Op,
        area: Area,
        word: u64,
    ) -> Option<(Vec<Store>, bool)> {
        let unlocked = vec![Store::Word(area, word & !LOCK, true)];
        let place = op.key().and_then(|key| world.places[key as usize]);
        let dies = place.is_some_and(|place| place.area == Area::Head) && !self.is_boxed();
        let stores = match op {
            Op::Touch => unlocked,
            Op::Fold => self.fold(world, word).unwrap_or(unlocked),
            Op::Grow => self.grow(world, word),
            Op::Remove(key) => {
                world.begin_update(key, true);
                let place = world.places[key as usize].take()?;
                self.remove(world, place, area, word)
            }
            Op::Insert(key) => {
                let value = world.begin_update(key, false);
                self.insert(world, key, entry(key, value), (area, word))
            }
        };
        Some((stores, dies && area == Area::Head))
    }

    fn remove(&self, world: &mut World<M>, place: Slot, area: Area, word: u64) -> Vec<Store> {
        if let Area::Node(node) = place.area {
            let words = &mut world.node_words[usize::from(node)];
            *words = with_byte(*words, place.number, DEAD);
            return vec![
                Store::Word(place.area, *words, true),
                Store::Word(area, word & !LOCK, true),
            ];
        }
        if !self.is_boxed() {
            return vec![Store::Word(area, with_byte(word, place.number, DEAD) & !LOCK, true)];
        }
        let null = Store::Entry(place, 0);
        let free = with_byte(word, place.number, FREE);
        match self.mutant {
            Some(Mutant::FreeFirst) => {
                let free = Store::Word(area, free, true);
                let unlock = Store::Word(area, with_byte(word, place.number, FREE) & !LOCK, true);
                vec![free, null, unlock]
            }
            Some(Mutant::NoNull | Mutant::PointerFirst) => {
                vec![Store::Word(area, free & !LOCK, true)]
            }
            _ => vec![null, Store::Word(area, free & !LOCK, true)],
        }
    }

    fn insert(
        &self,
        world: &mut World<M>,
        key: Key,
        new: u8,
        (area, word): (Area, u64),
    ) -> Vec<Store> {
        let old = world.places[key as usize].filter(|old| match old.area {
            Area::Head | Area::Child => old.area == area,
            Area::Node(_) => true,
        });
        if let (true, Some(slot)) = (self.is_boxed(), old) {
            return vec![Store::Entry(slot, new), Store::Word(area, word & !LOCK, true)];
        }
        let may_add = old.is_none() || self.is(Mutant::MovedInPlace);
        let in_node = matches!(old, Some(Slot { area: Area::Node(_), .. }));
        let buried = match old {
            Some(old) if !in_node => with_byte(word, old.number, DEAD),
            _ => word,
        };
        if let (Some(slot), false) = (free_slot(word, area), in_node) {
            world.places[key as usize] = Some(slot);
            let tagged = with_byte(buried, slot.number, self.tag(key));
            let publish = Store::Word(area, tagged & !LOCK, true);
            let (fill, unlock) = (Store::Entry(slot, new), publish);
            return match self.mutant {
                Some(Mutant::TagBeforeKey) => vec![Store::Word(area, tagged, true), fill, unlock],
                Some(Mutant::PointerFirst) => vec![fill, publish],
                Some(Mutant::DeadFirst) => vec![fill, Store::Word(area, buried, true), publish],
                _ if self.is_boxed() => vec![Store::Word(area, tagged, true), fill, unlock],
                _ => vec![fill, publish],
            };
        }
        let unlock = Store::Word(area, buried & !LOCK, true);
        let room = world
            .node
            .filter(|_| may_add || in_node)
            .and_then(|node| free_slot(world.node_words[usize::from(node)], Area::Node(node)));
        if let (Some(slot), Some(node)) = (room, world.node) {
            // One store of the node's word: the old entry goes as the new one comes.
            world.places[key as usize] = Some(slot);
            let words = &mut world.node_words[usize::from(node)];
            if let (true, Some(old)) = (in_node, old) {
                *words = with_byte(*words, old.number, DEAD);
            }
            *words = with_byte(*words, slot.number, self.tag(key));
            return vec![Store::Entry(slot, new), Store::Word(slot.area, *words, true), unlock];
        }
        self.overflow(world, key, new, buried)
    }

    /// A new node with the entries of the old one, and this one.
    fn overflow(&self, world: &mut World<M>, key: Key, new: u8, buried: u64) -> Vec<Store> {
        assert!(!world.has_moved, "a scenario's next table has room");
        let number = world.nodes;
        assert!(usize::from(number) < NODES, "a scenario has few nodes");
        world.nodes += 1;
        let area = Area::Node(number);
        let mut stores = Vec::new();
        let mut word = 0;
        let mut next = 0;
        for other in Key::ALL {
            let Some(place) = world.places[other as usize] else { continue };
            if other != key && matches!(place.area, Area::Node(_)) {
                let slot = Slot { area, number: next };
                stores.push(Store::Copy(place, slot));
                word = with_byte(word, next, self.tag(other));
                world.places[other as usize] = Some(slot);
                next += 1;
            }
        }
        assert!(next < 2, "a scenario has few keys in nodes");
        let slot = Slot { area, number: next };
        word = with_byte(word, next, self.tag(key));
        world.places[key as usize] = Some(slot);
        (world.node, world.node_words[usize::from(number)]) = (Some(number), word);
        // Not published yet: in any order.
        stores.extend([Store::Entry(slot, new), Store::Word(area, word, false)]);
        let publish = Store::Overflow(2 * (u64::from(number) + 1), true);
        let bury = Store::Word(Area::Head, (buried | OVER) & !LOCK, true);
        if self.is(Mutant::OverflowLate) {
            let bury = Store::Word(Area::Head, buried | OVER, true);
            stores.push(bury);
            stores.push(publish);
        } else {
            stores.push(publish);
        }
        stores.push(bury);
        stores
    }

    /// What is in the node goes to the head, if there is room.
    fn fold(&self, world: &mut World<M>, word: u64) -> Option<Vec<Store>> {
        let node = world.node?;
        let area = Area::Node(node);
        let inside = Key::ALL
            .into_iter()
            .filter(|key| world.places[*key as usize].is_some_and(|place| place.area == area));
        let (mut folded, mut stores, mut moved) = (word & !OVER, Vec::new(), Vec::new());
        for key in inside {
            let slot = free_slot(folded, Area::Head)?;
            folded = with_byte(folded, slot.number, self.tag(key));
            moved.push((key, slot));
        }
        for (key, slot) in moved {
            let place = world.places[key as usize].replace(slot).expect("it is in the node");
            stores.push(Store::Copy(place, slot));
        }
        world.node = None;
        let publish = Store::Word(Area::Head, folded, true);
        let cookie = Store::Overflow(2 * world.cookie + 1, true);
        let unlock = Store::Word(Area::Head, folded & !LOCK, true);
        match self.mutant {
            Some(Mutant::FoldByHalves) => {
                let word = turn(turn(world.node_words[usize::from(node)], 3, DEAD), 4, DEAD);
                stores.extend([Store::Word(area, word, true), publish, cookie, unlock]);
            }
            Some(Mutant::FoldOverflowFirst) => stores.extend([cookie, publish, unlock]),
            _ => stores.extend([publish, cookie, unlock]),
        }
        Some(stores)
    }

    /// All entries go to the next table.
    fn grow(&self, world: &mut World<M>, word: u64) -> Vec<Store> {
        let mut stores = Vec::new();
        let mut child = 0;
        let mut number = 0;
        for key in Key::ALL {
            let Some(place) = world.places[key as usize] else { continue };
            let slot = Slot { area: Area::Child, number };
            child = with_byte(child, number, self.tag(key));
            stores.push(Store::Copy(place, slot));
            world.places[key as usize] = Some(slot);
            number += 1;
        }
        world.has_moved = true;
        stores.push(Store::Word(Area::Child, child, false));
        let moved = Store::Word(Area::Head, word & 0xff & !LOCK & !OVER | MOVED, true);
        if self.is(Mutant::MovedBeforeCopy) {
            stores.insert(0, moved);
        } else {
            stores.push(moved);
        }
        stores
    }
}
