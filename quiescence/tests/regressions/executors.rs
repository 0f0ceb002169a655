//! Sleepable domains and executors: what waits must leave the executor's thread to the tasks whose sections are waited
//! for.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use quiescence::{Rcu, Sleepable, Srcu};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

/// So long that only what hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs `f` on a thread of its own, and fails if it hangs.
fn without_hanging(f: impl FnOnce() + Send + 'static) {
    let (done, is_done) = channel();
    let thread = thread::spawn(move || {
        f();
        done.send(()).expect("somebody listens");
    });
    match is_done.recv_timeout(PATIENCE) {
        Ok(()) => {}
        Err(RecvTimeoutError::Disconnected) => {}
        Err(RecvTimeoutError::Timeout) => panic!("it hangs"),
    }
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

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

/// What `examples/sleepable.rs` did: the second grace period, which blocked, waited for tasks of its own thread.
#[test]
fn a_value_whose_grace_period_has_been_awaited_is_given_back_at_once() {
    without_hanging(|| {
        current_thread().block_on(async {
            let app = App::new();
            start_readers(&app).await;
            for number in 0..20 {
                let old = app.value.swap(format!("number {number}"));
                app.srcu.synchronize_async().await;
                assert!(!old.into_inner().is_empty());
            }
        });
    });
}

/// Whoever asked for the grace period.
#[test]
fn a_value_does_not_wait_for_a_second_grace_period() {
    let srcu = Srcu::new();
    let value = Rcu::new_in(1, srcu.domain());
    let old = value.swap(2);
    srcu.synchronize();
    let _section = srcu.read(); // a second one would wait for this for ever
    let before = srcu.statistics().grace_periods;
    without_hanging(move || assert_eq!(old.into_inner(), 1));
    assert_eq!(srcu.statistics().grace_periods, before);
    let domain = quiescence::Domain::new();
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
    let early = srcu.start();
    assert!(!srcu.poll(early), "it waits for the section");
    let late_section = srcu.read_owned();
    let seen = value.load(&late_section);
    let old = value.swap(Mutex::new(2));
    drop(section);
    srcu.wait(early);
    let (back, is_back) = channel();
    let waits = thread::spawn(move || {
        *old.into_inner().lock().unwrap() = 3;
        back.send(()).expect("somebody listens");
    });
    while srcu.statistics().waiters == 0 && !waits.is_finished() {
        thread::yield_now();
    }
    assert!(is_back.try_recv().is_err());
    assert_eq!(*seen.lock().unwrap(), 1);
    drop(late_section);
    waits.join().unwrap();
}

// ---- at the limit ---------------------------------------------------------------------------------

const LIMITS: [u64; 3] = [1, 64, 1_000];

fn with_limit(objects_max: u64) -> Srcu {
    let srcu = Srcu::new();
    let mut tuning = srcu.tuning();
    tuning.objects_max = objects_max;
    (tuning.stall_after, tuning.stall_after_expedited) = (None, None);
    srcu.tune(tuning);
    srcu
}

/// Each kind of runtime, with as many updaters as it has threads and one more.
fn on_each_runtime<F: Future<Output = ()> + Send + 'static>(f: impl Fn(usize, u64) -> F + Copy) {
    for limit in LIMITS {
        current_thread().block_on(f(2, limit));
        let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
        // A task, since the thread that blocks on it would be a third one for it to run on.
        runtime.block_on(runtime.spawn(f(3, limit))).unwrap();
    }
}

/// A reader holds its guard across `.await`s until somebody has come to the limit, while updaters have all threads of the
/// runtime.
async fn a_reader_beside_updaters<U: Future<Output = ()> + Send + 'static>(
    srcu: Arc<Srcu>,
    updaters: usize,
    update: impl Fn(u64) -> U,
) {
    let updaters: Vec<_> = (1..=updaters as u64).map(|each| tokio::spawn(update(each))).collect();
    for _ in 0..3 {
        let guard = srcu.read_owned();
        let before = srcu.statistics();
        while srcu.statistics().limit_waits == before.limit_waits {
            yield_now().await;
        }
        yield_now().await;
        drop(guard);
        yield_now().await;
    }
    for updater in updaters {
        updater.abort();
        let ended = updater.await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "it did not end by itself");
    }
}

/// Updaters that block at the limit, on all threads of the runtime, and the reader that they wait for is a task.
#[test]
fn updaters_that_block_at_the_limit_do_not_stop_the_runtime() {
    without_hanging(|| {
        on_each_runtime(|updaters, limit| async move {
            let srcu = Arc::new(with_limit(limit));
            let value = Arc::new(Rcu::new_in(0, srcu.domain()));
            a_reader_beside_updaters(Arc::clone(&srcu), updaters, |each| {
                let value = Arc::clone(&value);
                async move {
                    for number in 0.. {
                        match each % 2 {
                            0 => value.store(number),
                            _ => value.update(|old| old + 1),
                        }
                        if number % 4 == 0 {
                            yield_now().await;
                        }
                    }
                }
            })
            .await;
            let statistics = srcu.statistics();
            assert!(statistics.limit_overruns > 0, "{statistics:?}");
            srcu.barrier();
            assert_eq!(srcu.statistics().callbacks_waiting(), 0);
        });
    });
}

/// The same for objects and closures of the domain itself.
#[test]
fn what_is_retired_and_called_at_the_limit_does_not_stop_the_runtime() {
    without_hanging(|| {
        on_each_runtime(|updaters, limit| async move {
            let srcu = Arc::new(with_limit(limit));
            a_reader_beside_updaters(Arc::clone(&srcu), updaters, |each| {
                let srcu = Arc::clone(&srcu);
                async move {
                    for number in 0.. {
                        match each % 2 {
                            0 => srcu.retire(Box::new(number)).expect("in no registered section"),
                            _ => srcu.call(|| ()).expect("in no registered section"),
                        }
                        if number % 4 == 0 {
                            yield_now().await;
                        }
                    }
                }
            })
            .await;
            srcu.barrier();
            assert_eq!(srcu.statistics().callbacks_waiting(), 0);
        });
    });
}

/// In its own section too: nothing is lost, and what goes over the limit is counted.
#[test]
fn a_store_in_ones_own_section_goes_over_the_limit_and_is_counted() {
    without_hanging(|| {
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
    });
}
