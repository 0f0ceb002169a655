//! The threads of a run. They live as long as the run, sleep between bursts, and spin for orders
//! during a burst.
//!
//! The caller leads: it is thread 0 of every row. An order is a row and a count. Each thread of the
//! row warms up, reports, waits for the others without leaving its CPU, and works.
//!
//! Invariants:
//! - The leader gives an order after all threads have answered the one before.
//! - A thread takes each order that is for it once: orders are numbered, and name their threads.
//! - No thread waits for one that has panicked: [`Crew::break_off`] ends all waits.

use std::collections::BTreeSet;
use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Scope, Thread};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use scopeguard::{ScopeGuard, defer_on_unwind, guard};

use super::control::{Ball, instructions_at_once};
use super::judge::Span;
use super::{Aim, Part, Row, WARM_UP, verdict};
use crate::clock::{now, thread_cpu_time};

/// Looks before a CPU is offered to others: the one that is waited for may need it.
const LOOKS_BEFORE_YIELD: u32 = 20_000;
/// The priority of a measurement, where that is permitted.
const NICE: i32 = -20;

#[derive(Default)]
pub(super) struct Crew<'a> {
    rows: &'a [Row<'a>],
    /// Threads that spin for orders; the others sleep.
    mustered: AtomicUsize,
    /// Where they go before: thread 0 to the CPU of this number among `cpus`, the next one to the
    /// next.
    place: Mutex<Option<u32>>,
    /// Those that they may use.
    pub(super) cpus: Vec<usize>,
    /// A row has more threads than there are CPUs: who waits offers its own to others at once.
    is_crowded: bool,
    /// The number of the order, and its threads: `number * THREADS + threads`.
    order: AtomicUsize,
    /// Its row, the operations of each thread, and the number of the slice.
    task: Mutex<(usize, u64, Option<u32>)>,
    /// Threads that are here, and that have answered.
    here: AtomicUsize,
    answered: AtomicUsize,
    /// The last phase that a timed thread has done: two of each order.
    over: AtomicU64,
    /// What each thread saw of the last slice.
    spans: Vec<Mutex<Span>>,
    ball: Ball,
    is_broken: AtomicBool,
    sleepers: OnceLock<Vec<Thread>>,
}

/// Orders name at most so many threads, less one.
const THREADS: usize = 1 << 12;

impl<'a> Crew<'a> {
    pub(super) fn new(rows: &'a [Row<'a>]) -> Crew<'a> {
        let threads = rows.iter().map(|row| row.threads).max().unwrap_or(1);
        assert!(threads < THREADS, "{threads} threads");
        let cpus = own_cpus();
        let is_crowded = threads > cpus.len();
        let spans = (0..threads).map(|_| Mutex::default()).collect();
        Crew { rows, mustered: 1.into(), is_crowded, cpus, spans, ..Crew::default() }
    }

    /// Starts all threads but the leader's. They end when what is returned is dropped, also by a
    /// panic.
    pub(super) fn start<'s>(&'s self, scope: &'s Scope<'s, '_>, pin: bool) -> impl Sized + 's {
        let cpus = if pin { &self.cpus[..] } else { &[] };
        let leader = guard(cpus.first().map(|&cpu| pinned(cpu)), |_| {
            self.break_off();
            self.sleepers.get().into_iter().flatten().for_each(Thread::unpark);
        });
        let start = |me: usize| {
            let cpu = cpus.get(me).copied();
            scope.spawn(move || self.serve(me, cpu)).thread().clone()
        };
        let sleepers = (1..self.spans.len()).map(start).collect();
        assert!(self.sleepers.set(sleepers).is_ok(), "a crew is started once");
        leader
    }

    /// One thread's life.
    fn serve(&self, me: usize, cpu: Option<usize>) {
        defer_on_unwind!(self.break_off());
        let _pinned = cpu.map(pinned);
        let _raised = raised();
        let (mut seen, mut is_mustered) = (0, false);
        // Acquire: pairs with the Release of `muster`, of an order, and of the end.
        while !self.is_broken.load(Ordering::Acquire) {
            let order = self.order.load(Ordering::Acquire);
            if order != seen && me < order % THREADS {
                seen = order;
                self.work(me, order);
            } else if me < self.mustered.load(Ordering::Acquire) {
                if !is_mustered {
                    is_mustered = true;
                    self.settle(me);
                }
                if self.is_crowded {
                    thread::yield_now();
                }
                std::hint::spin_loop();
            } else {
                is_mustered = false;
                thread::park();
            }
        }
    }

    /// Goes where the threads of the burst are to be, and may be moved from there again: where two
    /// of them share a CPU while others want all, the kernel leaves them there for long.
    fn settle(&self, me: usize) {
        let place = *self.place.lock();
        if let Some(place) = place.filter(|_| !self.cpus.is_empty()) {
            drop(pinned(self.cpus[(place as usize + me) % self.cpus.len()]));
        }
    }

    /// Has so many threads spin for orders, until what is returned is dropped; on CPUs of their own
    /// from this one on, if one is named.
    pub(super) fn muster(&self, threads: usize, place: Option<u32>) -> impl Sized {
        *self.place.lock() = place;
        // Release: a thread that is woken sees that it is wanted.
        self.mustered.store(threads, Ordering::Release);
        let sleepers = self.sleepers.get().map_or(&[][..], |all| &all[..threads - 1]);
        sleepers.iter().for_each(Thread::unpark);
        self.settle(0);
        guard(self, |crew| crew.mustered.store(1, Ordering::Release))
    }

    /// Has the threads of a row do a slice of so many operations each; what each of them saw.
    pub(super) fn slice(&self, row: usize, count: u64, slice: Option<u32>) -> Vec<Span> {
        let threads = self.rows[row].threads;
        *self.task.lock() = (row, count, slice);
        // Relaxed: the order publishes them.
        self.here.store(0, Ordering::Relaxed);
        self.ball.reset();
        self.answered.store(1, Ordering::Relaxed);
        let number = self.order.load(Ordering::Relaxed) / THREADS + 1;
        let order = number * THREADS + threads;
        // Release: pairs with the Acquire in `serve`.
        self.order.store(order, Ordering::Release);
        self.work(0, order);
        // Acquire: pairs with the Release in `work`; all spans are there.
        self.wait(|| self.answered.load(Ordering::Acquire) == threads);
        self.spans[..threads].iter().map(|span| *span.lock()).collect()
    }

    /// One thread's part of an order.
    fn work(&self, me: usize, order: usize) {
        let (row, count, slice) = *self.task.lock();
        let row = &self.rows[row];
        let phase = 2 * (order / THREADS) as u64;
        // No timed thread's warm-up is cut short; the other threads' ends with the first of these.
        let until = if me < row.timed { u64::MAX } else { phase };
        let warm_up = (count / WARM_UP).max(1);
        self.part(row, &Part::new(me, warm_up, None, (&self.over, until)), phase);
        // Acquire and Release: what the threads did before comes before what they do after.
        self.here.fetch_add(1, Ordering::AcqRel);
        self.wait(|| self.here.load(Ordering::Acquire) == row.threads);
        let are_placed = row.threads > 1 && !self.is_crowded;
        let at_once = if are_placed { instructions_at_once() } else { 0 };
        let distance = if are_placed { self.ball.throw(me) } else { None };
        // Threads of its own may still be about to end.
        let others = || match row.sleeps {
            Some(own) => verdict::runnable().saturating_sub(1 + own),
            None => 0,
        };
        let mut others_ran = others();
        let part = Part::new(me, count, slice, (&self.over, phase + 1));
        let before = Look::now();
        let took = self.part(row, &part, phase + 1);
        let after = Look::now();
        others_ran += others();
        *self.spans[me].lock() = Span {
            begin_ns: before.at_ns,
            end_ns: after.at_ns,
            took_ns: took.as_nanos() as u64,
            did: part.did.get(),
            cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
            switches: after.switches - before.switches,
            slept: row.aim == Aim::Compared && after.sleeps > before.sleeps,
            cpus: [before.cpu, after.cpu],
            told: part.told.get(),
            others: others_ran,
            waited_ns: None,
            at_once,
            distance,
        };
        if me > 0 {
            // Release: pairs with the Acquire in `slice`.
            self.answered.fetch_add(1, Ordering::Release);
        }
    }

    /// Ends all waits, and all parts that ask whether they are over.
    fn break_off(&self) {
        self.is_broken.store(true, Ordering::Release);
        self.over.store(u64::MAX, Ordering::Relaxed);
    }

    /// Does a part, and ends those of the others.
    fn part(&self, row: &Row<'_>, part: &Part<'_>, phase: u64) -> Duration {
        let took = (row.body)(part);
        if part.me < row.timed {
            // Relaxed: the number publishes nothing; others only end their loops.
            self.over.fetch_max(phase, Ordering::Relaxed);
        }
        took
    }

    /// Spins until it holds.
    ///
    /// # Panics
    /// If another thread has panicked.
    fn wait(&self, holds: impl Fn() -> bool) {
        spin_until(self.is_crowded, || {
            holds() || {
                assert!(!self.is_broken.load(Ordering::Relaxed), "no thread of a row panics");
                false
            }
        });
    }
}

/// Spins until it holds. Where CPUs are few, it offers its own to others at each look.
pub(crate) fn spin_until(is_crowded: bool, mut holds: impl FnMut() -> bool) {
    let mut looks = 0_u32;
    while !holds() {
        looks = looks.wrapping_add(1);
        if is_crowded || looks.is_multiple_of(LOOKS_BEFORE_YIELD) {
            thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// A thread's clocks at one moment.
struct Look {
    cpu: usize,
    switches: u64,
    sleeps: u64,
    cpu_ns: u64,
    at_ns: u64,
}

impl Look {
    fn now() -> Look {
        let cpu = sched_getcpu();
        let (switches, sleeps) = switches();
        let cpu_ns = thread_cpu_time().as_nanos() as u64;
        Look { cpu, switches, sleeps, cpu_ns, at_ns: now().as_nanos() as u64 }
    }
}

/// How often the calling thread lost its CPU, and how often it gave it away.
fn switches() -> (u64, u64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: there is room for the answer.
    let error = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    assert_eq!(error, 0, "every thread has a usage");
    // SAFETY: all numbers, which may be zero, and by now are filled in.
    let usage = unsafe { usage.assume_init() };
    (usage.ru_nivcsw as u64, usage.ru_nvcsw as u64)
}

/// The CPUs that the calling thread may use.
pub fn own_cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect()
}

/// How many cores these CPUs are, as far as the kernel knows: one that is a virtual machine's guest
/// may not.
pub(super) fn cores(cpus: &[usize]) -> usize {
    let core = |cpu: &usize| {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        fs::read_to_string(file).unwrap_or_else(|_| cpu.to_string())
    };
    cpus.iter().map(core).collect::<BTreeSet<String>>().len()
}

/// What was before; dropped, it is so again, if that is known.
pub(crate) type Restored<T> = ScopeGuard<Option<T>, fn(Option<T>)>;

/// The calling thread on one CPU; dropped, it may go where it could before. Where it is forbidden,
/// the kernel's own choice has to do.
pub(crate) fn pinned(cpu: usize) -> Restored<CpuSet> {
    let before = sched_getaffinity(None).ok();
    let mut set = CpuSet::new();
    set.set(cpu);
    guard(sched_setaffinity(None, &set).ok().and(before), |before| {
        let _ = before.map(|before| sched_setaffinity(None, &before));
    })
}

/// The calling thread at the highest priority, where that is permitted; dropped, at its own again.
pub(super) fn raised() -> Restored<i32> {
    let before = getpriority_process(None).ok();
    guard(setpriority_process(None, NICE).ok().and(before), |before| {
        let _ = before.map(|before| setpriority_process(None, before));
    })
}

/// The file with the priority of the session's threads among those of other sessions, where the
/// kernel groups them by these: among the groups that of a thread counts for nothing.
const AUTOGROUP: &str = "/proc/self/autogroup";

/// The session at the highest priority, where that is permitted; dropped, at its own again.
pub(super) fn raised_session() -> Restored<String> {
    // `/autogroup-176 nice 0`
    let text = fs::read_to_string(AUTOGROUP).unwrap_or_default();
    let before = text.rsplit(' ').next().map(|nice| nice.trim().to_owned());
    guard(before.filter(|_| fs::write(AUTOGROUP, NICE.to_string()).is_ok()), |before| {
        let _ = before.map(|before| fs::write(AUTOGROUP, before));
    })
}
