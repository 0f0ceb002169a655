//! Lists, queues and stacks of values: readers that traverse while updaters insert, remove and
//! replace, in the global domain and in one with hardly any room; and threads that push and pop.
//!
//! Some keys are in a list all the time, so a traversal must pass each of them, once and in order;
//! the element of a key is replaced, and others come and go between them. What a reader has found
//! must be alive as long as its section. What is pushed must come out once, and of each thread in
//! its order.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use quiescence::collections::{List, Queue, Stack};
use quiescence::{
    Domain, Weigh,
    tag::{DomainTag, Private},
};

use super::canary::{self, Tallied, has_died};
use crate::context::ThreadContext;
use crate::deferral::tuning;
use crate::delays::spin;
use crate::kinds::{FaultKind, Operation};
use crate::ledger::Ledger;
use crate::random::Random;

/// Traversals, updates, and pushes and pops, between two messages to the watchdog.
const READS: u64 = 64;
const UPDATES: u64 = 16;
const MOVES: u64 = 32;

/// Keys that are in a list all the time: the multiples of [`APART`].
const FIXED: u64 = 16;
const APART: u64 = 8;

/// Objects that the small domain has room for.
const ROOM: u64 = 4;

/// Elements that are left.
static LIVE: AtomicU64 = AtomicU64::new(0);

/// What stands in lists, queues and stacks.
#[derive(Debug)]
struct Element {
    /// Its place in a list; else the thread that has pushed it.
    key: u64,
    canary: Tallied,
}

impl Weigh for Element {
    const OWNS: bool = false;
}

impl Element {
    fn new(key: u64, serial: u64) -> Self {
        Self { key, canary: Tallied::new(serial, &LIVE) }
    }
}

/// What is read, updated, pushed and popped.
#[derive(Debug)]
pub(crate) struct Lists {
    list: List<Element>,
    small: List<Element, Private>,
    queue: Queue<Element>,
    stack: Stack<Element>,
    serial: AtomicU64,
    /// Sums of serials: of what was pushed, and of what was popped.
    pushed: AtomicU64,
    popped: AtomicU64,
}

impl Default for Lists {
    fn default() -> Self {
        let domain = Domain::builder().name("lists").build();
        domain.tune(tuning(ROOM, 1 << 20));
        let lists = Self {
            list: List::new(),
            small: List::new_in(domain),
            queue: Queue::new(),
            stack: Stack::new(),
            serial: AtomicU64::new(1),
            pushed: AtomicU64::new(0),
            popped: AtomicU64::new(0),
        };
        for key in (0..FIXED).map(|number| number * APART) {
            lists.list.push_back(Element::new(key, 0));
            lists.small.push_back(Element::new(key, 0));
        }
        lists
    }
}

impl Lists {
    /// Traverses lists until the run is over.
    pub(crate) fn read(&self, context: &ThreadContext, random: &mut Random) {
        while !context.is_over() && !has_died(context) {
            context.begin(Operation::ListRead);
            for _ in 0..READS {
                if random.one_in(4) {
                    traverse(&self.small, context, random);
                } else {
                    traverse(&self.list, context, random);
                }
            }
            context.ledger.did(Operation::ListRead, READS);
            if random.one_in(4) {
                thread::yield_now();
            }
        }
    }

    /// Updates lists until the run is over.
    pub(crate) fn update(&self, context: &ThreadContext, random: &mut Random) {
        while !context.is_over() && !has_died(context) {
            context.begin(Operation::ListUpdate);
            for _ in 0..UPDATES {
                let serial = self.serial.fetch_add(1, Relaxed);
                if random.one_in(4) {
                    update(&self.small, serial, random);
                } else {
                    update(&self.list, serial, random);
                }
            }
            context.ledger.did(Operation::ListUpdate, UPDATES);
            thread::yield_now();
        }
    }

    /// Pushes and pops until the run is over.
    pub(crate) fn push_and_pop(&self, context: &ThreadContext, random: &mut Random) {
        let key = context.record as u64;
        let mut last = vec![0; context.ledger.records.len()];
        while !context.is_over() && !has_died(context) {
            context.begin(Operation::QueuePop);
            let section = random.one_in(8).then(quiescence::read);
            for _ in 0..random.below(MOVES) {
                let serial = self.serial.fetch_add(1, Relaxed);
                self.pushed.fetch_add(serial, Relaxed);
                self.queue.push(Element::new(key, serial));
                let serial = self.serial.fetch_add(1, Relaxed);
                self.pushed.fetch_add(serial, Relaxed);
                self.stack.push(Element::new(key, serial));
            }
            for _ in 0..random.below(MOVES) {
                if let Some(element) = self.queue.pop() {
                    context.did(Operation::QueuePop);
                    let serial = self.take(context, &element);
                    let before = std::mem::replace(&mut last[element.key as usize], serial);
                    if before >= serial {
                        context.fault(FaultKind::Order, "Queue", || {
                            format!("{serial} came out after {before}, of one thread")
                        });
                    }
                }
                if let Some(element) = self.stack.pop() {
                    context.did(Operation::StackPop);
                    self.take(context, &element);
                }
            }
            if random.one_in(8) {
                for element in self.stack.pop_all() {
                    self.take(context, &element);
                }
                context.did(Operation::StackAll);
            }
            drop(section);
            if random.one_in(4) {
                thread::yield_now();
            }
        }
    }

    /// Looks at what has come out; its serial.
    fn take(&self, context: &ThreadContext, element: &Element) -> u64 {
        let serial = element.canary.loaded(context, "popped value");
        self.popped.fetch_add(serial, Relaxed);
        serial
    }

    /// When all threads have ended: looks for what is lost.
    pub(crate) fn close(&self, ledger: &Ledger) {
        if ledger.faults(FaultKind::Freed) != 0 {
            return;
        }
        for element in self.queue.drain().chain(self.stack.pop_all()) {
            self.popped.fetch_add(element.canary.serial(), Relaxed);
        }
        let (pushed, popped) = (self.pushed.load(Relaxed), self.popped.load(Relaxed));
        let fault = |kind, detail: String| ledger.fault(kind, "", None, None, || detail);
        if pushed != popped {
            fault(FaultKind::Sum, format!("{pushed:#x} was pushed, and {popped:#x} was popped"));
        }
        let seen = [self.list.read().iter().count(), self.small.read().iter().count()];
        if seen != [self.list.len(), self.small.len()] {
            fault(FaultKind::Count, format!("lists of {seen:?} elements have other lengths"));
        }
        self.list.clear();
        self.small.clear();
        self.small.domain().barrier();
        quiescence::barrier();
        let live = canary::left(&LIVE);
        if live != 0 {
            fault(FaultKind::Freed, format!("{live} elements are left, or were dropped twice"));
        }
    }
}

/// Goes through a list, and looks at some elements once more at the end of the section.
fn traverse<D: DomainTag>(list: &List<Element, D>, context: &ThreadContext, random: &mut Random) {
    let reader = list.read();
    let mut kept: [Option<(&Element, u64)>; 4] = [None; 4];
    let (mut last, mut fixed) = (None, 0);
    for element in &reader {
        let serial = element.canary.loaded(context, "List");
        if last >= Some(element.key) {
            context.fault(FaultKind::Order, "List", || {
                format!("key {} comes after {last:?}", element.key)
            });
        }
        last = Some(element.key);
        fixed += u64::from(element.key.is_multiple_of(APART));
        if random.one_in(8) {
            kept[random.below(4) as usize] = Some((element, serial));
            spin(random.below(300));
        }
    }
    if fixed != FIXED {
        context.fault(FaultKind::Count, "List", || {
            format!("{fixed} of {FIXED} elements were seen that are always there")
        });
    }
    for (element, serial) in kept.into_iter().flatten() {
        element.canary.expect(context, "List", serial);
    }
}

/// Changes something in a list; in a section, now and then.
fn update<D: DomainTag>(list: &List<Element, D>, serial: u64, random: &mut Random) {
    let section = random.one_in(8).then(|| list.read());
    let key = random.below(FIXED) * APART;
    let extra = key + 1 + random.below(APART - 1);
    let mut updater = list.update();
    match random.below(8) {
        // All that are not always there; where nothing waits, as many as there is room for.
        0 => {
            while updater.find(|element| !element.key.is_multiple_of(APART)) {
                if updater.try_remove_current().is_err() {
                    break;
                }
                updater.move_prev();
            }
        }
        1..4 => {
            if updater.find(|element| element.key == key) {
                drop(updater.try_replace_current(Element::new(key, serial)));
            }
        }
        _ => {
            if updater.find(|element| element.key >= extra)
                && updater.current().is_some_and(|element| element.key == extra)
            {
                let _ = updater.try_remove_current(); // at the limit it stays
            } else {
                updater.insert_before(Element::new(extra, serial));
            }
        }
    }
    drop(updater);
    drop(section);
}
