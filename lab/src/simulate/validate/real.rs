//! The threads of a simulation, run by this machine: what [`simulate::ours::run`] models, done with
//! the library.
//!
//! A thread's work is measured in its own running time, as the model counts it: what the clock
//! shows between two looks counts up to [`STEP_MAX`], so that an interrupt, a preemption or a stay
//! in the kernel is no work. A wait is counted without what the clock itself takes. Draws come from
//! the same generator as the model's; which thread runs when is this machine's to say.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quiescence::{Domain, Engine, Private, Reader, Statistics, Tuning};
use simulate::histogram::{Histogram, Summary};
use simulate::ours::{Algorithm, Options, Role};
use simulate::random::Random;

/// Between two looks at the clock a thread has worked for so long at most.
const STEP_MAX: Duration = Duration::from_nanos(250);
/// Enough for what these threads do; thousands of them fit.
const STACK_BYTES: usize = 128 << 10;

/// What came of a run, counted as [`simulate::ours::Report`] counts it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) duration: Duration,
    pub(super) updates: u64,
    /// Callbacks that were queued, and that have run.
    pub(super) queued: u64,
    pub(super) run: u64,
    pub(super) reads: u64,
    pub(super) waits_ns: Summary,
    pub(super) grace_periods: u64,
    pub(super) membarriers: u64,
}

/// The engine of the library that an algorithm is; none for liburcu's, or one with other numbers
/// than an engine has.
pub(super) fn engine(algorithm: Algorithm) -> Option<Engine> {
    Engine::ALL.into_iter().find(|engine| Algorithm::named(engine.name()) == Some(algorithm))
}

/// Runs the threads in a domain of their own with this engine.
///
/// # Panics
/// If a thread cannot be started, or queues closures ([`Role::Calls`]): their size is a matter of
/// the program's text.
pub(super) fn run(engine: Engine, options: &Options) -> Seen {
    let run = Run::new(engine, options);
    let mut random = Random::new(options.seed);
    let (duration, [before, after]) = thread::scope(|scope| {
        let mut threads = Vec::new();
        for group in &options.threads {
            for _ in 0..group.count {
                let (run, role, random) = (&run, group.role, random.split());
                let thread = thread::Builder::new().stack_size(STACK_BYTES);
                let body = move || Thread::new(run, random).live(role);
                let started = thread.spawn_scoped(scope, body);
                threads.push(started.expect("a thread can be started").thread().clone());
            }
        }
        let watched = run.watch(options);
        // Relaxed: the flag carries no data.
        run.over.store(true, Ordering::Relaxed);
        threads.iter().for_each(thread::Thread::unpark);
        watched
    });
    // What waits is no burden of the next run.
    run.domain.barrier();
    let waits = run.waits.into_inner().unwrap_or_else(PoisonError::into_inner);
    Seen {
        duration,
        updates: run.updates.into_inner(),
        queued: after.callbacks_queued - before.callbacks_queued,
        run: after.callbacks_run - before.callbacks_run,
        reads: run.reads.into_inner(),
        waits_ns: waits.summary(),
        grace_periods: after.grace_periods - before.grace_periods,
        membarriers: after.heavy_fences - before.heavy_fences,
    }
}

/// What the threads share.
struct Run {
    domain: Domain,
    ready: Barrier,
    /// Whether things are counted.
    counts: AtomicBool,
    over: AtomicBool,
    updates: AtomicU64,
    reads: AtomicU64,
    waits: Mutex<Histogram>,
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
        let threads: u32 = options.threads.iter().map(|group| group.count).sum();
        Self {
            domain: Domain::builder().engine(engine).tuning(tuning).build(),
            ready: Barrier::new(threads as usize + 1),
            counts: AtomicBool::new(false),
            over: AtomicBool::new(false),
            updates: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            waits: Mutex::new(Histogram::new()),
        }
    }

    /// Counts for as long as the options say. Returns how long that was, and what the domain's
    /// statistics were before and after.
    fn watch(&self, options: &Options) -> (Duration, [Statistics; 2]) {
        self.ready.wait();
        thread::sleep(Duration::from_nanos(options.warm_up));
        let before = self.domain.statistics();
        // Relaxed, here and below: the flag carries no data.
        self.counts.store(true, Ordering::Relaxed);
        let begin = Instant::now();
        thread::sleep(Duration::from_nanos(options.duration));
        self.counts.store(false, Ordering::Relaxed);
        (begin.elapsed(), [before, self.domain.statistics()])
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
    /// What a look at the clock takes.
    look: Duration,
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
        let waits = Histogram::new();
        Self { run, random, worked_ns: 0, until_ns: 0, looked, look, updates: 0, reads: 0, waits }
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

    /// Works for so long; what it did since it was resumed counts.
    fn work(&mut self, ns: u64) {
        self.until_ns += ns;
        while self.worked_ns < self.until_ns {
            let now = Instant::now();
            let step = (now - self.looked).min(STEP_MAX);
            self.worked_ns += step.as_nanos() as u64;
            self.looked = now;
        }
    }

    fn sleep(&mut self, mean_ns: u64) {
        thread::sleep(Duration::from_nanos(self.random.exponential(mean_ns)));
        self.resume();
    }

    /// What it does until the run is over. Then what was counted is added up.
    fn live(mut self, role: Role) {
        match role {
            Role::Comes { section_ns, gap_ns, life_ns, apart_ns } => {
                self.run.ready.wait();
                self.start_threads(section_ns, gap_ns, life_ns, apart_ns);
            }
            Role::Idle => self.idle(),
            Role::Reads { section_ns, gap_ns, run_ns, sleep_ns } => {
                let reader = self.begin();
                while !self.is_over() {
                    self.read_for(&reader, [section_ns, gap_ns], run_ns);
                    self.sleep(sleep_ns);
                }
            }
            Role::Qsbr { turn_ns, run_ns, sleep_ns } => self.loops(turn_ns, run_ns, sleep_ns),
            Role::Blocks { section_ns, apart_ns } => {
                let reader = self.begin();
                while !self.is_over() {
                    self.sleep(apart_ns);
                    let section = reader.read();
                    self.sleep(section_ns);
                    drop(section);
                }
            }
            Role::Waits { work_ns, expedited_ppm, sleeps, reads } => {
                let _reader = reads.then(|| self.run.domain.reader());
                self.wait_for_grace_periods(work_ns, expedited_ppm, sleeps);
            }
            Role::Retires { work_ns, bytes, burst, sleep_ns } => {
                self.retire(work_ns, bytes, burst, sleep_ns);
            }
            Role::Calls { .. } => unreachable!("no workload that is run for real has closures"),
        }
        self.run.updates.fetch_add(self.updates, Ordering::Relaxed);
        self.run.reads.fetch_add(self.reads, Ordering::Relaxed);
        self.run.waits.lock().unwrap_or_else(PoisonError::into_inner).add(&self.waits);
    }

    /// Registers; begins when all threads are there.
    fn begin(&mut self) -> Reader<Private> {
        let reader = self.run.domain.reader();
        self.run.ready.wait();
        self.resume();
        reader
    }

    fn idle(&mut self) {
        let reader = self.begin();
        drop(reader.read());
        while !self.is_over() {
            thread::park();
        }
    }

    /// Reads for a spell: without end, if its mean is 0.
    fn read_for(&mut self, reader: &Reader<Private>, [section_ns, gap_ns]: [u64; 2], run_ns: u64) {
        let spell_ns = if run_ns == 0 { u64::MAX } else { self.random.exponential(run_ns) };
        let ends = self.worked_ns.saturating_add(spell_ns);
        while self.worked_ns < ends && !self.is_over() {
            let gap = self.random.exponential(gap_ns);
            self.work(gap);
            let section = reader.read();
            let inside = self.random.exponential(section_ns);
            self.work(inside);
            drop(section);
            self.reads += u64::from(self.counts());
        }
    }

    fn loops(&mut self, turn_ns: u64, run_ns: u64, sleep_ns: u64) {
        let mut qsbr = self.run.domain.qsbr();
        self.run.ready.wait();
        self.resume();
        while !self.is_over() {
            let spell_ns = if run_ns == 0 { u64::MAX } else { self.random.exponential(run_ns) };
            let ends = self.worked_ns.saturating_add(spell_ns);
            while self.worked_ns < ends && !self.is_over() {
                let turn = self.random.exponential(turn_ns);
                self.work(turn);
                qsbr.quiescent_state();
                self.reads += u64::from(self.counts());
            }
            qsbr.while_offline(|| self.sleep(sleep_ns));
        }
    }

    fn start_threads(&mut self, section_ns: u64, gap_ns: u64, life_ns: u64, apart_ns: u64) {
        while !self.is_over() {
            let mut started = Thread::new(self.run, self.random.split());
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
            self.reads += started;
            self.sleep(apart_ns);
        }
    }

    fn wait_for_grace_periods(&mut self, work_ns: u64, expedited_ppm: u32, sleeps: bool) {
        self.run.ready.wait();
        self.resume();
        while !self.is_over() {
            if sleeps {
                self.sleep(work_ns);
            } else {
                let work = self.random.exponential(work_ns);
                self.work(work);
            }
            let expedited = self.random.chance_ppm(expedited_ppm);
            let began = Instant::now();
            if expedited {
                self.run.domain.synchronize_expedited();
            } else {
                self.run.domain.synchronize();
            }
            let took = began.elapsed().saturating_sub(self.look);
            if self.counts() {
                self.updates += 1;
                // Those in a hurry are another figure.
                self.waits.record_many(took.as_nanos() as u64, u64::from(!expedited));
            }
            self.resume();
        }
    }

    fn retire(&mut self, work_ns: u64, bytes: u64, burst: u32, sleep_ns: u64) {
        self.run.ready.wait();
        self.resume();
        let mut left = burst;
        while !self.is_over() {
            // To allocate what is retired is part of the work.
            let object = Vec::<u8>::with_capacity(bytes as usize);
            self.work(work_ns);
            let retired = self.run.domain.retire_sized(object, bytes as usize);
            assert!(retired.is_ok(), "no section is open, so the domain waits for room");
            self.updates += u64::from(self.counts());
            if burst != 0 {
                left -= 1;
                if left == 0 {
                    left = burst;
                    self.sleep(sleep_ns);
                }
            }
            self.resume();
        }
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

    #[test]
    fn threads_of_all_roles_do_what_they_are_there_for() {
        let group = |role| simulate::ours::Group { count: 1, role };
        let times = [300, 700];
        let [section_ns, gap_ns] = times;
        let (run_ns, sleep_ns) = (100_000, 100_000);
        let roles = [
            Role::Idle,
            Role::Reads { section_ns, gap_ns, run_ns, sleep_ns },
            Role::Qsbr { turn_ns: 2_000, run_ns, sleep_ns },
            Role::Blocks { section_ns: sleep_ns, apart_ns: sleep_ns },
            Role::Comes { section_ns, gap_ns, life_ns: run_ns, apart_ns: sleep_ns },
            Role::Waits { work_ns: 9_000, expedited_ppm: 500_000, sleeps: true, reads: true },
            Role::Retires { work_ns: 500, bytes: 64, burst: 100, sleep_ns },
        ];
        let algorithm = Algorithm::named("adaptive").expect("it is the default");
        let mut options = Options::new(algorithm, roles.map(group).to_vec());
        (options.warm_up, options.duration) = (1_000_000, 40_000_000);
        let seen = run(Engine::Adaptive, &options);
        assert!(seen.reads > 0 && seen.updates > 0 && seen.queued > 0, "{seen:?}");
        assert!(seen.waits_ns.count > 0 && seen.grace_periods > 0, "{seen:?}");
        assert!(seen.duration >= Duration::from_nanos(options.duration));
    }

    #[test]
    fn the_workloads_of_this_machine_can_be_run() {
        for workload in workloads::of_machine(2) {
            let has_closures = |role: &Role| matches!(role, Role::Calls { .. });
            assert!(!workload.threads.iter().any(|group| has_closures(&group.role)));
        }
    }
}
