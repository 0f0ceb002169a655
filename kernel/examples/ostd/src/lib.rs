//! A kernel on Asterinas' [`ostd`], with `quiescence-kernel` in place of ostd's own RCU.
//!
//! Where the hooks are:
//! - `cpu_starting`, `cpu_online`: [`cpu_begins`], which ostd calls on each CPU.
//! - `context_switch`: ostd's handler before a switch, and [`yields`]: if no other task is ready,
//!   ostd calls no handler.
//! - `irq_enter`, `tick`, `irq_exit`: the timer's callback.
//! - `idle_enter`, `idle_exit`: the idle task. `halt_cpu` may switch to another task before it
//!   returns, so the handler before a switch also leaves idle.
//! - `has_callbacks`, `run_callbacks`: [`worker`], a task of each CPU.
//!
//! The README says which hooks have no place in ostd.
#![no_std]

extern crate alloc;

mod scheduler;

use core::hint::spin_loop;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use kernel::{
    CpuSet, Domain, Head, Kernel, Options, Platform, RcuBox, RcuOption, Refused, Run, Zone,
};
use ostd::cpu::{CpuId, PrivilegeLevel};
use ostd::irq::{self, DisabledLocalIrqGuard, InterruptLevel};
use ostd::power::{ExitCode, poweroff};
use ostd::prelude::println;
use ostd::sync::WaitQueue;
use ostd::task::atomic_mode::might_sleep;
use ostd::task::{self, DisabledPreemptGuard, Task, TaskOptions};
use ostd::util::id_set::Id;
use ostd::{arch, timer};
use scheduler::{Place, Queues};

const CPUS: usize = 4;
/// How often the value is replaced.
const ROUNDS: u64 = 2_000;

static RCU: Kernel<Ostd, CPUS> = Kernel::new(Ostd, Options::new(timer::TIMER_FREQ as u32, CPUS));
static QUEUES: Queues = Queues::new();
static WORKERS: [WaitQueue; CPUS] = [const { WaitQueue::new() }; CPUS];
static WAITERS: WaitQueue = WaitQueue::new();
/// CPUs that are idle, as the hooks say. Each is written by its CPU alone.
static IDLE: [AtomicBool; CPUS] = [const { AtomicBool::new(false) }; CPUS];

/// What the crate asks of a kernel, and the domain of its cells.
struct Ostd;

// SAFETY: tasks stay on their CPU, and nothing of this kernel interrupts one with interrupts off,
// which ostd turns off and on by `asm!` without `nomem`. A task has its address to itself. No
// function here calls a hook but `wait`, between two calls of `done`: in `yields`, or as it sleeps.
// `is_preemptible` panics where it would say no: its callers ask it before anything else.
unsafe impl Platform for Ostd {
    type IrqGuard = DisabledLocalIrqGuard;

    fn this_cpu(&self) -> usize {
        CpuId::current_racy().as_usize()
    }

    fn irq_off(&self) -> DisabledLocalIrqGuard {
        irq::disable_local()
    }

    fn now_ns(&self) -> u64 {
        (u128::from(arch::read_tsc()) * 1_000_000_000 / u128::from(arch::tsc_freq())) as u64
    }

    /// ostd answers by a panic, as it does wherever a task sleeps that may not.
    fn is_preemptible(&self) -> bool {
        might_sleep();
        true
    }

    fn thread(&self) -> usize {
        Task::current().map_or(0, |task| (&raw const *task).addr())
    }

    /// Only a task that wakes makes ostd set "needs rescheduling", by an interrupt.
    fn resched(&self, cpus: &CpuSet) {
        cpus.iter().for_each(|cpu| self.wake_worker(cpu));
    }

    fn wake_worker(&self, cpu: usize) {
        WORKERS[cpu].wake_all();
    }

    fn wait(&self, done: &dyn Fn() -> bool, polls: bool) {
        while polls && !done() {
            yields();
        }
        WAITERS.wait_until(|| done().then_some(()));
    }

    fn wake_waiters(&self) {
        WAITERS.wake_all();
    }
}

// SAFETY: ostd switches no task while preemption is disabled, and `yields` calls no hook then. The
// guard stays on its task, and on riscv64 counts with interrupts off, which the compiler moves
// nothing across. `call` passes on what it gets.
unsafe impl Domain for Ostd {
    type Section = DisabledPreemptGuard;

    fn section() -> DisabledPreemptGuard {
        task::disable_preempt()
    }

    unsafe fn call(head: NonNull<Head>, run: Run) -> Result<Zone, Refused> {
        // SAFETY: the caller's.
        unsafe { RCU.call(head, run) }
    }
}

/// Lets other tasks of this CPU run. Nothing else takes a CPU from a task in the kernel, so what
/// runs for long calls this when `Task::need_yield` says so.
fn yields() {
    might_sleep();
    RCU.context_switch();
    Task::yield_now();
}

fn before_switch(_: &DisabledLocalIrqGuard) {
    leave_idle();
    RCU.context_switch();
}

fn leave_idle() {
    if IDLE[CpuId::current_racy().as_usize()].swap(false, Relaxed) {
        RCU.idle_exit();
    }
}

/// ostd's tick never stops, so nobody asks whether it must go on. `halt_cpu` wants interrupts on: a
/// handler that comes before it halts counts as one out of idle, where nothing is in a section.
fn idle(cpu: CpuId) {
    loop {
        IDLE[cpu.as_usize()].store(true, Relaxed);
        RCU.idle_enter();
        task::halt_cpu();
        leave_idle();
    }
}

fn tick() {
    let from_user = InterruptLevel::current() == InterruptLevel::L1(PrivilegeLevel::User);
    let interrupt = RCU.irq_enter();
    RCU.tick(&interrupt, from_user);
    // A section in a handler, which may have interrupted the idle task.
    look();
    RCU.irq_exit(interrupt);
}

fn worker(cpu: CpuId) {
    let cpu = cpu.as_usize();
    loop {
        WORKERS[cpu].wait_until(|| RCU.has_callbacks().then_some(()));
        while RCU.run_callbacks(cpu, 16) {
            yields();
        }
    }
}

fn spawn(cpu: CpuId, is_idle: bool, run: fn(CpuId)) {
    let task = TaskOptions::new(move || run(cpu)).data(Place { cpu, is_idle });
    task.spawn().expect("there is memory for a few tasks");
}

/// A CPU comes up. When this returns, ostd switches to its first task.
fn cpu_begins() {
    let cpu = CpuId::current_racy();
    let irq = irq::disable_local();
    RCU.cpu_starting(cpu.as_usize());
    RCU.cpu_online(cpu.as_usize());
    drop(irq);
    timer::register_callback_on_cpu(tick);
    task::scheduler::enable_preemption_on_cpu();
    spawn(cpu, true, idle);
    spawn(cpu, false, worker);
    spawn(cpu, false, reader);
}

#[ostd::main]
fn main() {
    assert!(ostd::cpu::num_cpus() <= CPUS, "built for {CPUS} CPUs");
    ostd::log::set_max_level(ostd::log::LevelFilter::Warning);
    task::scheduler::inject_scheduler(&QUEUES);
    task::inject_pre_schedule_handler(before_switch);
    cpu_begins();
    spawn(CpuId::bsp(), false, updater);
    ostd::boot::smp::register_ap_entry(cpu_begins);
}

static VALUE: RcuOption<RcuBox<Value>, Ostd> = RcuOption::new_none();
static SECTIONS: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

/// What readers look at: whether it has been dropped under their eyes.
struct Value {
    is_alive: AtomicBool,
}

impl Drop for Value {
    fn drop(&mut self) {
        self.is_alive.store(false, Relaxed);
        FREED.fetch_add(1, Relaxed);
    }
}

/// A section.
fn look() {
    let guard = VALUE.read();
    for _ in 0..50 {
        assert!(guard.get().is_none_or(|value| value.is_alive.load(Relaxed)), "freed too early");
        spin_loop();
    }
    SECTIONS.fetch_add(1, Relaxed);
}

/// Reads, and sleeps for a grace period, in which its CPU may be idle.
fn reader(_: CpuId) {
    loop {
        (0..100).for_each(|_| look());
        // On one CPU there is nothing to wait for.
        yields();
        RCU.synchronize().expect("in no section");
    }
}

fn updater(_: CpuId) {
    for round in 0..ROUNDS {
        VALUE.update(Some(RcuBox::new(Value { is_alive: AtomicBool::new(true) })));
        match round % 64 {
            0 => RCU.synchronize_expedited().expect("in no section"),
            16 | 32 | 48 => RCU.synchronize().expect("in no section"),
            _ => yields(),
        }
    }
    VALUE.update(None);
    RCU.barrier().expect("in no section, and no callback");
    let seen = RCU.snapshot().expect("the lock is free soon");
    assert_eq!((FREED.load(Relaxed), seen.misuses.0), (ROUNDS, 0));
    let sections = SECTIONS.load(Relaxed);
    println!("{} CPUs: {} sections, {} values, all freed in time", seen.online, sections, ROUNDS);
    poweroff(ExitCode::Success);
}
