//! A conformance kit for the RCU of any kernel, so that others adopt the test before the engine.
//!
//! [`torture`] runs in a kernel, on all its CPUs: readers check whether what they found is too old,
//! while threads update, wait, sleep, run user programs and interrupt each other, and CPUs come and
//! go. [`edges`] are short scripts for a program on a host, in which one thread is each CPU in
//! turn. Both know an RCU as [`Rcu`], and the kernel around it as [`Machine`] or [`edges::Steps`].
//!
//! It is a package of its own, and neither a part of `quiescence-kernel` nor a feature of it: who
//! tests another RCU builds nothing of that one. It depends on nothing and allocates nothing; what
//! it needs are `static`s of the kernel. It may not name any RCU.
#![no_std]

pub mod edges;
pub mod torture;

use core::fmt;
use core::ptr::NonNull;

pub use torture::{Torture, What};

/// The function of a callback. It gets the head back, and may queue it again.
pub type Run<H> = unsafe fn(NonNull<H>);

/// The RCU of a kernel, as its updaters, its readers and its hooks know it. A hook that it does not
/// need does nothing, as most do by default; what it does not offer is in [`LACKS`](Self::LACKS).
///
/// The torture itself calls `read`, `call`, `synchronize` and its kin, `barrier`, `cookie`, `poll`,
/// `wait`, `nmi_enter`, `nmi_exit` and `waiting`. The other hooks are the scripts': a kernel that
/// calls its hooks itself may leave them empty for the torture. All hooks are called with
/// interrupts off, but for `cpu_dead`, `has_callbacks` and `run_callbacks`.
///
/// # Safety
/// The torture frees nothing, so it is no matter of memory whether grace periods are right: they
/// are what is tested. But [`call`](Self::call) passes `run` the head that it was given, once.
pub unsafe trait Rcu: Sync {
    /// What an object embeds to be called back.
    type Head: Sync + 'static;
    /// One that is not queued.
    const HEAD: Self::Head;
    /// A section lasts as long as this lives.
    type Section;
    /// What a CPU was doing when it was interrupted.
    type Interrupt;
    /// What the torture is not to do, since this RCU or its machine has no such function. Of these
    /// it may be without: `Nmi`, `Synchronize`, `Expedited`, `Cookie`, `Barrier`, `User`,
    /// `Interrupt`, `Own`, `Hotplug`.
    const LACKS: &'static [What] = &[];

    /// Begins a section: in a thread, a handler or an NMI.
    fn read(&self) -> Self::Section;

    /// Has `run` called after a grace period. It may itself be called by a callback, and with
    /// interrupts off.
    ///
    /// # Safety
    /// The head is valid, stays in its place, and is not queued. `run` may be called on any CPU.
    unsafe fn call(&self, head: NonNull<Self::Head>, run: Run<Self::Head>);

    /// Waits for a grace period. As all that wait, it is called by a thread that is in no section,
    /// with interrupts on.
    fn synchronize(&self) {
        unreachable!("it is lacking");
    }

    /// The same in a hurry.
    fn synchronize_expedited(&self) {
        self.synchronize();
    }

    /// Waits until all callbacks that are queued have run. If it is lacking, at the end alone.
    fn barrier(&self);

    /// A ticket for a grace period from here on. An NMI calls this and [`poll`](Self::poll), so
    /// they wait for no lock.
    fn cookie(&self) -> u64 {
        0
    }

    /// Whether that grace period has ended.
    fn poll(&self, cookie: u64) -> bool {
        let _ = cookie;
        true
    }

    /// Waits until it has.
    fn wait(&self, cookie: u64) {
        if !self.poll(cookie) {
            self.synchronize();
        }
    }

    /// This CPU passes through its scheduler; `is_other`: another thread goes on. Interrupts off.
    fn context_switch(&self, is_other: bool);

    /// The timer's interrupt; `from_user`: of a program.
    fn tick(&self, interrupt: &Self::Interrupt, from_user: bool) {
        let _ = (interrupt, from_user);
    }

    /// The idle loop waits for interrupts. Returns whether the tick must go on.
    fn idle_enter(&self) -> bool {
        false
    }

    /// It goes on.
    fn idle_exit(&self) {}

    /// A program runs. Returns whether the tick must go on.
    fn user_enter(&self) -> bool {
        self.idle_enter()
    }

    /// The kernel again.
    fn user_exit(&self) {
        self.idle_exit();
    }

    /// A handler begins.
    fn irq_enter(&self) -> Self::Interrupt;

    /// It ends. Returns whether the tick must go on.
    fn irq_exit(&self, interrupt: Self::Interrupt) -> bool {
        let _ = interrupt;
        false
    }

    /// As [`irq_enter`](Self::irq_enter), anywhere, also within another hook.
    fn nmi_enter(&self) -> Self::Interrupt {
        self.irq_enter()
    }

    /// And its end.
    fn nmi_exit(&self, interrupt: Self::Interrupt) {
        self.irq_exit(interrupt);
    }

    /// This CPU comes: before its first section.
    fn cpu_starting(&self, cpu: usize);

    /// Its threads may run.
    fn cpu_online(&self, cpu: usize) {
        let _ = cpu;
    }

    /// This CPU goes, after its last section; its worker is parked.
    fn cpu_dying(&self, cpu: usize) {
        let _ = cpu;
        unreachable!("it is lacking");
    }

    /// It has stopped: another CPU buries it.
    fn cpu_dead(&self, cpu: usize) {
        let _ = cpu;
    }

    /// Whether this CPU's worker has something to do.
    fn has_callbacks(&self) -> bool {
        false
    }

    /// The worker of this CPU runs at most so many callbacks. Returns whether there are more.
    fn run_callbacks(&self, cpu: usize, budget: u64) -> bool {
        let _ = (cpu, budget);
        false
    }

    /// Whether the grace period in progress waits for that CPU.
    fn is_holdout(&self, cpu: usize) -> bool;

    /// Callbacks that wait, on all CPUs.
    fn waiting(&self) -> u64;
}

/// The head of an object of this kernel.
pub type HeadOf<M> = <<M as Machine>::Rcu as Rcu>::Head;

/// The kernel that the torture runs in. What is done with "this CPU" is done where the thread stays
/// on it, or may err.
///
/// # Safety
/// While an [`IrqsOff`](Self::IrqsOff) lives, the thread stays on its CPU, and nothing else runs
/// there: no other thread, no callback, no handler but an NMI's. Where interrupts go off or on, the
/// compiler moves no access to memory across. No two CPUs have one number.
/// [`TORTURE`](Self::TORTURE) is the only one over its CPUs. So no two owners take one object.
pub unsafe trait Machine: Sized + 'static {
    /// The RCU that is tested.
    type Rcu: Rcu + 'static;
    /// Interrupts are off on this CPU while it lives.
    type IrqsOff;
    /// Between two ticks, in units of [`now`](Self::now).
    const TICK: u64;

    /// The kernel's RCU.
    const RCU: &'static Self::Rcu;
    /// The torture's `static`.
    const TORTURE: &'static Torture<Self>;

    /// The number of this CPU, below the length of the torture's CPUs. An NMI calls this, `now` and
    /// `roll`, so they wait for no lock.
    fn this_cpu() -> usize;
    /// Turns interrupts off.
    fn irqs_off() -> Self::IrqsOff;
    /// The time.
    fn now() -> u64;
    /// A number below `sides` that looks random.
    fn roll(sides: u64) -> u64;
    /// Lets other threads of this CPU run.
    fn yields();
    /// Sleeps for so many ticks.
    fn sleep_ticks(ticks: u64);
    /// Interrupts a CPU, which passes through its scheduler, perhaps after an NMI. It may be this
    /// one, or have stopped just now.
    fn disturb(cpu: usize, with_nmi: bool);
    /// Runs a program of so many steps in user mode.
    fn run_program(steps: u64);
    /// Stops another CPU, never CPU 0, after it has called [`Torture::leave`], buries it, sleeps
    /// for so many ticks, and starts it again.
    fn plug(cpu: usize, ticks: u64);
    /// What else a thread may do that is of this kernel alone: [`What::Own`]. Once more at the end,
    /// `is_over`, to give objects back.
    fn own(torture: &'static Torture<Self>, is_over: bool) {
        let _ = (torture, is_over);
    }
    /// Prints a line.
    fn say(what: fmt::Arguments<'_>);
}
