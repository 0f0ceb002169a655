//! The stack of another thread of this process, taken by a signal.
//!
//! The one who asks names the thread in [`REQUEST`] and sends it a real-time signal; the handler, in
//! that thread, finds itself named, writes down the instruction pointers of its frames, and says so. A
//! signal that comes late finds no request, or one of another thread, and does nothing; so the handler
//! is installed once and for good. One asks at a time: the reporter of stalls.
//!
//! The signal is the first one from `SIGRTMIN+1` that nobody has a handler for when the first stack is
//! wanted; `QUIESCENCE_STALL_SIGNAL` in the environment names another one, or is `off`; what is
//! neither, or a signal that has a handler already, is complained of then. A system call that the signal interrupts goes on (`SA_RESTART`), but for those that Linux never restarts (`poll`,
//! `epoll_wait`, `nanosleep` and others of `signal(7)`), which fail with `EINTR` as after any signal. So the
//! reporter does not ask foreign readers that sleep.
//!
//! **What the handler may do.** It neither allocates nor takes a lock: frames are found by
//! `_Unwind_Backtrace`, which asks glibc's `_dl_find_object` (2.35 or later, looked for at run time) for
//! the tables of each. It keeps `errno`. It runs on the thread's own stack, of which it takes about 4 KiB,
//! not on an alternate one: the one that Rust gives its threads is 8 KiB, and the processor's own state can
//! take most of that.

use std::fmt;

/// Why there is no stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StackMissing {
    /// The library was compiled without the feature `stacks`.
    NotCompiledIn,
    /// The system is not Linux with glibc 2.35 or later, or the system did not tell the thread's id.
    Unsupported,
    /// `QUIESCENCE_STALL_SIGNAL` is `off`.
    TurnedOff,
    /// The program handles every real-time signal itself.
    NoSignalFree,
    /// The thread blocks the signal of this number.
    SignalBlocked(i32),
    /// The thread did not answer within 100 ms: it is stopped, or gets no processor.
    NoAnswer,
    /// The thread has ended, or runs the destructors of its thread-locals.
    ThreadEnded,
    /// The section has ended, so that the stack would be that of something else.
    SectionEnded,
    /// Stacks of other hold-outs have been taken, and these were enough.
    EnoughTaken,
    /// The thread did not run. It is one of a program that was compiled against liburcu and does not know of the
    /// signal, which may end the call it sleeps in with `EINTR`: such threads are asked only while they run.
    Asleep,
}

impl fmt::Display for StackMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCompiledIn => f.write_str("the feature `stacks` is not compiled in"),
            Self::Unsupported => f.write_str("stacks are taken on Linux with glibc 2.35 only"),
            Self::TurnedOff => f.write_str("QUIESCENCE_STALL_SIGNAL turns stacks off"),
            Self::NoSignalFree => f.write_str("the program uses every real-time signal itself"),
            Self::SignalBlocked(signal) => write!(f, "the thread blocks signal {signal}"),
            Self::NoAnswer => f.write_str("the thread does not answer: stopped, or starved"),
            Self::ThreadEnded => f.write_str("the thread has ended, or is ending"),
            Self::SectionEnded => f.write_str("the section has ended meanwhile"),
            Self::EnoughTaken => f.write_str("those of other hold-outs are enough"),
            Self::Asleep => f.write_str("a signal could end what it sleeps in"),
        }
    }
}

impl std::error::Error for StackMissing {}

/// The instruction pointers of a thread's frames, innermost first: the first is where it was interrupted,
/// the others are where their callees return to. At most [`FRAMES_MAX`]. For one caller at a time.
pub(crate) fn take(thread: u32) -> Result<Vec<usize>, StackMissing> {
    if thread == 0 { Err(StackMissing::Unsupported) } else { imp::take(thread) }
}

/// In a child process: whoever asked is gone, and so is whoever was asked.
pub(crate) fn after_fork() {
    imp::after_fork();
}

/// Frames that a stack has at most.
#[cfg_attr(not(feature = "stacks"), allow(dead_code))]
const FRAMES_MAX: usize = 128;

#[cfg(all(feature = "stacks", target_os = "linux", target_env = "gnu"))]
mod imp {
    use std::ptr;
    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
    use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize};
    use std::time::{Duration, Instant};

    use libc::{c_int, c_void, siginfo_t};

    use super::{FRAMES_MAX, StackMissing};
    use crate::os::{environment, futex, thread};

    /// Nobody asks.
    const IDLE: u32 = 0;
    /// A thread is asked and has not begun to answer.
    const WANTED: u32 = 1;
    /// It writes the answer.
    const BUSY: u32 = 2;
    /// It has.
    const DONE: u32 = 3;

    /// Which thread is asked, and how far it has got: one word, so that no signal that comes late takes
    /// one thread's request for another's. Thread ids have 22 bits.
    static REQUEST: AtomicU32 = AtomicU32::new(IDLE);
    /// The answer, and how many frames it has.
    static FRAMES: [AtomicUsize; FRAMES_MAX] = [const { AtomicUsize::new(0) }; FRAMES_MAX];
    static COUNT: AtomicUsize = AtomicUsize::new(0);

    /// The signal; 0 until it is chosen, and negative if there is none. Written by the one who asks.
    static SIGNAL: AtomicI32 = AtomicI32::new(0);
    const TURNED_OFF: i32 = -1;
    const NONE_FREE: i32 = -2;
    const UNSUPPORTED: i32 = -3;

    /// How long to wait for an answer.
    const PATIENCE: Duration = Duration::from_millis(100);

    const fn request(thread: u32, phase: u32) -> u32 {
        thread << 2 | phase
    }

    pub(super) fn take(thread: u32) -> Result<Vec<usize>, StackMissing> {
        let signal = signal()?;
        if thread::blocks(thread, signal) {
            return Err(StackMissing::SignalBlocked(signal));
        }
        // Relaxed: only a thread that is asked changes it, and nobody is now, or BUSY tells so.
        if REQUEST.load(Relaxed) & 3 == BUSY {
            return Err(StackMissing::NoAnswer); // one that was asked before was stopped in the handler
        }
        // Release: pairs with the Acquire in `answer`: the answer before has been read.
        REQUEST.store(request(thread, WANTED), Release);
        let process = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: sends a signal, which has a handler, to a thread of this process or to none.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
        if sent != 0 {
            let error = std::io::Error::last_os_error();
            REQUEST.store(IDLE, Relaxed);
            let ended = error.raw_os_error() == Some(libc::ESRCH);
            return Err(if ended { StackMissing::ThreadEnded } else { StackMissing::NoAnswer });
        }
        wait_for_answer(thread)?;
        let count = COUNT.load(Relaxed).min(FRAMES_MAX);
        Ok(FRAMES[..count].iter().map(|frame| frame.load(Relaxed)).collect())
    }

    fn wait_for_answer(thread: u32) -> Result<(), StackMissing> {
        let began = Instant::now();
        loop {
            // Acquire: pairs with the Release in `answer`: the frames are there.
            let now = REQUEST.load(Acquire);
            if now == request(thread, DONE) {
                return Ok(());
            }
            match PATIENCE.checked_sub(began.elapsed()) {
                Some(left) => _ = futex::wait(&REQUEST, now, Some(left)),
                None => {
                    // If it has begun meanwhile it stays BUSY until it has done.
                    let wanted = request(thread, WANTED);
                    let _ = REQUEST.compare_exchange(wanted, IDLE, Relaxed, Relaxed);
                    return Err(StackMissing::NoAnswer);
                }
            }
        }
    }

    pub(super) fn after_fork() {
        REQUEST.store(IDLE, Relaxed);
    }

    // ---- the signal -------------------------------------------------------------------------------

    /// The signal, chosen and given its handler on the first call.
    fn signal() -> Result<c_int, StackMissing> {
        // Relaxed: one thread asks, and only it writes.
        if SIGNAL.load(Relaxed) == 0 {
            SIGNAL.store(choose(), Relaxed);
        }
        match SIGNAL.load(Relaxed) {
            TURNED_OFF => Err(StackMissing::TurnedOff),
            NONE_FREE => Err(StackMissing::NoSignalFree),
            UNSUPPORTED => Err(StackMissing::Unsupported),
            signal => Ok(signal),
        }
    }

    fn choose() -> i32 {
        let said = environment::value(c"QUIESCENCE_STALL_SIGNAL").filter(|said| !said.is_empty());
        if said.as_deref() == Some("off") {
            return TURNED_OFF;
        }
        if !finds_frames() {
            return UNSUPPORTED;
        }
        if let Some(said) = said {
            let may_be = |signal: &c_int| (1..=libc::SIGRTMAX()).contains(signal);
            let signal = said.parse::<c_int>().ok().filter(may_be);
            if let Some(signal) = signal.filter(|signal| install(*signal)) {
                return signal;
            }
            let wanted = format_args!("\"off\", or the number of a signal that has no handler");
            environment::complain(c"QUIESCENCE_STALL_SIGNAL", said.as_bytes(), wanted);
        }
        (libc::SIGRTMIN() + 1..=libc::SIGRTMAX())
            .find(|signal| install(*signal))
            .unwrap_or(NONE_FREE)
    }

    /// Whether frames can be found without a lock. Also has the unwinder do what it does once.
    fn finds_frames() -> bool {
        // SAFETY: looks a name up.
        if unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) }.is_null() {
            return false;
        }
        let mut frames = 0;
        // SAFETY: nothing of the crate's but this function is used, and it shares no state.
        unsafe {
            backtrace::trace_unsynchronized(|_| {
                frames += 1;
                frames < 3
            });
        }
        frames != 0
    }

    /// Makes the handler the signal's, unless somebody has one.
    fn install(signal: c_int) -> bool {
        let old = action(signal, None);
        let ours = handler as extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
        let is_free = |old: &libc::sigaction| {
            old.sa_sigaction == libc::SIG_DFL || old.sa_sigaction == ours as usize
        };
        if !old.as_ref().is_some_and(is_free) {
            return false;
        }
        // SAFETY: plain data, for which zero is a value.
        let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
        new.sa_sigaction = ours as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: fills the set that it is given.
        unsafe { libc::sigfillset(&raw mut new.sa_mask) };
        match action(signal, Some(&new)) {
            Some(old) if is_free(&old) => true,
            Some(theirs) => {
                // Somebody was quicker, between the two calls.
                action(signal, Some(&theirs));
                false
            }
            None => false,
        }
    }

    /// Sets what a signal does, if `new` says so; answers what it did before, if there is such a signal.
    fn action(signal: c_int, new: Option<&libc::sigaction>) -> Option<libc::sigaction> {
        // SAFETY: plain data, for which zero is a value.
        let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
        let new = new.map_or(ptr::null(), ptr::from_ref);
        // SAFETY: `new` is null or an action whose handler lives for ever, or one that was there before;
        // `old` is written.
        (unsafe { libc::sigaction(signal, new, &raw mut old) } == 0).then_some(old)
    }

    // ---- in the thread that is asked ----------------------------------------------------------------

    /// Async-signal-safe; see the module.
    extern "C" fn handler(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the calling thread's own `errno`, which is there as long as the thread.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        let kept = unsafe { *errno };
        // SAFETY: the kernel's third argument to a handler with SA_SIGINFO.
        answer(unsafe { interrupted_at(context) });
        // SAFETY: as above.
        unsafe { *errno = kept };
    }

    /// Writes the calling thread's frames down, from the one that was interrupted at `at` on, if it is
    /// this thread that is asked.
    fn answer(at: usize) {
        let me = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        // Acquire: pairs with the Release in `take`.
        let (wanted, busy) = (request(me, WANTED), request(me, BUSY));
        if REQUEST.compare_exchange(wanted, busy, Acquire, Relaxed).is_err() {
            return;
        }
        let mut count = 0;
        // SAFETY: nothing of the crate's but this function is used, and it shares no state.
        unsafe {
            backtrace::trace_unsynchronized(|frame| {
                let pointer = frame.ip().addr();
                // Those of the handler come first.
                if pointer != 0 && (count != 0 || pointer == at || at == 0) {
                    // Relaxed, here and below: the Release at the end shows them all.
                    FRAMES[count].store(pointer, Relaxed);
                    count += 1;
                }
                count < FRAMES_MAX
            });
        }
        if count == 0 {
            // The unwinder does not come through the signal's frame: the place is better than nothing.
            FRAMES[0].store(at, Relaxed);
            count = 1;
        }
        COUNT.store(count, Relaxed);
        // Release: pairs with the Acquire in `wait_for_answer`.
        REQUEST.store(request(me, DONE), Release);
        futex::wake_all(&REQUEST);
    }

    /// The instruction pointer in a signal's context; 0 where it is not known how to find it.
    ///
    /// # Safety
    /// `context` is what the kernel gave a handler.
    unsafe fn interrupted_at(context: *mut c_void) -> usize {
        let context = context.cast::<libc::ucontext_t>();
        // SAFETY: the caller's word.
        let _machine = unsafe { &(*context).uc_mcontext };
        #[cfg(target_arch = "x86_64")]
        return _machine.gregs[libc::REG_RIP as usize] as usize;
        #[cfg(target_arch = "aarch64")]
        return _machine.pc as usize;
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        0
    }
}

#[cfg(not(all(feature = "stacks", target_os = "linux", target_env = "gnu")))]
mod imp {
    use super::StackMissing;

    pub(super) fn take(_thread: u32) -> Result<Vec<usize>, StackMissing> {
        Err(if cfg!(feature = "stacks") {
            StackMissing::Unsupported
        } else {
            StackMissing::NotCompiledIn
        })
    }

    pub(super) fn after_fork() {}
}
