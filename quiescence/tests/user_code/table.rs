//! Every place where the library runs code of its user's: one row for each way that leads there.

use crate::common::*;

use quiescence::__private::Site;
use quiescence::cell::{Cache, Snapshot};
use quiescence::collections::hash_map::Operation;
use quiescence::collections::{HashMap, IdMap, List, Queue};
use quiescence::intrusive::HashTable;
use quiescence::sync::{BigRef, Latch, PerCpu, SeqLock};
use quiescence::{ArcCell, RcuRef, cell::ExactCell, epoch};

use super::actions::act;
use super::reach::*;

/// What the thread is in, of the global domain's, while user code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum In {
    Nothing,
    Section,
    Callback,
}

/// What becomes of a panic of user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Panics {
    /// It comes to the caller.
    Through,
    /// It ends there, and is reported.
    Caught,
    /// Code there does not unwind, by its contract.
    Never,
}

/// A place, and a way that leads there.
pub(super) struct Row {
    pub(super) site: Site,
    /// What the user calls.
    pub(super) by: &'static str,
    /// The locks and borrows that are held: the user's own only.
    pub(super) held: &'static str,
    /// What was computed before and is used afterwards, and why it is right still.
    pub(super) used: &'static str,
    /// What a panic leaves.
    pub(super) left: &'static str,
    pub(super) within: In,
    pub(super) panics: Panics,
    /// Whether `by` waits for a grace period, so that it may panic if a section was kept.
    pub(super) waits: bool,
    /// Whether it is called on a thread of the library's.
    pub(super) is_elsewhere: bool,
    /// Has user code called there, which calls `act`.
    pub(super) reach: fn(),
}

/// A place in no section, whose panics come to the caller.
const fn row(site: Site, by: &'static str, reach: fn()) -> Row {
    let (held, used, left) = ("nothing", "nothing", "");
    let (within, panics) = (In::Nothing, Panics::Through);
    let (waits, is_elsewhere) = (false, false);
    Row { site, by, held, used, left, within, panics, waits, is_elsewhere, reach }
}

/// The same in a section.
const fn in_section(site: Site, by: &'static str, reach: fn()) -> Row {
    Row { within: In::Section, ..row(site, by, reach) }
}

/// The same in a callback, of a batch that is run.
const fn in_callback(site: Site, by: &'static str, reach: fn()) -> Row {
    let row = row(site, by, reach).used("the rest of the batch, which is the runner's alone");
    Row { within: In::Callback, waits: true, ..row }
}

impl Row {
    const fn held(mut self, what: &'static str) -> Self {
        self.held = what;
        self
    }

    const fn used(mut self, what: &'static str) -> Self {
        self.used = what;
        self
    }

    /// What is used afterwards, and what a panic leaves.
    const fn uses(self, what: &'static str, left: &'static str) -> Self {
        self.used(what).left(left)
    }

    const fn left(mut self, what: &'static str) -> Self {
        self.left = what;
        self
    }

    const fn caught(mut self) -> Self {
        self.panics = Panics::Caught;
        self
    }

    const fn never(mut self) -> Self {
        self.panics = Panics::Never;
        self
    }

    const fn waits(mut self) -> Self {
        self.waits = true;
        self
    }

    const fn elsewhere(mut self) -> Self {
        self.is_elsewhere = true;
        self
    }

    /// Whether it can be reached in this build.
    pub(super) fn is_there(&self) -> bool {
        self.site != Site::Subscriber || cfg!(feature = "tracing")
    }
}

static WATCHED: LazyLock<Rcu<u64>> = LazyLock::new(|| Rcu::new(1));

pub(super) static ROWS: [Row; 69] = [
    in_callback(Site::Callback, "Domain::call", || {
        quiescence::call(act).unwrap();
        Domain::global().barrier();
    })
    .caught()
    .left("counted, and the rest is run"),
    in_callback(Site::Callback, "Domain::retire", || {
        quiescence::retire(Box::new(Acts)).unwrap();
        Domain::global().barrier();
    })
    .caught()
    .left("counted, and the rest is run"),
    in_callback(Site::Callback, "epoch::Guard::defer", || {
        epoch::pin().defer(act);
        epoch::pin().flush();
        Domain::global().barrier();
    })
    .caught()
    .left("counted, and the rest is run"),
    row(Site::OnTheSpot, "epoch::unprotected().defer", || {
        // SAFETY: nothing is read under it.
        unsafe { epoch::unprotected() }.defer(act);
    })
    .left("the closure is gone"),
    in_callback(Site::Head, "CallbackQueue::attend", || {
        push_head(&QUEUE);
        QUEUE.attend(Some(Duration::ZERO)).unwrap();
    })
    .never()
    .left("C does not unwind"),
    row(Site::Attend, "CallbackQueue::attend_and", || {
        let before = HEADS.load(SeqCst);
        push_head(&QUEUE);
        let outcome = catch_unwind(|| QUEUE.attend_and(Some(Duration::ZERO), act).unwrap());
        assert!(!QUEUE.is_attended(), "no thread has its part");
        assert_eq!(HEADS.load(SeqCst), before + 1, "the batch has run");
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    })
    .uses("that the thread attends, which no other may meanwhile", "no thread attends to the queue")
    .waits(),
    row(Site::Weigh, "Rcu::store", || {
        static CELL: LazyLock<Rcu<Weighs>> = LazyLock::new(|| Rcu::new(Weighs));
        CELL.store(Weighs);
    })
    .caught()
    .uses("the old value, which is this call's alone", "counted as its size"),
    row(Site::WakerClone, "Domain::synchronize_async", || drop(pending(true)))
        .uses("nothing: the machine is asked again", "the task is in no list"),
    row(Site::Wake, "Domain::synchronize", || {
        let future = pending(false);
        let_go();
        Domain::global().synchronize();
        drop(future);
    })
    .caught()
    .uses("nothing: the thread's own slots are counted anew", "counted, and the rest is woken")
    .waits(),
    row(Site::WakerDrop, "the drop of a future", || drop(pending(true)))
        .caught()
        .uses("nothing: it is in no list any more", "the future is gone"),
    row(Site::WakerClone, "Rcu::poll_changed", || drop(waited_for(&WATCHED)))
        .uses("nothing: the version is looked up afterwards", "the version is as it was"),
    row(Site::Wake, "Rcu::store", || {
        let version = waited_for(&WATCHED);
        WATCHED.store(2);
        drop(version);
    })
    .caught()
    .used("the old value, which is this call's alone, and room for it")
    .left("counted, and the rest is woken"),
    row(Site::Wake, "Rcu::update", || {
        let version = waited_for(&WATCHED);
        WATCHED.update(|old| old + 1);
        drop(version);
    })
    .caught()
    .uses("the old value, which is this call's alone", "counted, and the rest is woken"),
    in_section(Site::Wake, "Rcu::update_in", || {
        let version = waited_for(&WATCHED);
        let section = quiescence::read();
        let old = WATCHED.update_in(&section, |old| old + 1);
        drop(section);
        drop((old, version));
    })
    .caught()
    .uses("the old value, which is this call's alone", "counted, and the rest is woken"),
    row(Site::Wake, "Rcu's drop", || {
        let mut cell = Rcu::new(1);
        let version = waited_for(&cell);
        cell = Rcu::new(2);
        drop((version, cell));
    })
    .caught()
    .uses("the value, which no other thread can read", "counted, and the rest is woken"),
    row(Site::WakerDrop, "Rcu::poll_changed, with another waker", || {
        let mut version = waited_for(&WATCHED);
        let _ = WATCHED.poll_changed(&mut version, &mut no_context());
    })
    .caught()
    .uses("nothing: the version is looked up again", "the other waker is noted"),
    row(Site::WakerDrop, "the drop of Rcu::changed", || {
        let mut version = WATCHED.version();
        let mut future = Box::pin(WATCHED.changed(&mut version));
        let _ = future.as_mut().poll(&mut Context::from_waker(&waker()));
    })
    .caught()
    .uses("nothing: the version has no waker any more", "the version is as it was"),
    row(Site::WakerDrop, "the drop of a Version", || drop(waited_for(&WATCHED)))
        .caught()
        .uses("nothing: it is in no table any more", "the version is gone"),
    in_section(Site::Update, "Rcu::update", || {
        static CELL: LazyLock<Rcu<u64>> = LazyLock::new(|| Rcu::new(1));
        CELL.update(acted);
    })
    .uses("the old value, which the section protects", "the cell is as it was"),
    row(Site::Update, "ArcCell::rcu", || {
        static CELL: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(1));
        CELL.rcu(|value| acted(value));
    })
    .uses("the old value, which the guard protects", "the cell is as it was"),
    row(Site::Update, "ExactCell::rcu", || {
        static CELL: LazyLock<ExactCell<Arc<u64>>> = LazyLock::new(|| ExactCell::new(Arc::new(1)));
        CELL.rcu(|value| Arc::new(acted(value)));
    })
    .uses("the old value, which the guard protects", "the cell is as it was"),
    row(Site::Update, "Snapshot::update", || {
        static CELL: LazyLock<Snapshot<u64>> = LazyLock::new(|| Snapshot::new(1));
        CELL.update(|value| acted(&value));
    })
    .uses("the old value, a copy", "the snapshot is as it was"),
    row(Site::Scope, "SeqLock::update", || {
        static CELL: SeqLock<u64> = SeqLock::new(1);
        CELL.update(|value| acted(&value));
    })
    .held("the writer's lock, which its guard is")
    .uses("the old value, which the lock protects", "the value is as it was, and unlocked"),
    row(Site::Scope, "Latch::update", || {
        static CELL: Latch<u64> = Latch::new(1);
        CELL.update(|value| acted(&value));
    })
    .held("the writer's lock")
    .uses("the old value, which the lock protects", "the value is as it was, and unlocked"),
    in_section(Site::Update, "epoch::Atomic::fetch_update", || {
        static CELL: LazyLock<epoch::Atomic<u64>> = LazyLock::new(epoch::Atomic::null);
        let _ = CELL.fetch_update(SeqCst, SeqCst, &epoch::pin(), |_| after(None));
    })
    .uses("the old pointer, which is compared", "the pointer is as it was"),
    in_section(Site::Update, "IdMap::update", || {
        let id = IDS.insert(1);
        IDS.update(id, acted);
        IDS.remove(id);
    })
    .uses("the old entry, which the section protects and is compared", "the map is as it was"),
    in_section(Site::Update, "HashMap::update", || {
        MAP.insert(1, 1);
        MAP.update(&1, acted);
    })
    .used("the old entry and the bucket's word, which the section protects and are compared")
    .left("the map is as it was"),
    row(Site::Update, "CopyMap::update", || {
        COPIES.insert(1, 1);
        COPIES.update(&1, |value| acted(&value));
    })
    .used("the old value, a copy; that the bucket is as it was is looked at again")
    .left("the map is as it was"),
    row(Site::Update, "CopyMap::compute", || {
        COPIES.insert(1, 1);
        let decide = |value: Option<u64>| Operation::<_, ()>::Insert(acted(&value.unwrap_or(0)));
        let _decided = COPIES.compute(1, decide);
    })
    .used("the old value, a copy; that the bucket is as it was is looked at again")
    .left("the map is as it was"),
    in_section(Site::Project, "Rcu::with", || _ = Rcu::new(1).with(acted))
        .left("the section has ended"),
    in_section(Site::Project, "RcuRef::map", || {
        static CELL: LazyLock<Rcu<u64>> = LazyLock::new(|| Rcu::new(1));
        drop(RcuRef::map(CELL.read(), |value| after(value)));
    })
    .uses("the value, which the guard protects", "the section has ended"),
    row(Site::Project, "arc_cell::MapCache::load", || {
        let cell = ArcCell::from_pointee(1);
        Cache::new(&cell).map(|value| after(value)).load();
    })
    .left("the cache is as it was"),
    row(Site::Scope, "Qsbr::while_offline", || Domain::global().qsbr().while_offline(act))
        .left("the reader is online again"),
    row(Site::Scope, "epoch::Guard::repin_after", || epoch::pin().repin_after(act))
        .left("the guard is pinned again"),
    row(Site::Make, "PerCpu::new", || drop(PerCpu::new(|_| act())))
        .uses("the values so far, which are this call's alone", "they are dropped"),
    row(Site::Make, "IdMap::insert_with", || _ = IDS.insert_with(|_| acted(&1)))
        .uses("the id, which is claimed", "the id is free"),
    in_section(Site::Make, "HashMapRef::get_or_insert_with", || {
        MAP.remove(&2);
        MAP.read().get_or_insert_with(2, || acted(&1));
    })
    .uses("the hash; that there is no entry is looked at again", "the map is as it was"),
    row(Site::Make, "CopyMap::get_or_insert_with", || {
        COPIES.remove(&2);
        COPIES.get_or_insert_with(2, || acted(&1));
    })
    .uses("nothing: that there is no pair is looked at again", "the map is as it was"),
    row(Site::Choose, "CopyMap::retain", || {
        COPIES.insert(1, 1);
        COPIES.retain(|_, _| after(false));
    })
    .used("the pairs of a bucket, copies; that the bucket is as it was is looked at again")
    .left("what was removed so far is"),
    row(Site::Choose, "List::retain", || {
        LIST.push_back(1);
        LIST.retain(|_| after(false));
    })
    .held("the updater's lock, which stands in the documentation")
    .uses("the place in the list, which the lock protects", "the list is whole, and unlocked"),
    in_section(Site::Choose, "IdMap::retain", || {
        IDS.insert(1);
        IDS.retain(|_, _| after(false));
    })
    .uses("the entry, which the section protects and is compared", "what was removed so far is"),
    in_section(Site::Choose, "HashMap::retain", || {
        MAP.insert(1, 1);
        MAP.retain(|_, _| after(false));
    })
    .uses("the entry, which the section protects and is compared", "what was removed so far is"),
    row(Site::Release, "BigRef's drop", || drop(BigRef::with_release((), |()| act())))
        .uses("nothing: nobody has it any more", "the value is gone"),
    in_section(Site::Equal, "HashTable::lookup", || {
        let _section = quiescence::read();
        // SAFETY: in a section of its domain, and its one node is never freed.
        unsafe { TABLE.lookup(7, |_| after(true)) };
    })
    .uses("the node, which the caller's section protects", "the table is as it was"),
    row(Site::Allocate, "HashTable::new_in", || {
        drop(HashTable::new_in(Domain::global(), OPTIONS, Arc::new(Acts)).unwrap())
    })
    .never()
    .uses("the table, which is this call's alone", "it does not unwind, by its contract"),
    in_section(Site::Key, "Hash, by HashMap::get", || _ = KEYS.read().get(&Key(1)))
        .uses("nothing: the table is looked up afterwards", "the section has ended"),
    in_section(Site::Key, "Eq, by HashMap::get", || _ = KEYS.read().get(&Key(0)))
        .uses("the entry, which the section protects", "the section has ended"),
    in_section(Site::Key, "Hash, by HashMap::insert", || _ = KEYS.insert(Key(1), 1))
        .uses("nothing: the table is looked up afterwards", "the map is as it was"),
    in_section(Site::Key, "Eq, by HashMap::insert", || _ = KEYS.insert(Key(0), 1))
        .used("the entries' addresses, which the section protects; new ones are compared")
        .left("the map is as it was"),
    in_section(Site::Key, "Clone, by HashMap::update", || _ = KEYS.update(&Key(2), |value| *value))
        .uses("the old entry, which the section protects and is compared", "the map is as it was"),
    row(Site::Key, "Hash, by CopyMap::get", || _ = COPY_KEYS.get(&CopyKey(1)))
        .uses("nothing: the table is looked up afterwards", "the map is as it was"),
    row(Site::Key, "Eq, by CopyMap::get", || _ = COPY_KEYS.get(&CopyKey(0)))
        .uses("a copy; that the bucket is as it was is looked at again", "the map is as it was"),
    row(Site::Key, "Eq, by CopyMap::insert", || _ = COPY_KEYS.insert(CopyKey(0), 1))
        .uses("a copy; that the bucket is as it was is looked at again", "the map is as it was"),
    row(Site::Key, "Hash, by a move of a CopyMap's", || {
        COPY_KEYS.reserve(COPY_KEYS.capacity() + 1);
        COPY_KEYS.shrink_to_fit();
    })
    .used("copies of pairs; that their buckets are as they were is looked at again")
    .left("the move goes on with the next update"),
    row(Site::Pointer, "ArcCellAny::load_full", || _ = POINTER.load_full())
        .uses("the guard, whose slot protects the object", "the guard is dropped"),
    row(Site::Pointer, "ArcCellAny::swap", || _ = POINTER.swap(Pointer::new(Arc::new(2))))
        .uses("the old reference, which is this call's alone", "the old reference is given up"),
    row(Site::Pointer, "ArcCellAny::load, with eight guards", || {
        let guards: Vec<_> = (0..8).map(|_| POINTER.load()).collect();
        drop((POINTER.load(), guards));
    })
    .uses("the slot, which protects the object", "the slot is free"),
    row(Site::Pointer, "ExactCell::load_full", || _ = EXACT.load_full())
        .uses("the guard, which has the borrow", "the guard is dropped"),
    row(Site::Pointer, "ExactCell::swap", || {
        let _guard = EXACT.load();
        EXACT.swap(Pointer::new(Arc::new(2)));
    })
    .uses("the counts so far, which are the cell's", "the value is not dropped"),
    row(Site::Drop, "Queue's drop", || {
        let queue = Queue::new();
        queue.push(RefCell::new(Acts));
        drop(queue);
    })
    .uses("the rest, which is this call's alone", "the rest is dropped"),
    row(Site::Drop, "List's drop", || drop([Acts].into_iter().collect::<List<_>>()))
        .uses("the rest, which is this call's alone", "the rest is dropped"),
    row(Site::Drop, "IdMap's drop", || {
        let ids = IdMap::new();
        ids.insert(Acts);
        drop(ids);
    })
    .uses("the rest, which is this call's alone", "the rest is dropped"),
    row(Site::Drop, "HashMap's drop", || {
        let map = HashMap::new();
        map.insert(1, Acts);
        drop(map);
    })
    .uses("the rest, which is this call's alone", "the rest leaks"),
    row(Site::Drop, "Rcu's drop", || drop(Rcu::new(Acts))).left("the cell is gone"),
    row(Site::Drop, "ExactCell's drop", || drop(ExactCell::new(Arc::new(Acts))))
        .left("the cell is gone"),
    row(Site::Drop, "BigRef's drop", || drop(BigRef::new(Acts))).left("the value is gone"),
    row(Site::Drop, "set_stall_hook", || {
        let acts = Acts;
        quiescence::report::set_stall_hook(move |_| {
            let _ = &acts;
        });
        quiescence::report::set_stall_hook(|_| ());
    })
    .uses("nothing: the new one is in its place", "the old hook is gone"),
    row(Site::StallHook, "the stall reporter", || {
        let domain = Domain::global();
        let mut tuning = domain.tuning();
        let before = tuning;
        tuning.stall_after = Some(Duration::from_millis(2));
        domain.tune(tuning);
        quiescence::report::set_stall_hook(|_| {
            act();
            let_go();
        });
        hold();
        domain.synchronize();
        domain.tune(before);
    })
    .caught()
    .left("counted, and the reporter continues")
    .waits()
    .elsewhere(),
    row(Site::Subscriber, "Domain::synchronize", || {
        #[cfg(feature = "tracing")]
        {
            let hears = crate::subscriber::Hears(|_: &tracing::Event<'_>| act());
            tracing::subscriber::with_default(hears, || Domain::global().synchronize());
        }
    })
    .caught()
    .uses("nothing: events are handed on after the step", "the event is gone")
    .waits(),
];
