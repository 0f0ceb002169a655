//! Readers: how threads register, and how a thread that ends is unregistered.
//!
//! A thread that ends without having unregistered is unregistered by a thread-specific key's
//! destructor. These destructors run in rounds. The program's may still read, and unregister the
//! thread, so ours does nothing before the last round. After it, registration is refused, because
//! nothing would undo it. But the library can count the rounds only if the thread registered before
//! they began, other than by bp alone. If not, each run of ours unregisters the thread, as it may
//! be the last one; so it does on a main thread that ends by `pthread_exit`, where glibc does not
//! drop `BEFORE_ROUNDS` before the rounds. A thread that registers for the very first time in a
//! destructor of the last round must unregister there itself, as with liburcu.
//!
//! A bp reader is registered by its first section, which may be in a signal handler. The code that
//! the handler interrupts may hold the library's locks, or be changing its thread-local table. So,
//! if bp is in the process, every call from C registers its thread beforehand ([`register_ahead`]),
//! and a registration in a handler finds nothing half done. bp's records are not thread-local: they
//! come from a pool, and go back to it.
//!
//! The handler may also have interrupted `malloc`. So the pool has spare records, the domain has
//! room for all of them, and neither allocates while it is locked. Calls from C refill the pool. A
//! handler's first section may allocate only if about `CHUNK / 2` other threads have registered by
//! reading since the last such call, or if our key is above 31 ([`attend_end`]); the handler must
//! then not have interrupted `malloc`.

use std::alloc::{Layout, alloc_zeroed};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use quiescence::liburcu_readers::system::without;
use quiescence::liburcu_readers::{Record, Surroundings};
use quiescence::tuning::Fences;

use crate::errno_guard::with_errno;
use crate::fatal::{Mistake, debugging, fatal, tolerated};
use crate::flavor::{FLAVORS, Flavor};
use crate::{defer, fork, memory};

/// The number of rounds of a thread's destructors: glibc's `PTHREAD_DESTRUCTOR_ITERATIONS`.
const ROUNDS: u32 = 4;

thread_local! {
    /// For which flavours the library, not the program, has registered the thread.
    static IMPLICIT: [Cell<bool>; FLAVORS] = const { [const { Cell::new(false) }; FLAVORS] };
    /// How often `thread_ends` has run on the thread.
    static ROUND: Cell<u32> = const { Cell::new(0) };
    /// Whether `ROUND` is the number of the round: the thread registered before the first.
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
    /// Whether the library has unregistered the thread.
    static HAS_ENDED: Cell<bool> = const { Cell::new(false) };
    static BEFORE_ROUNDS: BeforeRounds = const { BeforeRounds };
    /// Whether `thread_ends` is to be called in the last round.
    static IS_ATTENDED: Cell<bool> = const { Cell::new(false) };
}

/// Dropped before the keys' destructors begin; never, if it is first used in one.
struct BeforeRounds;

impl Drop for BeforeRounds {
    fn drop(&mut self) {
        IS_COUNTED.set(true);
    }
}

/// Whether the calling thread is registered: its record says so.
pub(crate) fn is_registered(flavor: Flavor) -> bool {
    flavor.is_attached() && flavor.record().is_some_and(Record::is_registered)
}

/// Returns the previous value.
fn set_implicit(flavor: Flavor, now: bool) -> bool {
    IMPLICIT.with(|implicit| implicit[flavor.index()].replace(now))
}

// ---- registration by the program ----------------------------------------------------------------

of_flavors! {
    /// `rcu_register_thread`.
    fn quiescence_urcu_register_thread(flavor) { with_errno(|| register(flavor)) }

    /// Called by the first section of C++'s `<rcu>` on a thread.
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
    attend_last_round();
}

/// Registers the calling thread until it ends, unless it is registered. The program may still
/// register it later.
pub(crate) fn register_implicitly(flavor: Flavor) {
    if !is_registered(flavor) {
        with_errno(|| register(flavor));
        set_implicit(flavor, true);
    }
}

fn unregister(flavor: Flavor) {
    if flavor == Flavor::Bp {
        return; // as in liburcu: the thread is unregistered when it ends
    }
    if !is_registered(flavor) {
        if has_ended() {
            return; // the library was first, in the last round
        }
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
    // The unlocks that follow must find their locks. Relaxed: no driver reads the word any more.
    record.word().store(section, Relaxed);
}

/// The signal flavour's readers always execute compiler barriers only: without membarrier nothing
/// makes up for that.
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

/// Undoes `enter`, and ends the section if there is one.
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
    // A full fence, as in liburcu: it orders the section's accesses, and those of the mutexes that
    // it took, before the store.
    fence(SeqCst);
    // Release: pairs with the Acquire in the driver's scan [GP-2].
    record.word().store(0, Release);
    // The store comes before the load that checks whether the driver sleeps [FR-1].
    fence(SeqCst);
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
        // Not `FUTEX_PRIVATE`, as in liburcu: both sides must agree.
        // SAFETY: wakes the sleepers on that word.
        unsafe { libc::syscall(libc::SYS_futex, &raw const words.futex, libc::FUTEX_WAKE, 1) };
    }
}

/// Does what the inlined `thread_online` does.
pub(crate) fn come_online(flavor: Flavor, record: &Record) {
    // Acquire: pairs with the Release in the announcement [GP-3].
    record.word().store(flavor.words().ctr.load(Acquire), Release);
    // All QSBR readers execute this fence, so the driver's need not be a heavy one [GP-8].
    fence(SeqCst);
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

/// Has `thread_ends` called in the last round of the calling thread's destructors.
pub(crate) fn attend_last_round() {
    if !IS_ATTENDED.replace(true) {
        _ = BEFORE_ROUNDS.try_with(|_| ()); // an error if it was dropped: they are counted
        attend_end();
    }
}

/// Whether the library has unregistered the calling thread, whose later destructors may do so, too;
/// if its rounds are not counted, from the first round on.
pub(crate) fn has_ended() -> bool {
    HAS_ENDED.get()
}

/// Has `thread_ends` called in the next round of the calling thread's destructors. Allocates
/// nothing, except at a thread's first call if the key is above 31: glibc allocates a block then.
fn attend_end() {
    let key = make_key();
    let any: *const c_void = ptr::from_ref(&KEY).cast();
    // SAFETY: our own key; it only matters that the value is not null.
    let error = unsafe { libc::pthread_setspecific(key, any) };
    if error != 0 {
        fatal(format_args!("pthread_setspecific fails with error {error}: out of memory"));
    }
}

/// The thread ends. After the last round only a later destructor may still read or defer.
unsafe extern "C" fn thread_ends(_any: *mut c_void) {
    ROUND.set(ROUND.get() + 1);
    //~ compat-last-round:
    if IS_COUNTED.get() && ROUND.get() < ROUNDS {
        return attend_end();
    }
    HAS_ENDED.set(true);
    // With signals blocked, no handler finds bp's pointer half done, begins a section that is cut
    // off here, or registers anew in the midst of the allocator.
    without(|| {
        let registered = Flavor::ALL.into_iter().filter(|flavor| is_registered(*flavor));
        registered.for_each(unregister_at_end); //~ compat-end
        // What a destructor has used since thread-locals were dropped would stay for ever. It waits
        // for nothing: of what is deferred none is called here.
        // SAFETY: the system calls this, at the end of the thread.
        unsafe { quiescence::liburcu_readers::leave_thread() };
    });
    defer::thread_ends();
    IS_ATTENDED.set(false);
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

/// The number of records that are allocated together. Half as many are kept in reserve.
const CHUNK: usize = 64;

/// Whether calls from C register their threads for bp.
static AHEAD: AtomicBool = AtomicBool::new(false);

/// Whether less than half a chunk is left: the next call from C refills the pool.
static SHORT: AtomicBool = AtomicBool::new(false);

static POOL: Mutex<Pool> = Mutex::new(Pool { all: Vec::new(), free: Vec::new() });

/// The records of bp, which live for ever.
pub(crate) struct Pool {
    all: Vec<&'static Record>,
    free: Vec<&'static Record>,
}

/// Locks the pool. Nothing under the lock allocates, and signals are always blocked.
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

/// Adds a chunk of records, and makes room for it in the lists, here and in the domain. Allocates
/// and frees only while nothing is locked. With signals blocked.
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
            return; // unlocks the pool, and then drops the smaller lists
        }
        records = pool.all.len() + CHUNK; // another thread was faster
    }
}

fn new_chunk() -> &'static [Record; CHUNK] {
    let layout = Layout::new::<[Record; CHUNK]>();
    // SAFETY: the layout is not of size 0.
    let chunk = unsafe { alloc_zeroed(layout) }.cast::<[Record; CHUNK]>();
    if chunk.is_null() {
        memory::out_of_memory(layout.size());
    }
    // SAFETY: all zeroes is a record that is not registered; never freed.
    unsafe { &*chunk }
}

impl Pool {
    /// In a child process: the other threads are gone, and their records are free.
    pub(crate) fn after_fork(&mut self) {
        let own = if Flavor::Bp.is_attached() { Flavor::Bp.record() } else { None };
        //~ compat-own-record:
        let is_own = |record: &&Record| own.is_some_and(|own| ptr::eq(*record, own));
        self.free.clear();
        self.free.extend(self.all.iter().filter(|record| !is_own(record)));
    }
}

/// When bp is loaded: calls from C register their threads from now on, and the first readers, which
/// may be in signal handlers, need not allocate records.
pub(crate) fn reserve() {
    without(grow);
    AHEAD.store(true, Relaxed); // a hint: a thread that misses it registers in its first section
}

/// Registers the calling thread for bp, if bp is loaded, so that none of its signal handlers has
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
            return; // during a fork this thread holds the pool's lock
        }
        //~ compat-reserve:
        if is_short && SHORT.swap(false, Relaxed) {
            without(grow);
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

/// bp: registers the calling thread, unless it is registered. Called by its first section, by the
/// program, or by `register_ahead`.
fn enter_bp() {
    let register = || {
        let place = Flavor::Bp.place().cast::<*const Record>();
        if is_registered(Flavor::Bp) {
            return; // a signal handler has just done so
        }
        let record = take();
        enter(Flavor::Bp, record);
        attend_end();
        // SAFETY: the thread's own pointer. Written last: sections may begin now.
        unsafe { place.write(record) };
    };
    with_errno(|| without(register));
}

/// bp: unregisters the calling thread, which may register again. With signals blocked.
fn give_back(record: &'static Record) {
    let place = Flavor::Bp.place().cast::<*const Record>();
    // SAFETY: the thread's own pointer.
    unsafe { place.write(ptr::null()) };
    leave(Flavor::Bp, record);
    pool().free.push(record); //~ compat-give-back
}

// ---- callbacks ----------------------------------------------------------------------------------

/// What `begin` has done, and `end` undoes.
const ENTERED: usize = 1;
const ONLINE: usize = 2;

/// The functions that are called before and after callbacks of a flavour: they make the thread a
/// reader of it if it is none, and a QSBR reader online.
pub(crate) fn surroundings(flavor: Flavor) -> Surroundings {
    /// The functions have no argument for the flavour.
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
        // Nothing to undo if a callback has unregistered the thread.
        ENTERED if is_registered(flavor) => leave(flavor, own_record(flavor)),
        ONLINE if is_registered(flavor) => go_offline(flavor, own_record(flavor)),
        _ => {}
    }
}
