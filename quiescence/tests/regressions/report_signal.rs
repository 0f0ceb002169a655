//! The signal by which a report takes stacks harms no thread.
#![cfg(all(target_os = "linux", target_env = "gnu", feature = "stacks"))]

use crate::common::*;
use std::hint::{black_box, spin_loop};
use std::os::fd::AsRawFd;
use std::{io, mem};

use libc::{c_int, c_void};
use quiescence::liburcu_readers::{LiburcuDomain, Readers};
use quiescence::report::{Holdout, StackMissing, StallReport, ThreadState};

/// A domain whose stalls are reported soon; the reports of the process; and what is told when the
/// next one may begin.
fn reported() -> (Domain, Receiver<StallReport>, mpsc::Sender<()>) {
    let (tell, told) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let may_go_on = Mutex::new(may_go_on);
    quiescence::report::set_stall_hook(move |report| {
        _ = tell.send(report.clone());
        _ = may_go_on.lock().unwrap().recv();
    });
    let domain = Domain::new();
    tune(&domain, |tuning| {
        tuning.stall_after = Some(Duration::from_millis(2));
        tuning.stall_after_expedited = tuning.stall_after;
    });
    (domain, told, go_on)
}

/// What a thread does in its section until the report has come.
#[derive(Clone, Copy)]
enum Pastime {
    Runs,
    Sleeps,
}

/// How it is notified that the report has come.
struct End {
    came: AtomicBool,
    wake: io::PipeReader,
}

/// Takes hardly any stack.
impl Pastime {
    #[inline(never)]
    fn until(self, end: &End) {
        match self {
            Self::Runs => {
                while !end.came.load(Relaxed) {
                    spin_loop();
                }
            }
            Self::Sleeps => {
                let mut byte = 0_u8;
                // SAFETY: writes a byte at most. It returns when the other end is closed.
                unsafe { libc::read(end.wake.as_raw_fd(), (&raw mut byte).cast(), 1) };
            }
        }
    }
}

/// Has the thread register as a reader, which takes more stack than a section does.
fn register(domain: &Domain) {
    drop(domain.read());
}

/// Has `reader` run, on a thread, during a grace period that waits for the section in which it
/// calls the function that it is given, until a report has such a holdout as `wanted`. No report
/// begins before a thread that sleeps there is asleep, or after that one: a thread that runs near
/// the end of the stack that it handles signals on has no room for one.
fn beside_reports(
    pastime: Pastime,
    reader: impl FnOnce(&Domain, &dyn Fn()) + Send,
    wanted: impl Fn(&Holdout) -> bool,
) {
    let (domain, told, go_on) = reported();
    let (wake, hold) = io::pipe().unwrap();
    let end = End { came: AtomicBool::new(false), wake };
    let inside = AtomicU32::new(0);
    let section = || {
        let guard = domain.read();
        inside.store(thread_id(), Release);
        pastime.until(&end);
        drop(guard);
    };
    thread::scope(|scope| {
        let reader = scope.spawn(|| reader(&domain, &section));
        let is_there = || match (inside.load(Acquire), pastime) {
            (0, _) => false,
            (_, Pastime::Runs) => true,
            (thread, Pastime::Sleeps) => sleeps_or_is_gone(thread),
        };
        until(|| is_there() || reader.is_finished());
        assert!(!reader.is_finished(), "it comes to its section");
        domain.call(|| ()).unwrap();
        // The last of them is at an age of 8 s, so that a thread that gets no CPU has some time.
        let mut reports = told.iter().take(13);
        let is_wanted = |report: StallReport| report.holdouts.first().is_some_and(&wanted);
        let found = reports.any(|report| is_wanted(report) || go_on.send(()).is_err());
        end.came.store(true, Relaxed);
        drop(hold);
        // The end of the scope waits for what the thread does, but not for its own end.
        reader.join().unwrap();
        drop(go_on);
        assert!(found, "none of the reports is as it should be");
    });
    domain.barrier();
}

/// The same with one that runs there, and with one that sleeps.
fn beside_reports_of_both(
    reader: impl FnOnce(&Domain, &dyn Fn()) + Copy + Send,
    wanted: impl Fn(&Holdout) -> bool + Copy,
) {
    beside_reports(Pastime::Runs, reader, wanted);
    beside_reports(Pastime::Sleeps, reader, wanted);
}

/// Where the calling thread's stack ends.
fn stack_end() -> usize {
    // SAFETY: plain data, for which zero is a value.
    let mut attributes: libc::pthread_attr_t = unsafe { mem::zeroed() };
    let (mut start, mut bytes) = (ptr::null_mut(), 0);
    // SAFETY: has no arguments.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: the calling thread; writes to `attributes`.
    assert_eq!(unsafe { libc::pthread_getattr_np(this, &raw mut attributes) }, 0);
    // SAFETY: the attributes are initialized.
    let asked = unsafe {
        libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut bytes)
    };
    assert_eq!(asked, 0);
    // SAFETY: as above; they are not used any more.
    unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    start.addr()
}

/// Calls `f` when so many bytes are left of the stack that ends at `end`.
#[inline(never)]
fn with_bytes_left(bytes: usize, end: usize, f: &dyn Fn()) {
    let frame = [0_u8; 64];
    if black_box(&frame).as_ptr().addr() - end > bytes {
        with_bytes_left(bytes, end, f);
    } else {
        f();
    }
    black_box(&frame);
}

/// It runs on the thread's alternate stack, which it has from the standard library.
#[test]
fn a_report_of_a_reader_near_the_end_of_its_stack_overflowed_it() {
    in_its_own_process!();
    for left in [4_096, 2_048] {
        let reader = |domain: &Domain, section: &dyn Fn()| {
            register(domain);
            with_bytes_left(left, stack_end(), section);
        };
        beside_reports_of_both(reader, |holdout| holdout.stack.is_ok());
    }
}

const PAGE: usize = 4_096;

/// Memory with a page before it that cannot be touched.
fn guarded(bytes: usize) -> *mut c_void {
    let (none, read_write) = (libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping.
    let memory = unsafe { libc::mmap(ptr::null_mut(), PAGE + bytes, none, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    let usable = memory.wrapping_byte_add(PAGE);
    // SAFETY: part of the mapping made above.
    assert_eq!(unsafe { libc::mprotect(usable, bytes, read_write) }, 0);
    usable
}

thread_local! {
    /// What is called on the other stack.
    static ON_IT: Cell<Option<&'static dyn Fn()>> = const { Cell::new(None) };
}

extern "C" fn call_on_it() {
    ON_IT.get().expect("there is something to do")();
}

/// As a coroutine is: on a small stack of its own, by `swapcontext`.
fn on_a_small_stack(bytes: usize, f: &dyn Fn(usize)) {
    let stack = guarded(bytes);
    let call = || f(stack.addr());
    let call: &dyn Fn() = &call;
    // SAFETY: it is not called after this function has returned.
    ON_IT.set(Some(unsafe { mem::transmute::<&dyn Fn(), &'static dyn Fn()>(call) }));
    // SAFETY: plain data, for which zero is a value.
    let mut back: libc::ucontext_t = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut there: libc::ucontext_t = unsafe { mem::zeroed() };
    // SAFETY: writes to `there`.
    assert_eq!(unsafe { libc::getcontext(&raw mut there) }, 0);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = bytes;
    there.uc_link = &raw mut back;
    // SAFETY: the stack is the one made above, of no other context.
    unsafe { libc::makecontext(&raw mut there, call_on_it, 0) };
    // SAFETY: both contexts are this function's; it comes back when `call_on_it` returns.
    assert_eq!(unsafe { libc::swapcontext(&raw mut back, &raw const there) }, 0);
    // SAFETY: the mapping made above, which is not used any more.
    unsafe { libc::munmap(stack.wrapping_byte_sub(PAGE), PAGE + bytes) };
}

#[test]
fn a_report_of_a_coroutine_on_a_small_stack_overflowed_it() {
    in_its_own_process!();
    let reader = |domain: &Domain, section: &dyn Fn()| {
        register(domain);
        on_a_small_stack(4 * PAGE, &|end| with_bytes_left(2_048, end, section));
    };
    beside_reports_of_both(reader, |holdout| holdout.stack.is_ok());
}

type Section<'s> = (&'s Domain, &'s dyn Fn());

extern "C" fn near_the_end(argument: *mut c_void) -> *mut c_void {
    // SAFETY: what `a_report_of_a_thread...` gives it, which waits for this thread.
    let (domain, section) = unsafe { &*argument.cast::<Section<'_>>() };
    register(domain);
    with_bytes_left(2_048, stack_end(), section);
    ptr::null_mut()
}

/// It is not asked, and the report says why.
#[test]
fn a_report_of_a_thread_without_an_alternate_stack_overflowed_its_own() {
    in_its_own_process!();
    let reader = |domain: &Domain, section: &dyn Fn()| {
        let mut plain = 0;
        let argument: *const Section<'_> = &(domain, section);
        let argument = argument.cast_mut().cast();
        // SAFETY: the thread is waited for before its argument ends.
        let made =
            unsafe { libc::pthread_create(&raw mut plain, ptr::null(), near_the_end, argument) };
        assert_eq!(made, 0);
        // SAFETY: the thread made above.
        assert_eq!(unsafe { libc::pthread_join(plain, ptr::null_mut()) }, 0);
    };
    // A sanitizer gives one to threads of any kind.
    let is_well =
        |holdout: &Holdout| matches!(holdout.stack, Ok(_) | Err(StackMissing::NoAlternateStack));
    beside_reports_of_both(reader, is_well);
}

fn set_alternate_stack(start: *mut c_void, bytes: usize) {
    let stack = libc::stack_t { ss_sp: start, ss_flags: 0, ss_size: bytes };
    // SAFETY: memory that is never given back.
    assert_eq!(unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) }, 0);
}

/// What `signal` does from now on.
fn set_handler(signal: c_int, handler: usize, flags: c_int) {
    // SAFETY: plain data, for which zero is a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    // SAFETY: a handler of this file, or the default.
    assert_eq!(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }, 0);
}

static IN_HANDLER: AtomicPtr<&dyn Fn()> = AtomicPtr::new(ptr::null_mut());

extern "C" fn handle(_: c_int) {
    // SAFETY: what the test stores before it raises the signal; it lives until the handler has
    // returned.
    let section = unsafe { *IN_HANDLER.load(Acquire) };
    section();
}

/// A handler that is near the end of the alternate stack would overflow that.
#[test]
fn a_report_of_a_handler_that_sleeps_on_the_alternate_stack_overflowed_it() {
    in_its_own_process!();
    let reader = |domain: &Domain, section: &dyn Fn()| {
        let bytes = 16 * PAGE; // for a signal that comes before it sleeps
        let start = guarded(bytes);
        set_alternate_stack(start, bytes);
        set_handler(libc::SIGUSR1, handle as *const () as usize, libc::SA_ONSTACK);
        register(domain);
        let near = || with_bytes_left(2_048, start.addr(), section);
        let mut near: &dyn Fn() = &near;
        // SAFETY: the handler returns before this function does.
        let place = unsafe { mem::transmute::<*mut &dyn Fn(), *mut &'static dyn Fn()>(&mut near) };
        IN_HANDLER.store(place, Release);
        // SAFETY: a signal for this thread, whose handler is installed.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
    };
    let is_well = |holdout: &Holdout| {
        holdout.state == ThreadState::Sleeping
            && holdout.stack == Err(StackMissing::NoAlternateStack)
    };
    beside_reports(Pastime::Sleeps, reader, is_well);
}

/// What the system says that a signal takes.
fn frame_bytes() -> usize {
    const AT_MINSIGSTKSZ: libc::c_ulong = 51;
    // SAFETY: asks for a number.
    (unsafe { libc::getauxval(AT_MINSIGSTKSZ) } as usize).max(PAGE)
}

/// The room that a thread must have for it is enough.
#[test]
fn the_signal_takes_less_than_it_has_to_have() {
    in_its_own_process!();
    const PAINT: u8 = 0xa5;
    let bytes = 16 * PAGE;
    let stack = guarded(bytes);
    // SAFETY: the memory made above, which no other thread knows.
    let painted = unsafe { std::slice::from_raw_parts_mut(stack.cast::<u8>(), bytes) };
    painted.fill(PAINT);
    let place = AtomicPtr::new(stack);
    let reader = |_: &Domain, section: &dyn Fn()| {
        set_alternate_stack(place.load(Relaxed), bytes);
        section();
    };
    beside_reports(Pastime::Runs, reader, |holdout| holdout.stack.is_ok());
    let touched = bytes - painted.iter().take_while(|byte| **byte == PAINT).count();
    println!("\nthe signal took {touched} bytes of {}", frame_bytes() + 4 * 1_024);
    assert!(touched > 1_024, "it was not there: {touched}");
    assert!(touched <= frame_bytes() + 4 * 1_024, "{touched}");
}

// ---- the program's own signals
// ----------------------------------------------------------------------

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: c_int) {
    HANDLED.fetch_add(1, Relaxed);
}

/// It is free when the first stack is taken, and the program handles it from then on; or sets its
/// default, which is to end the process.
#[test]
fn a_report_sent_the_signal_to_a_handler_that_the_program_had_installed_meanwhile() {
    in_its_own_process!();
    let reader = |_: &Domain, section: &dyn Fn()| section();
    beside_reports(Pastime::Runs, reader, |holdout| holdout.stack.is_ok());
    let ours = libc::SIGRTMIN() + 1;
    assert_ne!(storm::handler_of(ours), libc::SIG_DFL);
    for handler in [count as *const () as usize, libc::SIG_DFL, libc::SIG_IGN] {
        set_handler(ours, handler, 0);
        let is_left_alone =
            |holdout: &Holdout| holdout.stack == Err(StackMissing::SignalTaken(ours));
        beside_reports(Pastime::Runs, reader, is_left_alone);
        assert_eq!((storm::handler_of(ours), HANDLED.load(Relaxed)), (handler, 0));
    }
}

/// A program that takes signals by `signalfd` or `sigwait` blocks them, in those threads at least
/// that are to take them; their disposition is the default.
#[test]
fn a_report_took_a_signal_that_the_program_waits_for() {
    in_its_own_process!();
    // SAFETY: plain data, for which zero is a value.
    let mut waited_for: libc::sigset_t = unsafe { mem::zeroed() };
    let all = libc::SIGRTMIN() + 1..=libc::SIGRTMAX();
    for signal in all.clone() {
        // SAFETY: a set, and the number of a signal.
        unsafe { libc::sigaddset(&raw mut waited_for, signal) };
    }
    let change = |how| {
        // SAFETY: the set made above.
        unsafe { libc::pthread_sigmask(how, &raw const waited_for, ptr::null_mut()) }
    };
    assert_eq!(change(libc::SIG_BLOCK), 0);
    let reader = |_: &Domain, section: &dyn Fn()| {
        assert_eq!(change(libc::SIG_UNBLOCK), 0);
        section();
    };
    let no_signal = |holdout: &Holdout| holdout.stack == Err(StackMissing::NoSignalFree);
    beside_reports(Pastime::Runs, reader, no_signal);
    assert!({ all }.all(|signal| storm::handler_of(signal) == libc::SIG_DFL));
}

// ---- when they begin ----------------------------------------------------------------------------

#[test]
fn programs_compiled_against_liburcu_were_reported_to_after_200_ms() {
    static FOREIGN: LiburcuDomain = LiburcuDomain::new("theirs", Readers::Light);
    let Some(begins) = role() else {
        passes_again(this_test!(), "never", &[]);
        for (said, begins) in [("0", "never"), ("70", "70"), ("soon", "never")] {
            passes_again(this_test!(), begins, &[("QUIESCENCE_STALL_MS", said)]);
        }
        return;
    };
    let begins = begins.parse().ok().map(Duration::from_millis);
    let domain = FOREIGN.domain();
    let mut tuning = domain.tuning();
    assert_eq!((tuning.stall_after, tuning.stall_after_expedited), (begins, begins));
    // A program may say otherwise, if it can say anything.
    tuning.stall_after = Some(Duration::from_millis(5));
    domain.tune(tuning);
    assert_eq!(domain.tuning(), tuning);
}
