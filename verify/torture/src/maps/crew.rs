//! The threads that share a map.

use std::cell::RefCell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::AcqRel;

use quiescence::collections::hash_map::{Compute, HashMapRef, Operation as Change};
use quiescence::{Domain, Guard, tag::Private};

use super::entries::{self, Crowded, KEY_AT, LIVE, Map, NAME};
use super::history::{After, Before, LOOKS_MAX, Operation as Recorded};
use crate::canary::Canary;
use crate::context::ThreadContext;
use crate::kinds::{FaultKind, Operation};

/// What a thread has done, by keys.
pub(super) type Log = Vec<(u64, Recorded)>;

/// Turns of a thread in a round: each is a section with some operations, or one outside of any.
const TURNS: u64 = 400;

/// Operations in a section, at most.
const IN_A_SECTION_MAX: u64 = 6;

/// Keys that are in no history: they come and go so that the table grows. Where all keys are in
/// one bucket there are fewer.
const FILLERS_FROM: u64 = 1 << 20;
const FILLERS: u64 = 1_500;
const FILLERS_CROWDED: u64 = 40;

/// A map, and what its threads share.
pub(super) struct Round {
    map: Map,
    keys: u64,
    /// How many fillers there are of each kind, below this.
    fillers: u64,
    /// What the keys had that are never removed, from the first of them on.
    steady: Vec<u64>,
    clock: AtomicU64,
}

/// One of its threads, and what it has done.
struct Member<'r> {
    round: &'r Round,
    context: &'r ThreadContext,
    log: RefCell<Log>,
}

/// A map in a section.
type View<'m> = HashMapRef<'m, String, Canary, Crowded, Private, Guard<'m, Private>>;

/// References out of the map, and what they led to.
type Kept<'v> = Vec<(&'v Canary, u64, u64)>;

/// What an operation found, and made of it.
type Found = (Before, After);

/// It found this, and left it.
fn left(value: Option<u64>) -> Found {
    (Before::Was(value), After::Same)
}

/// It found the one, and made the other of it.
fn replaced(old: Option<u64>, new: Option<u64>) -> Found {
    (Before::Was(old), After::Is(new))
}

impl Round {
    pub(super) fn new(map: Map, crowded: Crowded, keys: u64, context: &ThreadContext) -> Self {
        let (steady, clock) = (Vec::new(), AtomicU64::new(0));
        // Without them a bucket's node comes and goes, and entries out of it into the slots.
        let is_full = crowded == Crowded::Not || context.one_in(2);
        let fillers = match crowded {
            _ if !is_full => 1,
            Crowded::Not => FILLERS,
            _ => FILLERS_CROWDED,
        };
        let mut this = Self { map, keys, fillers, steady, clock };
        for key in keys / 2..keys {
            let number = entries::fresh(key);
            this.steady.push(number);
            this.map.insert(entries::key(key), entries::value(number));
        }
        this
    }

    /// What a key had when the threads began.
    pub(super) fn first(&self, key: u64) -> Option<u64> {
        let number = key.checked_sub(self.keys / 2)?;
        self.steady.get(number as usize).copied()
    }

    /// Whether it is never removed: a thread that misses it has found a fault.
    fn is_steady(&self, key: u64) -> bool {
        key >= self.keys / 2
    }

    /// A moment: after all that any thread did before one that it has seen.
    fn moment(&self) -> u64 {
        self.clock.fetch_add(1, AcqRel)
    }

    /// What one of the threads does.
    pub(super) fn work(&self, context: &ThreadContext) -> Log {
        let member = Member { round: self, context, log: RefCell::default() };
        for _ in 0..TURNS {
            if context.is_over() {
                break;
            }
            match context.below(16) {
                0..10 => member.in_a_section(),
                10..14 => member.set(true, member.key()),
                14 => member.retain(),
                _ => member.grow_and_shrink(),
            }
        }
        member.log.into_inner()
    }

    /// All threads have ended: what is left?
    pub(super) fn end(self, domain: &Domain<Private>, context: &ThreadContext) {
        context.begin(Operation::MapEnd);
        let (counted, seen) = (self.map.len(), self.map.read().iter().count());
        context.equal(FaultKind::Count, NAME, "entries of a walk, and by its count", seen, counted);
        drop(self);
        domain.barrier();
        LIVE.expect(context, NAME, 0);
        let waiting = domain.statistics().callbacks_waiting();
        context.equal(FaultKind::Freed, NAME, "callbacks that wait", waiting, 0);
        context.did(Operation::MapEnd);
    }
}

impl Member<'_> {
    fn key(&self) -> u64 {
        self.context.below(self.round.keys)
    }

    /// What is in a value that was found under a key.
    fn number(&self, value: &Canary, key: u64) -> u64 {
        let number = value.serial();
        let is_right = value.is_alive() && number >> KEY_AT == key;
        self.context.expect(is_right, FaultKind::Payload, NAME, || {
            format!("{number:#x} is no value of key {key}, or not alive")
        });
        number
    }

    /// Keeps a reference until the section ends, and gives what it leads to.
    fn keep<'v>(&self, value: &'v Canary, key: u64, kept: &mut Kept<'v>) -> u64 {
        let number = self.number(value, key);
        kept.push((value, key, number));
        number
    }

    /// Runs an operation on a key, and records it unless it was refused.
    fn record<R: Into<Option<Found>>>(
        &self,
        key: u64,
        operation: Operation,
        f: impl FnOnce() -> R,
    ) {
        let begin = self.round.moment();
        let result = f().into();
        let end = self.round.moment();
        self.context.did(operation);
        match result {
            Some(found) => self.log(key, (begin, end), found, true),
            None => self.context.did(Operation::MapRefused),
        }
    }

    fn log(&self, key: u64, (begin, end): (u64, u64), (before, after): Found, is_sure: bool) {
        let operation = Recorded { begin, end, before, after, is_sure };
        self.log.borrow_mut().push((key, operation));
    }

    /// Some operations in one section, whose references are looked at again at its end.
    fn in_a_section(&self) {
        let view = self.round.map.read();
        let mut kept = Vec::new();
        // One that may go over the limit; the others do not.
        let mut may_change = true;
        for _ in 0..1 + self.context.below(IN_A_SECTION_MAX) {
            let key = self.key();
            match self.context.below(12) {
                0..5 => self.look_up(&view, key, &mut kept),
                5 => self.walk(&view, &mut kept),
                6 | 7 => {
                    self.set(false, key);
                    may_change = false; // it may wait at the end of the section
                }
                _ if may_change => {
                    self.change(&view, key, &mut kept);
                    may_change = false;
                }
                _ => {}
            }
        }
        for (value, key, number) in kept {
            let now = self.number(value, key);
            self.context.expect(now == number, FaultKind::Payload, NAME, || {
                format!("a reference to value {number:#x} of key {key} leads to {now:#x}")
            });
        }
    }

    fn look_up<'v>(&self, view: &'v View<'_>, key: u64, kept: &mut Kept<'v>) {
        let name = entries::key(key);
        self.record(key, Operation::MapGet, || {
            let found = match self.context.below(3) {
                0 => view.get(&name),
                1 => view.get_key_value(&name).map(|(found, value)| {
                    debug_assert_eq!(*found, name);
                    value
                }),
                _ if view.contains_key(&name) => return (Before::Present, After::Same),
                _ => None,
            };
            left(found.map(|value| self.keep(value, key, kept)))
        });
    }

    /// All entries: of each key what it had at some moment.
    fn walk<'v>(&self, view: &'v View<'_>, kept: &mut Kept<'v>) {
        let (begin, from) = (self.round.moment(), kept.len());
        for (key, value) in view.iter() {
            let key = entries::number(key);
            if key < FILLERS_FROM {
                self.keep(value, key, kept);
            }
        }
        let end = self.round.moment();
        self.context.did(Operation::MapWalk);
        let mut seen: Vec<_> = kept[from..].iter().map(|(_, key, of)| (*key, *of)).collect();
        seen.sort_unstable();
        self.context.expect(seen.is_sorted_by(|a, b| a < b), FaultKind::History, NAME, || {
            format!("a walk visited an entry twice: {seen:x?}")
        });
        self.seen((begin, end), seen.into_iter(), false);
    }

    /// Records what a walk has seen, and which keys it has not. A key that it has seen twice was
    /// not there in between, unless the walk `asks_again` about one that was replaced.
    fn seen(&self, moments: (u64, u64), seen: impl Iterator<Item = (u64, u64)>, asks_again: bool) {
        let mut looks = vec![0; self.round.keys as usize];
        for (key, number) in seen {
            looks[key as usize] += 1;
            if looks[key as usize] <= LOOKS_MAX {
                self.log(key, moments, left(Some(number)), true);
            }
            if looks[key as usize] == 2 && !asks_again {
                self.log(key, moments, left(None), true);
            }
        }
        for (key, _) in looks.into_iter().enumerate().filter(|(_, looks)| *looks == 0) {
            self.log(key as u64, moments, left(None), true);
        }
    }

    /// An update that gives references to what was there.
    fn change<'v>(&self, view: &'v View<'_>, key: u64, kept: &mut Kept<'v>) {
        let (name, is_steady) = (entries::key(key), self.round.is_steady(key));
        let mut keep = |value: &'v Canary| self.keep(value, key, kept);
        let made = entries::fresh(key);
        let make = || entries::value(made);
        // Where a closure may be called again, each value is another.
        let anew = || entries::value(entries::fresh(key));
        match self.context.below(5) {
            0 if !is_steady => self.record(key, Operation::MapRemove, || {
                replaced(view.remove_entry(&name).map(|(_, value)| keep(value)), None)
            }),
            0 | 1 => self.record(key, Operation::MapInsert, || {
                replaced(view.insert(name, make()).map(keep), Some(made))
            }),
            2 => self.record(key, Operation::MapUpdate, || {
                let mut old = None;
                let replace = |value: &Canary| {
                    old = Some(self.number(value, key));
                    anew()
                };
                match view.update(&name, replace).map(keep) {
                    Some(new) => replaced(old, Some(new)),
                    None => left(None),
                }
            }),
            3 => self.record(key, Operation::MapInsert, || {
                let number = keep(view.get_or_insert_with(name, make));
                if number == made { replaced(None, Some(made)) } else { left(Some(number)) }
            }),
            _ => {
                let choice = self.context.below(4);
                let choice = if is_steady { 3 * (choice / 2) } else { choice };
                self.record(key, Operation::MapCompute, || {
                    let mut seen = None;
                    let result = view.compute(name, |entry| {
                        seen = entry.map(|(_, value)| self.number(value, key));
                        match (choice, entry) {
                            (0, _) | (1, None) => Change::Insert(anew()),
                            (1, _) | (2, _) => Change::Remove,
                            _ => Change::Abort(()),
                        }
                    });
                    match result {
                        Compute::Inserted(_, value) => replaced(None, Some(keep(value))),
                        Compute::Updated { old, new } => {
                            replaced(Some(keep(old.1)), Some(keep(new.1)))
                        }
                        Compute::Removed(_, value) => replaced(Some(keep(value)), None),
                        Compute::Aborted(()) => left(seen),
                        Compute::Absent => left(None),
                    }
                });
            }
        }
    }

    /// An update that gives no references: outside of sections, where it waits; or one that never
    /// waits, in a section with references out of the map, too.
    fn set(&self, waits: bool, key: u64) {
        let (name, map) = (entries::key(key), &self.round.map);
        let mut made = entries::fresh(key);
        let make = || entries::value(made);
        match self.context.below(if waits { 3 } else { 4 }) {
            0 if !self.round.is_steady(key) => self.record(key, Operation::MapRemove, || {
                let done = if waits { Some(map.remove(&name)) } else { map.try_remove(&name).ok() };
                Some(if done? { (Before::Present, After::Is(None)) } else { left(None) })
            }),
            0 | 1 => self.record(key, Operation::MapInsert, || {
                let is_new = match waits {
                    true => map.insert(name, make()),
                    false => map.try_insert(name, make()).ok()?,
                };
                let before = if is_new { Before::Was(None) } else { Before::Present };
                Some((before, After::Is(Some(made))))
            }),
            2 if !waits => self.record(key, Operation::MapInsert, || {
                Some(match map.try_insert_if_absent(name, make()).ok()? {
                    true => replaced(None, Some(made)),
                    false => (Before::Present, After::Same),
                })
            }),
            _ => self.record(key, Operation::MapUpdate, || {
                let mut old = None;
                let replace = |value: &Canary| {
                    old = Some(self.number(value, key));
                    made = entries::fresh(key); // it may be called again
                    entries::value(made)
                };
                let was_there = match waits {
                    true => map.update(&name, replace),
                    false => map.try_update(&name, replace).ok()?,
                };
                Some(if was_there { replaced(old, Some(made)) } else { left(None) })
            }),
        }
    }

    /// Removes the entries of some keys, all other ones staying.
    fn retain(&self) {
        let removed = self.context.next();
        let (mut seen, mut asked) = (Vec::new(), None);
        let begin = self.round.moment();
        self.round.map.retain(|key, value| {
            let key = entries::number(key);
            if key >= FILLERS_FROM {
                return true; // not in any history
            }
            let number = self.number(value, key);
            // Asked about another entry, or a newer value, it is done with the one before.
            if asked.is_some_and(|(of, was, _)| (of, was) != (key, number)) {
                self.over(&mut asked);
            }
            seen.push((key, number));
            let stays = self.round.is_steady(key) || removed >> (key % 64) & 3 != 0;
            if !stays {
                asked.get_or_insert_with(|| (key, number, self.round.moment()));
            }
            stays
        });
        self.over(&mut asked);
        let end = self.round.moment();
        self.context.did(Operation::MapRetain);
        self.seen((begin, end), seen.into_iter(), true);
    }

    /// Records the removal that was asked for last, if there is one. Whether it was this call that
    /// removed the entry, it does not say.
    fn over(&self, asked: &mut Option<(u64, u64, u64)>) {
        let Some((key, number, begin)) = asked.take() else { return };
        self.log(key, (begin, self.round.moment()), replaced(Some(number), None), false);
    }

    /// Has the table grow, and perhaps shrink again.
    fn grow_and_shrink(&self) {
        let (context, map) = (self.context, &self.round.map);
        let from = FILLERS_FROM + context.below(4) * FILLERS;
        let fillers = from..from + context.below(self.round.fillers);
        match context.below(4) {
            0 => map.reserve(context.below(2 * FILLERS) as usize),
            1 => map.extend(
                fillers.map(|key| (entries::key(key), entries::value(entries::fresh(key)))),
            ),
            2 => map.shrink_to(context.below(FILLERS) as usize),
            _ => {
                for key in fillers {
                    map.remove(&entries::key(key));
                }
                map.shrink_to_fit();
            }
        }
        context.did(Operation::MapResize);
    }
}
