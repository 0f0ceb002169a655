//! A program's side: symbols of each flavour, readers inlined, and the core's functions as
//! `shim/core.h` declares them.

use std::cell::UnsafeCell;
use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::sync::Once;
use std::sync::atomic::fence;
use std::thread::JoinHandle;

use compat as _;

pub(crate) use crate::common::*;

/// `struct quiescence_shim`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Shim {
    pub(crate) flavor: c_uint,
    pub(crate) gp: *const Words,
    pub(crate) has_sys_membarrier: *mut c_int,
    pub(crate) reader: unsafe extern "C" fn() -> *mut c_void,
}

pub(crate) type Function = unsafe extern "C" fn(*mut c_void);

unsafe extern "C" {
    pub(crate) fn quiescence_urcu_attach(shim: *const Shim);
    pub(crate) safe fn quiescence_urcu_register_thread(flavor: c_uint);
    pub(crate) safe fn quiescence_urcu_unregister_thread(flavor: c_uint);
    pub(crate) safe fn quiescence_urcu_bp_register();
    pub(crate) safe fn quiescence_urcu_synchronize(flavor: c_uint);
    pub(crate) safe fn quiescence_urcu_before_fork(flavor: c_uint);
    pub(crate) safe fn quiescence_urcu_after_fork_parent(flavor: c_uint);
    pub(crate) safe fn quiescence_urcu_after_fork_child(flavor: c_uint);
    pub(crate) safe fn quiescence_urcu_start_poll(flavor: c_uint) -> c_ulong;
    pub(crate) safe fn quiescence_urcu_poll_state(flavor: c_uint, state: c_ulong) -> bool;
    pub(crate) fn quiescence_urcu_defer_rcu(
        flavor: c_uint,
        function: Function,
        argument: *mut c_void,
    );
    pub(crate) safe fn quiescence_urcu_defer_register_thread(flavor: c_uint) -> c_int;
    pub(crate) safe fn quiescence_urcu_defer_unregister_thread(flavor: c_uint);
    pub(crate) safe fn quiescence_urcu_defer_barrier(flavor: c_uint);
    pub(crate) safe fn quiescence_urcu_defer_barrier_thread(flavor: c_uint);
    pub(crate) safe fn quiescence_urcu_defer_exit(flavor: c_uint);
    pub(crate) fn quiescence_urcu_fatal(flavor: c_uint, what: *const c_char) -> !;
    pub(crate) safe fn quiescence_urcu_debugging() -> bool;
    pub(crate) safe fn quiescence_urcu_reader(flavor: c_uint);
}

pub(crate) const MEMB: u32 = 0;
pub(crate) const MB: u32 = 1;
pub(crate) const QSBR: u32 = 2;
pub(crate) const BP: u32 = 3;
pub(crate) const SIGNAL: u32 = 4;

/// Those whose readers have sections.
pub(crate) const SECTIONS: [u32; 4] = [MEMB, MB, BP, SIGNAL];
pub(crate) const ALL: [u32; 5] = [MEMB, MB, QSBR, BP, SIGNAL];

/// `struct urcu_gp`.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) ctr: AtomicU64,
    pub(crate) futex: AtomicU32,
}

/// What copy relocations would have moved into the executable.
pub(crate) static GP: [Words; 5] =
    [const { Words { ctr: AtomicU64::new(1), futex: AtomicU32::new(0) } }; 5];
pub(crate) static HAS_SYS_MEMBARRIER: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];

/// `struct urcu_reader`.
#[repr(C, align(128))]
struct Reader([UnsafeCell<u64>; 32]);

thread_local! {
    static READERS: [Reader; 5] = const {
        [const { Reader([const { UnsafeCell::new(0) }; 32]) }; 5]
    };
    static BP_READER: UnsafeCell<*mut c_void> = const { UnsafeCell::new(ptr::null_mut()) };
}

thread_local! {
    /// Whether the thread may not allocate, as in a handler that has interrupted the allocator; and
    /// how often it did, or freed something.
    static FORBIDDEN: Cell<bool> = const { Cell::new(false) };
    static ALLOCATED: Cell<u32> = const { Cell::new(0) };
    /// Whether the core finds `errno` changed when it asks for the thread's record.
    static DISTURBED: Cell<bool> = const { Cell::new(false) };
    /// How often it asked, and how often the thread could have been cancelled meanwhile.
    static LOOKS: Cell<u32> = const { Cell::new(0) };
    static CANCELLABLE: Cell<u32> = const { Cell::new(0) };
}

fn allocated() {
    ALLOCATED.set(ALLOCATED.get() + u32::from(FORBIDDEN.get()));
    asked(); // an allocator may change `errno`
}

memory::watched_allocator!(|_| allocated(), |_, _| allocated());

/// How often the calling thread allocates, or frees, in `f`.
pub(crate) fn allocations(f: impl FnOnce()) -> u32 {
    let before = ALLOCATED.get();
    FORBIDDEN.set(true);
    f();
    FORBIDDEN.set(false);
    ALLOCATED.get() - before
}

pub(crate) fn errno() -> &'static AtomicI32 {
    // SAFETY: asks where it is.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own; used by it, at once.
    unsafe { AtomicI32::from_ptr(place) }
}

/// Calls `f`, in which the core finds that `errno` has changed, as system calls do. Returns how
/// often it asked for a record or for memory, and how often the thread could have been cancelled
/// then.
pub(crate) fn disturbed(f: impl FnOnce()) -> (u32, u32) {
    looks(|| {
        DISTURBED.set(true);
        f();
        DISTURBED.set(false);
    })
}

/// Calls `f`, in which the core finds that `errno` has changed, and which is to leave it alone.
/// Returns how often the thread could have been cancelled.
pub(crate) fn keeps_errno(f: &dyn Fn()) -> u32 {
    errno().store(7, Relaxed);
    let (asked, cancellable) = disturbed(f);
    assert_eq!((asked != 0, errno().load(Relaxed)), (true, 7));
    cancellable
}

/// Calls `f`. Returns how often this thread has [looked](look), and how often it could have been
/// cancelled then.
pub(crate) fn looks(f: impl FnOnce()) -> (u32, u32) {
    let before = (LOOKS.get(), CANCELLABLE.get());
    f();
    (LOOKS.get() - before.0, CANCELLABLE.get() - before.1)
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Looks whether the thread can be cancelled, and changes `errno`.
pub(crate) fn look() {
    let (mut before, mut same) = (0, 0);
    // SAFETY: disables, which is 1, and tells what was.
    unsafe { pthread_setcancelstate(1, &raw mut before) };
    // SAFETY: as it was.
    unsafe { pthread_setcancelstate(before, &raw mut same) };
    LOOKS.set(LOOKS.get() + 1);
    CANCELLABLE.set(CANCELLABLE.get() + u32::from(before == 0));
    errno().store(99, Relaxed);
}

/// The core asks for a record.
fn asked() {
    if DISTURBED.get() {
        look();
    }
}

/// The thread's record, as a TLS symbol has it.
extern "C" fn reader<const FLAVOR: usize>() -> *mut c_void {
    asked();
    READERS.with(|readers| ptr::from_ref(&readers[FLAVOR]).cast_mut().cast())
}

/// Signals that were not blocked when the core asked for the place of bp's pointer.
pub(crate) static BP_ASKED_UNBLOCKED: AtomicU32 = AtomicU32::new(0);

/// The place of the thread's pointer.
extern "C" fn bp_reader() -> *mut c_void {
    if !is_blocked(libc::SIGUSR1) {
        BP_ASKED_UNBLOCKED.fetch_add(1, Relaxed);
    }
    asked();
    BP_READER.with(|reader| reader.get().cast())
}

/// Whether the calling thread blocks a signal.
pub(crate) fn is_blocked(signal: c_int) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: asks only, and writes the set.
    let asked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), now.as_mut_ptr()) };
    assert_eq!(asked, 0);
    // SAFETY: written above.
    unsafe { libc::sigismember(now.as_ptr(), signal) == 1 }
}

/// What the thin libraries' constructors do.
pub(crate) fn attach() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for flavor in 0..5 {
            attach_as(flavor, &GP[flavor as usize]);
        }
    });
}

/// The same, in a process of the test's own.
macro_rules! attached_in_its_own_process {
    ($($environment:expr)?) => {
        in_its_own_process!($($environment)?);
        attach();
    };
}
pub(crate) use attached_in_its_own_process;

pub(crate) fn attach_as(flavor: u32, gp: &'static Words) {
    let readers = [reader::<0>, reader::<1>, reader::<2>, bp_reader, reader::<4>];
    let has_sys_membarrier = match flavor {
        MEMB => HAS_SYS_MEMBARRIER[0].as_ptr(),
        BP => HAS_SYS_MEMBARRIER[1].as_ptr(),
        _ => ptr::null_mut(),
    };
    let reader = readers[flavor as usize];
    let shim = Box::leak(Box::new(Shim { flavor, gp, has_sys_membarrier, reader }));
    // SAFETY: leaked; the words are a static's.
    unsafe { quiescence_urcu_attach(shim) };
}

/// bp's pointer of the calling thread.
pub(crate) fn bp_pointer() -> *mut c_void {
    // SAFETY: the thread's own.
    BP_READER.with(|reader| unsafe { *reader.get() })
}

fn record(flavor: u32) -> *mut c_void {
    match flavor {
        MEMB => reader::<0>(),
        MB => reader::<1>(),
        QSBR => reader::<2>(),
        BP => {
            if bp_pointer().is_null() {
                quiescence_urcu_bp_register();
            }
            bp_pointer()
        }
        _ => reader::<4>(),
    }
}

/// The reader's word.
pub(crate) fn word(flavor: u32) -> &'static AtomicU64 {
    // SAFETY: the first word of the thread's record; of as long a life as the tests give it.
    unsafe { &*record(flavor).cast::<AtomicU64>() }
}

/// Whether the record says that it is registered, to the headers of C++ and to checks.
pub(crate) fn is_marked(flavor: u32) -> bool {
    // SAFETY: the int at 152 of a record of 256 bytes.
    let place = unsafe { record(flavor).cast::<u8>().add(152) };
    // SAFETY: as above.
    unsafe { &*place.cast::<AtomicU32>() }.load(Relaxed) != 0
}

fn waiting() -> &'static AtomicI32 {
    // SAFETY: the int at 144 of a record of 256 bytes.
    let place = unsafe { record(QSBR).cast::<u8>().add(144) };
    // SAFETY: as above.
    unsafe { &*place.cast::<AtomicI32>() }
}

// ---- readers, as they are inlined; with full fences, which do for
// all --------------------------------------

pub(crate) fn register(flavor: u32) {
    quiescence_urcu_register_thread(flavor);
}

pub(crate) fn unregister(flavor: u32) {
    quiescence_urcu_unregister_thread(flavor);
}

pub(crate) fn read_lock(flavor: u32) {
    let word = word(flavor);
    let before = word.load(Relaxed);
    match before as u32 {
        0 => word.store(GP[flavor as usize].ctr.load(SeqCst), SeqCst),
        _ => word.store(before + 1, SeqCst),
    }
    fence(SeqCst);
}

pub(crate) fn read_unlock(flavor: u32) {
    let word = word(flavor);
    fence(SeqCst);
    word.store(word.load(Relaxed) - 1, SeqCst);
    fence(SeqCst);
    if word.load(Relaxed) as u32 == 0 && flavor != BP {
        wake(flavor);
    }
}

fn wake(flavor: u32) {
    let futex = &GP[flavor as usize].futex;
    if futex.load(SeqCst) == u32::MAX {
        futex.store(0, SeqCst);
        // SAFETY: a wake-up.
        unsafe { libc::syscall(libc::SYS_futex, futex.as_ptr(), libc::FUTEX_WAKE, 1) };
    }
}

pub(crate) fn offline() {
    renew(0);
}

pub(crate) fn online() {
    word(QSBR).store(GP[QSBR as usize].ctr.load(SeqCst), SeqCst);
    fence(SeqCst);
}

fn renew(to: u64) {
    fence(SeqCst);
    word(QSBR).store(to, SeqCst);
    fence(SeqCst);
    if waiting().load(SeqCst) != 0 {
        waiting().store(0, SeqCst);
        fence(SeqCst);
        wake(QSBR);
    }
}

// ----
// tests ------------------------------------------------------------------------------------------------

/// Defers `f`.
pub(crate) fn defer(flavor: u32, f: impl FnOnce() + 'static) {
    let f: Box<Box<dyn FnOnce()>> = Box::new(Box::new(f));
    unsafe extern "C" fn run(f: *mut c_void) {
        // SAFETY: from such a box, below.
        let f = unsafe { Box::from_raw(f.cast::<Box<dyn FnOnce()>>()) };
        f();
    }
    // SAFETY: called once.
    unsafe { quiescence_urcu_defer_rcu(flavor, run, Box::into_raw(f).cast()) };
}

/// Not over, however often it is asked about.
pub(crate) fn assert_not_over(flavor: u32, state: u64) {
    for _ in 0..200 {
        assert!(!quiescence_urcu_poll_state(flavor, state), "flavour {flavor}");
    }
}

/// A grace period that has been asked for, and is not over.
pub(crate) fn begun(flavor: u32) -> u64 {
    let state = quiescence_urcu_start_poll(flavor);
    assert_not_over(flavor, state);
    state
}

/// Calls `f` in a section of the calling thread, which is registered meanwhile.
pub(crate) fn in_section<R>(flavor: u32, f: impl FnOnce() -> R) -> R {
    register(flavor);
    read_lock(flavor);
    let result = f();
    read_unlock(flavor);
    unregister(flavor);
    result
}

/// Threads that are inside a section of bp at once.
pub(crate) struct BpReaders {
    /// The addresses of their records.
    pub(crate) records: BTreeSet<usize>,
    threads: Vec<(Sender<()>, JoinHandle<()>)>,
}

impl BpReaders {
    pub(crate) fn begin(count: usize) -> Self {
        let (inside, is_inside) = mpsc::channel();
        let begin = |_| {
            let (end, may_end) = mpsc::channel();
            let inside = inside.clone();
            let reader = thread::spawn(move || {
                read_lock(BP);
                inside.send(bp_pointer().addr()).unwrap();
                may_end.recv().unwrap();
                read_unlock(BP);
            });
            (end, reader)
        };
        let threads = (0..count).map(begin).collect();
        Self { records: is_inside.iter().take(count).collect(), threads }
    }

    /// Ends one after the other, each after a call of `before_each`.
    pub(crate) fn end(self, before_each: impl Fn()) {
        for (end, reader) in self.threads {
            before_each();
            end.send(()).unwrap();
            reader.join().unwrap();
        }
    }
}
