//! `defer_rcu` and its kin: functions that are called with a pointer after a grace period.
//!
//! Each call is a closure of the flavour's domain, in the queue that quiescence keeps for the thread, run by its worker:
//! in order, charged to the limit, counted in the statistics. Never by the thread that defers: it may hold a lock that
//! the function takes.
//!
//! What is kept here is how many calls of a thread have been deferred and how many are done, so that barriers wait for
//! just those: not for `call_rcu`'s callbacks, from which a barrier of deferred calls may well be waited for.
//!
//! Edge [DF-1]: a barrier says what it waits for, then looks at what is done; whoever runs calls counts one, then looks
//! at what is waited for. Both in sequentially consistent order, so one of them sees the other.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quiescence::raw;

use crate::fatal::{debugging, fatal};
use crate::flavor::{FLAVORS, Flavor};
use crate::reader;

type Function = unsafe extern "C" fn(*mut c_void);

/// The calls of one thread in one flavour. Lives for ever, and is another thread's in turn.
#[derive(Debug)]
#[repr(align(128))]
struct Deferrer {
    /// Deferred so far. Written by the thread only.
    deferred: AtomicU64,
    /// Somebody's. Under the lock.
    taken: AtomicBool,
    done: Done,
}

/// What those write who run the calls: on another line.
#[derive(Debug)]
#[repr(align(128))]
struct Done {
    count: AtomicU64,
    /// Somebody sleeps until so many are done; or `NOBODY`.
    awaited: AtomicU64,
}

const NOBODY: u64 = u64::MAX;

/// Counts what barriers were woken for; they sleep on it.
static WOKEN: AtomicU32 = AtomicU32::new(0);

static DEFERRERS: Mutex<[Vec<&'static Deferrer>; FLAVORS]> =
    Mutex::new([const { Vec::new() }; FLAVORS]);

/// In a child process: calls of before the fork may wait, or be lost with a thread that ran them, and nobody has
/// counted which. The first barrier waits for all that is left.
static INHERITED: [AtomicBool; FLAVORS] = [const { AtomicBool::new(false) }; FLAVORS];

thread_local! {
    /// The thread's own; null until it defers, or registers to.
    static OWN: [Cell<*const Deferrer>; FLAVORS] = const { [const { Cell::new(ptr::null()) }; FLAVORS] };
    /// Whether it has registered.
    static REGISTERED: [Cell<bool>; FLAVORS] = const { [const { Cell::new(false) }; FLAVORS] };
    /// Deferred functions that it is running, one inside the other.
    static RUNNING: Cell<u32> = const { Cell::new(0) };
}

fn deferrers() -> MutexGuard<'static, [Vec<&'static Deferrer>; FLAVORS]> {
    DEFERRERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread's own, if it has one.
fn existing(flavor: Flavor) -> Option<&'static Deferrer> {
    let own = OWN.with(|own| own[flavor.index()].get());
    // SAFETY: null, or one that lives for ever.
    unsafe { own.as_ref() }
}

/// The calling thread's own.
fn own(flavor: Flavor) -> &'static Deferrer {
    existing(flavor).unwrap_or_else(|| {
        let own = adopt(flavor);
        OWN.with(|place| place[flavor.index()].set(own));
        reader::attend_end();
        own
    })
}

/// One that is nobody's, and has nothing left.
#[cold]
fn adopt(flavor: Flavor) -> &'static Deferrer {
    let mut all = deferrers();
    let list = &mut all[flavor.index()];
    // Relaxed: `taken` is under the lock, and whoever had it before let go under it; what is done is only compared.
    let free = |one: &&&Deferrer| {
        !one.taken.load(Relaxed) && one.done.count.load(Relaxed) == one.deferred.load(Relaxed)
    };
    if let Some(one) = list.iter().find(free) {
        one.taken.store(true, Relaxed);
        return one;
    }
    let one = Box::leak(Box::new(Deferrer {
        deferred: AtomicU64::new(0),
        taken: AtomicBool::new(true),
        done: Done { count: AtomicU64::new(0), awaited: AtomicU64::new(NOBODY) },
    }));
    list.push(one);
    one
}

/// The thread has no more to do with its own; it is free when all is done.
fn let_go(flavor: Flavor) {
    if let Some(own) = existing(flavor) {
        OWN.with(|place| place[flavor.index()].set(ptr::null()));
        let _all = deferrers();
        own.taken.store(false, Relaxed);
    }
}

/// At the end of a thread: what it has deferred is called in its time.
pub(crate) fn thread_ends() {
    for flavor in Flavor::ALL {
        REGISTERED.with(|registered| registered[flavor.index()].set(false));
        let_go(flavor);
    }
}

// ---- one call ----------------------------------------------------------------------------------------

/// A function and what to call it with.
#[derive(Clone, Copy)]
struct Call {
    function: Function,
    argument: *mut c_void,
    deferrer: &'static Deferrer,
}

// SAFETY: C's contract is that the function may be called on any thread.
unsafe impl Send for Call {}

impl Call {
    fn run(self) {
        RUNNING.set(RUNNING.get() + 1);
        // SAFETY: once, after a grace period, by the contract of `quiescence_urcu_defer_rcu`.
        unsafe { (self.function)(self.argument) };
        RUNNING.set(RUNNING.get() - 1);
        self.deferrer.done.one_more();
    }
}

impl Done {
    fn one_more(&self) {
        // SeqCst: [DF-1]; and Release for who waits: what the function did happens before the barrier's end.
        let count = self.count.fetch_add(1, SeqCst) + 1;
        // SeqCst: [DF-1].
        let mut awaited = self.awaited.load(SeqCst);
        while awaited <= count {
            match self.awaited.compare_exchange(awaited, NOBODY, SeqCst, SeqCst) {
                Ok(_) => return wake(),
                Err(now) => awaited = now,
            }
        }
    }

    /// Sleeps until so many are done.
    fn wait_for(&self, count: u64) {
        loop {
            // SeqCst, all of it: [DF-1]. The count of wake-ups comes first: one that comes between is not slept through.
            let woken = WOKEN.load(SeqCst);
            self.awaited.fetch_min(count, SeqCst);
            if self.count.load(SeqCst) >= count {
                return;
            }
            sleep(woken);
        }
    }
}

fn wake() {
    WOKEN.fetch_add(1, SeqCst); // [DF-1]
    let flags = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a wake-up of whoever sleeps on that word.
    unsafe { libc::syscall(libc::SYS_futex, &raw const WOKEN, flags, c_int::MAX) };
}

fn sleep(woken: u32) {
    let flags = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let for_ever = ptr::null::<libc::timespec>();
    // SAFETY: compares that word, which is there for ever, and sleeps. Whatever it answers, the caller looks again.
    unsafe { libc::syscall(libc::SYS_futex, &raw const WOKEN, flags, woken, for_ever) };
}

/// A call that no room could be waited for: it brings its own memory along.
#[repr(C)]
struct Boxed {
    head: raw::Head,
    call: Call,
}

unsafe extern "C" fn run_boxed(head: *mut raw::Head) {
    // SAFETY: from a box of that type, whose head comes first, in `defer_over`.
    let boxed = unsafe { Box::from_raw(head.cast::<Boxed>()) };
    boxed.call.run();
}

/// Over the limit.
#[cold]
fn defer_over(flavor: Flavor, call: Call) {
    let head = Box::into_raw(Box::new(Boxed { head: raw::Head::new(), call })).cast();
    // SAFETY: a head in a box of its own, which only the function ends.
    unsafe { raw::call_head(&flavor.domain().domain(), head, run_boxed) };
}

/// `defer_rcu`.
///
/// At the limit it waits for room where it may, which is a quiescent state of a QSBR reader, as in liburcu. In a section
/// and in a callback, where stock would wait for itself, it goes over the limit.
///
/// # Safety
/// `function(argument)` may be called once, on any thread, after a grace period.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_urcu_defer_rcu(
    flavor: c_uint,
    function: Option<Function>,
    argument: *mut c_void,
) {
    let flavor = Flavor::called(flavor);
    let Some(function) = function else {
        fatal(format_args!("{}_defer_rcu() of no function", flavor.name()));
    };
    let deferrer = own(flavor);
    let call = Call { function, argument, deferrer };
    if flavor.domain().domain().try_call(move || call.run()).is_err() {
        defer_at_the_limit(flavor, call);
    }
    // After it was queued: a barrier waits for nothing that might still wait for room. Relaxed: whoever is to wait for
    // this call knows of it in some way, and that orders the count, too.
    deferrer.deferred.store(deferrer.deferred.load(Relaxed) + 1, Relaxed);
}

#[cold]
fn defer_at_the_limit(flavor: Flavor, call: Call) {
    reader::require_membarrier(flavor);
    let may_wait = flavor == Flavor::Qsbr && flavor.is_registered() && RUNNING.get() == 0;
    let away = may_wait.then(|| flavor.may_wait("defer_rcu"));
    let refused = flavor.domain().domain().call(move || call.run()).is_err();
    drop(away);
    if refused {
        defer_over(flavor, call);
    }
}

// ---- registration --------------------------------------------------------------------------------------

/// `rcu_defer_register_thread`. A thread that defers without it works as well.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_urcu_defer_register_thread(flavor: c_uint) -> c_int {
    let flavor = Flavor::called(flavor);
    if REGISTERED.with(|registered| registered[flavor.index()].replace(true)) {
        let name = flavor.name();
        fatal(format_args!(
            "{name}_defer_register_thread() twice by the same thread; call {name}_defer_unregister_thread() before the \
             next time"
        ));
    }
    own(flavor);
    0
}

/// `rcu_defer_unregister_thread`: all that the thread has deferred has been called afterwards.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_urcu_defer_unregister_thread(flavor: c_uint) {
    let flavor = Flavor::called(flavor);
    if !REGISTERED.with(|registered| registered[flavor.index()].replace(false)) {
        let name = flavor.name();
        fatal(format_args!(
            "{name}_defer_unregister_thread() by a thread that is not registered; call \
             {name}_defer_register_thread() on the same thread first"
        ));
    }
    barrier(flavor, "defer_unregister_thread", existing(flavor).into_iter().collect());
    let_go(flavor);
}

// ---- barriers --------------------------------------------------------------------------------------------

/// `rcu_defer_barrier_thread`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_urcu_defer_barrier_thread(flavor: c_uint) {
    let flavor = Flavor::called(flavor);
    barrier(flavor, "defer_barrier_thread", existing(flavor).into_iter().collect());
}

/// `rcu_defer_barrier`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_urcu_defer_barrier(flavor: c_uint) {
    let flavor = Flavor::called(flavor);
    let all = deferrers()[flavor.index()].clone();
    barrier(flavor, "defer_barrier", all);
}

/// Waits until all that these threads have deferred by now has been called.
fn barrier(flavor: Flavor, what: &str, deferrers: Vec<&'static Deferrer>) {
    // Relaxed: what this barrier is to wait for happened before it.
    let marks = deferrers.into_iter().map(|one| (&one.done, one.deferred.load(Relaxed)));
    // SeqCst, as in `wait_for`: what the functions did happens before the barrier's end.
    let is_waiting = |(done, mark): &(&'static Done, u64)| done.count.load(SeqCst) < *mark;
    let mut marks: Vec<_> = marks.filter(is_waiting).collect();
    // Relaxed: set in the child, while it had one thread.
    let inherited = INHERITED[flavor.index()].load(Relaxed);
    if marks.is_empty() && !inherited {
        return;
    }
    if RUNNING.get() != 0 {
        let name = flavor.name();
        fatal(format_args!(
            "{name}_{what}() by a deferred function, which it would wait for; call it elsewhere"
        ));
    }
    let _away = flavor.may_wait(what);
    let domain = flavor.domain().domain();
    if inherited {
        domain.barrier();
        INHERITED[flavor.index()].store(false, Relaxed);
    }
    // Twice: the grace period that the worker asks for, when it has closed the batches, may be the one after ours.
    for _ in 0..2 {
        hurry(flavor);
        domain.synchronize();
        marks.retain(is_waiting);
        if marks.is_empty() {
            return;
        }
    }
    hurry(flavor);
    marks.iter().for_each(|(done, mark)| done.wait_for(*mark));
}

/// Has the worker see to the domain now.
fn hurry(flavor: Flavor) {
    // Refused at the limit, in a callback: then it is looking already.
    drop(flavor.domain().domain().call_hurried(|| ()));
}

/// liburcu's library destructor, which expects that no thread is registered any more. Nothing of ours is left then
/// that would have to end: looked at where mistakes are looked for.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_urcu_defer_exit(flavor: c_uint) {
    let flavor = Flavor::from_raw(flavor);
    if !debugging() {
        return;
    }
    let left = deferrers()[flavor.index()].iter().filter(|one| one.taken.load(Relaxed)).count();
    if left != 0 {
        let name = flavor.name();
        fatal(format_args!(
            "{name}_defer_exit() while {left} threads are registered for deferring; have each call \
             {name}_defer_unregister_thread() first"
        ));
    }
}

// ---- fork ------------------------------------------------------------------------------------------------

/// The lists, while the memory is copied.
#[derive(Debug)]
pub(crate) struct Held(MutexGuard<'static, [Vec<&'static Deferrer>; FLAVORS]>);

/// Before a fork.
pub(crate) fn hold() -> Held {
    Held(deferrers())
}

impl Held {
    /// In the child: who ran calls, and who waited, is gone. Counting begins anew.
    pub(crate) fn after_fork(&mut self) {
        for (flavor, list) in Flavor::ALL.into_iter().zip(self.0.iter_mut()) {
            OWN.with(|own| own[flavor.index()].set(ptr::null()));
            if !list.is_empty() {
                INHERITED[flavor.index()].store(true, Relaxed);
            }
            // Calls that wait lead to them, so they stay where they are; nobody counts on them any more.
            list.clear();
        }
    }
}
