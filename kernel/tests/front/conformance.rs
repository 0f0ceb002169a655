//! The scripts of the conformance kit with each engine; and with an RCU of which a hook is
//! forgotten, which they must notice.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use conformance::edges::{CALLBACKS, Callback, Edges, Steps};
use conformance::{Rcu, Run};
use kernel::{GracePeriods, Head, Hook, Interrupt, TreeRcu};

use crate::board::{ENOUGH, IrqsOff, Machine, TICK_NS, on, under_each_engine};

const CPUS: usize = 3;

/// A machine, of whose hooks one does nothing.
struct Conforming<E> {
    machine: Machine<CPUS, E>,
    /// The one that does something.
    cpu: AtomicUsize,
    forgets: Hook,
}

impl<E> Conforming<E> {
    fn has(&self, hook: Hook) -> bool {
        self.forgets != hook
    }
}

// SAFETY: `call` passes on what it gets.
unsafe impl<E: GracePeriods<CPUS> + 'static> Rcu for Conforming<E>
where
    Machine<CPUS, E>: Sync,
{
    type Head = Head;
    const HEAD: Head = Head::new();
    type Section = ();
    type Interrupt = Option<Interrupt>;

    fn read(&self) {}

    unsafe fn call(&self, head: NonNull<Head>, run: Run<Head>) {
        // SAFETY: the caller's.
        unsafe { self.machine.kernel.call(head, run) }.expect("it is online");
    }

    fn barrier(&self) {
        self.machine.kernel.barrier().expect("in no section");
    }

    fn context_switch(&self, _: bool) {
        // Forgotten: that of CPU 1, or grace periods would not end for other reasons.
        if self.has(Hook::ContextSwitch) || self.cpu.load(SeqCst) != 1 {
            self.machine.kernel.context_switch();
        }
    }

    fn tick(&self, interrupt: &Option<Interrupt>, from_user: bool) {
        // Forgotten: to look where the tick came.
        if let Some(interrupt) = interrupt {
            self.machine.kernel.tick(interrupt, from_user || !self.has(Hook::Tick));
        }
    }

    fn idle_enter(&self) -> bool {
        self.machine.kernel.idle_enter()
    }

    fn idle_exit(&self) {
        self.machine.kernel.idle_exit();
    }

    fn irq_enter(&self) -> Option<Interrupt> {
        Some(self.machine.kernel.irq_enter())
    }

    fn irq_exit(&self, interrupt: Option<Interrupt>) -> bool {
        interrupt.is_some_and(|interrupt| self.machine.kernel.irq_exit(interrupt))
    }

    fn nmi_enter(&self) -> Option<Interrupt> {
        self.has(Hook::IrqEnter).then(|| self.machine.kernel.nmi_enter())
    }

    fn nmi_exit(&self, interrupt: Option<Interrupt>) {
        if let Some(interrupt) = interrupt {
            self.machine.kernel.nmi_exit(interrupt);
        }
    }

    fn cpu_starting(&self, cpu: usize) {
        self.machine.kernel.cpu_starting(cpu);
    }

    fn cpu_online(&self, cpu: usize) {
        self.machine.kernel.cpu_online(cpu);
    }

    fn cpu_dying(&self, cpu: usize) {
        assert!(self.machine.kernel.cpu_dying(cpu));
    }

    fn cpu_dead(&self, cpu: usize) {
        if self.has(Hook::CpuDead) {
            self.machine.kernel.cpu_dead(cpu);
        }
    }

    fn has_callbacks(&self) -> bool {
        self.machine.kernel.has_callbacks()
    }

    fn run_callbacks(&self, cpu: usize, budget: u64) -> bool {
        // Forgotten: how many it is to run.
        let budget = if self.has(Hook::RunCallbacks) { budget } else { u64::MAX };
        self.machine.kernel.run_callbacks(cpu, budget)
    }

    fn is_holdout(&self, cpu: usize) -> bool {
        self.machine.kernel.cpu_snapshot(cpu).unwrap().is_holdout
    }

    fn waiting(&self) -> u64 {
        (0..CPUS).map(|cpu| self.machine.kernel.cpu_snapshot(cpu).unwrap().callbacks).sum()
    }
}

impl<E: GracePeriods<CPUS> + 'static> Steps for Conforming<E> {
    type Rcu = Self;
    const ENOUGH: usize = ENOUGH;

    fn on<T>(&self, cpu: usize, irqs_off: bool, what: impl FnOnce(&Self) -> T) -> T {
        let _irq = irqs_off.then(IrqsOff::new);
        self.cpu.store(cpu, SeqCst);
        on(cpu, || what(self))
    }

    fn pass_tick(&self) {
        self.machine.board.clock_ns.fetch_add(TICK_NS, SeqCst);
    }
}

/// A script with callbacks of its own. They stay for good, since a script that panics leaves some
/// of them queued.
fn run<E: GracePeriods<CPUS> + 'static>(script: Script<E>, forgets: Hook) {
    static KEPT: Mutex<Vec<&[Callback<Head>]>> = Mutex::new(Vec::new());
    let callbacks = (0..CALLBACKS).map(|_| Callback::new::<Conforming<E>>()).collect();
    let callbacks: &[Callback<Head>] = Vec::leak(callbacks);
    KEPT.lock().unwrap().push(callbacks);
    let machine = Machine::with(CPUS, |_| {});
    let steps = Conforming { machine, cpu: AtomicUsize::new(0), forgets };
    script(&Edges::new(steps, callbacks));
}

type Script<E> = fn(&Edges<Conforming<E>>);

/// All scripts, which hook each is told to notice the lack of, and what it then says.
fn scripts<E: GracePeriods<CPUS> + 'static>() -> [(Script<E>, Hook, &'static str); 5] {
    [
        (Edges::forgotten_tick, Hook::ContextSwitch, "CPU 1 has passed through its scheduler"),
        (Edges::nmi_in_idle, Hook::IrqEnter, "in an NMI"),
        (Edges::hotplug, Hook::CpuDead, "those of a CPU that is dead"),
        (Edges::flood, Hook::RunCallbacks, "more callbacks have run than may at once"),
        (Edges::flood, Hook::Tick, "CPU 1 is in a section"),
    ]
}

#[test]
#[cfg_attr(miri, ignore = "seven engines take minutes")]
fn the_scripts_of_the_conformance_kit_pass_under_each_engine() {
    under_each_engine!(CPUS, {
        for (script, ..) in scripts::<E>() {
            run(script, Hook::None);
        }
    });
}

#[test]
fn each_script_of_the_conformance_kit_notices_a_forgotten_hook() {
    for (script, forgets, says) in scripts::<TreeRcu<CPUS>>() {
        let run = AssertUnwindSafe(|| run(script, forgets));
        let panic = catch_unwind(run).expect_err("it is forgotten, and nothing said");
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or_default();
        assert!(said.contains(says), "{forgets:?} is forgotten: {said}");
    }
}
