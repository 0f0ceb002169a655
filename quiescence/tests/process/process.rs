//! Processes: `fork`, and systems that let no thread start.
#![cfg(target_os = "linux")]

use crate::common::*;

use quiescence::tuning::Engine;

#[test]
fn a_child_has_the_forking_thread_only() {
    let domain = Domain::new();
    let run = Arc::new(AtomicUsize::new(0));
    let section = || {
        let guard = domain.read();
        (0..20).for_each(|_| domain.call(counting(&run)).unwrap());
        guard
    };
    while_held(section, |leave| {
        let fork = || {
            drop(domain.read());
            in_child(|| {
                assert_eq!(domain.statistics().readers, 1);
                domain.synchronize(); // the others' sections are gone with their threads
                let value = Rcu::new_in(1, domain.clone());
                assert_eq!(*value.load(&domain.read()), 1);
                value.store(2);
                domain.barrier(); // what they had queued is run
                assert_eq!(run.load(SeqCst), 20);
                // The worker can be started again, and works.
                domain.call(counting(&run)).unwrap();
                until(|| run.load(SeqCst) == 21);
            });
            assert_eq!(run.load(SeqCst), 0, "the parent's readers are still there");
            leave();
        };
        // The driver sleeps, so that the child finds a grace period half done.
        let drives = || domain.synchronize();
        beside_a_sleeper(&domain, drives, fork);
    });
    assert_eq!(settled(&domain, &run), 20);
}

#[test]
fn a_section_of_the_forking_thread_goes_on_in_the_child() {
    let domain = Domain::new();
    let guard = domain.read();
    let qsbr_domain = Domain::new();
    let mut qsbr = qsbr_domain.qsbr();
    in_child(|| {
        let cookie = domain.start_poll();
        assert!(!domain.poll(cookie));
        drop(guard);
        assert!(domain.poll(cookie));
        let cookie = qsbr_domain.start_poll();
        assert!(!qsbr_domain.poll(cookie));
        qsbr.quiescent_state();
        assert!(qsbr_domain.poll(cookie));
        quiescence::synchronize();
        quiescence::barrier();
    });
}

/// What another thread was just running is lost in the child, and its size, which only the object
/// could tell, is not held against the limit for ever.
#[test]
fn what_is_lost_in_a_child_takes_up_no_room() {
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.bytes_max = 1_000);
    let meets = Arc::new(Barrier::new(2));
    let meet_twice = {
        let meets = Arc::clone(&meets);
        move || (0..2).for_each(|_| _ = meets.wait())
    };
    let guard = domain.read(); // this thread drops nothing
    domain.retire_sized(OnDrop(meet_twice), 600).unwrap();
    domain.retire_sized((), 200).unwrap();
    drop(guard);
    thread::scope(|scope| {
        scope.spawn(|| domain.barrier());
        meets.wait();
        in_child(|| {
            assert_all_has_run(&domain);
            assert!(domain.try_retire([0_u8; 900].to_vec()).is_ok(), "there is room");
        });
        meets.wait();
    });
}

/// Where there can be no worker, whichever thread asks does its part, under every engine.
#[test]
fn without_a_worker_polling_is_enough() {
    in_its_own_process!();
    let _reader = Domain::global().reader(); // the first use of the library is whole
    forbid(libc::SYS_clone3, None);
    forbid(libc::SYS_clone, None);
    assert!(thread::Builder::new().spawn(|| ()).is_err(), "no thread can be started");
    for engine in Engine::ALL {
        let domain = Domain::builder().engine(engine).build();
        let reader = domain.qsbr();
        let cookie = domain.start_poll();
        assert!(!domain.poll(cookie), "{engine}: a reader is inside");
        let away = reader.offline();
        while !domain.poll(cookie) {}
        drop(away);
    }
}
