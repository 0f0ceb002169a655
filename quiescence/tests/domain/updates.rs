//! Values behind RCU pointers, cookies, callbacks.

use crate::common::*;

use quiescence::tag::DomainTag;

#[test]
fn readers_see_whole_values_and_each_is_dropped_once() {
    const UPDATES: u64 = rounds(if cfg!(debug_assertions) { 20_000 } else { 200_000 }, 60);
    let live = Arc::new(AtomicUsize::new(0));
    let domain = Domain::new();
    let value = Rcu::new_in(Counted::new(0, &live), domain.clone());
    let read = |_| {
        let (reader, mut last, value) = (domain.reader(), 0, &value);
        move || {
            let seen = value.load(&reader.read()).whole();
            assert!(seen >= last, "time does not run backwards");
            last = seen;
        }
    };
    beside(2, read, || (1..=UPDATES).for_each(|new| value.store(Counted::new(new, &live))));
    assert_eq!(settled(&domain, &live), 1);
    assert_eq!(domain.statistics().callbacks_waiting(), 0);
    drop(value);
    assert_eq!(live.load(SeqCst), 0);
}

#[test]
fn concurrent_updates_lose_nothing() {
    fn check<K: DomainTag>(domain: &Domain<K>, each: u64) {
        let live = Arc::new(AtomicUsize::new(0));
        let value = Rcu::new_in(Counted::new(0, &live), domain.clone());
        threads(4, |_| {
            for _ in 0..each {
                value.update(|old| Counted::new(old.number + 1, &live));
            }
        });
        assert_eq!(value.load(&domain.read()).number, 4 * each);
        assert!(format!("{value:?}").contains(&(4 * each).to_string()));
        assert_eq!(settled(domain, &live), 1);
    }
    check(&Domain::new(), rounds(2_000, 20));
    check(&Srcu::new().domain(), rounds(200, 8));
}

#[test]
fn compare_exchange_refuses_what_has_changed() {
    let value = Rcu::new(String::from("a"));
    let guard = quiescence::read();
    let a = value.load(&guard);
    let old = value.compare_exchange(&guard, a, Box::new("b".into())).expect("still a");
    assert_eq!(*old, "a");
    let refused = value.compare_exchange(&guard, a, Box::new("c".into())).unwrap_err();
    assert_eq!(*refused, "c");
    assert_eq!(value.load(&guard), "b");
    let old = value.update_in(&guard, |b| format!("{b}!"));
    assert_eq!(*old, "b");
    assert_eq!(a, "a", "still readable in this section");
    drop(guard);
    assert_eq!(old.into_inner(), "b");
}

#[test]
fn an_empty_place_takes_part_in_comparisons() {
    let live = Arc::new(AtomicUsize::new(0));
    let mut place = RcuOption::empty();
    let guard = quiescence::read();
    let one = Some(Box::new(Counted::new(1, &live)));
    assert!(place.compare_exchange(&guard, None, one).expect("empty").is_none());
    let two = Some(Box::new(Counted::new(2, &live)));
    let refused = place.compare_exchange(&guard, None, two).unwrap_err();
    assert_eq!(refused.as_ref().unwrap().number, 2);
    let one = place.load(&guard);
    let old = place.compare_exchange(&guard, one, refused).expect("still one").unwrap();
    assert_eq!((old.number, one.unwrap().number), (1, 1));
    let two = place.load(&guard);
    assert!(place.compare_exchange(&guard, two, None).expect("still two").is_some());
    assert!(place.compare_exchange(&guard, None, None).expect("empty").is_none());
    drop(guard);
    drop(old);
    assert!(place.get_mut().is_none());
    place.store(Some(Counted::new(3, &live)));
    assert_eq!(place.get_mut().unwrap().number, 3);
    assert_eq!(place.into_inner().unwrap().number, 3);
    let mut value = Rcu::from(Counted::new(4, &live));
    assert_eq!(value.get_mut().number, 4);
    assert_eq!(value.into_inner().number, 4);
    assert!(RcuOption::<Counted>::default().into_inner().is_none());
    quiescence::barrier();
    assert_eq!(live.load(SeqCst), 0);
}

#[test]
fn what_is_taken_out_is_read_until_the_grace_period_is_over() {
    let domain = Domain::new();
    let option = RcuOption::new_in(Some(vec![1, 2, 3]), domain.clone());
    let guard = domain.read();
    let seen = option.load(&guard).unwrap();
    let taken = option.take().unwrap();
    assert!(option.load(&guard).is_none());
    assert_eq!(*taken, *seen);
    drop(guard);
    assert_eq!(taken.into_inner(), [1, 2, 3]);
    assert!(option.take().is_none());
    assert!(option.swap(Some(vec![4])).is_none());
    option.store(None);
    assert!(option.load(&domain.read()).is_none());
    assert!(RcuOption::<u8>::empty().take().is_none());
}

#[test]
fn cookies_stand_for_full_grace_periods() {
    let domain = Domain::new();
    let later = domain.cookie();
    assert!(!domain.poll(later), "nobody has asked for it");
    domain.synchronize();
    assert!(domain.poll(later));
    let cookie = domain.start_poll();
    assert!(domain.poll(cookie), "no reader: over at once");
    beside_a_section(&domain, |leave| {
        let first = domain.start_poll();
        let second = domain.cookie();
        assert_ne!(first, second, "one in progress does not serve a request of now");
        assert!(!domain.poll(first) && !domain.poll(second));
        leave();
        domain.wait(first);
        assert!(domain.poll(first));
        domain.wait(second);
        assert!(domain.poll(second) && domain.poll(first) && domain.poll(later));
    });
}

#[test]
fn a_section_from_before_a_wrap_is_waited_for() {
    use grace::{Number, Sequence, Start};

    for (number, number_bits) in [(u32::MAX - 3, 32), (0, 2), (2, 2), (1, 1)] {
        let sequence = Sequence::after((1 << 63) - 4);
        let start = Start { sequence, number: Number(number), number_bits };
        let domain = Domain::builder().starting_at(start).build();
        let first = domain.start_poll();
        domain.wait(first);
        // The numbers come round in the midst of it, and so does the sequence.
        for round in 0..rounds(12, 6) {
            beside_a_section(&domain, |leave| {
                let cookie = domain.start_poll();
                assert!(!domain.poll(cookie), "a reader in a section, round {round} of {start:?}");
                leave();
                domain.wait(cookie);
                assert!(domain.poll(cookie));
            });
            assert!(domain.poll(first), "done stays done, round {round} of {start:?}");
        }
        // And so they do once more, beside readers and values that wait.
        let domain = Domain::builder().starting_at(start).build();
        let live = Arc::new(AtomicUsize::new(0));
        let value = Rcu::new_in(Counted::new(0, &live), domain.clone());
        let read = |_| || _ = value.load(&domain.read()).whole();
        beside(1, read, || {
            for new in 1..rounds(50, 10) {
                let old = value.swap(Counted::new(new, &live)).into_inner();
                assert_eq!(old.number, new - 1);
            }
        });
    }
}

#[test]
fn callbacks_of_a_thread_run_in_order() {
    let domain = Domain::new();
    let order = Arc::new(Mutex::new(Vec::new()));
    let guard = domain.read();
    const MANY: u64 = rounds(1_000, 50);
    for number in 0..MANY {
        let order = Arc::clone(&order);
        domain.call(move || order.lock().unwrap().push(number)).unwrap();
    }
    assert!(order.lock().unwrap().is_empty(), "a reader holds the grace period up");
    drop(guard);
    domain.barrier();
    assert!(order.lock().unwrap().iter().copied().eq(0..MANY));
}

/// Values without a drop are freed many at a time, those of a kind that stand next to each other.
#[test]
fn values_with_and_without_drops_are_each_freed_once() {
    let (domain, (sender, dropped)) = (Domain::new(), mpsc::channel());
    let number = |number: u64| {
        let sender = sender.clone();
        OnDrop(move || sender.send(number).unwrap())
    };
    let small = Rcu::new_in(0_u64, domain.clone());
    let large = Rcu::new_in([0_u64; 100], domain.clone());
    let numbered = Rcu::new_in(number(0), domain.clone());
    let guard = domain.read();
    const RUNS: u64 = rounds(60, 8);
    for run in 0..RUNS {
        (0..run).for_each(|number| small.store(number));
        (0..run / 2).for_each(|number| large.store([number; 100]));
        numbered.store(number(run + 1));
    }
    assert_eq!(domain.statistics().callbacks_run, 0);
    drop(guard);
    domain.barrier();
    let statistics = domain.statistics();
    assert_eq!(statistics.callbacks_run, (0..RUNS).map(|run| run + run / 2 + 1).sum::<u64>());
    assert_eq!((statistics.callbacks_waiting(), statistics.bytes_waiting), (0, 0));
    assert!(dropped.try_iter().eq(0..RUNS));
}

#[test]
fn a_callback_may_queue_and_synchronize() {
    let domain = Domain::new();
    let sum = Arc::new(AtomicUsize::new(0));
    let (inside, inner_sum) = (domain.clone(), Arc::clone(&sum));
    domain
        .call(move || {
            inner_sum.fetch_add(1, SeqCst);
            inside.synchronize();
            inside.call(move || _ = inner_sum.fetch_add(10, SeqCst)).unwrap();
            inside.retire(Box::new(5)).unwrap();
        })
        .unwrap();
    domain.barrier();
    assert!(sum.load(SeqCst) >= 1);
    assert_eq!(settled(&domain, &sum), 11);
}

#[test]
fn barrier_waits_for_the_callbacks_of_all_threads_dead_or_alive() {
    const EACH: usize = rounds(100, 5);
    let domain = Domain::new();
    let run = Arc::new(AtomicUsize::new(0));
    threads(8, |_| {
        (0..EACH).for_each(|_| domain.call(counting(&run)).unwrap());
    });
    assert_eq!(settled(&domain, &run), 8 * EACH);
}

#[test]
fn without_any_further_call_everything_is_freed() {
    let live = Arc::new(AtomicUsize::new(0));
    for value in 0..rounds(1_000, 50) {
        quiescence::retire(Box::new(Counted::new(value, &live))).unwrap();
    }
    // The worker does it; how soon is its own affair.
    until(|| live.load(SeqCst) == 0);
}

#[test]
fn what_is_retired_waits_for_sections_that_had_begun() {
    const OBJECTS: usize = rounds(1_000, 140);
    let domain = Domain::new();
    // A batch is an eighth of what may wait: so some are closed while the section lasts, which is
    // when the thread would run what does not wait. One of the usual size is not.
    tune(&domain, |tuning| tuning.objects_max = 2 * OBJECTS as u64);
    let live = Arc::new(AtomicUsize::new(0));
    beside_a_section(&domain, |leave| {
        // The thread looks after its queue meanwhile, again and again.
        for value in 0..OBJECTS as u64 {
            domain.retire(Box::new(Counted::new(value, &live))).unwrap();
        }
        let in_time = live.load(SeqCst);
        let batches = domain.statistics().batches;
        leave();
        assert!(batches >= 2, "{batches}: nothing was asked for that could have come too early");
        assert_eq!(in_time, OBJECTS, "freed while a section lasted that had begun before");
    });
    assert_eq!(settled(&domain, &live), 0);
}

/// It waits when 65,536 do, or near that.
#[test]
#[cfg_attr(miri, ignore = "65,536 objects wait")]
fn a_qsbr_updater_waits_at_its_limit_in_a_quiescent_state() {
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.objects_max = 65_536);
    let live = Arc::new(AtomicUsize::new(0));
    let update = || {
        let mut reader = domain.qsbr();
        for value in 0..100_000 {
            domain.retire(Box::new(Counted::new(value, &live))).unwrap();
            reader.quiescent_state();
        }
    };
    beside_a_sleeper(&domain, update, || {
        let most = live.load(SeqCst);
        assert!((48_000..=65_537).contains(&most), "the updater waits at its limit: {most}");
    });
    assert_eq!(settled(&domain, &live), 0);
}

#[test]
#[cfg_attr(miri, ignore = "100,000 objects")]
fn a_slow_closure_holds_up_no_object() {
    let domain = Domain::new();
    let live = Arc::new(AtomicUsize::new(0));
    let (finish, may_finish) = mpsc::channel::<()>();
    domain.call(move || _ = may_finish.recv()).unwrap();
    let mut most = 0;
    for value in 0..100_000 {
        domain.retire(Box::new(Counted::new(value, &live))).unwrap();
        most = most.max(live.load(SeqCst));
    }
    assert!(most < 65_536, "{most} waited behind a closure");
    drop(finish);
    assert_eq!(settled(&domain, &live), 0);
}

#[test]
fn a_section_of_another_domain_frees_nothing_either() {
    let (mine, other) = (Domain::new(), Domain::new());
    let (in_section, failed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let updater = thread::current().id();
    let retire = |count| {
        for _ in 0..count {
            let (in_section, failed) = (Arc::clone(&in_section), Arc::clone(&failed));
            let is_dropped = move || {
                if thread::current().id() == updater && in_section.load(SeqCst) {
                    failed.fetch_add(1, SeqCst);
                }
            };
            mine.retire(Box::new(OnDrop(is_dropped))).unwrap();
        }
    };
    retire(rounds(2_000, 20));
    for kind in 0..3 {
        let _guard = (kind == 0).then(|| other.read());
        let _reader = (kind == 1).then(|| other.qsbr());
        let _own = (kind == 2).then(|| mine.read()); // where nothing is waited for: there is room
        in_section.store(true, SeqCst);
        retire(rounds(20_000, 100));
        in_section.store(false, SeqCst);
    }
    mine.barrier();
    assert_eq!(failed.load(SeqCst), 0);
}

#[test]
fn the_end_of_a_domain_frees_what_waits_in_it() {
    let live = Arc::new(AtomicUsize::new(0));
    let fill = |domain: &Domain| {
        for value in 0..rounds(100, 12) {
            domain.retire(Box::new(Counted::new(value, &live))).unwrap();
            let captured = Counted::new(value, &live);
            domain.call(move || drop(captured)).unwrap();
        }
    };
    // One that the worker has not looked after, and would not for long.
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.lazy = Duration::from_secs(3_600));
    fill(&domain);
    drop(domain);
    // the worker may have had a handle just then, and ends it
    until(|| live.load(SeqCst) == 0);
    let domain = Domain::new();
    fill(&domain);
    // An object that holds its own domain is no obstacle.
    struct Holder(#[allow(dead_code)] Domain, #[allow(dead_code)] Counted);
    domain.retire(Box::new(Holder(domain.clone(), Counted::new(100, &live)))).unwrap();
    drop(domain);
    until(|| live.load(SeqCst) == 0);
}

quiescence::domain! {
    /// Declared by a type.
    pub struct Zones;
}

#[test]
fn domains_made_at_run_time_are_apart() {
    fn check<K: DomainTag>(stalled: &Domain<K>, other: &Domain<K>) {
        beside_a_section(stalled, |leave| {
            let cookie = stalled.start_poll();
            other.synchronize();
            other.synchronize_expedited();
            other.retire(Box::new(7)).unwrap();
            other.barrier();
            assert!(!stalled.poll(cookie), "its own section holds it up");
            leave();
            stalled.wait(cookie);
        });
    }
    check(&Domain::new(), &Domain::new());
    check(&Srcu::new().domain(), &Srcu::new().domain());
}

#[test]
fn declared_domains_are_apart() {
    let zones = Domain::of(Zones);
    let serial = Rcu::new_in(1, zones);
    let _global = quiescence::read();
    zones.synchronize(); // a global section is no obstacle
    let guard = zones.read();
    assert_eq!(*serial.load(&guard), 1);
    let cookie = zones.start_poll();
    assert!(!zones.poll(cookie));
    drop(guard);
    assert!(zones.poll(cookie));
    let mut qsbr = zones.qsbr();
    assert_eq!(*serial.load(&qsbr.read()), 1);
    qsbr.quiescent_state();
}
