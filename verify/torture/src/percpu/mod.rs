//! What stands on per-CPU words, under torture: sleepable domains, restartable reads, and tools.
//! And hazard pointers, whose guards may end on another CPU and in another thread, too.
//!
//! [`shuffler`] moves their threads from CPU to CPU and interrupts them. [`sleepable`] has readers
//! and updaters of domains whose sections move, [`tasks`] such in tasks, [`growing`] small domains
//! that grow meanwhile; [`rseq_read`] reads what no updater waits for, [`hazards`] what guards
//! protect (each a [`canary`]), and [`tools`] counts, refers ([`references`]) and locks.
//! [`exact`] and [`epoch`], [`sequences`], [`ids`] and [`lists`] have no such words, but the same
//! threads.

mod canary;
mod epoch;
mod exact;
mod growing;
mod hazards;
mod lists;
mod ids;
mod shuffler;
mod references;
mod rseq_read;
mod sequences;
mod sleepable;
mod tasks;
mod tools;

use std::io;
use std::sync::Arc;

use quiescence::tag::Sleepable;

use epoch::Pointers;
use exact::ExactCells;
use hazards::Hazards;
use ids::Ids;
use lists::Lists;
use rseq_read::Cells;
use sequences::Sequences;
use shuffler::Shuffler;
use sleepable::{Where, Yards};
use tools::Tools;

use super::arena::Arena;
use super::context::ThreadContext;
use super::kinds::ReaderKind;
use super::ledger::Ledger;
use super::random::Random;
use super::themes::{Theme, Themes};

/// Threads for each CPU that read in sleepable domains.
const READERS_PER_CPU: usize = 8;

/// The same, of restartable reads.
const RESTARTABLE_PER_CPU: usize = 3;

/// The same, of sequence locks and latches.
const SEQUENCES_PER_CPU: usize = 2;
/// The same, of id tables.
const IDS_PER_CPU: usize = 2;
/// The same, with guards of hazard slots.
const GUARDED_PER_CPU: usize = 2;

/// The same, of cells with exact counts.
const EXACT_PER_CPU: usize = 2;

/// The same, of atomic pointers with tags.
const PINNED_PER_CPU: usize = 2;

/// The same, of lists; and that push and pop.
const LISTS_PER_CPU: usize = 2;

/// The same, that use the tools.
const WORKERS_PER_CPU: usize = 3;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Moves the others.
    Shuffle,
    /// Sends them signals.
    Signals,
    /// Reads in a sleepable domain.
    Read(ReaderKind, Where),
    /// Updates there.
    Update(Where),
    /// Has tasks that do either.
    Tasks,
    /// Has small domains, one after the other.
    Grow,
    /// Reads restartably.
    Load,
    /// Replaces snapshots.
    Store,
    /// Loads guards from cells.
    Guard,
    /// Keeps the guards of others.
    Keep,
    /// Starts threads that load and end.
    ComeAndGo,
    /// Replaces what is in cells.
    StoreArc,
    /// Reads sequence locks and latches.
    SeqRead,
    /// Writes them.
    SeqWrite,
    /// Traverses lists.
    Traverse,
    /// Updates lists.
    UpdateList,
    /// Pushes and pops.
    PushPop,
    /// Uses id tables.
    Ids,
    /// Loads guards from cells with exact counts.
    ExactLoad,
    /// Ends such guards of others.
    ExactKeep,
    /// Replaces what is in such cells.
    ExactStore,
    /// Loads atomic pointers with tags.
    Pin,
    /// Exchanges them, and defers the end of what they led to.
    Exchange,
    /// Protects bare pointers.
    Protect,
    /// Replaces and retires what they lead to.
    Retire,
    /// Uses the tools.
    Work,
    /// Sums counters.
    Sum,
    /// Kills big references.
    Kill,
    /// Writes under the lock.
    Write,
    /// Ends what others have begun to read.
    EndGuards,
}

impl Part {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Shuffle => "shuffler of threads",
            Self::Signals => "sender of signals",
            Self::Read(_, Where::Static) => "reader in the static sleepable domain",
            Self::Read(_, Where::Made) => "reader in a sleepable domain made at run time",
            Self::Update(Where::Static) => "updater in the static sleepable domain",
            Self::Update(Where::Made) => "updater in a sleepable domain made at run time",
            Self::Tasks => "tasks in sleepable domains",
            Self::Grow => "one who has small sleepable domains",
            Self::Load => "reader of snapshots",
            Self::Store => "updater of snapshots",
            Self::SeqRead => "reader of sequence locks and latches",
            Self::SeqWrite => "writer of sequence locks and latches",
            Self::Traverse => "reader of lists",
            Self::UpdateList => "updater of lists",
            Self::PushPop => "user of queues and stacks",
            Self::Ids => "user of id tables",
            Self::Guard => "reader of cells",
            Self::Keep => "keeper of others' guards",
            Self::ComeAndGo => "starter of threads with guards",
            Self::StoreArc => "updater of cells",
            Self::ExactLoad => "reader of exact cells",
            Self::ExactKeep => "keeper of others' exact guards",
            Self::ExactStore => "updater of exact cells",
            Self::Pin => "reader of epoch's pointers",
            Self::Exchange => "updater of epoch's pointers",
            Self::Protect => "user of hazard pointers",
            Self::Retire => "updater of bare pointers",
            Self::Work => "user of per-CPU tools",
            Self::Sum => "summer of counters",
            Self::Kill => "killer of big references",
            Self::Write => "writer under the lock",
            Self::EndGuards => "one who ends the guards of others",
        }
    }

    /// Whether the thread is moved and interrupted.
    const fn joins(self) -> bool {
        !matches!(self, Self::Shuffle | Self::Signals)
    }
}

/// The parts of a theme.
fn parts(theme: Theme, cpus: usize) -> Vec<Part> {
    match theme {
        Theme::Sleepable => {
            let readers = sleepable::READERS.iter().cycle().take(cpus * READERS_PER_CPU);
            let readers = readers.map(|&(kind, place)| Part::Read(kind, place));
            let others = [
                Part::Update(Where::Static),
                Part::Update(Where::Made),
                Part::Update(Where::Static),
                Part::Update(Where::Made),
                Part::Tasks,
                Part::Grow,
            ];
            readers.chain(others).collect()
        }
        Theme::RseqRead => {
            let mut parts = vec![Part::Load; cpus * RESTARTABLE_PER_CPU];
            parts.extend([Part::Store, Part::Store]);
            parts
        }
        Theme::Hazards => {
            let mut parts = vec![Part::Guard; cpus * GUARDED_PER_CPU];
            parts.extend(vec![Part::Protect; cpus]);
            let others = [Part::Keep, Part::ComeAndGo, Part::StoreArc, Part::Retire];
            parts.extend(others.into_iter().chain(others));
            parts
        }
        Theme::Exact => {
            let mut parts = vec![Part::ExactLoad; cpus * EXACT_PER_CPU];
            parts.extend([Part::ExactKeep, Part::ExactStore, Part::ExactStore]);
            parts
        }
        Theme::Epoch => {
            let mut parts = vec![Part::Pin; cpus * PINNED_PER_CPU];
            parts.extend([Part::Exchange; 3]);
            parts
        }
        Theme::Sequences => {
            let mut parts = vec![Part::SeqRead; cpus * SEQUENCES_PER_CPU];
            parts.extend([Part::SeqWrite; 3]);
            parts
        }
        Theme::Lists => {
            let mut parts = vec![Part::Traverse; cpus * LISTS_PER_CPU];
            parts.extend([Part::UpdateList; 3]);
            parts.extend(vec![Part::PushPop; cpus * LISTS_PER_CPU]);
            parts
        }
        Theme::Ids => vec![Part::Ids; cpus * IDS_PER_CPU],
        Theme::Tools => {
            let mut parts = vec![Part::Work; cpus * WORKERS_PER_CPU];
            parts.extend([Part::Sum, Part::Kill, Part::Write, Part::Write, Part::EndGuards]);
            parts
        }
        _ => Vec::new(),
    }
}

/// The parts that take part, and what they share.
#[derive(Clone, Debug)]
pub(crate) struct PerCpu {
    pub(crate) parts: Vec<Part>,
    shuffler: Arc<Shuffler>,
    /// Nothing where the theme does not take part.
    yards: Option<Yards>,
    cells: Option<Arc<Cells>>,
    sequences: Option<Arc<Sequences>>,
    ids: Option<Arc<Ids>>,
    hazards: Option<Arc<Hazards>>,
    exact: Option<Arc<ExactCells>>,
    pointers: Option<Arc<Pointers>>,
    lists: Option<Arc<Lists>>,
    tools: Option<Arc<Tools>>,
}

impl PerCpu {
    pub(crate) fn new(themes: &Themes, cpus: usize) -> io::Result<Self> {
        let mut parts: Vec<Part> = themes.iter().flat_map(|theme| parts(theme, cpus)).collect();
        if !parts.is_empty() {
            parts.extend([Part::Shuffle, Part::Signals]);
        }
        Ok(Self {
            parts,
            shuffler: Shuffler::new()?,
            yards: themes.has(Theme::Sleepable).then(Yards::new),
            cells: themes.has(Theme::RseqRead).then(Arc::default),
            sequences: themes.has(Theme::Sequences).then(Arc::default),
            ids: themes.has(Theme::Ids).then(Arc::default),
            hazards: themes.has(Theme::Hazards).then(Arc::default),
            exact: themes.has(Theme::Exact).then(Arc::default),
            pointers: themes.has(Theme::Epoch).then(Arc::default),
            lists: themes.has(Theme::Lists).then(Arc::default),
            tools: themes.has(Theme::Tools).then(|| Arc::new(Tools::new(cpus * WORKERS_PER_CPU))),
        })
    }

    /// Does a part, until the run is over.
    pub(crate) fn play(&self, part: Part, context: &ThreadContext, random: &mut Random) {
        let _stay = part.joins().then(|| self.shuffler.join());
        if let Some(tools) = &self.tools {
            match part {
                Part::Work => return tools.work(context, random),
                Part::Sum => return tools.sum(context, random),
                Part::Kill => return tools.kill(context, random),
                Part::Write => return tools.write(context, random),
                Part::EndGuards => return tools.end_guards(context),
                _ => {}
            }
        }
        if let Some(sequences) = &self.sequences {
            match part {
                Part::SeqRead => return sequences.read(context, random),
                Part::SeqWrite => return sequences.write(context, random),
                _ => {}
            }
        }
        if let Some(lists) = &self.lists {
            match part {
                Part::Traverse => return lists.read(context, random),
                Part::UpdateList => return lists.update(context, random),
                Part::PushPop => return lists.push_and_pop(context, random),
                _ => {}
            }
        }
        if let Some(exact) = &self.exact {
            match part {
                Part::ExactLoad => return exact.load(context, random),
                Part::ExactKeep => return exact.keep(context, random),
                Part::ExactStore => return exact.store(context, random),
                _ => {}
            }
        }
        if let Some(pointers) = &self.pointers {
            match part {
                Part::Pin => return pointers.read(context, random),
                Part::Exchange => return pointers.update(context, random),
                _ => {}
            }
        }
        if let (Part::Ids, Some(ids)) = (part, &self.ids) {
            return ids.run(context, random);
        }
        if let Some(hazards) = &self.hazards {
            match part {
                Part::Guard => return hazards.load(context, random),
                Part::Keep => return hazards.keep(context, random),
                Part::ComeAndGo => return hazards.come_and_go(context, random),
                Part::StoreArc => return hazards.store(context, random),
                Part::Protect => return hazards.protect(context, random),
                Part::Retire => return hazards.retire(context, random),
                _ => {}
            }
        }
        match (part, &self.yards, &self.cells) {
            (Part::Shuffle, ..) => self.shuffler.shuffle(context, random),
            (Part::Signals, ..) => self.shuffler.storm(context, random),
            (Part::Read(kind, place), Some(yards), _) => {
                sleepable::read(yards.at(place), context, kind, random);
            }
            (Part::Update(place), Some(yards), _) => {
                sleepable::update(yards.at(place), context, random);
            }
            (Part::Tasks, Some(yards), _) => tasks::run(yards, &self.shuffler, context, random),
            (Part::Grow, Some(yards), _) => growing::run(yards, &self.shuffler, context, random),
            (Part::Load, _, Some(cells)) => cells.load(context, random),
            (Part::Store, _, Some(cells)) => cells.store(context, random),
            _ => unreachable!("a part of a theme that takes part"),
        }
    }

    /// The domains that last.
    pub(crate) fn arenas(&self) -> Vec<Arc<Arena<Sleepable>>> {
        self.yards.iter().flat_map(Yards::arenas).collect()
    }

    /// Callbacks that they have counted.
    pub(crate) fn callbacks(&self) -> u64 {
        self.arenas().iter().map(|arena| arena.domain.statistics().callbacks_queued).sum()
    }

    /// When all threads have ended: looks for what is lost.
    pub(crate) fn close(&self, ledger: &Ledger) {
        self.arenas().iter().for_each(|arena| sleepable::close(arena, ledger));
        if let Some(cells) = &self.cells {
            cells.close(ledger);
        }
        if let Some(sequences) = &self.sequences {
            sequences.close(ledger);
        }
        if let Some(exact) = &self.exact {
            exact.close(ledger);
        }
        if let Some(pointers) = &self.pointers {
            pointers.close(ledger);
        }
        if let Some(lists) = &self.lists {
            lists.close(ledger);
        }
        if let Some(ids) = &self.ids {
            ids.close(ledger);
        }
        if let Some(hazards) = &self.hazards {
            hazards.close(ledger);
        }
        if let Some(tools) = &self.tools {
            tools.close(ledger);
        }
    }
}
