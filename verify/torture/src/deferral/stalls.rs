//! Readers that take long: blocked in a section for tens of milliseconds, or of low priority, so
//! that others have the CPU.

use rustix::process::setpriority_process;
use rustix::thread::gettid;

use super::{Deferral, Operation, ThreadContext};
use crate::delays::spin;

/// How long a section is, at most.
const SECTION_MAX_US: u64 = 60_000;

/// How long is paused between two, at most.
const PAUSE_MAX_US: u64 = 200_000;

/// The lowest priority, as `nice` says it.
const LOWEST: i32 = 19;

/// Sections of a slow reader between two looks whether the run is over.
const SECTIONS: u32 = 64;

/// Blocks inside of sections.
pub(crate) fn block(own: &Deferral, context: &ThreadContext) {
    context.rounds(Operation::Blocked, || {
        context.did(Operation::Blocked);
        let guard = own.flood.read();
        context.sleep(SECTION_MAX_US);
        drop(guard);
        context.sleep(PAUSE_MAX_US);
    });
}

/// Reads at the lowest priority: where CPUs are scarce it loses its own in the midst of sections.
pub(crate) fn crawl(own: &Deferral, context: &ThreadContext) {
    // Of this thread alone, on Linux. Elsewhere, or where it is forbidden, it is a reader like
    // others.
    let is_low = setpriority_process(Some(gettid()), LOWEST).is_ok();
    context.rounds(Operation::LowPriority, || {
        context.ledger.operations.add(Operation::LowPriority, u64::from(is_low));
        for _ in 0..SECTIONS {
            let guard = own.flood.read();
            spin(context.below(20_000));
            drop(guard);
            context.record().beat(); // it seldom has a CPU
        }
    });
}
