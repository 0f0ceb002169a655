//! Where reports go: the program's hook, or standard error.

use std::io::Write;
use std::sync::Arc;

use super::report::StallReport;
use crate::os::forking::{AtFork, ForkMutex};
use crate::os::sync::{Rank, const_unless_loom};
use crate::os::user_code::{self, Site};

/// What is called with each report.
pub type StallHook = Arc<dyn Fn(&StallReport) + Send + Sync>;

const_unless_loom! {
    static HOOK: ForkMutex<Option<StallHook>> = ForkMutex::new(Rank::StallHook, None);
}

/// Has `hook` called with every report of a stalled grace period in this process, in place of the
/// hook before. By default reports are printed to standard error.
///
/// A grace period is reported when holdouts have been waited for longer than
/// [`Tuning::stall_after`](crate::tuning::Tuning::stall_after) (or
/// [`stall_after_expedited`](crate::tuning::Tuning::stall_after_expedited)), and again each time
/// that its age has doubled; as long as somebody waits for it, polls it, or has callbacks that
/// wait. No thread looks at one that no thread wants; and one that has ended by the time when its
/// report is complete, with its stacks, is counted
/// ([`Statistics::stalls`](crate::report::Statistics::stalls)), not reported. A limit that is
/// changed meanwhile counts from the next look on.
///
/// # Progress and cost
/// The hook is called on a thread of its own, one report after the other. If it
/// panics, that is counted and the next report is made all the same; while it blocks, reports wait,
/// up to 64, and then are counted as lost. Grace periods wait for it in no case, so it may wait for
/// them. A program without a stall pays one look at the clock for each time that an updater goes to
/// sleep. A report that is under way when the process ends is not made. Frames of
/// stacks are places in files, and a report says which command names them: see
/// [`StackFrame`](crate::report::StackFrame).
///
/// # Signals
/// A stalled thread is sent a real-time signal for its stack: the first one of `SIGRTMIN+1` and up
/// that the program neither handles nor blocks in some threads only, as for
/// `signalfd` and `sigwait`. `QUIESCENCE_STALL_SIGNAL` in the environment names another one, or is
/// `off`. It is not sent to a thread that blocks it, nor once the program has changed its
/// disposition. But one may be under way while the program does that, to a thread that was in a
/// stalled section just before: it finds the new handler, or the default, which ends the process.
/// No system call excludes this. So a program that uses real-time signals sets them up before its
/// threads read, or names one here that it does not use.
///
/// It takes no room on the thread's stack, of which there may be little left: it is handled on the
/// alternate signal stack that the thread has (`sigaltstack(2)`), as threads of Rust's standard
/// library do. A thread that had none, or too small a one, when it registered as a reader is
/// reported without a stack. So a thread must not give its alternate stack up later, or replace it
/// by one of less than 8 KiB and what a signal takes (`AT_MINSIGSTKSZ`), nor stay in sections on
/// it, in handlers of its own.
///
/// System calls that Linux never restarts after a signal (`poll`, `epoll_wait` and others, see
/// `signal(7)`) fail with `EINTR` in that thread. Programs that were compiled against liburcu know
/// nothing of this: their threads ([`liburcu_readers`](crate::liburcu_readers)) are sent it only
/// when they run.
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

/// Takes the hook away, and returns it: from now on reports are printed to standard error. `None`
/// if that was so before. A call of the hook that is under way continues.
pub fn take_stall_hook() -> Option<StallHook> {
    HOOK.lock().take()
}

/// Calls the hook.
pub(super) fn call(report: &StallReport) {
    let hook = HOOK.lock().clone();
    match hook {
        Some(hook) => user_code::run(Site::StallHook, || hook(report)),
        None => {
            // In one piece, so that no other output comes between. Where it cannot be written there
            // is no thread to tell.
            let text = format!("{report}\n");
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
        }
    }
}

impl AtFork for Option<StallHook> {}
