//! The queues of a domain, taken together: the list of them, what they want of the worker, what they count.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::run::running;
use super::{Credit, Queue, Wants};
use crate::chaos::{self, Mutant, Point};
use crate::core::Core;
use crate::os::fence;
use crate::os::sync::{self, AtomicBool, AtomicU64, Mutex, const_unless_loom};
use crate::statistics::Callbacks;

/// The queues of a domain.
#[derive(Debug)]
pub(crate) struct Queues {
    pub(super) list: Mutex<Vec<Arc<Queue>>>,
    /// Callbacks that went through queues which are no longer in the list. Under its lock.
    gone: AtomicU64,
    /// For threads that have none of their own any more; whoever holds the lock is the writer.
    pub(super) shared: Mutex<Option<Arc<Queue>>>,
    /// How many queues are in the list.
    length: AtomicU64,
    /// Whether the worker knows that there is something to do here.
    pub(crate) announced: AtomicBool,
    /// Whether the worker is to close what is open now.
    pub(crate) hurried: AtomicBool,
    pub(crate) panicked: AtomicU64,
}

impl Queues {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                list: Mutex::new(Vec::new()),
                gone: AtomicU64::new(0),
                shared: Mutex::new(None),
                length: AtomicU64::new(0),
                announced: AtomicBool::new(false),
                hurried: AtomicBool::new(false),
                panicked: AtomicU64::new(0),
            }
        }
    }

    /// A new queue in the list.
    pub(crate) fn add(&self, core: &Core, owner: usize) -> Arc<Queue> {
        let queue = Arc::new(Queue::new(core, owner));
        let mut list = sync::lock(&self.list);
        list.push(Arc::clone(&queue));
        self.length.store(list.len() as u64, Relaxed);
        queue
    }

    /// Calls `f` with the queue for those who have none of their own; `f` is its writer meanwhile, and runs no
    /// foreign code.
    pub(crate) fn with_shared<R>(&self, core: &Core, f: impl FnOnce(&Queue) -> R) -> R {
        let mut shared = sync::lock(&self.shared);
        f(shared.get_or_insert_with(|| self.add(core, 0)))
    }

    /// All queues, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Queue>> {
        sync::lock(&self.list).clone()
    }

    /// How many queues there are, about.
    pub(crate) fn len(&self) -> u64 {
        self.length.load(Relaxed)
    }

    /// At the end of a domain, which has no reader left: runs everything. These are callbacks like others: the
    /// thread, which may be the worker, must not wait for callbacks meanwhile.
    pub(crate) fn run_all(&self, core: &Core) {
        running(core, &Credit::new(), || {
            while self.all().iter().map(|queue| queue.run_all()).sum::<u64>() != 0 {}
        });
    }

    /// Forgets queues that are empty and whose threads are gone.
    pub(crate) fn forget_orphans(&self) {
        let mut list = sync::lock(&self.list);
        list.retain(|queue| {
            let forget = queue.is_orphan() && (queue.is_empty() || chaos::mutant(Mutant::LostTail));
            if forget {
                // Relaxed: under the list's lock.
                self.gone.fetch_add(queue.own.0.stream.written(), Relaxed);
            }
            !forget
        });
        self.length.store(list.len() as u64, Relaxed);
    }

    /// Callbacks ever added and ever finished, and what waits.
    pub(crate) fn counts(&self) -> Callbacks {
        let list = sync::lock(&self.list);
        // Relaxed: under the list's lock. What has gone has been added and finished.
        let gone = self.gone.load(Relaxed);
        let queues = list.clone();
        drop(list);
        let none = Callbacks { queued: gone, run: gone, bytes_waiting: 0 };
        queues.iter().fold(none, |all, queue| {
            // What has finished first: of what is counted between the two looks, the added ones count.
            let run = queue.finished.load(Acquire);
            let bytes_run = queue.bytes_finished.load(Relaxed);
            let bytes = queue.own.0.bytes.load(Relaxed);
            Callbacks {
                queued: all.queued + queue.own.0.stream.written(),
                run: all.run + run,
                bytes_waiting: all.bytes_waiting + bytes.saturating_sub(bytes_run),
            }
        })
    }

    /// Says that the worker leaves the domain alone from now on, unless there is something to do after all:
    /// then it says what.
    ///
    /// Whoever adds writes the callback, passes a light fence and loads `announced`; here `announced` is
    /// cleared, a heavy fence follows, and then the look. One of the two sees the other's store [DQ-3].
    pub(crate) fn leave(&self) -> Wants {
        self.announced.store(false, Relaxed);
        chaos::point(Point::Leaving);
        if !chaos::mutant(Mutant::NoIdleFence) {
            fence::heavy(self.all().iter().map(|queue| &queue.fence)); // [DQ-3]
        }
        let wants = self.wants();
        if wants != Wants::Nothing {
            self.announced.store(true, Relaxed);
        }
        wants
    }

    /// What the queues want of the worker now.
    pub(crate) fn wants(&self) -> Wants {
        self.all().iter().map(|queue| queue.wants()).max().unwrap_or(Wants::Nothing)
    }
}
