//! Readers: which threads are registered, and what becomes of one that ends.
//!
//! A thread that ends without having unregistered is unregistered by a thread-specific key's
//! destructor. Those run in rounds, so a later destructor may register anew and is cleaned up after
//! in turn. In the last of them that is refused, as it would not be cleaned up; but only a thread
//! that had registered before the rounds began knows which that is: one whose very first
//! registration is in a destructor of the last round must unregister there itself, as with liburcu.
//!
//! A bp reader registers by itself in its first section, which may be in a signal handler. What the
//! handler interrupts may hold the library's locks or be in the midst of its thread-local table: so
//! every call from C registers its thread ahead ([`register_ahead`]), where bp is in the process at
//! all, and what is left to handlers finds nothing half done. Its records are not the threads', but
//! come from a pool, and go back to it.
//!
//! It may also have interrupted `malloc`. So the pool has records to spare, and the domain has room
//! for all of them, and neither gets memory while it is locked; a caller from C sees to it that the
//! pool does not run short. Only a handler's first section on a thread after more than [`CHUNK`]
//! others that have done nothing but read since the last call allocates, and must not have
//! interrupted that.

use std::alloc::{Layout, alloc_zeroed};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use quiescence::liburcu_readers::{Record, Surroundings};
use quiescence::tuning::Fences;

use crate::errno_guard::with_errno;
use crate::fatal::{Mistake, debugging, fatal, tolerated};
use crate::flavor::{FLAVORS, Flavor, word};
use crate::{defer, fork, memory, signals};

/// How often a thread's keys are destroyed, at most: glibc's `PTHREAD_DESTRUCTOR_ITERATIONS`.
const ROUNDS: u32 = 4;

thread_local! {
    /// What the thread is registered for by a section of C++, so that the program does not know.
    static IMPLICIT: [Cell<bool>; FLAVORS] = const { [const { Cell::new(false) }; FLAVORS] };
    /// How often it has been cleaned up after.
    static ROUND: Cell<u32> = const { Cell::new(0) };
}

/// Whether the calling thread is registered: its record says so.
pub(crate) fn is_registered(flavor: Flavor) -> bool {
    flavor.is_attached() && flavor.record().is_some_and(Record::is_registered)
}

/// Returns whether it was.
fn set_implicit(flavor: Flavor, now: bool) -> bool {
    IMPLICIT.with(|implicit| implicit[flavor.index()].replace(now))
}

// ---- registration by the program ----------------------------------------------------------------

of_flavors! {
    /// `rcu_register_thread`.
    fn quiescence_urcu_register_thread(flavor) { with_errno(|| register(flavor)) }

    /// From the first section of `<rcu>`.
    fn quiescence_urcu_reader(flavor) { register_implicitly(flavor) }

    /// `rcu_unregister_thread`.
    fn quiescence_urcu_unregister_thread(flavor) { with_errno(|| unregister(flavor)) }
}

fn register(flavor: Flavor) {
    if flavor == Flavor::Bp {
        return enter_bp();
    }
    if is_registered(flavor) {
        if set_implicit(flavor, false) {
            return;
        }
        fatal(format_args!(
            "{flavor}_register_thread() twice by the same thread; unregister it before it \
             registers again"
        ));
    }
    if ROUND.get() >= ROUNDS {
        fatal(format_args!(
            "{flavor}_register_thread() by a thread that runs its last destructors: the library \
             cannot unregister it any more; call {flavor}_unregister_thread() in the same \
             destructor, or register earlier"
        ));
    }
    require_membarrier(flavor);
    let record = own_record(flavor);
    if !record.is_quiescent() {
        fatal(format_args!(
            "{flavor}_register_thread() in a read-side critical section, for which no grace \
             period has waited; register before the first {flavor}_read_lock()"
        ));
    }
    enter(flavor, record);
    attend_end();
}

/// Makes the calling thread a reader until it ends, if it is none. A program that registers it
/// later finds nothing wrong.
pub(crate) fn register_implicitly(flavor: Flavor) {
    if !is_registered(flavor) {
        with_errno(|| register(flavor));
        set_implicit(flavor, true);
    }
}

fn unregister(flavor: Flavor) {
    if flavor == Flavor::Bp {
        return; // as in liburcu: it does so when it ends
    }
    if !is_registered(flavor) {
        fatal(format_args!(
            "{flavor}_unregister_thread() by a thread that is not registered; each thread must \
             register itself, once"
        ));
    }
    let record = own_record(flavor);
    if flavor == Flavor::Qsbr || record.is_quiescent() {
        return leave(flavor, record);
    }
    tolerated(
        Mistake::UnregisterInside,
        format_args!(
            "{flavor}_unregister_thread() inside a read-side critical section, for which no grace \
             period waits any more; call {flavor}_read_unlock() first"
        ),
    );
    let section = record.word().load(Relaxed); // the thread's own
    leave(flavor, record);
    // Its unlocks are to come, and find their locks. Relaxed: no driver looks at it any more.
    record.word().store(section, Relaxed);
}

/// The signal flavour's readers have compiler barriers only, whatever we say: without membarrier
/// nothing makes up for that.
pub(crate) fn require_membarrier(flavor: Flavor) {
    if flavor == Flavor::Signal && quiescence::tuning::fences() != Fences::Membarrier {
        fatal(format_args!(
            "urcu_signal: its readers execute no fences, and this process has no membarrier(2): \
             allow it in the seccomp filter, start without QUIESCENCE_FENCES=portable, or use \
             liburcu-mb"
        ));
    }
}

fn own_record(flavor: Flavor) -> &'static Record {
    let Some(record) = flavor.record() else {
        unreachable!("every flavour but bp has a record in each thread");
    };
    record
}

/// Makes the calling thread a reader; a QSBR one online.
fn enter(flavor: Flavor, record: &'static Record) {
    // SAFETY: not registered, by the callers; a thread's record lives as long as the thread,
    // which is unregistered before it ends; bp's live for ever. The thin library's headers
    // follow the protocol.
    unsafe { flavor.domain().register(record) }; //~ compat-register
    if flavor == Flavor::Qsbr {
        come_online(flavor, record);
    }
}

/// Undoes `enter`, and ends what section there is.
fn leave(flavor: Flavor, record: &'static Record) {
    if !record.is_quiescent() {
        go_offline(flavor, record);
    }
    set_implicit(flavor, false);
    // SAFETY: registered, by the callers; in no section.
    unsafe { flavor.domain().unregister(record) };
}

// ---- QSBR ---------------------------------------------------------------------------------------

/// A record as the headers' inlined code sees it.
#[repr(C)]
struct QsbrLayout {
    _before: [u8; 144],
    waiting: AtomicI32,
}

/// `gp.futex` while the driver sleeps: -1.
const ASLEEP: u32 = u32::MAX;

/// Does what the inlined `thread_offline` does.
pub(crate) fn go_offline(flavor: Flavor, record: &Record) {
    word::leave(record);
    let words = flavor.words();
    if flavor == Flavor::Qsbr {
        // SAFETY: a record has 256 bytes, and an int at 144 that its owner and the driver use as an
        // atomic.
        let layout = unsafe { &*ptr::from_ref(record).cast::<QsbrLayout>() };
        // Relaxed, both: the full fences around them order them [FR-1].
        if layout.waiting.load(Relaxed) == 0 {
            return;
        }
        layout.waiting.store(0, Relaxed);
        fence(SeqCst);
    }
    //~ compat-wake:
    if words.futex.load(Relaxed) == ASLEEP {
        words.futex.store(0, Relaxed);
        // Not private, as C's is not: both sides must agree.
        // SAFETY: a wake-up of the sleepers on that word.
        unsafe { libc::syscall(libc::SYS_futex, &raw const words.futex, libc::FUTEX_WAKE, 1) };
    }
}

/// Does what the inlined `thread_online` does.
pub(crate) fn come_online(flavor: Flavor, record: &Record) {
    word::enter(record, flavor.words());
}

// ---- the end of a thread ------------------------------------------------------------------------

static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// Makes the key whose destructor `thread_ends` is; once.
pub(crate) fn make_key() -> libc::pthread_key_t {
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: a place for the key, and a function that lives for ever.
        let error = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) };
        if error != 0 {
            fatal(format_args!(
                "pthread_key_create fails with error {error}: the process has no keys left"
            ));
        }
        key
    })
}

/// Has `thread_ends` called at the end of the calling thread.
pub(crate) fn attend_end() {
    let key = make_key();
    let any: *const c_void = ptr::from_ref(&KEY).cast();
    // SAFETY: a key of ours; that the value is not null is all that matters.
    let error = unsafe { libc::pthread_setspecific(key, any) };
    if error != 0 {
        fatal(format_args!("pthread_setspecific fails with error {error}: out of memory"));
    }
}

/// The thread ends: it reads no more, and defers no more, unless a destructor after this one does.
unsafe extern "C" fn thread_ends(_any: *mut c_void) {
    ROUND.set(ROUND.get() + 1);
    // No handler finds bp's pointer half done; nor does it begin a section whose end no thread
    // sees.
    signals::blocked(|| {
        let registered = Flavor::ALL.into_iter().filter(|flavor| is_registered(*flavor));
        registered.for_each(unregister_at_end); //~ compat-end
    });
    defer::thread_ends();
}

fn unregister_at_end(flavor: Flavor) {
    let record = own_record(flavor);
    if debugging() && flavor != Flavor::Qsbr && !record.is_quiescent() {
        fatal(format_args!(
            "a thread ends inside a read-side critical section of {flavor}; end each section with \
             {flavor}_read_unlock()"
        ));
    }
    if flavor == Flavor::Bp {
        give_back(record);
    } else {
        leave(flavor, record);
    }
}

// ---- bp: records of a pool ----------------------------------------------------------------------

/// Records that are allocated at once, and at least half of which are kept in reserve.
const CHUNK: usize = 64;

/// Whether threads register for bp ahead.
static AHEAD: AtomicBool = AtomicBool::new(false);

/// Whether less than half a chunk is left: the next call from C is to get more.
static SHORT: AtomicBool = AtomicBool::new(false);

static POOL: Mutex<Pool> = Mutex::new(Pool { all: Vec::new(), free: Vec::new() });

/// The records of bp, which live for ever.
pub(crate) struct Pool {
    all: Vec<&'static Record>,
    free: Vec<&'static Record>,
}

/// Locked for a push or a pop, for which there is memory; always with signals blocked.
pub(crate) fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A record without an owner. With signals blocked.
fn take() -> &'static Record {
    loop {
        let mut pool = pool();
        if let Some(record) = pool.free.pop() {
            if pool.free.len() < CHUNK / 2 {
                SHORT.store(true, Relaxed); // a hint
            }
            return record;
        }
        drop(pool);
        grow();
    }
}

/// Gets another chunk of records, and memory for the lists of them, here and in the domain. All
/// that is got and given back while nothing is locked. With signals blocked.
fn grow() {
    let chunk = new_chunk();
    let mut records = pool().all.len() + CHUNK;
    loop {
        Flavor::Bp.domain().make_room(records); //~ compat-room
        let mut larger =
            Pool { all: Vec::with_capacity(records), free: Vec::with_capacity(records) };
        let mut pool = pool();
        if pool.all.len() + CHUNK <= records {
            larger.all.extend_from_slice(&pool.all);
            larger.free.extend_from_slice(&pool.free);
            larger.all.extend(chunk);
            larger.free.extend(chunk);
            std::mem::swap(&mut *pool, &mut larger);
            return; // unlocks, and then drops the smaller one
        }
        records = pool.all.len() + CHUNK; // somebody else was faster
    }
}

fn new_chunk() -> &'static [Record; CHUNK] {
    let layout = Layout::new::<[Record; CHUNK]>();
    // SAFETY: of more than no bytes.
    let chunk = unsafe { alloc_zeroed(layout) }.cast::<[Record; CHUNK]>();
    if chunk.is_null() {
        memory::out_of_memory(layout.size());
    }
    // SAFETY: all zeroes is a record that is not registered; never freed.
    unsafe { &*chunk }
}

impl Pool {
    /// In a child process: the other threads are gone, and their records free.
    pub(crate) fn after_fork(&mut self) {
        let own = if Flavor::Bp.is_attached() { Flavor::Bp.record() } else { None };
        //~ compat-own-record:
        let is_own = |record: &&Record| own.is_some_and(|own| ptr::eq(*record, own));
        self.free.clear();
        self.free.extend(self.all.iter().filter(|record| !is_own(record)));
    }
}

/// bp is there: has threads register for it ahead, and the first readers, which may be signal
/// handlers, need allocate no record.
pub(crate) fn reserve() {
    signals::blocked(grow);
    AHEAD.store(true, Relaxed); // a hint to threads that have not read yet
}

/// Registers the calling thread for bp, if that is there, so that none of its signal handlers has
/// to.
#[inline]
pub(crate) fn register_ahead() {
    if AHEAD.load(Relaxed) {
        register_for_bp();
    }
}

#[inline(never)]
fn register_for_bp() {
    with_errno(|| {
        let is_short = SHORT.load(Relaxed);
        if (!is_short && is_registered(Flavor::Bp)) || fork::holds() {
            return; // the second: the pool is locked by this thread
        }
        //~ compat-reserve:
        if is_short && SHORT.swap(false, Relaxed) {
            signals::blocked(grow);
        }
        //~ compat-ahead:
        if !is_registered(Flavor::Bp) {
            enter_bp();
        }
    });
}

exported! {
    fn quiescence_urcu_bp_register() { enter_bp() }
}

/// bp: makes the calling thread a reader, if it is none. From its first section, by the program, or
/// ahead.
fn enter_bp() {
    let register = || {
        let place = Flavor::Bp.place().cast::<*const Record>();
        if is_registered(Flavor::Bp) {
            return; // by a handler, right before
        }
        let record = take();
        enter(Flavor::Bp, record);
        attend_end();
        // SAFETY: the thread's own pointer. Last: a section may begin now.
        unsafe { place.write(record) };
    };
    with_errno(|| signals::blocked(register));
}

/// bp: the calling thread reads no more; or registers anew. With signals blocked.
fn give_back(record: &'static Record) {
    let place = Flavor::Bp.place().cast::<*const Record>();
    // SAFETY: the thread's own pointer.
    unsafe { place.write(ptr::null()) };
    leave(Flavor::Bp, record);
    pool().free.push(record); //~ compat-give-back
}

// ---- callbacks ----------------------------------------------------------------------------------

/// What `begin` has done, for `end` to undo.
const ENTERED: usize = 1;
const ONLINE: usize = 2;

/// What goes around callbacks of a flavour: their thread is a reader of it, if it was none; a QSBR
/// one online.
pub(crate) fn surroundings(flavor: Flavor) -> Surroundings {
    /// The functions have no argument to tell them the flavour by.
    const fn of<const INDEX: usize>() -> Surroundings {
        Surroundings {
            begin: || begin(Flavor::ALL[INDEX]),
            end: |done| end(Flavor::ALL[INDEX], done),
        }
    }
    const ALL: [Surroundings; FLAVORS] = [of::<0>(), of::<1>(), of::<2>(), of::<3>(), of::<4>()];
    ALL[flavor.index()]
}

fn begin(flavor: Flavor) -> usize {
    //~ compat-surroundings
    register_ahead();
    if flavor == Flavor::Bp {
        return 0;
    }
    let record = own_record(flavor);
    if !is_registered(flavor) {
        enter(flavor, record);
        ENTERED
    } else if flavor == Flavor::Qsbr && record.is_quiescent() {
        come_online(flavor, record);
        ONLINE
    } else {
        0
    }
}

fn end(flavor: Flavor, done: usize) {
    match done {
        // A callback may have unregistered its thread: that is its affair.
        ENTERED if is_registered(flavor) => leave(flavor, own_record(flavor)),
        ONLINE if is_registered(flavor) => go_offline(flavor, own_record(flavor)),
        _ => {}
    }
}
