//! This project's library. Its own name stands for what a user takes first in each case: sections
//! of the global domain, and beside them the sleepable domain, the cells and the tools.

mod cells;
mod epoch;
mod maps;
mod srcu;
mod sync;
mod threads;

use std::hint::black_box;

use quiescence::collections::{CopyMap, HashMap, IdMap, Queue, Stack};
use quiescence::sync::{Counter, ExactCounter, Latch, LimitCounter, SeqLock};
use quiescence::{ArcCell, Domain, Rcu, Srcu, cell::Snapshot, tag::ThreadTag, tuning::Fences};

use self::cells::{InCell, InExactCell};
use self::epoch::{Epoch, Handles, by_handle};
use self::maps::Nodes;
use self::srcu::{BUSY, stalled};
use self::threads::{Announcers, Limited, LimitedAnnouncers, Threads, by_limit};
use super::Rival;
use crate::cases::enqueue::{Closures, callback};
use crate::cases::loops::{Loop, Looped, counts, reads, sections, timed};
use crate::cases::maps::Fast;
use crate::cases::{blocked, boot};
use crate::shapes::{Hash, Value, WORDS, Whole, queueing};

pub(super) const RIVALS: &[Rival] =
    &[
        Rival::ours("quiescence")
            .values::<Threads>()
            .sections::<Threads>()
            .cell::<Snapshot<[u64; 4]>>()
            .arcs::<ArcCell<u64>>()
            .stored::<InCell>()
            .times(Looped::Protect, cells::protect)
            .times(Looped::Reference, sync::reference)
            .times(Looped::Count, counts::<Counter>)
            .times(Looped::Sleepable, sections::<Srcu>)
            .times(Looped::Local, sync::section)
            .chains::<Threads>()
            .replace_with(|limit| by_limit::<Threads, _>(limit, Limited))
            .hoards()
            .enqueue(|| {
                let call =
                    || quiescence::call(callback()).expect("outside of sections there is room");
                Box::new(Closures(call, quiescence::barrier))
            })
            .has_barrier()
            .wait(|| Box::new(Domain::new()))
            .boot(|readers, times| boot::measure(&Srcu::new(), readers, times))
            .blocked(|time| blocked::measure(&stalled(Srcu::new()), time))
            .domain::<Srcu>(),
        Rival::ours("quiescence-hashmap")
            .table::<HashMap<Box<[u8]>, Value, Hash>>()
            .maps::<HashMap<u64, u64, Fast>, HashMap<u64, u64>, HashMap<String, u64, Fast>>(),
        Rival::ours("quiescence-copymap").word_maps::<CopyMap<u64, u64, Fast>, CopyMap<u64, u64>>(),
        Rival::ours("quiescence-intrusive")
            .maps::<Nodes<u64, Fast>, Nodes<u64>, Nodes<String, Fast>>(),
        Rival::ours("quiescence-rcu").stored::<Threads>(),
        Rival::ours("quiescence-reader")
            .times(Looped::Read, || by_reader(Rcu::new(1), false))
            .times(Looped::Nested, || by_reader(Rcu::new(1), true)),
        Rival::ours("quiescence-epoch")
            .sections::<Epoch>()
            .replace_with(|limit| by_limit::<Epoch, _>(limit, Handles::within)),
        Rival::ours("quiescence-epoch-handle")
            .times(Looped::Read, by_handle::<false>)
            .times(Looped::Nested, by_handle::<true>)
            .replace_with(|limit| by_limit::<Handles, _>(limit, Handles::within)),
        Rival::ours("quiescence-srcu").values::<srcu::Sleepers>(),
        Rival::ours("quiescence-qsbr")
            .values::<Announcers>()
            .times(Looped::Read, reads::<Announcers>)
            .chains::<Announcers>()
            .replace_with(|limit| by_limit::<Announcers, _>(limit, LimitedAnnouncers))
            .hoards()
            .wait(|| Box::new(LimitedAnnouncers(Domain::new()))),
        Rival::ours("quiescence-fencing")
            .times(Looped::Read, || by_reader(Rcu::new_in(1, fencing()), false))
            .wait(|| Box::new(fencing())),
        Rival::ours("quiescence-busy")
            .boot(|readers, times| boot::measure(&Srcu::with_delay(&BUSY), readers, times))
            .blocked(|time| blocked::measure(&stalled(Srcu::with_delay(&BUSY)), time)),
        Rival::ours("quiescence-thread")
            .times(Looped::Sleepable, section)
            .times(Looped::Local, section)
            .boot(|readers, times| boot::measure(&Domain::new(), readers, times))
            .domain::<Domain>(),
        Rival::ours("quiescence-arc-cell").values::<InCell>(),
        Rival::ours("quiescence-exact-cell").config::<Whole<InExactCell>>(),
        Rival::ours("quiescence-counter").counter::<Counter>(),
        Rival::ours("quiescence-exact")
            .counter::<ExactCounter>()
            .times(Looped::Count, counts::<ExactCounter>),
        Rival::ours("quiescence-limit")
            .limiter::<LimitCounter>()
            .times(Looped::Count, sync::count_limited),
        Rival::ours("quiescence-queue").queue::<Queue<Value>>(),
        Rival::ours("quiescence-stack").queue::<Stack<Value>>(),
        Rival::ours("quiescence-idmap").ids::<IdMap<Value>>().numbers::<IdMap<[u64; 1]>>(),
        Rival::ours("quiescence-snapshot")
            .copied::<Snapshot<[u64; WORDS]>>()
            .waits_for_none(|| Box::new(Snapshot::new([1; 4]))),
        Rival::ours("quiescence-seqlock")
            .copied::<SeqLock<[u64; WORDS]>>()
            .cell::<SeqLock<[u64; 4]>>(),
        Rival::ours("quiescence-latch").cell::<Latch<[u64; 4]>>(),
        Rival::ours("quiescence-cache").times(Looped::Guard, cells::cache),
    ];

// A stack has no order but is a pool as well. Both wait in the same domain.
queueing!(Queue, flush: quiescence::barrier());
queueing!(Stack, flush: quiescence::barrier());

/// A section of the global domain, without a word that is read.
fn section() -> Loop {
    Loop::of((), |()| {
        drop(quiescence::read());
        1
    })
}

/// Reads by an explicit reader; also inside a section of the global domain.
fn by_reader<K: ThreadTag>(word: Rcu<u64, K>, is_nested: bool) -> Loop {
    Loop::new(move |batches| {
        let _outer = is_nested.then(quiescence::read);
        let (rcu, mut reader) = (black_box(&word), word.domain().reader());
        timed(batches, &mut reader, |reader| *rcu.load(&reader.read()), |_| {})
    })
}

/// A domain whose readers fence.
fn fencing() -> Domain {
    Domain::builder().fences(Fences::Portable).build()
}
