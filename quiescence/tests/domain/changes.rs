//! Waiting for the next value of a cell: `Version`, `wait_changed`, `changed`, `poll_changed`.

use crate::common::*;

use quiescence::Version;
use quiescence::tag::{DomainTag, Global, Sleepable};

/// Polls for a task that counts the times that it is woken.
fn is_changed<T: Send + Sync, K: DomainTag>(
    cell: &RcuOption<T, K>,
    version: &mut Version,
    task: &Arc<Woken>,
) -> bool {
    cell.poll_changed(version, &mut Context::from_waker(&task.clone().into())).is_ready()
}

/// How often an update wakes a task that waits; and whether there is one change then.
fn wakes<K: DomainTag>(cell: &RcuOption<u64, K>, update: impl FnOnce()) -> usize {
    let (mut version, task) = (cell.version(), Arc::new(Woken::default()));
    assert!(!is_changed(cell, &mut version, &task));
    update();
    let woken = task.0.load(Acquire);
    assert_eq!(is_changed(cell, &mut version, &task), woken != 0, "it has ended, if woken");
    assert!(!is_changed(cell, &mut version, &task), "it is a new one");
    woken
}

/// The ways to update a place that has a value.
fn updates<K: DomainTag>() -> Vec<fn(&RcuOption<u64, K>)> {
    vec![
        |cell| cell.store(Some(1)),
        |cell| cell.try_store(None).unwrap(),
        |cell| drop(cell.swap(Some(1))),
        |cell| drop(cell.take()),
        |cell| block_on(cell.store_async(Some(1))).0,
        |cell| {
            let section = cell.domain().read();
            let old = cell.compare_exchange(&section, cell.load(&section), Some(Box::new(1)));
            drop(section);
            drop(old);
        },
    ]
}

fn each_update_is_told<K: DomainTag>(cell: &RcuOption<u64, K>) {
    for (number, update) in updates().into_iter().enumerate() {
        assert_eq!(wakes(cell, || update(cell)), 1, "update {number}");
    }
    cell.store(Some(1));
    let refused = || {
        let section = cell.domain().read();
        cell.compare_exchange(&section, None, None).unwrap_err();
    };
    assert_eq!(wakes(cell, refused), 0, "nothing has changed");
}

#[test]
fn each_update_ends_a_wait_once() {
    each_update_is_told::<Global>(&RcuOption::new(0));
    each_update_is_told::<Sleepable>(&RcuOption::new_in(Some(0), Srcu::new().domain().clone()));
    // Where no room is left, too.
    each_update_is_told(&RcuOption::new_in(Some(0), domain_with_limit(0, 0)));
}

/// Of a value that is always there.
fn each_update_of_a_value_is_told<K: DomainTag>(cell: &Rcu<u64, K>) {
    let updates: [fn(&Rcu<u64, K>); 7] = [
        |cell| cell.store(1),
        |cell| cell.try_store(1).unwrap(),
        |cell| drop(cell.swap(1)),
        |cell| cell.update(|old| old + 1),
        |cell| {
            let section = cell.domain().read();
            let old = cell.update_in(&section, |old| old + 1);
            drop(section);
            drop(old);
        },
        |cell| block_on(cell.store_async(1)).0,
        |cell| block_on(cell.update_async(|old| old + 1)).0,
    ];
    for (number, update) in updates.into_iter().enumerate() {
        let mut version = cell.version();
        assert!(cell.poll_changed(&mut version, &mut no_context()).is_pending());
        update(cell);
        assert!(cell.poll_changed(&mut version, &mut no_context()).is_ready(), "update {number}");
        cell.update(|old| old + 1);
        cell.wait_changed(&mut version);
    }
}

#[test]
fn each_update_of_a_value_ends_a_wait() {
    each_update_of_a_value_is_told(&Rcu::new(0));
    each_update_of_a_value_is_told(&Rcu::sleepable(0));
}

/// What came between the version and the wait counts, however often, and as one change.
#[test]
fn a_change_before_the_wait_is_not_lost() {
    let cell = Rcu::new(0);
    let mut version = cell.version();
    (1..=3).for_each(|value| cell.store(value));
    cell.wait_changed(&mut version);
    assert_eq!(*cell.read(), 3);
    assert!(cell.poll_changed(&mut version, &mut no_context()).is_pending());
    cell.store(4);
    assert_eq!(block_on(cell.changed(&mut version)).1, 0, "it need not be woken");
}

/// A comparison of addresses would take it for the old one.
#[test]
fn a_value_at_the_address_of_the_old_one_is_a_change() {
    let domain = Domain::new();
    let cell = Rcu::new_in(0_u64, domain.clone());
    let address = |cell: &Rcu<u64, Private>| ptr::from_ref(&*cell.read()).addr();
    let (mut version, first) = (cell.version(), address(&cell));
    let comes_back = (1..1_000).any(|value| {
        cell.store(value);
        domain.barrier();
        address(&cell) == first
    });
    assert!(comes_back || cfg!(miri), "the allocator never gives an address again");
    assert!(cell.poll_changed(&mut version, &mut no_context()).is_ready());
}

/// Threads and tasks that wait see the last of many updates, by several threads.
#[test]
fn each_waiter_comes_to_the_last_value() {
    const EACH: u64 = rounds(20_000, 20);
    let cell = Rcu::new(0_u64);
    let wait_for = |last: u64, waits: &dyn Fn(&mut Version)| {
        let (mut version, mut seen) = (cell.version(), 0);
        while seen != last {
            let value = *cell.read();
            assert!(value >= seen, "time runs backwards");
            seen = value;
            if seen != last {
                waits(&mut version);
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| wait_for(2 * EACH, &|version| cell.wait_changed(version)));
        scope.spawn(|| wait_for(2 * EACH, &|version| block_on(cell.changed(version)).0));
        scope.spawn(|| wait_for(2 * EACH, &|version| *version = cell.version()));
        for _ in 0..2 {
            scope.spawn(|| (0..EACH).for_each(|_| cell.update(|value| value + 1)));
        }
    });
}

#[test]
fn a_dropped_future_leaves_no_waker_and_loses_no_change() {
    let cell = Rcu::new(0);
    let (mut version, task) = (cell.version(), Arc::new(Woken::default()));
    let waker = Waker::from(Arc::clone(&task));
    for _ in 0..2 {
        let mut future = Box::pin(cell.changed(&mut version));
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(Arc::strong_count(&task), 3, "the table has one");
        drop(future);
        assert_eq!(Arc::strong_count(&task), 2);
    }
    cell.store(1);
    assert_eq!(task.0.load(Acquire), 0, "a task is woken for a future that is gone");
    assert_eq!(block_on(cell.changed(&mut version)).1, 0, "the change is lost");
}

#[test]
fn a_dropped_version_leaves_nothing_behind() {
    let (cell, task) = (RcuOption::new(0), Arc::new(Woken::default()));
    let mut version = cell.version();
    assert!(!is_changed(&cell, &mut version, &task));
    drop(version);
    assert_eq!(Arc::strong_count(&task), 1);
    cell.store(Some(1));
    assert_eq!(task.0.load(Acquire), 0);
}

/// It stands beside an `Arc`, and may be older than the place where its cell is now.
#[test]
fn a_version_of_another_place_is_an_old_one() {
    let cell = Rcu::new(0);
    let mut version = cell.version();
    let cell = Box::new(cell); // elsewhere
    cell.wait_changed(&mut version);
    assert!(cell.poll_changed(&mut version, &mut no_context()).is_pending());
    let other = RcuOption::new(0);
    other.wait_changed(&mut version);
    drop(cell);
    other.store(None);
    other.wait_changed(&mut version);
}

/// Some of the cells share a slot of the table.
#[test]
fn an_update_ends_no_version_of_another_cell() {
    let cells: Vec<_> = (0..257).map(RcuOption::new).collect();
    let mut versions: Vec<_> = cells.iter().map(RcuOption::version).collect();
    let task = Arc::new(Woken::default());
    for (cell, version) in cells.iter().zip(&mut versions) {
        assert!(!is_changed(cell, version, &task));
    }
    for (number, cell) in cells.iter().enumerate() {
        cell.store(None);
        assert_eq!(task.0.load(Acquire), number + 1, "cell {number}");
        assert!(is_changed(cell, &mut versions[number], &task), "cell {number}");
    }
}

/// Another value is in the place then, which was not stored there.
#[test]
fn a_cell_that_is_overwritten_or_dropped_ends_its_versions() {
    let mut place = Some(RcuOption::new(0));
    let task = Arc::new(Woken::default());
    let mut version = place.as_ref().unwrap().version();
    assert!(!is_changed(place.as_ref().unwrap(), &mut version, &task));
    *place.as_mut().unwrap() = RcuOption::new(1);
    assert_eq!(task.0.load(Acquire), 1);
    assert!(is_changed(place.as_ref().unwrap(), &mut version, &task), "the change is lost");
    assert!(!is_changed(place.as_ref().unwrap(), &mut version, &task));
    place = None;
    assert!(place.is_none() && task.0.load(Acquire) == 2);
    place = Some(RcuOption::new(2));
    assert!(is_changed(place.as_ref().unwrap(), &mut version, &task), "the change is lost");
}

/// An update at the limit waited for readers, and those who waited for its value for it.
#[test]
fn an_update_tells_before_it_waits() {
    let domain = domain_with_limit(1, 1 << 30);
    let cell = RcuOption::new_in(Some(0), domain.clone());
    let (mut version, task) = (cell.version(), Arc::new(Woken::default()));
    assert!(!is_changed(&cell, &mut version, &task));
    let update = || {
        domain.retire(Box::new(0)).unwrap(); // waits alone
        cell.store(Some(1));
    };
    beside_a_sleeper(&domain, update, || {
        assert_eq!(task.0.load(Acquire), 1);
        assert!(is_changed(&cell, &mut version, &task));
    });
}

#[test]
fn a_wait_in_a_section_is_refused() {
    let (domain, other) = (Domain::new(), Domain::new());
    let cell = Rcu::new_in(0, domain.clone());
    let mut version = cell.version();
    cell.store(1);
    let section = domain.read();
    let said = panic_of(|| cell.wait_changed(&mut version));
    assert!(said.contains("wait_changed() at") && said.contains("changes.rs"), "{said}");
    drop(section);
    let mut reader = domain.qsbr();
    let said = panic_of(|| cell.wait_changed(&mut version));
    assert!(said.contains("use Qsbr::while_offline, or, in a task, changed"), "{said}");
    let _section = other.read();
    reader.while_offline(|| cell.wait_changed(&mut version));
}

/// Wakers run outside of the library's sections and locks: they may update the same cell, wait for
/// a grace period, and take and drop versions. One that panics harms no other.
#[test]
fn a_waker_may_use_the_cell_and_the_domain() {
    static CELL: LazyLock<Rcu<u64, Private>> = LazyLock::new(|| Rcu::new_in(0, Domain::new()));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let first = waker_of(|| panic!("on purpose"));
    let second = waker_of(move || {
        CELL.domain().synchronize();
        let mut version = CELL.version();
        CELL.update(|value| value + 10);
        CELL.wait_changed(&mut version);
        counted.fetch_add(1, Release);
    });
    let updates: [fn(); 4] = [
        || CELL.store(1),
        || drop(CELL.swap(1)),
        || CELL.update(|_| 1),
        || block_on(CELL.update_async(|_| 1)).0,
    ];
    let mut versions = [(); 2].map(|()| CELL.version());
    for (number, update) in updates.into_iter().enumerate() {
        for (version, waker) in versions.iter_mut().zip([&first, &second]) {
            while CELL.poll_changed(version, &mut Context::from_waker(waker)).is_ready() {}
        }
        update();
        assert_eq!((calls.load(Acquire), *CELL.read()), (number + 1, 11));
    }
}

/// The child has nobody who would wake it.
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "forks")]
fn a_child_made_by_the_drop_of_a_waker_looks_again() {
    let (cell, forks) = (Rcu::new(0), ForksHere::new());
    let mut version = cell.version();
    let at_drop = forks.clone();
    let at_drop = OnDrop(move || at_drop.fork());
    let waker = waker_of(move || _ = &at_drop);
    assert!(cell.poll_changed(&mut version, &mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    let is_pending = cell.poll_changed(&mut version, &mut no_context()).is_pending();
    forks.assert_in_both(is_pending != forks.is_child(), "the child alone finds a change");
}

/// The executors of the parent's tasks have no threads in the child.
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "forks")]
fn a_child_wakes_no_task_of_its_parents_and_misses_no_change() {
    let (cell, task) = (RcuOption::new(0), Arc::new(Woken::default()));
    let mut version = cell.version();
    assert!(!is_changed(&cell, &mut version, &task));
    in_child(|| {
        cell.store(Some(1));
        assert_eq!(task.0.load(Acquire), 0, "the child wakes a task of the parent's");
        assert!(is_changed(&cell, &mut version, &task), "the change is lost");
        assert!(!is_changed(&cell, &mut version, &task));
        cell.store(Some(2));
        assert_eq!(task.0.load(Acquire), 1, "a task that waits in the child is woken there");
    });
    cell.store(Some(1));
    assert_eq!(task.0.load(Acquire), 1);
}
