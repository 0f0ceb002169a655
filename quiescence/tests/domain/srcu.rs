//! Sleepable domains: what their guards, grace periods and futures promise.

use crate::common::*;

use quiescence::{
    OwnedRcuRef, RcuRef, SrcuGuard, SrcuOwnedGuard,
    tag::{Section, Sleepable},
};

/// Rounds of each thread.
const EACH: u64 = rounds(200, 8);

#[test]
fn a_grace_period_waits_for_sections_that_had_begun_and_for_no_later_ones() {
    let domain = Srcu::new();
    let early = domain.read();
    let cookie = domain.start_poll();
    assert!(!domain.poll(cookie), "it has looked, and flipped the indexes");
    let late = domain.read();
    assert_eq!(domain.statistics().readers, 2);
    drop(early);
    assert_eq!(domain.statistics().readers, 1);
    domain.wait(cookie);
    assert!(domain.poll(cookie));
    assert!(domain.statistics().grace_periods >= 1);
    drop(late);
}

/// The counts of one index are summed in two parts with a heavy fence between, twice a grace
/// period: a fence of the updater's alone leaves the readers' increments unordered, which a CPU
/// shows seldom.
#[test]
fn each_look_at_the_counts_has_a_heavy_fence() {
    let domain = Srcu::new();
    drop(domain.read());
    for _ in 0..3 {
        let before = domain.statistics();
        domain.synchronize();
        let after = domain.statistics();
        let grace_periods = after.grace_periods - before.grace_periods;
        assert!(grace_periods >= 1);
        assert!(after.heavy_fences - before.heavy_fences >= 2 * grace_periods, "{after:?}");
    }
}

#[test]
fn only_what_was_called_expedited_is_counted_so() {
    let domain = Srcu::new();
    domain.synchronize();
    block_on(domain.synchronize_async());
    domain.wait(domain.start_poll());
    let cookie = domain.cookie();
    assert!(!domain.poll(cookie), "nobody has asked for it");
    block_on(domain.wait_async(cookie));
    assert!(domain.poll(cookie));
    assert_eq!(domain.statistics().grace_periods_expedited, 0);
    domain.synchronize_expedited();
    assert_eq!(domain.statistics().grace_periods_expedited, 1);
}

#[test]
fn what_is_retired_or_called_is_done_after_a_grace_period() {
    let domain = Srcu::new();
    let done = Arc::new(AtomicUsize::new(0));
    let guard = domain.read();
    let counted = Dropped(done.clone());
    domain.retire(Box::new(counted)).expect("there is room");
    domain.call(counting(&done)).expect("there is room");
    assert_eq!(done.load(Relaxed), 0, "the section has not ended");
    drop(guard);
    domain.barrier();
    assert_eq!(done.load(Relaxed), 2);
}

/// What a thread is over the limit of a sleepable domain it does not wait for where its section of
/// another one ends: it may be in a section of the first, of which no thread knows.
#[test]
fn the_end_of_a_section_does_not_wait_for_a_sleepable_domain() {
    let domain = Srcu::new();
    set_limit(&domain, 1, u64::MAX);
    let early = domain.read();
    domain.retire(Box::new(1)).expect("there is room");
    let other = quiescence::read();
    domain.retire(Box::new(2)).expect("one goes over the limit in a section");
    let (section, sleeps) = (domain.read(), domain.statistics().sleeps);
    drop(other);
    assert_eq!(domain.statistics().sleeps, sleeps, "nothing was waited for");
    let refused = domain.try_retire(Box::new(3)).expect_err("it is full");
    drop((early, section));
    domain.barrier();
    domain.retire(refused.into_inner()).expect("there is room");
}

/// Where it cannot know of sections it must not wait in them either.
#[test]
fn try_store_never_waits() {
    let domain = Srcu::new();
    tune(&domain, |tuning| tuning.objects_max = 2);
    let value = Rcu::new_in(0, domain.domain());
    let guard = domain.read();
    let stored = (1..10).take_while(|new| value.try_store(*new).is_ok()).count();
    assert!((1..=2).contains(&stored), "{stored}");
    assert_eq!(value.try_store(10).map_err(AtLimit::into_inner), Err(10));
    drop(guard);
    value.store(11); // waits
    assert_eq!(*value.load(&domain.read()), 11);
}

#[test]
fn the_end_of_a_domain_runs_what_waits() {
    let done = Arc::new(AtomicUsize::new(0));
    let domain = Srcu::new();
    domain.retire(Box::new(Dropped(done.clone()))).expect("there is room");
    drop(domain);
    assert_eq!(done.load(Relaxed), 1);
}

/// An updater frees at once what it waited for; readers look for the marks of that.
#[test]
fn nobody_sees_what_was_freed() {
    static DOMAIN: Srcu = Srcu::named("nobody_sees_what_was_freed");
    let value = Rcu::new_in(AtomicU64::new(7), DOMAIN.domain());
    let read = |_| {
        || {
            let guard = DOMAIN.read();
            let seen = value.load(&guard);
            (0..20).for_each(|_| assert_eq!(seen.load(Relaxed), 7));
        }
    };
    beside(4, read, || {
        for _ in 0..EACH {
            let old = value.swap(AtomicU64::new(7));
            DOMAIN.synchronize_expedited();
            let old = old.into_box();
            old.store(0xdead, Relaxed);
        }
    });
}

#[test]
fn everything_may_be_sent() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<SrcuGuard<'static>>();
    is_sync::<SrcuGuard<'static>>();
    is_send::<SrcuOwnedGuard>();
    is_send::<RcuRef<'static, u64, Sleepable>>();
    is_sync::<RcuRef<'static, str, Sleepable>>();
    is_send::<OwnedRcuRef<str>>();
    is_sync::<OwnedRcuRef<u64>>();
    fn is_sent(_: impl Send) {}
    is_sent(Srcu::new().synchronize_async());
    is_send::<Domain<Sleepable>>();
    is_sync::<Srcu>();
}

#[test]
fn a_domain_may_be_moved_while_it_is_used() {
    let domain = Srcu::new();
    domain.call(|| ()).expect("there is room");
    let _started = domain.start_poll();
    let moved = Box::new(domain);
    let guard = moved.read();
    drop(guard);
    moved.barrier();
}

#[test]
fn code_that_is_generic_over_domains_takes_it() {
    fn length<K: quiescence::tag::DomainTag, S: Section<K>>(
        text: &Rcu<String, K>,
        section: &S,
    ) -> usize {
        text.load(section).len()
    }
    let domain = Srcu::new();
    let text = Rcu::new_in(String::from("abc"), domain.domain());
    assert_eq!(length(&text, &domain.read()), 3);
    assert_eq!(length(&text, &domain.domain().read()), 3);
}

// ----
// futures --------------------------------------------------------------------------------------

#[test]
fn a_task_waits_for_the_sections_that_had_begun() {
    static DOMAIN: Srcu = Srcu::new();
    let guard = DOMAIN.read();
    let mut early = pin!(DOMAIN.synchronize_async());
    let mut context = no_context();
    assert!(early.as_mut().poll(&mut context).is_pending());
    let (ready, entered) = mpsc::channel();
    let task = thread::spawn(move || {
        ready.send(()).unwrap();
        block_on(DOMAIN.synchronize_async())
    });
    entered.recv().unwrap();
    assert!(early.as_mut().poll(&mut context).is_pending());
    drop(guard);
    task.join().unwrap();
    let ((), _) = block_on(early);
}

/// A waker may run its task on the spot, and that may wait itself.
#[test]
fn a_waker_may_wait_for_a_grace_period() {
    static DOMAIN: Srcu = Srcu::new();
    static WAITS: AtomicUsize = AtomicUsize::new(0);
    let waker = waker_of(|| {
        DOMAIN.synchronize();
        WAITS.fetch_add(1, Release);
    });
    let guard = DOMAIN.read();
    let mut future = pin!(DOMAIN.synchronize_async());
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(guard);
    DOMAIN.synchronize();
    until(|| WAITS.load(Acquire) != 0);
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

/// The thread that drives may leave before the others' grace period.
#[test]
fn tasks_and_threads_wait_side_by_side() {
    let domain = Srcu::new();
    threads(8, |thread| {
        for _ in 0..EACH {
            let guard = domain.read();
            if thread % 2 == 0 {
                drop(guard);
                domain.synchronize();
            } else {
                let waits = domain.synchronize_async();
                drop(guard);
                block_on(waits);
            }
        }
    });
}
