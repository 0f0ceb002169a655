//! Threads that use a domain as those of programs do, for as long as a run takes: what the model of
//! `rcu simulate` is compared with.
//!
//! A thread's work is measured in its own running time, as the model counts it: what the clock
//! shows between two looks counts up to 250 ns, or to four looks where the clock is slower, so that
//! of an interrupt, a preemption or a stay in the kernel hardly anything is work. A wait is counted
//! without what the clock itself takes. Times that are called means are exponentially distributed;
//! which thread runs when is this machine's to say.
//!
//! Nothing that the command calls here is generic: it would be compiled there, not optimised.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::RwLock;
use quiescence::report::Statistics;
use quiescence::tag::Private;
use quiescence::{Domain, Reader};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::cases::crowd::{self, Rest, STACK_BYTES};

/// Between two looks at the clock a thread has worked for so long at most.
const STEP: Duration = Duration::from_nanos(250);
/// How many looks at the clock say what one takes.
const LOOKS: u32 = 64;

/// What a thread does until the run is over: it calls a function of [`Thread`].
pub type Life = Box<dyn Fn(&mut Thread<'_>) + Sync>;

/// What there was while things were counted.
#[derive(Debug)]
pub struct Seen {
    /// For how long they were.
    pub duration: Duration,
    /// Sections that were left, and quiescent states.
    pub reads: u64,
    /// Updates whose wait was over, or which had retired what they replaced.
    pub updates: u64,
    /// How long those waits took that were not expedited, in nanoseconds, to 1 %.
    pub waits_ns: Histogram<u64>,
    /// The domain's, before and after.
    pub statistics: [Statistics; 2],
}

/// Runs a thread for each life in this domain. They begin when all are there; counted is what they
/// do after a warm-up, for so long.
///
/// # Errors
/// If a thread cannot be started.
///
/// # Panics
/// If a thread panics.
pub fn run(
    domain: &Domain,
    seed: u64,
    [warm_up, duration]: [Duration; 2],
    lives: &[Life],
) -> io::Result<Seen> {
    let run = &Run::new(domain);
    let not_over = run.end.write();
    let come = |number: usize, rest: Rest<'_>| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(number as u64);
        let mut thread = Thread::new(run, random, Some(rest));
        lives[number](&mut thread);
        (thread.reads, thread.updates, thread.waits_ns)
    };
    let counted = crowd::beside(lives.len(), come, |closed| {
        run.over.store(false, Ordering::Relaxed);
        drop(closed);
        thread::sleep(warm_up);
        let (begin, before) = (Instant::now(), domain.statistics());
        run.counts.store(true, Ordering::Relaxed);
        thread::sleep(duration);
        run.counts.store(false, Ordering::Relaxed);
        let counted = (begin.elapsed(), [before, domain.statistics()]);
        run.over.store(true, Ordering::Relaxed);
        drop(not_over);
        counted
    });
    let is_refused = |error: &io::Error| error.raw_os_error().is_some();
    assert!(counted.as_ref().err().is_none_or(is_refused), "threads do not panic");
    let ((duration, statistics), all) = counted?;
    assert_eq!(all.len(), lives.len(), "threads do not panic");
    let mut seen = Seen { duration, reads: 0, updates: 0, waits_ns: no_waits(), statistics };
    for (reads, updates, waits_ns) in all {
        seen.reads += reads;
        seen.updates += updates;
        seen.waits_ns += waits_ns;
    }
    Ok(seen)
}

fn no_waits() -> Histogram<u64> {
    Histogram::new(2).expect("two digits can be had")
}

/// What the threads share. Relaxed, all of it: the flags carry no data.
#[derive(Debug)]
struct Run<'d> {
    domain: &'d Domain,
    /// Whether things are counted.
    counts: AtomicBool,
    /// Also before it begins: where not all threads can be started, those that were are to end.
    over: AtomicBool,
    /// Locked until it is over.
    end: RwLock<()>,
}

impl<'d> Run<'d> {
    fn new(domain: &'d Domain) -> Self {
        let (counts, over) = (AtomicBool::new(false), AtomicBool::new(true));
        Self { domain, counts, over, end: RwLock::new(()) }
    }
}

/// A thread, and how much it has worked.
#[derive(Debug)]
pub struct Thread<'r> {
    run: &'r Run<'r>,
    /// Until it has arrived.
    rest: Option<Rest<'r>>,
    random: ChaCha8Rng,
    worked_ns: u64,
    /// Until when it is to work.
    until_ns: u64,
    looked: Instant,
    /// What a look at the clock takes.
    look: Duration,
    reads: u64,
    updates: u64,
    waits_ns: Histogram<u64>,
}

impl<'r> Thread<'r> {
    fn new(run: &'r Run<'r>, random: ChaCha8Rng, rest: Option<Rest<'r>>) -> Self {
        let look = (0..LOOKS).map(|_| Instant::now().elapsed()).min().unwrap_or_default();
        Self {
            run,
            rest,
            random,
            worked_ns: 0,
            until_ns: 0,
            looked: Instant::now(),
            look,
            reads: 0,
            updates: 0,
            waits_ns: no_waits(),
        }
    }

    /// Registers, and sleeps.
    pub fn idle(&mut self) {
        let reader = self.begin();
        drop(reader.read());
        drop(self.run.end.read());
    }

    /// Reads: a section's mean length, and that of the time between two. After spells of this mean
    /// (0: never) it sleeps.
    pub fn read(&mut self, section_and_gap_ns: [u64; 2], run_ns: u64, sleep_ns: u64) {
        let reader = self.begin();
        self.repeat(|thread| {
            thread.read_for(&reader, section_and_gap_ns, run_ns);
            thread.sleep(sleep_ns);
        });
    }

    /// Has a quiescent state after each turn of this mean. After spells of this mean (0: never) it
    /// sleeps, and is offline.
    pub fn turn(&mut self, turn_ns: u64, run_ns: u64, sleep_ns: u64) {
        let mut qsbr = self.run.domain.qsbr();
        self.arrive();
        self.repeat(|thread| {
            thread.repeat_for(run_ns, |thread| {
                thread.work_about(turn_ns);
                qsbr.quiescent_state();
                thread.reads += u64::from(thread.counts());
            });
            qsbr.while_offline(|| thread.sleep(sleep_ns));
        });
    }

    /// Sleeps in sections: their mean length, and that of the time between two.
    pub fn block(&mut self, section_ns: u64, apart_ns: u64) {
        let reader = self.begin();
        self.repeat(|thread| {
            thread.sleep(apart_ns);
            let section = reader.read();
            thread.sleep(section_ns);
            drop(section);
        });
    }

    /// Starts threads that read, one after the other: the mean length of their lives, and of the
    /// time between two of them.
    ///
    /// # Panics
    /// If one cannot be started.
    pub fn come_and_go(&mut self, section_and_gap_ns: [u64; 2], life_ns: u64, apart_ns: u64) {
        self.arrive();
        self.repeat(|thread| {
            thread::scope(|scope| {
                let body = || {
                    let reader = thread.run.domain.reader();
                    thread.resume();
                    thread.read_for(&reader, section_and_gap_ns, life_ns);
                };
                let started = thread::Builder::new().stack_size(STACK_BYTES);
                let started = started.spawn_scoped(scope, body).expect("a thread can be started");
                // By itself the scope would not wait until it has unregistered.
                started.join().expect("readers do not panic");
            });
            thread.sleep(apart_ns);
        });
    }

    /// Works (or sleeps) for a time of this mean, and waits for a grace period, of a million times
    /// so many in a hurry. `reads`: it is a reader as well.
    ///
    /// # Panics
    /// If a million times are not enough.
    pub fn wait(&mut self, work_ns: u64, expedited_ppm: u32, sleeps: bool, reads: bool) {
        let _reader = reads.then(|| self.run.domain.reader());
        self.arrive();
        self.repeat(|thread| {
            if sleeps {
                thread.sleep(work_ns);
            } else {
                thread.work_about(work_ns);
            }
            let expedited = thread.random.random_ratio(expedited_ppm, 1_000_000);
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
                if !expedited {
                    thread.waits_ns += took.as_nanos() as u64;
                }
            }
            thread.resume();
        });
    }

    /// Works for so long and retires so many bytes. After so many times (0: never) it sleeps for a
    /// time of this mean.
    ///
    /// # Panics
    /// If the domain does not take them, as it does where no section is open.
    pub fn retire(&mut self, work_ns: u64, bytes: u64, burst: u32, sleep_ns: u64) {
        self.arrive();
        let mut times = 0_u32;
        self.repeat(|thread| {
            times = times.wrapping_add(1);
            let ends_burst = times.is_multiple_of(burst);
            // To allocate what is retired is part of the work.
            let object = Vec::<u8>::with_capacity(bytes as usize);
            thread.work(work_ns);
            let retired = thread.run.domain.retire_sized(object, bytes as usize);
            assert!(retired.is_ok(), "no section is open, so the domain waits for room");
            thread.updates += u64::from(thread.counts());
            if ends_burst {
                thread.sleep(sleep_ns);
            }
            thread.resume();
        });
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
        self.rest.take().into_iter().for_each(Rest::until_sent);
        self.resume();
    }

    /// Registers; begins when all threads are there.
    fn begin(&mut self) -> Reader<Private> {
        let reader = self.run.domain.reader();
        self.arrive();
        reader
    }

    /// Works for so long; what it did since it was resumed counts.
    fn work(&mut self, ns: u64) {
        self.until_ns += ns;
        let longest = STEP.max(4 * self.look);
        while self.worked_ns < self.until_ns {
            let now = Instant::now();
            let step = (now - self.looked).min(longest);
            self.worked_ns += step.as_nanos() as u64;
            self.looked = now;
        }
    }

    fn work_about(&mut self, mean_ns: u64) {
        let ns = self.draw(mean_ns);
        self.work(ns);
    }

    fn sleep(&mut self, mean_ns: u64) {
        thread::sleep(Duration::from_nanos(self.draw(mean_ns)));
        self.resume();
    }

    /// Exponentially distributed.
    fn draw(&mut self, mean_ns: u64) -> u64 {
        // The logarithm of 0 is none.
        let uniform = 1.0 - self.random.random::<f64>();
        (-uniform.ln() * mean_ns as f64) as u64
    }

    fn read_for(&mut self, reader: &Reader<Private>, [section_ns, gap_ns]: [u64; 2], run_ns: u64) {
        self.repeat_for(run_ns, |thread| {
            thread.work_about(gap_ns);
            let section = reader.read();
            thread.work_about(section_ns);
            drop(section);
            thread.reads += u64::from(thread.counts());
        });
    }

    /// Does it once at least, until the run is over.
    fn repeat(&mut self, turn: impl FnMut(&mut Self)) {
        self.repeat_for(0, turn);
    }

    /// Does it once at least, until it has worked for a time of this mean (0: without end) or the
    /// run is over.
    fn repeat_for(&mut self, mean_ns: u64, mut turn: impl FnMut(&mut Self)) {
        let spell_ns = if mean_ns == 0 { u64::MAX } else { self.draw(mean_ns) };
        let ends = self.worked_ns.saturating_add(spell_ns);
        loop {
            turn(self);
            if self.worked_ns >= ends || self.run.over.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "threads do not panic")]
    fn a_life_that_panics_before_it_has_arrived_is_not_waited_for() {
        let lives: [Life; 2] =
            [Box::new(|_| panic!("on purpose")), Box::new(|thread| thread.idle())];
        let _ = run(&Domain::new(), 1, [Duration::ZERO; 2], &lives);
    }

    /// Each life, once: the run is over before it begins, and counts.
    #[test]
    fn threads_do_once_what_they_are_there_for() {
        let spans = [300, 700];
        // Reads, updates, waits without hurry, retired.
        let lives: [(Life, [u64; 4]); 8] = [
            (Box::new(|thread| thread.idle()), [0; 4]),
            (Box::new(|thread| thread.block(300, 700)), [0; 4]),
            (Box::new(move |thread| thread.read(spans, 10_000, 1_000)), [1, 0, 0, 0]),
            (Box::new(|thread| thread.turn(2_000, 10_000, 1_000)), [1, 0, 0, 0]),
            (Box::new(move |thread| thread.come_and_go(spans, 10_000, 1_000)), [1, 0, 0, 0]),
            (Box::new(|thread| thread.wait(900, 0, true, false)), [0, 1, 1, 0]),
            (Box::new(|thread| thread.wait(900, 1_000_000, false, true)), [0, 1, 0, 0]),
            (Box::new(|thread| thread.retire(500, 64, 1, 1_000)), [0, 1, 0, 1]),
        ];
        for (place, (life, expected)) in lives.iter().enumerate() {
            let domain = Domain::new();
            let run = Run::new(&domain);
            run.counts.store(true, Ordering::Relaxed);
            run.over.store(true, Ordering::Relaxed);
            let mut thread = Thread::new(&run, ChaCha8Rng::seed_from_u64(1), None);
            life(&mut thread);
            domain.barrier();
            let retired = domain.statistics().callbacks_run;
            let seen = [thread.reads, thread.updates, thread.waits_ns.len(), retired];
            assert_eq!(seen, *expected, "life {place}");
        }
    }

    #[test]
    fn draws_have_the_mean_they_were_asked_for() {
        let domain = Domain::new();
        let run = Run::new(&domain);
        let mut thread = Thread::new(&run, ChaCha8Rng::seed_from_u64(7), None);
        let draws = 100_000;
        let sum: u64 = (0..draws).map(|_| thread.draw(1_000)).sum();
        assert!((990..=1_010).contains(&(sum / draws)), "mean {}", sum / draws);
    }
}
