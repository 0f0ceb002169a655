//! Callback queues: threads that add, run, end and move on, beside a worker that comes and goes.

use super::*;

thread_local! {
    /// How many callbacks of a queue model have run. Loom runs all of a model on one thread.
    static RUN: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A callback that notes its place in the order. `pointer` says whether it may stand without its
/// kind.
const fn numbered(pointer: bool) -> CallbackType {
    CallbackType {
        words: 1,
        pointer,
        bytes: Some(0),
        bytes_of: |_| 0,
        run: |_, payload| {
            // SAFETY: what `add_numbered` wrote.
            let number = unsafe { payload.cast::<*const ()>().read() };
            assert_eq!(RUN.replace(RUN.get() + 1), number.addr() / 2, "out of order");
        },
        memory: None,
        function: None,
    }
}

/// Some that need their kind, so that pages are turned early, and some that do not.
static NUMBERED: [CallbackType; 2] = [numbered(false), numbered(true)];

pub(super) fn add_numbered(queue: &Queue, number: usize) {
    let payload = std::ptr::without_provenance::<()>(number * 2);
    // SAFETY: a word with a lowest bit of 0.
    unsafe { own(queue).add(&NUMBERED[number / 3 % 2], payload, 0) };
}

fn own(queue: &Queue) -> OwnQueue<'_> {
    // SAFETY: each queue has one thread that adds.
    unsafe { OwnQueue::at(queue) }
}

/// A callback that destroys an object.
static DESTROY: CallbackType = CallbackType {
    words: 1,
    pointer: true,
    bytes: Some(0),
    bytes_of: |_| 0,
    run: |_, payload| {
        // SAFETY: what `retire` wrote: an object of a world that outlives its callbacks.
        let object = unsafe { &*payload.cast::<*const UnsafeCell<u32>>().read() };
        // SAFETY: a write; that no reader is near is what is tested.
        object.with_mut(|object| unsafe { *object = 0xdead });
    },
    memory: None,
    function: None,
};

/// Unlinks the current object, and has it destroyed.
fn retire(world: &World, queue: &Queue, new: usize) {
    let old = world.current.swap(new, AcqRel);
    let object = std::ptr::from_ref(&world.objects[old]);
    // SAFETY: it is run once, before the end of the model.
    unsafe { own(queue).add(&DESTROY, object, 0) };
}

/// Loom's complaint about an access in a callback ends there, as any panic does.
fn nothing_panicked(core: &DomainState) {
    assert_eq!(core.grace_periods.counters().callbacks_panicked.load(Relaxed), 0);
}

/// As an updater does: a step, and what is ready.
fn run_some(core: &DomainState, queue: &Queue) {
    queue.close(core, Urgency::Normal);
    core.grace_periods.advance(STRANGER);
    queue.run_some(core, 32);
}

/// All of it.
fn run_all(core: &DomainState, queue: &Queue) {
    drain_one(core, queue, &|| STRANGER);
    nothing_panicked(core);
}

/// As a thread does that ends: what it has queued moves on.
fn leave_behind(core: &DomainState, queue: &Queue) {
    own(queue).mark_orphan(core);
    core.queues.forget_orphans(core);
}

/// A domain of a model in which no callback has run.
pub(super) fn domain() -> Arc<DomainState> {
    RUN.set(0);
    Arc::new(DomainState::new(Start::ZERO, SETTINGS))
}

fn two_threads_run_in_order(before: usize, after: usize) {
    model_of(2, domain, move |core| {
        let queue = Arc::new(Queue::of_nobody(core, Contents::Objects));
        (0..before).for_each(|number| add_numbered(&queue, number));
        let its = Arc::clone(&queue);
        let runs = move |core: &DomainState| run_some(core, &its);
        beside(core, runs, |core| {
            (before..before + after).for_each(|number| add_numbered(&queue, number));
            run_all(core, &queue);
            assert_eq!(RUN.get(), before + after);
        });
        assert!(queue.is_empty());
    });
}

/// While one thread closes and runs, the other adds, turns a page, and runs the rest.
#[test]
fn two_threads_run_a_queue_in_order() {
    two_threads_run_in_order(2, 1);
}

/// The reader gives pages back while the writer needs new ones.
#[test]
fn pages_go_round() {
    two_threads_run_in_order(5, 3);
}

#[test]
fn callbacks_wait_for_readers() {
    model_of(4, World::new, |world| {
        beside_a_section(world, |world| {
            let queue = Queue::of_nobody(&world.core, Contents::Objects);
            retire(world, &queue, 1);
            run_some(&world.core, &queue);
            run_all(&world.core, &queue);
        });
    });
}

/// What one thread adds another one closes and runs, beside a reader that has driven a grace period
/// just before its section.
#[test]
fn what_another_thread_closes_waits_for_readers() {
    model_of(3, World::new, |world| {
        let queue = Arc::new(Queue::of_nobody(&world.core, Contents::Objects));
        let slot = registered(world, 3, ReaderKind::Ordinary);
        let reader = spawn(world, move |world| {
            world.core.grace_periods.advance(Me::owner(3));
            world.section(slot);
        });
        let adds = Arc::clone(&queue);
        let retires = move |world: &World| retire(world, &adds, 1);
        beside(world, retires, |world| run_some(&world.core, &queue));
        run_all(&world.core, &queue);
        reader.join().unwrap();
    });
}

/// The thread that adds while the worker leaves finds out that it has to announce, or the worker
/// sees what was added.
#[test]
fn the_worker_leaves_nothing_behind() {
    model_of(4, domain, |core| {
        core.queues.announced.store(true, Relaxed);
        let queue = core.queues.add_of_nobody(core, Contents::Closures);
        let adds = move |core: &DomainState| {
            add_numbered(&queue, 0);
            core.queues.announced.load(Relaxed)
        };
        let (announced, wants) = beside(core, adds, |core| core.queues.leave());
        assert!(wants != Wants::Nothing || !announced, "a callback that nobody looks after");
        core.queues.drain(core, false, || STRANGER);
        assert_eq!(RUN.get(), 1);
    });
}

/// A fork between the two made a child in which a queue was listed and not counted: taken out, it
/// was one less than none.
#[test]
fn a_queue_in_the_list_is_counted() {
    model_of(3, domain, |core| {
        let adds = |core: &DomainState| drop(core.queues.add_of_nobody(core, Contents::Closures));
        beside(core, adds, |core| {
            let listed = core.queues.all().len() as u64;
            assert!(core.charge.queues.load(Relaxed) >= listed);
        });
    });
}

/// A thread adds a last callback and ends; its queue is adopted with all that is in it.
#[test]
fn an_orphan_is_forgotten_when_it_is_empty() {
    model_of(4, domain, |core| {
        let queue = core.queues.add_of_nobody(core, Contents::Closures);
        let adds = move |core: &DomainState| {
            add_numbered(&queue, 0);
            own(&queue).mark_orphan(core);
        };
        beside(core, adds, |core| core.queues.forget_orphans(core));
        assert_eq!(core.queues.counts().queued, 1);
        core.queues.drain(core, false, || STRANGER);
        assert_eq!(RUN.get(), 1, "forgotten with a callback in it");
        core.queues.forget_orphans(core);
        assert_eq!(core.charge.queues.load(Relaxed), 0);
    });
}

/// A thread ends, and what it has queued moves on while a barrier waits for it: the barrier finds
/// it there. What comes after it to the same queue comes after it.
#[test]
fn a_barrier_finds_what_was_left_behind() {
    model_of(3, domain, |core| {
        let queue = core.queues.add_of_nobody(core, Contents::Closures);
        (0..2).for_each(|number| add_numbered(&queue, number));
        let leaves = move |core: &DomainState| leave_behind(core, &queue);
        beside(core, leaves, |core| {
            core.queues.drain(core, false, || STRANGER);
            nothing_panicked(core);
            assert_eq!(RUN.get(), 2, "the barrier is over");
        });
        core.queues.forget_orphans(core);
        assert_eq!((core.charge.queues.load(Relaxed), core.queues.counts().queued), (0, 2));
    });
}

/// A thread that ends takes nothing out of the worker's sight when it leaves the domain alone.
#[test]
fn the_worker_sees_what_moves() {
    model_of(3, domain, |core| {
        core.queues.announced.store(true, Relaxed);
        // The shared queue is empty, and looked at before the other one.
        core.queues.with_shared(core, Contents::Closures, |_| ());
        let queue = core.queues.add_of_nobody(core, Contents::Closures);
        add_numbered(&queue, 0);
        let leaves = move |core: &DomainState| leave_behind(core, &queue);
        beside(core, leaves, |core| {
            assert_eq!(core.queues.leave(), Wants::Company);
            assert_eq!(core.queues.counts().queued, 1);
        });
        core.queues.drain(core, false, || STRANGER);
    });
}

/// A thread hurries the worker and ends: what it has queued is closed wherever it has moved to, or
/// the worker comes again. A past error: it waited in the shared queue for as long as `lazy`.
#[test]
fn what_is_hurried_is_closed_where_it_moves() {
    model_of(3, domain, |core| {
        // The shared queue is closed before the other one.
        core.queues.with_shared(core, Contents::Closures, |_| ());
        let hurries = |core: &DomainState| {
            let queue = core.queues.add_of_nobody(core, Contents::Closures);
            add_numbered(&queue, 0);
            core.queues.hurried.store(true, Release);
            leave_behind(core, &queue);
        };
        let ((), closed) = beside(core, hurries, |core| {
            let closes = core.queues.hurried.swap(false, Acquire);
            closes && core.queues.close_unless_busy(core, Urgency::Expedited) == 0
        });
        let comes_again = !closed || core.queues.hurried.load(Relaxed);
        assert!(comes_again || core.queues.wants() != Wants::Company, "it is open, and waits");
        core.queues.drain(core, false, || STRANGER);
    });
}
