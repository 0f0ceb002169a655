//! The worker was in one domain for as long as that had anything to run: 64 goes for each of its
//! queues, of up to 3 ms each. All other domains waited.

use crate::common::*;

/// What ran, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ran {
    /// A closure of the domain that has much to run, by its thread and its number.
    Much { thread: usize, number: usize },
    /// The one of the other domain.
    Other,
}

/// The worker is in a closure that takes long while the main thread ends: Miri, which insists on
/// it, has the main thread wait for it.
#[test]
fn the_main_thread_does_not_end_before_the_worker() {
    let (sender, begun) = mpsc::channel();
    let takes_long = move || {
        sender.send(()).unwrap();
        (0..300_000).for_each(|step| _ = std::hint::black_box(step));
    };
    Domain::global().call_hurry(takes_long).unwrap(); // that domain does not end before
    begun.recv().unwrap();
}

/// A domain in which a turn is one go, and a go is one closure.
fn in_small_steps() -> Domain {
    let domain = Domain::new();
    tune(&domain, |tuning| {
        tuning.run_time = Duration::ZERO;
        tuning.run_min = 1;
    });
    domain
}

/// Two threads have much to run in one domain; while the worker is in the first closure of that,
/// somebody is in a hurry in another domain. That one is next, and then the second thread's.
#[test]
fn a_domain_with_much_to_run_holds_no_other_up() {
    other_is_next(200, false);
}

/// Also where these threads have ended, with more than moves to a queue that is shared.
#[test]
fn what_threads_have_left_holds_no_other_up() {
    other_is_next(2_000, true);
}

/// Each thread has so many closures.
fn other_is_next(each: usize, ends: bool) {
    let (much, other) = (in_small_steps(), Domain::new());
    let (sender, ran) = mpsc::channel();
    // The worker is kept from the domain until all of it is there.
    let busy = occupy_the_worker();
    let (closure, runs, end) = gate();
    let mut closure = Some(closure);
    let threads = [0, 1].map(|thread| {
        let (much, sender, closure) = (much.clone(), sender.clone(), closure.take());
        let (has_queued, queued) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            if let Some(closure) = closure {
                much.call(closure).unwrap();
            }
            for number in 0..each {
                let sender = sender.clone();
                much.call(move || sender.send(Ran::Much { thread, number }).unwrap()).unwrap();
            }
            drop((much, sender));
            has_queued.send(()).unwrap();
            if !ends {
                let _ = stopped.recv(); // its queue stays its own
            }
        });
        queued.recv().unwrap();
        if ends {
            thread.join().unwrap();
            return (None, stop);
        }
        (Some(thread), stop)
    });
    much.call_hurry(|| ()).unwrap();
    drop(busy);
    runs.recv().unwrap();
    other.call_hurry(move || sender.send(Ran::Other).unwrap()).unwrap();
    drop(end);
    let order: Vec<_> = ran.iter().collect();
    for (thread, stop) in threads {
        drop(stop);
        thread.into_iter().for_each(|thread| thread.join().unwrap());
    }
    assert_eq!(order.len(), 2 * each + 1);
    assert_eq!(order[0], Ran::Other);
    let second = Ran::Much { thread: 1, number: 0 };
    let place = order.iter().position(|one| *one == second).expect("it has run");
    assert!(place <= 3, "one of each queue comes before: {place}");
}
