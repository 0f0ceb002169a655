//! This project's library. Its own name stands for what a user takes first in each case: sections
//! of the global domain, and beside them the sleepable domain, the cells and the tools.

mod cells;
mod maps;
mod queues;
mod srcu;
mod sync;
mod threads;

use std::hint::black_box;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use quiescence::collections::{HashMap, IdMap, Queue as Fifo, Stack};
use quiescence::sync::{Counter, ExactCounter, LimitCounter, SeqLock};
use quiescence::{Domain, Qsbr, Rcu, Srcu, cell::Snapshot, tag::Private, tuning::Fences};

use self::cells::{FourWords, InCell, Snapshots};
use self::srcu::{BUSY, InSrcu};
use self::threads::{
    Announcers, InDomain, Limited, LimitedAnnouncers, QuiescentStates, Sections, Threads,
};
use super::Rival;
use crate::advise::{Hash, Placed, Value, Words};
use crate::cases::enqueue::{Caller, callback, closures_run};
use crate::cases::loops::{Looped, repeat, timed};
use crate::cases::replace::{LIMIT_BYTES, Limit, Replacements, Site};

pub(super) const RIVALS: &[Rival] = &[
    Rival::ours("quiescence")
        .config::<Placed<Threads>>()
        .per_key::<Threads>()
        .times(Looped::Read, read_global)
        .times(Looped::Nested, nested_global)
        .cell::<FourWords>()
        .times(Looped::Guard, cells::guard)
        .times(Looped::Arc, cells::arc)
        .store::<InCell>()
        .stored::<InCell>()
        .times(Looped::Protect, cells::protect)
        .times(Looped::Reference, sync::reference)
        .times(Looped::Count, sync::count)
        .times(Looped::Sleepable, srcu::section)
        .times(Looped::Local, sync::section)
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
        .table::<HashMap<Box<[u8]>, Value, Hash>>()
        .maps::<maps::Own>(),
    Rival::ours("quiescence-intrusive").maps::<maps::Intrusive>(),
    Rival::ours("quiescence-rcu").times(Looped::Guard, read_global).stored::<Threads>(),
    Rival::ours("quiescence-reader")
        .times(Looped::Read, read_explicit)
        .times(Looped::Nested, nested_explicit),
    Rival::ours("quiescence-srcu")
        .config::<Placed<srcu::Sleepers>>()
        .per_key::<srcu::Sleepers>(),
    Rival::ours("quiescence-qsbr")
        .config::<Placed<Announcers>>()
        .per_key::<Announcers>()
        .times(Looped::Read, read_qsbr)
        .chains::<Announcers>()
        .replace_with(announced)
        .hoards()
        .wait(|| Arc::new(QuiescentStates(Domain::new()))),
    Rival::ours("quiescence-fencing")
        .times(Looped::Read, read_fencing)
        .wait(|| Arc::new(Sections(fencing()))),
    Rival::ours("quiescence-busy")
        .boot(|| Box::new(InSrcu::new(Srcu::with_delay(&BUSY))))
        .blocked(|| Box::new(Srcu::with_delay(&BUSY))),
    Rival::ours("quiescence-thread")
        .times(Looped::Sleepable, section)
        .times(Looped::Local, section)
        .boot(|| Box::new(InDomain::new()))
        .domain::<Domain>(),
    Rival::ours("quiescence-arc-cell")
        .config::<Placed<InCell>>()
        .per_key::<InCell>(),
    Rival::ours("quiescence-counter").counter::<Counter>(),
    Rival::ours("quiescence-exact")
        .counter::<ExactCounter>()
        .times(Looped::Count, sync::count_exact),
    Rival::ours("quiescence-limit")
        .limiter::<LimitCounter>()
        .times(Looped::Count, sync::count_limited),
    Rival::ours("quiescence-queue").queue::<Fifo<Value>>(),
    Rival::ours("quiescence-stack").queue::<Stack<Value>>(),
    Rival::ours("quiescence-idmap").ids::<IdMap<Value>>(),
    Rival::ours("quiescence-snapshot")
        .copied::<Snapshot<Words>>()
        .waits_for_none(|| Arc::new(Snapshots(Snapshot::new([1; 4])))),
    Rival::ours("quiescence-seqlock")
        .copied::<SeqLock<Words>>()
        .cell::<cells::Sequence>(),
    Rival::ours("quiescence-latch").cell::<cells::TwoCopies>(),
    Rival::ours("quiescence-cache").times(Looped::Guard, cells::cache),
];

/// The word that is read.
static WORD: LazyLock<Rcu<u64>> = LazyLock::new(|| Rcu::new(1));

/// A section of the global domain.
fn read_global(batches: u64) -> Duration {
    let rcu = black_box(&*WORD);
    let read = |_: &mut ()| {
        let guard = quiescence::read();
        *rcu.load(&guard)
    };
    timed(batches, &mut (), read, |()| {})
}

fn nested_global(batches: u64) -> Duration {
    let _outer = quiescence::read();
    read_global(batches)
}

fn section(batches: u64) -> Duration {
    repeat(batches, || {
        drop(quiescence::read());
        1
    })
}

/// The same by an explicit reader.
fn read_explicit(batches: u64) -> Duration {
    let rcu = black_box(&*WORD);
    let mut reader = quiescence::Domain::global().reader();
    timed(batches, &mut reader, |reader| *rcu.load(&reader.read()), |_| {})
}

fn nested_explicit(batches: u64) -> Duration {
    let _outer = quiescence::read();
    read_explicit(batches)
}

/// A domain whose readers fence.
fn fencing() -> Domain {
    Domain::builder().fences(Fences::Portable).build()
}

/// A section of such a domain.
fn read_fencing(batches: u64) -> Duration {
    static WORD: LazyLock<Rcu<u64, Private>> = LazyLock::new(|| Rcu::new_in(1, fencing()));
    let rcu = black_box(&*WORD);
    let mut reader = rcu.domain().reader();
    timed(batches, &mut reader, |reader| *rcu.load(&reader.read()), |_| {})
}

/// A reader that announces quiescent states.
fn read_qsbr(batches: u64) -> Duration {
    let rcu = black_box(&*WORD);
    let mut qsbr = Domain::global().qsbr();
    timed(batches, &mut qsbr, |qsbr| *rcu.load(&qsbr.read()), Qsbr::quiescent_state)
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
