//! `call_rcu` and its workers, driven as the thin libraries drive them: threads that end and start
//! again, workers that are freed, CPUs, forks without hooks, misuse. (What programs see with
//! Debian's library too is in `programs/call_rcu.c`.)

use std::ffi::{c_int, c_uint, c_ulong, c_void};

use crate::c::*;

/// `struct call_rcu_data`.
#[repr(C)]
struct Worker([u8; 0]);

/// `struct rcu_head`, and what its function is to do.
#[repr(C)]
struct Callback {
    head: [usize; 2],
    run: Option<Box<dyn FnOnce() + Send>>,
}

/// `struct urcu_atfork`.
#[repr(C)]
struct Atfork([extern "C" fn(usize); 3], usize);

unsafe extern "C" {
    fn quiescence_urcu_call_rcu(
        flavor: c_uint,
        head: *mut c_void,
        function: unsafe extern "C" fn(*mut c_void),
    );
    safe fn quiescence_urcu_barrier(flavor: c_uint);
    safe fn quiescence_urcu_create_call_rcu_data(
        flavor: c_uint,
        flags: c_ulong,
        cpu: c_int,
    ) -> *const Worker;
    fn quiescence_urcu_call_rcu_data_free(flavor: c_uint, worker: *const Worker);
    safe fn quiescence_urcu_get_default_call_rcu_data(flavor: c_uint) -> *const Worker;
    safe fn quiescence_urcu_get_cpu_call_rcu_data(flavor: c_uint, cpu: c_int) -> *const Worker;
    safe fn quiescence_urcu_get_call_rcu_data(flavor: c_uint) -> *const Worker;
    fn quiescence_urcu_get_call_rcu_thread(
        flavor: c_uint,
        worker: *const Worker,
    ) -> libc::pthread_t;
    fn quiescence_urcu_set_thread_call_rcu_data(flavor: c_uint, worker: *const Worker);
    safe fn quiescence_urcu_call_rcu_before_fork(flavor: c_uint);
    safe fn quiescence_urcu_call_rcu_after_fork_parent(flavor: c_uint);
    safe fn quiescence_urcu_register_rculfhash_atfork(flavor: c_uint, atfork: &'static Atfork);
    safe fn quiescence_urcu_create_all_cpu_call_rcu_data(flavor: c_uint, flags: c_ulong) -> c_int;
    safe fn quiescence_urcu_free_all_cpu_call_rcu_data(flavor: c_uint);
}

unsafe extern "C" fn run(callback: *mut c_void) {
    // SAFETY: from a box, in `call`.
    let callback = unsafe { Box::from_raw(callback.cast::<Callback>()) };
    callback.run.unwrap()();
}

/// Queues a callback, whose head is garbage as C's are.
fn call(flavor: u32, f: impl FnOnce() + Send + 'static) {
    let callback = Box::new(Callback { head: [0x5a5a_5a5a_5a5a_5a5a; 2], run: Some(Box::new(f)) });
    // SAFETY: a box, which `run` frees.
    unsafe { quiescence_urcu_call_rcu(flavor, Box::into_raw(callback).cast(), run) };
}

fn choose(flavor: u32, worker: *const Worker) {
    // SAFETY: null, or a worker that lives until another one is chosen.
    unsafe { quiescence_urcu_set_thread_call_rcu_data(flavor, worker) };
}

fn free(flavor: u32, worker: *const Worker) {
    // SAFETY: the tests free each once, or want to see what is said.
    unsafe { quiescence_urcu_call_rcu_data_free(flavor, worker) };
}

/// How many threads of this process are workers.
fn workers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "call_rcu").count()
}

#[test]
fn callbacks_run_on_each_flavours_worker() {
    attach();
    for flavor in ALL {
        let here = thread::current().id();
        let (ran, has_run) = mpsc::channel();
        for number in 0..1_000 {
            let ran = ran.clone();
            call(flavor, move || {
                // A reader of its flavour: registered, and online.
                assert!(flavor == BP || is_marked(flavor));
                assert!(flavor != QSBR || word(QSBR).load(SeqCst) != 0);
                ran.send((number, thread::current().id())).unwrap();
            });
        }
        quiescence_urcu_barrier(flavor);
        drop(ran);
        let all: Vec<_> = has_run.iter().collect();
        assert!(all.iter().map(|(number, _)| *number).eq(0..1_000));
        assert!(all.iter().all(|(_, thread)| *thread != here && *thread == all[0].1));
    }
}

/// The default worker's thread ends when there is nothing to do, and starts again.
#[test]
fn an_idle_default_worker_ends() {
    // Each callback is waited for, and none waits for company.
    let environment = [("QUIESCENCE_CALL_RCU_IDLE_MS", "0"), ("QUIESCENCE_LAZY_MS", "0")];
    attached_in_its_own_process!(&environment);
    let (ran, has_run) = mpsc::channel();
    for _ in 0..50 {
        let ran = ran.clone();
        call(MEMB, move || ran.send(()).unwrap());
        has_run.recv().unwrap();
        until(|| workers() == 0);
    }
    // Callbacks that come while it ends.
    for _ in 0..2_000 {
        let ran = ran.clone();
        call(MEMB, move || ran.send(()).unwrap());
        has_run.recv().unwrap();
    }
    // Once it has been asked for, it is the one for ever.
    let worker = quiescence_urcu_get_default_call_rcu_data(MEMB);
    // SAFETY: the default worker.
    let thread = unsafe { quiescence_urcu_get_call_rcu_thread(MEMB, worker) };
    let (on, was_on) = mpsc::channel();
    for _ in 0..100 {
        let on = on.clone();
        // SAFETY: asks for a number.
        call(MEMB, move || on.send(unsafe { libc::pthread_self() }).unwrap());
        assert_eq!(was_on.recv().unwrap(), thread);
    }
    free(MEMB, worker); // ignored
    call(MEMB, move || ran.send(()).unwrap());
    quiescence_urcu_barrier(MEMB);
    assert_eq!(has_run.iter().count(), 1);
}

/// A caller that has asked for a worker's thread joins it after the worker was freed; what was left
/// is run by the default one. The thread of one that was not asked for ends by itself.
#[test]
fn freed_workers_leave_nothing() {
    attached_in_its_own_process!();
    static RAN: AtomicU64 = AtomicU64::new(0);
    for number in 0..200 {
        let worker = quiescence_urcu_create_call_rcu_data(MEMB, number % 2, -1);
        // SAFETY: made just now.
        let thread =
            (number % 3 == 0).then(|| unsafe { quiescence_urcu_get_call_rcu_thread(MEMB, worker) });
        choose(MEMB, worker);
        assert_eq!(quiescence_urcu_get_call_rcu_data(MEMB), worker);
        for _ in 0..10 {
            call(MEMB, || _ = RAN.fetch_add(1, SeqCst));
        }
        choose(MEMB, ptr::null());
        free(MEMB, worker);
        if let Some(thread) = thread {
            // SAFETY: a joinable thread that no other joins.
            assert_eq!(unsafe { libc::pthread_join(thread, ptr::null_mut()) }, 0);
        }
    }
    quiescence_urcu_barrier(MEMB);
    assert_eq!(RAN.load(SeqCst), 2_000);
    until(|| workers() <= 1);
}

/// (What each call for a CPU's worker answers is in `programs/call_rcu.c`.)
#[test]
fn workers_of_cpus_that_are_freed_beside_callers_lose_nothing() {
    attached_in_its_own_process!();
    static RAN: AtomicU64 = AtomicU64::new(0);
    assert_eq!(quiescence_urcu_create_all_cpu_call_rcu_data(QSBR, 0), 0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..500 {
                    call(QSBR, || _ = RAN.fetch_add(1, SeqCst));
                }
            });
        }
        quiescence_urcu_free_all_cpu_call_rcu_data(QSBR);
    });
    assert!(quiescence_urcu_get_cpu_call_rcu_data(QSBR, 0).is_null());
    quiescence_urcu_barrier(QSBR);
    assert_eq!(RAN.load(SeqCst), 1_500);
}

/// It turned off reports of the global domain for good: for the library's own sections there.
#[test]
fn freeing_a_worker_changes_no_setting_of_the_programs() {
    attached_in_its_own_process!();
    let tuning = || quiescence::Domain::global().tuning();
    let before = tuning();
    assert!(before.stall_after.is_some());
    assert_eq!(quiescence_urcu_create_all_cpu_call_rcu_data(MEMB, 0), 0);
    call(MEMB, || ());
    quiescence_urcu_free_all_cpu_call_rcu_data(MEMB);
    free(MEMB, quiescence_urcu_create_call_rcu_data(MEMB, 0, -1));
    assert_eq!(tuning(), before);
}

/// What took a lock or allocated changed it: a flavour's first call, a first call on a CPU with a
/// worker, barriers of deferred calls. And the hooks, in which a fork's error is still to be looked
/// at.
#[test]
fn errno_was_changed_by_calls_without_a_result() {
    attached_in_its_own_process!();
    extern "C" fn disturbs(_: usize) {
        look();
    }
    static HOOKS: Atfork = Atfork([disturbs; 3], 0);
    unsafe extern "C" fn nothing(_: *mut c_void) {}
    quiescence_urcu_register_rculfhash_atfork(MEMB, &HOOKS);
    keeps_errno(&|| quiescence_urcu_call_rcu_before_fork(MEMB));
    keeps_errno(&|| quiescence_urcu_call_rcu_after_fork_parent(MEMB));
    keeps_errno(&|| _ = quiescence_urcu_get_default_call_rcu_data(MB)); // made as by the first call
    assert_eq!(quiescence_urcu_create_all_cpu_call_rcu_data(MEMB, 0), 0);
    let head = Box::leak(Box::new([0_usize; 2]));
    let place = ptr::from_mut(head).expose_provenance();
    elsewhere(move || {
        let head = ptr::with_exposed_provenance_mut(place);
        // SAFETY: a head that is queued once, and leaked.
        keeps_errno(&|| unsafe { quiescence_urcu_call_rcu(MEMB, head, nothing) });
        defer(MEMB, || ());
        keeps_errno(&|| quiescence_urcu_defer_barrier_thread(MEMB));
    });
}

/// The first callback finds it there, whatever CPU the caller was on. One that the process may not
/// use is no fault.
#[test]
fn workers_of_cpus_are_pinned_from_their_start() {
    attached_in_its_own_process!();
    let allowed = shuffle::cpus;
    let before = allowed();
    assert_eq!(quiescence_urcu_create_all_cpu_call_rcu_data(MB, 0), 0);
    for &cpu in &before {
        let (found, is_found) = mpsc::channel();
        choose(MB, quiescence_urcu_get_cpu_call_rcu_data(MB, cpu as c_int));
        call(MB, move || found.send(allowed()).unwrap());
        assert_eq!(is_found.recv().unwrap(), [cpu]);
    }
    choose(MB, ptr::null());
    quiescence_urcu_free_all_cpu_call_rcu_data(MB);
    assert_eq!(allowed(), before, "it is the worker's business");
    // Not there: it runs all the same.
    let worker = quiescence_urcu_create_call_rcu_data(MB, 0, 1_000);
    choose(MB, worker);
    let (found, is_found) = mpsc::channel();
    call(MB, move || found.send(allowed()).unwrap());
    assert_eq!(is_found.recv().unwrap(), before);
    choose(MB, ptr::null());
    free(MB, worker);
}

static RAN_BESIDE_A_FORK: AtomicU64 = AtomicU64::new(0);

fn goes_on_in_the_child(worker: *const Worker) {
    let ran = || RAN_BESIDE_A_FORK.load(SeqCst);
    let add = || call(MEMB, || _ = RAN_BESIDE_A_FORK.fetch_add(1, SeqCst));
    assert_eq!((ran(), workers()), (0, 0));
    quiescence_urcu_barrier(MEMB);
    assert_eq!((ran(), workers()), (2, 2));
    add();
    choose(MEMB, ptr::null());
    add();
    quiescence_urcu_barrier(MEMB);
    assert_eq!(ran(), 4);
    free(MEMB, worker);
    until(|| workers() == 1);
}

/// Without hooks: the child finds what waited, and its workers start again.
#[test]
fn a_child_without_hooks_goes_on() {
    attached_in_its_own_process!();
    let worker = quiescence_urcu_create_call_rcu_data(MEMB, 0, -1);
    register(MEMB);
    read_lock(MEMB); // so that nothing runs before the fork
    call(MEMB, || _ = RAN_BESIDE_A_FORK.fetch_add(1, SeqCst));
    choose(MEMB, worker);
    call(MEMB, || _ = RAN_BESIDE_A_FORK.fetch_add(1, SeqCst));
    in_child(|| {
        read_unlock(MEMB);
        goes_on_in_the_child(worker);
    });
    read_unlock(MEMB);
    quiescence_urcu_barrier(MEMB);
    assert_eq!(RAN_BESIDE_A_FORK.load(SeqCst), 2);
    unregister(MEMB);
    choose(MEMB, ptr::null());
    free(MEMB, worker);
}

/// A callback forks: in the child its thread is the worker's, and no other one is started.
#[test]
fn a_child_of_a_callback_is_its_workers_thread() {
    attach();
    let (sent, is_well) = mpsc::channel();
    call(SIGNAL, move || {
        let worker = quiescence_urcu_get_default_call_rcu_data(SIGNAL);
        let is_its_thread = || {
            // SAFETY: the default worker.
            let thread = unsafe { quiescence_urcu_get_call_rcu_thread(SIGNAL, worker) };
            // SAFETY: asks for a number.
            thread == unsafe { libc::pthread_self() }
        };
        let forks = || in_child(|| assert!(is_its_thread()));
        sent.send(catch_unwind(AssertUnwindSafe(forks)).is_ok()).unwrap();
    });
    assert!(is_well.recv().unwrap(), "another thread was started, or the child hung");
}

/// Callbacks of other flavours, and deferred functions, may wait for a flavour's callbacks.
#[test]
fn a_barrier_where_nothing_waits_for_itself() {
    attached_in_its_own_process!();
    static RAN: AtomicU64 = AtomicU64::new(0);
    fn waits_for_a_callback_of(flavor: u32) {
        let ran = RAN.load(SeqCst);
        call(flavor, || _ = RAN.fetch_add(1, SeqCst));
        quiescence_urcu_barrier(flavor);
        assert_eq!(RAN.load(SeqCst), ran + 1);
    }
    unsafe extern "C" fn deferred(_: *mut c_void) {
        waits_for_a_callback_of(MEMB);
    }
    // SAFETY: a signal that ends the process: a hang is a failure.
    unsafe { libc::alarm(60) };
    call(MEMB, || waits_for_a_callback_of(MB));
    quiescence_urcu_barrier(MEMB);
    assert_eq!(RAN.load(SeqCst), 1);
    quiescence_urcu_defer_register_thread(MEMB);
    for _ in 0..2 {
        // SAFETY: it may be called anywhere.
        unsafe { quiescence_urcu_defer_rcu(MEMB, deferred, ptr::null_mut()) };
    }
    quiescence_urcu_defer_unregister_thread(MEMB);
    assert_eq!(RAN.load(SeqCst), 3);
}

// Mistakes, for `misuse`.

pub(crate) fn freed_twice() {
    let worker = quiescence_urcu_create_call_rcu_data(MEMB, 0, -1);
    free(MEMB, worker);
    free(MEMB, worker);
}

pub(crate) fn no_worker_freed() {
    free(MEMB, ptr::without_provenance(64));
}
