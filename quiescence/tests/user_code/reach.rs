//! Ways that lead to the places where user code runs, and the user code there.

use crate::common::user_types::OnClone;
use crate::common::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, RawWaker, RawWakerVTable, Waker};

use quiescence::callback_queue::{CallbackQueue, Wakes};
use quiescence::cell::Cache;
use quiescence::collections::{HashMap, IdMap, List, Queue};
use quiescence::intrusive::{HashTable, Node, TableAllocator, TableOptions};
use quiescence::raw::Head;
use quiescence::sync::{BigRef, Latch, PerCpu, SeqLock};
use quiescence::{
    ArcCell, RcuRef,
    cell::{ArcCellAny, ExactCell, Snapshot},
    epoch,
    tag::Global,
};

use super::actions::{Helper, act};

pub(super) fn domain_call() {
    quiescence::call(act).unwrap();
    Domain::global().barrier();
}

pub(super) fn domain_retire() {
    quiescence::retire(Box::new(Acts)).unwrap();
    Domain::global().barrier();
}

pub(super) fn epoch_guard_defer() {
    epoch::pin().defer(act);
    epoch::pin().flush();
    Domain::global().barrier();
}

pub(super) fn epoch_unprotected_defer() {
    // SAFETY: nothing is read under it.
    unsafe { epoch::unprotected() }.defer(act);
}

pub(super) fn callback_queue_attend() {
    push_head(&QUEUE);
    QUEUE.attend(Some(Duration::ZERO)).unwrap();
}

pub(super) fn callback_queue_attend_and() {
    push_head(&QUEUE);
    QUEUE.attend_and(Some(Duration::ZERO), act).unwrap();
}

pub(super) fn rcu_store() {
    static CELL: LazyLock<Rcu<Weighs>> = LazyLock::new(|| Rcu::new(Weighs));
    CELL.store(Weighs);
}

pub(super) fn domain_synchronize_async() {
    drop(pending(true));
}

pub(super) fn domain_synchronize() {
    let future = pending(false);
    let_go();
    Domain::global().synchronize();
    drop(future);
}

pub(super) fn the_drop_of_a_future() {
    drop(pending(true));
}

pub(super) fn rcu_update() {
    static CELL: LazyLock<Rcu<u64>> = LazyLock::new(|| Rcu::new(1));
    CELL.update(acted);
}

pub(super) fn arc_cell_rcu() {
    static CELL: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(1));
    CELL.rcu(|value| acted(value));
}

pub(super) fn exact_cell_rcu() {
    static CELL: LazyLock<ExactCell<Arc<u64>>> = LazyLock::new(|| ExactCell::new(Arc::new(1)));
    CELL.rcu(|value| Arc::new(acted(value)));
}

pub(super) fn snapshot_update() {
    static CELL: LazyLock<Snapshot<u64>> = LazyLock::new(|| Snapshot::new(1));
    CELL.update(|value| acted(&value));
}

pub(super) fn seq_lock_update() {
    static CELL: LazyLock<SeqLock<u64>> = LazyLock::new(|| SeqLock::new(1));
    CELL.update(|value| acted(&value));
}

pub(super) fn latch_update() {
    static CELL: LazyLock<Latch<u64>> = LazyLock::new(|| Latch::new(1));
    CELL.update(|value| acted(&value));
}

pub(super) fn epoch_atomic_fetch_update() {
    static CELL: LazyLock<epoch::Atomic<u64>> = LazyLock::new(epoch::Atomic::null);
    let none = |_| {
        act();
        None
    };
    let _ = CELL.fetch_update(SeqCst, SeqCst, &epoch::pin(), none);
}

pub(super) fn id_map_update() {
    let id = IDS.insert(1);
    IDS.update(id, acted);
    IDS.remove(id);
}

pub(super) fn hash_map_update() {
    MAP.insert(1, 1);
    MAP.update(&1, acted);
}

pub(super) fn rcu_with() {
    Rcu::new(1).with(acted);
}

pub(super) fn rcu_ref_map() {
    static CELL: LazyLock<Rcu<u64>> = LazyLock::new(|| Rcu::new(1));
    drop(RcuRef::map(CELL.read(), |value| {
        act();
        value
    }));
}

pub(super) fn arc_cell_map_cache_load() {
    let cell = ArcCell::from_pointee(1);
    let mut part = Cache::new(&cell).map(|value| {
        act();
        value
    });
    part.load();
}

pub(super) fn qsbr_while_offline() {
    Domain::global().qsbr().while_offline(act);
}

pub(super) fn epoch_guard_repin_after() {
    epoch::pin().repin_after(act);
}

pub(super) fn per_cpu_new() {
    drop(PerCpu::new(|_| act()));
}

pub(super) fn id_map_insert_with() {
    IDS.insert_with(|_| acted(&1));
}

pub(super) fn hash_map_ref_get_or_insert_with() {
    MAP.remove(&2);
    MAP.read().get_or_insert_with(2, || acted(&1));
}

pub(super) fn list_retain() {
    LIST.push_back(1);
    LIST.retain(|_| {
        act();
        false
    });
}

pub(super) fn id_map_retain() {
    IDS.insert(1);
    IDS.retain(|_, _| {
        act();
        false
    });
}

pub(super) fn hash_map_retain() {
    MAP.insert(1, 1);
    MAP.retain(|_, _| {
        act();
        false
    });
}

pub(super) fn big_ref_drop() {
    drop(BigRef::with_release((), |()| act()));
}

pub(super) fn hash_table_lookup() {
    let _section = quiescence::read();
    // SAFETY: in a section of its domain, and its one node is never freed.
    unsafe {
        TABLE.lookup(7, |_| {
            act();
            true
        })
    };
}

pub(super) fn hash_table_new_in() {
    drop(HashTable::new_in(Domain::global(), OPTIONS, Arc::new(Acts)).unwrap());
}

pub(super) fn hash_by_hash_map_get() {
    KEYS.read().get(&Key(1));
}

pub(super) fn eq_by_hash_map_get() {
    KEYS.read().get(&Key(0));
}

pub(super) fn hash_by_hash_map_insert() {
    KEYS.insert(Key(1), 1);
}

pub(super) fn eq_by_hash_map_insert() {
    KEYS.insert(Key(0), 1);
}

pub(super) fn clone_by_hash_map_update() {
    KEYS.update(&Key(2), |value| *value);
}

pub(super) fn arc_cell_any_load_full() {
    POINTER.load_full();
}

pub(super) fn arc_cell_any_swap() {
    POINTER.swap(Pointer::new(Arc::new(2)));
}

pub(super) fn arc_cell_any_load_with_eight_guards() {
    let guards: Vec<_> = (0..8).map(|_| POINTER.load()).collect();
    drop((POINTER.load(), guards));
}

pub(super) fn exact_cell_load_full() {
    EXACT.load_full();
}

pub(super) fn exact_cell_swap() {
    let _guard = EXACT.load();
    EXACT.swap(Pointer::new(Arc::new(2)));
}

pub(super) fn queue_drop() {
    let queue = Queue::new();
    queue.push(RefCell::new(Acts));
    drop(queue);
}

pub(super) fn list_drop() {
    drop([Acts].into_iter().collect::<List<_>>());
}

pub(super) fn id_map_drop() {
    let ids = IdMap::new();
    ids.insert(Acts);
    drop(ids);
}

pub(super) fn hash_map_drop() {
    let map = HashMap::new();
    map.insert(1, Acts);
    drop(map);
}

pub(super) fn rcu_drop() {
    drop(Rcu::new(Acts));
}

pub(super) fn exact_cell_drop() {
    drop(ExactCell::new(Arc::new(Acts)));
}

pub(super) fn big_ref_drop_drop() {
    drop(BigRef::new(Acts));
}

pub(super) fn set_stall_hook() {
    let acts = Acts;
    quiescence::report::set_stall_hook(move |_| {
        let _ = &acts;
    });
    quiescence::report::set_stall_hook(|_| ());
}

pub(super) fn the_stall_reporter() {
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
}

/// Without the feature there is none, and the row is not reached.
pub(super) fn subscriber() {
    #[cfg(feature = "tracing")]
    tracing::subscriber::with_default(Subscriber, || Domain::global().synchronize());
}

/// User code that computes the next value.
fn acted(value: &u64) -> u64 {
    act();
    value + 1
}

static MAP: LazyLock<HashMap<u64, u64>> = LazyLock::new(HashMap::new);
static IDS: LazyLock<IdMap<u64>> = LazyLock::new(IdMap::new);
static LIST: LazyLock<List<u64>> = LazyLock::new(List::new);
static QUEUE: LazyLock<CallbackQueue> =
    LazyLock::new(|| CallbackQueue::new(&Domain::global(), Wakes::Runner));

/// Its drop, its weight, and its memory are user code.
struct Acts;

impl Drop for Acts {
    fn drop(&mut self) {
        act();
    }
}

impl Weigh for Acts {
    const OWNS: bool = false;
}

struct Weighs;

impl Weigh for Weighs {
    fn owned(&self) -> usize {
        act();
        64
    }
}

// SAFETY: the system's own.
unsafe impl TableAllocator for Acts {
    fn allocate(&self, layout: Layout) -> *mut u8 {
        act();
        // SAFETY: all that a table allocates has a size.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn free(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: by the contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

const OPTIONS: TableOptions = TableOptions {
    buckets: 1,
    buckets_min: 1,
    buckets_max: 0,
    memory: None,
    auto_resize: false,
    accounting: false,
};

/// A table with one node.
static TABLE: LazyLock<HashTable<Domain<Global>>> = LazyLock::new(|| {
    let table = HashTable::new(Domain::global(), OPTIONS).unwrap();
    let node = NonNull::from(Box::leak(Box::new(Node::new())));
    let _section = quiescence::read();
    // SAFETY: in a section; a new node, which is never freed.
    unsafe { table.add(7, node) };
    table
});

/// A key of which one part is user code: `Hash` of 1, `Eq` of 0, `Clone` of 2.
#[derive(Debug)]
struct Key(u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.0 == 1 {
            act();
        }
        state.write_u64(self.0);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        if self.0 == 0 {
            act();
        }
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Clone for Key {
    fn clone(&self) -> Self {
        if self.0 == 2 {
            act();
        }
        Self(self.0)
    }
}

static KEYS: LazyLock<HashMap<Key, u64>> =
    LazyLock::new(|| (0..8).map(|key| (Key(key), key)).collect());

impl Weigh for Key {
    const OWNS: bool = false;
}

/// A pointer whose clone is user code.
type Pointer = user_types::Pointer<CloneActs>;

#[derive(Debug)]
struct CloneActs;

impl OnClone for CloneActs {
    fn on_clone() {
        act();
    }
}

static POINTER: LazyLock<ArcCellAny<Pointer>> =
    LazyLock::new(|| ArcCellAny::new(Pointer::new(Arc::new(1))));
static EXACT: LazyLock<ExactCell<Pointer>> =
    LazyLock::new(|| ExactCell::new(Pointer::new(Arc::new(1))));

unsafe extern "C" fn run_head(head: *mut Head) {
    // SAFETY: from a box, in `push_head`.
    drop(unsafe { Box::from_raw(head) });
    act();
}

fn push_head(queue: &CallbackQueue) {
    let head = Box::into_raw(Box::new(Head::new()));
    // SAFETY: a head in a box that no reader knows.
    let _ = unsafe { queue.push(head, run_head) }.unwrap();
}

/// Where another thread is in a section, so that what is waited for does not end at once.
static HELPER: Mutex<Option<Helper>> = Mutex::new(None);

fn hold() {
    *HELPER.lock().unwrap() = Some(Helper::new());
}

/// No other thread is in a section from now on.
pub(super) fn let_go() {
    let helper = HELPER.lock().unwrap().take();
    helper.into_iter().for_each(Helper::let_go);
}

const VTABLE: RawWakerVTable = RawWakerVTable::new(
    |data| {
        act();
        RawWaker::new(data, &VTABLE)
    },
    |_| act(),
    |_| act(),
    |_| act(),
);

/// A future that waits for a grace period, and has been polled.
fn pending(lets_go: bool) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    hold();
    // SAFETY: the data is not used, and the functions are safe to call anywhere.
    let waker = unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VTABLE)) };
    let mut future = Box::pin(Domain::global().synchronize_async());
    let _ = future.as_mut().poll(&mut Context::from_waker(&waker));
    if lets_go {
        let_go();
    }
    future
}

/// A subscriber of `tracing` that hears everything.
#[cfg(feature = "tracing")]
struct Subscriber;

#[cfg(feature = "tracing")]
impl tracing::Subscriber for Subscriber {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        act();
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
