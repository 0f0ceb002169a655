//! What the crate asks of this kernel.

use core::ptr::NonNull;

use kernel::{CpuSet, Domain, Head, Kernel, Options, Platform, Refused, Run, Zone};

use crate::hart::{self, HARTS, HZ, IrqsOff, Section, this};
use crate::{sbi, thread, torture};
use core::sync::atomic::Ordering::*;

/// A hook that is called where it may not be panics, in this build too.
const OPTIONS: Options = Options { panics: true, ..Options::new(HZ, HARTS) };

/// The engine that the kernel is built with.
mod engine {
    #![allow(unused_imports, reason = "of all but one engine")]
    use kernel::engine::{on_demand::OnDemand, poll, store::Fixed, tick::Tick, token};
    use kernel::{Driven, TreeRcu};

    use crate::hart::HARTS;

    macro_rules! engine {
        ($($feature:literal: $engine:ty,)* _: $other:ty) => {
            $(
                #[cfg(feature = $feature)]
                pub(crate) type Engine = $engine;
            )*
            #[cfg(not(any($(feature = $feature),*)))]
            pub(crate) type Engine = $other;
        };
    }

    engine! {
        "poll": Driven<poll::Global<Fixed<HARTS>>>,
        "poll-per-cpu": Driven<poll::PerCpu<Fixed<HARTS>>>,
        "tick": Driven<Tick<Fixed<HARTS>>>,
        "token": Driven<token::Published<Fixed<HARTS>>>,
        "token-relay": Driven<token::Relay<Fixed<HARTS>>>,
        "on-demand": Driven<OnDemand<Fixed<HARTS>>>,
        _: TreeRcu<HARTS>
    }
}

pub(crate) static RCU: Kernel<Board, HARTS, engine::Engine> = Kernel::new(Board, OPTIONS);

/// QEMU's board.
pub(crate) struct Board;

// SAFETY: a `Section` is one for the kernel's readers; simulated NMIs update nothing.
unsafe impl Domain for Board {
    type Section = Section;

    fn section() -> Section {
        Section::new()
    }

    unsafe fn call(head: NonNull<Head>, run: Run) -> Result<Zone, Refused> {
        // SAFETY: the caller's.
        unsafe { RCU.call(head, run) }
    }
}

// SAFETY: each hart has its own `tp`. With interrupts off nothing else runs on it but what
// `torture::nmi` simulates, which calls what an NMI may. Threads stay on their hart, each with a
// number of its own; a section counts `preempt_off`; `wait` returns as it says. No function here
// calls a hook.
unsafe impl Platform for Board {
    type IrqGuard = IrqsOff;

    fn this_cpu(&self) -> usize {
        this().id
    }

    fn irq_off(&self) -> IrqsOff {
        hart::irqs_off()
    }

    /// It is called within hooks, also with the machine's lock: there an NMI may come.
    fn now_ns(&self) -> u64 {
        if this().roll(16) == 0 {
            torture::nmi();
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
        }
        sbi::interrupt(cpus.words()[0]);
    }

    fn wake_worker(&self, cpu: usize) {
        hart::of(cpu).has_work.store(true, Relaxed);
        hart::of(cpu).need_resched.store(true, Relaxed);
    }

    fn wait(&self, done: &dyn Fn() -> bool, polls: bool) {
        thread::wait(done, polls);
    }

    fn wake_waiters(&self) {
        thread::wake_waiters();
    }
}
