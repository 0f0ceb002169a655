//! The updaters: every way to wait for a grace period, or to have it waited for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use quiescence::{AnyKind, Domain, Kind, Qsbr};

use super::arena::Seat;
use super::kinds::{FaultKind, ReaderKind, Step, Way};
use super::pool::BlockRef;
use super::random::Random;

/// Boxes given back by `into_box` that an updater keeps before it frees the first: a reader that a
/// fault lets see one of them finds it as it was.
const BOXES_KEPT: usize = 4096;

/// Callbacks before a barrier, at most.
const CALLS_PER_BARRIER: u64 = 12;

/// Updates until the run is over, each time in a way that is drawn.
pub(crate) fn run<K: Kind>(seat: &Seat<K>, random: &mut Random) {
    let ways: Vec<Way> = Way::of_updaters().collect();
    let mut boxes = VecDeque::new();
    while !seat.ledger.is_over() {
        let way = ways[random.below(ways.len() as u64) as usize];
        seat.post().begin(Step::Update(way));
        match way {
            Way::RetireInSection => retire_in_section(seat, random),
            way => update(seat, way, &mut boxes, random),
        }
        if random.one_in(4) {
            thread::yield_now();
        }
    }
}

/// Updates until the run is over, in a domain where no other thread waits: a wake-up that a reader
/// owes this thread is not made up for by another waiter.
pub(crate) fn wait_alone<K: AnyKind>(seat: &Seat<K>, random: &mut Random) {
    const WAYS: [Way; 3] = [Way::Synchronize, Way::Expedited, Way::GetWait];
    let mut boxes = VecDeque::new();
    while !seat.ledger.is_over() {
        let way = WAYS[random.below(WAYS.len() as u64) as usize];
        seat.post().begin(Step::Update(way));
        update(seat, way, &mut boxes, random);
    }
}

/// Updates in one of the ways that need no section of the thread's own.
pub(crate) fn update<K: AnyKind>(
    seat: &Seat<K>,
    way: Way,
    boxes: &mut VecDeque<Box<BlockRef>>,
    random: &mut Random,
) {
    match way {
        Way::Synchronize => waited(seat, way, random, Domain::synchronize),
        Way::Expedited => waited(seat, way, random, Domain::synchronize_expedited),
        Way::StartPoll => waited(seat, way, random, |domain| {
            let cookie = domain.start();
            while !domain.poll(cookie) {
                thread::yield_now();
            }
        }),
        Way::GetWait => waited(seat, way, random, |domain| domain.wait(domain.get())),
        Way::Call => call(seat, random),
        Way::Barrier => barrier(seat, random),
        Way::Store => store(seat, random),
        Way::Swap => swap(seat, random),
        Way::IntoBox => into_box(seat, boxes, random),
        Way::Update => update_closure(seat, random),
        Way::Take => take(seat, random),
        way => retire(seat, way, random),
    }
}

/// A free block. Waits until there is one; none when the run is over.
pub(crate) fn fresh<K: AnyKind>(seat: &Seat<K>) -> Option<u32> {
    let (pool, domain) = (&seat.arena.pool, &seat.arena.domain);
    loop {
        if let Some(index) = pool.take() {
            return Some(index);
        }
        if seat.ledger.is_over() {
            return None;
        }
        // What callbacks hold first, then the pipe, one grace period at a time.
        seat.post().begin(Step::WaitForBlocks);
        domain.barrier();
        let ageing = pool.take_ageing();
        domain.synchronize();
        pool.aged(ageing);
    }
}

/// Replaces a block and answers the old one, removed.
pub(crate) fn replace<K: AnyKind>(seat: &Seat<K>, new: u32, way: Way, random: &mut Random) -> u32 {
    let old = seat.arena.publish(new, random);
    seat.arena.pool.removed(old, way);
    seat.ledger.used(way);
    old
}

/// Replaces a block and waits: the grace period also carries the older ones along the pipe.
pub(crate) fn waited<K: AnyKind>(
    seat: &Seat<K>,
    way: Way,
    random: &mut Random,
    wait: impl FnOnce(&Domain<K>),
) {
    let Some(new) = fresh(seat) else { return };
    let mut passing = seat.arena.pool.take_ageing();
    passing.push(replace(seat, new, way, random));
    wait(&seat.arena.domain);
    seat.arena.pool.aged(passing);
}

/// As above, by a reader that goes offline meanwhile.
pub(crate) fn by_qsbr<K: Kind>(seat: &Seat<K>, reader: &mut Qsbr<K>, random: &mut Random) {
    // Not `fresh`: an online reader must not wait for blocks.
    let Some(new) = seat.arena.pool.take() else { return };
    let old = replace(seat, new, Way::QsbrSynchronize, random);
    reader.synchronize();
    seat.arena.pool.aged([old]);
}

/// Replaces a block; a callback notes the grace period, and now and then queues another one.
fn call<K: AnyKind>(seat: &Seat<K>, random: &mut Random) {
    let Some(new) = fresh(seat) else { return };
    let old = replace(seat, new, Way::Call, random);
    let again = random.one_in(4);
    let callback_seat = seat.clone();
    queue(seat, move || {
        let seat = callback_seat;
        seat.arena.pool.aged([old]);
        if again {
            let ageing = seat.arena.pool.take_ageing();
            let pool = Arc::clone(&seat.arena.pool);
            queue(&seat, move || pool.aged(ageing));
        }
    });
}

/// Queues a callback, counted before and after.
fn queue<K: AnyKind>(seat: &Seat<K>, f: impl FnOnce() + Send + 'static) {
    seat.ledger.calls_queued.fetch_add(1, Relaxed);
    let ledger = Arc::clone(&seat.ledger);
    let queued = seat.arena.domain.call(move || {
        f();
        ledger.calls_run.fetch_add(1, Relaxed);
    });
    if queued.is_err() {
        refused(seat, Way::Call);
    }
}

/// Queues some callbacks; a barrier must have run them all.
fn barrier<K: AnyKind>(seat: &Seat<K>, random: &mut Random) {
    let calls = 1 + random.below(CALLS_PER_BARRIER);
    let run = Arc::new(AtomicU64::new(0));
    let mut queued = 0;
    for _ in 0..calls {
        let Some(new) = fresh(seat) else { break };
        seat.post().begin(Step::Update(Way::Barrier));
        let old = replace(seat, new, Way::Barrier, random);
        let (pool, run) = (Arc::clone(&seat.arena.pool), Arc::clone(&run));
        queue(seat, move || {
            pool.aged([old]);
            run.fetch_add(1, Relaxed);
        });
        queued += 1;
    }
    seat.arena.domain.barrier();
    let run = run.load(Relaxed);
    if run != queued {
        seat.ledger.fault(FaultKind::Barrier, seat.arena.name, None, Some(Way::Barrier), || {
            format!("barrier() returned when {run} of {queued} callbacks had run")
        });
    }
}

/// Replaces a block and retires an object for it, whose drop notes the grace period.
pub(crate) fn retire<K: AnyKind>(seat: &Seat<K>, way: Way, random: &mut Random) {
    // Short-lived threads take what there is: they may be inside a destructor.
    let new = if way == Way::Passing { seat.arena.pool.take() } else { fresh(seat) };
    let Some(new) = new else { return };
    let old = replace(seat, new, way, random);
    if seat.arena.domain.retire(Box::new(BlockRef::new(&seat.arena.pool, old))).is_err() {
        refused(seat, way);
    }
}

/// Nothing is refused outside of sections, and in a callback there is room for one closure.
fn refused<K: AnyKind>(seat: &Seat<K>, way: Way) {
    seat.ledger.fault(FaultKind::Limit, seat.arena.name, None, Some(way), || {
        "refused where it should have waited".to_owned()
    });
}

/// The same inside a section, where `retire` only adds.
fn retire_in_section<K: Kind>(seat: &Seat<K>, random: &mut Random) {
    let Some(new) = fresh(seat) else { return };
    let guard = seat.arena.domain.read();
    let old = replace(seat, new, Way::RetireInSection, random);
    let refused = seat.arena.domain.retire(Box::new(BlockRef::new(&seat.arena.pool, old))).err();
    drop(guard);
    drop(refused); // retired over the limit: others have filled the domain
}

/// A prepared block, for the places that take a value.
fn value<K: AnyKind>(seat: &Seat<K>) -> Option<BlockRef> {
    let index = fresh(seat)?;
    seat.arena.pool.prepare(index);
    Some(BlockRef::new(&seat.arena.pool, index))
}

fn store<K: AnyKind>(seat: &Seat<K>, random: &mut Random) {
    let Some(new) = value(seat) else { return };
    seat.ledger.used(Way::Store);
    if random.one_in(2) {
        seat.arena.value.store(new);
    } else {
        seat.arena.option.store(Some(new));
    }
}

fn swap<K: AnyKind>(seat: &Seat<K>, random: &mut Random) {
    let Some(new) = value(seat) else { return };
    seat.ledger.used(Way::Swap);
    let old = seat.arena.value.swap(new);
    seat.arena.pool.removed(old.index(), Way::Swap);
    if random.one_in(4) {
        thread::yield_now();
    }
    drop(old); // retires
}

fn into_box<K: AnyKind>(seat: &Seat<K>, boxes: &mut VecDeque<Box<BlockRef>>, random: &mut Random) {
    let Some(new) = value(seat) else { return };
    seat.ledger.used(Way::IntoBox);
    let old = seat.arena.value.swap(new);
    seat.arena.pool.removed(old.index(), Way::IntoBox);
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
fn update_closure<K: AnyKind>(seat: &Seat<K>, random: &mut Random) {
    let Some(index) = fresh(seat) else { return };
    let pool = &seat.arena.pool;
    pool.prepare(index);
    seat.ledger.used(Way::Update);
    let mut calls = 0;
    seat.arena.value.update(|old| {
        if calls > 0 {
            // The value made before was refused and is about to be dropped.
            BlockRef::unpublish(pool, index);
        }
        calls += 1;
        seat.glance(old.index(), ReaderKind::Updater);
        if random.one_in(8) {
            thread::yield_now();
        }
        BlockRef::new(pool, index)
    });
}

fn take<K: AnyKind>(seat: &Seat<K>, random: &mut Random) {
    let Some(new) = value(seat) else { return };
    seat.ledger.used(Way::Take);
    if let Some(old) = seat.arena.option.take() {
        seat.arena.pool.removed(old.index(), Way::Take);
    }
    if random.one_in(4) {
        thread::yield_now();
    }
    seat.arena.option.store(Some(new));
}
