//! The relay: QSBR readers that hand the number of a grace period on.

use super::*;

const RELAY: Settings = Settings {
    policy: AnyPolicy::Token(Token { looks_max: 1 }),
    budget: None,
    readers_fence: false,
};

/// A slot of a QSBR reader, for a thread that it is moved to.
fn qsbr(world: &World, online: bool) -> &'static Slot {
    let slot = registered(world, 1, ReaderKind::Qsbr);
    if online {
        slot.online(&world.core.grace_periods.gp_words.gp, Location::caller());
    }
    slot
}

/// One reader hands the number on to another one, which comes online at any time.
#[test]
fn a_relay_of_two() {
    bounded(2, || {
        let world = &World::with(RELAY);
        let (first, second) = (qsbr(world, true), qsbr(world, false));
        let hands_on = move |world: &World| {
            world.look();
            first.renew();
        };
        let comes = move |world: &World| {
            second.online(&world.core.grace_periods.gp_words.gp, Location::caller());
            world.look();
        };
        beside_two(world, hands_on, comes, |world| {
            let (old, cookie) = world.begin_to_replace(1);
            world.go_on_to_replace(old, cookie);
        });
    });
}

/// A reader that is offline all the time is passed over: the one behind it holds nothing up for
/// ever.
#[test]
fn a_relay_with_a_gap() {
    bounded(2, || {
        let world = &World::with(RELAY);
        let (_gap, last) = (qsbr(world, false), qsbr(world, true));
        let done = Arc::new(AtomicUsize::new(0));
        let stop = Arc::clone(&done);
        let renews = move |world: &World| {
            world.look();
            while stop.load(Relaxed) == 0 {
                last.renew();
                thread::yield_now();
            }
        };
        beside(world, renews, |world| {
            world.replace(1);
            done.store(1, Relaxed);
        });
    });
}

/// The first hands the number on and goes offline, at any time; the second gets it all the same.
#[test]
fn a_relay_whose_first_goes_away() {
    bounded(4, || {
        let world = &World::with(RELAY);
        let (first, last) = (qsbr(world, true), qsbr(world, true));
        let goes_away = move |world: &World| {
            world.look();
            first.renew();
            world.look();
            first.offline();
        };
        let ((), cookie) = beside(world, goes_away, |world| {
            let (old, cookie) = world.begin_to_replace(1);
            last.renew();
            world.go_on_to_replace(old, cookie);
            cookie
        });
        last.renew();
        world.core.grace_periods.advance_at(STRANGER, true);
        last.renew();
        world.core.grace_periods.advance_at(STRANGER, true);
        assert!(world.core.grace_periods.sequence().is_done(cookie));
    });
}

/// A reader whose only quiescent states are those at which it comes online: the driver need not
/// meet it offline.
#[test]
fn a_relay_of_one_that_only_comes_and_goes() {
    bounded(4, || {
        let world = &World::with(RELAY);
        let slot = qsbr(world, true);
        let (old, cookie) = world.begin_to_replace(1);
        let comes_and_goes = move |world: &World| {
            world.look();
            slot.offline();
            slot.online(&world.core.grace_periods.gp_words.gp, Location::caller());
            world.look();
        };
        beside(world, comes_and_goes, |world| world.go_on_to_replace(old, cookie));
        world.core.grace_periods.advance_at(STRANGER, true);
        assert!(world.core.grace_periods.sequence().is_done(cookie));
    });
}

/// In the middle of a grace period the middle one of three unregisters, and its slot changes hands.
#[test]
fn a_relay_that_changes() {
    bounded(4, || {
        let world = &World::with(RELAY);
        let [first, middle, last] = [0, 1, 2].map(|_| qsbr(world, true));
        let reader = spawn(world, move |world| {
            world.look();
            first.offline();
        });
        let renewer = thread::spawn(move || {
            last.renew();
        });
        let (old, cookie) = world.begin_to_replace(1);
        middle.offline();
        world.core.grace_periods.unregister(middle);
        let newcomer = qsbr(world, true);
        assert!(std::ptr::eq(newcomer, middle));
        newcomer.renew();
        newcomer.offline();
        world.go_on_to_replace(old, cookie);
        reader.join().unwrap();
        renewer.join().unwrap();
    });
}
