//! Where a test can delay the threads of the library.

use std::sync::OnceLock;

/// A place in the code where a delay makes a race likelier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// A reader has loaded `gp.ctr` and not yet stored its word.
    EnterBeforeStore,
    /// A reader has stored its word; its section begins.
    Entered,
    /// A reader is about to end its section.
    LeaveBeforeStore,
    /// A reader has ended its section and not yet looked whether somebody waits.
    Left,
    /// An updater has unlinked an object and not yet asked for a grace period.
    Unlinked,
    /// The driver has fenced: it has not yet announced the number, or, before it sleeps, not yet
    /// checked its holdouts once more.
    Fenced,
    /// The driver has announced the number and not yet scanned.
    Announced,
    /// The driver has seen holdouts and not yet marked them.
    BeforeMark,
    /// The driver has marked the holdouts and not yet looked again.
    Marked,
    /// A batch of callbacks has been closed and not yet got its cookie.
    BatchClosed,
    /// Callbacks are about to run.
    BeforeCallbacks,
    /// A callback has been written, and the worker has perhaps to be told.
    Added,
    /// Room has been charged, and is perhaps to be given back.
    Charged,
    /// A thread that ends has left its queue to others, and not yet looked what is in it.
    Orphaned,
    /// The worker has said that it leaves a domain alone, and not yet looked a last time.
    Leaving,
    /// A reader of a sleepable domain knows its index and has not yet counted itself in.
    IndexChosen,
    /// The unlock counts of an index have been summed, the lock counts not yet.
    Summed,
    /// The words of the CPUs have been emptied, and what was in them is not yet in the one word.
    Gathered,
    /// A thread is about to unregister.
    BeforeUnregister,
    /// A thread has unregistered, so that its slot is free, and not yet looked whether somebody
    /// waits.
    Unregistered,
    /// The thread that ends a table holds its worker off, and has not yet looked whether there are
    /// nodes.
    TableHeld,
    /// A table's worker finds that it is held off; or who holds it off, that it is at the table's
    /// list.
    TableAwaited,
    /// A table's worker looks at the table's list, or is about to free buckets.
    TableUsed,
    /// A bucket of a table is claimed, and not yet in the list.
    BucketClaimed,
    /// A reader of a hash map has matched a tag and not yet compared the key.
    SlotFound,
    /// A tag is stored, and the entry is not there yet.
    SlotTagged,
    /// An updater has locked a bucket.
    BucketLocked,
    /// A reader has found nothing in the slots of a bucket and not yet looked in its node.
    NodeSought,
    /// The entries of a bucket have been copied, and the bucket does not say so yet.
    BucketMoving,
    /// A walk over a hash map has loaded the word of a bucket with a node, and not yet its slots.
    HeadLoaded,
    /// An updater of an exact cell has marked a borrow as paid.
    BorrowPaid,
    /// A reader has loaded what its hazard pointer is to protect, and not yet stored it there.
    Protecting,
}

static HOOK: OnceLock<fn(Point)> = OnceLock::new();

/// Has `hook` called at every point, from now on.
pub fn install(hook: fn(Point)) {
    let _ = HOOK.set(hook);
}

/// A thread is here.
#[inline]
pub fn point(point: Point) {
    if let Some(hook) = HOOK.get() {
        hook(point);
    }
}
