//! Lists, queues and stacks of values: readers that traverse while updaters insert, remove and
//! replace, in the global domain and in one with hardly any room; and threads that push and pop.
//!
//! Some keys are in a list all the time, so a traversal must pass each of them, once and in order;
//! the element of a key is replaced, and others come and go between them. What a reader has found
//! must be alive as long as its section. What is pushed must come out once, and of each thread in
//! its order.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use quiescence::collections::{List, Queue, Stack};
use quiescence::tag::{DomainTag, Private};
use quiescence::{Domain, Weigh};

use super::{Canary, FaultKind, Fixture, Live, Operation, ThreadContext, spin, tuning};

/// Pushes, and pops, in a row.
const MOVES: u64 = 32;

/// Keys that are in a list all the time: the multiples of [`APART`].
const FIXED: u64 = 16;
const APART: u64 = 8;

/// Objects that the small domain has room for.
const ROOM: u64 = 4;

static LIVE: Live = Live::none();

/// What stands in lists, queues and stacks.
struct Element {
    /// Its place in a list; else the thread that has pushed it.
    key: u64,
    canary: Canary,
}

impl Weigh for Element {
    const OWNS: bool = false;
}

impl Element {
    fn new(key: u64, serial: u64) -> Self {
        Self { key, canary: Canary::new(serial, &LIVE) }
    }
}

/// What is read, updated, pushed and popped.
struct Lists {
    list: List<Element>,
    small: List<Element, Private>,
    queue: Queue<Element>,
    stack: Stack<Element>,
    /// Sums of serials: of what was pushed, and of what was popped.
    pushed: AtomicU64,
    popped: AtomicU64,
}

/// Threads that use lists, queues and stacks.
pub(crate) fn cast(fixture: &mut Fixture, threads: usize) {
    let domain = Domain::builder().name("lists").tuning(tuning(ROOM, 1 << 20)).build();
    let lists = Lists {
        list: List::new(),
        small: List::new_in(domain),
        queue: Queue::new(),
        stack: Stack::new(),
        pushed: AtomicU64::new(0),
        popped: AtomicU64::new(0),
    };
    for key in (0..FIXED).map(|number| number * APART) {
        lists.list.push_back(Element::new(key, 0));
        lists.small.push_back(Element::new(key, 0));
    }
    fixture.parts(
        true,
        lists,
        &[
            (threads, "reader of lists", Lists::read),
            (3, "updater of lists", Lists::update),
            (threads, "user of queues and stacks", Lists::push_and_pop),
        ],
        Lists::close,
    );
}

impl Lists {
    /// Traverses lists until the run is over.
    fn read(&self, context: &ThreadContext) {
        context.repeat(Operation::ListRead, || {
            if context.one_in(4) {
                traverse(&self.small, context);
            } else {
                traverse(&self.list, context);
            }
        });
    }

    /// Updates lists until the run is over.
    fn update(&self, context: &ThreadContext) {
        context.repeat(Operation::ListUpdate, || {
            let serial = LIVE.next_serial();
            if context.one_in(4) {
                update(&self.small, serial, context);
            } else {
                update(&self.list, serial, context);
            }
        });
    }

    /// Pushes and pops until the run is over.
    fn push_and_pop(&self, context: &ThreadContext) {
        let mut last = vec![0; context.ledger.records.len()];
        context.rounds(Operation::QueuePop, || {
            let section = context.one_in(8).then(quiescence::read);
            let fresh = || {
                let serial = LIVE.next_serial();
                self.pushed.fetch_add(serial, Relaxed);
                Element::new(context.record as u64, serial)
            };
            for _ in 0..context.below(MOVES) {
                self.queue.push(fresh());
                self.stack.push(fresh());
            }
            for _ in 0..context.below(MOVES) {
                if let Some(element) = self.queue.pop() {
                    context.did(Operation::QueuePop);
                    let serial = self.take(context, &element);
                    let before = std::mem::replace(&mut last[element.key as usize], serial);
                    context.expect(before < serial, FaultKind::Order, "Queue", || {
                        format!("{serial} came out after {before}, of one thread")
                    });
                }
                if let Some(element) = self.stack.pop() {
                    context.did(Operation::StackPop);
                    self.take(context, &element);
                }
            }
            if context.one_in(8) {
                for element in self.stack.pop_all() {
                    self.take(context, &element);
                }
                context.did(Operation::StackAll);
            }
            drop(section);
        });
    }

    /// Looks at what has come out; its serial.
    fn take(&self, context: &ThreadContext, element: &Element) -> u64 {
        let serial = element.canary.loaded(context, "popped value");
        self.popped.fetch_add(serial, Relaxed);
        serial
    }

    /// When all threads have ended: looks for what is lost.
    fn close(&self, context: &ThreadContext) {
        for element in self.queue.drain().chain(self.stack.pop_all()) {
            self.popped.fetch_add(element.canary.serial(), Relaxed);
        }
        let (pushed, popped) = (self.pushed.load(Relaxed), self.popped.load(Relaxed));
        context.equal(FaultKind::Sum, "", "sum of popped values", popped, pushed);
        let seen = [self.list.read().iter().count(), self.small.read().iter().count()];
        let counted = [self.list.len(), self.small.len()];
        context.equal(FaultKind::Count, "List", "elements of lists", seen, counted);
        self.list.clear();
        self.small.clear();
        self.small.domain().barrier();
        quiescence::barrier();
        LIVE.expect(context, "", 0);
    }
}

/// Goes through a list, and looks at some elements once more at the end of the section.
fn traverse<D: DomainTag>(list: &List<Element, D>, context: &ThreadContext) {
    let reader = list.read();
    let mut kept: [Option<(&Element, u64)>; 4] = [None; 4];
    let (mut last, mut fixed) = (None, 0);
    for element in &reader {
        let serial = element.canary.loaded(context, "List");
        context.expect(last < Some(element.key), FaultKind::Order, "List", || {
            format!("key {} comes after {last:?}", element.key)
        });
        last = Some(element.key);
        fixed += u64::from(element.key.is_multiple_of(APART));
        if context.one_in(8) {
            kept[context.below(4) as usize] = Some((element, serial));
            spin(context.below(300));
        }
    }
    context.equal(FaultKind::Count, "List", "elements seen that are always there", fixed, FIXED);
    for (element, serial) in kept.into_iter().flatten() {
        element.canary.expect(context, "List", serial);
    }
}

/// Changes something in a list; in a section, now and then.
fn update<D: DomainTag>(list: &List<Element, D>, serial: u64, context: &ThreadContext) {
    let section = context.one_in(8).then(|| list.read());
    let key = context.below(FIXED) * APART;
    let extra = key + 1 + context.below(APART - 1);
    let mut updater = list.update();
    match context.below(8) {
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
