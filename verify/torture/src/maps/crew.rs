//! The threads that share a map.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::AcqRel;

use quiescence::collections::hash_map::{Compute, HashMapRef, Operation as Change};
use quiescence::{
    Domain, Weigh,
    tag::{Private, Section},
};

use super::entries::{Crowded, Entries, LIVE, Map};
use super::history::{After, Before, LOOKS_MAX, Operation as Recorded};
use super::{BYTES_MAX, bound};
use crate::context::ThreadContext;
use crate::kinds::{FaultKind, Operation};
use crate::random::Random;

/// What a thread has done, by keys.
pub(super) type Log = Vec<(u64, Recorded)>;

/// Turns of a thread in a round: each is a section with some operations, or one outside of any.
const TURNS: u64 = 400;

/// Operations in a section, at most.
const IN_A_SECTION_MAX: u64 = 6;

/// Keys that are in no history: they come and go so that the table grows. Where all keys are in
/// one bucket there are fewer.
pub(super) const FILLERS_FROM: u64 = 1 << 20;
pub(super) const FILLERS: u64 = 1_500;
const FILLERS_CROWDED: u64 = 40;

/// For how many more entries there is to be room, at most.
pub(super) const RESERVED_MAX: u64 = 2 * FILLERS;

/// Fillers from one begin on, of four, at most.
pub(super) fn fillers_max(crowded: Crowded) -> u64 {
    if crowded == Crowded::Not { FILLERS } else { FILLERS_CROWDED }
}

/// How often a sum over the threads' queues is made anew.
const SUMS_MAX: u32 = 100;

/// A map, and what its threads share.
pub(super) struct Round<E: Entries> {
    context: ThreadContext,
    map: Map<E>,
    crowded: Crowded,
    keys: u64,
    /// What may wait in the domain.
    bytes_max: u64,
    /// What the keys had that are never removed, from the first of them on.
    steady: Vec<u64>,
    clock: AtomicU64,
}

/// A map in a section.
type View<'m, E, G> =
    HashMapRef<'m, <E as Entries>::Key, <E as Entries>::Value, Crowded, Private, G>;

/// A reference out of the map, and what it led to.
type Kept<'v, E> = (&'v <E as Entries>::Value, u64, u64);

impl<E: Entries> Round<E> {
    pub(super) fn new(context: ThreadContext, map: Map<E>, crowded: Crowded, keys: u64) -> Self {
        let (steady, clock) = (Vec::new(), AtomicU64::new(0));
        let bytes_max = bound::bytes_max::<E>(crowded);
        let mut this = Self { context, map, crowded, keys, bytes_max, steady, clock };
        for key in keys / 2..keys {
            let (value, number) = this.made(key);
            this.steady.push(number);
            this.map.insert(E::key(key), value);
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

    fn key(&self, random: &Random) -> u64 {
        random.below(self.keys)
    }

    /// What is in a value that was found under a key.
    fn number(&self, value: &E::Value, key: u64) -> u64 {
        E::read(value, key).unwrap_or_else(|what| {
            self.context.fault(FaultKind::Payload, E::NAME, || what);
            u64::MAX
        })
    }

    /// Keeps a reference until the section ends, and gives what it leads to.
    fn keep<'v>(&self, value: &'v E::Value, key: u64, kept: &mut Vec<Kept<'v, E>>) -> u64 {
        let number = self.number(value, key);
        kept.push((value, key, number));
        number
    }

    /// A new value for a key, and what is in it.
    fn made(&self, key: u64) -> (E::Value, u64) {
        let value = E::value(key);
        let number = self.number(&value, key);
        (value, number)
    }

    /// Runs an operation on a key, and records it unless it was refused.
    fn record(
        &self,
        log: &mut Log,
        key: u64,
        operation: Operation,
        f: impl FnOnce() -> Option<(Before, After)>,
    ) {
        let begin = self.moment();
        let result = f();
        let end = self.moment();
        self.context.did(operation);
        match result {
            Some((before, after)) => {
                log.push((key, Recorded { begin, end, before, after, is_sure: true }));
            }
            None => self.context.did(Operation::MapRefused),
        }
    }

    /// Does all of it.
    pub(super) fn work(&self, random: &Random) -> Log {
        let mut log = Log::new();
        for _ in 0..TURNS {
            if self.context.is_over() {
                break;
            }
            match random.below(16) {
                0..10 => self.in_a_section(&mut log, random),
                10..14 => self.set(true, self.key(random), &mut log, random),
                14 => self.retain(&mut log, random),
                _ => self.grow_and_shrink(random),
            }
            self.expect_room();
        }
        log
    }

    /// What waits is within the bound. It is the sum over the queues of all threads, one after the
    /// other: an object that is freed between counts though what takes its room counts, too. So a
    /// sum is a fault only if nothing was freed until the next one; another one is tried again.
    fn expect_room(&self) {
        let (bytes, most) = (self.map.owned() as u64, bound::tables_max::<E>());
        self.context.expect(bytes < most, FaultKind::Limit, E::NAME, || {
            format!("it has {bytes} bytes in tables and boxes, and may have {most}")
        });
        let sum = || {
            let statistics = self.map.domain().statistics();
            (statistics.bytes_waiting, statistics.callbacks_run)
        };
        let (mut waiting, mut run) = sum();
        for _ in 0..SUMS_MAX {
            if waiting <= self.bytes_max {
                return;
            }
            let next = sum();
            if next.1 == run {
                let most = self.bytes_max;
                return self.context.fault(FaultKind::Limit, E::NAME, || {
                    format!("{waiting} bytes wait where {BYTES_MAX} are the limit, and {most} may")
                });
            }
            (waiting, run) = next;
        }
    }

    /// Some operations in one section, whose references are looked at again at its end.
    fn in_a_section(&self, log: &mut Log, random: &Random) {
        let view = self.map.read();
        let mut kept = Vec::new();
        // One that may go over the limit; the others do not.
        let mut may_change = true;
        for _ in 0..1 + random.below(IN_A_SECTION_MAX) {
            let key = self.key(random);
            match random.below(12) {
                0..5 => self.look_up(&view, key, log, &mut kept, random),
                5 => self.walk(&view, log, &mut kept),
                6 | 7 => {
                    self.set(false, key, log, random);
                    may_change = false; // it may wait at the end of the section
                }
                _ if may_change => {
                    self.change(&view, key, log, &mut kept, random);
                    may_change = false;
                }
                _ => {}
            }
        }
        for (value, key, number) in kept {
            let now = self.number(value, key);
            self.context.expect(now == number, FaultKind::Payload, E::NAME, || {
                format!("a reference to value {number:#x} of key {key} leads to {now:#x}")
            });
        }
    }

    fn look_up<'v, G: Section<Private>>(
        &self,
        view: &'v View<'_, E, G>,
        key: u64,
        log: &mut Log,
        kept: &mut Vec<Kept<'v, E>>,
        random: &Random,
    ) {
        let name = E::key(key);
        self.record(log, key, Operation::MapGet, || {
            let found = match random.below(3) {
                0 => view.get(&name),
                1 => view.get_key_value(&name).map(|(found, value)| {
                    debug_assert_eq!(*found, name);
                    value
                }),
                _ if view.contains_key(&name) => return Some((Before::Present, After::Same)),
                _ => None,
            };
            let found = found.map(|value| self.keep(value, key, kept));
            Some((Before::Was(found), After::Same))
        });
    }

    /// All entries: of each key what it had at some moment.
    fn walk<'v, G: Section<Private>>(
        &self,
        view: &'v View<'_, E, G>,
        log: &mut Log,
        kept: &mut Vec<Kept<'v, E>>,
    ) {
        let (begin, from) = (self.moment(), kept.len());
        for (key, value) in view.iter() {
            let key = E::number(key);
            if key < FILLERS_FROM {
                self.keep(value, key, kept);
            }
        }
        let end = self.moment();
        self.context.did(Operation::MapWalk);
        let seen = kept[from..].iter().map(|(_, key, number)| (*key, *number));
        self.seen(log, (begin, end), seen);
    }

    /// Records what a walk has seen, and which keys it has not.
    fn seen(
        &self,
        log: &mut Log,
        (begin, end): (u64, u64),
        seen: impl Iterator<Item = (u64, u64)>,
    ) {
        let mut looks = vec![0; self.keys as usize];
        let after = After::Same;
        for (key, number) in seen {
            looks[key as usize] += 1;
            if looks[key as usize] > LOOKS_MAX {
                continue;
            }
            let before = Before::Was(Some(number));
            log.push((key, Recorded { begin, end, before, after, is_sure: true }));
        }
        for (key, _) in looks.into_iter().enumerate().filter(|(_, looks)| *looks == 0) {
            let before = Before::Was(None);
            log.push((key as u64, Recorded { begin, end, before, after, is_sure: true }));
        }
    }

    /// An update that gives references to what was there.
    fn change<'v, G: Section<Private>>(
        &self,
        view: &'v View<'_, E, G>,
        key: u64,
        log: &mut Log,
        kept: &mut Vec<Kept<'v, E>>,
        random: &Random,
    ) {
        let name = E::key(key);
        let mut keep = |value: &'v E::Value| self.keep(value, key, kept);
        let new = || self.made(key).0;
        match random.below(5) {
            0 if !self.is_steady(key) => self.record(log, key, Operation::MapRemove, || {
                let old = view.remove_entry(&name).map(|(_, value)| keep(value));
                Some((Before::Was(old), After::Is(None)))
            }),
            0 | 1 => self.record(log, key, Operation::MapInsert, || {
                let (value, number) = self.made(key);
                let old = view.insert(name, value).map(keep);
                Some((Before::Was(old), After::Is(Some(number))))
            }),
            2 => self.record(log, key, Operation::MapUpdate, || {
                let mut old = None;
                let replace = |value: &E::Value| {
                    old = Some(self.number(value, key));
                    new()
                };
                let number = view.update(&name, replace).map(keep);
                Some(match number {
                    Some(_) => (Before::Was(old), After::Is(number)),
                    None => (Before::Was(None), After::Same),
                })
            }),
            3 => self.record(log, key, Operation::MapInsert, || {
                let mut made = None;
                let make = || {
                    let (value, number) = self.made(key);
                    made = Some(number);
                    value
                };
                let number = keep(view.get_or_insert_with(name, make));
                Some(match made == Some(number) {
                    true => (Before::Was(None), After::Is(made)),
                    false => (Before::Was(Some(number)), After::Same),
                })
            }),
            _ => {
                let choice = random.below(4);
                let choice = if self.is_steady(key) { 3 * (choice / 2) } else { choice };
                self.record(log, key, Operation::MapCompute, || {
                    let mut seen = None;
                    let result = view.compute(name, |entry| {
                        seen = entry.map(|(_, value)| self.number(value, key));
                        match (choice, entry) {
                            (0, _) | (1, None) => Change::Insert(new()),
                            (1, _) | (2, _) => Change::Remove,
                            _ => Change::Abort(()),
                        }
                    });
                    Some(match result {
                        Compute::Inserted(_, value) => {
                            (Before::Was(None), After::Is(Some(keep(value))))
                        }
                        Compute::Updated { old, new } => {
                            (Before::Was(Some(keep(old.1))), After::Is(Some(keep(new.1))))
                        }
                        Compute::Removed(_, value) => {
                            (Before::Was(Some(keep(value))), After::Is(None))
                        }
                        Compute::Aborted(()) => (Before::Was(seen), After::Same),
                        Compute::Absent => (Before::Was(None), After::Same),
                    })
                });
            }
        }
    }

    /// An update that gives no references: outside of sections, where it waits; or one that never
    /// waits, in a section with references out of the map, too.
    fn set(&self, waits: bool, key: u64, log: &mut Log, random: &Random) {
        let (name, map) = (E::key(key), &self.map);
        match random.below(if waits { 3 } else { 4 }) {
            0 if !self.is_steady(key) => self.record(log, key, Operation::MapRemove, || {
                let done = if waits { Some(map.remove(&name)) } else { map.try_remove(&name).ok() };
                Some(match done? {
                    true => (Before::Present, After::Is(None)),
                    false => (Before::Was(None), After::Same),
                })
            }),
            0 | 1 => self.record(log, key, Operation::MapInsert, || {
                let (value, number) = self.made(key);
                let is_new = match waits {
                    true => map.insert(name, value),
                    false => map.try_insert(name, value).ok()?,
                };
                let before = if is_new { Before::Was(None) } else { Before::Present };
                Some((before, After::Is(Some(number))))
            }),
            2 if !waits => self.record(log, key, Operation::MapInsert, || {
                let (value, number) = self.made(key);
                Some(match map.try_insert_if_absent(name, value).ok()? {
                    true => (Before::Was(None), After::Is(Some(number))),
                    false => (Before::Present, After::Same),
                })
            }),
            _ => self.record(log, key, Operation::MapUpdate, || {
                let (mut old, mut new) = (None, None);
                let replace = |value: &E::Value| {
                    old = Some(self.number(value, key));
                    let (value, number) = self.made(key);
                    new = Some(number);
                    value
                };
                let was_there = match waits {
                    true => map.update(&name, replace),
                    false => map.try_update(&name, replace).ok()?,
                };
                Some(match was_there {
                    true => (Before::Was(old), After::Is(new)),
                    false => (Before::Was(None), After::Same),
                })
            }),
        }
    }

    /// Removes the entries of some keys, all other ones staying.
    fn retain(&self, log: &mut Log, random: &Random) {
        let removed = random.next();
        let (mut seen, mut ended, mut asked) = (Vec::new(), Vec::new(), None);
        let begin = self.moment();
        self.map.retain(|key, value| {
            let key = E::number(key);
            if key >= FILLERS_FROM {
                return true; // not in any history
            }
            let number = self.number(value, key);
            // An entry that has moved meanwhile is asked about again: the same removal.
            if asked.is_some_and(|(of, was, _)| (of, was) != (key, number)) {
                self.over(&mut asked, &mut ended);
            }
            seen.push((key, number));
            let stays = self.is_steady(key) || removed >> (key % 64) & 3 != 0;
            if !stays {
                asked.get_or_insert_with(|| (key, number, self.moment()));
            }
            stays
        });
        self.over(&mut asked, &mut ended);
        let end = self.moment();
        self.context.did(Operation::MapRetain);
        self.seen(log, (begin, end), seen.into_iter());
        log.append(&mut ended);
    }

    /// Records the removal that was asked for last, if there is one. Whether it was this call that
    /// removed the entry, it does not say.
    fn over(&self, asked: &mut Option<(u64, u64, u64)>, ended: &mut Log) {
        let Some((key, number, begin)) = asked.take() else { return };
        let (before, after) = (Before::Was(Some(number)), After::Is(None));
        let end = self.moment();
        ended.push((key, Recorded { begin, end, before, after, is_sure: false }));
    }

    /// Has the table grow, and perhaps shrink again.
    fn grow_and_shrink(&self, random: &Random) {
        let from = FILLERS_FROM + random.below(4) * FILLERS;
        let fillers = from..from + random.below(fillers_max(self.crowded));
        match random.below(4) {
            0 => self.map.reserve(random.below(RESERVED_MAX) as usize),
            1 => self.map.extend(fillers.map(|key| (E::key(key), E::value(key)))),
            2 => self.map.shrink_to(random.below(FILLERS) as usize),
            _ => {
                for key in fillers {
                    self.map.remove(&E::key(key));
                }
                self.map.shrink_to_fit();
            }
        }
        self.context.did(Operation::MapResize);
    }

    /// All threads have ended: what is left?
    pub(super) fn end(self, domain: &Domain<Private>) {
        let Self { context, map, .. } = self;
        context.begin(Operation::MapEnd);
        let (counted, seen) = (map.len(), map.read().iter().count());
        context.expect(counted == seen, FaultKind::Count, E::NAME, || {
            format!("it has {counted} entries by its count, and {seen} by a walk")
        });
        drop(map);
        domain.barrier();
        if E::ARE_COUNTED {
            LIVE.expect(&context, E::NAME, 0);
        }
        let waiting = domain.statistics().callbacks_waiting();
        context.expect(waiting == 0, FaultKind::Freed, E::NAME, || {
            format!("{waiting} callbacks wait")
        });
        context.did(Operation::MapEnd);
    }
}
