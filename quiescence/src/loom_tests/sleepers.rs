//! Tasks that sleep until a grace period or a callback is over.

use super::callbacks::{add_numbered, domain};
use super::*;

/// Notes that its task has been woken.
#[derive(Default)]
struct Flag(std::sync::atomic::AtomicBool);

impl std::task::Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// A task that waits until a callback has been run finds that it has, or is woken.
#[test]
fn a_task_that_waits_for_callbacks_is_not_left_asleep() {
    model_of(4, domain, |core| {
        let queue = core.queues.add_of_nobody(core, Contents::Objects);
        add_numbered(&queue, 0);
        queue.close(core, Urgency::Normal);
        core.grace_periods.advance(STRANGER);
        let to_run = queue.clone();
        let runs = move |core: &DomainState| assert_eq!(to_run.run_some(core, 1), 1);
        let flag = std::sync::Arc::new(Flag::default());
        let wanted = Wanted { cookie: None, room: true };
        let ((), (number, has_run)) = beside(core, runs, |core| {
            let number = core.grace_periods.tell(wanted, None, &flag.clone().into());
            (number, queue.is_empty())
        });
        assert!(has_run || flag.0.load(Relaxed), "left asleep");
        core.grace_periods.tell_no_more(number.unwrap());
        assert_eq!(std::sync::Arc::strong_count(&flag), 1);
    });
}

/// A task that waits for a grace period, which another thread drives.
#[test]
fn a_task_that_waits_for_a_grace_period_is_not_left_asleep() {
    model_of(3, World::new, |world| {
        let reader = spawn(world, reads(world, 1, false));
        let driver = spawn(world, move |world| {
            assert!(world.core.grace_periods.synchronize(Urgency::Normal, STRANGER))
        });
        let old = world.current.swap(1, AcqRel);
        let cookie = world.core.grace_periods.lock().request(Urgency::Normal);
        let flag = std::sync::Arc::new(Flag::default());
        let wanted = Wanted { cookie: Some(cookie), room: false };
        let number = world.core.grace_periods.tell(wanted, None, &flag.clone().into());
        driver.join().unwrap();
        if number.is_none() {
            world.destroy(old);
        } else {
            assert!(world.core.grace_periods.wait(cookie, Urgency::Normal, STRANGER));
            assert!(flag.0.load(Relaxed), "left asleep");
        }
        reader.join().unwrap();
    });
}

/// Begins a section, and stays in it, where it is woken on its own thread.
struct Begins {
    world: Arc<World>,
    slot: &'static Slot,
    thread: thread::ThreadId,
    begun: std::sync::atomic::AtomicBool,
}

impl std::task::Wake for Begins {
    fn wake(self: std::sync::Arc<Self>) {
        if thread::current().id() == self.thread {
            enter(&self.world.core, self.slot);
            self.world.look();
            self.begun.store(true, Relaxed);
        }
    }
}

/// A driver wakes a task between two grace periods. What that begins is waited for: by others, and
/// not by the driver itself.
#[test]
fn a_waker_begins_a_section_on_the_drivers_thread() {
    const OWN: usize = 1;
    model_of(3, World::new, |world| {
        let [own, other] = [OWN, 2].map(|owner| registered(world, owner, ReaderKind::Ordinary));
        enter(&world.core, other);
        let cookie = world.core.grace_periods.lock().request(Urgency::Normal);
        world.core.grace_periods.advance(Me::owner(OWN));
        let begins = std::sync::Arc::new(Begins {
            world: Arc::clone(world),
            slot: own,
            thread: thread::current().id(),
            begun: false.into(),
        });
        let wanted = Wanted { cookie: Some(cookie), room: false };
        assert!(world.core.grace_periods.tell(wanted, None, &begins.clone().into()).is_some());
        let updater = spawn(world, move |world| {
            other.leave();
            world.core.grace_periods.unregister(other);
            world.replace(1);
        });
        let is_over = world.core.grace_periods.synchronize(Urgency::Normal, Me::owner(OWN));
        let has_begun = begins.begun.load(Relaxed);
        assert!(is_over || has_begun);
        if has_begun {
            world.look();
            own.leave();
        }
        updater.join().unwrap();
    });
}
