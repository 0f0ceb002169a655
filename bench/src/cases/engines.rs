//! The engines of a domain side by side, on a path-lookup cache: what dcachebench and dbench were
//! to rcu_ltimer, rcu_poll and rcu_sched (Arcangeli, Cao, McKenney, Sarma, FREENIX 2003, table 3
//! and figure 7).
//!
//! As many QSBR readers as CPUs, each on a CPU of its own, look up paths of a real directory tree
//! name by name in a hash table, as a kernel does in front of its file systems; now and then one
//! moves, unlinks or links again a file of its own. An *iteration* is a fixed number of look-ups,
//! followed by a pause offline: benchmarks whose CPUs have nothing to do at times show what an
//! engine does with idle ones.
//!
//! Nothing is lazy: with [`Tuning::lazy`](quiescence::tuning::Tuning) of 0 the worker asks for a
//! grace period in its next turn, with the urgency of the background, and when that starts, and
//! when its holdouts are scanned again, is the engine's to say. `call_hurry` would not do: it
//! raises the urgency, and asks for a turn of the worker at once, which counts as the tick that
//! `tick` waits for. Nor is there a limit of what may wait, at which readers would.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use quiescence::collections::HashMap;
use quiescence::tag::{Private, Section};
use quiescence::{Domain, Qsbr, tuning::Engine};

use super::object::turn;
use super::tree::{Id, Key, Tree};
use crate::clock::{cpu_time, histogram};
use crate::sample::Sample;
use crate::slices::{Act, Cue, Played, Scene};

/// Look-ups in one iteration.
pub(crate) const LOOK_UPS: usize = 4_000;
/// Look-ups between two changes of a thread: dcachebench's renames and unlinks beside look-ups.
const LOOK_UPS_PER_CHANGE: usize = 50;
/// Look-ups between two callbacks that say how long they took.
const LOOK_UPS_PER_PROBE: usize = 200;
/// The part of an iteration's time that its thread then has nothing to do: dcachebench left a fifth
/// of its CPUs idle.
const PAUSE_DIVISOR: u32 = 4;
/// Between two grace periods that a thread waits for.
const WAITER_PAUSE: Duration = Duration::from_millis(2);
/// The longest latency that is distinguished from longer ones.
const LATENCY_MAX_NS: u64 = 600_000_000_000;

/// What the engines work under.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The tree whose paths are looked up.
    pub(crate) tree: Arc<Tree>,
    /// Threads that look up, at least one.
    pub(crate) threads: usize,
    /// Look-ups of a thread from one quiescent state to the next. There is one at the end of each
    /// iteration besides.
    pub(crate) quiescent_every: usize,
}

/// Runs the cache in a domain with this engine for about `duration`: what iterations cost. The only
/// callbacks are the cache's own, and no thread waits for grace periods. Nanoseconds of an
/// iteration of a thread, of CPU time for it, the process's share of the CPUs in per cent, and
/// grace periods by the second.
///
/// # Panics
/// If a look-up of an entry that no thread touches fails, which would be a fault of ours.
pub(crate) fn work(engine: Engine, load: &Load, duration: Duration) -> Sample {
    let bench = Bench::new(engine, load, false);
    let grace_periods = || bench.domain.statistics().grace_periods;
    let (scene, (begin, cpu_before, grace_periods_before)) = bench.run(|_| {
        let before = (Instant::now(), cpu_time(), grace_periods());
        thread::sleep(duration);
        before
    });
    let [elapsed_s, cpu_s] =
        [begin.elapsed(), cpu_time() - cpu_before].map(|time| time.as_secs_f64());
    let grace_periods = (grace_periods() - grace_periods_before) as f64;
    let readers = || scene.played.iter().map(|reader| reader.result);
    let iterations: f64 = readers().map(|(iterations, _)| f64::from(iterations)).sum();
    let busy_s: f64 = readers().map(|(_, busy)| busy.as_secs_f64()).sum();
    // So many CPUs the threads can keep busy.
    let cpus = thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let cpus_s = elapsed_s * cpus.min(load.threads) as f64;
    let values = [
        1e9 * busy_s / iterations,
        1e9 * cpu_s / iterations,
        100.0 * cpu_s / cpus_s,
        grace_periods / elapsed_s,
    ];
    Sample::new(values, scene.judged())
}

/// The same load: how long callbacks take, many of which are queued for two thirds of `duration`;
/// then, once all of these have run, how long a thread beside the readers waits for grace periods.
/// (At the same time the grace periods of the one would serve the others.) Nanoseconds of the
/// median callback, those that one in a hundred exceeds, and of the median wait.
///
/// # Panics
/// As [`work`].
pub(crate) fn latencies(engine: Engine, load: &Load, duration: Duration) -> Sample {
    let [callbacks, waits] = histograms(engine, load, duration);
    let [p50, p99] = [0.50, 0.99].map(|at| callbacks.value_at_quantile(at));
    let all = [p50, p99, waits.value_at_quantile(0.50)];
    Sample::new(all.map(|ns| ns as f64), None)
}

/// Of the callbacks, and of the waits.
fn histograms(engine: Engine, load: &Load, duration: Duration) -> [Histogram<u64>; 2] {
    let bench = Bench::new(engine, load, true);
    let (_, waits) = bench.run(|stop| {
        thread::sleep(duration * 2 / 3);
        bench.run_out_of_probes(stop);
        bench.wait_for(duration / 3)
    });
    // A probe that slipped in last may still wait.
    bench.domain.barrier();
    let mut callbacks = histogram(LATENCY_MAX_NS);
    for probes in &bench.probes {
        callbacks += &*probes.lock();
    }
    [callbacks, waits]
}

fn record(latencies: &mut Histogram<u64>, took: Duration) {
    latencies.saturating_record((took.as_nanos() as u64).max(1));
}

/// One run.
struct Bench<'t> {
    cache: HashMap<Key, Id, FixedState, Private>,
    domain: Domain,
    load: &'t Load,
    /// Whether readers queue callbacks that say how long they took.
    is_probing: AtomicBool,
    /// Of each reader.
    probes: Vec<Arc<Probes>>,
}

/// What a reader's callbacks say. Each has a reference to it until it has run.
type Probes = Mutex<Histogram<u64>>;

/// The iterations of a reader, and their time, pauses not included.
type Seen = (u32, Duration);

impl<'t> Bench<'t> {
    fn new(engine: Engine, load: &'t Load, is_probing: bool) -> Self {
        let domain = Domain::builder().engine(engine).build();
        let mut tuning = domain.tuning();
        tuning.lazy = Duration::ZERO;
        (tuning.objects_max, tuning.bytes_max) = (u64::MAX, u64::MAX);
        domain.tune(tuning);
        // Room enough, so that the table does not move.
        let cache = HashMap::builder().capacity(2 * load.tree.entries.len());
        let cache = cache.hasher(FixedState::default()).domain(domain.clone()).build();
        // By a QSBR reader: of a thread that has been in another section here, the domain expects
        // more, and executes a heavy fence in each grace period.
        let qsbr = domain.qsbr();
        for (&key, id) in load.tree.entries.iter().zip(1..) {
            cache.read_in(&qsbr.read()).insert(key, id);
        }
        drop(qsbr);
        Self {
            cache,
            domain,
            load,
            is_probing: AtomicBool::new(is_probing),
            probes: (0..load.threads)
                .map(|_| Arc::new(Mutex::new(histogram(LATENCY_MAX_NS))))
                .collect(),
        }
    }

    /// The entry at this path, name by name.
    fn look_up(&self, section: &impl Section<Private>, path: &[&'static str]) -> Option<Id> {
        let step = |parent, name: &&'static str| self.cache.get(&(parent, *name), section).copied();
        path.iter().try_fold(0, step)
    }

    /// Has the readers work while `main` runs.
    fn run<R>(&self, main: impl FnOnce(&AtomicI32) -> R) -> (Scene<Seen>, R) {
        // The worker may run where the thread that starts it may: that must not be a reader, which
        // has one CPU.
        self.domain.call(|| ()).expect("nothing waits yet");
        self.domain.barrier();
        let _turn = turn();
        let act =
            |number| -> Act<'_, Seen> { Box::new(move |cue| Reader::new(self, number).run(cue)) };
        let acts = (0..self.load.threads).map(act).collect();
        Scene::play(0, acts, main)
    }

    /// Waits until a probe of each reader has run, on a busy machine too. Then has no more probes
    /// queued, and waits until those there are have run, beside the same load.
    fn run_out_of_probes(&self, stop: &AtomicI32) {
        let wait_while = |holds: &dyn Fn() -> bool| {
            // Only a reader that has panicked has stopped.
            while holds() && stop.load(Ordering::Relaxed) == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        };
        wait_while(&|| self.probes.iter().any(|probes| probes.lock().is_empty()));
        // Relaxed: a reader may queue one more, which is then one in thousands.
        self.is_probing.store(false, Ordering::Relaxed);
        // Two references are the reader's and this one's.
        wait_while(&|| self.probes.iter().any(|probes| Arc::strong_count(probes) > 2));
    }

    /// Waits for grace periods, one now and then; how long each took.
    fn wait_for(&self, duration: Duration) -> Histogram<u64> {
        let mut waits = histogram(LATENCY_MAX_NS);
        let begin = Instant::now();
        while waits.is_empty() || begin.elapsed() < duration {
            thread::sleep(WAITER_PAUSE);
            let begin = Instant::now();
            self.domain.synchronize();
            record(&mut waits, begin.elapsed());
        }
        waits
    }
}

/// A thread that looks up paths, and changes some.
struct Reader<'b> {
    bench: &'b Bench<'b>,
    qsbr: Qsbr<Private>,
    /// Paths that no thread changes.
    paths: Vec<(Vec<&'static str>, Id)>,
    /// Files that this thread alone changes, and how often each was changed: it is moved, unlinked,
    /// and linked again, in turn.
    own: Vec<(Id, u64)>,
    next_path: usize,
    next_own: usize,
    probes: Arc<Probes>,
}

impl<'b> Reader<'b> {
    fn new(bench: &'b Bench<'_>, number: usize) -> Self {
        let tree = &bench.load.tree;
        // Of each so many files one is touched, by one thread.
        let stride = 2 * bench.load.threads;
        let own = tree.files.iter().skip(2 * number).step_by(stride);
        let untouched = tree.files.iter().skip(1).step_by(2);
        // With a single file there is none that no thread touches: then the tree is only walked.
        Self {
            bench,
            qsbr: bench.domain.qsbr(),
            paths: untouched.map(|id| (tree.path(*id), *id)).collect(),
            own: own.map(|&id| (id, 0)).collect(),
            next_path: number * 7_919,
            next_own: 0,
            probes: Arc::clone(&bench.probes[number]),
        }
    }

    /// As many iterations as there is time for.
    fn run(mut self, cue: &Cue<'_>) -> Played<Seen> {
        cue.work(|stop| {
            let (mut iterations, mut busy) = (0_u32, Duration::ZERO);
            // Relaxed: it ends a loop.
            while iterations == 0 || stop.load(Ordering::Relaxed) == 0 {
                let started = Instant::now();
                self.iterate();
                let elapsed = started.elapsed();
                busy += elapsed;
                iterations += 1;
                self.qsbr.while_offline(|| thread::sleep(elapsed / PAUSE_DIVISOR));
            }
            (iterations, busy)
        })
    }

    fn iterate(&mut self) {
        for number in 1..=LOOK_UPS {
            self.look_up();
            if number.is_multiple_of(LOOK_UPS_PER_CHANGE) {
                self.change();
            }
            if number.is_multiple_of(LOOK_UPS_PER_PROBE) {
                self.probe();
            }
            if number.is_multiple_of(self.bench.load.quiescent_every) {
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
        let found = self.bench.look_up(&self.qsbr.read(), path);
        assert_eq!(found, Some(*id), "{path:?} is there all the time");
    }

    fn change(&mut self) {
        let count = self.own.len();
        let Some((id, changes)) = self.own.get_mut(self.next_own % count.max(1)) else { return };
        self.next_own += 1;
        let (id, section) = (*id, self.qsbr.read());
        let (cache, key) = (self.bench.cache.read_in(&section), self.bench.load.tree.key(id));
        // In itself, which is no directory: there no other file is.
        let moved = (id, key.1);
        match *changes % 3 {
            0 => {
                cache.insert(moved, id);
                assert!(cache.remove(&key).is_some(), "it was linked");
            }
            1 => assert!(cache.remove(&moved).is_some(), "it was moved there"),
            _ => _ = cache.insert(key, id),
        }
        *changes += 1;
    }

    /// Queues a callback that says how long it took.
    fn probe(&self) {
        // Relaxed: see `Bench::run_out_of_probes`.
        if self.bench.is_probing.load(Ordering::Relaxed) {
            let (probes, queued) = (Arc::clone(&self.probes), Instant::now());
            let called = self.bench.domain.call(move || {
                // Read before the lock is taken: to wait for that is no part of it.
                let took = queued.elapsed();
                record(&mut probes.lock(), took);
            });
            called.expect("there is no limit");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Of so many files of our own; of 40 each is moved, unlinked and linked again many times.
    fn load(entries: usize, threads: usize, quiescent_every: usize) -> Load {
        let tree = Tree::read(Path::new(env!("CARGO_MANIFEST_DIR")), entries).expect("our sources");
        Load { tree: Arc::new(tree), threads, quiescent_every }
    }

    #[test]
    fn every_path_of_a_real_tree_is_found_and_no_other_and_changes_are_seen() {
        let load = load(10_000, 1, 16);
        let bench = Bench::new(Engine::ALL[0], &load, false);
        let look_up = |path: &[&'static str]| bench.look_up(&bench.domain.read(), path);
        for id in 1..=load.tree.entries.len() as Id {
            assert_eq!(look_up(&load.tree.path(id)), Some(id));
        }
        assert_eq!(look_up(&["src", "cases", "tree.rs~"]), None);
        assert!(look_up(&["src", "cases", "tree.rs"]).is_some());
        let mut reader = Reader::new(&bench, 0);
        reader.own.truncate(1);
        let path = load.tree.path(reader.own[0].0);
        let changed = [false, false, true, false].map(|is_there| {
            reader.change();
            look_up(&path).is_some() == is_there
        });
        assert_eq!(changed, [true; 4], "moved, unlinked, linked, moved");
    }

    #[test]
    fn every_engine_looks_up_what_is_there_and_ends_grace_periods() {
        for engine in Engine::ALL {
            for quiescent_every in [16, LOOK_UPS] {
                let load = load(40, 2, quiescent_every);
                let bench = Bench::new(engine, &load, true);
                assert_eq!(bench.domain.tuning().lazy, Duration::ZERO, "nothing is lazy");
                let work = work(engine, &load, Duration::from_millis(30));
                assert!(work.values[..3].iter().all(|value| *value > 0.0), "{engine}: {work:?}");
                let seen = latencies(engine, &load, Duration::from_millis(30));
                let [p50_ns, p99_ns, waiter_ns] = seen.values[..] else { unreachable!() };
                assert!(0.0 < p50_ns && p50_ns <= p99_ns, "{engine}: {seen:?}");
                assert!(waiter_ns > 0.0, "{engine}: {seen:?}");
                let [callbacks, _] = histograms(engine, &load, Duration::from_millis(30));
                assert!(callbacks.len() >= load.threads as u64, "{engine}: {}", callbacks.len());
            }
        }
    }

    /// A reader that got no CPU within the time was measured as if it had no callbacks.
    #[test]
    fn callbacks_of_each_reader_are_measured_however_short_the_time() {
        let load = load(40, 8, 16);
        let [callbacks, _] = histograms(Engine::ALL[0], &load, Duration::ZERO);
        assert!(callbacks.len() >= 8, "{}", callbacks.len());
    }
}
