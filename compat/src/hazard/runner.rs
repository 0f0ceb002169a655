//! The *runner*: the thread that reclaims objects that no hazard pointer protects. It starts when
//! the first object is retired, and stays: later the process may not be able to make threads.
//!
//! Its state is one word. A thread that retires an object onto the empty stack requests a scan
//! ([`wake`]): the state becomes [`WANTED`], whatever it was. The runner stores [`LOOKING`] before
//! it scans. It stores [`ASLEEP`] by a compare-exchange that fails if a scan was requested
//! meanwhile. So each request is followed by a scan [HP-3].
//!
//! After a scan that found objects it waits [`COMPANY`] for more: with a steady flow of objects it
//! scans once a millisecond, and threads that retire make no system call. A thread that waits for
//! room cuts that wait short.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

use quiescence::liburcu_readers::Vain;
use quiescence::liburcu_readers::system::{futex_wait, futex_wake};

use super::{may_wait, scan};
use crate::errno_guard::with_errno;
use crate::flavor::{Flavor, begin_without_flavor};
use crate::{reader, threads};

/// There is no runner.
const ABSENT: u32 = 0;
/// It sleeps until a scan is requested.
const ASLEEP: u32 = 1;
/// It scans, or waits for more objects.
const LOOKING: u32 = 2;
/// Another scan is requested.
const WANTED: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(ABSENT);

/// `HURRY` counts requests that the runner not wait for more objects. `SCANS` counts the scans that
/// have ended: threads that wait for room sleep on it.
static HURRY: AtomicU32 = AtomicU32::new(0);
static SCANS: AtomicU32 = AtomicU32::new(0);

/// A [`Vain`], which begins anew when a deleter returns.
static VAIN: AtomicU64 = AtomicU64::new(0);

const COMPANY: Duration = Duration::from_millis(1);
const ROOM_WITHIN: Duration = Duration::from_millis(10);

thread_local! {
    /// Whether the calling thread is the runner.
    static IS_THIS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is the runner, and so in a deleter.
pub(super) fn is_this() -> bool {
    IS_THIS.get()
}

/// Whether there is no runner: none was needed yet, the system provided no thread, or this is a
/// child process.
pub(super) fn is_absent() -> bool {
    STATE.load(Relaxed) == ABSENT // a hint; `wake` decides
}

/// Requests a scan of all objects that have been retired.
#[cold]
pub(super) fn wake() {
    // First: it installs the handlers for `fork`, which store `ABSENT` in a child.
    begin_without_flavor();
    // AcqRel: pairs with the runner's exchanges [HP-3]: its next scan sees what comes before this.
    match STATE.swap(WANTED, AcqRel) {
        ABSENT => with_errno(start),
        ASLEEP => with_errno(|| futex_wake(&STATE, true)), //~ hazard-wake
        _ => {}
    }
}

/// Starts the runner. If the system provides no thread, the next thread that retires tries again.
fn start() {
    extern "C" fn main(_: *mut c_void) -> *mut c_void {
        threads::name(c"hazard_pointer");
        IS_THIS.set(true);
        register();
        run()
    }
    match threads::spawn(main, ptr::null_mut()) {
        // SAFETY: no other thread has its id.
        Some(thread) => _ = unsafe { libc::pthread_detach(thread) },
        // AcqRel: as in `wake`.
        None => _ = STATE.swap(ABSENT, AcqRel),
    }
}

/// Makes the runner a reader, before its first deleter and after each: they may use C's readers, as
/// callbacks may.
pub(super) fn register() {
    // Another number even if nothing was in vain: no wait that has begun counts.
    VAIN.store(Vain(VAIN.load(Relaxed)).anew(0), Relaxed);
    if Flavor::Memb.is_attached() {
        reader::register_implicitly(Flavor::Memb);
    }
}

fn run() -> ! {
    loop {
        // AcqRel: pairs with the exchange in `wake` [HP-3].
        STATE.swap(LOOKING, AcqRel);
        let hurry = HURRY.load(Acquire); // pairs with the addition in `wait_for_room`
        let found = scan();
        // AcqRel: pairs with the load in `wait_for_room`: that thread sees the room.
        SCANS.fetch_add(1, AcqRel);
        futex_wake(&SCANS, true);
        if found {
            futex_wait(&HURRY, true, hurry, Some(COMPANY));
        }
        // AcqRel, Acquire: as above.
        if STATE.compare_exchange(LOOKING, ASLEEP, AcqRel, Acquire).is_ok() {
            while STATE.load(Acquire) == ASLEEP {
                futex_wait(&STATE, true, ASLEEP, None); // until a scan is requested
            }
        }
    }
}

/// Waits until there is room, for at most [`ROOM_WITHIN`]; not if a deleter may wait for the
/// calling thread. A deleter may also want a lock that the caller holds, so after waits in vain not
/// every call waits, which `number` counts.
#[cold]
pub(super) fn wait_for_room(number: usize, is_room: impl Fn() -> bool) {
    let vain = VAIN.load(Relaxed); // a hint
    if !Vain(vain).waits(number as u64) || !may_wait() {
        return;
    }
    let wait = || {
        let until = Instant::now() + ROOM_WITHIN;
        loop {
            let scans = SCANS.load(Acquire); // pairs with the addition in `run`
            let left = until.saturating_duration_since(Instant::now());
            if is_room() {
                return;
            }
            if left.is_zero() {
                // Once for all threads that have waited meanwhile. Relaxed: a hint.
                _ = VAIN.compare_exchange(vain, vain.wrapping_add(1), Relaxed, Relaxed);
                return;
            }
            // AcqRel: pairs with the load in `run`.
            HURRY.fetch_add(1, AcqRel);
            futex_wake(&HURRY, true);
            futex_wait(&SCANS, true, scans, Some(left));
        }
    };
    with_errno(wait);
}

/// In a child process, on its only thread.
pub(super) fn forget() {
    STATE.store(ABSENT, Relaxed); // no other thread sees it
}
