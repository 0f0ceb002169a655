//! Forks and waits in places where the caller does not expect them.

use crate::common::*;

use quiescence::callback_queue::{self, CallbackQueue, Wakes};
use quiescence::{ArcCell, cell::Snapshot, tuning::PerCpuPath};

use crate::heads::push;

/// Children of one run.
const CHILDREN: u32 = 40;

static IS_CHILD: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicU32 = AtomicU32::new(0);
static FAILED: AtomicI32 = AtomicI32::new(0);
/// Children that have ended.
static ENDED: AtomicU32 = AtomicU32::new(0);
/// The thread that loads.
static LOADS: AtomicU32 = AtomicU32::new(0);

/// Forks on top of whatever is being done. The parent waits for the child, whose time is limited;
/// the child returns.
extern "C" fn fork_here(_: libc::c_int) {
    let elsewhere = LOADS.load(SeqCst) != thread_id();
    let over = IS_CHILD.load(SeqCst) || FAILED.load(SeqCst) != 0;
    if elsewhere || over || FORKED.fetch_add(1, SeqCst) >= CHILDREN {
        return;
    }
    // SAFETY: the child has this thread only, continues where it was interrupted, and ends by
    // `_exit`.
    match unsafe { libc::fork() } {
        -1 => FAILED.store(-1, SeqCst),
        0 => {
            // SAFETY: a child that waits for ever is killed.
            unsafe { libc::alarm(10) };
            IS_CHILD.store(true, SeqCst);
        }
        child => {
            let status = status_of(child);
            if status != 0 {
                FAILED.store(status, SeqCst);
            }
            ENDED.fetch_add(1, SeqCst);
        }
    }
}

struct Places {
    cell: ArcCell<u64>,
    snapshot: Snapshot<[u64; 40]>,
}

fn places() -> &'static Places {
    static PLACES: OnceLock<Places> = OnceLock::new();
    PLACES.get_or_init(|| Places {
        cell: ArcCell::new(Arc::new(1)),
        snapshot: Snapshot::new([1; 40]),
    })
}

/// Stores and loads; another thread does so as well. Ends the child.
fn store_in_child(places: &'static Places) -> ! {
    let store = |value: u64| {
        places.cell.store(Arc::new(value));
        places.snapshot.store([value; 40]);
        assert_eq!((*places.cell.load(), places.snapshot.load()), (value, [value; 40]));
    };
    store(2);
    let other = thread::spawn(move || (3..20).for_each(store));
    let whole = other.join().is_ok();
    store(20);
    end_child(whole)
}

/// A handler forks on top of loads, most of which are fallback sections; the child continues with
/// the load, and stores then.
#[test]
fn a_store_in_a_child_waits_for_no_section_that_the_fork_interrupted() {
    in_its_own_process!(&[("QUIESCENCE_PERCPU", "portable")]);
    assert_eq!(quiescence::tuning::per_cpu_path(), PerCpuPath::Portable);
    let places = places();
    LOADS.store(thread_id(), SeqCst);
    // It forks on top of this thread's loads only, which take no lock.
    storm::handle(libc::SIGPROF, fork_here);
    let every = libc::timeval { tv_sec: 0, tv_usec: 2_000 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: CPU time of this process.
    let set = unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut()) };
    assert_eq!(set, 0);
    while FORKED.load(SeqCst) < CHILDREN && FAILED.load(SeqCst) == 0 {
        for _ in 0..100 {
            let value = *places.cell.load();
            assert!(value > 0 && places.snapshot.load()[39] > 0);
        }
        if IS_CHILD.load(SeqCst) {
            store_in_child(places);
        }
    }
    assert_eq!(FAILED.load(SeqCst), 0, "a child failed, or was killed");
}

/// A handler forks on top of a wait for room; in the child the thread comes back from a wait that
/// the fork has forgotten.
#[test]
fn a_child_that_comes_back_from_a_wait_for_room_has_room() {
    in_its_own_process!();
    let domain = domain_with_limit(100, 1 << 30);
    let (queue, ran) = (CallbackQueue::new(&domain, Wakes::Runner), Arc::<AtomicUsize>::default());
    let is_crowded = || push(&queue, counting(&ran)).crowded;
    assert!((0..101).any(|_| is_crowded()));
    // It forks on top of a wait only, in which this thread has let its locks go.
    storm::handle(libc::SIGUSR2, fork_here);
    let process = std::process::id().cast_signed();
    let waiter = thread_id();
    LOADS.store(waiter, SeqCst);
    let is_over = || FORKED.load(SeqCst) >= CHILDREN || FAILED.load(SeqCst) != 0;
    let signals = thread::spawn(move || {
        while !is_over() {
            // SAFETY: to a thread that waits for this one.
            unsafe { libc::syscall(libc::SYS_tgkill, process, waiter, libc::SIGUSR2) };
            thread::yield_now();
        }
    });
    while !is_over() && !IS_CHILD.load(SeqCst) {
        callback_queue::wait_for_room(&domain);
    }
    LOADS.store(0, SeqCst); // from here on no signal forks
    if IS_CHILD.load(SeqCst) {
        domain.barrier();
        let crowded = (0..90).filter(|_| is_crowded()).count();
        end_child(crowded == 0);
    }
    signals.join().unwrap();
    assert_eq!(FAILED.load(SeqCst), 0, "a child failed, or was killed");
}

/// A handler forks on top of a wait for a change, and the kernel continues the wait in the child,
/// where no other thread could end it.
#[test]
fn a_child_comes_back_from_a_wait_for_a_change() {
    in_its_own_process!();
    storm::handle(libc::SIGUSR2, fork_here);
    let (process, waiter) = (std::process::id().cast_signed(), thread_id());
    LOADS.store(waiter, SeqCst);
    let cell = Rcu::new(0);
    let mut version = cell.version();
    thread::scope(|scope| {
        scope.spawn(|| {
            until(|| sleeps_or_is_gone(waiter));
            // SAFETY: to a thread that waits for this one.
            unsafe { libc::syscall(libc::SYS_tgkill, process, waiter, libc::SIGUSR2) };
            until(|| ENDED.load(SeqCst) != 0);
            cell.store(1);
        });
        cell.wait_changed(&mut version);
        if IS_CHILD.load(SeqCst) {
            end_child(*cell.read() == 0);
        }
    });
    assert_eq!((FAILED.load(SeqCst), *cell.read()), (0, 1), "the child failed, or was killed");
}

/// One that has gone over the limit in a section waits where the section ends, unless others have
/// made room by then.
#[test]
fn the_end_of_a_section_waits_for_nothing_where_others_have_made_room() {
    let domain = domain_with_limit(1, 1 << 30);
    let (sender, ended) = mpsc::channel();
    let reader = domain.read(); // who waited would wait for this one
    let section = || {
        let guard = domain.read();
        domain.retire(Box::new(1)).unwrap();
        domain.retire(Box::new(2)).unwrap(); // over the limit
        assert!(domain.retire(Box::new(3)).is_err(), "and no second one");
        (guard, OnDrop(move || sender.send(()).unwrap()))
    };
    while_held(section, |leave| {
        tune(&domain, |tuning| tuning.objects_max = 100);
        leave();
        ended.recv().unwrap();
        drop(reader);
    });
    domain.barrier();
}
