//! Counts that safe code can drive: they are checked, or they cannot wrap.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

use quiescence::{Domain, Rcu};

/// Says that it is dropped.
struct Value(Arc<AtomicBool>);

impl quiescence::Weigh for Value {}

impl Drop for Value {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Of a thread that has leaked 2^32 handles, and as many more, every one counts: the one that is
/// left holds up grace periods by its sections.
#[test]
fn leaked_readers_do_not_unregister_a_live_one() {
    for leaked in [u64::from(u32::MAX), u64::from(u32::MAX) - 1, u64::MAX / 2] {
        thread::spawn(move || {
            let domain = Domain::new();
            let reader = domain.reader();
            reader.leak_more(leaked);
            drop(domain.reader());
            drop(domain.reader());
            assert_eq!(domain.statistics().readers, 1, "{leaked} leaked");
            section_holds_up_updaters(&domain, &reader);
        })
        .join()
        .unwrap();
    }
}

fn section_holds_up_updaters(
    domain: &Domain,
    reader: &quiescence::Reader<quiescence::tag::Private>,
) {
    let dropped = Arc::new(AtomicBool::new(false));
    let value = Arc::new(Rcu::new_in(Value(Arc::clone(&dropped)), domain.clone()));
    let guard = reader.read();
    let seen = value.load(&guard);
    let (sender, replaced) = mpsc::channel();
    let updater = thread::spawn({
        let (value, domain) = (Arc::clone(&value), domain.clone());
        move || {
            let old = value.swap(Value(Arc::default()));
            let cookie = domain.start_poll();
            sender.send(domain.poll(cookie)).unwrap();
            drop(old.into_inner());
        }
    });
    assert!(!replaced.recv().unwrap(), "the section lasts");
    assert!(!seen.0.load(SeqCst), "and what it sees is there");
    drop(guard);
    updater.join().unwrap();
    assert!(dropped.load(SeqCst));
}

/// The end of the count is a panic that says what leaks, and nothing has changed.
#[test]
fn one_reader_too_many_is_refused() {
    thread::spawn(|| {
        let domain = Domain::new();
        let reader = domain.reader();
        reader.leak_more(u64::MAX - 2);
        drop(domain.reader()); // the last one that there is a number for
        reader.leak_more(1);
        let refused = catch_unwind(AssertUnwindSafe(|| domain.reader())).unwrap_err();
        let said = refused.downcast_ref::<String>().map_or_else(
            || refused.downcast_ref::<&str>().map(|said| (*said).to_owned()),
            |said| Some(said.clone()),
        );
        assert!(said.unwrap().contains("leaked with mem::forget"));
        assert_eq!(domain.statistics().readers, 1);
        section_holds_up_updaters(&domain, &reader);
    })
    .join()
    .unwrap();
}
