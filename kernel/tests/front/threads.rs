//! A thread for each CPU: readers, updaters, idle and user mode, interrupts, hotplug, all at once.
//! No reader may see an object whose callback has run, and every callback runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};

use kernel::{GracePeriods, TreeRcu};

use crate::board::{
    Machine, TICK_NS, callback, on, run_callback, section, under_each_engine, with_meanwhile,
    with_nmi,
};

const CPUS: usize = 4;
const SLOTS: usize = 3;

/// What the CPUs share.
struct Shared {
    /// Whether each object's callback has run. That is what readers look for: nothing is freed
    /// before the test ends. The first is none.
    is_gone: Vec<AtomicBool>,
    /// The objects that can be found.
    slots: [AtomicUsize; SLOTS],
    made: AtomicUsize,
    buried: AtomicUsize,
    /// A thread has panicked: the others end too.
    failed: AtomicBool,
    /// Threads that have done their steps.
    done: AtomicU32,
    /// CPU 3 is dying, and is to be buried by CPU 0; then it may start again.
    to_bury: AtomicBool,
}

impl Shared {
    fn bury(&self, object: usize) {
        assert!(!self.is_gone[object].swap(true, SeqCst), "buried twice");
        self.buried.fetch_add(1, SeqCst);
    }

    /// Looks at an object, in a section. Returns which it is.
    fn look(&self, cpu: usize, slot: usize) -> usize {
        let object = self.slots[slot].load(Acquire);
        self.check(cpu, object);
        object
    }

    fn check(&self, cpu: usize, object: usize) {
        let is_gone = self.is_gone[object].load(SeqCst);
        assert!(!is_gone, "CPU {cpu} reads an object whose callback has run");
    }
}

/// Numbers that look random, the same for each seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A CPU that is in no section does what it is asked to, and its tick comes.
fn jiffy<E: GracePeriods<CPUS> + 'static>(machine: &Machine<CPUS, E>, cpu: usize, shared: &Shared) {
    if machine.board.is_to_resched[cpu].swap(0, SeqCst) != 0 {
        machine.kernel.context_switch();
    }
    machine.jiffy(cpu);
    if cpu == 0 && shared.to_bury.load(Acquire) {
        machine.kernel.cpu_dead(CPUS - 1);
        shared.to_bury.store(false, Release);
    }
    assert!(!shared.failed.load(Relaxed), "another CPU has failed");
    std::thread::yield_now();
}

fn read<E: GracePeriods<CPUS> + 'static>(
    machine: &Machine<CPUS, E>,
    cpu: usize,
    shared: &Shared,
    dice: &mut Dice,
) {
    section(|| {
        let object = shared.look(cpu, dice.roll(SLOTS as u64) as usize);
        for step in 0..dice.roll(20) {
            shared.check(cpu, object);
            match step % 8 {
                3 => _ = machine.busy_tick(cpu),
                7 => std::thread::yield_now(),
                _ => {}
            }
        }
    });
}

fn update<E: GracePeriods<CPUS> + 'static>(
    machine: &Machine<CPUS, E>,
    shared: &'static Shared,
    dice: &mut Dice,
) {
    let object = shared.made.fetch_add(1, SeqCst) + 1;
    let slot = &shared.slots[dice.roll(SLOTS as u64) as usize];
    let (old, how) = (slot.swap(object, AcqRel), dice.roll(8));
    match how {
        _ if old == 0 => return,
        0 => machine.kernel.synchronize_expedited().expect("in no section"),
        1 => machine.kernel.synchronize().expect("in no section"),
        2 => {
            let cookie = machine.kernel.cookie();
            machine.kernel.wait(cookie).expect("in no section");
        }
        _ => {
            let head = callback(0, Box::new(move || shared.bury(old)));
            // SAFETY: the callback is nobody else's.
            return unsafe { machine.kernel.call(head, run_callback) }
                .map(drop)
                .expect("it is online, and not queued");
        }
    }
    shared.bury(old);
}

/// Idle or in user mode, with interrupts in which there are sections.
fn rest<E: GracePeriods<CPUS> + 'static>(
    machine: &Machine<CPUS, E>,
    cpu: usize,
    shared: &Shared,
    dice: &mut Dice,
) {
    let is_idle = dice.roll(2) == 0;
    let kernel = &machine.kernel;
    let mut ticks = if is_idle { kernel.idle_enter() } else { kernel.user_enter() };
    for _ in 0..dice.roll(10) {
        if ticks {
            ticks = machine.tick(cpu, !is_idle);
            machine.board.clock_ns.fetch_add(TICK_NS / 4, SeqCst);
        }
        if dice.roll(3) == 0 {
            let interrupt = machine.enter(cpu);
            read(machine, cpu, shared, dice);
            machine.exit(cpu, interrupt);
        }
        std::thread::yield_now();
    }
    if is_idle { kernel.idle_exit() } else { kernel.user_exit() }
}

/// CPU 3 goes, and comes again.
fn unplug<E: GracePeriods<CPUS> + 'static>(
    machine: &Machine<CPUS, E>,
    cpu: usize,
    shared: &Shared,
) {
    assert!(machine.kernel.cpu_dying(cpu));
    shared.to_bury.store(true, Release);
    while shared.to_bury.load(Acquire) {
        assert!(!shared.failed.load(Relaxed), "another CPU has failed");
        std::thread::yield_now();
    }
    machine.start(cpu);
}

fn live<E: GracePeriods<CPUS> + 'static>(
    machine: &Machine<CPUS, E>,
    cpu: usize,
    shared: &'static Shared,
    steps: usize,
    seed: u64,
) {
    let mut dice = Dice(seed * 1_000 + cpu as u64);
    for _ in 0..steps {
        match dice.roll(24) {
            0..8 => read(machine, cpu, shared, &mut dice),
            8..13 => update(machine, shared, &mut dice),
            13..16 => rest(machine, cpu, shared, &mut dice),
            16 if cpu == CPUS - 1 => unplug(machine, cpu, shared),
            17 if dice.roll(8) == 0 => machine.kernel.barrier().expect("in no section"),
            _ => jiffy(machine, cpu, shared),
        }
    }
    shared.done.fetch_add(1, SeqCst);
    while shared.done.load(SeqCst) < CPUS as u32 {
        jiffy(machine, cpu, shared);
    }
    if cpu == 0 {
        machine.kernel.barrier().expect("in no section");
        shared.done.fetch_add(1, SeqCst);
    }
    while shared.done.load(SeqCst) <= CPUS as u32 {
        jiffy(machine, cpu, shared);
    }
}

fn torture<E: GracePeriods<CPUS> + 'static>(steps: usize, seed: u64) {
    let machine = Machine::<CPUS, E>::with(CPUS, |_| {});
    machine.board.has_threads.store(true, SeqCst);
    let shared = Shared {
        is_gone: (0..=CPUS * steps).map(|_| AtomicBool::new(false)).collect(),
        slots: [const { AtomicUsize::new(0) }; SLOTS],
        made: AtomicUsize::new(0),
        buried: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        done: AtomicU32::new(0),
        to_bury: AtomicBool::new(false),
    };
    let both = NonNull::from(Box::leak(Box::new((machine, shared))));
    // SAFETY: it is freed below, when the threads have ended.
    let (machine, shared): &'static (Machine<CPUS, E>, Shared) = unsafe { both.as_ref() };
    let threads: Vec<_> = (0..CPUS)
        .map(|cpu| {
            std::thread::spawn(move || {
                let meanwhile = Rc::new(move || jiffy(machine, cpu, shared));
                let all = || with_meanwhile(meanwhile, || live(machine, cpu, shared, steps, seed));
                let nmi = Rc::new(move || machine.nmi(|| _ = shared.look(cpu, 0)));
                let ended = catch_unwind(AssertUnwindSafe(|| with_nmi(nmi, || on(cpu, all))));
                shared.failed.fetch_or(ended.is_err(), SeqCst);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("panics are caught"));
    assert!(!shared.failed.load(SeqCst), "a CPU has panicked");
    let in_slots = shared.slots.iter().filter(|slot| slot.load(SeqCst) != 0).count();
    assert_eq!(shared.buried.load(SeqCst) + in_slots, shared.made.load(SeqCst));
    assert_eq!(machine.kernel.snapshot().expect("the lock is free").misuses.0, 0);
    // SAFETY: no thread is left, and no callback.
    drop(unsafe { Box::from_raw(both.as_ptr()) });
}

#[test]
fn no_reader_sees_what_is_gone_and_all_that_is_queued_runs() {
    let (steps, seeds) = if cfg!(miri) { (25, 1) } else { (6_000, 4) };
    (1..seeds).for_each(|seed| torture::<TreeRcu<CPUS>>(steps, seed));
    under_each_engine!(CPUS, { torture::<E>(steps, seeds) });
}
