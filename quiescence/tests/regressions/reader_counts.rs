//! Counts that safe code can drive: they are checked, or they cannot wrap.

use crate::common::*;
/// Of a thread that has leaked 2^32 handles, and as many more, every one counts: the one that is
/// left holds up grace periods by its sections.
#[test]
fn leaked_readers_do_not_unregister_a_live_one() {
    for leaked in [u64::from(u32::MAX), u64::from(u32::MAX) - 1, u64::MAX / 2] {
        elsewhere(|| {
            let domain = Domain::new();
            let reader = domain.reader();
            reader.leak_more(leaked);
            (0..2).for_each(|_| drop(domain.reader()));
            assert_eq!(domain.statistics().readers, 1, "{leaked} leaked");
            section_holds_up_updaters(&domain, &reader);
        });
    }
}

fn section_holds_up_updaters(domain: &Domain, reader: &quiescence::Reader<Private>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let value = Rcu::new_in(Dropped(Arc::clone(&dropped)), domain.clone());
    let (sender, replaced) = mpsc::channel();
    thread::scope(|scope| {
        let guard = reader.read();
        let seen = value.load(&guard);
        let updater = scope.spawn(|| {
            let old = value.swap(Dropped(Arc::default()));
            let cookie = domain.start_poll();
            sender.send(domain.poll(cookie)).unwrap();
            drop(old.into_inner());
        });
        assert!(!replaced.recv().unwrap(), "the section lasts");
        assert!(seen.0.load(SeqCst) == 0, "and what it sees is there");
        drop(guard);
        updater.join().unwrap();
    });
    assert_eq!(dropped.load(SeqCst), 1);
}

/// The end of the count is a panic that says what leaks, and nothing has changed.
#[test]
fn one_reader_too_many_is_refused() {
    elsewhere(|| {
        let domain = Domain::new();
        let reader = domain.reader();
        reader.leak_more(u64::MAX - 2);
        drop(domain.reader()); // the last one that there is a number for
        reader.leak_more(1);
        assert!(panic_of(|| domain.reader()).contains("leaked with mem::forget"));
        assert_eq!(domain.statistics().readers, 1);
        section_holds_up_updaters(&domain, &reader);
    });
}
