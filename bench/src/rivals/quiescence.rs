//! This project's library. Its own name stands for what a user takes first in each case: sections
//! of the global domain, and beside them the sleepable domain, the cells and the tools.

mod cells;
mod maps;
mod srcu;
mod sync;
mod threads;

use std::hint::black_box;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use quiescence::collections::HashMap;
use quiescence::sync::{Counter, ExactCounter, LimitCounter, LocalGlobalLock};
use quiescence::{Domain, Fences, Private, Qsbr, Rcu, Snapshot, Srcu};

use self::cells::{FourWords, InCell, Snapshots};
use self::srcu::{BUSY, InSrcu};
use self::threads::{
    Announcers, InDomain, Limited, LimitedAnnouncers, QuiescentStates, Sections, Threads,
};
use super::{About, Family, Rival};
use crate::advise::{Hash, Placed, Value};
use crate::cases::enqueue::{Caller, callback, closures_run};
use crate::cases::loops::{repeat, timed};
use crate::cases::replace::{LIMIT_BYTES, Limit, Replacements, Site};
use crate::serve::{Nested, Read, Section};

pub(super) const RIVALS: &[Rival] = &[
    Rival::ours("quiescence")
        .about(&ABOUT)
        .config::<Placed<Threads>>()
        .per_key::<Placed<Threads>>()
        .read::<GlobalReader>()
        .nested::<GlobalReader>()
        .cell::<FourWords>()
        .guard(cells::guard)
        .arc(cells::arc)
        .store::<InCell>()
        .stored::<InCell>()
        .protect(cells::protect)
        .reference(sync::reference)
        .count::<Counter>()
        .sleepable::<Srcu>()
        .local::<LocalGlobalLock<()>>()
        .chains::<Threads>()
        .replace_with(limited)
        .hoards()
        .enqueue(Replacements::<Threads>::boxed, || Box::new(Calls))
        .has_barrier()
        .wait(|| Arc::new(Sections(Domain::new())))
        .boot(|| Box::new(InSrcu::new(Srcu::new())))
        .blocked(|| Box::new(Srcu::new()))
        .domain::<Srcu>(),
    Rival::ours("quiescence-hashmap")
        .about(&ABOUT_MAP)
        .table::<HashMap<Box<[u8]>, Value, Hash>>()
        .maps::<maps::Own>(),
    Rival::ours("quiescence-intrusive").maps::<maps::Intrusive>(),
    Rival::ours("quiescence-rcu").guard(<GlobalReader as Read>::read).stored::<Threads>(),
    Rival::ours("quiescence-reader").read::<ExplicitReader>().nested::<ExplicitReader>(),
    Rival::ours("quiescence-qsbr")
        .about(&ABOUT_QSBR)
        .config::<Placed<Announcers>>()
        .per_key::<Placed<Announcers>>()
        .read::<QsbrReader>()
        .chains::<Announcers>()
        .replace_with(announced)
        .hoards()
        .wait(|| Arc::new(QuiescentStates(Domain::new()))),
    Rival::ours("quiescence-fencing")
        .read::<FencingReader>()
        .wait(|| Arc::new(Sections(fencing()))),
    Rival::ours("quiescence-busy")
        .boot(|| Box::new(InSrcu::new(Srcu::with_delay(&BUSY))))
        .blocked(|| Box::new(Srcu::with_delay(&BUSY))),
    Rival::ours("quiescence-thread")
        .sleepable::<GlobalReader>()
        .local::<GlobalReader>()
        .boot(|| Box::new(InDomain::new()))
        .domain::<Domain>(),
    Rival::ours("quiescence-exact").count::<ExactCounter>(),
    Rival::ours("quiescence-limit").count::<LimitCounter>(),
    Rival::ours("quiescence-snapshot")
        .waits_for_none(|| Arc::new(Snapshots(Snapshot::new([1; 4])))),
    Rival::ours("quiescence-seqlock").cell::<cells::Sequence>(),
    Rival::ours("quiescence-latch").cell::<cells::TwoCopies>(),
    Rival::ours("quiescence-cache").guard(cells::cache),
];

const ABOUT: About = About {
    family: Family::Rcu,
    idea: "readers note that they read; what is replaced is freed after a grace period",
    reader_cost: "three plain stores to the thread's own cache line; updates pay for the fences",
    limits: "values that must not outlive their replacement; updates as frequent as reads",
};

const ABOUT_MAP: About = About {
    family: Family::Rcu,
    idea: "a concurrent map: `quiescence::collections::HashMap::new()`, and \
           `map.read().get(&key)`; keys may come and go",
    reader_cost: "a section, as plain RCU has it, and a cache line of tags; values of more than a \
                  few words are in a box with their key, one more line",
    limits: "an update copies its key and allocates a box of both; values that must not outlive \
             their replacement",
};

const ABOUT_QSBR: About = About {
    family: Family::Rcu,
    idea: "readers announce between operations that they hold nothing; sections cost nothing",
    reader_cost: "one load; an announcement every few operations is one load and mostly no store",
    limits: "every reading thread must announce quiescent states, and go offline before it blocks",
};

/// The word that is read.
static WORD: LazyLock<Rcu<u64>> = LazyLock::new(|| Rcu::new(1));

/// A section of the global domain.
struct GlobalReader;

impl Read for GlobalReader {
    fn read(batches: u64) -> Duration {
        let rcu = black_box(&*WORD);
        let read = |_: &mut ()| {
            let guard = quiescence::read();
            *rcu.load(&guard)
        };
        timed(batches, &mut (), read, |()| {})
    }
}

impl Nested for GlobalReader {
    fn read(batches: u64) -> Duration {
        let _outer = quiescence::read();
        <Self as Read>::read(batches)
    }
}

impl Section for GlobalReader {
    fn enter_and_leave(batches: u64) -> Duration {
        repeat(batches, || {
            drop(quiescence::read());
            1
        })
    }
}

/// The same by an explicit reader.
struct ExplicitReader;

impl Read for ExplicitReader {
    fn read(batches: u64) -> Duration {
        let rcu = black_box(&*WORD);
        let mut reader = quiescence::reader();
        timed(batches, &mut reader, |reader| *rcu.load(&reader.read()), |_| {})
    }
}

impl Nested for ExplicitReader {
    fn read(batches: u64) -> Duration {
        let _outer = quiescence::read();
        <Self as Read>::read(batches)
    }
}

/// A domain whose readers fence.
fn fencing() -> Domain {
    Domain::builder().fences(Fences::Portable).build()
}

/// A section of such a domain.
struct FencingReader;

impl Read for FencingReader {
    fn read(batches: u64) -> Duration {
        static WORD: LazyLock<Rcu<u64, Private>> = LazyLock::new(|| Rcu::new_in(1, fencing()));
        let rcu = black_box(&*WORD);
        let mut reader = rcu.domain().reader();
        timed(batches, &mut reader, |reader| *rcu.load(&reader.read()), |_| {})
    }
}

/// A reader that announces quiescent states.
struct QsbrReader;

impl Read for QsbrReader {
    fn read(batches: u64) -> Duration {
        let rcu = black_box(&*WORD);
        let mut qsbr = Qsbr::register();
        timed(batches, &mut qsbr, |qsbr| *rcu.load(&qsbr.read()), Qsbr::quiescent_state)
    }
}

fn limited(limit: Limit) -> Box<dyn Site> {
    match limit {
        Limit::Usual => Replacements::<Threads>::boxed(),
        Limit::Low => Replacements::<Limited<LIMIT_BYTES>>::boxed(),
        Limit::High => Replacements::<Limited<{ u64::MAX }>>::boxed(),
    }
}

fn announced(limit: Limit) -> Box<dyn Site> {
    match limit {
        Limit::Usual => Replacements::<Announcers>::boxed(),
        Limit::Low => Replacements::<LimitedAnnouncers<LIMIT_BYTES>>::boxed(),
        Limit::High => Replacements::<LimitedAnnouncers<{ u64::MAX }>>::boxed(),
    }
}

/// Callbacks of the global domain.
struct Calls;

impl Caller for Calls {
    fn call(&mut self, count: u64) {
        for _ in 0..count {
            quiescence::call(callback()).expect("outside of sections there is always room");
        }
    }

    fn finish(&mut self) {
        quiescence::barrier();
    }

    fn sum(&self) -> u64 {
        closures_run()
    }
}
