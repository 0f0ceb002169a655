//! Ways that lead to the places where user code runs, and the user code there.

use crate::common::user_types::OnClone;
use crate::common::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::pin::Pin;
use std::task::{RawWaker, RawWakerVTable};

use quiescence::Version;
use quiescence::callback_queue::{CallbackQueue, Wakes};
use quiescence::cell::{ArcCellAny, ExactCell};
use quiescence::collections::{CopyMap, HashMap, IdMap, List};
use quiescence::intrusive::{HashTable, Node, TableAllocator, TableOptions};
use quiescence::sync::NoUninit;
use quiescence::tag::Global;

use super::actions::act;

/// User code that computes the next value.
pub(super) fn acted(value: &u64) -> u64 {
    act();
    value + 1
}

/// User code that returns that.
pub(super) fn after<T>(value: T) -> T {
    act();
    value
}

pub(super) static MAP: LazyLock<HashMap<u64, u64>> = LazyLock::new(HashMap::new);
pub(super) static COPIES: LazyLock<CopyMap<u64, u64>> = LazyLock::new(CopyMap::new);
pub(super) static IDS: LazyLock<IdMap<u64>> = LazyLock::new(IdMap::new);
pub(super) static LIST: LazyLock<List<u64>> = LazyLock::new(List::new);
pub(super) static QUEUE: LazyLock<CallbackQueue> =
    LazyLock::new(|| CallbackQueue::new(&Domain::global(), Wakes::Runner));

/// Its drop, its weight, and its memory are user code.
pub(super) struct Acts;

impl Drop for Acts {
    fn drop(&mut self) {
        act();
    }
}

impl Weigh for Acts {
    const OWNS: bool = false;
}

pub(super) struct Weighs;

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

pub(super) const OPTIONS: TableOptions = TableOptions {
    buckets: 1,
    buckets_min: 1,
    buckets_max: 0,
    memory: None,
    auto_resize: false,
    accounting: false,
};

/// A table with one node.
pub(super) static TABLE: LazyLock<HashTable<Domain<Global>>> = LazyLock::new(|| {
    let table = HashTable::new(Domain::global(), OPTIONS).unwrap();
    let node = NonNull::from(Box::leak(Box::new(Node::new())));
    let _section = quiescence::read();
    // SAFETY: in a section; a new node, which is never freed.
    unsafe { table.add(7, node) };
    table
});

/// A key of which one part is user code: `Hash` of 1, `Eq` of 0, `Clone` of 2.
#[derive(Debug)]
pub(super) struct Key(pub(super) u64);

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

pub(super) static KEYS: LazyLock<HashMap<Key, u64>> =
    LazyLock::new(|| (0..8).map(|key| (Key(key), key)).collect());

/// The same, and copied.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(super) struct CopyKey(pub(super) u64);

// SAFETY: a number.
unsafe impl NoUninit for CopyKey {}

impl Hash for CopyKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Key(self.0).hash(state);
    }
}

impl PartialEq for CopyKey {
    fn eq(&self, other: &Self) -> bool {
        Key(self.0) == Key(other.0)
    }
}

impl Eq for CopyKey {}

pub(super) static COPY_KEYS: LazyLock<CopyMap<CopyKey, u64>> =
    LazyLock::new(|| (0..8).map(|key| (CopyKey(key), key)).collect());

impl Weigh for Key {
    const OWNS: bool = false;
}

/// A pointer whose clone is user code.
pub(super) type Pointer = user_types::Pointer<CloneActs>;

#[derive(Debug)]
pub(super) struct CloneActs;

impl OnClone for CloneActs {
    fn on_clone() {
        act();
    }
}

pub(super) static POINTER: LazyLock<ArcCellAny<Pointer>> =
    LazyLock::new(|| ArcCellAny::new(Pointer::new(Arc::new(1))));
pub(super) static EXACT: LazyLock<ExactCell<Pointer>> =
    LazyLock::new(|| ExactCell::new(Pointer::new(Arc::new(1))));

/// Heads whose function has run.
pub(super) static HEADS: AtomicU64 = AtomicU64::new(0);

pub(super) fn push_head(queue: &CallbackQueue) {
    let run = || {
        HEADS.fetch_add(1, SeqCst);
        act();
    };
    let _ = crate::heads::push(queue, run);
}

/// A thread in a section of the global domain, so that what is waited for does not end at once; and
/// what it waits for.
static HELPER: Mutex<Option<(Sender<()>, thread::JoinHandle<()>)>> = Mutex::new(None);

pub(super) fn hold() {
    let (mut stays, entered, leave) = gate();
    let thread = thread::spawn(move || {
        let _guard = quiescence::read();
        stays();
    });
    entered.recv().unwrap();
    *HELPER.lock().unwrap() = Some((leave, thread));
}

/// No other thread is in a section from now on.
pub(super) fn let_go() {
    if let Some((leave, thread)) = { HELPER.lock().unwrap().take() } {
        drop(leave);
        thread.join().unwrap();
    }
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

pub(super) fn waker() -> Waker {
    // SAFETY: the data is not used, and the functions are safe to call anywhere.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VTABLE)) }
}

/// A version of a cell that a task waits with, and has polled.
pub(super) fn waited_for(cell: &Rcu<u64>) -> Version {
    let mut version = cell.version();
    let _ = cell.poll_changed(&mut version, &mut Context::from_waker(&waker()));
    version
}

/// A future that waits for a grace period, and has been polled.
pub(super) fn pending(lets_go: bool) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    hold();
    let mut future = Box::pin(Domain::global().synchronize_async());
    let _ = future.as_mut().poll(&mut Context::from_waker(&waker()));
    if lets_go {
        let_go();
    }
    future
}
