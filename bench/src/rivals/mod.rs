//! The rivals: one file each, and one line each in the registry below.
//!
//! A file has a constant `RIVALS`: the names that its design goes by, and for each of them the
//! traits of `serve` and `shapes` that it implements, which is the cases it takes part in. Every
//! list of rivals, that of `rcu advise` as well as those of `rcu bench`, is taken from the
//! registry, in its order. How to add a rival is in the crate's README.

mod arc_swap;
mod atomic;
mod bare;
#[cfg(feature = "all-rivals")]
mod contatori;
mod crossbeam_epoch;
mod crossbeam_queue;
mod crossbeam_utils;
mod dashmap;
#[cfg(feature = "all-rivals")]
mod evmap;
#[cfg(feature = "all-rivals")]
mod flurry;
#[cfg(feature = "all-rivals")]
mod haphazard;
#[cfg(feature = "all-rivals")]
mod hazarc;
#[cfg(feature = "all-rivals")]
mod kovan;
#[cfg(feature = "all-rivals")]
mod left_right;
#[cfg(feature = "liburcu")]
mod liburcu;
mod papaya;
mod parking_lot;
mod quiescence;
#[cfg(feature = "all-rivals")]
mod scc;
#[cfg(feature = "all-rivals")]
mod sdd;
mod seize;
#[cfg(feature = "all-rivals")]
mod seqlock;
mod sharded_rwlock;
mod std_mpsc;
mod std_mutex;
mod std_rwlock;
mod thread_local;
#[cfg(feature = "all-rivals")]
mod tokio;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use slotmap::{DefaultKey, SlotMap};

use crate::advise::KeyIndex;
use crate::cases::domains::{self, Used};
use crate::cases::enqueue::Caller;
use crate::cases::hash::{self, Chains, Mapped};
use crate::cases::loops::{Loop, Looped, cells, nested, reads, sections};
use crate::cases::maps::locked::OneLock;
use crate::cases::maps::{Fast, Kinds, Map};
use crate::cases::replace::{self, Replacements};
use crate::cases::store;
use crate::cases::wait::Flavour;
use crate::locks::{Boxed, InPlace, Locked, Locks};
use crate::sample::Sample;
use crate::shapes::{
    Bounded, Buckets, Copies, Counted, Counting, Ids, Key, Keyed, Limiting, Make, Numbered, PerKey,
    Queued, Queueing, Ready, Value, WORDS, Whole, Workload,
};
use crate::{serve, shapes};

/// A file of a rival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// The name of its module.
    pub module: &'static str,
    /// The feature of this crate without which it is left out.
    pub feature: Option<&'static str>,
    /// Whether it is compiled in.
    pub is_compiled_in: bool,
}

macro_rules! registry {
    ($($(#[cfg(feature = $feature:literal)])? $rival:ident,)*) => {
        static REGISTRY: &[&[Rival]] = &[$($(#[cfg(feature = $feature)])? $rival::RIVALS,)*];

        /// The file of each rival, whether it is compiled in or not.
        pub(crate) static SOURCES: &[Source] = &[$(Source {
            module: stringify!($rival),
            feature: [$(Some($feature),)? None][0],
            is_compiled_in: true $(&& cfg!(feature = $feature))?,
        },)*];
    };
}

registry! {
    bare,
    quiescence,
    #[cfg(feature = "liburcu")] liburcu,
    crossbeam_epoch,
    seize,
    #[cfg(feature = "all-rivals")] sdd,
    #[cfg(feature = "all-rivals")] haphazard,
    #[cfg(feature = "all-rivals")] hazarc,
    #[cfg(feature = "all-rivals")] kovan,
    #[cfg(feature = "all-rivals")] seqlock,
    crossbeam_utils,
    crossbeam_queue,
    arc_swap,
    #[cfg(feature = "all-rivals")] left_right,
    std_mutex,
    std_rwlock,
    std_mpsc,
    parking_lot,
    sharded_rwlock,
    #[cfg(feature = "all-rivals")] tokio,
    #[cfg(feature = "all-rivals")] scc,
    papaya,
    dashmap,
    #[cfg(feature = "all-rivals")] flurry,
    #[cfg(feature = "all-rivals")] evmap,
    atomic,
    #[cfg(feature = "all-rivals")] contatori,
    thread_local,
}

/// All rivals that are compiled in, in the order of the registry.
pub(crate) fn all() -> impl Iterator<Item = &'static Rival> {
    REGISTRY.iter().copied().flatten()
}

/// What each of them has of this, with its name: those that have it.
#[cfg(test)]
pub(crate) fn that<T>(
    has: impl Fn(&Rival) -> Option<T>,
) -> impl Iterator<Item = (&'static str, T)> {
    all().filter_map(move |rival| Some((rival.name, has(rival)?)))
}

/// The file that is left out of this program and that a name belongs to.
pub(crate) fn left_out(name: &str) -> Option<&'static Source> {
    let name = name.replace('-', "_");
    let is_of = |source: &&Source| {
        let rest = name.strip_prefix(source.module);
        !source.is_compiled_in && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    SOURCES.iter().find(is_of)
}

/// One rival: its name, and what it can serve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rival {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// Whether it is this project's own.
    pub ours: bool,
    /// Whether all that is retired waits while one reader stalls, without holding up the thread
    /// that retires: the memory of the others cannot be measured.
    pub hoards: bool,
    /// Whether it can wait for the callbacks that were queued.
    pub has_barrier: bool,
    /// Whether no grace period waits for its readers.
    pub(crate) is_restartable: bool,
    /// What takes part in `rcu advise`, and how it finds a key, by [`Workload`].
    designs: [Option<Solution>; Workload::ALL.len()],
    /// Its value is copied for each reader.
    pub(crate) is_copied: bool,
    /// By [`Looped`].
    loops: [Option<fn() -> Loop>; Looped::COUNT],
    pub(crate) stored: Option<replace::Make>,
    pub(crate) replace: Option<replace::Make>,
    pub(crate) hash: Option<hash::Make>,
    pub(crate) ids: Option<hash::Make>,
    pub(crate) maps: Option<Kinds>,
    pub(crate) enqueue: Option<fn() -> Box<dyn Caller>>,
    pub(crate) wait: Option<fn() -> Box<dyn Flavour>>,
    pub(crate) boot: Option<fn(usize, u64) -> Sample>,
    pub(crate) blocked: Option<fn(Duration) -> Sample>,
    pub(crate) domain: Option<fn(Used, usize) -> Sample>,
    pub(crate) store: Option<fn() -> store::Cell>,
}

/// How a rival solves a [`Workload`], and finds its keys if that has some.
pub(crate) type Solution = (Make, Option<KeyIndex>);

/// What a rival serves: each method adds one case, and asks for the trait that the case needs.
impl Rival {
    /// A rival that serves nothing yet.
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            ours: false,
            hoards: false,
            has_barrier: false,
            is_restartable: false,
            designs: [None; Workload::ALL.len()],
            is_copied: false,
            loops: [None; Looped::COUNT],
            stored: None,
            replace: None,
            hash: None,
            ids: None,
            maps: None,
            enqueue: None,
            wait: None,
            boot: None,
            blocked: None,
            domain: None,
            store: None,
        }
    }

    /// One of this project's own.
    const fn ours(name: &'static str) -> Self {
        Self { ours: true, ..Self::new(name) }
    }

    /// `rcu advise`: solves this workload, and finds its keys like this, if that has some.
    const fn solves(mut self, workload: Workload, make: Make, index: Option<KeyIndex>) -> Self {
        self.designs[workload as usize] = Some((make, index));
        self
    }

    /// Whether `rcu advise` can run it on any workload.
    #[cfg(test)]
    pub(crate) fn is_advised(&self) -> bool {
        self.designs.iter().any(Option::is_some)
    }

    /// How it solves a workload, if it does.
    pub(crate) fn design(&self, workload: Workload) -> Option<Solution> {
        self.designs[workload as usize]
    }

    /// `rcu advise`: one value that is replaced as a whole.
    const fn config<T: Map<Key, Value>>(self) -> Self {
        self.solves(Workload::Config, Ready::<Keyed<T, false>>::boxed, None)
    }

    /// `rcu advise`: such a value, copied for each reader.
    const fn copied<C: serve::Copied<[u64; WORDS]>>(self) -> Self {
        let this = self.solves(Workload::Config, Ready::<Copies<C>>::boxed, None);
        Self { is_copied: true, ..this }
    }

    /// `rcu advise`: such a value, and a table with one for each key. Where keys come and go, a
    /// table of buckets.
    const fn values<R: serve::Replace>(self) -> Self {
        let make: Make = Ready::<Keyed<Buckets<R>, true>>::boxed;
        let this = self.solves(Workload::Churn, make, Some(KeyIndex::Buckets));
        this.fixed::<R>().config::<Whole<R>>()
    }

    /// `rcu advise`: a table with such a value for each key, whose keys cannot come and go.
    const fn fixed<R: serve::Replace>(self) -> Self {
        let make: Make = Ready::<Keyed<PerKey<R>, false>>::boxed;
        self.solves(Workload::Table, make, Some(KeyIndex::Fixed))
    }

    /// `rcu advise`: a map as its own table.
    const fn table<M: Map<Key, Value>>(self) -> Self {
        let own = Some(KeyIndex::Own);
        let this = self.solves(Workload::Table, Ready::<Keyed<M, false>>::boxed, own);
        this.solves(Workload::Churn, Ready::<Keyed<M, true>>::boxed, own)
    }

    /// `rcu advise`: one lock of this kind around a value, a table, and what gives out ids.
    const fn locked<L: Locks>(self) -> Self {
        self.config::<Whole<InPlace<L>>>()
            .table::<OneLock<L, Key, shapes::Hash, Value>>()
            .ids::<Locked<L::Of<SlotMap<DefaultKey, Value>>>>()
    }

    /// `rcu advise`: one around what each thread changes, none of which is only read.
    const fn locked_alone<L: Locks>(self) -> Self {
        self.counter::<Locked<L::Of<u64>>>()
            .limiter::<Locked<L::Of<u64>>>()
            .queue::<Locked<L::Of<VecDeque<Value>>>>()
    }

    /// `rcu advise`: a counter of events.
    const fn counter<C: Counting>(self) -> Self {
        let make: Make = Ready::<Counted<C>>::boxed;
        let this = self.solves(Workload::Counter, make, None);
        if C::EXACT { this.solves(Workload::ExactCounter, make, None) } else { this }
    }

    /// `rcu advise`: a counter with a limit.
    const fn limiter<C: Limiting>(self) -> Self {
        self.solves(Workload::LimitCounter, Ready::<Bounded<C>>::boxed, None)
    }

    /// `rcu advise`: a queue.
    const fn queue<Q: Queueing>(self) -> Self {
        self.solves(Workload::Queue, Ready::<Queued<Q>>::boxed, None)
    }

    /// `rcu advise`: a table that gives out ids.
    const fn ids<T: Ids>(self) -> Self {
        self.solves(Workload::Ids, Ready::<Numbered<T>>::boxed, None)
    }

    /// Something in a loop.
    const fn times(mut self, what: Looped, make: fn() -> Loop) -> Self {
        self.loops[what as usize] = Some(make);
        self
    }

    /// What makes that loop, if it has it.
    pub(crate) fn looped(&self, what: Looped) -> Option<fn() -> Loop> {
        self.loops[what as usize]
    }

    /// Sections in which a word is read, also one inside another.
    const fn sections<R: serve::Replace>(self) -> Self {
        self.times(Looped::Read, reads::<R>).times(Looped::Nested, nested::<R>)
    }

    /// What both reader-writer locks are in: around everything, around a pointer, and around
    /// nothing.
    const fn readers_writer<L: Locks>(self) -> Self {
        self.locked::<L>()
            .times(Looped::Read, reads::<InPlace<L>>)
            .times(Looped::Arc, store::arcs::<Locked<L::Of<Arc<u64>>>>)
            .times(Looped::Sleepable, sections::<Locked<L::Of<()>>>)
            .times(Looped::Local, sections::<Locked<L::Of<()>>>)
            .stored::<Boxed<L>>()
            .chains::<Boxed<L>>()
            .maps::<OneLock<L, u64, Fast>, OneLock<L, u64>, OneLock<L, String, Fast>>()
    }

    /// Four words that are read whole.
    const fn cell<C: serve::Copied<[u64; 4]>>(self) -> Self {
        let this = self.times(Looped::Cell, cells::<C, false>);
        this.times(Looped::CellStore, cells::<C, true>)
    }

    /// An `Arc` in a place, of one word, read by what stands for it, and replaced by new ones.
    const fn stored<R: serve::Replace>(self) -> Self {
        let this = self.times(Looped::Guard, reads::<R>);
        Self { stored: Some(Replacements::<R, 1>::boxed), ..this }
    }

    /// Such an `Arc`, read by one's own, and replaced by one of two.
    const fn arcs<A: serve::Copied<Arc<u64>>>(self) -> Self {
        let this = self.times(Looped::Arc, store::arcs::<A>);
        Self { store: Some(store::boxed::<A>), ..this }
    }

    /// An object that is replaced, and retired: updates, tails, stalls.
    const fn replace<R: serve::Replace>(self) -> Self {
        self.replace_with(Replacements::<R>::boxed)
    }

    /// The same of a design whose limit of what may wait is set, or of one in another language.
    const fn replace_with(self, make: replace::Make) -> Self {
        Self { replace: Some(make), ..self }
    }

    /// While a reader stalls, all that is retired waits: its memory can be measured.
    const fn hoards(self) -> Self {
        Self { hoards: true, ..self }
    }

    /// A hash table of chains, whose nodes are replaced.
    const fn chains<R: serve::Replace>(self) -> Self {
        self.map::<Chains<R>>()
    }

    /// A hash table of its own.
    const fn map<M: Map<u64, hash::Value>>(self) -> Self {
        self.hash_with(Mapped::<M, { hash::WORDS }>::boxed)
    }

    /// Numbers by ids that it gives out.
    const fn numbers<T: Ids<[u64; 1]>>(self) -> Self {
        Self { ids: Some(Mapped::<Numbered<T>, 1>::boxed), ..self }
    }

    /// Maps of words, with the hash function that all are given, and with their own one; and of
    /// strings, with the first.
    const fn maps<M: Map<u64>, OwnHash: Map<u64>, Strings: Map<String>>(self) -> Self {
        Self { maps: Some(Kinds::of::<M, OwnHash, Strings>()), ..self }
    }

    /// The same without strings.
    const fn word_maps<M: Map<u64>, OwnHash: Map<u64>>(self) -> Self {
        Self { maps: Some(Kinds::of_words::<M, OwnHash>()), ..self }
    }

    /// The same, or a hash table in another language.
    const fn hash_with(self, make: hash::Make) -> Self {
        Self { hash: Some(make), ..self }
    }

    /// Callbacks, which a reader of an object that is replaced holds up.
    const fn enqueue(self, make: fn() -> Box<dyn Caller>) -> Self {
        Self { enqueue: Some(make), ..self }
    }

    /// It can wait for the callbacks that were queued.
    const fn has_barrier(self) -> Self {
        Self { has_barrier: true, ..self }
    }

    /// Grace periods.
    const fn wait(self, make: fn() -> Box<dyn Flavour>) -> Self {
        Self { wait: Some(make), ..self }
    }

    /// Updates that no reader holds up, where others wait for a grace period.
    const fn waits_for_none(self, make: fn() -> Box<dyn Flavour>) -> Self {
        Self { is_restartable: true, ..self.wait(make) }
    }

    /// A burst of so many grace periods beside so many readers with short sections.
    const fn boot(self, measure: fn(usize, u64) -> Sample) -> Self {
        Self { boot: Some(measure), ..self }
    }

    /// A reader that stays in its section, for so long.
    const fn blocked(self, measure: fn(Duration) -> Sample) -> Self {
        Self { blocked: Some(measure), ..self }
    }

    /// Thousands of domains, or of locks.
    const fn domain<D: serve::Domain>(self) -> Self {
        Self { domain: Some(domains::measure::<D>), ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::cases::object::turn;
    use crate::cases::replace::Limit;

    /// A file without its line would be compiled nowhere, and missed by none of the other tests.
    #[test]
    fn every_file_of_a_rival_has_a_line_in_the_registry() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rivals");
        let files = fs::read_dir(folder).expect("the folder of the rivals").map(|entry| {
            let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
            // A rival of some size has parts in a folder of the same name.
            name.trim_end_matches(".rs").to_owned()
        });
        let files: BTreeSet<String> = files.filter(|name| name != "mod").collect();
        let lines: BTreeSet<String> = SOURCES.iter().map(|s| s.module.to_owned()).collect();
        assert_eq!(files, lines);
        assert_eq!(SOURCES.len(), lines.len(), "a line each");
    }

    #[test]
    fn every_rival_has_one_name_and_serves_something() {
        let mut names = BTreeSet::new();
        for rival in all() {
            assert!(names.insert(rival.name), "{} is there twice", rival.name);
            let nothing = Rival { ours: rival.ours, ..Rival::new(rival.name) };
            assert_ne!(format!("{rival:?}"), format!("{nothing:?}"), "it serves nothing");
            assert!(!rival.hoards || rival.replace.is_some(), "{}", rival.name);
            assert!(rival.enqueue.is_none() || rival.replace.is_some(), "{}", rival.name);
            assert!(!rival.has_barrier || rival.enqueue.is_some(), "{}", rival.name);
        }
        assert_eq!(REGISTRY.len(), SOURCES.iter().filter(|s| s.is_compiled_in).count());
    }

    #[test]
    fn what_is_left_out_is_found_by_the_names_of_its_rivals() {
        for source in SOURCES {
            let name = format!("{}-thing", source.module.replace('_', "-"));
            assert_eq!(left_out(&name).is_some(), !source.is_compiled_in, "{name}");
            assert!(source.is_compiled_in || source.feature.is_some());
        }
        assert!(left_out("nothing-of-that-kind").is_none());
    }

    /// One at a time with the other tests whose readers hold up what is freed here.
    #[test]
    fn every_design_shows_the_newest_object_and_drops_the_old_ones() {
        let _turn = turn();
        let makes = that(|rival| rival.replace).chain(that(|rival| rival.stored));
        assert!(makes.filter(|(name, make)| make(Limit::Usual).keeps_its_word(name)).count() >= 7);
    }
}
