//! Engines for kernels: how they learn of quiescent states, and what they do until every CPU has
//! passed one.
//!
//! The library's machine, [`grace::Machine`], scans the words of readers. A kernel has no such
//! words: its readers cannot be preempted, so a CPU that passes through its scheduler, or is
//! interrupted in user mode or idle, is in no section. These engines rely on such reports. Each is
//! a *detector* of quiescent states with a *policy* of when to start, scan again and force:
//!
//! | engine | detector | policy | after |
//! |---|---|---|---|
//! | [`poll::Global`] | counters, scanned by one CPU | at once, forcing all | rcu_poll, one list |
//! | [`poll::PerCpu`] | the same, on every CPU for itself | the same | rcu_poll, parallel |
//! | [`tick::Tick`] | each CPU clears its bit | on the tick, never forcing | rcu_ltimer |
//! | [`token::Published`] | a token, handed on in the scheduler | none | rcu_sched |
//! | [`token::Relay`] | the same, version 2 | idle CPUs passed over, late ones nudged | ours |
//! | [`tree::Tree`] | a combining tree of masks | limits of age | Tree RCU, 3.15 to today |
//! | [`on_demand::OnDemand`] | counters, scanned | what is demanded, and a budget | ours |
//!
//! [`Kernel`](crate::Kernel) runs the tree, or one of the others under its lock
//! ([`Driven`](crate::Driven)). The library runs none of them. They share with it `grace`'s
//! sequences, segmented callbacks, urgency and memory limit, but none of its policies.
//!
//! An engine is notified of events on a CPU ([`Engine`]) and asks for actions ([`Host`]). It has no
//! clock: time is what it asked its timer to wait, and the ticks of which it is notified. The
//! simulator and the explorer step through this very code. An engine reports which cache lines a
//! step accesses ([`Host::touch`]), so that a driver can charge for the access, and for the
//! transfer from the cache that had the line.
//!
//! An engine allocates nothing: its creator provides its arrays ([`store`]).
//!
//! Each engine lists the steps that can be removed in a constant `STEPS`, and those that only save
//! time in `STEPS_FOR_SPEED` ([`grace::steps`]). The explorer must find the harm of removing each
//! of the first, and none for the others.

mod alarm;
mod callbacks;
mod counters;
pub mod mask;
pub mod on_demand;
pub mod poll;
pub mod store;
pub mod tick;
pub mod token;
pub mod tree;

pub use counters::Start;

use grace::Urgency;

/// What a CPU was doing when the tick arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Running a program: in no read-side critical section.
    User,
    /// In the kernel: possibly in one.
    Kernel,
    /// Doing nothing: in none.
    Idle,
}

/// A callback, as far as an engine must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Callback {
    /// Whether a thread waits for it.
    pub urgency: Urgency,
    /// The memory that it will free, in bytes.
    pub bytes: u32,
}

/// A cache line of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Line {
    /// A CPU's own, which it alone writes.
    Cpu(usize),
    /// Beside it: what others write to ask something of the CPU.
    Mailbox(usize),
    /// A node of a tree.
    Node(usize),
    /// Shared by all; engines number theirs from 0.
    Global(u8),
}

/// What is done to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic read-modify-write.
    Atomic,
    /// A lock that lies in the line is taken and released; others that want it wait.
    Lock,
}

/// What a driver does for an engine. All calls concern the CPU the engine was notified of, unless
/// they name another one. Raising or rescheduling a CPU again, before it has happened, changes
/// nothing.
pub trait Host {
    /// Call [`Engine::softirq`] on `cpu` as soon as it takes interrupts.
    fn raise(&mut self, cpu: usize);
    /// Have `cpu` pass through its scheduler as soon as it can: [`Engine::context_switch`] follows.
    /// An inter-CPU interrupt, if `cpu` is another one.
    fn resched(&mut self, cpu: usize);
    /// Run the `count` oldest callbacks that were queued on `owner`, here.
    fn invoke(&mut self, owner: usize, count: u64);
    /// Call [`Engine::timer`] in this many jiffies (at least 1), on any CPU. Asking again replaces
    /// the previous request; the engine has one timer.
    fn timer(&mut self, jiffies: u32);
    /// The request to the timer is no longer needed. If the timer fires all the same, only time is
    /// lost.
    fn timer_off(&mut self) {}
    /// The engine accesses one of its cache lines.
    fn touch(&mut self, line: Line, access: Access) {
        let _ = (line, access);
    }
    /// Whether the engine has lately had more than its share of CPU time, for work in the
    /// background.
    fn is_over_budget(&self) -> bool {
        false
    }
    /// A grace period begins; `of` distinguishes those of different CPUs, if each CPU has its own.
    fn began(&mut self, of: usize);
    /// It has ended.
    fn ended(&mut self, of: usize);
}

/// A kernel's grace-period engine, over CPUs that report.
///
/// **The driver leaves the tick on** at a CPU that is awake and has callbacks
/// ([`waiting`](Self::waiting)), as Linux does: there [`on_demand::OnDemand`] and [`token::Relay`]
/// notice on the tick that a grace period has ended. (In the kernel without ticks a few callbacks
/// wait until the CPU ticks or sleeps again.) [`tick::Tick`] needs ticks at every CPU that is
/// awake. The others need none. The explorer holds that this is so, and that no engine needs more.
///
/// Every function is total, and constant in time unless it says otherwise. CPUs are numbered from
/// 0; one out of range is ignored.
pub trait Engine: core::fmt::Debug {
    /// A callback is queued on `cpu`, to be run after a grace period.
    fn queue(&mut self, cpu: usize, callback: Callback, host: &mut dyn Host);
    /// `cpu` passes through its scheduler: a quiescent state.
    fn context_switch(&mut self, cpu: usize, host: &mut dyn Host);
    /// The tick interrupts `cpu`; in user mode or idle that is a quiescent state.
    fn tick(&mut self, cpu: usize, mode: Mode, host: &mut dyn Host) {
        if mode != Mode::Kernel {
            self.context_switch(cpu, host);
        }
    }
    /// The call that [`Host::raise`] asked for.
    fn softirq(&mut self, cpu: usize, host: &mut dyn Host);
    /// The call that [`Host::timer`] asked for; it runs on `cpu`, outside of any section.
    fn timer(&mut self, cpu: usize, host: &mut dyn Host) {
        let _ = (cpu, host);
    }
    /// Kernel code on `cpu` that runs for long offers to be rescheduled; no other task wants to
    /// run.
    fn cond_resched(&mut self, cpu: usize, host: &mut dyn Host) {
        let _ = (cpu, host);
    }
    /// `cpu` enters an *extended quiescent state*: idle, or a program in user mode, without ticks.
    fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host);
    /// And leaves it.
    fn exit_eqs(&mut self, cpu: usize, host: &mut dyn Host);
    /// Whether the grace period in progress (that of `of`) still waits for `cpu`. For observers.
    fn is_holdout(&self, of: usize, cpu: usize) -> bool;
    /// The number of callbacks queued on `cpu` that have not run.
    fn waiting(&self, cpu: usize) -> u64;
}
