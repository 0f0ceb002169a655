//! Every place where the library runs code of its user's: one row for each way that leads there.

use quiescence::__private::Site;

use super::reach;

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

pub(super) static ROWS: [Row; 53] = [
    in_callback(Site::Callback, "Domain::call", reach::domain_call)
        .caught()
        .left("counted, and the rest is run"),
    in_callback(Site::Callback, "Domain::retire", reach::domain_retire)
        .caught()
        .left("counted, and the rest is run"),
    in_callback(Site::Callback, "epoch::Guard::defer", reach::epoch_guard_defer)
        .caught()
        .left("counted, and the rest is run"),
    row(Site::OnTheSpot, "epoch::unprotected().defer", reach::epoch_unprotected_defer)
        .left("the closure is gone"),
    in_callback(Site::Head, "CallbackQueue::attend", reach::callback_queue_attend)
        .never()
        .left("C does not unwind"),
    row(Site::Attend, "CallbackQueue::attend_and", reach::callback_queue_attend_and)
        .used("that the thread attends, which no other may meanwhile")
        .left("no thread attends to the queue")
        .waits(),
    row(Site::Weigh, "Rcu::store", reach::rcu_store)
        .caught()
        .used("the old value, which is this call's alone")
        .left("counted as its size"),
    row(Site::WakerClone, "Domain::synchronize_async", reach::domain_synchronize_async)
        .used("nothing: the machine is asked again")
        .left("the task is in no list"),
    row(Site::Wake, "Domain::synchronize", reach::domain_synchronize)
        .caught()
        .used("nothing: the thread's own slots are counted anew")
        .left("counted, and the rest is woken")
        .waits(),
    row(Site::WakerDrop, "the drop of a future", reach::the_drop_of_a_future)
        .caught()
        .used("nothing: it is in no list any more")
        .left("the future is gone"),
    in_section(Site::Update, "Rcu::update", reach::rcu_update)
        .used("the old value, which the section protects")
        .left("the cell is as it was"),
    row(Site::Update, "ArcCell::rcu", reach::arc_cell_rcu)
        .used("the old value, which the guard protects")
        .left("the cell is as it was"),
    row(Site::Update, "ExactCell::rcu", reach::exact_cell_rcu)
        .used("the old value, which the guard protects")
        .left("the cell is as it was"),
    row(Site::Update, "Snapshot::update", reach::snapshot_update)
        .used("the old value, a copy")
        .left("the snapshot is as it was"),
    row(Site::Update, "SeqLock::update", reach::seq_lock_update)
        .held("the writer's lock, which its guard is")
        .used("the old value, which the lock protects")
        .left("the value is as it was, and unlocked"),
    row(Site::Update, "Latch::update", reach::latch_update)
        .held("the writer's lock")
        .used("the old value, which the lock protects")
        .left("the value is as it was, and unlocked"),
    in_section(Site::Update, "epoch::Atomic::fetch_update", reach::epoch_atomic_fetch_update)
        .used("the old pointer, which is compared")
        .left("the pointer is as it was"),
    in_section(Site::Update, "IdMap::update", reach::id_map_update)
        .used("the old entry, which the section protects and is compared")
        .left("the map is as it was"),
    in_section(Site::Update, "HashMap::update", reach::hash_map_update)
        .used("the old entry, which the section protects and is compared")
        .left("the map is as it was"),
    in_section(Site::Project, "Rcu::with", reach::rcu_with).left("the section has ended"),
    in_section(Site::Project, "RcuRef::map", reach::rcu_ref_map)
        .used("the value, which the guard protects")
        .left("the section has ended"),
    row(Site::Project, "arc_cell::MapCache::load", reach::arc_cell_map_cache_load)
        .left("the cache is as it was"),
    row(Site::Scope, "Qsbr::while_offline", reach::qsbr_while_offline)
        .left("the reader is online again"),
    row(Site::Scope, "epoch::Guard::repin_after", reach::epoch_guard_repin_after)
        .left("the guard is pinned again"),
    row(Site::Make, "PerCpu::new", reach::per_cpu_new)
        .used("the values so far, which are this call's alone")
        .left("they are dropped"),
    row(Site::Make, "IdMap::insert_with", reach::id_map_insert_with)
        .used("the id, which is claimed")
        .left("the id is free"),
    in_section(
        Site::Make,
        "HashMapRef::get_or_insert_with",
        reach::hash_map_ref_get_or_insert_with,
    )
    .used("the hash; that there is no entry is looked at again")
    .left("the map is as it was"),
    row(Site::Choose, "List::retain", reach::list_retain)
        .held("the updater's lock, which stands in the documentation")
        .used("the place in the list, which the lock protects")
        .left("the list is whole, and unlocked"),
    in_section(Site::Choose, "IdMap::retain", reach::id_map_retain)
        .used("the entry, which the section protects and is compared")
        .left("what was removed so far is"),
    in_section(Site::Choose, "HashMap::retain", reach::hash_map_retain)
        .used("the entry, which the section protects and is compared")
        .left("what was removed so far is"),
    row(Site::Release, "BigRef's drop", reach::big_ref_drop)
        .used("nothing: nobody has it any more")
        .left("the value is gone"),
    in_section(Site::Equal, "HashTable::lookup", reach::hash_table_lookup)
        .used("the node, which the caller's section protects")
        .left("the table is as it was"),
    row(Site::Allocate, "HashTable::new_in", reach::hash_table_new_in)
        .never()
        .used("the table, which is this call's alone")
        .left("it does not unwind, by its contract"),
    in_section(Site::Key, "Hash, by HashMap::get", reach::hash_by_hash_map_get)
        .used("nothing: the table is looked up afterwards")
        .left("the section has ended"),
    in_section(Site::Key, "Eq, by HashMap::get", reach::eq_by_hash_map_get)
        .used("the entry, which the section protects")
        .left("the section has ended"),
    in_section(Site::Key, "Hash, by HashMap::insert", reach::hash_by_hash_map_insert)
        .used("nothing: the table is looked up afterwards")
        .left("the map is as it was"),
    in_section(Site::Key, "Eq, by HashMap::insert", reach::eq_by_hash_map_insert)
        .used("the entries' addresses, which the section protects; new ones are compared")
        .left("the map is as it was"),
    in_section(Site::Key, "Clone, by HashMap::update", reach::clone_by_hash_map_update)
        .used("the old entry, which the section protects and is compared")
        .left("the map is as it was"),
    row(Site::Pointer, "ArcCellAny::load_full", reach::arc_cell_any_load_full)
        .used("the guard, whose slot protects the object")
        .left("the guard is dropped"),
    row(Site::Pointer, "ArcCellAny::swap", reach::arc_cell_any_swap)
        .used("the old reference, which is this call's alone")
        .left("the old reference is given up"),
    row(
        Site::Pointer,
        "ArcCellAny::load, with eight guards",
        reach::arc_cell_any_load_with_eight_guards,
    )
    .used("the slot, which protects the object")
    .left("the slot is free"),
    row(Site::Pointer, "ExactCell::load_full", reach::exact_cell_load_full)
        .used("the guard, which has the borrow")
        .left("the guard is dropped"),
    row(Site::Pointer, "ExactCell::swap", reach::exact_cell_swap)
        .used("the counts so far, which are the cell's")
        .left("the value is not dropped"),
    row(Site::Drop, "Queue's drop", reach::queue_drop)
        .used("the rest, which is this call's alone")
        .left("the rest is dropped"),
    row(Site::Drop, "List's drop", reach::list_drop)
        .used("the rest, which is this call's alone")
        .left("the rest is dropped"),
    row(Site::Drop, "IdMap's drop", reach::id_map_drop)
        .used("the rest, which is this call's alone")
        .left("the rest is dropped"),
    row(Site::Drop, "HashMap's drop", reach::hash_map_drop)
        .used("the rest, which is this call's alone")
        .left("the rest is dropped"),
    row(Site::Drop, "Rcu's drop", reach::rcu_drop).left("the cell is gone"),
    row(Site::Drop, "ExactCell's drop", reach::exact_cell_drop).left("the cell is gone"),
    row(Site::Drop, "BigRef's drop", reach::big_ref_drop_drop).left("the value is gone"),
    row(Site::Drop, "set_stall_hook", reach::set_stall_hook)
        .used("nothing: the new one is in its place")
        .left("the old hook is gone"),
    row(Site::StallHook, "the stall reporter", reach::the_stall_reporter)
        .caught()
        .left("counted, and the reporter continues")
        .waits()
        .elsewhere(),
    row(Site::Subscriber, "Domain::synchronize", reach::subscriber)
        .caught()
        .used("nothing: events are handed on after the step")
        .left("the event is gone")
        .waits(),
];
