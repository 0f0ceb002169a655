//! A thread that is stopped in the allocator, or waits there for another one's lock.

use crate::common::*;
use crate::sequence_locks;

memory::watched_allocator!(
    |layout| {
        stop_if_asked(layout.size());
        sequence_locks::count_if_asked(layout.size());
    },
    |_, _| ()
);

thread_local! {
    /// The thread stops, once, when it asks for so many bytes; at 0 it does not.
    static STOPS_AT: Cell<usize> = const { Cell::new(0) };
}

const ANY_NUMBER: usize = usize::MAX;

/// What a thread that stops says, and waits for.
type Stop = (mpsc::SyncSender<()>, Mutex<mpsc::Receiver<()>>);

static STOP: OnceLock<Stop> = OnceLock::new();

fn stop_if_asked(bytes: usize) {
    if [bytes, ANY_NUMBER].contains(&STOPS_AT.get())
        && let Some((sender, may_go_on)) = STOP.get()
    {
        STOPS_AT.set(0);
        sender.send(()).unwrap();
        let _ = may_go_on.lock().unwrap().recv();
    }
}

/// Calls `f` while another thread is stopped in `stops`, or has come to its end without.
fn while_stopped<R>(stops: impl FnOnce() + Send, f: impl FnOnce() -> R) -> R {
    let (sender, stopped) = mpsc::sync_channel(16);
    let (go_on, may_go_on) = mpsc::channel();
    assert!(STOP.set((sender.clone(), may_go_on.into())).is_ok(), "one test in a process");
    thread::scope(|scope| {
        scope.spawn(|| {
            stops();
            if STOPS_AT.take() != 0 {
                sender.send(()).unwrap();
            }
        });
        stopped.recv().unwrap();
        let result = f();
        drop(go_on);
        result
    })
}

/// Where retired objects are checked (in builds with debug assertions) it held a lock of the table
/// of addresses, which all who retired, freed or loaded such an object waited for. The other
/// thread's objects have addresses all over the table.
#[test]
#[cfg_attr(miri, ignore = "thousands of objects")]
fn who_is_stopped_there_while_it_retires_holds_no_other_up() {
    // The thread has retired before, so of the library it is only the table that may ask for
    // memory, of which it had many parts: some are new to it with so many objects.
    let stops = || {
        let domain = Domain::new();
        domain.retire(Box::new(0_u64)).unwrap();
        domain.barrier();
        let objects: Vec<_> = (0..64_u64).map(Box::new).collect();
        for object in objects {
            STOPS_AT.set(ANY_NUMBER);
            domain.retire(object).unwrap();
        }
    };
    while_stopped(stops, || {
        let domain = Domain::new();
        for _ in 0..4 {
            let objects: Vec<_> = (0..4_096_u64).map(Box::new).collect();
            objects.into_iter().for_each(|object| domain.retire(object).unwrap());
            domain.barrier();
        }
    });
}

/// A child's thread dropped a map while another one, which the child does not have, was moving the
/// entries of a bucket to a larger table: those were dropped twice that were in both.
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "forks")]
fn a_child_dropped_entries_twice_that_were_being_moved() {
    use quiescence::collections::HashMap;
    use std::mem::ManuallyDrop;

    hasher! {
        /// All in one bucket.
        Same: |_number| 1
    }

    const ENTRIES: usize = 10;
    /// Entries that a bucket has slots for.
    const SLOTS: usize = 6;
    /// The memory of the node that the second bucket needs, too, for the entry after these.
    const NODE: usize = 12 * size_of::<usize>() + 8;
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    in_its_own_process!();
    let builder = HashMap::builder().hasher(BuildHasherDefault::<Same>::default());
    let map = ManuallyDrop::new(builder.build());
    let value = |_| OnDrop(|| _ = DROPS.fetch_add(1, SeqCst));
    (0..ENTRIES).for_each(|number| assert!(map.insert(number, value(number))));
    let grows = || {
        STOPS_AT.set(NODE);
        map.reserve(1_000); // if it does not stop, the child fails
    };
    while_stopped(grows, || {
        in_child(|| {
            // SAFETY: once in this process, which has no other thread.
            drop(ManuallyDrop::into_inner(unsafe { ptr::read(&raw const map) }));
            // Those that had been copied. What the other thread has locked leaks.
            assert_eq!(DROPS.load(SeqCst), SLOTS);
        });
    });
    assert_eq!(map.len(), ENTRIES);
    drop(ManuallyDrop::into_inner(map));
    assert_eq!(DROPS.load(SeqCst), ENTRIES);
}

/// The thread that makes reports asked for memory while it held the lock under which readers are
/// registered, for the list of those that it reports. A reader that is compiled against liburcu may
/// register in a handler that has interrupted the allocator.
#[test]
#[cfg_attr(miri, ignore = "stacks of threads")]
fn no_reader_could_register_while_a_report_asked_for_memory() {
    in_its_own_process!();
    let domain = Domain::new();
    let mut tuning = domain.tuning();
    tuning.stall_after = Some(Duration::from_millis(1));
    domain.tune(tuning);
    // On the thread that makes the next report, too, and for it asks first for that memory.
    quiescence::report::set_stall_hook(|_| STOPS_AT.set(ANY_NUMBER));
    let has_registered = beside_a_section(&domain, |leave| {
        while_stopped(
            || domain.synchronize(),
            || {
                let (sender, registered) = mpsc::channel();
                let domain = domain.clone();
                thread::spawn(move || {
                    drop(domain.reader());
                    let _ = sender.send(());
                });
                let has_registered = registered.recv_timeout(Duration::from_secs(20)).is_ok();
                leave();
                has_registered
            },
        )
    });
    assert!(has_registered, "while the thread that makes the report is stopped");
}
