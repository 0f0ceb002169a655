//! Bounded memory: what happens near the limit, at it, and where no thread may wait.

use crate::common::*;

fn small() -> Domain {
    domain_with_limit(8, 1 << 30)
}

#[test]
fn try_retire_hands_the_object_back_at_the_limit() {
    let (domain, live) = (small(), Arc::<AtomicUsize>::default());
    beside_a_section(&domain, |_| {
        let mut refused = Vec::new();
        for _ in 0..20 {
            refused.extend(domain.try_retire(Box::new(Counted::new(0, &live))).err());
        }
        assert_eq!(refused.len(), 12);
        assert_eq!(domain.statistics().limit_refusals, 12);
        assert!(domain.try_call(|| ()).is_err(), "closures count as well");
        let objects: Vec<Box<Counted>> = refused.drain(6..).map(AtLimit::into_inner).collect();
        assert_eq!(live.load(SeqCst), 20, "nothing is lost, nothing is dropped");
        drop(objects);
        drop(refused);
        assert_eq!(live.load(SeqCst), 14, "readers may see those that were not taken back");
    });
    assert_eq!(settled(&domain, &live), 0);
    assert!(domain.try_retire(Box::new(Counted::new(0, &live))).is_ok(), "there is room again");
}

#[test]
fn bytes_are_bounded_as_objects_are() {
    let domain = domain_with_limit(1 << 20, 1 << 20);
    beside_a_section(&domain, |_| {
        for _ in 0..4 {
            domain.try_retire(vec![0_u8; (1 << 18) - 40]).unwrap(); // and five words of the library's
        }
        assert_eq!(domain.statistics().bytes_waiting, 1 << 20);
        assert!(domain.try_retire(Box::new([0_u8; 64])).is_err());
    });
    assert_all_has_run(&domain);
    domain.retire_sized((), 1 << 19).unwrap();
    assert_eq!(domain.statistics().bytes_waiting, (1 << 19) + 24, "as it was told, and words");
    domain.barrier();
    domain.retire(vec![0_u8; 1 << 24]).unwrap(); // larger than the limit: it waits alone
    assert_all_has_run(&domain);
}

/// Of plain memory it frees many at a time, for which it needs as much room.
#[test]
fn a_thread_beside_no_reader_hardly_waits_at_a_small_limit() {
    let domain = domain_with_limit(200, 1 << 30);
    let rcu = Rcu::new_in(0, domain.clone());
    (0..rounds(20_000, 1_000)).for_each(|number| rcu.store(number));
    let waits = domain.statistics().limit_waits;
    assert!(waits < 20, "{waits}");
}

#[test]
fn an_updater_waits_at_the_limit_and_exceeds_it_by_no_object() {
    let (domain, live) = (small(), Arc::<AtomicUsize>::default());
    let update = || {
        let mut most = 0;
        for _ in 0..rounds(1_000, 20) {
            let object = Counted::new(0, &live);
            most = most.max(live.load(SeqCst));
            domain.retire(Box::new(object)).unwrap();
        }
        // One more is in the hands of the thread that waits.
        assert!(most <= 9, "{most}");
    };
    beside_a_sleeper(&domain, update, || ());
    assert!(domain.statistics().limit_waits > 0);
    assert_eq!(settled(&domain, &live), 0);
}

#[test]
fn in_a_section_one_object_goes_over_the_limit_and_is_paid_for_when_it_ends() {
    let (domain, live) = (small(), Arc::<AtomicUsize>::default());
    let _busy = occupy_the_worker();
    let guard = domain.read();
    for _ in 0..9 {
        domain.retire(Box::new(Counted::new(0, &live))).expect("eight fit, and one goes over");
    }
    let refused = domain.retire(Box::new(Counted::new(0, &live))).unwrap_err();
    assert!(refused.to_string().contains("outside of sections"), "{refused}");
    drop(refused.into_inner());
    let inner = domain.read();
    drop(guard);
    assert_eq!(live.load(SeqCst), 9, "still in a section");
    drop(inner);
    let left = live.load(SeqCst);
    assert!(left <= 8, "waited for, and dropped, until the limit was kept: {left} are left");
}

#[test]
#[cfg_attr(miri, ignore = "the worker comes first, where time is counted in instructions")]
fn the_debt_is_paid_when_the_last_section_of_whatever_domain_ends() {
    let (domain, other, live) = (small(), Domain::new(), Arc::<AtomicUsize>::default());
    let _busy = occupy_the_worker();
    let outer = other.read();
    for _ in 0..9 {
        domain.retire(Box::new(Counted::new(0, &live))).unwrap();
    }
    drop(domain.read());
    assert_eq!(live.load(SeqCst), 9, "it is in a section of the other domain");
    drop(outer);
    assert!(live.load(SeqCst) <= 8, "paid");
}

#[test]
fn a_store_in_a_section_is_refused_before_anything_is_changed() {
    let domain = small();
    let value = Rcu::new_in(0, domain.clone());
    let guard = domain.read();
    for number in 1..=9 {
        value.store(number);
    }
    assert_eq!(value.try_store(10).map_err(AtLimit::into_inner), Err(10));
    assert_eq!(*value.load(&guard), 9);
    let message = panic_of(|| value.store(11));
    assert!(message.contains("try_store()"), "{message}");
    panic_of(|| value.update(|old| old + 1));
    assert_eq!(*value.load(&guard), 9);
    drop(guard);
    value.store(12);
    assert_eq!(value.into_inner(), 12);
}

/// Retires more when it is dropped.
struct Family {
    domain: Domain,
    children: usize,
    generations: usize,
    counts: Counts,
    _counted: Counted,
}

/// How many there are, and the most there ever were.
type Counts = [Arc<AtomicUsize>; 2];

impl Family {
    fn new(domain: &Domain, children: usize, generations: usize, counts: &Counts) -> Self {
        let [live, most] = counts;
        let _counted = Counted::new(0, live);
        most.fetch_max(live.load(SeqCst), SeqCst);
        Self { domain: domain.clone(), children, generations, counts: counts.clone(), _counted }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        if self.generations != 0 {
            for _ in 0..self.children {
                let Self { domain, children, generations, counts, .. } = self;
                let child = Self::new(domain, *children, *generations - 1, counts);
                domain.retire(Box::new(child)).unwrap();
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too slow: 364 objects, each of which waits")]
fn drops_that_retire_more_stay_within_the_limit() {
    let (domain, counts) = (small(), Counts::default());
    // Three children each, five generations: 364 objects, and room for eight.
    domain.retire(Box::new(Family::new(&domain, 3, 5, &counts))).unwrap();
    let [live, most] = &counts;
    while live.load(SeqCst) != 0 {
        domain.barrier();
    }
    // Eight that wait; and of each generation one that is being dropped, and its child.
    assert!(most.load(SeqCst) <= 8 + 2 * 6, "{most:?}");
}

#[test]
fn a_chain_of_drops_does_not_use_up_the_stack() {
    let (domain, counts) = (domain_with_limit(1, 1 << 30), Counts::default());
    for _ in 0..2 {
        let first = Family::new(&domain, 1, rounds(20_000, 60), &counts);
        domain.retire(Box::new(first)).unwrap();
    }
    while counts[0].load(SeqCst) != 0 {
        domain.barrier();
    }
}

#[test]
fn closures_that_queue_themselves_find_the_room_they_had() {
    const AGAIN: usize = rounds(100, 10);
    fn again(domain: Domain, left: usize, run: Arc<AtomicUsize>) {
        run.fetch_add(1, SeqCst);
        if left != 0 {
            let next = domain.clone();
            domain.call(move || again(next, left - 1, run)).expect("the room it had");
        }
    }
    let (domain, run) = (small(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..8 {
        let (inside, run) = (domain.clone(), Arc::clone(&run));
        domain.call(move || again(inside, AGAIN, run)).unwrap();
    }
    while run.load(SeqCst) != 8 * (AGAIN + 1) {
        domain.barrier();
    }
    assert_eq!(domain.statistics().callbacks_waiting(), 0);
}

#[test]
fn in_a_callback_a_second_closure_for_one_is_refused_at_the_limit() {
    let domain = small();
    let refused = Arc::new(AtomicUsize::new(0));
    for _ in 0..8 {
        let (inside, refused) = (domain.clone(), Arc::clone(&refused));
        domain
            .call(move || {
                for _ in 0..2 {
                    refused.fetch_add(usize::from(inside.call(|| ()).is_err()), SeqCst);
                }
            })
            .unwrap();
    }
    domain.barrier();
    assert!(refused.load(SeqCst) > 0, "sixteen for eight");
    assert_all_has_run(&domain);
}

#[test]
fn closures_wait_for_room_until_the_worker_has_made_some() {
    let (domain, run) = (small(), Arc::new(AtomicUsize::new(0)));
    const MANY: usize = rounds(1_000, 50);
    (0..MANY).for_each(|_| domain.call(counting(&run)).unwrap());
    assert_eq!(settled(&domain, &run), MANY);
}

#[test]
fn a_thread_that_ends_leaves_its_stock_and_what_waits_to_others() {
    let (domain, live) = (domain_with_limit(1_000, 1 << 30), Arc::<AtomicUsize>::default());
    for _ in 0..rounds(200, 5) {
        elsewhere(|| domain.retire(Box::new(Counted::new(0, &live))).unwrap());
    }
    assert_eq!(settled(&domain, &live), 0);
    beside_a_section(&domain, |_| {
        let admitted = (0..2_000).take_while(|_| domain.try_retire(Box::new(1)).is_ok()).count();
        assert_eq!(admitted, 1_000, "all of the limit is there");
    });
}

#[test]
fn a_thread_locals_destructor_may_retire_at_the_limit() {
    let (domain, live) = (small(), Arc::<AtomicUsize>::default());
    let (inside, counted) = (domain.clone(), Arc::clone(&live));
    elsewhere(move || {
        // Made before the library's own thread-locals, and so destroyed after them.
        let (last, objects) = (inside.clone(), move || Counted::new(0, &counted));
        at_thread_end(move || (0..100).for_each(|_| last.retire(Box::new(objects())).unwrap()));
        inside.retire(Box::new(1)).unwrap();
    });
    assert_eq!(settled(&domain, &live), 0);
}

/// The reads of others go on while an updater waits at its limit.
#[test]
fn readers_do_not_notice_the_limit() {
    let domain = small();
    let read = AtomicUsize::new(0);
    let look = |_| {
        || {
            drop(domain.read());
            read.fetch_add(1, SeqCst);
        }
    };
    let update = || (0..20).for_each(|number| domain.retire(Box::new(number)).unwrap());
    beside(1, look, || {
        beside_a_sleeper(&domain, update, || {
            let before = read.load(SeqCst);
            until(|| read.load(SeqCst) >= before + rounds(10_000, 50));
        });
    });
}

#[test]
fn a_size_beyond_all_reason_harms_nobody() {
    let domain = small();
    domain.retire_sized((), 1 << 50).unwrap();
    domain.barrier();
    domain.retire_sized((), usize::MAX).unwrap();
    assert_all_has_run(&domain);
    domain.try_retire(Box::new(1)).expect("what was charged was given back");
}

/// A panic in a section keeps its thread from settling then; it does so before it ends.
#[test]
fn threads_that_panic_in_debt_pay_before_they_end() {
    let (domain, live) = (domain_with_limit(1, 1 << 30), Arc::<AtomicUsize>::default());
    let _busy = occupy_the_worker();
    for _ in 0..10 {
        let (inside, live) = (domain.clone(), Arc::clone(&live));
        let panicked = thread::spawn(move || {
            let _guard = inside.read();
            for _ in 0..2 {
                if let Err(refused) = inside.retire(Box::new(Counted::new(0, &live))) {
                    drop(refused.into_inner());
                }
            }
            panic!("on purpose");
        });
        panicked.join().unwrap_err();
    }
    let waiting = live.load(SeqCst);
    assert!(waiting <= 1, "{waiting} wait");
}

/// The thread that joins a thread may hold a lock that the thread's closures take.
#[test]
fn a_thread_that_ends_in_debt_of_a_closure_does_not_run_it() {
    let domain = domain_with_limit(1, 1 << 30);
    let lock = Arc::new(Mutex::new(0));
    let held = lock.lock().unwrap();
    elsewhere(|| {
        let _guard = domain.read();
        for _ in 0..2 {
            let taken = Arc::clone(&lock);
            domain.call(move || *taken.lock().unwrap() += 1).expect("one fits, and one goes over");
        }
    });
    drop(held);
    domain.barrier();
    assert_eq!(*lock.lock().unwrap(), 2);
}
