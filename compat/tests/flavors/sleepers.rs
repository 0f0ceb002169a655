//! Readers that sleep while they are reported: no call of theirs ends because of the report.

use std::io;
use std::os::fd::AsRawFd;

use quiescence::report::{StackMissing, StallReport, ThreadState};

use crate::c::*;

/// Reports come soon, and again and again.
const SOON: (&str, &str) = ("QUIESCENCE_STALL_MS", "20");

/// Sleeps in `poll`, which Linux restarts after no signal, until something can be read. Returns
/// what `poll` did.
fn poll(end: &impl AsRawFd) -> io::Result<i32> {
    let mut asked = libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which is written.
    match unsafe { libc::poll(&raw mut asked, 1, -1) } {
        -1 => Err(io::Error::last_os_error()),
        ready => Ok(ready),
    }
}

/// Reports, until one is of a reader of this id, asleep. Returns why it has no stack.
fn told_asleep(told: &mpsc::Receiver<StallReport>, thread: u32) -> Option<StackMissing> {
    loop {
        let report = told.recv().unwrap();
        let holdout = report.holdouts.iter().find(|one| one.thread_id == Some(thread));
        if let Some(holdout) = holdout.filter(|one| one.state == ThreadState::Sleeping) {
            return holdout.stack.as_ref().err().cloned();
        }
    }
}

fn sleep_beside_reports(flavor: u32) {
    let (tell, told) = mpsc::channel();
    quiescence::report::set_stall_hook(move |report| _ = tell.send(report.clone()));
    let (end, wake) = io::pipe().unwrap();
    let id = AtomicU32::new(0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            register(flavor);
            match flavor {
                QSBR => online(),
                _ => read_lock(flavor),
            }
            id.store(thread_id(), SeqCst);
            let woken = poll(&end);
            match flavor {
                QSBR => offline(),
                _ => read_unlock(flavor),
            }
            unregister(flavor);
            woken
        });
        // A thread that falls asleep between the scan and the signal may be sent it all the same.
        until(|| sleeps_or_is_gone(id.load(SeqCst)));
        let updater = scope.spawn(|| quiescence_urcu_synchronize(flavor));
        let why = told_asleep(&told, id.load(SeqCst));
        drop(wake);
        updater.join().unwrap();
        let woken = reader.join().unwrap();
        assert_eq!(woken.map_err(|error| error.raw_os_error()), Ok(1), "flavour {flavor}: {why:?}");
        assert_eq!(why, Some(StackMissing::Asleep), "flavour {flavor}");
    });
}

#[test]
fn a_report_does_not_disturb_a_reader_that_sleeps() {
    attached_in_its_own_process!(&[SOON]);
    ALL.into_iter().for_each(sleep_beside_reports);
}
