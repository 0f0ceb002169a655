//! The updaters: every way to wait for a grace period, or to have it waited for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use quiescence::{
    Domain, Qsbr,
    tag::{DomainTag, ThreadTag},
};

use super::arena::Participant;
use super::kinds::{FaultKind, ReaderKind, Step, Way};
use super::pool::BlockRef;
use super::random::Random;

/// Boxes given back by `into_box` that an updater keeps before it frees the first: a reader that a
/// fault lets see one of them finds it as it was.
const BOXES_KEPT: usize = 4096;

/// Callbacks before a barrier, at most.
const CALLS_PER_BARRIER: u64 = 12;

/// Updates until the run is over, each time in a way that is drawn.
pub(crate) fn run<K: ThreadTag>(participant: &Participant<K>, random: &mut Random) {
    let ways: Vec<Way> = Way::of_updaters().collect();
    let mut boxes = VecDeque::new();
    while !participant.ledger.is_over() {
        let way = ways[random.below(ways.len() as u64) as usize];
        participant.record().begin(Step::Update(way));
        match way {
            Way::RetireInSection => retire_in_section(participant, random),
            way => update(participant, way, &mut boxes, random),
        }
        if random.one_in(4) {
            thread::yield_now();
        }
    }
}

/// Updates until the run is over, in a domain where no other thread waits: a wake-up that a reader
/// must do for this thread is not made up for by another waiter.
pub(crate) fn wait_alone<K: DomainTag>(participant: &Participant<K>, random: &mut Random) {
    const WAYS: [Way; 3] = [Way::Synchronize, Way::Expedited, Way::SnapshotWait];
    let mut boxes = VecDeque::new();
    while !participant.ledger.is_over() {
        let way = WAYS[random.below(WAYS.len() as u64) as usize];
        participant.record().begin(Step::Update(way));
        update(participant, way, &mut boxes, random);
    }
}

/// Updates in one of the ways that need no section of the thread's own.
pub(crate) fn update<K: DomainTag>(
    participant: &Participant<K>,
    way: Way,
    boxes: &mut VecDeque<Box<BlockRef>>,
    random: &mut Random,
) {
    match way {
        Way::Synchronize => waited(participant, way, random, Domain::synchronize),
        Way::Expedited => waited(participant, way, random, Domain::synchronize_expedited),
        Way::StartPoll => waited(participant, way, random, |domain| {
            let cookie = domain.start_poll();
            while !domain.poll(cookie) {
                thread::yield_now();
            }
        }),
        Way::SnapshotWait => {
            waited(participant, way, random, |domain| domain.wait(domain.cookie()))
        }
        Way::Call => call(participant, random),
        Way::Barrier => barrier(participant, random),
        Way::Store => store(participant, random),
        Way::Swap => swap(participant, random),
        Way::IntoBox => into_box(participant, boxes, random),
        Way::Update => update_closure(participant, random),
        Way::Take => take(participant, random),
        way => retire(participant, way, random),
    }
}

/// A free block. Waits until there is one; none when the run is over.
pub(crate) fn fresh<K: DomainTag>(participant: &Participant<K>) -> Option<u32> {
    let (pool, domain) = (&participant.arena.pool, &participant.arena.domain);
    loop {
        if let Some(index) = pool.take() {
            return Some(index);
        }
        if participant.ledger.is_over() {
            return None;
        }
        // What callbacks hold first, then the pipe, one grace period at a time.
        participant.record().begin(Step::WaitForBlocks);
        domain.barrier();
        let ageing = pool.take_ageing();
        domain.synchronize();
        pool.aged(ageing);
    }
}

/// Replaces a block and returns the old one, removed.
pub(crate) fn replace<K: DomainTag>(
    participant: &Participant<K>,
    new: u32,
    way: Way,
    random: &mut Random,
) -> u32 {
    let old = participant.arena.publish(new, random);
    participant.arena.pool.removed(old, way);
    participant.ledger.used(way);
    old
}

/// Replaces a block and waits: the grace period also carries the older ones along the pipe.
pub(crate) fn waited<K: DomainTag>(
    participant: &Participant<K>,
    way: Way,
    random: &mut Random,
    wait: impl FnOnce(&Domain<K>),
) {
    let Some(new) = fresh(participant) else { return };
    let mut passing = participant.arena.pool.take_ageing();
    passing.push(replace(participant, new, way, random));
    wait(&participant.arena.domain);
    participant.arena.pool.aged(passing);
}

/// As above, by a reader that goes offline meanwhile.
pub(crate) fn by_qsbr<K: ThreadTag>(
    participant: &Participant<K>,
    reader: &mut Qsbr<K>,
    random: &mut Random,
) {
    // Not `fresh`: an online reader must not wait for blocks.
    let Some(new) = participant.arena.pool.take() else { return };
    let old = replace(participant, new, Way::QsbrSynchronize, random);
    reader.synchronize();
    participant.arena.pool.aged([old]);
}

/// Replaces a block; a callback notes the grace period, and now and then queues another one.
fn call<K: DomainTag>(participant: &Participant<K>, random: &mut Random) {
    let Some(new) = fresh(participant) else { return };
    let old = replace(participant, new, Way::Call, random);
    let again = random.one_in(4);
    let callback_participant = participant.clone();
    queue(participant, move || {
        let participant = callback_participant;
        participant.arena.pool.aged([old]);
        if again {
            let ageing = participant.arena.pool.take_ageing();
            let pool = Arc::clone(&participant.arena.pool);
            queue(&participant, move || pool.aged(ageing));
        }
    });
}

/// Queues a callback, counted before and after.
fn queue<K: DomainTag>(participant: &Participant<K>, f: impl FnOnce() + Send + 'static) {
    participant.ledger.calls_queued.fetch_add(1, Relaxed);
    let ledger = Arc::clone(&participant.ledger);
    let queued = participant.arena.domain.call(move || {
        f();
        ledger.calls_run.fetch_add(1, Relaxed);
    });
    if queued.is_err() {
        refused(participant, Way::Call);
    }
}

/// Queues some callbacks; a barrier must have run them all.
fn barrier<K: DomainTag>(participant: &Participant<K>, random: &mut Random) {
    let calls = 1 + random.below(CALLS_PER_BARRIER);
    let run = Arc::new(AtomicU64::new(0));
    let mut queued = 0;
    for _ in 0..calls {
        let Some(new) = fresh(participant) else { break };
        participant.record().begin(Step::Update(Way::Barrier));
        let old = replace(participant, new, Way::Barrier, random);
        let (pool, run) = (Arc::clone(&participant.arena.pool), Arc::clone(&run));
        queue(participant, move || {
            pool.aged([old]);
            run.fetch_add(1, Relaxed);
        });
        queued += 1;
    }
    participant.arena.domain.barrier();
    let run = run.load(Relaxed);
    if run != queued {
        participant.ledger.fault(
            FaultKind::Barrier,
            participant.arena.name,
            None,
            Some(Way::Barrier),
            || format!("barrier() returned when {run} of {queued} callbacks had run"),
        );
    }
}

/// Replaces a block and retires an object for it, whose drop notes the grace period.
pub(crate) fn retire<K: DomainTag>(participant: &Participant<K>, way: Way, random: &mut Random) {
    // Short-lived threads take what there is: they may be inside a destructor.
    let new = if way == Way::Passing { participant.arena.pool.take() } else { fresh(participant) };
    let Some(new) = new else { return };
    let old = replace(participant, new, way, random);
    if participant
        .arena
        .domain
        .retire(Box::new(BlockRef::new(&participant.arena.pool, old)))
        .is_err()
    {
        refused(participant, way);
    }
}

/// Nothing is refused outside of sections, and in a callback there is room for one closure.
fn refused<K: DomainTag>(participant: &Participant<K>, way: Way) {
    participant.ledger.fault(FaultKind::Limit, participant.arena.name, None, Some(way), || {
        "refused where it should have waited".to_owned()
    });
}

/// The same inside a section, where `retire` only adds.
fn retire_in_section<K: ThreadTag>(participant: &Participant<K>, random: &mut Random) {
    let Some(new) = fresh(participant) else { return };
    let guard = participant.arena.domain.read();
    let old = replace(participant, new, Way::RetireInSection, random);
    let refused = participant
        .arena
        .domain
        .retire(Box::new(BlockRef::new(&participant.arena.pool, old)))
        .err();
    drop(guard);
    drop(refused); // retired over the limit: others have filled the domain
}

/// A prepared block, for the places that take a value.
fn value<K: DomainTag>(participant: &Participant<K>) -> Option<BlockRef> {
    let index = fresh(participant)?;
    participant.arena.pool.prepare(index);
    Some(BlockRef::new(&participant.arena.pool, index))
}

fn store<K: DomainTag>(participant: &Participant<K>, random: &mut Random) {
    let Some(new) = value(participant) else { return };
    participant.ledger.used(Way::Store);
    if random.one_in(2) {
        participant.arena.value.store(new);
    } else {
        participant.arena.option.store(Some(new));
    }
}

fn swap<K: DomainTag>(participant: &Participant<K>, random: &mut Random) {
    let Some(new) = value(participant) else { return };
    participant.ledger.used(Way::Swap);
    let old = participant.arena.value.swap(new);
    participant.arena.pool.removed(old.index(), Way::Swap);
    if random.one_in(4) {
        thread::yield_now();
    }
    drop(old); // retires
}

fn into_box<K: DomainTag>(
    participant: &Participant<K>,
    boxes: &mut VecDeque<Box<BlockRef>>,
    random: &mut Random,
) {
    let Some(new) = value(participant) else { return };
    participant.ledger.used(Way::IntoBox);
    let old = participant.arena.value.swap(new);
    participant.arena.pool.removed(old.index(), Way::IntoBox);
    if random.one_in(4) {
        thread::yield_now();
    }
    let old = old.into_box();
    old.note_grace_period();
    boxes.push_back(old);
    if boxes.len() > BOXES_KEPT {
        boxes.pop_front();
    }
}

/// A new value made from the old one, which the closure reads inside a section.
fn update_closure<K: DomainTag>(participant: &Participant<K>, random: &mut Random) {
    let Some(index) = fresh(participant) else { return };
    let pool = &participant.arena.pool;
    pool.prepare(index);
    participant.ledger.used(Way::Update);
    let mut calls = 0;
    participant.arena.value.update(|old| {
        if calls > 0 {
            // The value made before was refused and is about to be dropped.
            BlockRef::unpublish(pool, index);
        }
        calls += 1;
        participant.glance(old.index(), ReaderKind::Updater);
        if random.one_in(8) {
            thread::yield_now();
        }
        BlockRef::new(pool, index)
    });
}

fn take<K: DomainTag>(participant: &Participant<K>, random: &mut Random) {
    let Some(new) = value(participant) else { return };
    participant.ledger.used(Way::Take);
    if let Some(old) = participant.arena.option.take() {
        participant.arena.pool.removed(old.index(), Way::Take);
    }
    if random.one_in(4) {
        thread::yield_now();
    }
    participant.arena.option.store(Some(new));
}
