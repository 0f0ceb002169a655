//! Readers that follow liburcu's protocol, in slots of their own memory.

use super::*;

/// A reader that follows liburcu's protocol, whatever compiled it: see `liburcu_readers`. It wakes
/// the driver if it finds that it sleeps, and looks at nothing else.
fn liburcu_section(world: &World, words: &Words, slot: &Slot) {
    slot.word().store(words.ctr.load(Acquire), Release);
    fence::light(&slot.fence);
    world.look();
    fence::light(&slot.fence);
    slot.word().store(0, Release);
    fence::light(&slot.fence);
    if words.futex.load(Relaxed) == u32::MAX {
        words.futex.store(0, Relaxed);
        futex::wake_shared(&words.futex);
    }
}

fn beside_liburcu_readers(readers: usize, sections: usize, preemptions: usize) {
    bounded(preemptions, move || {
        let mut core = DomainState::new(Start::ZERO, SETTINGS);
        core.grace_periods.gp_words.liburcu = Some(Links::new(Readers::Light));
        let world = World::of(core);
        // Leaked, as the words of a program are for ever.
        let words: &'static Words = Box::leak(Box::new(Words {
            ctr: AtomicU64::new(grace::word::entered(Start::ZERO.number)),
            futex: AtomicU32::new(0),
        }));
        let nothing = Surroundings { begin: || 0, end: |_| () };
        world.core.grace_periods.gp_words.liburcu.as_ref().unwrap().attach(words, nothing);
        let readers: Vec<_> = (0..readers)
            .map(|_| {
                let slot = registered(&world, 1, ReaderKind::Liburcu(Readers::Light));
                spawn(&world, move |world| {
                    (0..sections).for_each(|_| liburcu_section(world, words, slot));
                })
            })
            .collect();
        world.replace(1);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(words.futex.load(Relaxed), 0, "readers would go on with system calls");
    });
}

/// The driver sleeps until a liburcu reader has left, and is not left asleep.
#[test]
fn a_driver_sleeps_beside_a_liburcu_reader() {
    beside_liburcu_readers(1, 2, 3);
}

/// The thread that leaves wakes it, also one that it does not wait for; it then polls again.
#[test]
fn a_driver_sleeps_beside_two_liburcu_readers() {
    beside_liburcu_readers(2, 1, 2);
}
