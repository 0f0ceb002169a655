//! Panics in the middle of what the library does: in a barrier that had marks on their way, in the
//! closure that a runner of a callback queue calls.

use crate::common::*;
use quiescence::callback_queue::{CallbackQueue, Left, Wakes};
use quiescence::collections::{HashMap, IdMap, List};
use quiescence::hazard::HazardDomain;
use quiescence::sync::{BigRef, BigRefHandle, Latch, SeqLock};
use quiescence::tag::Sleepable;
use quiescence::{Guard, OwnedRcuRef, Qsbr, QsbrGuard, RcuRef, Reader, Unlinked};
use std::hash::RandomState;
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::heads::push;

/// Nothing comes for so long: the runner leaves.
const IDLE: Option<Duration> = Some(Duration::ZERO);

/// A domain that lives for ever, and in which the worker waits for company for ever.
pub(super) fn patient_domain() -> &'static Domain {
    let domain = lasting_domain();
    tune(domain, |tuning| tuning.lazy = Duration::MAX);
    domain
}

thread_local! {
    static KEPT: RefCell<Vec<Guard<'static, Private>>> = const { RefCell::new(Vec::new()) };
}

/// Begins a section on the calling thread, and keeps it until `let_go`.
pub(super) fn keep_section(domain: &'static Domain) {
    let guard = domain.read();
    KEPT.with_borrow_mut(|kept| kept.push(guard));
}

pub(super) fn let_go() {
    drop(KEPT.take());
}

/// A barrier that panics, of a domain with a callback queue. No thread attends to that afterwards,
/// and its heads are run when it ends, with the marks.
fn barrier_panics(domain: &Domain) {
    let (queue, ran) = (CallbackQueue::new(domain, Wakes::Runner), Arc::<AtomicUsize>::default());
    let _ = push(&queue, counting(&ran));
    panic_of(|| domain.barrier());
    let_go();
    assert!(!queue.is_attended());
    drop(queue);
    assert_eq!(settled(domain, &ran), 1);
    assert_eq!(domain.statistics().callbacks_waiting(), 0);
}

/// A callback of the barrier's had kept a section, so the barrier would have waited for itself. Its
/// marks were freed while they stood in the callback queues, and the one that it ran itself was
/// attended to for ever.
#[test]
fn a_barrier_that_panics_in_a_callback_queue_leaves_no_mark_behind() {
    let domain = patient_domain();
    domain.call(|| keep_section(domain)).unwrap();
    barrier_panics(domain);
}

/// The same where it panics before it comes to the callback queues: over the grace period of what
/// was retired later than the object that kept the section.
#[test]
fn a_barrier_that_panics_in_the_queues_leaves_no_mark_behind() {
    let domain = patient_domain();
    tune(domain, |tuning| tuning.objects_max = 160); // 20 are a batch
    while domain.statistics().grace_periods == 0 {
        domain.retire(Box::new(OnDrop(|| keep_section(domain)))).unwrap();
    }
    assert_eq!(domain.statistics().callbacks_run, 0);
    tune(domain, |tuning| tuning.objects_max = 1_000);
    domain.retire(Box::new(0)).unwrap();
    barrier_panics(domain);
}

/// The barrier waited for the very thread that had called it.
#[test]
fn a_barrier_after_a_batch_does_not_wait_for_its_own_thread() {
    let (domain, ran) = (Domain::new(), Arc::<AtomicUsize>::default());
    let queue = CallbackQueue::new(&domain, Wakes::Runner);
    let _ = push(&queue, counting(&ran));
    let mut batches = 0;
    let left = queue.attend_and(IDLE, || {
        batches += 1;
        if batches == 1 {
            let _ = push(&queue, counting(&ran));
            assert_eq!(settled(&domain, &ran), 2);
            assert!(queue.is_attended_here());
            assert_eq!(queue.attend(IDLE), Ok(Left::Taken));
        }
    });
    assert_eq!((left, batches), (Ok(Left::Idle), 1));
    assert!(!queue.is_attended());
}

/// The runner waited for itself.
#[test]
fn a_section_that_is_kept_after_a_batch_ends_the_runner() {
    let (domain, ran) = (patient_domain(), Arc::<AtomicUsize>::default());
    let queue = CallbackQueue::new(domain, Wakes::Runner);
    let _ = push(&queue, counting(&ran));
    let keeps = || {
        keep_section(domain);
        let _ = push(&queue, counting(&ran));
    };
    panic_of(|| queue.attend_and(IDLE, keeps).is_ok());
    let_go();
    assert!(!queue.is_attended());
    elsewhere(|| domain.barrier());
    assert_eq!(ran.load(SeqCst), 2);
}

/// A section that a panic ends waits for nothing, so what had gone over the limit in it was not
/// settled. Nor was it later: from then on each object was refused, and each store panicked, in
/// whatever section of the thread, for ever if nothing else closed the thread's queue.
#[test]
fn what_a_panic_left_over_the_limit_is_settled_when_a_later_section_ends() {
    let domain = &Domain::new();
    tune(domain, |tuning| (tuning.lazy, tuning.objects_max) = (Duration::MAX, 1));
    // What is refused is taken back: dropped there, it would go over the limit, too.
    let retires = || domain.retire(Box::new(1)).map_err(AtLimit::into_inner).is_ok();
    let cell = Rcu::new_in(0, domain.clone());
    let stores = || catch_unwind(AssertUnwindSafe(|| cell.store(1))).is_ok();
    for update in [&retires as &dyn Fn() -> bool, &stores] {
        // As much as may wait.
        while domain.try_retire(Box::new(0)).map_err(AtLimit::into_inner).is_ok() {}
        let in_section = || {
            let _guard = domain.read();
            update()
        };
        let said = panic_of(|| {
            let _guard = domain.read();
            panic!("one over the limit: {}", update());
        });
        assert_eq!(said, "one over the limit: true");
        assert!(!in_section(), "it is over the limit still");
        assert!(in_section(), "settled when the section before ended");
    }
}

/// Only what is in the global domain could be used in `catch_unwind` without `AssertUnwindSafe`,
/// though a panic leaves the others whole as well: their states have cells within. So had slots.
#[test]
fn a_domain_made_at_run_time_was_not_unwind_safe_nor_what_it_protects() {
    fn unwinds<T: UnwindSafe + RefUnwindSafe>() {}
    unwinds::<(Domain, Domain<Sleepable>, HazardDomain, AtLimit)>();
    unwinds::<(Rcu<u64, Private>, RcuOption<u64, Sleepable>, Unlinked<u64, Private>)>();
    unwinds::<(HashMap<u64, u64, RandomState, Private>, IdMap<u64, Sleepable>)>();
    unwinds::<(List<u64, Private>, Reader, Qsbr<Private>, QsbrGuard<'_>)>();
    unwinds::<(Guard<'_>, RcuRef<'_, u64>, RcuRef<'_, u64, Private>, OwnedRcuRef<u64>)>();
    unwinds::<(SeqLock<u64>, Latch<u64>, BigRef<u64>, BigRefHandle<u64>)>();
}
