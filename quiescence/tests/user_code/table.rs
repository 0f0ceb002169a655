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

const fn row(site: Site, by: &'static str, within: In, panics: Panics, reach: fn()) -> Row {
    let (held, used, left) = ("nothing", "nothing", "");
    let (waits, is_elsewhere) = (false, false);
    Row { site, by, held, used, left, within, panics, waits, is_elsewhere, reach }
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
    row(Site::Callback, "Domain::call", In::Callback, Panics::Caught, reach::domain_call)
        .used("the rest of the batch, which is the runner's alone")
        .left("counted, and the rest is run")
        .waits(),
    row(Site::Callback, "Domain::retire", In::Callback, Panics::Caught, reach::domain_retire)
        .used("the rest of the batch, which is the runner's alone")
        .left("counted, and the rest is run")
        .waits(),
    row(
        Site::Callback,
        "epoch::Guard::defer",
        In::Callback,
        Panics::Caught,
        reach::epoch_guard_defer,
    )
    .used("the rest of the batch, which is the runner's alone")
    .left("counted, and the rest is run")
    .waits(),
    row(
        Site::OnTheSpot,
        "epoch::unprotected().defer",
        In::Nothing,
        Panics::Through,
        reach::epoch_unprotected_defer,
    )
    .left("the closure is gone"),
    row(
        Site::Head,
        "CallbackQueue::attend",
        In::Callback,
        Panics::Never,
        reach::callback_queue_attend,
    )
    .used("the rest of the batch, which is the runner's alone")
    .left("C does not unwind")
    .waits(),
    row(
        Site::Attend,
        "CallbackQueue::attend_and",
        In::Nothing,
        Panics::Through,
        reach::callback_queue_attend_and,
    )
    .used("that the thread attends, which no other may meanwhile")
    .left("no thread attends to the queue")
    .waits(),
    row(Site::Weigh, "Rcu::store", In::Nothing, Panics::Caught, reach::rcu_store)
        .used("the old value, which is this call's alone")
        .left("counted as its size"),
    row(
        Site::WakerClone,
        "Domain::synchronize_async",
        In::Nothing,
        Panics::Through,
        reach::domain_synchronize_async,
    )
    .used("nothing: the machine is asked again")
    .left("the task is in no list"),
    row(Site::Wake, "Domain::synchronize", In::Nothing, Panics::Caught, reach::domain_synchronize)
        .used("nothing: the thread's own slots are counted anew")
        .left("counted, and the rest is woken")
        .waits(),
    row(
        Site::WakerDrop,
        "the drop of a future",
        In::Nothing,
        Panics::Caught,
        reach::the_drop_of_a_future,
    )
    .used("nothing: it is in no list any more")
    .left("the future is gone"),
    row(Site::Update, "Rcu::update", In::Section, Panics::Through, reach::rcu_update)
        .used("the old value, which the section protects")
        .left("the cell is as it was"),
    row(Site::Update, "ArcCell::rcu", In::Nothing, Panics::Through, reach::arc_cell_rcu)
        .used("the old value, which the guard protects")
        .left("the cell is as it was"),
    row(Site::Update, "ExactCell::rcu", In::Nothing, Panics::Through, reach::exact_cell_rcu)
        .used("the old value, which the guard protects")
        .left("the cell is as it was"),
    row(Site::Update, "Snapshot::update", In::Nothing, Panics::Through, reach::snapshot_update)
        .used("the old value, a copy")
        .left("the snapshot is as it was"),
    row(Site::Update, "SeqLock::update", In::Nothing, Panics::Through, reach::seq_lock_update)
        .held("the writer's lock, which its guard is")
        .used("the old value, which the lock protects")
        .left("the value is as it was, and unlocked"),
    row(Site::Update, "Latch::update", In::Nothing, Panics::Through, reach::latch_update)
        .held("the writer's lock")
        .used("the old value, which the lock protects")
        .left("the value is as it was, and unlocked"),
    row(
        Site::Update,
        "epoch::Atomic::fetch_update",
        In::Section,
        Panics::Through,
        reach::epoch_atomic_fetch_update,
    )
    .used("the old pointer, which is compared")
    .left("the pointer is as it was"),
    row(Site::Update, "IdMap::update", In::Section, Panics::Through, reach::id_map_update)
        .used("the old entry, which the section protects and is compared")
        .left("the map is as it was"),
    row(Site::Update, "HashMap::update", In::Section, Panics::Through, reach::hash_map_update)
        .used("the old entry, which the section protects and is compared")
        .left("the map is as it was"),
    row(Site::Project, "Rcu::with", In::Section, Panics::Through, reach::rcu_with)
        .left("the section has ended"),
    row(Site::Project, "RcuRef::map", In::Section, Panics::Through, reach::rcu_ref_map)
        .used("the value, which the guard protects")
        .left("the section has ended"),
    row(
        Site::Project,
        "arc_cell::MapCache::load",
        In::Nothing,
        Panics::Through,
        reach::arc_cell_map_cache_load,
    )
    .left("the cache is as it was"),
    row(
        Site::Scope,
        "Qsbr::while_offline",
        In::Nothing,
        Panics::Through,
        reach::qsbr_while_offline,
    )
    .left("the reader is online again"),
    row(
        Site::Scope,
        "epoch::Guard::repin_after",
        In::Nothing,
        Panics::Through,
        reach::epoch_guard_repin_after,
    )
    .left("the guard is pinned again"),
    row(Site::Make, "PerCpu::new", In::Nothing, Panics::Through, reach::per_cpu_new)
        .used("the values so far, which are this call's alone")
        .left("they are dropped"),
    row(Site::Make, "IdMap::insert_with", In::Nothing, Panics::Through, reach::id_map_insert_with)
        .used("the id, which is claimed")
        .left("the id is free"),
    row(
        Site::Make,
        "HashMapRef::get_or_insert_with",
        In::Section,
        Panics::Through,
        reach::hash_map_ref_get_or_insert_with,
    )
    .used("the hash; that there is no entry is looked at again")
    .left("the map is as it was"),
    row(Site::Choose, "List::retain", In::Nothing, Panics::Through, reach::list_retain)
        .held("the updater's lock, which stands in the documentation")
        .used("the place in the list, which the lock protects")
        .left("the list is whole, and unlocked"),
    row(Site::Choose, "IdMap::retain", In::Section, Panics::Through, reach::id_map_retain)
        .used("the entry, which the section protects and is compared")
        .left("what was removed so far is"),
    row(Site::Choose, "HashMap::retain", In::Section, Panics::Through, reach::hash_map_retain)
        .used("the entry, which the section protects and is compared")
        .left("what was removed so far is"),
    row(Site::Release, "BigRef's drop", In::Nothing, Panics::Through, reach::big_ref_drop)
        .used("nothing: nobody has it any more")
        .left("the value is gone"),
    row(Site::Equal, "HashTable::lookup", In::Section, Panics::Through, reach::hash_table_lookup)
        .used("the node, which the caller's section protects")
        .left("the table is as it was"),
    row(Site::Allocate, "HashTable::new_in", In::Nothing, Panics::Never, reach::hash_table_new_in)
        .used("the table, which is this call's alone")
        .left("it does not unwind, by its contract"),
    row(
        Site::Key,
        "Hash, by HashMap::get",
        In::Section,
        Panics::Through,
        reach::hash_by_hash_map_get,
    )
    .used("nothing: the table is looked up afterwards")
    .left("the section has ended"),
    row(Site::Key, "Eq, by HashMap::get", In::Section, Panics::Through, reach::eq_by_hash_map_get)
        .used("the entry, which the section protects")
        .left("the section has ended"),
    row(
        Site::Key,
        "Hash, by HashMap::insert",
        In::Section,
        Panics::Through,
        reach::hash_by_hash_map_insert,
    )
    .used("nothing: the table is looked up afterwards")
    .left("the map is as it was"),
    row(
        Site::Key,
        "Eq, by HashMap::insert",
        In::Section,
        Panics::Through,
        reach::eq_by_hash_map_insert,
    )
    .used("the entries' addresses, which the section protects; new ones are compared")
    .left("the map is as it was"),
    row(
        Site::Key,
        "Clone, by HashMap::update",
        In::Section,
        Panics::Through,
        reach::clone_by_hash_map_update,
    )
    .used("the old entry, which the section protects and is compared")
    .left("the map is as it was"),
    row(
        Site::Pointer,
        "ArcCellAny::load_full",
        In::Nothing,
        Panics::Through,
        reach::arc_cell_any_load_full,
    )
    .used("the guard, whose slot protects the object")
    .left("the guard is dropped"),
    row(Site::Pointer, "ArcCellAny::swap", In::Nothing, Panics::Through, reach::arc_cell_any_swap)
        .used("the old reference, which is this call's alone")
        .left("the old reference is given up"),
    row(
        Site::Pointer,
        "ArcCellAny::load, with eight guards",
        In::Nothing,
        Panics::Through,
        reach::arc_cell_any_load_with_eight_guards,
    )
    .used("the slot, which protects the object")
    .left("the slot is free"),
    row(
        Site::Pointer,
        "ExactCell::load_full",
        In::Nothing,
        Panics::Through,
        reach::exact_cell_load_full,
    )
    .used("the guard, which has the borrow")
    .left("the guard is dropped"),
    row(Site::Pointer, "ExactCell::swap", In::Nothing, Panics::Through, reach::exact_cell_swap)
        .used("the counts so far, which are the cell's")
        .left("the value is not dropped"),
    row(Site::Drop, "Queue's drop", In::Nothing, Panics::Through, reach::queue_drop)
        .used("the rest, which is this call's alone")
        .left("the rest is dropped"),
    row(Site::Drop, "List's drop", In::Nothing, Panics::Through, reach::list_drop)
        .used("the rest, which is this call's alone")
        .left("the rest is dropped"),
    row(Site::Drop, "IdMap's drop", In::Nothing, Panics::Through, reach::id_map_drop)
        .used("the rest, which is this call's alone")
        .left("the rest is dropped"),
    row(Site::Drop, "HashMap's drop", In::Nothing, Panics::Through, reach::hash_map_drop)
        .used("the rest, which is this call's alone")
        .left("the rest is dropped"),
    row(Site::Drop, "Rcu's drop", In::Nothing, Panics::Through, reach::rcu_drop)
        .left("the cell is gone"),
    row(Site::Drop, "ExactCell's drop", In::Nothing, Panics::Through, reach::exact_cell_drop)
        .left("the cell is gone"),
    row(Site::Drop, "BigRef's drop", In::Nothing, Panics::Through, reach::big_ref_drop_drop)
        .left("the value is gone"),
    row(Site::Drop, "set_stall_hook", In::Nothing, Panics::Through, reach::set_stall_hook)
        .used("nothing: the new one is in its place")
        .left("the old hook is gone"),
    row(
        Site::StallHook,
        "the stall reporter",
        In::Nothing,
        Panics::Caught,
        reach::the_stall_reporter,
    )
    .left("counted, and the reporter continues")
    .waits()
    .elsewhere(),
    row(Site::Subscriber, "Domain::synchronize", In::Nothing, Panics::Caught, reach::subscriber)
        .used("nothing: events are handed on after the step")
        .left("the event is gone")
        .waits(),
];
