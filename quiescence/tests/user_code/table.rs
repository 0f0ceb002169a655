//! Every place where the library runs code of its user's: one row for each way that leads there.
//!
//! Above a row: the locks that are held, the user's own only (*held*); what was computed before and
//! is used afterwards, and why it is right still (*used*); what a panic leaves (*left*).

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
    let (within, panics) = (In::Nothing, Panics::Through);
    Row { site, by, within, panics, waits: false, is_elsewhere: false, reach }
}

/// The same in a section.
const fn in_section(site: Site, by: &'static str, reach: fn()) -> Row {
    Row { within: In::Section, ..row(site, by, reach) }
}

/// The same in a callback, of a batch that is run.
const fn in_callback(site: Site, by: &'static str, reach: fn()) -> Row {
    Row { within: In::Callback, waits: true, ..row(site, by, reach) }
}

impl Row {
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
    // Used: the rest of the batch, which is the runner's alone. Left: counted, and the rest is run.
    in_callback(Site::Callback, "Domain::call", || {
        quiescence::call(act).unwrap();
        Domain::global().barrier();
    })
    .caught(),
    // Used: the rest of the batch, which is the runner's alone. Left: counted, and the rest is run.
    in_callback(Site::Callback, "Domain::retire", || {
        quiescence::retire(Box::new(Acts)).unwrap();
        Domain::global().barrier();
    })
    .caught(),
    // Used: the rest of the batch, which is the runner's alone. Left: counted, and the rest is run.
    in_callback(Site::Callback, "epoch::Guard::defer", || {
        epoch::pin().defer(act);
        epoch::pin().flush();
        Domain::global().barrier();
    })
    .caught(),
    // Left: the closure is gone.
    row(Site::OnTheSpot, "epoch::unprotected().defer", || {
        // SAFETY: nothing is read under it.
        unsafe { epoch::unprotected() }.defer(act);
    }),
    // Used: the rest of the batch, which is the runner's alone. Left: C does not unwind.
    in_callback(Site::Head, "CallbackQueue::attend", || {
        push_head(&QUEUE);
        QUEUE.attend(Some(Duration::ZERO)).unwrap();
    })
    .never(),
    // Used: that the thread attends, which no other may meanwhile. Left: no thread attends to the
    // queue.
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
    .waits(),
    // Used: the old value, which is this call's alone. Left: counted as its size.
    row(Site::Weigh, "Rcu::store", || {
        static CELL: LazyLock<Rcu<Weighs>> = LazyLock::new(|| Rcu::new(Weighs));
        CELL.store(Weighs);
    })
    .caught(),
    // Used: nothing: the machine is asked again. Left: the task is in no list.
    row(Site::WakerClone, "Domain::synchronize_async", || drop(pending(true))),
    // Used: nothing: the thread's own slots are counted anew. Left: counted, and the rest is woken.
    row(Site::Wake, "Domain::synchronize", || {
        let future = pending(false);
        let_go();
        Domain::global().synchronize();
        drop(future);
    })
    .caught()
    .waits(),
    // Used: nothing: it is in no list any more. Left: the future is gone.
    row(Site::WakerDrop, "the drop of a future", || drop(pending(true))).caught(),
    // Used: nothing: the version is looked up afterwards. Left: the version is as it was.
    row(Site::WakerClone, "Rcu::poll_changed", || drop(waited_for(&WATCHED))),
    // Used: the old value, which is this call's alone, and room for it. Left: counted, and the rest
    // is woken.
    row(Site::Wake, "Rcu::store", || {
        let version = waited_for(&WATCHED);
        WATCHED.store(2);
        drop(version);
    })
    .caught(),
    // Used: the old value, which is this call's alone. Left: counted, and the rest is woken.
    row(Site::Wake, "Rcu::update", || {
        let version = waited_for(&WATCHED);
        WATCHED.update(|old| old + 1);
        drop(version);
    })
    .caught(),
    // Used: the old value, which is this call's alone. Left: counted, and the rest is woken.
    in_section(Site::Wake, "Rcu::update_in", || {
        let version = waited_for(&WATCHED);
        let section = quiescence::read();
        let old = WATCHED.update_in(&section, |old| old + 1);
        drop(section);
        drop((old, version));
    })
    .caught(),
    // Used: the value, which no other thread can read. Left: counted, and the rest is woken.
    row(Site::Wake, "Rcu's drop", || {
        let mut cell = Rcu::new(1);
        let version = waited_for(&cell);
        cell = Rcu::new(2);
        drop((version, cell));
    })
    .caught(),
    // Used: nothing: the version is looked up again. Left: the other waker is noted.
    row(Site::WakerDrop, "Rcu::poll_changed, with another waker", || {
        let mut version = waited_for(&WATCHED);
        let _ = WATCHED.poll_changed(&mut version, &mut no_context());
    })
    .caught(),
    // Used: nothing: the version has no waker any more. Left: the version is as it was.
    row(Site::WakerDrop, "the drop of Rcu::changed", || {
        let mut version = WATCHED.version();
        let mut future = Box::pin(WATCHED.changed(&mut version));
        let _ = future.as_mut().poll(&mut Context::from_waker(&waker()));
    })
    .caught(),
    // Used: nothing: it is in no table any more. Left: the version is gone.
    row(Site::WakerDrop, "the drop of a Version", || drop(waited_for(&WATCHED))).caught(),
    // Used: the old value, which the section protects. Left: the cell is as it was.
    in_section(Site::Update, "Rcu::update", || {
        static CELL: LazyLock<Rcu<u64>> = LazyLock::new(|| Rcu::new(1));
        CELL.update(acted);
    }),
    // Used: the old value, which the guard protects. Left: the cell is as it was.
    row(Site::Update, "ArcCell::rcu", || {
        static CELL: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(1));
        CELL.rcu(|value| acted(value));
    }),
    // Used: the old value, which the guard protects. Left: the cell is as it was.
    row(Site::Update, "ExactCell::rcu", || {
        static CELL: LazyLock<ExactCell<Arc<u64>>> = LazyLock::new(|| ExactCell::new(Arc::new(1)));
        CELL.rcu(|value| Arc::new(acted(value)));
    }),
    // Used: the old value, a copy. Left: the snapshot is as it was.
    row(Site::Update, "Snapshot::update", || {
        static CELL: LazyLock<Snapshot<u64>> = LazyLock::new(|| Snapshot::new(1));
        CELL.update(|value| acted(&value));
    }),
    // Held: the writer's lock, which its guard is. Used: the old value, which the lock protects.
    // Left: the value is as it was, and unlocked.
    row(Site::Scope, "SeqLock::update", || {
        static CELL: SeqLock<u64> = SeqLock::new(1);
        CELL.update(|value| acted(&value));
    }),
    // Held: the writer's lock. Used: the old value, which the lock protects. Left: the value is as
    // it was, and unlocked.
    row(Site::Scope, "Latch::update", || {
        static CELL: Latch<u64> = Latch::new(1);
        CELL.update(|value| acted(&value));
    }),
    // Used: the old pointer, which is compared. Left: the pointer is as it was.
    in_section(Site::Update, "epoch::Atomic::fetch_update", || {
        static CELL: LazyLock<epoch::Atomic<u64>> = LazyLock::new(epoch::Atomic::null);
        let _ = CELL.fetch_update(SeqCst, SeqCst, &epoch::pin(), |_| after(None));
    }),
    // Used: the old entry, which the section protects and is compared. Left: the map is as it was.
    in_section(Site::Update, "IdMap::update", || {
        let id = IDS.insert(1);
        IDS.update(id, acted);
        IDS.remove(id);
    }),
    // Used: the old entry and the bucket's word, which the section protects and are compared. Left:
    // the map is as it was.
    in_section(Site::Update, "HashMap::update", || {
        MAP.insert(1, 1);
        MAP.update(&1, acted);
    }),
    // Used: the old value, a copy; that the bucket is as it was is looked at again. Left: the map
    // is as it was.
    row(Site::Update, "CopyMap::update", || {
        COPIES.insert(1, 1);
        COPIES.update(&1, |value| acted(&value));
    }),
    // Used: the old value, a copy; that the bucket is as it was is looked at again. Left: the map
    // is as it was.
    row(Site::Update, "CopyMap::compute", || {
        COPIES.insert(1, 1);
        let decide = |value: Option<u64>| Operation::<_, ()>::Insert(acted(&value.unwrap_or(0)));
        let _decided = COPIES.compute(1, decide);
    }),
    // Left: the section has ended.
    in_section(Site::Project, "Rcu::with", || _ = Rcu::new(1).with(acted)),
    // Used: the value, which the guard protects. Left: the section has ended.
    in_section(Site::Project, "RcuRef::map", || {
        static CELL: LazyLock<Rcu<u64>> = LazyLock::new(|| Rcu::new(1));
        drop(RcuRef::map(CELL.read(), |value| after(value)));
    }),
    // Left: the cache is as it was.
    row(Site::Project, "arc_cell::MapCache::load", || {
        let cell = ArcCell::from_pointee(1);
        Cache::new(&cell).map(|value| after(value)).load();
    }),
    // Left: the reader is online again.
    row(Site::Scope, "Qsbr::while_offline", || Domain::global().qsbr().while_offline(act)),
    // Left: the guard is pinned again.
    row(Site::Scope, "epoch::Guard::repin_after", || epoch::pin().repin_after(act)),
    // Used: the values so far, which are this call's alone. Left: they are dropped.
    row(Site::Make, "PerCpu::new", || drop(PerCpu::new(|_| act()))),
    // Used: the id, which is claimed. Left: the id is free.
    row(Site::Make, "IdMap::insert_with", || _ = IDS.insert_with(|_| acted(&1))),
    // Used: the hash; that there is no entry is looked at again. Left: the map is as it was.
    in_section(Site::Make, "HashMapRef::get_or_insert_with", || {
        MAP.remove(&2);
        MAP.read().get_or_insert_with(2, || acted(&1));
    }),
    // Used: nothing: that there is no pair is looked at again. Left: the map is as it was.
    row(Site::Make, "CopyMap::get_or_insert_with", || {
        COPIES.remove(&2);
        COPIES.get_or_insert_with(2, || acted(&1));
    }),
    // Used: the pairs of a bucket, copies; that the bucket is as it was is looked at again. Left:
    // what was removed so far is.
    row(Site::Choose, "CopyMap::retain", || {
        COPIES.insert(1, 1);
        COPIES.retain(|_, _| after(false));
    }),
    // Held: the updater's lock, which stands in the documentation. Used: the place in the list,
    // which the lock protects. Left: the list is whole, and unlocked.
    row(Site::Choose, "List::retain", || {
        LIST.push_back(1);
        LIST.retain(|_| after(false));
    }),
    // Used: the entry, which the section protects and is compared. Left: what was removed so far
    // is.
    in_section(Site::Choose, "IdMap::retain", || {
        IDS.insert(1);
        IDS.retain(|_, _| after(false));
    }),
    // Used: the entry, which the section protects and is compared. Left: what was removed so far
    // is.
    in_section(Site::Choose, "HashMap::retain", || {
        MAP.insert(1, 1);
        MAP.retain(|_, _| after(false));
    }),
    // Used: nothing: nobody has it any more. Left: the value is gone.
    row(Site::Release, "BigRef's drop", || drop(BigRef::with_release((), |()| act()))),
    // Used: the node, which the caller's section protects. Left: the table is as it was.
    in_section(Site::Equal, "HashTable::lookup", || {
        let _section = quiescence::read();
        // SAFETY: in a section of its domain, and its one node is never freed.
        unsafe { TABLE.lookup(7, |_| after(true)) };
    }),
    // Used: the table, which is this call's alone. Left: it does not unwind, by its contract.
    row(Site::Allocate, "HashTable::new_in", || {
        drop(HashTable::new_in(Domain::global(), OPTIONS, Arc::new(Acts)).unwrap())
    })
    .never(),
    // Used: nothing: the table is looked up afterwards. Left: the section has ended.
    in_section(Site::Key, "Hash, by HashMap::get", || _ = KEYS.read().get(&Key(1))),
    // Used: the entry, which the section protects. Left: the section has ended.
    in_section(Site::Key, "Eq, by HashMap::get", || _ = KEYS.read().get(&Key(0))),
    // Used: nothing: the table is looked up afterwards. Left: the map is as it was.
    in_section(Site::Key, "Hash, by HashMap::insert", || _ = KEYS.insert(Key(1), 1)),
    // Used: the entries' addresses, which the section protects; new ones are compared. Left: the
    // map is as it was.
    in_section(Site::Key, "Eq, by HashMap::insert", || _ = KEYS.insert(Key(0), 1)),
    // Used: the old entry, which the section protects and is compared. Left: the map is as it was.
    in_section(Site::Key, "Clone, by HashMap::update", || _ = KEYS.update(&Key(2), |value| *value)),
    // Used: nothing: the table is looked up afterwards. Left: the map is as it was.
    row(Site::Key, "Hash, by CopyMap::get", || _ = COPY_KEYS.get(&CopyKey(1))),
    // Used: a copy; that the bucket is as it was is looked at again. Left: the map is as it was.
    row(Site::Key, "Eq, by CopyMap::get", || _ = COPY_KEYS.get(&CopyKey(0))),
    // Used: a copy; that the bucket is as it was is looked at again. Left: the map is as it was.
    row(Site::Key, "Eq, by CopyMap::insert", || _ = COPY_KEYS.insert(CopyKey(0), 1)),
    // Used: copies of pairs; that their buckets are as they were is looked at again. Left: the move
    // goes on with the next update.
    row(Site::Key, "Hash, by a move of a CopyMap's", || {
        COPY_KEYS.reserve(COPY_KEYS.capacity() + 1);
        COPY_KEYS.shrink_to_fit();
    }),
    // Used: the guard, whose slot protects the object. Left: the guard is dropped.
    row(Site::Pointer, "ArcCellAny::load_full", || _ = POINTER.load_full()),
    // Used: the old reference, which is this call's alone. Left: the old reference is given up.
    row(Site::Pointer, "ArcCellAny::swap", || _ = POINTER.swap(Pointer::new(Arc::new(2)))),
    // Used: the slot, which protects the object. Left: the slot is free.
    row(Site::Pointer, "ArcCellAny::load, with eight guards", || {
        let guards: Vec<_> = (0..8).map(|_| POINTER.load()).collect();
        drop((POINTER.load(), guards));
    }),
    // Used: the guard, which has the borrow. Left: the guard is dropped.
    row(Site::Pointer, "ExactCell::load_full", || _ = EXACT.load_full()),
    // Used: the counts so far, which are the cell's. Left: the value is not dropped.
    row(Site::Pointer, "ExactCell::swap", || {
        let _guard = EXACT.load();
        EXACT.swap(Pointer::new(Arc::new(2)));
    }),
    // Used: the rest, which is this call's alone. Left: the rest is dropped.
    row(Site::Drop, "Queue's drop", || {
        let queue = Queue::new();
        queue.push(RefCell::new(Acts));
        drop(queue);
    }),
    // Used: the rest, which is this call's alone. Left: the rest is dropped.
    row(Site::Drop, "List's drop", || drop([Acts].into_iter().collect::<List<_>>())),
    // Used: the rest, which is this call's alone. Left: the rest is dropped.
    row(Site::Drop, "IdMap's drop", || {
        let ids = IdMap::new();
        ids.insert(Acts);
        drop(ids);
    }),
    // Used: the rest, which is this call's alone. Left: the rest is dropped.
    row(Site::Drop, "HashMap's drop", || {
        let map = HashMap::new();
        map.insert(1, Acts);
        drop(map);
    }),
    // Left: the cell is gone.
    row(Site::Drop, "Rcu's drop", || drop(Rcu::new(Acts))),
    // Left: the cell is gone.
    row(Site::Drop, "ExactCell's drop", || drop(ExactCell::new(Arc::new(Acts)))),
    // Left: the value is gone.
    row(Site::Drop, "BigRef's drop", || drop(BigRef::new(Acts))),
    // Used: nothing: the new one is in its place. Left: the old hook is gone.
    row(Site::Drop, "set_stall_hook", || {
        let acts = Acts;
        quiescence::report::set_stall_hook(move |_| {
            let _ = &acts;
        });
        quiescence::report::set_stall_hook(|_| ());
    }),
    // Left: counted, and the reporter continues.
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
    .waits()
    .elsewhere(),
    // Used: nothing: events are handed on after the step. Left: the event is gone.
    row(Site::Subscriber, "Domain::synchronize", || {
        #[cfg(feature = "tracing")]
        {
            let hears = crate::subscriber::Hears(|_: &tracing::Event<'_>| act());
            tracing::subscriber::with_default(hears, || Domain::global().synchronize());
        }
    })
    .caught()
    .waits(),
];
