//! What comes from a queue, so that its misses are known early: wake-ups, with two in a row each,
//! and packets, whose header is read just before it is used.
//!
//! An entry of the queue says which task is woken, and the task which run queue it goes to. The
//! task is a miss, and so is what the task points to. Which tasks come next stands in the queue, so
//! that the first hop can be fetched some wake-ups early; where it has arrived, the second one can,
//! too. Each wake-up changes both places by an atomic instruction, as the kernel's does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use super::{Geometry, Load, prefetch};
use crate::cases::form::Form;
use crate::slices::Row;

/// How many wake-ups early each hop is fetched: the second one when the first has come.
const FIRST_AHEAD: usize = 16;
const SECOND_AHEAD: usize = 8;

/// Memory for tasks and run queues: more than the last cache, within limits.
const BYTES_MAX: u64 = 128 << 20;

/// How many things of this size fill that memory.
fn count(geometry: &Geometry, each: usize) -> usize {
    ((2 * geometry.last_bytes).min(BYTES_MAX) / each as u64).max(64) as usize
}

/// A task, two lines long, as far as its waker sees it.
#[repr(align(128))]
struct Task {
    wake_ups: AtomicU64,
    run_queue: usize,
}

/// Where a woken task is counted.
type RunQueue = CachePadded<AtomicU64>;

/// The queue, and all it leads to.
pub(crate) struct WakeUps {
    /// The tasks in the order in which they are woken.
    queue: Vec<u32>,
    tasks: Vec<Task>,
    run_queues: Vec<RunQueue>,
    /// The next entry of the queue.
    next: AtomicUsize,
}

impl WakeUps {
    pub(crate) fn load(geometry: &Geometry) -> Load {
        let own = Arc::new(Self::new(count(geometry, size_of::<Task>() + size_of::<RunQueue>())));
        Box::new(move |form| own.row(form))
    }

    fn new(count: usize) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        let mut queue: Vec<u32> = (0..count as u32).collect();
        queue.shuffle(&mut generator);
        let mut places: Vec<usize> = (0..count).collect();
        places.shuffle(&mut generator);
        let task = |run_queue| Task { wake_ups: AtomicU64::new(0), run_queue };
        let tasks = places.into_iter().map(task).collect();
        let run_queues = (0..count).map(|_| RunQueue::default()).collect();
        Self { queue, tasks, run_queues, next: AtomicUsize::new(0) }
    }

    /// Wakes the tasks of this part of the queue.
    #[inline(always)]
    fn wake(&self, part: std::ops::Range<usize>, first: bool, second: bool) {
        let task = |entry: usize| Some(&self.tasks[*self.queue.get(entry)? as usize]);
        for entry in part {
            if first && let Some(early) = task(entry + FIRST_AHEAD) {
                prefetch::<false, _>(early);
            }
            if second && let Some(early) = task(entry + SECOND_AHEAD) {
                prefetch::<false, _>(&self.run_queues[early.run_queue]);
            }
            let task = &self.tasks[self.queue[entry] as usize];
            // Relaxed: one thread wakes; the cost is that of the lines, not of an order.
            task.wake_ups.fetch_add(1, Ordering::Relaxed);
            self.run_queues[task.run_queue].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn row(self: &Arc<Self>, form: Form) -> Row<'static> {
        let own = Arc::clone(self);
        let (first, second) = (form != Form::Before, form == Form::After);
        Row::new(1, move |part| {
            // Relaxed: one thread wakes.
            let (own, mut next) = (&*own, own.next.load(Ordering::Relaxed));
            let took = part.batches(|count| {
                let mut left = count as usize;
                while left > 0 {
                    let some = next..(next + left).min(own.queue.len());
                    left -= some.len();
                    next = some.end % own.queue.len();
                    match (first, second) {
                        (false, _) => own.wake(some, false, false),
                        (true, false) => own.wake(some, true, false),
                        (true, true) => own.wake(some, true, true),
                    }
                }
            });
            own.next.store(next, Ordering::Relaxed);
            took
        })
    }
}

/// The kind in a packet's header, as the network card wrote it: in no CPU's cache.
type Header = CachePadded<usize>;

/// Packets in the order of their ring, handed to the protocol that the header names.
pub(crate) struct Packets {
    ring: Vec<u32>,
    headers: Vec<Header>,
    protocols: [AtomicU64; 4],
    next: AtomicUsize,
}

impl Packets {
    pub(crate) fn load(geometry: &Geometry) -> Load {
        let own = Arc::new(Self::new(count(geometry, size_of::<Header>())));
        Box::new(move |form| own.row(form))
    }

    fn new(count: usize) -> Self {
        let mut ring: Vec<u32> = (0..count as u32).collect();
        ring.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
        let headers = (0..count).map(|packet| Header::new(packet % 4)).collect();
        Self { ring, headers, protocols: Default::default(), next: AtomicUsize::new(0) }
    }

    fn row(self: &Arc<Self>, form: Form) -> Row<'static> {
        let own = Arc::clone(self);
        Row::new(1, move |part| {
            let own = &*own;
            let header = |at: usize| &own.headers[own.ring[at % own.ring.len()] as usize];
            // Relaxed, all of it: one thread receives; see `wake`.
            let mut next = own.next.load(Ordering::Relaxed);
            // The place of the next one is found in every form, so that they differ in the
            // prefetch alone.
            let mut coming = header(next);
            let took = part.times(|| {
                next += 1;
                let this = std::mem::replace(&mut coming, header(next));
                if form != Form::Before {
                    prefetch::<false, _>(coming);
                }
                own.protocols[**this].fetch_add(1, Ordering::Relaxed);
            });
            own.next.store(next, Ordering::Relaxed);
            took
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices;

    #[test]
    fn every_form_wakes_each_task_of_the_queue_once() {
        for (first, second) in [(false, false), (true, false), (true, true)] {
            let wake_ups = WakeUps::new(100);
            wake_ups.wake(0..100, first, second);
            let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            assert!(wake_ups.tasks.iter().all(|task| of(&task.wake_ups) == 1));
            assert!(wake_ups.run_queues.iter().all(|queue| of(queue) == 1));
        }
    }

    /// A packet that was left out or counted twice would be one of another protocol's instead: the
    /// ring is shuffled.
    #[test]
    fn every_form_counts_each_packet_of_the_ring_once() {
        for form in Form::ALL {
            let packets = Arc::new(Packets::new(64));
            // With an eighth besides to warm up: nine times round.
            slices::once(&packets.row(form), 512);
            let counted = packets.protocols.each_ref().map(|all| all.load(Ordering::Relaxed));
            assert_eq!(counted, [9 * 64 / 4; 4], "{}", form.name());
        }
    }

    #[test]
    fn the_queue_begins_again_at_its_end() {
        let wake_ups = Arc::new(WakeUps::new(100));
        // Of these, an eighth besides to warm up.
        slices::once(&wake_ups.row(Form::Before), 240);
        assert_eq!(wake_ups.next.load(Ordering::Relaxed), 270 % 100);
        let all = wake_ups.tasks.iter().map(|task| task.wake_ups.load(Ordering::Relaxed));
        assert_eq!(all.sum::<u64>(), 270);
    }
}
