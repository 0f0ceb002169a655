//! A thread for each CPU: readers, updaters, idle and user mode, interrupts, hotplug, all at once.
//! No reader may see an object whose callback has run, and every callback runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};

use kernel::{GracePeriods, TreeRcu};

use crate::board::{
    Dice, Machine, TICK_NS, callback, on, run_callback, section, under_each_engine, with_meanwhile,
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

/// A CPU, which is a thread.
struct Cpu<E: 'static> {
    machine: &'static Machine<CPUS, E>,
    number: usize,
    shared: &'static Shared,
}

impl<E: GracePeriods<CPUS> + 'static> Cpu<E> {
    /// In no section it does what it is asked to, and its tick comes.
    fn jiffy(&self) {
        let Self { machine, number, shared } = *self;
        if machine.board.is_to_resched[number].swap(0, SeqCst) != 0 {
            machine.kernel.context_switch();
        }
        machine.jiffy(number);
        if number == 0 && shared.to_bury.load(Acquire) {
            machine.kernel.cpu_dead(CPUS - 1);
            shared.to_bury.store(false, Release);
        }
        assert!(!shared.failed.load(Relaxed), "another CPU has failed");
        std::thread::yield_now();
    }

    fn read(&self, dice: &Dice) {
        section(|| {
            let object = self.shared.look(self.number, dice.roll(SLOTS as u64) as usize);
            for step in 0..dice.roll(20) {
                self.shared.check(self.number, object);
                match step % 8 {
                    3 => _ = self.machine.busy_tick(self.number),
                    7 => std::thread::yield_now(),
                    _ => {}
                }
            }
        });
    }

    fn update(&self, dice: &Dice) {
        let (kernel, shared) = (&self.machine.kernel, self.shared);
        let object = shared.made.fetch_add(1, SeqCst) + 1;
        let slot = &shared.slots[dice.roll(SLOTS as u64) as usize];
        let (old, how) = (slot.swap(object, AcqRel), dice.roll(8));
        match how {
            _ if old == 0 => return,
            0 => kernel.synchronize_expedited().expect("in no section"),
            1 => kernel.synchronize().expect("in no section"),
            2 => kernel.wait(kernel.cookie()).expect("in no section"),
            _ => {
                let head = callback(0, Box::new(move || shared.bury(old)));
                // SAFETY: the callback is nobody else's.
                let queued = unsafe { kernel.call(head, run_callback) };
                return queued.map(drop).expect("it is online, and not queued");
            }
        }
        shared.bury(old);
    }

    /// Idle or in user mode, with interrupts in which there are sections.
    fn rest(&self, dice: &Dice) {
        let Self { machine, number, .. } = *self;
        let is_idle = dice.roll(2) == 0;
        let kernel = &machine.kernel;
        let mut ticks = if is_idle { kernel.idle_enter() } else { kernel.user_enter() };
        for _ in 0..dice.roll(10) {
            if ticks {
                ticks = machine.tick(number, !is_idle);
                machine.board.clock_ns.fetch_add(TICK_NS / 4, SeqCst);
            }
            if dice.roll(3) == 0 {
                let interrupt = machine.enter(number);
                self.read(dice);
                machine.exit(number, interrupt);
            }
            std::thread::yield_now();
        }
        if is_idle { kernel.idle_exit() } else { kernel.user_exit() }
    }

    /// CPU 3 goes, and comes again.
    fn unplug(&self) {
        assert!(self.machine.kernel.cpu_dying(self.number));
        self.shared.to_bury.store(true, Release);
        while self.shared.to_bury.load(Acquire) {
            assert!(!self.shared.failed.load(Relaxed), "another CPU has failed");
            std::thread::yield_now();
        }
        self.machine.start(self.number);
    }

    fn live(&self, steps: usize, seed: u64) {
        let Self { machine, number, shared } = *self;
        let dice = Dice::new(seed * 1_000 + number as u64);
        for _ in 0..steps {
            match dice.roll(24) {
                0..8 => self.read(&dice),
                8..13 => self.update(&dice),
                13..16 => self.rest(&dice),
                16 if number == CPUS - 1 => self.unplug(),
                17 if dice.roll(8) == 0 => machine.kernel.barrier().expect("in no section"),
                _ => self.jiffy(),
            }
        }
        shared.done.fetch_add(1, SeqCst);
        while shared.done.load(SeqCst) < CPUS as u32 {
            self.jiffy();
        }
        if number == 0 {
            machine.kernel.barrier().expect("in no section");
            shared.done.fetch_add(1, SeqCst);
        }
        while shared.done.load(SeqCst) <= CPUS as u32 {
            self.jiffy();
        }
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
        .map(|number| {
            std::thread::spawn(move || {
                let cpu = Rc::new(Cpu { machine, number, shared });
                let its = cpu.clone();
                let meanwhile = Rc::new(move || its.jiffy());
                let all = || with_meanwhile(meanwhile, || cpu.live(steps, seed));
                let nmi = Rc::new(move || machine.nmi(|| _ = shared.look(number, 0)));
                let ended = catch_unwind(AssertUnwindSafe(|| with_nmi(nmi, || on(number, all))));
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
