//! Workers of a tokio runtime as readers (feature `tokio`): when they are online, what a grace
//! period waits for, and that no runtime inside of a section ends it.
//!
//! Tokio's own hooks around a poll need `--cfg tokio_unstable`. Without it these tests poll tasks
//! in a future that calls the same functions.
#![cfg(feature = "tokio")]

mod common;

use std::future::poll_fn;

use common::*;
use quiescence::{synchronize, tokio as rcu};
use tokio::runtime::{Builder, Runtime};

fn hooked(mut builder: Builder) -> Runtime {
    #[cfg(tokio_unstable)]
    rcu::BuilderExt::enable_rcu(&mut builder);
    #[cfg(not(tokio_unstable))]
    builder.on_thread_park(rcu::on_thread_park);
    builder.enable_all().build().unwrap()
}

/// A runtime of two workers, whose hooks make them readers.
fn workers() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2);
    hooked(builder)
}

/// A task of it, with the hooks around its polls.
async fn polled<F: Future>(task: F) -> F::Output {
    let mut task = pin!(task);
    poll_fn(|context| {
        #[cfg(not(tokio_unstable))]
        rcu::before_task_poll();
        let polled = task.as_mut().poll(context);
        #[cfg(not(tokio_unstable))]
        rcu::after_task_poll();
        polled
    })
    .await
}

/// Runs it on a worker, and waits for it.
fn on_worker<T: Send + 'static>(
    runtime: &Runtime,
    task: impl Future<Output = T> + Send + 'static,
) -> T {
    let task = runtime.spawn(polled(task));
    runtime.block_on(task).unwrap()
}

#[test]
fn a_worker_is_online_and_other_threads_are_ordinary_readers() {
    let runtime = workers();
    let cell = Arc::new(Rcu::new(7));
    let of = |cell: &Arc<Rcu<i32>>| {
        let cell = Arc::clone(cell);
        move || (rcu::is_online(), rcu::read(|section| *cell.load(section)))
    };

    let seen = of(&cell);
    assert_eq!(on_worker(&runtime, async move { seen() }), (true, 7));
    let seen = of(&cell);
    assert_eq!(runtime.block_on(runtime.spawn_blocking(seen)).unwrap(), (false, 7));
    assert_eq!(of(&cell)(), (false, 7));
    assert_eq!(runtime.block_on(async { of(&cell)() }), (false, 7));
}

/// It would stay online after `block_on`: no hook tells of that.
#[test]
fn a_runtime_of_one_thread_has_ordinary_readers() {
    let runtime = hooked(Builder::new_current_thread());
    let task = runtime.spawn(polled(async { (rcu::is_online(), rcu::read(|_| 7)) }));
    assert_eq!(runtime.block_on(task).unwrap(), (false, 7));
    synchronize();
}

/// What a grace period needs of workers that never park, of parked ones, and of those that ended.
#[test]
fn grace_periods_end_beside_busy_parked_and_ended_workers() {
    let runtime = workers();
    let stop = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let stop = Arc::clone(&stop);
            runtime.spawn(polled(async move {
                while !stop.load(SeqCst) {
                    rcu::read(|_| ());
                    tokio::task::yield_now().await;
                }
            }))
        })
        .collect();
    for _ in 0..100 {
        synchronize();
    }
    stop.store(true, SeqCst);
    for task in busy {
        runtime.block_on(task).unwrap();
    }
    synchronize();
    drop(runtime);
    synchronize();
}

#[test]
fn a_grace_period_waits_for_a_closure_that_reads() {
    let runtime = workers();
    let (began, begins) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let task = runtime.spawn(polled(async move {
        rcu::read(|_| {
            began.send(rcu::is_online()).unwrap();
            ends.recv().unwrap();
        });
    }));
    assert!(begins.recv().unwrap());
    let cookie = Domain::global().start_poll();
    for _ in 0..1_000 {
        assert!(!Domain::global().poll(cookie), "the closure has not ended");
    }
    end.send(()).unwrap();
    runtime.block_on(task).unwrap();
    Domain::global().wait(cookie);
}

/// A runtime in the closure polls its tasks on the same thread, and its hooks call the functions of
/// this module: none may announce that the thread holds no reference.
#[test]
fn a_runtime_in_a_section_ends_nothing() {
    let runtime = workers();
    let polls = on_worker(&runtime, async {
        assert!(rcu::is_online());
        rcu::read(|_| {
            let cookie = Domain::global().start_poll();
            tokio::task::block_in_place(|| {
                let inner = hooked(Builder::new_current_thread());
                inner.block_on(inner.spawn(polled(tokio::task::yield_now()))).unwrap();
            });
            rcu::before_task_poll();
            rcu::after_task_poll();
            rcu::on_thread_park();
            // Another thread drives as well: it would see a quiescent state.
            elsewhere(|| (0..1_000).filter(|_| Domain::global().poll(cookie)).count())
        })
    });
    assert_eq!(polls, 0, "the grace period ended in a section that was there when it began");
}

/// The end of a poll may run callbacks, offline: what they read needs a section of its own.
#[test]
fn a_callback_in_an_announcement_reads_in_a_section() {
    static ONLINE: AtomicUsize = AtomicUsize::new(0);
    static OFFLINE: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static IN_POLL: Cell<bool> = const { Cell::new(true) });
    struct Reads;
    impl Drop for Reads {
        fn drop(&mut self) {
            // Only those at the end of a poll.
            if !IN_POLL.get() {
                let count = if rcu::is_online() { &ONLINE } else { &OFFLINE };
                count.fetch_add(1, SeqCst);
                rcu::read(|_| ());
                // As a runtime that it runs would call them: the announcement has the reader.
                rcu::before_task_poll();
                assert!(!rcu::is_online());
                rcu::after_task_poll();
                rcu::on_thread_park();
                rcu::read(|_| ());
            }
        }
    }
    let runtime = workers();
    while OFFLINE.load(SeqCst) == 0 && ONLINE.load(SeqCst) == 0 {
        on_worker(&runtime, async {
            for _ in 0..200 {
                IN_POLL.set(true);
                for _ in 0..64 {
                    // One that is refused at the limit goes here, in the poll.
                    drop(quiescence::retire(Box::new(Reads)));
                }
                IN_POLL.set(false);
                tokio::task::yield_now().await;
            }
        });
    }
    assert_eq!(ONLINE.load(SeqCst), 0, "a callback took the worker for online");
    let statistics = Domain::global().statistics();
    assert_eq!(statistics.callbacks_panicked, 0);
    assert!(on_worker(&runtime, async { rcu::is_online() }));
    drop(runtime);
    synchronize();
}

#[test]
fn a_worker_that_blocks_in_place_holds_no_grace_period_up() {
    let runtime = workers();
    let after = on_worker(&runtime, async {
        assert!(rcu::is_online());
        rcu::block_in_place(|| {
            assert!(!rcu::is_online());
            elsewhere(synchronize);
        });
        rcu::read(|_| rcu::is_online())
    });
    assert!(!after, "the rest of the poll is an ordinary thread's");
    assert!(on_worker(&runtime, async { rcu::is_online() }));
}

/// In a section the worker is not to go offline.
#[test]
fn a_section_that_blocks_in_place_stays_one() {
    let runtime = workers();
    let over = on_worker(&runtime, async {
        rcu::read(|_| {
            let cookie = Domain::global().start_poll();
            rcu::block_in_place(|| elsewhere(|| (0..1_000).any(|_| Domain::global().poll(cookie))))
        })
    });
    assert!(!over);
}

#[test]
fn a_task_that_would_wait_for_itself_is_told() {
    let runtime = workers();
    let task = runtime.spawn(polled(async { synchronize() }));
    let told = runtime.block_on(task).unwrap_err().into_panic();
    let told = told.downcast::<String>().unwrap();
    assert!(told.contains("in a task, synchronize_async"), "{told}");
    // The worker continues, and so do grace periods.
    assert!(on_worker(&runtime, async { rcu::is_online() }));
    synchronize();
}

#[test]
fn a_task_waits_for_a_grace_period_without_blocking() {
    let runtime = workers();
    let cell = Arc::new(Rcu::new(String::from("old")));
    let old = on_worker(&runtime, {
        let cell = Arc::clone(&cell);
        async move {
            let old = cell.swap(String::from("new"));
            Domain::global().synchronize_async().await;
            old.into_inner()
        }
    });
    assert_eq!(old, "old");
}

#[test]
fn a_panic_in_a_section_ends_it() {
    let runtime = workers();
    let task = runtime.spawn(polled(async { rcu::read(|_| panic!("in a section")) }));
    assert!(runtime.block_on(task).unwrap_err().is_panic());
    // Its worker announces quiescent states as before.
    synchronize();
    assert_eq!(on_worker(&runtime, async { rcu::read(|_| 7) }), 7);
    synchronize();
}
