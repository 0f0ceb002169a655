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
