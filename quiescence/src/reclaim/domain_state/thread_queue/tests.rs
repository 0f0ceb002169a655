//! The queue alone: what a full batch is, and a go of callbacks.

use std::mem::ManuallyDrop;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use grace::Start;

use super::*;
use crate::Domain;
#[cfg(not(loom))]
use crate::common::threads::elsewhere;
use crate::gp::engine::Settings;
use crate::gp::grace_periods::Me;
use crate::reclaim::domain_state::Named;
use crate::reclaim::free::{Address, Boxed, Callback, Closure, Pending};
use crate::tuning::Tuning;

/// Adds a closure.
pub(crate) fn add<F: FnOnce() + Send + 'static>(queue: &Queue, f: F) {
    add_of(queue, 0, f);
}

fn add_of<F: FnOnce() + Send + 'static>(queue: &Queue, bytes: u64, f: F) {
    // SAFETY: a closure of that kind.
    unsafe { own(queue).add(&Closure::<F>::KIND, ManuallyDrop::new(Closure(f)), bytes) };
}

fn own(queue: &Queue) -> OwnQueue<'_> {
    // SAFETY: only one thread of a test adds.
    unsafe { OwnQueue::at(queue) }
}

/// A past error: while the worker was behind, each ninth closure asked for a grace period,
/// since callbacks that waited for one already counted as part of the batch.
#[test]
fn what_waits_for_its_grace_period_does_not_fill_the_next_batch() {
    let domain = Domain::new();
    domain.tune(Tuning { bytes_max: 8_000, ..domain.tuning() });
    let core = domain.tag().core();
    let queue = core.queues.add_of_nobody(core, Contents::Closures);
    add_of(&queue, 1_000, || ());
    assert!(own(&queue).is_full(core, BATCH), "an eighth of the limit");
    queue.close(core, Urgency::Background);
    assert!(!own(&queue).is_full(core, BATCH));
    add_of(&queue, 999, || ());
    assert!(!own(&queue).is_full(core, BATCH), "less than an eighth is open");
    add_of(&queue, 1, || ());
    assert!(own(&queue).is_full(core, BATCH));
}

/// The clock is read between callbacks of different kinds as well.
#[test]
fn callbacks_end_their_turn_when_the_time_is_up() {
    let domain = Domain::new();
    domain.tune(Tuning { run_time: Duration::ZERO, ..domain.tuning() });
    let core = domain.tag().core();
    let queue = core.queues.add_of_nobody(core, Contents::Closures);
    add(&queue, || ());
    for number in 0..999_u64 {
        let object = Box::into_raw(Box::new(number));
        // SAFETY: from a box.
        unsafe { own(&queue).add(&Address::<Boxed<u64>>::KIND, object, 0) };
    }
    queue.close(core, Urgency::Normal);
    core.grace_periods.advance(Me::NOBODY);
    assert_eq!(queue.run_some(core, 1_000), 32, "one look, after one callback and 31 boxes");
    while queue.run_some(core, 1_000) != 0 {}
    assert!(queue.is_empty());
}

/// Says when it is dropped, and panics if it is to.
struct Numbered(usize, bool, mpsc::Sender<usize>);

impl Drop for Numbered {
    fn drop(&mut self) {
        self.2.send(self.0).unwrap();
        assert!(!self.1, "number {} panics, as it should in this test", self.0);
    }
}

/// Many callbacks share one catch. Wherever one panics among them, the others run, and once.
#[test]
fn a_panic_passes_no_callback_over_and_runs_none_twice() {
    const ALL: std::ops::Range<usize> = 0..100;
    // At the edge of a catch of 32 callbacks, and several in a row.
    for panicking in [30..31, 31..32, 32..33, 30..33, 50..52, ALL] {
        for boxed in [false, true] {
            let (domain, (sender, ran)) = (Domain::new(), mpsc::channel());
            let core = domain.tag().core();
            let queue = core.queues.add_of_nobody(core, Contents::Closures);
            for number in ALL {
                let one = Numbered(number, panicking.contains(&number), sender.clone());
                if boxed {
                    let object = Box::into_raw(Box::new(one));
                    // SAFETY: from a box.
                    unsafe { own(&queue).add(&Address::<Boxed<Numbered>>::KIND, object, 0) };
                } else {
                    add(&queue, move || drop(one));
                }
            }
            queue.close(core, Urgency::Normal);
            core.grace_periods.advance(Me::NOBODY);
            while queue.run_some(core, 1_000) != 0 {}
            assert!(ran.try_iter().eq(ALL), "{panicking:?}, boxed: {boxed}");
            let panicked = domain.statistics().callbacks_panicked;
            assert_eq!(panicked, panicking.len() as u64, "boxed: {boxed}");
        }
    }
}

/// A past error: who looked for queues of ended threads waited for the lock of a shared queue,
/// under the lock of the list. So a thread that lost its CPU there held up the worker, every
/// thread that ended, and the end of the process [W-2].
#[test]
#[cfg(not(loom))]
fn who_looks_for_orphans_waits_for_no_queues_lock() {
    let domain = Arc::new(DomainState::new(Start::ZERO, Settings::DEFAULT));
    let add = |queue: OwnQueue<'_>| Pending::closure(&domain, || ()).add(queue, 0);
    domain.queues.with_shared(&domain, Contents::Closures, add);
    let orphan = domain.queues.add_of_nobody(&domain, Contents::Closures);
    // SAFETY: no other thread adds to it.
    let own = unsafe { OwnQueue::at(Arc::as_ptr(&orphan)) };
    add(own);
    own.close(&domain, Urgency::Background);
    own.mark_orphan(&domain);
    // The orphan first: it moves once its lock is free, while that of the shared one is held.
    for held in domain.queues.all().iter().rev() {
        let _inner = held.lock();
        elsewhere(|| domain.queues.forget_orphans(&domain));
    }
    domain.queues.forget_orphans(&domain);
    assert_eq!(domain.queues.all().len(), 1, "what the ended thread left has moved");
    // A past error: what had been closed was open after the move, and nobody was told.
    assert!(domain.queues.hurried.load(Relaxed), "the worker closes it again");
    assert_eq!(domain.queues.counts().queued, 2);
}

#[test]
#[cfg(not(loom))]
#[should_panic(expected = "slots name addresses")]
fn a_closure_waits_in_no_hazard_domain() {
    let domain = DomainState::hazard(None, |_| (), |_| true);
    let add = |queue: OwnQueue<'_>| Pending::closure(&domain, || ()).add(queue, 0);
    domain.queues.with_shared(&domain, Contents::Closures, add);
}

/// In a hazard domain a scan covers what was ready before it: what is added later to a queue that
/// has lost those would be taken for them, and freed while it is protected.
#[test]
#[should_panic(expected = "some run, or may run")]
fn nothing_moves_that_may_run() {
    let domain = Domain::new();
    let core = domain.tag().core();
    let [from, to] = [(); 2].map(|()| core.queues.add_of_nobody(core, Contents::Closures));
    add_of(&from, 1, || ());
    from.close(core, Urgency::Background);
    domain.synchronize();
    let mut locked = from.lock();
    locked.ripen(core);
    locked.move_to(own(&to), core);
}
