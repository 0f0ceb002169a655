//! Readers that take long: blocked in a section for tens of milliseconds, or of low priority, so that others
//! have the processor.

use std::thread;
use std::time::Duration;

use quiescence::Kind;
use rustix::process::setpriority_process;
use rustix::thread::gettid;

use super::Deed;
use super::goods::Field;
use crate::delays::spin;
use crate::random::Random;

/// How long a section is, at most.
const SECTION_MAX_US: u64 = 60_000;

/// How long is paused between two, at most.
const PAUSE_MAX_US: u64 = 200_000;

/// The lowest priority, as `nice` says it.
const LOWEST: i32 = 19;

/// Sections of a slow reader between two looks whether the run is over.
const SECTIONS: u32 = 64;

/// Blocks inside of sections.
pub(crate) fn block<K: Kind>(field: &Field<K>, random: &mut Random) {
    while !field.station.is_over() {
        field.station.begin(Deed::Blocked);
        field.station.did(Deed::Blocked);
        let guard = field.domain.read();
        thread::sleep(Duration::from_micros(random.below(SECTION_MAX_US)));
        drop(guard);
        thread::sleep(Duration::from_micros(random.below(PAUSE_MAX_US)));
    }
}

/// Reads at the lowest priority: where processors are scarce it loses its own in the midst of sections.
pub(crate) fn crawl<K: Kind>(field: &Field<K>, random: &mut Random) {
    // Of this thread alone, on Linux. Elsewhere, or where it is forbidden, it is a reader like others.
    let is_low = setpriority_process(Some(gettid()), LOWEST).is_ok();
    while !field.station.is_over() {
        field.station.begin(Deed::LowPriority);
        field.station.ledger.did(Deed::LowPriority, u64::from(is_low));
        for _ in 0..SECTIONS {
            let guard = field.domain.read();
            spin(random.below(20_000));
            drop(guard);
            field.station.post().beat(); // it seldom has a CPU
        }
    }
}
