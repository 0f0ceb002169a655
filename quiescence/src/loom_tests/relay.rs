//! The relay: QSBR readers that hand the number of a grace period on.

use super::*;

const RELAY: Settings = Settings {
    policy: AnyPolicy::Token(Token { looks_max: 1 }),
    budget: None,
    readers_fence: false,
};

/// A slot of a QSBR reader, for a thread that it is moved to.
fn qsbr(world: &Arc<World>, online: bool) -> &'static Slot {
    let slot = std::ptr::from_ref(world.core.grace_periods.register(1, ReaderKind::Qsbr));
    // SAFETY: the registry keeps the slot while `world` lives, and every thread of a model has it.
    let slot = unsafe { &*slot };
    if online {
        slot.online(&world.core.grace_periods.gp_words.gp, Location::caller());
    }
    slot
}

/// One reader hands the number on to another one, which comes online at any time.
#[test]
fn a_relay_of_two() {
    bounded(2, || {
        let world = World::with(RELAY);
        let (first, second) = (qsbr(&world, true), qsbr(&world, false));
        let readers = [
            spawn(&world, move |world| {
                world.look();
                first.renew();
            }),
            spawn(&world, move |world| {
                second.online(&world.core.grace_periods.gp_words.gp, Location::caller());
                world.look();
            }),
        ];
        let (old, cookie) = world.begin_to_replace(1);
        world.core.grace_periods.advance_at_tick(STRANGER);
        world.destroy_if_done(old, cookie);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// A reader that is offline all the time is passed over: the one behind it holds nothing up for
/// ever.
#[test]
fn a_relay_with_a_gap() {
    bounded(2, || {
        let world = World::with(RELAY);
        let (_gap, last) = (qsbr(&world, false), qsbr(&world, true));
        let done = Arc::new(AtomicUsize::new(0));
        let stop = Arc::clone(&done);
        let reader = spawn(&world, move |world| {
            world.look();
            while stop.load(Relaxed) == 0 {
                last.renew();
                thread::yield_now();
            }
        });
        world.replace(1);
        done.store(1, Relaxed);
        reader.join().unwrap();
    });
}

/// The first hands the number on and goes offline, at any time; the second gets it all the same.
#[test]
fn a_relay_whose_first_goes_away() {
    model(|| {
        let world = World::with(RELAY);
        let (first, last) = (qsbr(&world, true), qsbr(&world, true));
        let away = spawn(&world, move |world| {
            world.look();
            first.renew();
            world.look();
            first.offline();
        });
        let (old, cookie) = world.begin_to_replace(1);
        last.renew();
        world.core.grace_periods.advance_at_tick(STRANGER);
        world.destroy_if_done(old, cookie);
        away.join().unwrap();
        last.renew();
        world.core.grace_periods.advance_at_tick(STRANGER);
        last.renew();
        world.core.grace_periods.advance_at_tick(STRANGER);
        assert!(world.core.grace_periods.sequence().is_done(cookie));
    });
}

/// A reader whose only quiescent states are those at which it comes online: the driver need not
/// meet it offline.
#[test]
fn a_relay_of_one_that_only_comes_and_goes() {
    model(|| {
        let world = World::with(RELAY);
        let slot = qsbr(&world, true);
        let (old, cookie) = world.begin_to_replace(1);
        let reader = spawn(&world, move |world| {
            world.look();
            slot.offline();
            slot.online(&world.core.grace_periods.gp_words.gp, Location::caller());
            world.look();
        });
        world.core.grace_periods.advance_at_tick(STRANGER);
        world.destroy_if_done(old, cookie);
        reader.join().unwrap();
        world.core.grace_periods.advance_at_tick(STRANGER);
        assert!(world.core.grace_periods.sequence().is_done(cookie));
    });
}

/// In the middle of a grace period the middle one of three unregisters, and its slot changes hands.
#[test]
fn a_relay_that_changes() {
    model(|| {
        let world = World::with(RELAY);
        let [first, middle, last] = [0, 1, 2].map(|_| qsbr(&world, true));
        let reader = spawn(&world, move |world| {
            world.look();
            first.offline();
        });
        let renewer = thread::spawn(move || {
            last.renew();
        });
        let (old, cookie) = world.begin_to_replace(1);
        middle.offline();
        world.core.grace_periods.unregister(middle);
        let newcomer = qsbr(&world, true);
        assert!(std::ptr::eq(newcomer, middle));
        newcomer.renew();
        newcomer.offline();
        world.core.grace_periods.advance_at_tick(STRANGER);
        world.destroy_if_done(old, cookie);
        reader.join().unwrap();
        renewer.join().unwrap();
    });
}
