use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use grace::batch::{BATCH_ALONE, run_share};

use crate::common::threads::{OnDrop, until};
use crate::reclaim::domain_state::Named;
use crate::tuning::Tuning;
use crate::{Domain, Rcu};

/// The end of a section that had gone over the limit left its objects to the worker where that was
/// in a drop of one of them, and the next `store` in a section panicked: the thread was over the
/// limit still.
#[test]
fn the_end_of_a_section_waits_for_a_drop_of_its_objects_on_another_thread() {
    let domain = Domain::new();
    domain.tune(Tuning { objects_max: 1, ..domain.tuning() });
    let value = Rcu::new_in(0, domain.clone());
    let in_drop = Arc::new(Barrier::new(2));
    let (sender, queue) = mpsc::channel();
    let is_settled = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let in_its_drop = Arc::clone(&in_drop);
            let waits_twice = move || (0..2).for_each(|_| _ = in_its_drop.wait());
            domain.retire(Box::new(OnDrop(waits_twice))).unwrap();
            let core = domain.tag().core();
            sender.send(core.queues.all().pop().expect("it has retired")).unwrap();
            in_drop.wait(); // the worker is in it
            let guard = domain.read();
            value.store(1); // over the limit
            drop(guard);
            is_settled.store(true, SeqCst);
            let guard = domain.read();
            value.store(2);
            drop(guard);
        });
        let queue = queue.recv().unwrap();
        until(|| queue.waiters() != 0 || is_settled.load(SeqCst));
        let was_settled = is_settled.load(SeqCst);
        in_drop.wait();
        assert!(!was_settled, "over the limit with the drop in progress");
    });
    domain.barrier();
    assert_eq!(domain.statistics().callbacks_waiting(), 0);
}

/// Counts its drop.
fn counting(drops: &Arc<AtomicU64>) -> Box<OnDrop<impl FnMut() + use<>>> {
    let drops = Arc::clone(drops);
    Box::new(OnDrop(move || _ = drops.fetch_add(1, SeqCst)))
}

/// A QSBR thread waited until 16,384 objects had come together, and freed 2,048 at a time: what it
/// freed was no longer in the CPU's cache, and its updates took more than twice as long as those of
/// an ordinary reader.
#[test]
#[cfg_attr(miri, ignore = "10,000 objects")]
fn a_qsbr_thread_frees_a_few_more_than_it_retires_at_a_time() {
    for retired_at_once in [1, 8, 64, 100] {
        let domain = Domain::new();
        // So that no worker comes, which would free some of them.
        domain.tag().core().queues.announced.store(true, Relaxed);
        let mut reader = domain.qsbr();
        reader.synchronize(); // which finds that it is alone
        let freed = Arc::new(AtomicU64::new(0));
        let (mut retired, mut most_waiting, mut most_freed) = (0, 0, 0);
        while retired < 10_000 {
            for _ in 0..retired_at_once {
                domain.retire(counting(&freed)).unwrap();
            }
            retired += retired_at_once;
            let before = freed.load(SeqCst);
            most_waiting = most_waiting.max(retired - before);
            reader.quiescent_state();
            most_freed = most_freed.max(freed.load(SeqCst) - before);
        }
        let portion = run_share(retired_at_once.max(2 * grace::batch::RUN_CHUNK));
        assert!(most_waiting <= 2 * BATCH_ALONE, "{most_waiting} of {retired_at_once} at once");
        assert!((1..=portion).contains(&most_freed), "{most_freed} of {retired_at_once} at once");
        drop(reader);
        domain.barrier();
        assert_eq!(freed.load(SeqCst), retired);
    }
}

/// A QSBR thread freed a batch at most at a quiescent state: one that retired more between two of
/// them fell behind until the domain was near its limit.
#[test]
#[cfg_attr(miri, ignore = "100,000 objects")]
fn a_qsbr_thread_that_retired_more_than_a_batch_at_a_time_fell_behind() {
    const AT_ONCE: u64 = 10_000;
    let domain = Domain::new();
    domain.tune(Tuning { objects_max: 1 << 20, bytes_max: 1 << 30, ..domain.tuning() });
    // So that no worker comes, which would free some of them.
    domain.tag().core().queues.announced.store(true, Relaxed);
    let mut reader = domain.qsbr();
    reader.synchronize(); // which finds that it is alone
    let freed = Arc::new(AtomicU64::new(0));
    let waiting = (1..=10).map(|round| {
        (0..AT_ONCE).for_each(|_| domain.retire(counting(&freed)).unwrap());
        reader.quiescent_state();
        round * AT_ONCE - freed.load(SeqCst)
    });
    let most = waiting.max().unwrap();
    assert!(most <= 2 * AT_ONCE, "{most} wait");
    drop(reader);
    domain.barrier();
}
