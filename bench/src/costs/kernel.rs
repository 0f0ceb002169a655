//! Costs of the kernel and of threads: system calls, wake-ups, switches, timers, interrupts.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rustix::process::getppid;
use rustix::thread::{MembarrierCommand, membarrier};

use crate::slices::{Missing, Part, Row, pinned, spin_until};

/// A thread that has said it parks does so within this time, on a machine that does little else.
const UNTIL_PARKED: Duration = Duration::from_micros(50);
/// What a sleep is asked for.
const SLEEP: Duration = Duration::from_millis(1);

/// What is timed for the figure of this name, on the first CPUs that this process may use; nothing
/// of figures of other files.
pub(super) fn row(id: &str, cpus: [usize; 2]) -> Option<Row<'static>> {
    Some(match id {
        "interrupt" => interrupt(),
        "system_call" => Row::new(1, |part| part.times(|| _ = black_box(getppid()))),
        "switch" => switch(cpus[0]),
        // What the thread that wakes another one pays.
        "wake_up" => wake_up(cpus, |begin, end, _| end - begin),
        // From the beginning of that until the other one runs.
        "wake_up_latency" => wake_up(cpus, |begin, _, ran| ran.saturating_sub(begin)),
        "sleep_overrun" => asleep(0, || {
            let before = Instant::now();
            thread::sleep(SLEEP);
            before.elapsed().saturating_sub(SLEEP)
        }),
        "thread_start" => asleep(1, || {
            let before = Instant::now();
            // A thread that cannot be started takes the whole command with it: so it would
            // elsewhere.
            thread::scope(|scope| _ = scope.spawn(|| ()));
            before.elapsed()
        }),
        _ => return None,
    })
}

/// Asks the kernel for membarriers of this process.
pub(super) fn register_membarrier() -> Result<(), Missing> {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).map_err(|_| Missing::NoMembarrier)
}

/// One private expedited membarrier.
pub(super) fn heavy_fence() {
    let fenced = membarrier(MembarrierCommand::PrivateExpedited);
    assert!(fenced.is_ok(), "the kernel has registered this process for it");
}

/// Something that sleeps, once for each count, beside so many threads of its own; how long each
/// of them took.
fn asleep(helpers: u64, once: impl Fn() -> Duration + Sync + 'static) -> Row<'static> {
    let body = move |part: &Part<'_>| (0..part.count).map(|_| once()).sum();
    Row { sleeps: Some(helpers), ..Row::new(1, body) }
}

/// From one thread of a CPU to another one: a wake-up of the other one, a sleep of one's own and a
/// switch. Two threads take turns there; a count is a turn of both.
fn switch(cpu: usize) -> Row<'static> {
    let body = move |part: &Part<'_>| {
        let (_pinned, count) = (pinned(cpu), part.count);
        let turn = AtomicU64::new(0);
        // Acquire and Release of the turn: what was written before it is seen after it.
        let wait_while_parity_is = |parity: u64| {
            while turn.load(Ordering::Acquire) & 1 == parity {
                thread::park();
            }
        };
        let pass_turn_to = |other: &Thread| {
            turn.fetch_add(1, Ordering::Release);
            other.unpark();
        };
        let first = thread::current();
        thread::scope(|scope| {
            // It inherits the CPU, and the priority.
            let second = scope.spawn(|| {
                for _ in 0..count {
                    wait_while_parity_is(0);
                    pass_turn_to(&first);
                }
            });
            let before = Instant::now();
            for _ in 0..count {
                pass_turn_to(second.thread());
                wait_while_parity_is(1);
            }
            before.elapsed()
        })
    };
    Row { sleeps: Some(1), ..Row::new(1, body) }.of(2)
}

/// A thread on the first CPU wakes one that sleeps on the second: what is `timed` of when the call
/// began, when it ended, and when the other one ran.
fn wake_up(
    cpus: [usize; 2],
    timed: impl Fn(u64, u64, u64) -> u64 + Sync + 'static,
) -> Row<'static> {
    let body = move |part: &Part<'_>| {
        let (base, count) = (Instant::now(), part.count);
        let (parked, woken_at) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let _pinned = pinned(cpus[1]);
                for round in 1..=count {
                    // Relaxed: it says when. The time is published with Release.
                    parked.store(round, Ordering::Relaxed);
                    thread::park();
                    woken_at.store(base.elapsed().as_nanos() as u64, Ordering::Release);
                }
            });
            let _pinned = pinned(cpus[0]);
            let mut took_ns = 0;
            for round in 1..=count {
                spin_until(false, || parked.load(Ordering::Relaxed) >= round);
                let announced = Instant::now();
                spin_until(false, || announced.elapsed() >= UNTIL_PARKED);
                woken_at.store(0, Ordering::Relaxed);
                let before = base.elapsed().as_nanos() as u64;
                sleeper.thread().unpark();
                let after = base.elapsed().as_nanos() as u64;
                let mut ran_at = 0;
                spin_until(false, || {
                    // Acquire, of the Release above.
                    ran_at = woken_at.load(Ordering::Acquire);
                    ran_at > 0
                });
                took_ns += timed(before, after, ran_at);
            }
            Duration::from_nanos(took_ns)
        })
    };
    Row { sleeps: Some(1), ..Row::new(1, body) }
}

/// What a CPU loses to the interrupt of another CPU's `membarrier`: by how much less a thread
/// counts there.
fn interrupt() -> Row<'static> {
    let counter = AtomicU64::new(0);
    let body = move |part: &Part<'_>| {
        if part.me > 0 {
            return part.until_over(|| {
                // Relaxed: the count carries no data, and no other thread writes it.
                counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                spin_loop();
            });
        }
        // Counts in a nanosecond while `act` is done, and how long that takes.
        let watch = |act: &dyn Fn(Instant)| {
            let (begin, from) = (Instant::now(), counter.load(Ordering::Relaxed));
            act(begin);
            let ns = begin.elapsed().as_nanos() as f64;
            ((counter.load(Ordering::Relaxed) - from) as f64 / ns, ns)
        };
        let (disturbed, ns) = watch(&|_| (0..part.count).for_each(|_| heavy_fence()));
        let as_long = Duration::from_nanos(ns as u64);
        let (undisturbed, _) = watch(&|begin| spin_until(false, || begin.elapsed() >= as_long));
        let lost = if undisturbed > 0.0 { (1.0 - disturbed / undisturbed).max(0.0) } else { 0.0 };
        Duration::from_nanos((lost * ns) as u64)
    };
    Row { timed: 1, ..Row::new(2, body) }
}
