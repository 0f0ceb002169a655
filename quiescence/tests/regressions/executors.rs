//! Sleepable domains and executors: what waits must leave the executor's thread to the tasks whose
//! sections are waited for.

use crate::common::*;

use quiescence::report::Statistics;
use quiescence::tag::{DomainTag, Sleepable};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

fn current_thread() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// A domain and a value in it, for tasks.
struct App {
    srcu: Srcu,
    value: Rcu<String, Sleepable>,
}

impl App {
    fn new() -> Arc<Self> {
        let srcu = Srcu::new();
        let value = Rcu::new_in(String::from("first"), srcu.domain());
        Arc::new(Self { srcu, value })
    }

    /// A task whose sections cross `.await`s, each so many.
    async fn read_again_and_again(self: Arc<Self>, awaits: usize) {
        loop {
            let section = self.srcu.read();
            let seen = self.value.load(&section);
            for _ in 0..awaits {
                yield_now().await;
            }
            assert!(!seen.is_empty());
        }
    }
}

/// Starts readers that overlap: at any moment between two polls some section has not ended.
async fn start_readers(app: &Arc<App>) {
    for number in 1..=4 {
        tokio::spawn(Arc::clone(app).read_again_and_again(3 * number));
        yield_now().await;
    }
}

/// What `examples/sleepable.rs` did: the second grace period, which blocked, waited for tasks of
/// its own thread.
#[test]
fn a_value_whose_grace_period_has_been_awaited_is_given_back_at_once() {
    current_thread().block_on(async {
        let app = App::new();
        start_readers(&app).await;
        for number in 0..20 {
            let old = app.value.swap(format!("number {number}"));
            app.srcu.synchronize_async().await;
            assert!(!old.into_inner().is_empty());
        }
    });
}

/// The grace period may have been asked for by any thread.
#[test]
fn a_value_does_not_wait_for_a_second_grace_period() {
    let srcu = Srcu::new();
    let value = Rcu::new_in(1, srcu.domain());
    let old = value.swap(2);
    srcu.synchronize();
    let _section = srcu.read(); // a second one would wait for this for ever
    let before = srcu.statistics().grace_periods;
    assert_eq!(old.into_inner(), 1);
    assert_eq!(srcu.statistics().grace_periods, before);
    let domain = Domain::new();
    let value = Rcu::new_in(1, domain.clone());
    let old = value.swap(2);
    domain.synchronize();
    let _section = domain.read();
    assert_eq!(old.into_inner(), 1);
}

/// A grace period that was in progress when the value was taken out is not its own.
#[test]
fn a_grace_period_that_had_begun_does_not_count() {
    let srcu = Arc::new(Srcu::new());
    let value = Arc::new(Rcu::new_in(Mutex::new(1), srcu.domain()));
    let section = srcu.read_owned();
    let early = srcu.start_poll();
    assert!(!srcu.poll(early), "it waits for the section");
    let late_section = srcu.read_owned();
    let seen = value.load(&late_section);
    let old = value.swap(Mutex::new(2));
    drop(section);
    srcu.wait(early);
    let (back, is_back) = mpsc::channel();
    let waits = thread::spawn(move || {
        *old.into_inner().lock().unwrap() = 3;
        back.send(()).expect("somebody listens");
    });
    until(|| srcu.statistics().waiters != 0 || waits.is_finished());
    assert!(is_back.try_recv().is_err());
    assert_eq!(*seen.lock().unwrap(), 1);
    drop(late_section);
    waits.join().unwrap();
}

// ---- at the limit
// ---------------------------------------------------------------------------------

const LIMITS: &[u64] = if cfg!(miri) { &[1] } else { &[1, 64, 1_000] };

fn with_limit(objects_max: u64) -> Srcu {
    let srcu = Srcu::new();
    set_limit(&srcu, objects_max, u64::MAX);
    srcu
}

/// Where updates are done at a limit.
struct AtLimit {
    srcu: Srcu,
    value: Rcu<u64, Sleepable>,
    option: RcuOption<u64, Sleepable>,
    /// The most that have waited after an update.
    most: AtomicU64,
}

/// On each kind of runtime, with as many updaters as it has threads and one more: a reader holds
/// its guard across `.await`s until the statistics say what the test is about, while updaters have
/// all threads of the runtime. Each calls `update` with its own number and that of the round.
/// `check` is called in the end, with the number of updaters and the limit.
fn on_each_runtime<U: Future<Output = ()> + Send + 'static>(
    until: fn(&Statistics) -> bool,
    update: fn(Arc<AtLimit>, u64, u64) -> U,
    check: fn(&AtLimit, u64, u64),
) {
    for &limit in LIMITS {
        current_thread().block_on(a_reader_beside_updaters(2, limit, until, update, check));
        let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
        // A task, since the thread that blocks on it would be a third one for it to run on.
        let task = a_reader_beside_updaters(3, limit, until, update, check);
        runtime.block_on(runtime.spawn(task)).unwrap();
    }
}

async fn a_reader_beside_updaters<U: Future<Output = ()> + Send + 'static>(
    updaters: u64,
    limit: u64,
    until: fn(&Statistics) -> bool,
    update: fn(Arc<AtLimit>, u64, u64) -> U,
    check: fn(&AtLimit, u64, u64),
) {
    let srcu = with_limit(limit);
    let value = Rcu::new_in(0, srcu.domain());
    let option = RcuOption::new_in(Some(0), srcu.domain());
    let place = Arc::new(AtLimit { srcu, value, option, most: AtomicU64::new(0) });
    let update = |updater| {
        let place = Arc::clone(&place);
        tokio::spawn(async move {
            for number in 0..=u64::MAX {
                update(Arc::clone(&place), updater, number).await;
                place.most.fetch_max(place.srcu.statistics().callbacks_waiting(), SeqCst);
                if number % 4 == 0 {
                    yield_now().await;
                }
            }
        })
    };
    let updating: Vec<_> = (1..=updaters).map(update).collect();
    for _ in 0..3 {
        let guard = place.srcu.read();
        while !until(&place.srcu.statistics()) {
            yield_now().await;
        }
        // Some wait by now, or have gone over the limit and come to it again.
        for _ in 0..4 {
            yield_now().await;
        }
        drop(guard);
        yield_now().await;
    }
    for updater in updating {
        updater.abort();
        let ended = updater.await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "it did not end by itself");
    }
    check(&place, updaters, limit);
    place.srcu.barrier_async().await;
    assert_eq!(place.srcu.statistics().callbacks_waiting(), 0);
}

fn one_waited(statistics: &Statistics) -> bool {
    statistics.limit_waits > 0
}

/// Where a reader saw one wait only, its guard was dropped before the others had come to the limit,
/// and the wait ended in time.
fn one_went_over(statistics: &Statistics) -> bool {
    statistics.limit_overruns > 0
}

/// Updaters that block at the limit, on all threads of the runtime, and the reader that they wait
/// for is a task: each updates values by turns, and has objects and closures in the domain itself.
#[test]
fn updaters_that_block_at_the_limit_do_not_stop_the_runtime() {
    on_each_runtime(
        one_went_over,
        |place, updater, number| async move {
            match (updater + number) % 4 {
                0 => place.value.store(number),
                1 => place.value.update(|old| old + 1),
                2 => place.srcu.retire(Box::new(number)).expect("in no registered section"),
                _ => place.srcu.call(|| ()).expect("in no registered section"),
            }
        },
        |place, _, _| place.srcu.barrier(),
    );
}

/// In its own section too: nothing is lost, and what goes over the limit is counted.
#[test]
fn a_store_in_ones_own_section_goes_over_the_limit_and_is_counted() {
    let srcu = with_limit(1);
    let value = Rcu::new_in(0, srcu.domain());
    let section = srcu.read();
    let first = value.load(&section);
    (1..=5).for_each(|number| value.store(number));
    assert_eq!((*first, *value.load(&section)), (0, 5));
    let statistics = srcu.statistics();
    assert_eq!((statistics.callbacks_waiting(), statistics.limit_overruns), (5, 4));
    assert_eq!(statistics.limit_waits, 4);
    drop(section);
    srcu.barrier();
    value.store(6);
    srcu.barrier();
    assert_eq!(srcu.statistics().limit_overruns, 4, "there is room again");
}

/// Each task may exceed the limit by one in each grace period, where others had the room.
fn they_keep_to_the_limit(place: &AtLimit, updaters: u64, limit: u64) {
    let statistics = place.srcu.statistics();
    let over = statistics.limit_overruns.min(2 * updaters);
    let most = place.most.load(SeqCst);
    assert!(most <= limit + over, "{most}: {statistics:?}");
}

/// Updaters that wait as futures keep to the limit. Each does one thing only: the first that finds
/// no room may wait to the end.
#[test]
fn updaters_that_await_room_do_not_stop_the_runtime_and_keep_to_the_limit() {
    on_each_runtime(
        one_waited,
        |place, updater, number| async move {
            match updater % 3 {
                0 => place.value.store_async(number).await,
                1 => place.value.update_async(|old| old + 1).await,
                _ => place.option.store_async((number % 2 == 0).then_some(number)).await,
            }
        },
        they_keep_to_the_limit,
    );
}

/// What is retired goes over the limit in no case, and closures wait for the worker.
#[test]
fn what_is_retired_and_called_by_tasks_that_await_room_keeps_to_the_limit() {
    on_each_runtime(
        one_waited,
        |place, updater, number| async move {
            match updater % 2 {
                0 => place.srcu.retire_async(Box::new(number)).await,
                _ => place.srcu.call_async(|| ()).await,
            }
        },
        they_keep_to_the_limit,
    );
}

/// Registered readers have the same futures.
#[test]
fn tasks_wait_in_domains_of_registered_readers_too() {
    let domain = domain_with_limit(4, 1 << 30);
    let value = Rcu::new_in(0, domain.clone());
    let both = |leave: &dyn Fn()| {
        current_thread().block_on(async {
            let waits = async {
                for number in 1..=20 {
                    value.store_async(number).await;
                    domain.retire_async(Box::new(number)).await;
                    domain.call_async(|| ()).await;
                }
                domain.synchronize_async().await;
                let cookie = domain.cookie();
                let old = value.swap(0);
                domain.wait_async(cookie).await;
                assert_eq!(old.into_inner_async().await, 20);
                domain.barrier_async().await;
            };
            let leaves = async {
                while domain.statistics().limit_waits == 0 {
                    yield_now().await;
                }
                leave();
            };
            tokio::join!(waits, leaves);
        })
    };
    beside_a_section(&domain, both);
    assert_eq!(domain.statistics().callbacks_waiting(), 0);
}

// ---- futures that are dropped
// ---------------------------------------------------------------------

/// Polls a future a few times, so that it waits, and drops it in the middle. Its waker is dropped
/// with it.
fn poll_and_drop<F: Future>(future: F) {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    {
        let mut future = pin!(future);
        let mut context = Context::from_waker(&waker);
        (0..3).for_each(|_| assert!(future.as_mut().poll(&mut context).is_pending()));
    }
    drop(waker);
    // A thread that is waking it at this moment is about to drop it.
    until(|| Arc::strong_count(&woken) == 1);
}

#[test]
fn a_future_that_is_dropped_at_the_limit_loses_nothing() {
    let (srcu, dropped) = (with_limit(1), Arc::new(AtomicUsize::new(0)));
    let new = || Dropped(Arc::clone(&dropped));
    let value = Rcu::new_in(new(), srcu.domain());
    let section = srcu.read();
    srcu.retire(Box::new(new())).unwrap(); // it is full

    let before = std::ptr::from_ref(value.load(&section));
    poll_and_drop(value.store_async(new()));
    assert_eq!(dropped.load(SeqCst), 1, "the new value went with the future");
    poll_and_drop(value.update_async(|_| new()));
    assert_eq!(dropped.load(SeqCst), 1, "and no other was made");
    assert_eq!(before, std::ptr::from_ref(value.load(&section)), "nothing was stored");
    let called = new();
    poll_and_drop(srcu.call_async(move || drop(called)));
    assert_eq!(dropped.load(SeqCst), 2, "the closure was not queued");
    assert_eq!(srcu.statistics().callbacks_waiting(), 1);

    poll_and_drop(srcu.retire_async(Box::new(new())));
    drop(srcu.retire_async(Box::new(new()))); // not even polled
    let old = value.swap(new());
    poll_and_drop(old.into_inner_async());
    poll_and_drop(srcu.synchronize_async());
    poll_and_drop(srcu.barrier_async());
    assert_eq!(dropped.load(SeqCst), 2, "the section may still see what was retired");
    let statistics = srcu.statistics();
    assert_eq!((statistics.callbacks_waiting(), statistics.limit_overruns), (4, 3));
    drop(section);
    srcu.barrier();
    assert_eq!(dropped.load(SeqCst), 6);
    assert_eq!(srcu.statistics().callbacks_waiting(), 0);
}

#[test]
fn a_value_that_is_awaited_is_given_back() {
    current_thread().block_on(async {
        let app = App::new();
        start_readers(&app).await;
        for number in 0..10 {
            let old = app.value.swap(format!("number {number}"));
            assert!(!old.into_inner_async().await.is_empty());
        }
        // At once, where the grace period is over.
        let old = app.value.swap(String::new());
        app.srcu.synchronize_async().await;
        let mut last = pin!(old.into_inner_async());
        let is_ready = last.as_mut().poll(&mut no_context());
        assert!(matches!(is_ready, Poll::Ready(last) if last == "number 9"));
    });
}

#[test]
fn a_barrier_that_is_awaited_leaves_the_thread_to_others() {
    current_thread().block_on(async {
        let (app, run) = (App::new(), Arc::new(AtomicUsize::new(0)));
        start_readers(&app).await;
        for _ in 0..10 {
            for _ in 0..5 {
                let counted = Dropped(Arc::clone(&run));
                app.srcu.call_async(move || drop(counted)).await;
                app.srcu.retire_async(Box::new(Dropped(Arc::clone(&run)))).await;
            }
            app.srcu.barrier_async().await;
            assert_eq!(run.swap(0, SeqCst), 10);
        }
    });
    let (domain, run) = (Domain::new(), Arc::new(AtomicUsize::new(0)));
    domain.retire(Box::new(Dropped(Arc::clone(&run)))).unwrap();
    current_thread().block_on(domain.barrier_async());
    assert_eq!(run.load(SeqCst), 1);
}

/// Room that comes otherwise than by callbacks wakes those who wait for it.
#[test]
fn a_limit_that_is_raised_wakes_tasks_that_wait_for_room() {
    let (srcu, called) = (Arc::new(with_limit(1)), Arc::new(AtomicUsize::new(0)));
    let section = srcu.read();
    srcu.retire(Box::new(1)).unwrap();
    let waits = thread::spawn({
        let (srcu, called) = (Arc::clone(&srcu), Dropped(Arc::clone(&called)));
        move || current_thread().block_on(srcu.call_async(move || drop(called)))
    });
    until(|| srcu.statistics().limit_waits != 0);
    tune(&srcu, |tuning| tuning.objects_max = 2);
    waits.join().unwrap();
    assert_eq!((srcu.statistics().callbacks_waiting(), called.load(SeqCst)), (2, 0));
    drop(section);
    srcu.barrier();
    assert_eq!(called.load(SeqCst), 1);
}

/// Has so many tasks, each of which has been in a section, do `task` with its number at a limit, on
/// two threads; `ended` awaits them. In the end nothing waits.
fn tasks_at_a_limit<T, E>(
    tasks: usize,
    limit: u64,
    task: impl Fn(Arc<Srcu>, Arc<Rcu<usize, Sleepable>>, usize) -> T,
    ended: impl FnOnce(Vec<tokio::task::JoinHandle<()>>) -> E,
) -> Arc<Rcu<usize, Sleepable>>
where
    T: Future<Output = ()> + Send + 'static,
    E: Future<Output = ()>,
{
    let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let srcu = Arc::new(with_limit(limit));
    let value = Arc::new(Rcu::new_in(0, srcu.domain()));
    runtime.block_on(async {
        let spawn = |number| {
            let (srcu, task) = (srcu.clone(), task(srcu.clone(), value.clone(), number));
            tokio::spawn(async move {
                let section = srcu.read_owned();
                yield_now().await;
                drop(section);
                task.await;
            })
        };
        ended((0..tasks).map(spawn).collect()).await;
        srcu.barrier_async().await;
    });
    assert_eq!(srcu.statistics().callbacks_waiting(), 0);
    value
}

/// More tasks than there is room for, and each comes to its turn.
#[test]
fn every_task_that_waits_for_room_gets_it() {
    const TASKS: usize = rounds(200, 12);
    for limit in [1, 64] {
        let run = Arc::new(AtomicUsize::new(0));
        let task = |srcu: Arc<Srcu>, value: Arc<Rcu<usize, Sleepable>>, number| {
            let counted = Dropped(Arc::clone(&run));
            async move {
                srcu.call_async(move || drop(counted)).await;
                value.update_async(|old| old + 1).await;
                srcu.retire_async(Box::new(number)).await;
            }
        };
        let value = tasks_at_a_limit(TASKS, limit, task, |tasks| async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert_eq!((run.load(SeqCst), *value.read()), (TASKS, TASKS));
    }
}

/// Tasks that are woken, and end instead of looking, take the wake-up from no other.
#[test]
fn tasks_that_are_aborted_while_they_wait_leave_the_others_their_turn() {
    for round in 0..rounds(20, 1) {
        let task = |srcu: Arc<Srcu>, value: Arc<Rcu<usize, Sleepable>>, number| async move {
            match (number + round) % 4 {
                0 => srcu.synchronize_async().await,
                1 => srcu.call_async(|| ()).await,
                2 => value.update_async(|old| old + 1).await,
                _ => srcu.retire_async(Box::new(number)).await,
            }
        };
        tasks_at_a_limit(40, 2, task, |tasks| async {
            yield_now().await;
            let (ended, kept): (Vec<_>, Vec<_>) =
                tasks.into_iter().enumerate().partition(|(number, _)| number % 3 == 0);
            ended.iter().for_each(|(_, task)| task.abort());
            for (_, task) in kept {
                task.await.unwrap();
            }
            for (_, task) in ended {
                let _ended_or_aborted = task.await;
            }
        });
    }
}

/// Where the domain's tag was a parameter, they had to be pinned, though nothing in them is.
#[test]
fn waits_in_any_domain_could_not_move() {
    fn moves(_: impl Future + Unpin) {}
    fn in_any<K: DomainTag>(domain: &Domain<K>) {
        moves(domain.synchronize_async());
        moves(domain.wait_async(domain.cookie()));
        moves(domain.barrier_async());
    }
    in_any(&Domain::new());
}
