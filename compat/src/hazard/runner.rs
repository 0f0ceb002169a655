//! The thread that reclaims what hazard pointers protect no longer. It starts with the first object
//! that is retired, and ends when there has been nothing to do for ten seconds.
//!
//! Its state is one word. The thread that retires the first object of a scan asks for it
//! ([`wake`]): the state becomes [`WANTED`], from whatever it was. The runner says [`LOOKING`]
//! before it scans, and [`ASLEEP`] or [`ABSENT`] by a compare-exchange from that, which fails if
//! somebody has asked meanwhile. So each request is followed by a scan [HP-3].
//!
//! After a scan that found something it waits for company, a millisecond: a steady flow of objects
//! is one scan a millisecond, and no system call of threads that retire. A thread that waits for
//! room ends that.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::{Duration, Instant};

use super::{may_wait, scan};
use crate::errno_guard::with_errno;
use crate::flavor::{Flavor, begin_without_flavor};
use crate::futex::{sleep, wake_all};
use crate::{reader, threads};

/// There is no runner.
const ABSENT: u32 = 0;
/// It waits until it is wanted.
const ASLEEP: u32 = 1;
/// It scans, or waits for company.
const LOOKING: u32 = 2;
/// It is to scan from the beginning.
const WANTED: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(ABSENT);

/// Counts the threads that would not have it wait for others, and the scans that are over for those
/// that wait for room.
static HURRY: AtomicU32 = AtomicU32::new(0);
static SCANS: AtomicU32 = AtomicU32::new(0);

const COMPANY: Duration = Duration::from_millis(1);
const IDLE_AFTER: Duration = Duration::from_secs(10);
const ROOM_WITHIN: Duration = Duration::from_millis(10);

thread_local! {
    /// Whether the calling thread is the runner.
    static IS_THIS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is the runner: a deleter runs.
pub(super) fn is_this() -> bool {
    IS_THIS.get()
}

/// Whether there is no runner: the system gave none, or a fork did not bring it along.
pub(super) fn is_absent() -> bool {
    STATE.load(Relaxed) == ABSENT // a hint; `wake` finds out
}

/// Has the runner scan for all that was retired by now.
#[cold]
pub(super) fn wake() {
    // First: a child is to find that there is no runner, whatever the state says.
    begin_without_flavor();
    // AcqRel: pairs with the runner's exchanges [HP-3]: what comes before this is seen by its next
    // scan.
    match STATE.swap(WANTED, AcqRel) {
        ABSENT => with_errno(start),
        ASLEEP => with_errno(|| wake_all(&STATE)), //~ hazard-wake
        _ => {}
    }
}

/// Starts the thread. If the system gives none, the next one to retire tries again.
fn start() {
    extern "C" fn main(_: *mut c_void) -> *mut c_void {
        threads::name(c"hazard_pointer");
        IS_THIS.set(true);
        // Deleters may read by C's functions, as callbacks may.
        if Flavor::Memb.is_attached() {
            reader::register_implicitly(Flavor::Memb);
        }
        run();
        ptr::null_mut()
    }
    match threads::spawn(main, ptr::null_mut()) {
        // SAFETY: a thread that no other knows.
        Some(thread) => _ = unsafe { libc::pthread_detach(thread) },
        // AcqRel: as in `wake`.
        None => _ = STATE.swap(ABSENT, AcqRel),
    }
}

fn run() {
    loop {
        // AcqRel: pairs with the exchange in `wake` [HP-3].
        STATE.swap(LOOKING, AcqRel);
        let hurry = HURRY.load(Acquire); // pairs with the addition in `wait_for_room`
        let found = scan();
        // AcqRel: pairs with the load in `wait_for_room`; the room is there.
        SCANS.fetch_add(1, AcqRel);
        wake_all(&SCANS);
        if found {
            sleep(&HURRY, hurry, Some(COMPANY));
        }
        if rests() {
            return;
        }
    }
}

/// Sleeps until the runner is wanted. True if there was nothing to do for long, and it is none any
/// more.
fn rests() -> bool {
    // AcqRel, Acquire: as above.
    if STATE.compare_exchange(LOOKING, ASLEEP, AcqRel, Acquire).is_err() {
        return false;
    }
    let since = Instant::now();
    loop {
        sleep(&STATE, ASLEEP, Some(IDLE_AFTER));
        if STATE.load(Acquire) != ASLEEP {
            return false;
        }
        if since.elapsed() >= IDLE_AFTER {
            return STATE.compare_exchange(ASLEEP, ABSENT, AcqRel, Acquire).is_ok();
        }
    }
}

/// Waits until there is room, but 10 ms at most; not where something would wait for the calling
/// thread meanwhile.
#[cold]
pub(super) fn wait_for_room(is_room: impl Fn() -> bool) {
    if !may_wait() {
        return;
    }
    let wait = || {
        let until = Instant::now() + ROOM_WITHIN;
        loop {
            let scans = SCANS.load(Acquire); // pairs with the addition in `run`
            let left = until.saturating_duration_since(Instant::now());
            if is_room() || left.is_zero() {
                return;
            }
            // AcqRel: pairs with the load in `run`.
            HURRY.fetch_add(1, AcqRel);
            wake_all(&HURRY);
            sleep(&SCANS, scans, Some(left));
        }
    };
    with_errno(wait);
}

/// In a child process, whose only thread this is.
pub(super) fn forget() {
    STATE.store(ABSENT, Relaxed); // no other thread sees it
}
