//! Who takes part: the domains, the threads and their parts, and the check at the end.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use grace::{Number, Sequence, Start};
use quiescence::{
    Domain,
    report::Statistics,
    tag::{DomainTag, Global, Private, ThreadTag},
    tuning::{Engine, Fences},
};
use serde::Serialize;

use super::arena::{Arena, Participant};
use super::deferral::{self, Deferral};
use super::kinds::{FaultKind, ReaderKind, Step, Way};
use super::ledger::{Ledger, ThreadRecord};
use super::maps;
use super::percpu::{self, PerCpu};
use super::random::Random;
use super::{delays, passing, readers, updaters};

/// Grace periods before the counters of the second domain wrap.
const BEFORE_WRAP: u32 = 64;

/// Bits in the grace-period numbers of the third domain: they come round after eight, so that its
/// grace periods announce two numbers each.
const FEW_BITS: u32 = 3;

/// How long the final counts may take before the report does without them.
const COUNTS_PATIENCE: Duration = Duration::from_secs(2);

/// Which domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The global one.
    Global,
    /// A private one whose counters soon wrap.
    Wrapping,
    /// A private one whose readers come and go: often none is registered.
    Sparse,
    /// A private one in which one thread alone waits: where a reader does not wake it, no other
    /// waiter takes its place as the driver.
    Lone,
    /// A private one whose readers execute full fences, and whose grace periods no membarrier.
    Fencing,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Reader(ReaderKind),
    /// Starts readers that come and go.
    Passing,
    Updater,
    /// Waits for each grace period itself, and has no callbacks that the worker would wait for.
    Waiter,
}

/// The parts of the readers, given out in this order and from the start again.
const READERS: [(Part, Place); 18] = [
    (Part::Reader(ReaderKind::Read), Place::Global),
    (Part::Reader(ReaderKind::Nested), Place::Global),
    (Part::Reader(ReaderKind::Handle), Place::Global),
    (Part::Reader(ReaderKind::Qsbr), Place::Global),
    (Part::Passing, Place::Global),
    (Part::Reader(ReaderKind::Read), Place::Wrapping),
    (Part::Reader(ReaderKind::Nested), Place::Wrapping),
    (Part::Reader(ReaderKind::Handle), Place::Wrapping),
    (Part::Reader(ReaderKind::Qsbr), Place::Wrapping),
    (Part::Passing, Place::Wrapping),
    (Part::Passing, Place::Sparse),
    (Part::Passing, Place::Sparse),
    (Part::Reader(ReaderKind::Read), Place::Lone),
    (Part::Reader(ReaderKind::Handle), Place::Lone),
    (Part::Reader(ReaderKind::Read), Place::Fencing),
    (Part::Reader(ReaderKind::Nested), Place::Fencing),
    (Part::Reader(ReaderKind::Qsbr), Place::Fencing),
    (Part::Passing, Place::Fencing),
];

/// As above, for the updaters: more than one in a domain, so that they share grace periods. The one
/// that waits alone is the last, and is not given out again.
const UPDATERS: [(Part, Place); 7] = [
    (Part::Updater, Place::Global),
    (Part::Updater, Place::Wrapping),
    (Part::Updater, Place::Global),
    (Part::Updater, Place::Sparse),
    (Part::Updater, Place::Wrapping),
    (Part::Updater, Place::Fencing),
    (Part::Waiter, Place::Lone),
];

/// The domains.
#[derive(Clone, Debug)]
struct Arenas {
    global: Arc<Arena<Global>>,
    wrapping: Arc<Arena<Private>>,
    sparse: Arc<Arena<Private>>,
    lone: Arc<Arena<Private>>,
    fencing: Arc<Arena<Private>>,
}

/// What has happened in a domain.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DomainCounts {
    pub(crate) name: &'static str,
    pub(crate) grace_periods: u64,
    pub(crate) heavy_fences: u64,
    pub(crate) sleeps: u64,
}

/// The domains and the parts.
#[derive(Debug)]
pub(crate) struct Fixture {
    arenas: Arenas,
    parts: Vec<(Part, Place)>,
    deferral: Deferral,
    per_cpu: PerCpu,
    maps: Vec<maps::Part>,
}

/// A part of another theme.
#[derive(Clone, Copy, Debug)]
enum Extra {
    Deferral(deferral::Part),
    PerCpu(percpu::Part),
    Maps(maps::Part),
}

impl Fixture {
    pub(crate) fn new(
        (readers, updaters): (usize, usize),
        engine: Engine,
        deferral: Deferral,
        per_cpu: PerCpu,
        maps: Vec<maps::Part>,
    ) -> Self {
        let readers = READERS.iter().cycle().take(readers);
        let shared = &UPDATERS[..UPDATERS.len() - 1];
        let updaters = UPDATERS.iter().chain(shared.iter().cycle()).take(updaters);
        let parts = readers.chain(updaters).copied().collect();
        Self { arenas: Arenas::new(engine), parts, deferral, per_cpu, maps }
    }

    /// The parts of the other themes.
    fn extras(&self) -> impl Iterator<Item = Extra> + '_ {
        let deferral = self.deferral.parts.iter().copied().map(Extra::Deferral);
        let per_cpu = self.per_cpu.parts.iter().copied().map(Extra::PerCpu);
        deferral.chain(per_cpu).chain(self.maps.iter().copied().map(Extra::Maps))
    }

    /// The thread records: one for each part, and one more for the check at the end.
    pub(crate) fn records(&self) -> Vec<ThreadRecord> {
        let parts = self.parts.iter().map(|(part, place)| {
            ThreadRecord::new(format!("{} in the {}", part.name(), place.name()))
        });
        let extras = self.extras().map(|part| {
            let record = ThreadRecord::new(part.name().to_owned());
            record.at_low_priority(matches!(part, Extra::Deferral(deferral::Part::LowPriority)))
        });
        parts.chain(extras).chain([ThreadRecord::new("the check at the end".to_owned())]).collect()
    }

    /// The thread records of the threads that [`start`](Self::start) starts.
    pub(crate) fn players(&self) -> Range<usize> {
        0..self.parts.len() + self.extras().count()
    }

    /// The thread record of the thread that [`close`](Self::close) starts.
    pub(crate) fn closer(&self) -> Range<usize> {
        let players = self.players().end;
        players..players + 1
    }

    /// Starts all threads.
    pub(crate) fn start(&self, ledger: &Arc<Ledger>, seed: u64) -> io::Result<()> {
        for (record, &(part, place)) in self.parts.iter().enumerate() {
            match place {
                Place::Global => play(&self.arenas.global, ledger, record, part, seed),
                Place::Wrapping => play(&self.arenas.wrapping, ledger, record, part, seed),
                Place::Sparse => play(&self.arenas.sparse, ledger, record, part, seed),
                Place::Lone => play(&self.arenas.lone, ledger, record, part, seed),
                Place::Fencing => play(&self.arenas.fencing, ledger, record, part, seed),
            }?;
        }
        for (number, part) in self.extras().enumerate() {
            self.start_extra(part, ledger, self.parts.len() + number, seed)?;
        }
        Ok(())
    }

    /// Starts one thread of another theme.
    fn start_extra(
        &self,
        part: Extra,
        ledger: &Arc<Ledger>,
        record: usize,
        seed: u64,
    ) -> io::Result<()> {
        let context = self.deferral.context(ledger, record);
        let (deferral, per_cpu) = (self.deferral.clone(), self.per_cpu.clone());
        thread::Builder::new().name(format!("torture-{record}")).spawn(move || {
            let _end = EndOfThread::begin(&context.ledger, record);
            // Two streams for each thread: what it does, and how it is delayed.
            let mut random = Random::new(seed, 2 * record as u64);
            delays::seed_thread(2 * record as u64 + 1);
            match part {
                Extra::Deferral(part) => deferral.play(part, &context, &mut random),
                Extra::PerCpu(part) => per_cpu.play(part, &context, &mut random),
                Extra::Maps(part) => part.play(&context, &mut random),
            }
        })?;
        Ok(())
    }

    /// Starts a thread that waits for all callbacks and then counts what must be there.
    pub(crate) fn close(&self, ledger: &Arc<Ledger>) -> io::Result<()> {
        let (arenas, ledger) = (self.arenas.clone(), Arc::clone(ledger));
        let (deferral, per_cpu) = (self.deferral.clone(), self.per_cpu.clone());
        let record = self.closer().start;
        thread::Builder::new().name("closing".to_owned()).spawn(move || {
            let _end = EndOfThread::begin(&ledger, record);
            deferral.close(&ledger);
            per_cpu.close(&ledger);
            close(&arenas.global, &ledger, |arena| arena.published(&arena.domain.read()));
            close(&arenas.wrapping, &ledger, |arena| arena.published(&arena.domain.read()));
            close(&arenas.sparse, &ledger, |arena| arena.published(&arena.domain.read()));
            close(&arenas.lone, &ledger, |arena| arena.published(&arena.domain.read()));
            close(&arenas.fencing, &ledger, |arena| arena.published(&arena.domain.read()));
            let (queued, run) = (ledger.calls_queued.load(Relaxed), ledger.calls_run.load(Relaxed));
            let known = arenas.callbacks() + per_cpu.callbacks();
            if queued != run || known < queued {
                ledger.fault(FaultKind::Count, "", None, Some(Way::Call), || {
                    format!("{queued} closures were queued, {run} have run; {known} are counted")
                });
            }
        })?;
        Ok(())
    }

    /// What has happened in the domains; nothing if a lock that it takes is stuck.
    pub(crate) fn counts(&self) -> Option<Vec<DomainCounts>> {
        let (arenas, per_cpu) = (self.arenas.clone(), self.per_cpu.clone());
        let own = !self.parts.is_empty();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut all = Vec::new();
            if own {
                all.push(counts(&arenas.global, 0));
                all.push(counts(&arenas.wrapping, first_of_wrapping()));
                all.push(counts(&arenas.sparse, 0));
                all.push(counts(&arenas.lone, 0));
                all.push(counts(&arenas.fencing, 0));
            }
            all.extend(per_cpu.arenas().iter().map(|arena| counts(arena, 0)));
            // No thread may be listening any more.
            let _ = sender.send(all);
        });
        receiver.recv_timeout(COUNTS_PATIENCE).ok()
    }
}

impl Arenas {
    fn new(engine: Engine) -> Self {
        let domain = |start| Domain::builder().engine(engine).starting_at(start).build();
        let wrapping = domain(Start {
            sequence: Sequence::after(first_of_wrapping()),
            number: Number(u32::MAX - BEFORE_WRAP),
            ..Start::ZERO
        });
        let sparse = domain(Start { number_bits: FEW_BITS, ..Start::ZERO });
        let fencing = Domain::builder().engine(engine).fences(Fences::Portable).build();
        Self {
            global: Arc::new(Arena::new(Place::Global.name(), Domain::global())),
            wrapping: Arc::new(Arena::new(Place::Wrapping.name(), wrapping)),
            sparse: Arc::new(Arena::new(Place::Sparse.name(), sparse)),
            lone: Arc::new(Arena::new(Place::Lone.name(), domain(Start::ZERO))),
            fencing: Arc::new(Arena::new(Place::Fencing.name(), fencing)),
        }
    }

    /// Callbacks that the domains have counted.
    fn callbacks(&self) -> u64 {
        self.global.domain.statistics().callbacks_queued
            + self.wrapping.domain.statistics().callbacks_queued
            + self.sparse.domain.statistics().callbacks_queued
            + self.lone.domain.statistics().callbacks_queued
            + self.fencing.domain.statistics().callbacks_queued
    }
}

/// The number of ended grace periods that the second domain begins with; the counter has 63 bits.
const fn first_of_wrapping() -> u64 {
    (u64::MAX >> 1) - BEFORE_WRAP as u64
}

impl Place {
    const fn name(self) -> &'static str {
        match self {
            Self::Global => "global domain",
            Self::Wrapping => "private domain whose counters wrap",
            Self::Sparse => "private domain with few readers",
            Self::Lone => "private domain with one waiter",
            Self::Fencing => "private domain whose readers fence",
        }
    }
}

impl Part {
    fn name(self) -> String {
        match self {
            Self::Reader(kind) => format!("reader ({})", kind.name()),
            Self::Passing => "starter of short-lived threads".to_owned(),
            Self::Updater => "updater".to_owned(),
            Self::Waiter => "waiter".to_owned(),
        }
    }
}

/// Marks a thread record as ended, and a panic as a fault.
struct EndOfThread<'a> {
    ledger: &'a Ledger,
    record: usize,
}

impl<'a> EndOfThread<'a> {
    /// The calling thread begins, at this thread record.
    fn begin(ledger: &'a Ledger, record: usize) -> Self {
        ledger.records[record].start();
        Self { ledger, record }
    }
}

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        let record = &self.ledger.records[self.record];
        if thread::panicking() {
            self.ledger.fault(FaultKind::Panic, "", None, None, || {
                format!("{}, {}; see standard error", record.name, record.doing())
            });
        }
        record.end();
    }
}

/// Starts one thread.
fn play<K: ThreadTag>(
    arena: &Arc<Arena<K>>,
    ledger: &Arc<Ledger>,
    record: usize,
    part: Part,
    seed: u64,
) -> io::Result<()> {
    let participant = Participant { arena: Arc::clone(arena), ledger: Arc::clone(ledger), record };
    thread::Builder::new().name(format!("torture-{record}")).spawn(move || {
        let _end = EndOfThread::begin(&participant.ledger, record);
        // Two streams for each thread: what it does, and how it is delayed.
        let mut random = Random::new(seed, 2 * record as u64);
        delays::seed_thread(2 * record as u64 + 1);
        match part {
            Part::Reader(kind) => readers::run(&participant, kind, &mut random),
            Part::Passing => passing::run(&participant, &mut random),
            Part::Updater => updaters::run(&participant, &mut random),
            Part::Waiter => updaters::wait_alone(&participant, &mut random),
        }
    })?;
    Ok(())
}

impl Extra {
    const fn name(self) -> &'static str {
        match self {
            Self::Deferral(part) => part.name(),
            Self::PerCpu(part) => part.name(),
            Self::Maps(part) => part.name(),
        }
    }
}

/// Waits for all callbacks of a domain, and looks for what is lost.
pub(crate) fn close<K: DomainTag>(
    arena: &Arena<K>,
    ledger: &Ledger,
    published: impl FnOnce(&Arena<K>) -> usize,
) {
    let record = ledger.records.last().expect("the closing thread's");
    record.begin(Step::Update(Way::Barrier));
    // Twice: callbacks may have queued callbacks.
    arena.domain.barrier();
    record.begin(Step::Update(Way::Barrier));
    arena.domain.barrier();
    let waiting = arena.domain.statistics().callbacks_waiting();
    if waiting != 0 {
        ledger.fault(FaultKind::Count, arena.name, None, Some(Way::Barrier), || {
            format!("{waiting} callbacks wait after a barrier that nobody queued anything after")
        });
    }
    let (in_use, published) = (arena.pool.in_use(), published(arena));
    if in_use != published {
        ledger.fault(FaultKind::Count, arena.name, None, None, || {
            format!("{in_use} blocks are in use and {published} published")
        });
    }
}

fn counts<K: DomainTag>(arena: &Arena<K>, first: u64) -> DomainCounts {
    let Statistics { grace_periods, heavy_fences, sleeps, .. } = arena.domain.statistics();
    // The counter has 63 bits.
    let grace_periods = grace_periods.wrapping_sub(first) & (u64::MAX >> 1);
    DomainCounts { name: arena.name, grace_periods, heavy_fences, sleeps }
}
