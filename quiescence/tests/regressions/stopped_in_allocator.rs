//! A thread that is stopped in the allocator, or waits there for another one's lock, while it
//! retires. Where retired objects are checked (in builds with debug assertions) it held a lock of
//! the table of addresses, which all who retired, freed or loaded such an object waited for.

use crate::common::*;

memory::watched_allocator!(|_| stop_if_asked(), |_, _| ());

thread_local! {
    /// Whether the thread stops when it asks for memory next.
    static STOPS: Cell<bool> = const { Cell::new(false) };
}

/// What a thread that stops says, and waits for.
type Stop = (mpsc::SyncSender<()>, Mutex<mpsc::Receiver<()>>);

static STOP: OnceLock<Stop> = OnceLock::new();

fn stop_if_asked() {
    if STOPS.replace(false)
        && let Some((sender, may_go_on)) = STOP.get()
    {
        sender.send(()).unwrap();
        let _ = may_go_on.lock().unwrap().recv();
    }
}

/// The other thread's objects have addresses all over the table.
#[test]
#[cfg_attr(miri, ignore = "thousands of objects")]
fn who_is_stopped_there_while_it_retires_holds_no_other_up() {
    // The thread has retired before, so of the library it is only the table that may ask for
    // memory, of which it had many parts: some are new to it with so many objects.
    let (sender, stopped) = mpsc::sync_channel(16);
    let (go_on, may_go_on) = mpsc::channel();
    assert!(STOP.set((sender.clone(), may_go_on.into())).is_ok(), "one test");
    thread::scope(|scope| {
        scope.spawn(|| {
            let domain = Domain::new();
            domain.retire(Box::new(0_u64)).unwrap();
            domain.barrier();
            let objects: Vec<_> = (0..64_u64).map(Box::new).collect();
            for object in objects {
                STOPS.set(true);
                domain.retire(object).unwrap();
            }
            if STOPS.replace(false) {
                sender.send(()).unwrap(); // it has asked for nothing
            }
        });
        stopped.recv().unwrap();
        let (sender, done) = mpsc::channel();
        scope.spawn(move || {
            let domain = Domain::new();
            for _ in 0..4 {
                let objects: Vec<_> = (0..4_096_u64).map(Box::new).collect();
                objects.into_iter().for_each(|object| domain.retire(object).unwrap());
                domain.barrier();
            }
            sender.send(()).unwrap();
        });
        let done = done.recv_timeout(Duration::from_secs(60));
        drop(go_on);
        done.expect("the other thread has retired and freed its objects");
    });
}
