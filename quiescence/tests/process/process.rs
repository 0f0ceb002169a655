//! Processes: `fork`, the end of the process, and systems that forbid `membarrier(2)`.
#![cfg(target_os = "linux")]

use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::sync::{Arc, Barrier};
use std::thread;

use crate::common::{again, in_child, role};
use quiescence::{
    Domain, Rcu,
    tuning::{Engine, Fences},
};

#[test]
fn a_child_has_the_forking_thread_only() {
    let domain = Domain::new();
    let run = Arc::new(AtomicU32::new(0));
    let (entered, leave) = (Barrier::new(3), Barrier::new(3));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let guard = domain.read();
                for _ in 0..10 {
                    let run = Arc::clone(&run);
                    domain
                        .call(move || {
                            run.fetch_add(1, SeqCst);
                        })
                        .unwrap();
                }
                entered.wait();
                leave.wait();
                drop(guard);
            });
        }
        entered.wait();
        drop(domain.read());
        // A driver that sleeps, so that the child finds a grace period half done.
        let waiter = scope.spawn(|| domain.synchronize());
        while domain.statistics().sleeps == 0 {
            thread::yield_now();
        }
        in_child(|| {
            assert_eq!(domain.statistics().readers, 1);
            domain.synchronize(); // the others' sections are gone with their threads
            let value = Rcu::new_in(1, domain.clone());
            assert_eq!(*value.load(&domain.read()), 1);
            value.store(2);
            domain.barrier(); // what they had queued is run
            assert_eq!(run.load(SeqCst), 20);
            // The worker can be started again, and works.
            let done = Arc::new(AtomicBool::new(false));
            let set = Arc::clone(&done);
            domain.call(move || set.store(true, Release)).unwrap();
            while !done.load(Acquire) {
                thread::yield_now();
            }
        });
        assert_eq!(run.load(SeqCst), 0, "the parent's readers are still there");
        assert!(!waiter.is_finished());
        leave.wait();
        waiter.join().unwrap();
    });
    domain.barrier();
    assert_eq!(run.load(SeqCst), 20);
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

/// Meets the test twice when it is dropped.
struct Meets(Arc<Barrier>);

impl Drop for Meets {
    fn drop(&mut self) {
        self.0.wait();
        self.0.wait();
    }
}

/// What another thread was just running is lost in the child, and its size, which only the object
/// could tell, is not held against the limit for ever.
#[test]
fn what_is_lost_in_a_child_takes_up_no_room() {
    let domain = Domain::new();
    let mut tuning = domain.tuning();
    tuning.bytes_max = 1_000;
    domain.tune(tuning);
    let meets = Arc::new(Barrier::new(2));
    domain.retire_sized(Meets(Arc::clone(&meets)), 600).unwrap();
    domain.retire_sized((), 200).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| domain.barrier());
        meets.wait();
        in_child(|| {
            domain.barrier();
            assert_eq!(domain.statistics().bytes_waiting, 0);
            assert!(domain.try_retire([0_u8; 900].to_vec()).is_ok(), "there is room");
        });
        meets.wait();
    });
}

#[test]
fn forks_beside_readers_updaters_and_callbacks() {
    let domain = Domain::new();
    let value = Rcu::new_in(vec![7; 8], domain.clone());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                assert_eq!(value.load(&domain.read()).len(), 8);
                drop(quiescence::read());
            }
        });
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                value.store(vec![7; 8]);
                quiescence::retire(Box::new(5)).unwrap();
                domain.synchronize();
            }
        });
        for _ in 0..30 {
            in_child(|| {
                assert_eq!(value.load(&domain.read()).len(), 8);
                domain.synchronize();
                domain.barrier();
                quiescence::synchronize();
                quiescence::barrier();
            });
        }
        stop.store(true, Relaxed);
    });
}

/// A little of everything, between threads.
fn exercise() {
    let value = Rcu::new(0);
    let (ready, stop) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let reader = quiescence::Domain::global().reader();
            ready.wait();
            let mut last = 0;
            while !stop.load(Relaxed) {
                let (guard, nested) = (reader.read(), quiescence::read());
                let seen = *value.load(&guard);
                assert!(*value.load(&nested) >= seen && seen >= last);
                last = seen;
            }
        });
        ready.wait();
        for new in 1..500 {
            value.store(new);
            quiescence::synchronize();
        }
        let guard = quiescence::read();
        let cookie = quiescence::Domain::global().start_poll();
        assert!(!quiescence::Domain::global().poll(cookie));
        drop(guard);
        quiescence::Domain::global().wait(cookie);
        stop.store(true, Relaxed);
    });
    quiescence::barrier();
}

#[test]
fn the_environment_chooses_portable_fences() {
    if role().is_some() {
        assert_eq!(quiescence::tuning::fences(), Fences::Portable);
        return exercise();
    }
    let test = "process::the_environment_chooses_portable_fences";
    let output = again(test, "portable", &[("QUIESCENCE_FENCES", "portable")]);
    assert!(output.status.success(), "{output:?}");
}

/// From now on this system call fails with EPERM in this process.
fn forbid(call: libc::c_long) {
    let statement = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let mut filter = [
        statement(0x20, 0), // load the number of the system call
        libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: call as u32 },
        statement(0x06, 0x0005_0000 | libc::EPERM as u32), // fail
        statement(0x06, 0x7fff_0000),                      // allow
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a plain flag of the process.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    let flags = libc::SECCOMP_FILTER_FLAG_TSYNC;
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the program outlives the call, which copies it.
    assert_eq!(unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) }, 0);
}

#[test]
fn a_forbidden_membarrier_means_portable_fences() {
    if role().is_some() {
        forbid(libc::SYS_membarrier);
        assert_eq!(quiescence::tuning::fences(), Fences::Portable);
        return exercise();
    }
    let output = again("process::a_forbidden_membarrier_means_portable_fences", "forbidden", &[]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_membarrier_that_is_forbidden_later_ends_the_process_with_the_reason() {
    if role().is_some() {
        if quiescence::tuning::fences() == Fences::Membarrier {
            forbid(libc::SYS_membarrier);
            exercise();
        } else {
            eprintln!("QUIESCENCE_FENCES=portable"); // nothing to lose where it never was
            std::process::abort();
        }
    }
    let test = "process::a_membarrier_that_is_forbidden_later_ends_the_process_with_the_reason";
    let output = again(test, "later", &[]);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("QUIESCENCE_FENCES=portable"), "{said}");
}

/// Where there can be no worker, whichever thread asks does its part, under every engine.
#[test]
fn without_a_worker_polling_is_enough() {
    if role().is_some() {
        let reader = quiescence::Domain::global().reader(); // the first use of the library is whole
        forbid(libc::SYS_clone3);
        forbid(libc::SYS_clone);
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
        return drop(reader);
    }
    let output = again("process::without_a_worker_polling_is_enough", "alone", &[]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_process_ends_whatever_is_going_on() {
    if role().is_some() {
        let entered = Arc::new(Barrier::new(2));
        let inside = Arc::clone(&entered);
        thread::spawn(move || {
            let _guard = quiescence::read();
            inside.wait();
            thread::park();
        });
        entered.wait();
        for number in 0..1_000 {
            quiescence::retire(Box::new(number)).unwrap();
        }
        thread::spawn(quiescence::synchronize);
        std::process::exit(17);
    }
    let output = again("process::a_process_ends_whatever_is_going_on", "exit", &[]);
    assert_eq!(output.status.code(), Some(17), "{output:?}");
}
