//! The receiver of reports: the program's hook, or standard error.

use std::sync::Arc;

use super::report::StallReport;
use crate::os::environment;
use crate::os::forking::{AtFork, ForkMutex};
use crate::os::sync::{Rank, const_unless_loom};
use crate::os::user_code::{self, Site};

/// The function that is called with each report.
pub type StallHook = Arc<dyn Fn(&StallReport) + Send + Sync>;

const_unless_loom! {
    static HOOK: ForkMutex<Option<StallHook>> = ForkMutex::new(Rank::StallHook, None);
}

/// Sets `hook` as the function that receives every report of a stalled grace period in this
/// process; it replaces the previous one. By default reports are printed to standard error.
///
/// A grace period is reported when it has waited for holdouts longer than
/// [`Tuning::stall_after`](crate::tuning::Tuning::stall_after) (or
/// [`stall_after_expedited`](crate::tuning::Tuning::stall_after_expedited)), and again each time
/// its age doubles, as long as a thread waits for it, polls it, or has callbacks that wait for it.
/// A grace period that no thread wants is not watched. One that has ended by the time its report is
/// complete, stacks included, is counted
/// ([`Statistics::stalls`](crate::report::Statistics::stalls)) but not reported. If the threshold
/// is changed meanwhile, the new one applies from the next check on.
///
/// # Progress and cost
/// The hook is called on a thread of its own, one report after the other. If it panics, the panic
/// is counted and the next report is made all the same. While it blocks, up to 64 reports wait;
/// further ones are counted as lost. Grace periods never wait for the hook, so the hook may wait
/// for them. In a program without stalls the cost is one clock read each time an updater goes to
/// sleep. A report in progress when the process ends is abandoned. Stack frames are offsets into
/// files, and a printed report includes the command that resolves them: see
/// [`StackFrame`](crate::report::StackFrame).
///
/// # Signals
/// A stalled thread is sent a real-time signal to obtain its stack: the first from `SIGRTMIN+1` up
/// that the program does not handle, and that is not blocked in some threads only, as it would be
/// for `signalfd` and `sigwait`. `QUIESCENCE_STALL_SIGNAL` in the environment names another signal,
/// or is `off`. The signal is not sent to a thread that blocks it, nor once the program has changed
/// its disposition. But if the program changes it at the very moment when a signal is on its way to
/// a thread that was just in a stalled section, that thread runs the new handler, or the default
/// action, which ends the process. No system call excludes this. So a program that uses real-time
/// signals must set them up before its threads read, or name here a signal that it does not use.
///
/// The handler takes no room on the thread's own stack, of which little may be left: it runs on the
/// thread's alternate signal stack (`sigaltstack(2)`), which threads of Rust's standard library
/// have. A thread that had none when it registered as a reader, or too small a one, is reported
/// without a stack. So a thread must not remove its alternate stack later, or replace it by one
/// smaller than 8 KiB plus the signal frame (`AT_MINSIGSTKSZ`), nor be in a section while it runs a
/// handler of its own on that stack.
///
/// System calls that Linux never restarts after a signal (`poll`, `epoll_wait` and others, see
/// `signal(7)`) fail with `EINTR` in that thread. Programs compiled against liburcu do not expect
/// this, so their threads ([`liburcu_readers`](crate::liburcu_readers)) are sent the signal only
/// while they run.
///
/// ```
/// quiescence::report::set_stall_hook(|report| {
///     for holdout in &report.holdouts {
///         eprintln!("{:?} is in a section since {:?}", holdout.thread_name, holdout.began);
///     }
/// });
/// # quiescence::report::take_stall_hook();
/// ```
pub fn set_stall_hook(hook: impl Fn(&StallReport) + Send + Sync + 'static) {
    let before = HOOK.lock().replace(Arc::new(hook));
    user_code::run(Site::Drop, || drop(before));
}

/// Removes the hook, and returns it: from now on reports are printed to standard error. `None` if
/// there was no hook. A call of the hook that is in progress continues.
pub fn take_stall_hook() -> Option<StallHook> {
    HOOK.lock().take()
}

/// Calls the hook.
pub(super) fn call(report: &StallReport) {
    let hook = HOOK.lock().clone();
    match hook {
        Some(hook) => user_code::run(Site::StallHook, || hook(report)),
        None => {
            // In one write, so that no other output comes between its lines.
            let text = format!("{report}\n");
            environment::say(text.as_bytes());
        }
    }
}

impl AtFork for Option<StallHook> {}
