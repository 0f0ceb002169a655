//! The hooks of a CPU that runs: its scheduler, its tick, idle, user mode, interrupts.

use core::marker::PhantomData;

use crate::front::Kernel;
use crate::misuse::Hook;
use crate::percpu::{PerCpu, Place};
use crate::periods::GracePeriods;
use crate::platform::Platform;
use crate::sync::{Ordering, fence};

/// What a CPU was doing when it was interrupted. It is passed to [`Kernel::irq_exit`] or
/// [`Kernel::nmi_exit`] on the same CPU, so it cannot be sent to another thread.
///
/// ```compile_fail,E0277
/// fn send<T: Send>() {}
/// send::<kernel::Interrupt>();
/// ```
/// ```
/// fn send<T>() {}
/// send::<kernel::Interrupt>();
/// ```
#[derive(Debug)]
#[must_use = "the hook at the handler's end needs it"]
pub struct Interrupt {
    was_extended: bool,
    is_of_this_cpu: PhantomData<*const ()>,
}

impl<P: Platform, const CPUS: usize, E: GracePeriods<CPUS>> Kernel<P, CPUS, E> {
    /// This CPU passes through its scheduler: it is in no section. Call it with interrupts off or
    /// on, at each pass, even if the same thread continues. Otherwise grace periods wait for a
    /// thread that is alone on its CPU.
    #[inline]
    pub fn context_switch(&self) {
        let irq = self.platform.irq_off();
        if let Some((cpu, own)) = self.awake(&irq)
            && own.tree.has_passed
            && !cpu.seen.words.is_asked()
            && own.place == Place::Kernel
        {
            return cpu.note(Hook::ContextSwitch);
        }
        drop(irq);
        self.switch();
    }

    /// A context switch of a CPU that has not passed one lately, or is asked for help.
    #[inline(never)]
    fn switch(&self) {
        self.on(Hook::ContextSwitch, |at| {
            let is_right = at.own.place == Place::Kernel;
            if at.settle(Hook::ContextSwitch, is_right, "not in the kernel, as the hooks say") {
                at.tree().context_switch();
            }
        });
    }

    /// Kernel code that runs for long offers to be rescheduled: it is in no section. Needed only
    /// under those [variants](crate::engine::tree::Variant) of Tree RCU in which it has an effect.
    pub fn cond_resched(&self) {
        self.on_awake(Hook::CondResched, |at| at.tree().cond_resched());
    }

    /// The timer interrupts this CPU, in user mode, in its idle loop or in the kernel. Call it in
    /// an interrupt, between [`irq_enter`](Self::irq_enter), whose result it takes, and
    /// [`irq_exit`](Self::irq_exit), in no section of that handler.
    ///
    /// If the tick interrupted user mode or the idle loop, it interrupted no section; `from_user`,
    /// or the result of `irq_enter`, tells. A tick within another handler says nothing about that
    /// handler's sections.
    ///
    /// This is where grace periods begin, make progress and end.
    #[inline]
    pub fn tick(&self, interrupt: &Interrupt, from_user: bool) {
        let is_quiescent = from_user || interrupt.was_extended;
        let irq = self.platform.irq_off();
        if let Some((cpu, own)) = self.awake(&irq)
            && own.rests_at == self.told.glance()
            && (own.tree.has_passed || !is_quiescent)
            && !cpu.seen.words.is_asked()
        {
            return cpu.note(Hook::Tick);
        }
        drop(irq);
        self.tick_with_work(is_quiescent);
    }

    /// A tick of a CPU that has something to do.
    #[inline(never)]
    fn tick_with_work(&self, is_quiescent: bool) {
        self.on_awake(Hook::Tick, |at| {
            let mut tree = at.tree();
            if is_quiescent {
                tree.context_switch();
            } else {
                tree.reschedule_if_urgent();
            }
            let told = self.told.sequence();
            let has_business = tree.has_business(told);
            let watches = at.own.tree.has_demand(told)
                && match E::LOOKS_AT_EACH_TICK {
                    true => true,
                    false => told.in_progress() && self.told.is_due(self.platform.now_ns()),
                };
            if has_business || watches {
                at.work();
            }
            at.counted();
            at.wakes_worker = at.own.tree.callbacks.ready() != 0;
            let told = self.told.sequence();
            if at.own.tree.is_at_rest(told) {
                at.own.rests_at = told;
            }
        });
    }

    /// The CPU enters user mode, and does not run the kernel until [`user_exit`](Self::user_exit).
    /// Returns whether the tick must go on. Call it with interrupts off; they stay off until user
    /// mode turns them on. A handler in between would count as one that interrupts user mode.
    pub fn user_enter(&self) -> bool {
        self.enter(Hook::UserEnter, Place::User)
    }

    /// The CPU is back in the kernel: by a system call, a fault, or an interrupt that may end in a
    /// context switch. From here on it needs its tick, as after [`idle_exit`](Self::idle_exit).
    pub fn user_exit(&self) {
        self.exit(Hook::UserExit, Place::User);
    }

    /// The CPU has nothing to run. Call it in the idle loop, with interrupts off, before the CPU
    /// waits for an interrupt. Returns whether the tick must go on: callbacks are queued here, or a
    /// caller on this CPU waits for a grace period.
    ///
    /// An interrupt here returns to the idle loop, which lets others run after
    /// [`idle_exit`](Self::idle_exit). If it switches threads itself, it calls that first, and
    /// before that [`irq_exit`](Self::irq_exit).
    pub fn idle_enter(&self) -> bool {
        self.enter(Hook::IdleEnter, Place::Idle)
    }

    /// The idle loop continues. From here on the CPU needs its tick: without it, callbacks that it
    /// queues, and what a thread here waits for, wait until it goes idle or to user mode again; and
    /// others have to ask it to reschedule, or a grace period waits as long.
    pub fn idle_exit(&self) {
        self.exit(Hook::IdleExit, Place::Idle);
    }

    fn enter(&self, hook: Hook, place: Place) -> bool {
        self.on(hook, |at| {
            let is_there = at.own.place == place;
            let is_right = self.check(hook, !is_there, "it is there already")
                && at.settle(hook, at.own.place == Place::Kernel, "in another such place");
            if is_right {
                at.own.place = place;
                at.words().enter();
            }
            // One that is refused may be awake, and is to look after itself.
            !is_right || at.has_demand()
        })
        .unwrap_or(false)
    }

    fn exit(&self, hook: Hook, place: Place) {
        self.on(hook, |at| {
            if at.settle(hook, at.own.place == place, "it was not there, as the hooks say") {
                at.own.place = Place::Kernel;
                at.words().leave();
            }
        });
    }

    /// An interrupt handler begins, which may contain sections, whatever it interrupted. A handler
    /// that interrupts user mode and may end in a context switch calls
    /// [`user_exit`](Self::user_exit) first. Call it before the handler turns interrupts on.
    pub fn irq_enter(&self) -> Interrupt {
        // Only words: an NMI may have come while the CPU's own part is being used.
        let mut interrupt = Interrupt { was_extended: false, is_of_this_cpu: PhantomData };
        let cpu = self.cpus.get(self.platform.this_cpu());
        let Some(cpu) = cpu.filter(|cpu| cpu.is_online()) else { return interrupt };
        cpu.note(Hook::IrqEnter);
        interrupt.was_extended = cpu.seen.words.is_extended();
        if interrupt.was_extended {
            cpu.seen.words.leave();
        }
        interrupt
    }

    /// The handler ends. Returns whether the tick must go on if the CPU returns to idle or user
    /// mode.
    pub fn irq_exit(&self, interrupt: Interrupt) -> bool {
        let irq = self.platform.irq_off();
        if !interrupt.was_extended
            && let Some((cpu, own)) = self.awake(&irq)
        {
            cpu.note(Hook::IrqExit);
            return own.has_demand(&cpu.seen, self.told.glance());
        }
        drop(irq);
        self.exit_into_extended(interrupt)
    }

    /// The handler ends, and its CPU is idle or in user mode again.
    fn exit_into_extended(&self, interrupt: Interrupt) -> bool {
        let _irq = self.platform.irq_off();
        let cpu = self.cpus.get(self.platform.this_cpu());
        // One that is not online yet, or any more, is extended and has nothing to look after.
        cpu.is_some_and(PerCpu::is_online)
            && self.on(Hook::IrqExit, |at| {
                let is_back = !interrupt.was_extended || at.own.place != Place::Kernel;
                let is_right = self.check(Hook::IrqExit, is_back, "it has left where it came from");
                if is_right && interrupt.was_extended {
                    at.words().enter();
                }
                // One that is refused is awake, and is to look after itself.
                !is_right || at.has_demand()
            }) == Some(true)
    }

    /// Like [`irq_enter`](Self::irq_enter), for an interrupt that cannot be masked, and that may
    /// arrive within any other hook. On a CPU that is not online, or is coming or going, it
    /// protects nothing.
    pub fn nmi_enter(&self) -> Interrupt {
        let interrupt = self.irq_enter();
        if !interrupt.was_extended {
            // Full fence: the hook that was interrupted may have left idle, and not yet come to the
            // fence of `Words::leave`, of which the sections here have the same need [KN-1].
            fence(Ordering::SeqCst);
        }
        interrupt
    }

    /// The NMI handler ends. Handlers end in the reverse of the order in which they began.
    pub fn nmi_exit(&self, interrupt: Interrupt) {
        // The token says that it is this CPU's: interrupts do not move.
        let cpu = self.cpus.get(self.platform.this_cpu());
        let Some(cpu) = cpu.filter(|cpu| cpu.is_online()) else { return };
        cpu.note(Hook::IrqExit);
        if interrupt.was_extended {
            cpu.seen.words.enter();
        }
    }
}
