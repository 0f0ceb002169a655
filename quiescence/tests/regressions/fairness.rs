//! What one kind of waiter takes from another is bounded by two grace periods.

use crate::common::*;
/// Synchronizers, in a hurry and not, and barriers with their callbacks, that all come while one
/// grace period waits for a reader: the next one serves them all, whichever thread drives it, and
/// however many they are.
#[test]
fn all_kinds_of_waiters_are_served_by_the_next_grace_period() {
    const EACH: u64 = 4;
    let domain = Domain::new();
    quiet(&domain);
    let run = Arc::new(AtomicUsize::new(0));
    let served_by = thread::scope(|scope| {
        let waiters = beside_a_section(&domain, |leave| {
            let driver = scope.spawn(|| domain.synchronize());
            until_an_updater_sleeps(&domain);
            let mut waiters = vec![];
            for _ in 0..EACH {
                waiters.push(scope.spawn(|| domain.synchronize()));
                waiters.push(scope.spawn(|| domain.synchronize_expedited()));
                waiters.push(scope.spawn(|| {
                    domain.call(counting(&run)).unwrap();
                    domain.barrier();
                }));
            }
            // The driver is one of them.
            until(|| domain.statistics().waiters > 3 * EACH);
            assert_eq!(domain.statistics().grace_periods, 0);
            leave();
            driver.join().unwrap();
            waiters
        });
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        domain.statistics().grace_periods
    });
    assert_eq!(run.load(Relaxed) as u64, EACH);
    assert_eq!(served_by, 2, "the one in progress, and one for all who came meanwhile");
}

/// What a thread is asked to do, and where it says that it has done it.
type Job = (Box<dyn FnOnce() + Send>, mpsc::Sender<()>);

/// Has a thread do something, and waits until it has.
fn ask(thread: &mpsc::Sender<Job>, job: impl FnOnce() + Send + 'static) {
    let (sender, done) = mpsc::channel();
    thread.send((Box::new(job), sender)).unwrap();
    done.recv().unwrap();
}

/// A barrier waited in each queue for all that was there when it came to it. So a queue that was
/// added to meanwhile cost it a grace period of its own: under a flood from many threads as many as
/// there were threads.
///
/// Here each callback has the thread of the next queue add another one before it returns.
#[test]
fn a_barrier_waits_for_nothing_queued_later() {
    const THREADS: usize = 8;
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.lazy = Duration::MAX); // the worker asks for no grace period
    let (mut askers, mut threads) = (vec![], vec![]);
    for _ in 0..THREADS {
        let (asker, jobs) = mpsc::channel::<Job>();
        askers.push(asker);
        threads.push(thread::spawn(move || {
            for (job, done) in jobs {
                job();
                done.send(()).unwrap();
            }
        }));
    }
    let run = Arc::new(AtomicUsize::new(0));
    for (number, thread) in askers.iter().enumerate() {
        let (domain, next) = (domain.clone(), askers.get(number + 1).cloned());
        let (count, late) = (Arc::clone(&run), domain.clone());
        let callback = move || {
            count.fetch_add(1, Relaxed);
            if let Some(next) = next {
                ask(&next, move || late.call(|| ()).unwrap());
            }
        };
        ask(thread, move || domain.call(callback).unwrap());
    }
    domain.barrier();
    let grace_periods = domain.statistics().grace_periods;
    assert_eq!(run.load(Relaxed), THREADS);
    drop(askers);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    domain.barrier();
    assert!(grace_periods <= 2, "{grace_periods} for what one or two serve");
}
