use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use crate::domain::tag::DomainTag;
use crate::reclaim::local;
use crate::{Domain, Rcu};

/// Its drop waits twice for another thread.
struct Slow(Arc<Barrier>);

impl Drop for Slow {
    fn drop(&mut self) {
        self.0.wait();
        self.0.wait();
    }
}

/// The end of a section that had gone over the limit left its objects to the worker where that was
/// in a drop of one of them, and the next `store` in a section panicked: the thread was over the
/// limit still.
#[test]
fn the_end_of_a_section_waits_for_a_drop_of_its_objects_on_another_thread() {
    let domain = Domain::new();
    let mut tuning = domain.tuning();
    tuning.objects_max = 1;
    domain.tune(tuning);
    let value = Rcu::new_in(0, domain.clone());
    let in_drop = Arc::new(Barrier::new(2));
    let (sender, queue) = mpsc::channel();
    let is_settled = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            domain.retire(Box::new(Slow(Arc::clone(&in_drop)))).unwrap();
            let core = domain.tag().core();
            sender.send(local::existing_objects(core).expect("it has retired")).unwrap();
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
        while queue.waiters() == 0 && !is_settled.load(SeqCst) {
            thread::yield_now();
        }
        let was_settled = is_settled.load(SeqCst);
        in_drop.wait();
        assert!(!was_settled, "over the limit with the drop in progress");
    });
    domain.barrier();
    assert_eq!(domain.statistics().callbacks_waiting(), 0);
}
