//! Readers, drivers and sleepers of one domain, whose readers are registered threads.

use super::*;

fn reader_and_updater(settings: Settings, sections: usize, nested: bool, grace_periods: usize) {
    bounded(4, move || {
        let world = &World::with(settings);
        let updates = |world: &World| (1..=grace_periods).for_each(|new| world.replace(new));
        beside(world, reads(world, sections, nested), updates);
    });
}

#[test]
fn one_section_one_grace_period() {
    reader_and_updater(SETTINGS, 1, false, 1);
}

/// The scan may meet the word of a second section and never that of the first one's end.
#[test]
fn a_section_hides_the_end_of_the_one_before() {
    model_of(4, World::new, |world| {
        let slot = world.core.grace_periods.register(1, ReaderKind::Ordinary);
        beside(world, |world| world.replace(1), |world| (0..2).for_each(|_| world.section(slot)));
    });
}

#[test]
fn one_section_two_grace_periods() {
    reader_and_updater(SETTINGS, 1, false, 2);
}

#[test]
fn nested_sections() {
    reader_and_updater(SETTINGS, 1, true, 1);
}

fn comes_and_reads(world: &World, owner: usize) {
    let slot = world.core.grace_periods.register(owner, ReaderKind::Ordinary);
    world.section(slot);
    world.core.grace_periods.unregister(slot);
}

#[test]
fn registration_during_a_grace_period() {
    model_of(4, World::new, |world| {
        beside(world, |world| comes_and_reads(world, 1), |world| world.replace(1));
        assert_eq!(world.core.grace_periods.readers(), 0);
    });
}

/// A thread that leaves and unregisters while it is being marked, and another one that gets its
/// slot.
#[test]
fn a_slot_changes_hands_while_the_driver_marks_it() {
    model_of(4, World::new, |world| {
        let comes_and_goes = |world: &World| {
            let slot = world.core.grace_periods.register(2, ReaderKind::Ordinary);
            world.core.grace_periods.unregister(slot);
        };
        let here = |world: &World| comes_and_reads(world, 1);
        beside_two(world, |world| world.replace(1), comes_and_goes, here);
    });
}

#[test]
fn two_updaters_share_and_are_both_served() {
    model_of(4, World::new, |world| {
        let slot = world.core.grace_periods.register(1, ReaderKind::Ordinary);
        let reads_and_replaces = |world: &World| {
            world.section(slot);
            world.replace(2);
        };
        beside(world, |world| world.replace(1), reads_and_replaces);
        assert!(world.core.grace_periods.sequence().ended() <= 2);
    });
}

/// A section that begins after the announcement of one grace period holds up the next one only; so
/// an updater that comes in between must get the next one.
#[test]
fn a_request_in_mid_grace_period() {
    model_of(4, World::new, |world| {
        let drives = |world: &World| {
            world.core.grace_periods.lock().request(Urgency::Normal);
            world.core.grace_periods.advance(STRANGER);
        };
        beside_two(world, reads(world, 1, false), drives, |world| world.replace(1));
    });
}

/// A waiter takes the driver's place, wherever it finds it without its locks; the superseded driver
/// changes nothing any more, and both are served.
#[test]
fn a_waiter_takes_a_drivers_place() {
    bounded(3, || {
        let world = &World::with(settings(AnyPolicy::Adaptive(SLEEPY)));
        let replaces = |world: &World| world.replace(1);
        let impatient = |world: &World| world.replace_impatiently(2, 1);
        beside_two(world, reads(world, 1, false), replaces, impatient);
    });
}

/// Where it sleeps for a holdout, too.
const SLEEPY: Adaptive = Adaptive { looks_max: 0, looks_max_expedited: 0 };

/// A superseded driver, late to its sleep, does not sleep for the holdouts of a later grace period:
/// it returns when its own is over.
#[test]
fn a_superseded_driver_is_not_late() {
    bounded(2, || {
        let world = &World::with(settings(AnyPolicy::Adaptive(SLEEPY)));
        let slot = world.core.grace_periods.register(1, ReaderKind::Ordinary);
        enter(&world.core, slot);
        let cookie = world.core.grace_periods.lock().request(Urgency::Normal);
        // Announced: the second section does not hold it up.
        world.core.grace_periods.advance(STRANGER);
        let driver = spawn(world, move |world| {
            assert!(world.core.grace_periods.wait(cookie, Urgency::Normal, STRANGER))
        });
        let other = spawn(world, move |world| {
            world.core.grace_periods.synchronize_impatiently(STRANGER, 1)
        });
        slot.leave();
        enter(&world.core, slot);
        driver.join().unwrap();
        slot.leave();
        other.join().unwrap();
    });
}

#[test]
fn qsbr_reader() {
    model_of(4, World::new, |world| {
        let reads = |world: &World| {
            let slot = world.core.grace_periods.register(1, ReaderKind::Qsbr);
            slot.online(&world.core.grace_periods.gp_words.gp, Location::caller());
            world.look();
            slot.renew();
            world.look();
            slot.offline();
            world.core.grace_periods.unregister(slot);
        };
        beside(world, reads, |world| world.replace(1));
    });
}

/// The only reader, which stays online, unlinks while another one comes. It frees at once where it
/// is alone, and waits where it is not.
fn alone_or_not(another: fn(&World)) {
    model_of(4, World::new, move |world| {
        let slot = world.core.grace_periods.register(1, ReaderKind::Qsbr);
        slot.online(&world.core.grace_periods.gp_words.gp, Location::caller());
        world.core.grace_periods.alone.store(true, Relaxed);
        beside(world, another, |world| {
            world.look();
            world.replace_alone(1, slot);
            world.look();
            slot.offline();
        });
    });
}

#[test]
fn a_reader_that_may_be_alone_beside_one_that_comes() {
    alone_or_not(|world| {
        let slot = world.core.grace_periods.register(2, ReaderKind::Qsbr);
        slot.online(&world.core.grace_periods.gp_words.gp, Location::caller());
        world.look();
        slot.offline();
        world.core.grace_periods.unregister(slot);
    });
}

#[test]
fn a_reader_that_may_be_alone_beside_another_updater() {
    alone_or_not(|world| world.replace(2));
}

#[test]
fn a_grace_period_driven_in_steps() {
    model_of(4, World::new, |world| {
        beside_a_section(world, |world| {
            let (old, cookie) = world.begin_to_replace(1);
            assert!(world.core.grace_periods.wait(cookie, Urgency::Normal, STRANGER));
            assert!(world.core.grace_periods.sequence().is_done(cookie));
            world.destroy(old);
        });
    });
}

/// Readers that execute full fences, and grace periods with none but the driver's own. One of the
/// section and the grace period sees the other; and the driver, which goes to sleep at once, is
/// woken.
#[test]
fn a_domain_whose_readers_fence() {
    for policy in [Adaptive::DEFAULT, SLEEPY] {
        let settings = Settings { readers_fence: true, ..settings(AnyPolicy::Adaptive(policy)) };
        bounded(4, move || {
            let world = &World::with(settings);
            beside_a_section(world, |world| world.replace(1));
            let counters = world.core.grace_periods.counters();
            assert_eq!(counters.heavy_fences.load(Relaxed), 0);
        });
    }
}

#[test]
fn everything_on_the_tick() {
    reader_and_updater(settings(AnyPolicy::Tick(Tick)), 2, false, 1);
}
