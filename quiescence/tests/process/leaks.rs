//! An orderly end of the process leaves nothing behind: what waits for a grace period is dropped,
//! once.
//!
//! Each test runs itself in a process of its own, which ends with objects waiting; each drop there
//! writes one byte to standard output, past all buffers.
#![cfg(target_os = "linux")]

use crate::common::*;
use quiescence::raw;

/// What a drop says. Nothing else in the output of the test harness.
const DROPPED: u8 = b'~';

/// Says so when it is dropped.
struct Told(#[allow(dead_code)] [u64; 4]);

impl Weigh for Told {
    const OWNS: bool = false;
}

fn told() -> Told {
    Told([7; 4])
}

impl Drop for Told {
    fn drop(&mut self) {
        say();
    }
}

fn say() {
    let byte = [DROPPED];
    // SAFETY: one byte that is there.
    let written = unsafe { libc::write(libc::STDOUT_FILENO, byte.as_ptr().cast(), 1) };
    assert_eq!(written, 1, "{}", std::io::Error::last_os_error());
}

/// In the parent, runs `test` again in a child, for which `f` is called; the child must end with
/// `code`, and have said so many drops.
fn in_process(test: &str, code: i32, drops: usize, f: impl FnOnce()) {
    if role().is_some() {
        return f();
    }
    let output = again(test, "child", &[]);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let said = output.stdout.iter().filter(|byte| **byte == DROPPED).count();
    assert_eq!(said, drops, "drops, in {output:?}");
}

fn retire(many: usize) {
    (0..many).for_each(|_| quiescence::retire(Box::new(told())).unwrap());
}

#[test]
fn what_the_main_thread_retired_is_dropped_at_the_end() {
    in_process(this_test!(), 0, 1_000, || {
        retire(1_000);
    });
}

#[test]
fn heads_and_objects_of_user_code_are_ended_at_the_end() {
    unsafe extern "C" fn end_head(head: *mut raw::Head) {
        // SAFETY: from a box, below.
        drop(unsafe { Box::from_raw(head) });
        say();
    }
    unsafe fn end(object: *mut ()) {
        // SAFETY: from a box, below.
        drop(unsafe { Box::from_raw(object.cast::<Told>()) });
    }
    in_process(this_test!(), 0, 20, || {
        let domain = Domain::global();
        for _ in 0..10 {
            let head = Box::into_raw(Box::new(raw::Head::new()));
            // SAFETY: a head of its own, that no other thread can reach.
            unsafe { raw::call_head(&domain, head, end_head) };
            let object = Box::into_raw(Box::new(told()));
            // SAFETY: a box, that no other thread can reach.
            unsafe { raw::retire_with(&domain, object, size_of::<Told>(), end) };
        }
    });
}

/// Retires another one when it is dropped, so many times.
struct Chain(u32, #[allow(dead_code)] Told);

impl Drop for Chain {
    fn drop(&mut self) {
        if self.0 > 0 {
            quiescence::retire(Box::new(Self(self.0 - 1, told()))).unwrap();
        }
    }
}

#[test]
fn however_it_came_to_wait_it_is_dropped_at_the_end() {
    static OPTION: RcuOption<Told> = RcuOption::empty();
    static DOMAIN: OnceLock<Domain> = OnceLock::new();
    in_process(this_test!(), 0, 99 + 100 + 200 + 30 + 50 + 4 * 10 + 2 * 100, || {
        // Replaced. The last one is a static's, and those are not dropped.
        (0..100).for_each(|_| OPTION.store(Some(told())));
        let value = Rcu::new(told());
        (1..100).for_each(|_| value.store(told()));
        // By threads that have ended.
        (0..20).for_each(|_| elsewhere(|| retire(10)));
        // By threads that still run.
        let ready = Arc::new(Barrier::new(4));
        for _ in 0..3 {
            let ready = Arc::clone(&ready);
            thread::spawn(move || {
                retire(10);
                ready.wait();
                loop {
                    thread::park();
                }
            });
        }
        ready.wait();
        // In a domain that is never dropped.
        let domain = DOMAIN.get_or_init(Domain::new);
        (0..50).for_each(|_| domain.retire(Box::new(told())).unwrap());
        // By drops, at the end.
        (0..10).for_each(|_| quiescence::retire(Box::new(Chain(3, told()))).unwrap());
        // By closures, and captured by them.
        for _ in 0..100 {
            let captured = told();
            let run = move || {
                say();
                drop(captured);
            };
            quiescence::call(run).unwrap();
        }
    });
}

fn retire_late() {
    // First, so that the library's own thread-local goes before it.
    at_thread_end(|| retire(10));
    quiescence::retire(Box::new(told())).unwrap();
}

#[test]
fn what_destructors_of_thread_locals_retire_is_dropped_at_the_end() {
    in_process(this_test!(), 0, 22, || {
        thread::spawn(retire_late).join().unwrap();
        retire_late(); // of the thread that ends the process
    });
}

#[test]
fn any_thread_may_end_the_process() {
    in_process(this_test!(), 17, 20, || {
        retire(10);
        let end = || -> () {
            retire(10);
            std::process::exit(17)
        };
        let _ = thread::spawn(end).join();
    });
}

/// No thread may wait for a section of the very thread that ends the process: it ends, and what was
/// retired before stays.
#[test]
fn a_process_that_ends_in_a_section_ends() {
    in_process(this_test!(), 18, 0, || {
        let _guard = quiescence::read();
        retire(10);
        std::process::exit(18);
    });
}

/// Nor for another thread's, nor for a thread that waits for that one.
#[test]
fn a_process_ends_whatever_is_going_on() {
    in_process(this_test!(), 17, 0, || {
        let entered = Arc::new(Barrier::new(2));
        let inside = Arc::clone(&entered);
        thread::spawn(move || {
            let _guard = quiescence::read();
            inside.wait();
            thread::park();
        });
        entered.wait();
        retire(1_000);
        thread::spawn(quiescence::synchronize);
        std::process::exit(17);
    });
}

/// A callback that ends the process is not waited for, wherever it runs.
#[test]
fn a_process_that_ends_in_a_callback_ends() {
    in_process(this_test!(), 19, 1, || {
        quiescence::call(|| {
            say();
            std::process::exit(19)
        })
        .unwrap();
        quiescence::barrier();
        loop {
            thread::park(); // the worker may be the one that ends it
        }
    });
}

/// `exec` and `_exit` are no orderly end: nothing is run, and no thread waits.
#[test]
fn a_process_that_ends_at_once_runs_nothing() {
    in_process(this_test!(), 20, 0, || {
        let guard = quiescence::read();
        retire(10);
        std::mem::forget(guard);
        // SAFETY: ends the process.
        unsafe { libc::_exit(20) }
    });
}

/// The library's own threads that the system knows of.
fn own_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(b"quiescence")).count()
}

/// What the program tears down at its end, the worker does not use meanwhile.
#[test]
fn the_worker_ends_before_what_the_program_tears_down() {
    extern "C" fn is_called_after_the_library() {
        // SAFETY: asks for a signal, which ends a process whose worker stays.
        unsafe { libc::alarm(60) };
        until(|| own_threads() == 0);
        say();
    }
    in_process(this_test!(), 0, 1, || {
        // SAFETY: a function that lives as long as the program.
        assert_eq!(unsafe { libc::atexit(is_called_after_the_library) }, 0);
        quiescence::call(|| ()).unwrap();
        until(|| own_threads() != 0);
    });
}
