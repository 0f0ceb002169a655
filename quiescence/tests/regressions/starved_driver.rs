//! A driver that gets no CPU does not hold up other updaters: a waiter takes its place.
//!
//! Here a driver is stopped where it holds no lock, by a signal handler that waits until it is let
//! go. Without the hand-over the other threads wait for ever, and the alarm ends the process.
#![cfg(target_os = "linux")]

use crate::common::*;

/// When a process that stands still is ended.
const LONGEST_S: u32 = 120;

static STOPPED: AtomicBool = AtomicBool::new(false);
/// Where a stopped thread reads, which ends when the other end is closed.
static GATE: AtomicI32 = AtomicI32::new(-1);

/// Stops the thread that it runs on. Nothing but system calls and atomic stores, as it may be a
/// signal handler.
fn stop_here() {
    STOPPED.store(true, Release);
    let mut byte = 0_u8;
    // SAFETY: a descriptor of a pipe, and a byte of its own.
    unsafe { libc::read(GATE.load(Acquire), (&raw mut byte).cast(), 1) };
}

extern "C" fn on_signal(_: libc::c_int) {
    stop_here();
}

/// Lets stopped threads go when it is dropped.
struct Gate(libc::c_int);

impl Gate {
    fn new() -> Self {
        let mut ends = [0; 2];
        // SAFETY: room for two.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        GATE.store(ends[0], Release);
        Self(ends[1])
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // SAFETY: its own.
        unsafe { libc::close(self.0) };
    }
}

/// Runs the scenario in a process of its own, which must come to its end.
fn alone(test: &str, scenario: impl FnOnce()) {
    if role().is_some() {
        // SAFETY: no handler: it ends the process.
        unsafe { libc::alarm(LONGEST_S) };
        return scenario();
    }
    passes_again(test, "child", &[]);
}

fn quiet_domain() -> Domain {
    let domain = Domain::new();
    quiet(&domain);
    domain
}

/// The last holdout wakes the driver, which does not come.
#[test]
#[cfg_attr(miri, ignore = "signals")]
fn a_driver_that_is_stopped_in_its_sleep_holds_nobody_up() {
    alone(this_test!(), || {
        storm::handle(libc::SIGUSR1, on_signal);
        let domain = quiet_domain();
        let gate = Gate::new();
        let id = AtomicU32::new(0);
        thread::scope(|scope| {
            let driver = beside_a_section(&domain, |leave| {
                let driver = scope.spawn(|| {
                    id.store(thread_id(), Release);
                    domain.synchronize();
                });
                until_an_updater_sleeps(&domain);
                // It holds none of the locks once it is asleep: no other thread uses this domain
                // now.
                let id = id.load(Acquire);
                until(|| sleeps_or_is_gone(id));
                let process = std::process::id();
                // SAFETY: a thread of this process that has not ended.
                unsafe { libc::syscall(libc::SYS_tgkill, process, id, libc::SIGUSR1) };
                until(|| STOPPED.load(Acquire));
                leave();
                driver
            });
            domain.synchronize();
            assert!(!driver.is_finished(), "it is stopped");
            for _ in 0..100 {
                domain.synchronize();
            }
            drop(gate);
            driver.join().unwrap();
            domain.synchronize();
        });
    });
}

/// A driver that is stopped at a given place.
#[cfg(quiescence_mutants)]
mod stopped {
    use super::*;
    use std::sync::Arc;
    use std::sync::Mutex;

    use mutants::Point;
    use quiescence::Srcu;

    static WHERE: Mutex<Option<Point>> = Mutex::new(None);

    /// The first thread that comes to the place.
    fn stop_once(point: Point) {
        let mut place = WHERE.lock().unwrap();
        if *place == Some(point) {
            *place = None;
            drop(place);
            stop_here();
        }
    }

    /// Stops a driver at `point`, and calls `others`.
    fn with_one(point: Point, drive: impl Fn() + Sync, others: impl FnOnce()) {
        let gate = Gate::new();
        *WHERE.lock().unwrap() = Some(point);
        mutants::install(stop_once);
        thread::scope(|scope| {
            scope.spawn(&drive);
            until(|| STOPPED.load(Acquire));
            others();
            drop(gate);
        });
        drive();
    }

    /// A reader is registered, so that there is something to fence, and is in a section until the
    /// driver is stopped.
    fn in_domain(point: Point) {
        let domain = quiet_domain();
        beside_a_section(&domain, |leave| {
            with_one(
                point,
                || domain.synchronize(),
                || {
                    leave();
                    for _ in 0..100 {
                        domain.synchronize();
                    }
                },
            );
        });
    }

    #[test]
    fn after_its_fence() {
        alone(this_test!(), || in_domain(Point::Fenced));
    }

    #[test]
    fn before_it_marks() {
        alone(this_test!(), || in_domain(Point::BeforeMark));
    }

    #[test]
    fn after_it_has_marked() {
        alone(this_test!(), || in_domain(Point::Marked));
    }

    #[test]
    fn between_the_sums_of_a_sleepable_domain() {
        alone(this_test!(), || {
            let srcu = Srcu::new();
            with_one(Point::Summed, || srcu.synchronize(), || srcu.synchronize());
        });
    }

    /// No thread waits: the worker takes its place.
    #[test]
    fn while_callbacks_wait_for_it() {
        alone(this_test!(), || {
            let domain = quiet_domain();
            let run = Arc::new(AtomicBool::new(false));
            let call = || {
                let set = Arc::clone(&run);
                domain.call(move || set.store(true, Release)).unwrap();
                until(|| run.load(Acquire));
            };
            beside_a_section(&domain, |leave| {
                with_one(
                    Point::Fenced,
                    || domain.synchronize(),
                    || {
                        leave();
                        call();
                    },
                );
            });
        });
    }
}
