//! Who takes part: threads with their parts, what they share, and the check at the end.

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use quiescence::report::Statistics;
use quiescence::tag::DomainTag;
use serde::Serialize;

use super::arena::Arena;
use super::context::ThreadContext;
use super::delays;
use super::kinds::{FaultKind, Step, Way};
use super::ledger::{Ledger, ThreadRecord};
use super::random::Random;
use super::shuffler::Shuffler;

/// How long the final counts may take before the report does without them.
const COUNTS_PATIENCE: Duration = Duration::from_secs(2);

/// What a thread does until the run is over, with what it shares.
pub(crate) type Play<T> = fn(&T, &ThreadContext);

/// The same with what it shares in it; and a look for what is lost, when all threads have ended.
type Playing = dyn Fn(&ThreadContext) + Send + Sync;

/// What a thread does.
#[derive(Clone)]
pub(crate) struct Part {
    name: String,
    /// Whether it is moved and interrupted.
    is_moved: bool,
    play: Arc<Playing>,
}

/// A domain that lasts as long as the run.
#[derive(Clone)]
struct Lasting {
    name: &'static str,
    /// The number of ended grace periods that it began with.
    first: u64,
    statistics: Arc<dyn Fn() -> Statistics + Send + Sync>,
    /// After the other checks, which wait for what callbacks still queue.
    close: Arc<Playing>,
}

/// What has happened in a domain.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DomainCounts {
    pub(crate) name: &'static str,
    pub(crate) grace_periods: u64,
    pub(crate) heavy_fences: u64,
    pub(crate) sleeps: u64,
}

/// The parts, and what is looked at when all threads have ended.
pub(crate) struct Fixture {
    parts: Vec<Part>,
    checks: Vec<Box<Playing>>,
    domains: Vec<Lasting>,
    pub(crate) shuffler: Arc<Shuffler>,
}

impl Fixture {
    /// Nobody as yet.
    pub(crate) fn new() -> io::Result<Self> {
        let shuffler = Shuffler::new()?;
        Ok(Self { parts: Vec::new(), checks: Vec::new(), domains: Vec::new(), shuffler })
    }

    /// One more part; of a thread that is moved and interrupted, perhaps.
    pub(crate) fn part(
        &mut self,
        is_moved: bool,
        name: impl Into<String>,
        play: impl Fn(&ThreadContext) + Send + Sync + 'static,
    ) {
        let (name, play) = (name.into(), Arc::new(play));
        self.parts.push(Part { name, is_moved, play });
    }

    /// What threads share; of each part so many threads; and what is looked at when all have ended,
    /// unless something died.
    pub(crate) fn parts<T: Send + Sync + 'static>(
        &mut self,
        is_moved: bool,
        shared: T,
        parts: &[(usize, &str, Play<T>)],
        close: fn(&T, &ThreadContext),
    ) {
        let shared = Arc::new(shared);
        for &(count, name, play) in parts {
            for _ in 0..count {
                let own = Arc::clone(&shared);
                self.part(is_moved, name, move |context| play(&own, context));
            }
        }
        // Where something died, what it had may be gone already, and is not touched.
        self.checks.push(Box::new(move |context| match context.has_died() {
            true => mem::forget(Arc::clone(&shared)),
            false => close(&shared, context),
        }));
    }

    /// A domain that is looked at in the end, and whose counts are told.
    pub(crate) fn domain<K: DomainTag>(&mut self, arena: &Arc<Arena<K>>) {
        let (own, closed) = (Arc::clone(arena), Arc::clone(arena));
        let first = own.domain.statistics().grace_periods;
        let statistics = Arc::new(move || own.domain.statistics());
        let close: Arc<Playing> = Arc::new(move |context| close(&closed, context));
        self.domains.push(Lasting { name: arena.name, first, statistics, close });
    }

    /// All parts are there: those that move others are added, and the check at the end.
    pub(crate) fn complete(mut self) -> Self {
        if self.parts.iter().any(|part| part.is_moved) {
            let [moves, sends] = [(); 2].map(|()| Arc::clone(&self.shuffler));
            self.part(false, "shuffler of threads", move |context| moves.shuffle(context));
            self.part(false, "sender of signals", move |context| sends.storm(context));
        }
        let (checks, domains) = (mem::take(&mut self.checks), self.domains.clone());
        self.part(false, "the check at the end", move |context| {
            checks.iter().for_each(|check| check(context));
            domains.iter().for_each(|domain| (domain.close)(context));
            let ledger = &context.ledger;
            let (queued, run) = (ledger.calls_queued.load(Relaxed), ledger.calls_run.load(Relaxed));
            let known: u64 =
                domains.iter().map(|domain| (domain.statistics)().callbacks_queued).sum();
            context.expect(queued == run && run <= known, FaultKind::Count, "", || {
                format!("{queued} closures were queued, {run} have run; {known} are counted")
            });
        });
        self
    }

    /// A thread record for each part.
    pub(crate) fn records(&self) -> Vec<ThreadRecord> {
        self.parts.iter().map(|part| ThreadRecord::new(part.name.clone())).collect()
    }

    /// The thread records of all but the check at the end.
    pub(crate) fn players(&self) -> Range<usize> {
        0..self.parts.len() - 1
    }

    /// The thread record of the check at the end.
    pub(crate) fn closer(&self) -> Range<usize> {
        self.parts.len() - 1..self.parts.len()
    }

    /// Starts the threads of some thread records.
    pub(crate) fn start(
        &self,
        records: Range<usize>,
        ledger: &Arc<Ledger>,
        seed: u64,
    ) -> io::Result<()> {
        for record in records {
            // Two streams for each thread: what it does, and how it is delayed.
            let (random, delays) = (2 * record as u64, 2 * record as u64 + 1);
            let random = Random::new(seed, random);
            let context = ThreadContext { ledger: Arc::clone(ledger), record, random };
            let (part, shuffler) = (self.parts[record].clone(), Arc::clone(&self.shuffler));
            thread::Builder::new().name(format!("torture-{record}")).spawn(move || {
                context.record().start();
                let _end = EndOfThread(&context);
                let _stay = part.is_moved.then(|| shuffler.join());
                delays::seed_thread(delays);
                (part.play)(&context);
            })?;
        }
        Ok(())
    }

    /// What has happened in the domains; nothing if a lock that it takes is stuck.
    pub(crate) fn counts(&self) -> Option<Vec<DomainCounts>> {
        let domains = self.domains.clone();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            // No thread may be listening any more.
            let _ = sender.send(domains.iter().map(Lasting::counts).collect());
        });
        receiver.recv_timeout(COUNTS_PATIENCE).ok()
    }
}

/// Marks a thread record as ended, and a panic as a fault.
struct EndOfThread<'a>(&'a ThreadContext);

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        let record = self.0.record();
        self.0.expect(!thread::panicking(), FaultKind::Panic, "", || {
            format!("{}, {}; see standard error", record.name, record.doing())
        });
        record.end();
    }
}

impl Lasting {
    fn counts(&self) -> DomainCounts {
        let now = (self.statistics)();
        DomainCounts {
            name: self.name,
            // The counter has 63 bits.
            grace_periods: now.grace_periods.wrapping_sub(self.first) & (u64::MAX >> 1),
            heavy_fences: now.heavy_fences,
            sleeps: now.sleeps,
        }
    }
}

/// Waits for all callbacks of a domain, and looks for what is lost.
pub(crate) fn close<K: DomainTag>(arena: &Arena<K>, context: &ThreadContext) {
    arena.option.store(None);
    // Twice: callbacks may have queued callbacks.
    for _ in 0..2 {
        context.record().begin(Step::Update(Way::Barrier));
        arena.domain.barrier();
    }
    let waiting = arena.domain.statistics().callbacks_waiting();
    context.equal(FaultKind::Count, arena.name, "callbacks after a barrier", waiting, 0);
    let (in_use, published) = (arena.pool.in_use(), Arena::<K>::PUBLISHED);
    context.equal(FaultKind::Count, arena.name, "blocks in use", in_use, published);
}
