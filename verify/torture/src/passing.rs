//! Threads that come and go: registration and its end, beside grace periods in progress.
//!
//! Some read for the first time inside the destructor of a thread-local, when the library's own
//! record of the thread may be gone already; some leave objects behind that no other thread
//! retires.

use std::cell::RefCell;
use std::thread;

use quiescence::tag::ThreadTag;

use super::arena::Participant;
use super::kinds::{FaultKind, ReaderKind, Step, Way};
use super::random::Random;
use super::{delays, readers, updaters};

/// Sections of such a thread.
const SECTIONS: u64 = 64;

thread_local! {
    static LAST_WORDS: RefCell<Option<LastWords>> = const { RefCell::new(None) };
}

/// Runs a function when the thread ends.
struct LastWords(Option<Box<dyn FnOnce()>>);

impl Drop for LastWords {
    fn drop(&mut self) {
        if let Some(speak) = self.0.take() {
            speak();
        }
    }
}

/// Has `last_words` called when the calling thread ends, by the destructor of a thread-local.
pub(crate) fn at_the_end(last_words: impl FnOnce() + 'static) {
    LAST_WORDS.set(Some(LastWords(Some(Box::new(last_words)))));
}

/// Starts one thread after another until the run is over.
pub(crate) fn run<K: ThreadTag>(participant: &Participant<K>, random: &mut Random) {
    while !participant.ledger.is_over() {
        participant.record().begin(Step::WaitForThread);
        let (participant_of_child, seed) = (participant.clone(), random.next());
        let child = thread::Builder::new()
            .name("passing".to_owned())
            .spawn(move || live(&participant_of_child, Random::from_state(seed)));
        match child {
            Ok(child) => {
                if child.join().is_err() {
                    participant.ledger.fault(
                        FaultKind::Panic,
                        participant.arena.name,
                        None,
                        None,
                        || "a short-lived thread panicked; see standard error".to_owned(),
                    );
                }
            }
            // The system is short of threads for the moment.
            Err(_) => thread::yield_now(),
        }
    }
}

/// The life of such a thread.
fn live<K: ThreadTag>(participant: &Participant<K>, mut random: Random) {
    delays::seed_thread(random.next());
    let sections = 1 + random.below(SECTIONS);
    match random.below(8) {
        0 | 1 => read(participant, ReaderKind::Passing, sections, &mut random),
        2 => {
            let reader = participant.arena.domain.reader();
            (0..sections).for_each(|_| readers::handle(participant, &reader, &mut random));
        }
        3 => {
            let reader = participant.arena.domain.qsbr();
            drop(
                (0..sections)
                    .fold(reader, |reader, _| readers::qsbr(participant, reader, &mut random)),
            );
        }
        // Nothing of the library is touched before the destructor.
        4 | 5 => read_at_the_end(participant, sections, random),
        // The thread is registered before; whose destructor runs first is the system's choice.
        6 => {
            let seed = random.next();
            if random.one_in(2) {
                read(participant, ReaderKind::Passing, sections, &mut random);
                read_at_the_end(participant, sections, Random::from_state(seed));
            } else {
                read_at_the_end(participant, sections, Random::from_state(seed));
                read(participant, ReaderKind::Passing, sections, &mut random);
            }
        }
        _ => (0..1 + random.below(20))
            .for_each(|_| updaters::retire(participant, Way::Passing, &mut random)),
    }
}

fn read<K: ThreadTag>(
    participant: &Participant<K>,
    kind: ReaderKind,
    sections: u64,
    random: &mut Random,
) {
    (0..sections).for_each(|_| readers::read(participant, kind, random));
}

fn read_at_the_end<K: ThreadTag>(participant: &Participant<K>, sections: u64, mut random: Random) {
    let participant = participant.clone();
    at_the_end(move || {
        read(&participant, ReaderKind::Destructor, sections, &mut random);
        if random.one_in(4) {
            updaters::retire(&participant, Way::Passing, &mut random);
        }
    });
}
