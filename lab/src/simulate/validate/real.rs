//! The threads of a simulation, run by this machine: what [`simulate::ours::run`] models, done with
//! the library.
//!
//! A thread's work is measured in its own running time, as the model counts it: what the clock
//! shows between two looks counts up to [`STEP`], or four looks where the clock is slower, so that
//! of an interrupt, a preemption or a stay in the kernel hardly anything is work. A wait is counted
//! without what the clock itself takes. Draws come from the same generator as the model's; which
//! thread runs when is this machine's to say.

use std::io;
use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use quiescence::{
    Domain, Reader,
    report::Statistics,
    tag::Private,
    tuning::{Engine, Tuning},
};
use simulate::histogram::Histogram;
use simulate::ours::{Algorithm, Group, Options, Role};
use simulate::random::Random;

use super::{Values, values};

/// Between two looks at the clock a thread has worked for so long at most.
const STEP: Duration = Duration::from_nanos(250);
/// Enough for what these threads do; thousands of them fit.
const STACK_BYTES: usize = 128 << 10;

/// The engine of the library that an algorithm is; none for liburcu's, or one with other numbers
/// than an engine has.
pub(super) fn engine(algorithm: Algorithm) -> Option<Engine> {
    Engine::ALL.into_iter().find(|engine| Algorithm::named(engine.name()) == Some(algorithm))
}

/// Runs the threads in a domain of their own with this engine.
///
/// # Errors
/// If a thread cannot be started.
///
/// # Panics
/// If some queue closures ([`Role::Calls`]): their size is a matter of the program's text.
pub(super) fn run(engine: Engine, options: &Options) -> io::Result<Values> {
    let has_closures = |group: &Group| matches!(group.role, Role::Calls { .. });
    assert!(!options.threads.iter().any(has_closures), "closures are not run for real");
    let run = Run::new(engine, options);
    let mut random = Random::new(options.seed);
    let (watched, done) = thread::scope(|scope| {
        let mut threads: Vec<ScopedJoinHandle<'_, Thread<'_>>> = Vec::new();
        let of_group = |group: &Group| iter::repeat_n(group.role, group.count as usize);
        for role in options.threads.iter().flat_map(of_group) {
            let (run, random) = (&run, random.split());
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            match thread.spawn_scoped(scope, move || Thread::new(run, random).live(role)) {
                Ok(started) => threads.push(started),
                Err(error) => {
                    run.end(threads.iter().map(ScopedJoinHandle::thread));
                    return Err(error);
                }
            }
        }
        let watched = run.watch(options, threads.len());
        run.end(threads.iter().map(ScopedJoinHandle::thread));
        let done = threads.into_iter().map(|thread| thread.join().expect("threads do not panic"));
        Ok((watched, done.collect::<Vec<_>>()))
    })?;
    let (duration, [before, after]) = watched;
    // What waits is no burden of the next run.
    run.domain.barrier();
    let mut waits = Histogram::new();
    done.iter().for_each(|thread| waits.add(&thread.waits));
    let since = |count: fn(&Statistics) -> u64| count(&after) - count(&before);
    let rates = [
        done.iter().map(|thread| thread.updates).sum(),
        done.iter().map(|thread| thread.reads).sum(),
        since(|of| of.grace_periods),
        since(|of| of.heavy_fences),
    ];
    let callbacks = [since(|of| of.callbacks_queued), since(|of| of.callbacks_run)];
    Ok(values(duration, rates, callbacks, &waits.summary()))
}

/// What the threads share.
struct Run {
    domain: Domain,
    /// How many threads are there, and whether they may begin.
    gate: Mutex<(usize, bool)>,
    moved: Condvar,
    /// Whether things are counted.
    counts: AtomicBool,
    over: AtomicBool,
}

impl Run {
    fn new(engine: Engine, options: &Options) -> Self {
        let mut tuning = Tuning::default();
        tuning.objects_max = options.limit.objects;
        tuning.bytes_max = options.limit.bytes;
        tuning.lazy = Duration::from_nanos(options.lazy_ns);
        tuning.run_min = u32::try_from(options.run_min).unwrap_or(u32::MAX);
        tuning.run_time = Duration::from_nanos(options.run_ns);
        // A reader that stalls is part of a workload.
        (tuning.stall_after, tuning.stall_after_expedited) = (None, None);
        Self {
            domain: Domain::builder().engine(engine).tuning(tuning).build(),
            gate: Mutex::new((0, false)),
            moved: Condvar::new(),
            counts: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    fn gate(&self) -> MutexGuard<'_, (usize, bool)> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread is there, and waits until it may begin.
    fn arrive(&self) {
        let mut gate = self.gate();
        gate.0 += 1;
        self.moved.notify_all();
        drop(self.moved.wait_while(gate, |(_, open)| !*open));
    }

    fn open(&self) {
        self.gate().1 = true;
        self.moved.notify_all();
    }

    /// Has the threads begin when all are there, and counts for as long as the options say. Returns
    /// how long that was, and what the domain's statistics were before and after.
    fn watch(&self, options: &Options, threads: usize) -> (Duration, [Statistics; 2]) {
        drop(self.moved.wait_while(self.gate(), |(arrived, _)| *arrived < threads));
        self.open();
        thread::sleep(Duration::from_nanos(options.warm_up));
        let (begin, before) = (Instant::now(), self.domain.statistics());
        // Relaxed, here and below: the flags carry no data.
        self.counts.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_nanos(options.duration));
        self.counts.store(false, Ordering::Relaxed);
        (begin.elapsed(), [before, self.domain.statistics()])
    }

    /// Has the threads end.
    fn end<'t>(&self, threads: impl IntoIterator<Item = &'t thread::Thread>) {
        self.over.store(true, Ordering::Relaxed);
        self.open();
        threads.into_iter().for_each(thread::Thread::unpark);
    }
}

/// A thread, and how much it has worked.
struct Thread<'r> {
    run: &'r Run,
    random: Random,
    worked_ns: u64,
    /// Until when it is to work.
    until_ns: u64,
    looked: Instant,
    /// What a look at the clock takes, and the longest time between two of them that is work.
    look: Duration,
    step: Duration,
    updates: u64,
    reads: u64,
    waits: Histogram,
}

/// How many looks at the clock say what one takes.
const LOOKS: u32 = 64;

impl<'r> Thread<'r> {
    fn new(run: &'r Run, random: Random) -> Self {
        let looked = Instant::now();
        let look = (0..LOOKS).map(|_| Instant::now().elapsed()).min().unwrap_or_default();
        Self {
            run,
            random,
            worked_ns: 0,
            until_ns: 0,
            looked,
            look,
            step: STEP.max(4 * look),
            updates: 0,
            reads: 0,
            waits: Histogram::new(),
        }
    }

    fn is_over(&self) -> bool {
        self.run.over.load(Ordering::Relaxed)
    }

    fn counts(&self) -> bool {
        self.run.counts.load(Ordering::Relaxed)
    }

    /// From now on time is its own again: it was in the library, or asleep.
    fn resume(&mut self) {
        self.looked = Instant::now();
    }

    /// Waits until all threads are there.
    fn arrive(&mut self) {
        self.run.arrive();
        self.resume();
    }

    /// Works for so long; what it did since it was resumed counts.
    fn work(&mut self, ns: u64) {
        self.until_ns += ns;
        while self.worked_ns < self.until_ns {
            let now = Instant::now();
            let step = (now - self.looked).min(self.step);
            self.worked_ns += step.as_nanos() as u64;
            self.looked = now;
        }
    }

    fn work_about(&mut self, mean_ns: u64) {
        let ns = self.random.exponential(mean_ns);
        self.work(ns);
    }

    fn sleep(&mut self, mean_ns: u64) {
        thread::sleep(Duration::from_nanos(self.random.exponential(mean_ns)));
        self.resume();
    }

    /// What it does until the run is over. Then it has counted.
    fn live(mut self, role: Role) -> Self {
        match role {
            Role::Comes { section_ns, gap_ns, life_ns, apart_ns } => {
                self.run.arrive();
                self.start_threads(section_ns, gap_ns, life_ns, apart_ns);
            }
            Role::Idle => self.idle(),
            Role::Reads { section_ns, gap_ns, run_ns, sleep_ns } => {
                let reader = self.begin();
                self.repeat(|thread| {
                    thread.read_for(&reader, [section_ns, gap_ns], run_ns);
                    thread.sleep(sleep_ns);
                });
            }
            Role::Qsbr { turn_ns, run_ns, sleep_ns } => self.loops(turn_ns, run_ns, sleep_ns),
            Role::Blocks { section_ns, apart_ns } => {
                let reader = self.begin();
                self.repeat(|thread| {
                    thread.sleep(apart_ns);
                    let section = reader.read();
                    thread.sleep(section_ns);
                    drop(section);
                });
            }
            Role::Waits { work_ns, expedited_ppm, sleeps, reads } => {
                let _reader = reads.then(|| self.run.domain.reader());
                self.wait_for_grace_periods(work_ns, expedited_ppm, sleeps);
            }
            Role::Retires { work_ns, bytes, burst, sleep_ns } => {
                self.retire(work_ns, bytes, burst, sleep_ns);
            }
            Role::Calls { .. } => unreachable!("they were refused"),
        }
        self
    }

    /// Does it once at least, until the run is over.
    fn repeat(&mut self, turn: impl FnMut(&mut Self)) {
        self.repeat_until(u64::MAX, turn);
    }

    /// Registers; begins when all threads are there.
    fn begin(&mut self) -> Reader<Private> {
        let reader = self.run.domain.reader();
        self.arrive();
        reader
    }

    fn idle(&mut self) {
        let reader = self.begin();
        drop(reader.read());
        while !self.is_over() {
            thread::park();
        }
    }

    /// Until when it has worked at the end of a spell: without end, if its mean is 0.
    fn end_of_spell(&mut self, run_ns: u64) -> u64 {
        let spell_ns = if run_ns == 0 { u64::MAX } else { self.random.exponential(run_ns) };
        self.worked_ns.saturating_add(spell_ns)
    }

    /// Does it once at least, until it has worked for so long or the run is over.
    fn repeat_until(&mut self, ends: u64, mut turn: impl FnMut(&mut Self)) {
        loop {
            turn(self);
            if self.worked_ns >= ends || self.is_over() {
                return;
            }
        }
    }

    fn read_for(&mut self, reader: &Reader<Private>, [section_ns, gap_ns]: [u64; 2], run_ns: u64) {
        let ends = self.end_of_spell(run_ns);
        self.repeat_until(ends, |thread| {
            thread.work_about(gap_ns);
            let section = reader.read();
            thread.work_about(section_ns);
            drop(section);
            thread.reads += u64::from(thread.counts());
        });
    }

    fn loops(&mut self, turn_ns: u64, run_ns: u64, sleep_ns: u64) {
        let mut qsbr = self.run.domain.qsbr();
        self.arrive();
        self.repeat(|thread| {
            let ends = thread.end_of_spell(run_ns);
            thread.repeat_until(ends, |thread| {
                thread.work_about(turn_ns);
                qsbr.quiescent_state();
                thread.reads += u64::from(thread.counts());
            });
            qsbr.while_offline(|| thread.sleep(sleep_ns));
        });
    }

    fn start_threads(&mut self, section_ns: u64, gap_ns: u64, life_ns: u64, apart_ns: u64) {
        self.repeat(|this| {
            let mut started = Thread::new(this.run, this.random.split());
            let started = thread::scope(|scope| {
                let body = || {
                    let reader = started.run.domain.reader();
                    started.read_for(&reader, [section_ns, gap_ns], life_ns);
                    started.reads
                };
                let thread = thread::Builder::new().stack_size(STACK_BYTES);
                let started = thread.spawn_scoped(scope, body).expect("a thread can be started");
                started.join().expect("readers do not panic")
            });
            this.reads += started;
            this.sleep(apart_ns);
        });
    }

    fn wait_for_grace_periods(&mut self, work_ns: u64, expedited_ppm: u32, sleeps: bool) {
        self.arrive();
        self.repeat(|thread| {
            if sleeps {
                thread.sleep(work_ns);
            } else {
                thread.work_about(work_ns);
            }
            let expedited = thread.random.chance_ppm(expedited_ppm);
            let began = Instant::now();
            if expedited {
                thread.run.domain.synchronize_expedited();
            } else {
                thread.run.domain.synchronize();
            }
            let took = began.elapsed().saturating_sub(thread.look);
            if thread.counts() {
                thread.updates += 1;
                // Those in a hurry are another figure.
                thread.waits.record_many(took.as_nanos() as u64, u64::from(!expedited));
            }
            thread.resume();
        });
    }

    fn retire(&mut self, work_ns: u64, bytes: u64, burst: u32, sleep_ns: u64) {
        self.arrive();
        let mut left = burst;
        self.repeat(|thread| {
            // To allocate what is retired is part of the work.
            let object = Vec::<u8>::with_capacity(bytes as usize);
            thread.work(work_ns);
            let retired = thread.run.domain.retire_sized(object, bytes as usize);
            assert!(retired.is_ok(), "no section is open, so the domain waits for room");
            thread.updates += u64::from(thread.counts());
            if burst != 0 {
                left -= 1;
                if left == 0 {
                    left = burst;
                    thread.sleep(sleep_ns);
                }
            }
            thread.resume();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulate::ours::workloads;

    #[test]
    fn each_fixed_engine_and_the_default_can_be_run() {
        for name in Algorithm::NAMES {
            let found = Algorithm::named(name).and_then(engine);
            assert_eq!(found.is_some(), name != "liburcu", "{name}");
        }
    }

    /// Each role, once: the run is over before it begins, and counts.
    #[test]
    fn threads_of_all_roles_do_what_they_are_there_for() {
        let [section_ns, gap_ns, run_ns, sleep_ns] = [300, 700, 10_000, 1_000];
        let reads = Role::Reads { section_ns, gap_ns, run_ns, sleep_ns };
        let retires = Role::Retires { work_ns: 500, bytes: 64, burst: 1, sleep_ns };
        let comes = Role::Comes { section_ns, gap_ns, life_ns: run_ns, apart_ns: sleep_ns };
        let waits = |expedited_ppm, sleeps| Role::Waits {
            work_ns: 900,
            expedited_ppm,
            sleeps,
            reads: !sleeps,
        };
        // Reads, updates, waits without hurry.
        let roles = [
            (Role::Idle, [0, 0, 0]),
            (Role::Blocks { section_ns, apart_ns: gap_ns }, [0, 0, 0]),
            (reads, [1, 0, 0]),
            (Role::Qsbr { turn_ns: 2_000, run_ns, sleep_ns }, [1, 0, 0]),
            (comes, [1, 0, 0]),
            (waits(0, true), [0, 1, 1]),
            (waits(1_000_000, false), [0, 1, 0]),
            (retires, [0, 1, 0]),
        ];
        let algorithm = Algorithm::named("adaptive").expect("it is the default");
        for (role, expected) in roles {
            let options = Options::new(algorithm, vec![Group { count: 1, role }]);
            let run = Run::new(Engine::Adaptive, &options);
            run.counts.store(true, Ordering::Relaxed);
            run.end([]);
            let thread = Thread::new(&run, Random::new(1)).live(role);
            run.domain.barrier();
            let [reads, updates, waits] = expected;
            assert_eq!((thread.reads, thread.updates), (reads, updates), "{role:?}");
            assert_eq!(thread.waits.count(), waits, "{role:?}");
            let retired = u64::from(role == retires);
            assert_eq!(run.domain.statistics().callbacks_run, retired, "{role:?}");
        }
    }

    #[test]
    fn no_workload_of_this_machine_has_closures_and_all_can_be_simulated() {
        let algorithm = Algorithm::named("adaptive").expect("it is the default");
        for cpus in [1, 2, 64] {
            for workload in workloads::of_machine(cpus) {
                let options = Options { cpus, ..Options::new(algorithm, workload.threads) };
                assert_eq!(options.check(), Ok(()), "{}", workload.name);
                let has_closures = |group: &Group| matches!(group.role, Role::Calls { .. });
                assert!(!options.threads.iter().any(has_closures), "{}", workload.name);
            }
        }
    }
}
