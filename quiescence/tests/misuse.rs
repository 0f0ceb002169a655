//! Mistakes are refused with a message that names the places, never undefined behaviour.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

use quiescence::{Domain, Rcu, RcuOption};

/// The message of the panic that `f` ends with.
fn message(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("must panic");
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => payload.downcast_ref::<&str>().expect("a message").to_string(),
    }
}

#[test]
fn synchronize_inside_a_section_names_both_places() {
    let domain = Domain::new();
    let begun = line!() + 1;
    let guard = domain.read();
    let called = line!() + 1;
    let said = message(|| domain.synchronize());
    assert!(said.contains(&format!("misuse.rs:{begun}:")), "{said}");
    assert!(said.contains(&format!("misuse.rs:{called}:")), "{said}");
    assert!(said.contains("synchronize"), "{said}");
    // So do the others that wait, and the domain still works afterwards.
    assert!(message(|| domain.synchronize_expedited()).contains("misuse.rs"));
    assert!(message(|| domain.barrier()).contains("barrier"));
    let cookie = domain.get();
    assert!(message(|| domain.wait(cookie)).contains("wait"));
    drop(guard);
    domain.synchronize();
    domain.barrier();
    domain.wait(cookie);
}

#[test]
fn the_section_of_an_explicit_reader_and_of_the_global_domain_are_found_too() {
    let domain = Domain::new();
    let reader = domain.reader();
    let guard = reader.read();
    assert!(message(|| domain.synchronize()).contains("read-side"));
    drop(guard);
    domain.synchronize();
    let guard = quiescence::read();
    assert!(message(quiescence::synchronize).contains("read-side"));
    // Another domain is another matter.
    domain.synchronize();
    drop(guard);
    quiescence::synchronize();
}

#[test]
fn synchronize_of_an_online_qsbr_reader_says_what_to_do() {
    let domain = Domain::new();
    let mut reader = domain.qsbr();
    let said = message(|| domain.synchronize());
    assert!(said.contains("Qsbr::synchronize") && said.contains("misuse.rs"), "{said}");
    reader.synchronize();
    reader.while_offline(|| domain.synchronize());
    drop(reader.offline());
}

#[test]
fn a_guard_of_another_domain_is_refused() {
    let (mine, other) = (Domain::new(), Domain::new());
    let value = Rcu::new_in(1, mine.clone());
    let option = RcuOption::new_in(Some(1), mine.clone());
    let guard = other.read();
    assert!(message(|| drop(value.load(&guard).to_string())).contains("another domain"));
    assert!(
        message(|| drop(option.load(&guard).copied().map(Box::new))).contains("another domain")
    );
    let qsbr = other.qsbr();
    assert!(message(|| drop(value.load(&qsbr.read()).to_string())).contains("another domain"));
    assert_eq!(*value.load(&mine.read()), 1);
}

#[test]
fn a_cookie_of_another_domain_is_refused() {
    let (mine, other) = (Domain::new(), Domain::new());
    let cookie = other.start();
    assert!(message(|| drop(mine.poll(cookie).to_string())).contains("another domain"));
    assert!(message(|| mine.wait(cookie)).contains("another domain"));
    assert!(other.poll(cookie));
}

/// A domain that has ended leaves its address to others, and its cookies to nobody.
#[test]
fn a_cookie_of_a_domain_that_has_ended_is_refused() {
    for _ in 0..100 {
        let ended = Domain::new();
        ended.synchronize();
        let cookie = ended.get();
        drop(ended);
        Domain::new().synchronize();
        let others: [_; 8] = std::array::from_fn(|_| Domain::new());
        for other in &others {
            let said = message(|| assert!(!other.poll(cookie)));
            assert!(said.contains("another domain's"), "{said}");
        }
    }
}

/// What a kind gives out for the macro `domain!` tells nothing of other threads' registrations.
#[test]
fn no_debug_output_looks_into_the_slots() {
    let _reader = quiescence::reader();
    let shown = format!("{:?}", quiescence::Kind::handle(&quiescence::Global));
    assert!(shown.contains("Core") && !shown.contains("references"), "{shown}");
}

#[test]
fn a_callback_that_panics_is_counted_and_the_rest_run() {
    let domain = Domain::new();
    let run = Arc::new(AtomicU32::new(0));
    for number in 0..10 {
        let run = Arc::clone(&run);
        domain.call(move || {
            assert!(number != 4, "callback 4 panics, as it should in this test");
            run.fetch_add(1, SeqCst);
        });
    }
    domain.barrier();
    let statistics = domain.statistics();
    assert_eq!(run.load(SeqCst), 9);
    assert_eq!((statistics.callbacks_run, statistics.callbacks_panicked), (10, 1));
}

/// A payload whose drop panics must not take the runner down.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the payload of a panic panics, as it should in this test");
    }
}

#[test]
fn a_callback_whose_panic_panics_harms_nobody() {
    let domain = Domain::new();
    domain.call(|| std::panic::panic_any(Bomb));
    domain.call(|| ());
    domain.barrier();
    assert_eq!(domain.statistics().callbacks_run, 2);
}

#[test]
fn a_barrier_inside_a_callback_is_refused() {
    let domain = Domain::new();
    let (inside, said) = (domain.clone(), Arc::new(std::sync::Mutex::new(String::new())));
    let note = Arc::clone(&said);
    domain.call(move || *note.lock().unwrap() = message(|| inside.barrier()));
    domain.barrier();
    assert!(said.lock().unwrap().contains("call()"), "{said:?}");
}

/// A callback that `barrier` runs leaks a section on the very thread that goes on to wait: that section
/// must not be taken for a quiescent reader of the waiter's own.
#[test]
fn a_section_that_a_callback_leaks_into_a_barrier_is_found() {
    // The worker may be quicker and run the callback, which then does nothing; so try again.
    while !leak_into_a_barrier() {}
}

fn leak_into_a_barrier() -> bool {
    let domain = Domain::new();
    drop(domain.read()); // registers: a quiescent reader of this thread
    domain.call(|| ());
    domain.barrier(); // this thread's queue is the first
    let (go, going) = mpsc::channel::<()>();
    let (done, is_done) = mpsc::channel::<()>();
    let dropped = Arc::new(AtomicU32::new(0));
    let other = thread::spawn({
        let (domain, dropped, done) = (domain.clone(), Arc::clone(&dropped), done.clone());
        move || {
            domain.call(|| ());
            done.send(()).unwrap(); // this one's is the second
            if going.recv().is_ok() {
                domain.call(move || {
                    dropped.fetch_add(1, SeqCst);
                });
                done.send(()).unwrap();
            }
        }
    });
    is_done.recv().unwrap();
    let (inside, main) = (domain.clone(), thread::current().id());
    domain.call(move || {
        if thread::current().id() == main {
            std::mem::forget(inside.read());
            go.send(()).unwrap();
            is_done.recv().unwrap();
        }
    });
    let said = catch_unwind(AssertUnwindSafe(|| domain.barrier()));
    other.join().unwrap();
    let in_section = catch_unwind(AssertUnwindSafe(|| domain.synchronize())).is_err();
    if in_section {
        assert!(said.is_err(), "the barrier waited for a section of its own thread, or for nobody");
        assert_eq!(dropped.load(SeqCst), 0, "run while a section is open");
    }
    in_section
}

#[test]
fn leaked_guards_are_sections_that_never_end() {
    let domain = Domain::new();
    let inside = domain.clone();
    thread::spawn(move || std::mem::forget(inside.read())).join().unwrap();
    let cookie = domain.start();
    assert!(!domain.poll(cookie));
    // Retiring goes on, waiting does not make sense; the end of the domain frees what waits.
    let dropped = Arc::new(AtomicU32::new(0));
    let noted = Arc::clone(&dropped);
    domain.call(move || {
        noted.fetch_add(1, SeqCst);
    });
    assert_eq!(dropped.load(SeqCst), 0);
    drop(domain);
    while dropped.load(SeqCst) == 0 {
        thread::yield_now(); // the worker may have had the last handle
    }
}
