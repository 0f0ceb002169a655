//! Costs of the kernel and of threads: system calls, wake-ups, switches, timers, interrupts.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::getppid;
use rustix::thread::{MembarrierCommand, membarrier};

use super::timing::{pin, time};
use crate::statistics::{Spread, spread};

/// Samples enough for quartiles, however short the budget.
const SAMPLES_MIN: usize = 16;
/// A thread that has said it parks does so within this time, on a machine that does little else.
const UNTIL_PARKED: Duration = Duration::from_micros(50);
/// What a sleep is asked for.
const SLEEP: Duration = Duration::from_millis(1);
/// How long the counter of [`interrupt`] is watched at a time.
const WATCHED: Duration = Duration::from_millis(2);

/// A system call that does next to nothing.
pub(super) fn system_call(budget: Duration) -> Spread {
    time(budget, |count| {
        for _ in 0..count {
            black_box(getppid());
        }
    })
}

/// How much later than asked for a thread runs that sleeps for a millisecond.
pub(super) fn sleep_overrun(budget: Duration) -> Spread {
    sample(budget, || {
        let before = Instant::now();
        thread::sleep(SLEEP);
        nanoseconds(before.elapsed().saturating_sub(SLEEP))
    })
}

/// A thread started and joined.
pub(super) fn thread_start(budget: Duration) -> Spread {
    sample(budget, || {
        let before = Instant::now();
        // A thread that cannot be started takes the whole command with it: so it would elsewhere.
        thread::scope(|scope| _ = scope.spawn(|| ()));
        nanoseconds(before.elapsed())
    })
}

/// From one thread of a CPU to another one: a wake-up of the other one, a sleep of one's own and a
/// switch. Two threads take turns there.
pub(super) fn switch(cpu: Option<usize>, budget: Duration) -> Spread {
    let (turn, over) = (AtomicU64::new(0), AtomicBool::new(false));
    // Acquire and Release of the turn: what was written before it is seen after it.
    let wait_while_parity_is = |parity: u64| {
        while turn.load(Ordering::Acquire) & 1 == parity {
            thread::park();
        }
    };
    let pass_turn_to = |other: &thread::Thread| {
        turn.fetch_add(1, Ordering::Release);
        other.unpark();
    };
    let first = thread::current();
    thread::scope(|scope| {
        let second = scope.spawn(|| {
            _ = cpu.inspect(|&cpu| pin(cpu));
            loop {
                wait_while_parity_is(0);
                // Relaxed: the turn orders it.
                if over.load(Ordering::Relaxed) {
                    return;
                }
                pass_turn_to(&first);
            }
        });
        let round_trip = sample(budget, || {
            let before = Instant::now();
            pass_turn_to(second.thread());
            wait_while_parity_is(1);
            nanoseconds(before.elapsed())
        });
        over.store(true, Ordering::Relaxed);
        pass_turn_to(second.thread());
        let half = |ns: f64| ns / 2.0;
        Spread {
            median: half(round_trip.median),
            low: half(round_trip.low),
            high: half(round_trip.high),
        }
    })
}

/// What is timed of a wake-up.
#[derive(Clone, Copy, Debug)]
pub(super) enum WakeUp {
    /// What the thread that wakes another one pays.
    Call,
    /// From the beginning of that until the other one runs.
    Latency,
}

/// A thread on the first CPU wakes one that sleeps on the second.
pub(super) fn wake_up(
    what: WakeUp,
    cpus: (usize, usize),
    budget: Duration,
    stop: &AtomicBool,
) -> Option<Spread> {
    let base = Instant::now();
    let (parked, woken_at, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let samples = thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            pin(cpus.1);
            // Relaxed: the flags say when; the time is published with Release.
            while !over.load(Ordering::Relaxed) {
                parked.fetch_add(1, Ordering::Relaxed);
                thread::park();
                woken_at.store(base.elapsed().as_nanos() as u64, Ordering::Release);
            }
        });
        let woken = sleeper.thread().clone();
        let (parked, woken_at, over) = (&parked, &woken_at, &over);
        let waker = scope.spawn(move || {
            pin(cpus.0);
            let mut samples = Vec::new();
            let start = Instant::now();
            for round in 1.. {
                while parked.load(Ordering::Relaxed) < round {
                    spin_loop();
                }
                let announced = Instant::now();
                while announced.elapsed() < UNTIL_PARKED {
                    spin_loop();
                }
                let last = samples.len() >= SAMPLES_MIN && start.elapsed() >= budget;
                let last = last || stop.load(Ordering::Relaxed);
                over.store(last, Ordering::Relaxed);
                woken_at.store(0, Ordering::Relaxed);
                let before = base.elapsed().as_nanos() as u64;
                woken.unpark();
                let after = base.elapsed().as_nanos() as u64;
                let ran_at = loop {
                    // Acquire, of the Release above.
                    match woken_at.load(Ordering::Acquire) {
                        0 => spin_loop(),
                        at => break at,
                    }
                };
                samples.push(match what {
                    WakeUp::Call => (after - before) as f64,
                    WakeUp::Latency => ran_at.saturating_sub(before) as f64,
                });
                if last {
                    break;
                }
            }
            samples
        });
        waker.join().unwrap_or_default()
    });
    (!stop.load(Ordering::Relaxed) && !samples.is_empty()).then(|| spread(&samples))
}

/// What a CPU loses to the interrupt of another CPU's `membarrier`: by how much less a thread
/// counts there. Nothing where the kernel refuses it.
pub(super) fn interrupt(cpus: (usize, usize), budget: Duration) -> Option<Spread> {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).ok()?;
    let (counter, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(cpus.1);
            // Relaxed: the flag and the count carry no data.
            while !over.load(Ordering::Relaxed) {
                counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                spin_loop();
            }
        });
        let measured = scope.spawn(|| {
            pin(cpus.0);
            while counter.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            lost_by_interrupts(&counter, budget)
        });
        let measured = measured.join().ok();
        over.store(true, Ordering::Relaxed);
        measured.filter(|samples| !samples.is_empty()).map(|samples| spread(&samples))
    })
}

/// Of each pair of watches, one with interrupts and one without, what an interrupt has cost.
fn lost_by_interrupts(counter: &AtomicU64, budget: Duration) -> Vec<f64> {
    // Counts in a nanosecond, and how many times `act` was done meanwhile.
    let watch = |act: &dyn Fn()| {
        let (begin, from) = (Instant::now(), counter.load(Ordering::Relaxed));
        let mut acts = 0_u32;
        while begin.elapsed() < WATCHED {
            act();
            acts += 1;
        }
        let ns = nanoseconds(begin.elapsed());
        ((counter.load(Ordering::Relaxed) - from) as f64 / ns, ns / f64::from(acts))
    };
    let start = Instant::now();
    let mut samples = Vec::new();
    // The other CPU may be another program's all the while.
    while (samples.len() < SAMPLES_MIN && start.elapsed() < 8 * budget.max(WATCHED * 16))
        || start.elapsed() < budget
    {
        let (undisturbed, _) = watch(&spin_loop);
        // Refused it was not when it was registered.
        let (disturbed, apart_ns) = watch(&|| _ = membarrier(MembarrierCommand::PrivateExpedited));
        if undisturbed > 0.0 {
            samples.push((1.0 - disturbed / undisturbed).max(0.0) * apart_ns);
        }
    }
    samples
}

/// Samples for about `budget`.
fn sample(budget: Duration, mut measure: impl FnMut() -> f64) -> Spread {
    let start = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < SAMPLES_MIN || start.elapsed() < budget {
        samples.push(measure());
    }
    spread(&samples)
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}
