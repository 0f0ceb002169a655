//! What several test files need, each of them a part of it: they import all of it by a star.

#![allow(dead_code, unused_imports, unused_macros)]

pub(crate) mod again;
pub(crate) mod expect;
#[cfg(target_os = "linux")]
pub(crate) mod filter;
pub(crate) mod limited;
#[cfg(target_os = "linux")]
pub(crate) mod shuffle;
#[cfg(unix)]
pub(crate) mod storm;
pub(crate) mod memory;
#[cfg(unix)]
pub(crate) mod processes;
pub(crate) mod random;
pub(crate) mod threads;
pub(crate) mod user_types;

pub(crate) use std::cell::{Cell, RefCell};
pub(crate) use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
pub(crate) use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
pub(crate) use std::pin::pin;
pub(crate) use std::ptr::{self, NonNull};
pub(crate) use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize,
};
pub(crate) use std::sync::mpsc::{self, Receiver, Sender};
pub(crate) use std::sync::{Arc, Barrier, LazyLock, Mutex, OnceLock, Weak};
pub(crate) use std::task::{Context, Poll, Wake, Waker};
pub(crate) use std::thread;
pub(crate) use std::time::{Duration, Instant};

use quiescence::hazard::HazardDomain;
use quiescence::tag::DomainTag;
pub(crate) use quiescence::tag::Private;
use quiescence::tuning::Tuning;
#[cfg(target_os = "linux")]
use quiescence::tuning::{Fences, PerCpuPath};
pub(crate) use quiescence::{AtLimit, Domain, Rcu, RcuOption, Srcu, Weigh};

pub(crate) use again::*;
#[cfg(target_os = "linux")]
pub(crate) use filter::*;
#[cfg(unix)]
pub(crate) use processes::*;
pub(crate) use random::Random;
pub(crate) use threads::*;
pub(crate) use user_types::{Counted, Dropped, Woken, hasher};

/// So many rounds, or bytes, or threads; fewer under Miri, which takes a thousand times as long.
pub(crate) const fn rounds<T: Copy>(many: T, under_miri: T) -> T {
    if cfg!(miri) { under_miri } else { many }
}

/// A domain that lives for ever. `.ci/leaks` knows this function, and Miri finds the domain here.
pub(crate) fn lasting_domain() -> &'static Domain {
    static ALL: Mutex<Vec<&Domain>> = Mutex::new(Vec::new());
    let domain: &Domain = Box::leak(Box::default());
    ALL.lock().unwrap().push(domain);
    domain
}

/// Calls `f` while another thread is in a section of `domain`, which ends when `f` calls its
/// argument, returns or panics.
pub(crate) fn beside_a_section<K: DomainTag, R>(
    domain: &Domain<K>,
    f: impl FnOnce(&dyn Fn()) -> R,
) -> R {
    while_held(|| domain.read(), f)
}

/// A closure that counts its calls.
pub(crate) fn counting(calls: &Arc<AtomicUsize>) -> impl FnMut() + Send + use<> {
    let calls = Arc::clone(calls);
    // Release: as where `Dropped` is dropped.
    move || _ = calls.fetch_add(1, Release)
}

/// Has `f` called where the calling thread's locals are destroyed: after the library's own, if the
/// thread has not used the library yet, else before them.
pub(crate) fn at_thread_end(f: impl FnMut() + 'static) {
    type AtEnd = OnDrop<Box<dyn FnMut()>>;
    thread_local! {
        static AT_END: RefCell<Vec<AtEnd>> = const { RefCell::new(Vec::new()) };
    }
    AT_END.with_borrow_mut(|all| all.push(OnDrop(Box::new(f))));
}

/// Lets other threads run until some updater has gone to sleep in `domain`.
pub(crate) fn until_an_updater_sleeps<K: DomainTag>(domain: &Domain<K>) {
    until(|| domain.statistics().sleeps != 0);
}

/// Has another thread call `update` beside a section of `domain` until it sleeps there. `f` is
/// called then; it still sleeps afterwards, and comes to its end when the section has.
pub(crate) fn beside_a_sleeper<K: DomainTag, R>(
    domain: &Domain<K>,
    update: impl FnOnce() + Send,
    f: impl FnOnce() -> R,
) -> R {
    beside_a_section(domain, |leave| {
        thread::scope(|scope| {
            let sleeper = scope.spawn(update);
            until_an_updater_sleeps(domain);
            let at_the_end = OnDrop(leave);
            let result = f();
            assert!(!sleeper.is_finished());
            drop(at_the_end);
            sleeper.join().unwrap();
            result
        })
    })
}

/// Keeps the worker in a callback until what is returned is dropped.
pub(crate) fn occupy_the_worker() -> impl Sized {
    // Of a domain of its own, whose end would run it.
    let (busy, (blocks, entered, leave)) = (Domain::new(), gate());
    busy.call_hurry(blocks).unwrap();
    entered.recv().unwrap();
    (leave, busy)
}

/// The thread that runs a callback of a domain in which nothing else continues.
pub(crate) fn worker() -> thread::ThreadId {
    let (sender, called) = mpsc::channel();
    let domain = Domain::new(); // which must not end before: the end runs what waits
    domain.call_hurry(move || sender.send(thread::current().id()).unwrap()).unwrap();
    called.recv().expect("a callback of another domain")
}

/// The calling thread, as the system knows it.
#[cfg(target_os = "linux")]
pub(crate) fn thread_id() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// Whether a thread of this process, or none yet (0), sleeps or has ended.
pub(crate) fn sleeps_or_is_gone(thread: u32) -> bool {
    if thread == 0 {
        return false;
    }
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    // The state follows the name, which is in parentheses.
    stat.map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S')))
}

/// Both paths of what counts by CPU, as far as this process has both: environments.
pub(crate) const BOTH: &[&[(&str, &str)]] = &[&[], &[("QUIESCENCE_PERCPU", "portable")]];

/// Where the portable path of what counts by CPU is chosen, or is the only one.
pub(crate) const PORTABLE: [[(&str, &str); 1]; 3] = [
    [("QUIESCENCE_PERCPU", "portable")],
    [("QUIESCENCE_FENCES", "portable")],
    [("GLIBC_TUNABLES", "glibc.pthread.rseq=0")],
];

/// A domain with a limit, and without reports of stalls.
pub(crate) fn domain_with_limit(objects_max: u64, bytes_max: u64) -> Domain {
    let domain = Domain::new();
    set_limit(&domain, objects_max, bytes_max);
    domain
}

/// Sets a domain's limit, and turns its reports of stalls off.
pub(crate) fn set_limit<K: DomainTag>(domain: &Domain<K>, objects_max: u64, bytes_max: u64) {
    tune(domain, |tuning| (tuning.objects_max, tuning.bytes_max) = (objects_max, bytes_max));
    quiet(domain);
}

/// Turns a domain's reports of stalls off.
pub(crate) fn quiet<K: DomainTag>(domain: &Domain<K>) {
    tune(domain, |tuning| (tuning.stall_after, tuning.stall_after_expedited) = (None, None));
}

/// Changes some of a domain's tuning.
pub(crate) fn tune<K: DomainTag>(domain: &Domain<K>, change: impl FnOnce(&mut Tuning)) {
    let mut tuning = domain.tuning();
    change(&mut tuning);
    domain.tune(tuning);
}

/// What a counter says when all has been run that waits in a domain now.
pub(crate) fn settled<K: DomainTag>(domain: &Domain<K>, counter: &AtomicUsize) -> usize {
    domain.barrier();
    counter.load(Acquire)
}

/// Nothing waits in a domain after that.
#[track_caller]
pub(crate) fn assert_all_has_run<K: DomainTag>(domain: &Domain<K>) {
    domain.barrier();
    assert_nothing_waits(domain);
}

#[track_caller]
pub(crate) fn assert_nothing_waits<K: DomainTag>(domain: &Domain<K>) {
    let statistics = domain.statistics();
    assert_eq!((statistics.callbacks_waiting(), statistics.bytes_waiting), (0, 0));
}

/// A context whose waker does nothing.
pub(crate) fn no_context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// A waker that calls a function.
pub(crate) fn waker_of(wakes: impl Fn() + Send + Sync + 'static) -> Waker {
    struct Calls<F>(F);
    impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
        fn wake(self: Arc<Self>) {
            (self.0)();
        }
    }
    Arc::new(Calls(wakes)).into()
}

/// Polls a future on this thread until it is ready, which parks until it is woken. Returns how
/// often it was woken as well.
pub(crate) fn block_on<F: Future>(future: F) -> (F::Output, usize) {
    struct Unpark(thread::Thread, AtomicUsize);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.1.fetch_add(1, Release);
            self.0.unpark();
        }
    }
    let unpark = Arc::new(Unpark(thread::current(), AtomicUsize::new(0)));
    let waker = unpark.clone().into();
    let mut future = pin!(future);
    loop {
        let woken = unpark.1.load(Acquire);
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return (output, woken),
            Poll::Pending => {
                while unpark.1.load(Acquire) == woken {
                    thread::park();
                }
            }
        }
    }
}

/// The same of a domain of hazard pointers.
pub(crate) fn tune_hazards(domain: &HazardDomain, change: impl FnOnce(&mut Tuning)) {
    let mut tuning = domain.tuning();
    change(&mut tuning);
    domain.tune(tuning);
}

/// Runs all other tests of these modules once more in a process with this in its environment,
/// unless that is where we are. For a test of one of the modules.
pub(crate) fn again_in_a_process_with(modules: &[&str], name: &str, value: &str) {
    const MARK: &str = "QUIESCENCE_TESTED_AGAIN";
    if cfg!(miri) || std::env::var_os(MARK).is_some() {
        return portable_fences_are_in_force_if_asked_for();
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(modules.iter().map(|module| format!("{module}::")));
    command.env(name, value).env(MARK, "1");
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "with {name}={value}: {told}");
    assert!(!told.contains("running 0 tests"), "{told}");
}

/// `QUIESCENCE_FENCES` is set to nothing else in tests.
pub(crate) fn portable_fences_are_in_force_if_asked_for() {
    let is_asked = std::env::var_os("QUIESCENCE_FENCES").is_some();
    assert!(!is_asked || quiescence::tuning::fences() == quiescence::tuning::Fences::Portable);
}

/// Where the machine is known to have them, no test falls back to the portable paths unless it was
/// asked to.
#[test]
#[cfg(target_os = "linux")]
fn the_paths_are_those_that_are_expected() {
    expect::is_expected("membarrier"); // complains of words that mean nothing
    let is_portable = |name| std::env::var_os(name).is_some_and(|value| value == "portable");
    if quiescence::tuning::fences() == Fences::Portable && !is_portable("QUIESCENCE_FENCES") {
        expect::skip("membarrier", "membarrier(2)", "", "use Linux 4.14 or later, unfiltered");
    }
    let _: bool = expect::sequences(quiescence::tuning::per_cpu_path() == PerCpuPath::Restartable);
}
