//! Counts by CPU, and fences, in all environments: each test that needs one of its own runs in a
//! process of its own, where everything is counted exactly and grace periods end.
#![cfg(target_os = "linux")]

use crate::common::*;
use std::os::unix::process::ExitStatusExt;

use quiescence::sync::Counter;
use quiescence::{
    ArcCell,
    cell::Snapshot,
    tuning::{Fences, PerCpuPath},
};
use shuffle::{cpus, move_to};

fn restartable() -> bool {
    expect::sequences(quiescence::tuning::per_cpu_path() == PerCpuPath::Restartable)
}

/// What threads count, and what they read; `count` is to be called as often as they like.
#[derive(Default)]
struct Shared {
    counter: Counter,
    domain: Srcu,
    words: Snapshot<[u64; 3]>,
    cell: ArcCell<u64>,
    expected: AtomicI64,
}

impl Shared {
    /// A little of everything that counts by CPU.
    fn count(&self, amount: i64) {
        let guard = self.domain.read();
        self.counter.add(1);
        self.counter.add(amount);
        let words = self.words.load();
        assert_eq!(words, [words[0]; 3], "torn");
        assert!(*self.cell.load() < 1 << 40);
        drop(guard);
        self.expected.fetch_add(1 + amount, Relaxed);
    }

    /// Replaces what is read, and waits until no thread reads what was.
    fn replace(&self, round: u64) {
        self.words.store([round; 3]);
        self.cell.store(Arc::new(round));
        self.domain.synchronize_expedited();
    }

    /// Nothing was lost or counted twice, and no thread is in a section.
    fn check(&self) {
        self.domain.synchronize();
        assert_eq!(self.counter.sum(), self.expected.load(Relaxed));
        assert_eq!(Arc::strong_count(&self.cell.load_full()), 2, "the cell's and this one");
    }
}

/// More threads than CPUs count, while one replaces what they read, there and in the global domain.
/// `begin` is called by each of them first.
fn exercise_after(begin: impl Fn(usize) + Sync) {
    let shared = Shared::default();
    let (global, value) = (Domain::global(), Rcu::new(0));
    let round = AtomicU64::new(0);
    let replace = |_| {
        || {
            let round = round.fetch_add(1, Relaxed);
            shared.replace(round);
            value.store(round);
            global.synchronize();
        }
    };
    let count = |thread| {
        begin(thread);
        let (reader, mut last) = (global.reader(), 0);
        for round in 0..20_000 {
            shared.count(round & 7);
            let (guard, nested) = (reader.read(), quiescence::read());
            let seen = *value.load(&guard);
            assert!(*value.load(&nested) >= seen && seen >= last);
            last = seen;
        }
    };
    beside(1, replace, || threads(4, count));
    shared.check();
    let guard = quiescence::read();
    let cookie = global.start_poll();
    assert!(!global.poll(cookie));
    drop(guard);
    global.wait(cookie);
    global.barrier();
}

fn exercise() {
    exercise_after(|_| ());
}

#[test]
fn here_it_is_exact_on_both_paths() {
    in_its_own_process!(each of BOTH);
    exercise();
}

/// What the environment forbids is not used.
#[test]
fn the_environment_chooses_the_portable_path() {
    in_its_own_process!(each of PORTABLE);
    assert_eq!(quiescence::tuning::per_cpu_path(), PerCpuPath::Portable);
    portable_fences_are_in_force_if_asked_for();
    exercise();
}

const RESTART: u32 = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ as u32;
const REGISTER_RESTART: u32 = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ as u32;

#[test]
fn what_is_forbidden_at_the_beginning_is_not_used() {
    let Some(role) = role() else {
        // Elsewhere the C library's own threads are made by `clone`, too.
        let clone = cfg!(target_arch = "x86_64").then_some("clone");
        let always = ["membarrier", "restart", "register", "nanosleep"];
        for role in always.into_iter().chain(clone) {
            passes_again(this_test!(), role, &[]);
        }
        return;
    };
    match role.as_str() {
        "membarrier" => forbid(libc::SYS_membarrier, None),
        "restart" => forbid(libc::SYS_membarrier, Some(RESTART)),
        "register" => forbid(libc::SYS_membarrier, Some(REGISTER_RESTART)),
        // Of the trial's calls, this one left its errno behind.
        "nanosleep" => forbid(libc::SYS_nanosleep, None),
        // The trial needs a thread, and makes it by this call. (The C library uses another one.)
        _ => forbid(libc::SYS_clone, None),
    }
    *errno() = 77;
    assert_eq!(quiescence::tuning::per_cpu_path(), PerCpuPath::Portable);
    assert_eq!(*errno(), 77, "a handler that chooses leaves errno as it is");
    assert!(role != "membarrier" || quiescence::tuning::fences() == Fences::Portable);
    exercise();
    // At once: a sanitizer would start a process to look for leaks, which is forbidden.
    println!("1 passed");
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) }
}

#[test]
fn what_is_forbidden_later_ends_the_process_with_the_reason() {
    if let Some(role) = role() {
        let of_fences = role == "fences";
        let is_there = match of_fences {
            true => quiescence::tuning::fences() == Fences::Membarrier,
            false => restartable(),
        };
        if is_there {
            forbid(libc::SYS_membarrier, (role == "restart").then_some(RESTART));
            if of_fences {
                // Beside a thread that is registered all the time, or none is called for.
                while_held(|| Domain::global().reader(), |_| quiescence::synchronize());
            } else {
                Snapshot::new([0_u64; 2]).store([1; 2]);
            }
            panic!("the process goes on");
        }
        eprintln!("QUIESCENCE_FENCES=portable"); // nothing to lose where it never was
        std::process::abort();
    }
    for role in ["fences", "membarrier", "restart"] {
        let output = again(this_test!(), role, &[]);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{role}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("QUIESCENCE_FENCES=portable"), "{said}");
    }
}

/// Where CPUs have numbers that are too great for words of their own.
#[test]
fn cpus_without_words_count_in_those_that_all_share() {
    let one = ("QUIESCENCE_PERCPU_SLOTS", "1");
    in_its_own_process!(each of [&[one][..], &[one, ("QUIESCENCE_PERCPU", "portable")]]);
    exercise();
}

#[test]
fn threads_that_are_moved_about_count_exactly() {
    in_its_own_process!(each of BOTH);
    let shared = Shared::default();
    let cpus = cpus();
    threads(5, |thread| match thread {
        0 => (0..100).for_each(|round| shared.replace(round)),
        _ => {
            for round in 0..500 {
                move_to(&cpus, round + thread);
                (0..20).for_each(|amount| shared.count(amount));
            }
        }
    });
    shared.check();
}

#[test]
fn threads_on_one_cpu_count_exactly() {
    in_its_own_process!(each of BOTH);
    let last = [*cpus().last().unwrap()];
    move_to(&last, 0); // also while the choice is made
    exercise_after(|_| move_to(&last, 0));
}

/// Takes a CPU away while threads count on it, and gives it back. Only if it is asked for, since
/// that is everybody's: `QUIESCENCE_TEST_HOTPLUG=1`, as root.
#[test]
fn cpus_may_come_and_go() {
    let file = "/sys/devices/system/cpu/cpu1/online";
    if std::env::var_os("QUIESCENCE_TEST_HOTPLUG").is_none() {
        let remedy = "set QUIESCENCE_TEST_HOTPLUG=1, as root";
        return expect::skip("hotplug", "leave to take CPUs away", "", remedy);
    }
    let shared = Shared::default();
    let count = |_| || shared.count(1);
    beside(4, count, || {
        for round in 0..6 {
            std::fs::write(file, if round % 2 == 0 { "0" } else { "1" }).unwrap();
            (0..100).for_each(|round| shared.replace(round));
        }
    });
    shared.check();
}

#[test]
#[cfg(all(target_env = "gnu", target_arch = "x86_64"))]
fn threads_without_an_area_count_with_the_others() {
    in_its_own_process!();
    if restartable() {
        exercise_after(|thread| {
            if thread % 2 == 0 {
                let done = shuffle::unregister_rseq();
                assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
            }
        });
    }
}

#[test]
fn a_child_made_by_fork_goes_on_counting() {
    in_its_own_process!(each of BOTH);
    let shared = Shared::default();
    let come_and_go = |_| {
        || {
            let grown = Counter::new();
            (0..200).for_each(|_| grown.add(1));
        }
    };
    beside(1, come_and_go, || {
        (0..1_000).for_each(|amount| shared.count(amount));
        for _ in 0..20 {
            in_child(|| {
                (0..1_000).for_each(|amount| shared.count(amount));
                shared.replace(5);
                let more: Vec<_> = (0..100).map(|_| Counter::new()).collect();
                for counter in &more {
                    (0..200).for_each(|_| counter.add(1));
                    assert_eq!(counter.sum(), 200);
                }
                drop(more);
                shared.check();
                exercise(); // with threads
            });
        }
        shared.check();
    });
}

/// In a process that forks while another thread makes the choice, the child makes its own.
#[test]
fn a_fork_in_the_midst_of_the_choice_leaves_nothing_half_done() {
    in_its_own_process!(each of [&[][..]; 10]);
    let begin = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            begin.wait();
            quiescence::tuning::per_cpu_path()
        });
        begin.wait();
        in_child(|| {
            let path = quiescence::tuning::per_cpu_path();
            assert_eq!(path, quiescence::tuning::per_cpu_path());
            exercise();
        });
    });
}

/// What the handler counts in.
static IN_HANDLER: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
static HANDLED: AtomicU32 = AtomicU32::new(0);

/// Counts, and reads, in a handler; but takes no `Arc`, which it might be the last to have.
extern "C" fn handle(_: libc::c_int) {
    HANDLED.fetch_add(1, Relaxed);
    // SAFETY: null, or what a test shares as long as there are signals.
    let Some(shared) = (unsafe { IN_HANDLER.load(Acquire).as_ref() }) else { return };
    let guard = shared.domain.read();
    shared.counter.add(1);
    let words = shared.words.load();
    if words != [words[0]; 3] {
        std::process::abort();
    }
    drop(guard);
    shared.expected.fetch_add(1, Relaxed);
}

fn errno() -> &'static mut libc::c_int {
    // SAFETY: asks for the place of the thread's own word.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: there for as long as the thread.
    unsafe { &mut *place }
}

#[test]
fn a_handler_may_be_the_first_who_counts() {
    in_its_own_process!(each of BOTH);
    storm::handle(libc::SIGUSR1, handle);
    let shared = Shared::default();
    IN_HANDLER.store((&raw const shared).cast_mut(), Release);
    *errno() = 77;
    for _ in 0..500 {
        // SAFETY: a signal for this thread, whose handler is installed.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
    }
    assert_eq!(*errno(), 77, "a handler that counts leaves errno as it is");
    quiescence::tuning::per_cpu_path();
    (0..500).for_each(|amount| shared.count(amount));
    assert_eq!(*errno(), 77);
    IN_HANDLER.store(ptr::null_mut(), Release);
    shared.check();
}

#[test]
fn handlers_count_in_between() {
    in_its_own_process!(each of BOTH);
    storm::handle(libc::SIGUSR1, handle);
    let shared = Shared::default();
    IN_HANDLER.store((&raw const shared).cast_mut(), Release);
    let targets: [storm::Target; 3] = Default::default();
    let enough = [const { AtomicBool::new(false) }; 3];
    let count = |thread: usize| {
        let (enough, shared) = (&enough[thread], &shared);
        let (handled, mut round) = (HANDLED.load(Relaxed), 0);
        targets[thread].is_here(move || {
            shared.count(round & 7);
            let place = Counter::new(); // a handler may come while it grows, too
            (0..70).for_each(|_| place.add(1));
            assert_eq!(place.sum(), 70);
            round += 1;
            // As long as it takes for signals to come in between.
            if round >= 20_000 && HANDLED.load(Relaxed) - handled >= 1_000 {
                enough.store(true, Release);
            }
        })
    };
    beside(3, count, || {
        let mut rounds = 0..;
        while !enough.iter().all(|enough| enough.load(Acquire)) {
            storm::send_many(libc::SIGUSR1, &targets);
            rounds.by_ref().take(32).for_each(|round| shared.replace(round));
        }
    });
    IN_HANDLER.store(ptr::null_mut(), Release);
    assert!(HANDLED.load(Relaxed) >= 1_000);
    shared.check();
}

/// Where the system has no memory, counters stay small, and are right.
#[test]
fn without_memory_counters_stay_small() {
    in_its_own_process!(each of BOTH);
    static COUNTER: Counter = Counter::new();
    let none = libc::rlimit { rlim_cur: 1 << 20, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: reads the limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const none) }, 0);
    (0..1_000).for_each(|_| COUNTER.add(1));
    let all = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const all) }, 0);
    assert_eq!(COUNTER.sum(), 1_000);
    (0..1_000).for_each(|_| COUNTER.add(1)); // there is memory again
    assert_eq!(COUNTER.sum(), 2_000);
}

/// Counters are small: the words of many stand side by side in each CPU's pages.
#[test]
fn two_thousand_counters_take_little_memory() {
    const COUNTERS: usize = 2_000;
    in_its_own_process!(each of BOTH);
    let counters: Vec<Counter> = (0..COUNTERS).map(|_| Counter::new()).collect();
    let first = Counter::new();
    (0..1_000).for_each(|_| first.add(1));
    let before = memory::written();
    let cpus = cpus();
    for which in 0..cpus.len() {
        move_to(&cpus, which);
        counters.iter().for_each(|counter| (0..200).for_each(|_| counter.add(1)));
    }
    let taken = memory::written().saturating_sub(before);
    let sum: i64 = counters.iter().map(Counter::sum).sum();
    assert_eq!(sum, (COUNTERS * 200 * cpus.len()) as i64);
    // 8 bytes each on each CPU, in whole pages; and what else a process does meanwhile.
    let words = (COUNTERS * 8).next_multiple_of(4_096) + 4_096;
    assert!(taken <= words * cpus.len() + (64 << 10), "{taken} bytes");
}
