//! The engines of a domain side by side, on a path-lookup cache: what dcachebench was to
//! rcu_ltimer, rcu_poll and rcu_sched (Arcangeli, Cao, McKenney, Sarma, FREENIX 2003, table 3).
//!
//! As many QSBR readers as CPUs look up paths of a real directory tree in a [`PathCache`]; now and
//! then one renames, unlinks or links again a file of its own. An *iteration* is a fixed number of
//! look-ups, followed by a pause offline: benchmarks whose CPUs have nothing to do at times show
//! what an engine does with idle ones. In the background a callback at a time is queued, and beside
//! the readers one thread waits for grace periods, both to see how long they take.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quiescence::{Domain, Engine, Private, Qsbr};
use rustix::time::{ClockId, clock_gettime};

use super::path_cache::{Id, PathCache, Tree};
use super::thread_pool::{Presence, StopOnDrop};

/// Look-ups in one iteration.
pub const LOOK_UPS: usize = 4_000;
/// Look-ups between two changes of a thread: dcachebench's renames and unlinks beside look-ups.
const LOOK_UPS_PER_CHANGE: usize = 50;
/// Look-ups between two quiescent states.
const LOOK_UPS_PER_QUIESCENT_STATE: usize = 16;
/// The part of an iteration's time that its thread then has nothing to do: dcachebench left a fifth
/// of its CPUs idle.
const PAUSE_DIVISOR: u32 = 4;
/// Between two grace periods that somebody waits for.
const WAITER_PAUSE: Duration = Duration::from_millis(5);

/// What [`measure`] saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Engines {
    /// Nanoseconds for an iteration, its pause not included; the mean of all threads.
    pub ns_per_iteration: f64,
    /// CPU time of the whole process, in per cent of all CPUs.
    pub cpu_percent: f64,
    /// Nanoseconds from `call` to the call, the median; none if none has run.
    pub callback_ns: f64,
    /// Nanoseconds that `synchronize` took, the median.
    pub waiter_ns: f64,
    /// Grace periods in a second.
    pub grace_periods_per_second: f64,
}

/// Runs the cache of this tree in a domain with this engine, on so many threads, for about
/// `duration`.
///
/// # Panics
/// If a look-up of an entry that no thread touches fails, which would be a fault of ours.
pub fn measure(engine: Engine, tree: &Tree, threads: usize, duration: Duration) -> Engines {
    let threads = threads.max(1);
    let domain = Domain::builder().engine(engine).build();
    let bench = Bench {
        cache: PathCache::new(tree, &domain),
        domain: domain.clone(),
        tree,
        threads,
        duration,
        callback_ns: Arc::new(Mutex::new(Vec::new())),
    };
    let grace_periods_before = domain.statistics().grace_periods;
    let (cpu_before, begin) = (process_cpu(), Instant::now());
    let stop = AtomicI32::new(0);
    let (iterations, waits) = thread::scope(|scope| {
        let end = StopOnDrop(&stop);
        let waiter = scope.spawn(|| bench.wait_until(&stop));
        let readers: Vec<_> = (0..threads).map(|n| scope.spawn(move_ref(&bench, n))).collect();
        let iterations: Vec<f64> =
            readers.into_iter().map(|r| r.join().expect("readers do not panic")).collect();
        drop(end);
        (iterations, waiter.join().expect("the waiter does not panic"))
    });
    let elapsed = begin.elapsed();
    let cpu = process_cpu().saturating_sub(cpu_before);
    let grace_periods = domain.statistics().grace_periods - grace_periods_before;
    domain.barrier();
    let callbacks = bench.callback_ns.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Engines {
        ns_per_iteration: iterations.iter().sum::<f64>() / threads as f64,
        cpu_percent: 100.0 * cpu.as_secs_f64() / (elapsed.as_secs_f64() * cpus(threads)),
        callback_ns: median(callbacks),
        waiter_ns: median(waits),
        grace_periods_per_second: grace_periods as f64 / elapsed.as_secs_f64(),
    }
}

/// One run.
struct Bench<'t> {
    cache: PathCache,
    domain: Domain,
    tree: &'t Tree,
    threads: usize,
    duration: Duration,
    callback_ns: Arc<Mutex<Vec<u64>>>,
}

fn move_ref<'b>(bench: &'b Bench<'_>, number: usize) -> impl FnOnce() -> f64 + Send + 'b {
    move || Reader::new(bench, number).run()
}

impl Bench<'_> {
    /// Waits for grace periods, one now and then; how long each took.
    fn wait_until(&self, stop: &AtomicI32) -> Vec<u64> {
        let mut waits = Vec::new();
        // Relaxed: it ends a loop.
        while stop.load(Ordering::Relaxed) == 0 {
            thread::sleep(WAITER_PAUSE);
            let begin = Instant::now();
            self.domain.synchronize();
            waits.push(begin.elapsed().as_nanos() as u64);
        }
        waits
    }
}

/// A thread that looks up paths, and changes some.
struct Reader<'b> {
    bench: &'b Bench<'b>,
    qsbr: Qsbr<Private>,
    /// Paths that no thread changes.
    paths: Vec<(Vec<&'b str>, Id)>,
    /// Files that this thread alone changes.
    own: Vec<OwnFile>,
    next_path: usize,
    next_own: usize,
    /// Whether a callback of this thread is on its way.
    calling: Arc<AtomicBool>,
}

/// What was done last to a file of one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing: it has its name.
    Named,
    /// It has another name.
    Renamed,
    /// It is gone.
    Unlinked,
}

/// A file that one thread alone changes.
struct OwnFile {
    id: Id,
    /// The name that it has when it is renamed: no entry of a real tree is called so, nor any other
    /// file.
    other: String,
    state: State,
}

impl OwnFile {
    fn new(id: Id) -> Self {
        Self { id, other: format!("\u{1}renamed {id}"), state: State::Named }
    }
}

impl<'b> Reader<'b> {
    fn new(bench: &'b Bench<'_>, number: usize) -> Self {
        let files = bench.tree.files();
        // Of each so many files one is touched, by one thread.
        let stride = 2 * bench.threads;
        let own = files.iter().skip(2 * number).step_by(stride);
        let untouched = files.iter().skip(1).step_by(2);
        // With a single file there is none that no thread touches: then the tree is only walked.
        Self {
            bench,
            qsbr: bench.domain.qsbr(),
            paths: untouched.map(|id| (bench.tree.path(*id), *id)).collect(),
            own: own.map(|id| OwnFile::new(*id)).collect(),
            next_path: number * 7_919,
            next_own: 0,
            calling: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Nanoseconds for an iteration.
    fn run(mut self) -> f64 {
        let begin = Instant::now();
        let (mut iterations, mut busy) = (0_u32, Duration::ZERO);
        while iterations == 0 || begin.elapsed() < self.bench.duration {
            let presence = Presence::new();
            let started = Instant::now();
            self.iterate();
            let took = presence.own_time(started.elapsed());
            busy += took;
            iterations += 1;
            self.qsbr.while_offline(|| thread::sleep(took / PAUSE_DIVISOR));
        }
        busy.as_nanos() as f64 / f64::from(iterations)
    }

    fn iterate(&mut self) {
        self.call();
        for number in 1..=LOOK_UPS {
            self.look_up();
            if number.is_multiple_of(LOOK_UPS_PER_CHANGE) {
                self.change();
            }
            if number.is_multiple_of(LOOK_UPS_PER_QUIESCENT_STATE) {
                self.qsbr.quiescent_state();
            }
        }
    }

    fn look_up(&mut self) {
        let Some((path, id)) = self.paths.get(self.next_path % self.paths.len().max(1)) else {
            return;
        };
        // A prime step: the paths come in no order that a prefetcher knows.
        self.next_path = self.next_path.wrapping_add(4_099);
        let found = self.bench.cache.look_up(&self.qsbr.read(), path);
        assert_eq!(found, Some(*id), "{path:?} is there all the time");
    }

    fn change(&mut self) {
        let count = self.own.len();
        let Some(file) = self.own.get_mut(self.next_own % count.max(1)) else { return };
        self.next_own += 1;
        let (id, other) = (file.id, file.other.as_str());
        let (parent, name) = self.bench.tree.entry(id);
        let (cache, section) = (&self.bench.cache, self.qsbr.read());
        file.state = match file.state {
            State::Named => {
                cache.rename(&section, parent, [name, other], id);
                State::Renamed
            }
            State::Renamed => {
                assert!(cache.unlink(&section, parent, other), "it was renamed to that");
                State::Unlinked
            }
            State::Unlinked => {
                cache.link(&section, parent, name, id);
                State::Named
            }
        };
    }

    /// Queues a callback, unless one is on its way, that says how long it took.
    fn call(&self) {
        // Relaxed: it says when to queue the next one and orders nothing.
        if self.calling.swap(true, Ordering::Relaxed) {
            return;
        }
        let (calling, times) = (Arc::clone(&self.calling), Arc::clone(&self.bench.callback_ns));
        let begin = Instant::now();
        self.bench
            .domain
            .call(move || {
                let took = begin.elapsed().as_nanos() as u64;
                times.lock().unwrap_or_else(PoisonError::into_inner).push(took);
                calling.store(false, Ordering::Relaxed);
            })
            .expect("one callback at a time is below every limit");
    }
}

/// The middle one; 0 of none.
fn median(mut times: Vec<u64>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |ns| *ns as f64)
}

fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How many CPUs the threads can keep busy.
fn cpus(threads: usize) -> f64 {
    let all = thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    all.min(threads) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_engine_looks_up_what_is_there_and_ends_grace_periods() {
        // So small that each file is renamed, unlinked and linked again many times.
        let tree = Tree::read(Path::new(env!("CARGO_MANIFEST_DIR")), 40).expect("our sources");
        for engine in Engine::ALL {
            let seen = measure(engine, &tree, 2, Duration::from_millis(30));
            assert!(seen.ns_per_iteration > 0.0, "{engine}");
            assert!(seen.cpu_percent > 0.0, "{engine}");
            assert!(seen.callback_ns > 0.0, "{engine}: a callback has run, at the barrier at last");
            assert!(seen.waiter_ns > 0.0 && seen.grace_periods_per_second > 0.0, "{engine}");
        }
    }
}
