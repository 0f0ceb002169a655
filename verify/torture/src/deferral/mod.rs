//! Deferral under torture: what is retired and called, by everybody at once, with little memory.
//!
//! [`test_objects`] is what is deferred: objects of all shapes that count themselves. [`flood`]
//! defers as fast as it can; [`limits`] does so in domains with hardly any room, and afterwards
//! looks whether the room is what it was; [`quiet`] defers a little, does nothing more, and waits
//! until it is freed; [`churn`] has threads that live for a moment; [`stalls`] are readers that
//! take long; [`children`] are processes that are stopped and continued while they do all that, and
//! processes that fork ([`forks`]).

mod children;
mod churn;
mod flood;
mod forks;
mod test_objects;
mod limits;
mod quiet;
mod stalls;

use std::sync::Arc;

use quiescence::{
    Domain,
    tag::{Global, Private, ThreadTag},
    tuning::{Engine, Tuning},
};

use test_objects::{Bound, Field, Tally};

use super::context::ThreadContext;
use super::kinds::{Operation, Step};
use super::ledger::Ledger;
use super::random::Random;
use super::themes::{Theme, Themes};

/// What may wait in the domain of the floods.
const FLOOD_OBJECTS_MAX: u64 = 20_000;
const FLOOD_BYTES_MAX: u64 = 8 << 20;

/// The largest object of the floods.
const LARGEST: usize = 4096;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Floods the domain of the floods.
    Flood,
    /// Floods the global domain, in gushes.
    FloodGlobal,
    /// Retires as a QSBR reader.
    FloodQsbr,
    /// Fills domains that have little room.
    Limits,
    /// Defers a little, and leaves it alone.
    Quiet,
    /// Starts threads that live for a moment.
    Churn,
    /// Blocks inside of sections.
    Blocked,
    /// Reads at the lowest priority.
    LowPriority,
    /// Starts processes.
    Children,
    /// Forks, while others defer.
    Forks,
    /// Defers while others fork.
    Storm,
}

/// So much may wait; stalls, which are what this is about, are not reported.
pub(crate) fn tuning(objects_max: u64, bytes_max: u64) -> Tuning {
    let mut tuning = Domain::global().tuning();
    tuning.objects_max = objects_max;
    tuning.bytes_max = bytes_max;
    tuning.stall_after = None;
    tuning.stall_after_expedited = None;
    tuning
}

/// The parts of a theme.
fn parts(theme: Theme) -> &'static [Part] {
    match theme {
        Theme::Readers => &[],
        Theme::Floods => &[Part::Flood, Part::Flood, Part::FloodQsbr, Part::FloodGlobal],
        Theme::Limits => &[Part::Limits, Part::Limits],
        Theme::Quiet => &[Part::Quiet],
        Theme::Stalls => &[Part::Blocked, Part::LowPriority],
        Theme::Churn => &[Part::Churn],
        Theme::Processes => &[Part::Children],
        Theme::Forks => &[Part::Forks, Part::Storm, Part::Storm],
        Theme::Sleepable
        | Theme::RseqRead
        | Theme::Hazards
        | Theme::Sequences
        | Theme::Ids
        | Theme::Tools
        | Theme::Maps
        | Theme::Exact
        | Theme::Epoch
        | Theme::Lists => &[],
    }
}

impl Part {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Flood => "flooder of a private domain",
            Self::FloodGlobal => "flooder of the global domain",
            Self::FloodQsbr => "QSBR reader that retires",
            Self::Limits => "filler of small domains",
            Self::Quiet => "one who waits for all to be freed",
            Self::Churn => "starter of threads that live for a moment",
            Self::Blocked => "reader that blocks",
            Self::LowPriority => "reader of low priority",
            Self::Children => "starter of processes",
            Self::Forks => "thread that forks",
            Self::Storm => "thread in a storm of forks",
        }
    }
}

/// The parts that take part, and what they share.
#[derive(Clone, Debug)]
pub(crate) struct Deferral {
    engine: Engine,
    mutant: Option<&'static str>,
    short_threads: u64,
    pub(crate) parts: Vec<Part>,
    flood: Domain<Private>,
    storm: Domain<Private>,
    /// One for each thread that floods, from its start on.
    fields: Arc<std::sync::Mutex<Fields>>,
}

/// What is to be empty in the end.
#[derive(Debug, Default)]
struct Fields(Vec<Arc<Tally>>);

impl Deferral {
    pub(crate) fn new(
        themes: &Themes,
        engine: Engine,
        seconds: u64,
        mutant: Option<&'static str>,
    ) -> Self {
        let domain = |objects_max, bytes_max| {
            Domain::builder().engine(engine).tuning(tuning(objects_max, bytes_max)).build()
        };
        Self {
            engine,
            mutant,
            short_threads: churn::quota(seconds),
            parts: themes.iter().flat_map(parts).copied().collect(),
            flood: domain(FLOOD_OBJECTS_MAX, FLOOD_BYTES_MAX),
            storm: domain(forks::OBJECTS_MAX, FLOOD_BYTES_MAX),
            fields: Arc::default(),
        }
    }

    /// The run as the thread with this thread record sees it.
    pub(crate) fn context(&self, ledger: &Arc<Ledger>, record: usize) -> ThreadContext {
        ThreadContext {
            ledger: Arc::clone(ledger),
            record,
            engine: self.engine,
            short_threads: self.short_threads,
            mutant: self.mutant,
        }
    }

    /// Does a part, until the run is over.
    pub(crate) fn play(&self, part: Part, context: &ThreadContext, random: &mut Random) {
        match part {
            Part::Flood => flood::run(&self.field(context, &self.flood), random),
            Part::FloodGlobal => {
                flood::in_gushes(&self.field(context, &Domain::<Global>::global()), random);
            }
            Part::FloodQsbr => flood::by_qsbr(&self.field(context, &self.flood), random),
            Part::Limits => limits::run(context, random),
            Part::Quiet => quiet::run(context, random),
            Part::Churn => {
                let global = self.field(context, &Domain::<Global>::global());
                churn::run(&self.field(context, &self.flood), &global, random);
            }
            Part::Blocked => stalls::block(&self.field(context, &self.flood), random),
            Part::LowPriority => stalls::crawl(&self.field(context, &self.flood), random),
            Part::Children => children::run(context, random),
            Part::Forks => forks::run(&self.field(context, &self.storm), random),
            Part::Storm => forks::storm(&self.field(context, &self.storm), random),
        }
    }

    /// A thread's view of a domain; what it defers there is counted for the end.
    fn field<K: ThreadTag>(&self, context: &ThreadContext, domain: &Domain<K>) -> Field<K> {
        let tally = Tally::new(context, "domain under a flood", Bound::NONE);
        super::pool::lock(&self.fields).0.push(Arc::clone(&tally));
        Field { context: context.clone(), domain: domain.clone(), tally, largest: LARGEST }
    }

    /// When all threads have ended: waits for what they deferred, and looks for what is lost.
    pub(crate) fn close(&self, ledger: &Ledger) {
        let record = ledger.records.last().expect("the closing thread's");
        // So often: callbacks have queued callbacks, and they again.
        for _ in 0..2 * flood::DEPTH_MAX {
            record.begin(Step::Defer(Operation::DeferBarrier));
            self.flood.barrier();
            self.storm.barrier();
            Domain::<Global>::global().barrier();
            let fields = super::pool::lock(&self.fields);
            if fields.0.iter().all(|tally| tally.waiting() == 0) {
                break;
            }
        }
        let fields = super::pool::lock(&self.fields);
        fields.0.iter().for_each(|tally| tally.expect_none("at the end"));
        if let Some(tally) = fields.0.first() {
            test_objects::expect_no_odd_ones(&tally.context);
        }
    }
}
