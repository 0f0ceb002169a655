//! The readers that last: ordinary ones, nested sections, explicit handles, QSBR.
//!
//! Each looks at a block, dawdles, and looks at the same block again before its section ends. Most
//! sections are short, so that grace periods are many; some last for milliseconds, so that updaters
//! go to sleep and must be woken.

use std::thread;
use std::time::Duration;

use quiescence::{
    Qsbr, Reader,
    tag::{DomainTag, ThreadTag},
};

use super::arena::Participant;
use super::delays::spin;
use super::kinds::{ReaderKind, Step, Way};
use super::random::Random;
use super::updaters;

/// Sections between two messages to the watchdog.
const SECTIONS_PER_BEAT: u32 = 16;

/// Sections of a handle before it is dropped and made again, on average.
const REGISTER_ONE_IN: u64 = 8;

/// Reads until the run is over.
pub(crate) fn run<K: ThreadTag>(
    participant: &Participant<K>,
    kind: ReaderKind,
    random: &mut Random,
) {
    match kind {
        ReaderKind::Nested => rounds(participant, || nested(participant, random)),
        ReaderKind::Handle => {
            let mut reader = None;
            rounds(participant, || {
                // Registration and its end come often, and more cheaply than with a thread.
                if random.one_in(REGISTER_ONE_IN) {
                    reader = None;
                }
                handle(
                    participant,
                    reader.get_or_insert_with(|| participant.arena.domain.reader()),
                    random,
                );
            });
        }
        ReaderKind::Qsbr => {
            let mut reader = None;
            rounds(participant, || {
                if random.one_in(REGISTER_ONE_IN) {
                    reader = None;
                }
                let online = reader.take().unwrap_or_else(|| participant.arena.domain.qsbr());
                reader = Some(qsbr(participant, online, random));
            });
        }
        _ => rounds(participant, || read(participant, kind, random)),
    }
}

pub(crate) fn rounds<K: DomainTag>(participant: &Participant<K>, mut section: impl FnMut()) {
    while !participant.ledger.is_over() {
        participant.record().begin(Step::Read);
        for _ in 0..SECTIONS_PER_BEAT {
            section();
        }
        // Give the CPU away between sections rather than inside of one.
        thread::yield_now();
    }
}

/// One section by way of the thread's registration.
pub(crate) fn read<K: ThreadTag>(
    participant: &Participant<K>,
    kind: ReaderKind,
    random: &mut Random,
) {
    let guard = participant.arena.domain.read();
    let Some(look) = participant.look(&guard, kind, random) else { return };
    dawdle(random);
    //~ leave-early
    participant.look_again(&look, kind);
}

/// A section in a section: the inner one's end ends nothing, in either order of dropping.
pub(crate) fn nested<K: ThreadTag>(participant: &Participant<K>, random: &mut Random) {
    let kind = ReaderKind::Nested;
    let outer = participant.arena.domain.read();
    let before = participant.look(&outer, kind, random);
    let inner = participant.arena.domain.read();
    let within = participant.look(&inner, kind, random);
    dawdle(random);
    let (first, last) = if random.one_in(2) { (inner, outer) } else { (outer, inner) };
    drop(first);
    dawdle(random);
    before.iter().chain(&within).for_each(|look| participant.look_again(look, kind));
    drop(last);
}

/// One section of an explicit handle, now and then around one of the thread's own.
pub(crate) fn handle<K: ThreadTag>(
    participant: &Participant<K>,
    reader: &Reader<K>,
    random: &mut Random,
) {
    let kind = ReaderKind::Handle;
    let guard = reader.read();
    let Some(look) = participant.look(&guard, kind, random) else { return };
    dawdle(random);
    if random.one_in(8) {
        read(participant, kind, random);
    }
    participant.look_again(&look, kind);
}

/// One section of a QSBR reader, from one quiescent state to the next.
pub(crate) fn qsbr<K: ThreadTag>(
    participant: &Participant<K>,
    mut reader: Qsbr<K>,
    random: &mut Random,
) -> Qsbr<K> {
    let kind = ReaderKind::Qsbr;
    // Several guards between two quiescent states are one section.
    let guard = reader.read();
    let first = participant.look(&guard, kind, random);
    drop(guard);
    dawdle(random);
    let guard = reader.read();
    let second = participant.look(&guard, kind, random);
    dawdle(random);
    first.iter().chain(&second).for_each(|look| participant.look_again(look, kind));
    drop(guard);
    match random.below(64) {
        0 => {
            let offline = reader.offline();
            dawdle(random);
            reader = offline.online();
        }
        1 => reader.while_offline(|| dawdle(random)),
        2 => {
            participant.record().begin(Step::Update(Way::QsbrSynchronize));
            updaters::by_qsbr(participant, &mut reader, random);
            participant.record().begin(Step::Read);
        }
        _ => reader.quiescent_state(),
    }
    reader
}

/// Stays for a while: mostly not at all, seldom for milliseconds.
pub(crate) fn dawdle(random: &mut Random) {
    match random.below(8192) {
        0 => thread::sleep(Duration::from_micros(1000 + random.below(3000))),
        1..=4 => thread::sleep(Duration::from_micros(random.below(300))),
        5..=40 => thread::yield_now(),
        41..=600 => spin(random.below(2000)),
        _ => {}
    }
}
