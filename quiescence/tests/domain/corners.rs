//! Deferral where something around it goes wrong or changes: values that answer nonsense, settings
//! that are changed while something waits, limits that no thread could settle, domains that end on
//! the worker.

use crate::common::*;
use quiescence::Retire;

/// As good as never.
const NEVER: Duration = Duration::from_secs(86_400);

/// Panics when it is asked for its size once more, which it is not.
struct AsksForTrouble {
    asked: AtomicUsize,
    dropped: Arc<AtomicUsize>,
}

impl Retire for AsksForTrouble {
    fn bytes(&self) -> usize {
        assert_eq!(self.asked.fetch_add(1, SeqCst), 0, "on purpose");
        64
    }
}

impl Drop for AsksForTrouble {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, SeqCst);
    }
}

/// What it was charged is known when it is run, and its own code is not called for that. A past
/// error: where there was no room it was asked twice, and could say two things.
#[test]
fn a_size_is_asked_once() {
    let (domain, dropped) = (domain_with_limit(4, 1 << 20), Arc::new(AtomicUsize::new(0)));
    for _ in 0..3 {
        let dropped = Arc::clone(&dropped);
        elsewhere(|| domain.retire(AsksForTrouble { asked: 0.into(), dropped }).unwrap());
    }
    domain.barrier();
    assert_eq!((dropped.load(SeqCst), domain.statistics().bytes_waiting), (3, 0));
    (0..4).for_each(|_| domain.try_call(|| ()).expect("there is room"));
    domain.barrier();
    set_limit(&domain, 4, 1);
    let section = domain.read();
    while domain.statistics().limit_overruns == 0 {
        let dropped = Arc::clone(&dropped);
        domain.retire(AsksForTrouble { asked: 0.into(), dropped }).expect("one goes over");
    }
    drop(section);
    domain.barrier();
    assert_eq!(domain.statistics().callbacks_panicked, 0);
}

/// Nor is it dropped at once, under the eyes of readers.
#[test]
#[cfg_attr(miri, ignore = "leaks on purpose: what panics is forgotten")]
fn a_size_that_panics_when_it_is_asked_first_drops_nothing() {
    let (domain, dropped) = (Domain::new(), Arc::new(AtomicUsize::new(0)));
    let trouble = AsksForTrouble { asked: AtomicUsize::new(1), dropped: Arc::clone(&dropped) };
    panic_of(|| domain.retire(trouble));
    assert_eq!(settled(&domain, &dropped), 0);
}

/// What has begun to wait for company under another tuning waits no longer than this one says.
#[test]
fn patience_that_is_shortened_holds_for_what_waits_already() {
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.lazy = NEVER);
    let (is_called, called) = mpsc::channel();
    domain.call(move || is_called.send(()).unwrap()).unwrap();
    tune(&domain, |tuning| tuning.lazy = Duration::ZERO);
    called.recv().unwrap();
}

/// What this thread may still add without asking it gives back, rather than to wait for itself.
#[test]
fn a_limit_below_what_the_thread_may_still_add_is_no_reason_to_wait() {
    let domain = Domain::new();
    domain.retire(Box::new(1)).unwrap();
    domain.barrier();
    set_limit(&domain, 10, 1 << 20);
    domain.call(|| ()).unwrap();
    domain.barrier();
}

/// What others may still add they do not give back while they do something else; no thread waits
/// for that.
#[test]
fn a_limit_below_what_others_may_still_add_is_no_reason_to_wait() {
    let domain = Domain::new();
    while_held(
        || domain.retire(Box::new(1)).unwrap(),
        |leave| {
            set_limit(&domain, 10, 1 << 20);
            (0..3).for_each(|_| domain.call(|| ()).unwrap());
            domain.barrier();
            leave();
        },
    );
    domain.try_call(|| ()).expect("it was given back at the end of the thread");
}

/// What a thread was allowed already, and little more.
#[test]
fn a_limit_that_is_lowered_holds_soon_for_a_thread_that_was_allowed_more() {
    // With the first object it may add thousands, in the larger one.
    for (objects_max, before, most) in [(1_000_000, 1, 100), (1_000, 100, 10)] {
        let domain = domain_with_limit(objects_max, 1 << 30);
        beside_a_section(&domain, |leave| {
            (0..before).for_each(|number| domain.retire(Box::new(number)).unwrap());
            set_limit(&domain, 10, 1 << 30);
            let is_admitted = |_: &u64| domain.try_retire(Box::new(1)).is_ok();
            let admitted = (0..1_000).take_while(is_admitted).count();
            assert!(admitted < most, "{admitted}");
            leave();
        });
        assert_all_has_run(&domain);
    }
}

/// A panic keeps a thread from settling at the end of a section. It does so at the end of the next
/// one in which it goes over the limit.
#[test]
fn what_is_unlinked_in_sections_does_not_pile_up_on_an_old_debt() {
    let domain = domain_with_limit(1, 1 << 30);
    let value = Rcu::new_in(1, domain.clone());
    panic_of(|| {
        let _guard = domain.read();
        value.store(2);
        value.store(3);
        panic!("on purpose");
    });
    let mut most = 0;
    for new in 0..rounds(1_000, 50) {
        let guard = domain.read();
        drop(value.swap(new));
        most = most.max(domain.statistics().callbacks_waiting());
        drop(guard);
    }
    assert!(most <= 5, "{most} have waited");
}

/// A domain may end on the worker, which runs what waits in it then: it must not wait for itself.
#[test]
fn a_closure_that_runs_at_the_end_of_a_domain_does_not_wait_for_the_worker() {
    let (ending, full) = (Domain::new(), domain_with_limit(1, 1 << 20));
    let (closure, entered, leave_it) = gate();
    ending.call_hurry(closure).unwrap();
    entered.recv().unwrap();
    beside_a_section(&full, |leave| {
        full.call(|| ()).unwrap(); // there is no room for another one
        let (tells, told) = mpsc::channel();
        let there = full.clone();
        ending.call(move || tells.send(there.call(|| ()).is_err()).unwrap()).unwrap();
        // The worker is in a callback of it, and has the last handle now.
        drop(ending);
        drop(leave_it);
        assert!(told.recv().unwrap(), "as in every callback");
        leave();
    });
    full.barrier();
}
