//! What the crate asks of this kernel, and the RCU that the kernel is built with.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::*;

use conformance::Rcu;
use kernel::engine::tree::{self, Variant};
use kernel::{Cookie, CpuSet, Head, Interrupt, Kernel, Options, Platform, Run};

use crate::hart::{self, HARTS, HZ, IrqsOff, Section, this};
use crate::{parameters, sbi, thread, torture};

/// A hook that is called where it may not be panics, in this build too. Each tick scans: of so few
/// harts that is cheap.
pub(crate) const OPTIONS: Options = {
    let mut options = Options { panics: true, ..Options::new(HZ, HARTS) };
    (options.tree.first_fqs_jiffies, options.tree.next_fqs_jiffies) = (1, 1);
    match VARIANT {
        None => options,
        Some(variant) => Options { tree: tree::Options::new(variant, HZ, HARTS), ..options },
    }
};

/// The variant of Tree RCU, with all else of its year, if one is named.
const VARIANT: Option<Variant> = if cfg!(feature = "tree-3.15") {
    Some(Variant::V3_15)
} else if cfg!(feature = "tree-v0") {
    Some(Variant::v0())
} else if cfg!(feature = "tree-v1") {
    Some(Variant::v1(HZ))
} else if cfg!(feature = "tree-v2") {
    Some(Variant::v2(HZ))
} else {
    None
};

/// The engine that the kernel is built with, and the design of RCU.
mod engine {
    #![allow(unused_imports, reason = "of all but one engine")]
    use kernel::engine::{on_demand::OnDemand, poll, store::Fixed, tick::Tick, token};
    use kernel::{Driven, TreeRcu};

    use super::Ours;
    use crate::hart::HARTS;
    #[cfg(feature = "asterinas")]
    use crate::rivals::asterinas::Asterinas;
    #[cfg(feature = "dragonos")]
    use crate::rivals::dragonos::DragonOs;

    macro_rules! one_of {
        ($name:ident: $($feature:literal: $type:ty,)* _: $other:ty) => {
            $(
                #[cfg(feature = $feature)]
                pub(crate) type $name = $type;
            )*
            #[cfg(not(any($(feature = $feature),*)))]
            pub(crate) type $name = $other;
        };
    }

    one_of! { Engine:
        "poll": Driven<poll::Global<Fixed<HARTS>>>,
        "poll-per-cpu": Driven<poll::PerCpu<Fixed<HARTS>>>,
        "tick": Driven<Tick<Fixed<HARTS>>>,
        "token": Driven<token::Published<Fixed<HARTS>>>,
        "token-relay": Driven<token::Relay<Fixed<HARTS>>>,
        "on-demand": Driven<OnDemand<Fixed<HARTS>>>,
        _: TreeRcu<HARTS>
    }

    one_of! { Design: "asterinas": Asterinas, "dragonos": DragonOs, _: Ours }
}

pub(crate) use engine::Design;

/// What hooks and updaters of this kernel call.
pub(crate) static RCU: Design = Design::new();

/// The crate's, which is used if [`RCU`] is [`Ours`].
pub(crate) static KERNEL: Kernel<Board, HARTS, engine::Engine> = Kernel::new(Board, OPTIONS);

/// [`KERNEL`], as the conformance kit knows it.
pub(crate) struct Ours;

impl Ours {
    #[cfg_attr(feature = "rival", expect(dead_code))]
    const fn new() -> Self {
        Self
    }
}

/// Functions that another one has as well.
macro_rules! forwarded {
    ($to:ident: $($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        fn $name(&self, $($argument: $type),*) -> $result {
            $to.$name($($argument),*)
        }
    )*};
}
#[cfg(not(feature = "rival"))]
pub(crate) use forwarded;

// SAFETY: `call` passes on what it gets.
unsafe impl Rcu for Ours {
    type Head = Head;
    const HEAD: Head = Head::of(64);
    type Section = Section;
    type Interrupt = Interrupt;

    fn read(&self) -> Section {
        Section::new()
    }

    unsafe fn call(&self, head: NonNull<Head>, run: Run) {
        // SAFETY: the caller's.
        unsafe { KERNEL.call(head, run) }.expect("this hart is online");
    }

    fn synchronize(&self) {
        KERNEL.synchronize().expect("in no section");
    }

    fn synchronize_expedited(&self) {
        KERNEL.synchronize_expedited().expect("in no section");
    }

    fn barrier(&self) {
        KERNEL.barrier().expect("in no section");
    }

    fn cookie(&self) -> u64 {
        KERNEL.cookie().to_bits()
    }

    fn poll(&self, cookie: u64) -> bool {
        KERNEL.poll(Cookie::from_bits(cookie))
    }

    fn wait(&self, cookie: u64) {
        KERNEL.wait(Cookie::from_bits(cookie)).expect("in no section");
    }

    fn context_switch(&self, _: bool) {
        KERNEL.context_switch();
    }

    fn cpu_dying(&self, cpu: usize) {
        assert!(KERNEL.cpu_dying(cpu), "the caller is in no section, and the worker is parked");
    }

    forwarded! { KERNEL:
        tick(interrupt: &Interrupt, from_user: bool) -> ();
        idle_enter() -> bool;
        idle_exit() -> ();
        user_enter() -> bool;
        user_exit() -> ();
        irq_enter() -> Interrupt;
        irq_exit(interrupt: Interrupt) -> bool;
        nmi_enter() -> Interrupt;
        nmi_exit(interrupt: Interrupt) -> ();
        cpu_starting(cpu: usize) -> ();
        cpu_online(cpu: usize) -> ();
        cpu_dead(cpu: usize) -> ();
        has_callbacks() -> bool;
        run_callbacks(cpu: usize, budget: u64) -> bool;
    }

    fn is_holdout(&self, cpu: usize) -> bool {
        KERNEL.cpu_snapshot(cpu).is_some_and(|seen| seen.is_holdout)
    }

    /// If the lock is held for long, one: it is not known that none waits.
    fn waiting(&self) -> u64 {
        let seen = (0..HARTS).map(|cpu| KERNEL.cpu_snapshot(cpu));
        seen.map(|seen| seen.map_or(1, |seen| seen.callbacks)).sum()
    }
}

/// QEMU's board.
pub(crate) struct Board;

// SAFETY: each hart has its own `tp`. With interrupts off nothing else runs on it but what
// `torture::nmi` simulates, which calls what an NMI may; no `asm!` that turns them off or on has
// `nomem`. Threads stay on their hart, each with a number of its own; a section counts
// `preempt_off`; `wait` returns as it says. No function here calls a hook but `wait`, whose thread
// sleeps between two calls of `done`.
unsafe impl Platform for Board {
    type IrqGuard = IrqsOff;

    fn this_cpu(&self) -> usize {
        this().id
    }

    fn irq_off(&self) -> IrqsOff {
        hart::irqs_off()
    }

    /// It is called within hooks, also with the machine's lock: there an NMI may come. Not where
    /// times are measured: rivals have none there.
    fn now_ns(&self) -> u64 {
        if parameters().test == 0 && this().roll(16) == 0 {
            torture::TORTURE.nmi();
        }
        sbi::time() * 100
    }

    fn is_preemptible(&self) -> bool {
        this().is_preemptible() && hart::irqs_are_on()
    }

    fn thread(&self) -> usize {
        thread::number()
    }

    fn resched(&self, cpus: &CpuSet) {
        for cpu in cpus.iter() {
            // Relaxed: sending the interrupt comes after.
            hart::of(cpu).need_resched.store(true, Relaxed);
            this().rescheds.fetch_add(1, Relaxed);
        }
        sbi::interrupt(cpus.words()[0]);
    }

    fn wake_worker(&self, cpu: usize) {
        let hart = hart::of(cpu);
        hart.has_work.store(true, Relaxed);
        hart.need_resched.fetch_or(!hart.is_of_2014.load(Relaxed), Relaxed);
    }

    fn wait(&self, done: &dyn Fn() -> bool, polls: bool) {
        thread::wait(done, polls);
    }

    fn wake_waiters(&self) {
        thread::wake_waiters();
    }
}
