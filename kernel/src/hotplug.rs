//! CPUs that come and go.
//!
//! A CPU that is offline is in an extended quiescent state, so that coming and going are an exit
//! and an entry like those of idle: a scan that has chosen its CPUs finds it outside or waits for
//! it. In order: starting, online, dying (by the CPU itself), dead (by another one).

use grace::Segments;

use crate::engine::tree::cpu;
use crate::front::Kernel;
use crate::misuse::Hook;
use crate::percpu::{PerCpu, Place, phase};
use crate::periods::GracePeriods;
use crate::platform::Platform;
use crate::sync::Ordering;

impl<P: Platform, const CPUS: usize, E: GracePeriods<CPUS>> Kernel<P, CPUS, E> {
    /// CPU `cpu`, the current one, with interrupts off, is about to come online: before its first
    /// section. On the boot CPU this is the very first hook.
    pub fn cpu_starting(&self, cpu: usize) {
        let _irq = self.platform.irq_off();
        if !self.is_here(Hook::CpuStarting, cpu)
            || !self.moves_on(Hook::CpuStarting, cpu, phase::OFFLINE, phase::STARTING)
        {
            return;
        }
        // The first one lays out the engine here.
        self.machine(|machine| machine.online += 1);
        self.cpus[cpu].note(Hook::CpuStarting);
        self.cpus[cpu].seen.words.leave();
        self.with_own(cpu, |at| at.own.place = Place::Kernel);
    }

    /// CPU `cpu`, the current one, is online: threads may run there, and queue callbacks.
    pub fn cpu_online(&self, cpu: usize) {
        let _irq = self.platform.irq_off();
        if self.is_here(Hook::CpuOnline, cpu)
            && self.moves_on(Hook::CpuOnline, cpu, phase::STARTING, phase::ONLINE)
        {
            self.cpus[cpu].note(Hook::CpuOnline);
        }
    }

    /// CPU `cpu`, the current one, with interrupts off, goes offline: after its last section, or
    /// because it could not start. Its worker must have been parked, so that it runs no more
    /// callbacks; otherwise this is refused. This is the CPU's last hook. Returns whether the CPU
    /// is gone. A CPU that was refused but stops all the same delays every grace period forever.
    #[must_use = "a CPU that is refused has to go on"]
    pub fn cpu_dying(&self, cpu: usize) -> bool {
        let _irq = self.platform.irq_off();
        // All is checked before anything is changed.
        if !self.is_here(Hook::CpuDying, cpu) {
            return false;
        }
        let is_free = self.on(Hook::CpuDying, |at| at.own.place == Place::Kernel);
        let Some(is_free) = is_free else { return false };
        let runs = self.cpus[cpu].is_run_by(None);
        if !self.check(Hook::CpuDying, is_free, "its hooks say that it is idle or in user mode")
            || !self.check(Hook::CpuDying, !runs, "its worker is not parked")
        {
            return false;
        }
        // Only this CPU moves itself on from here. An NMI protects nothing from now on.
        let seen = &self.cpus[cpu].seen;
        // Release: pairs with the Acquire of who buries it, to whom its own part goes.
        seen.phase.store(phase::DYING, Ordering::Release);
        seen.words.enter();
        self.machine(|machine| machine.online -= 1);
        true
    }

    /// CPU `cpu` no longer runs anything: its callbacks move to the current CPU, where they wait
    /// for a grace period from now on.
    pub fn cpu_dead(&self, cpu: usize) {
        let irq = self.platform.irq_off();
        let heir = self.cpus.get(self.platform.this_cpu());
        let has_heir = heir.is_some_and(PerCpu::is_online);
        if !self.check(Hook::CpuDead, has_heir, "called on a CPU that is not online")
            || !self.moves_on(Hook::CpuDead, cpu, phase::DYING, phase::DEAD)
        {
            return;
        }
        // This CPU alone has found it dying, so its own part is this CPU's: it is dead.
        let (mut queue, count, wanted) = self.with_own(cpu, |at| {
            let queue = core::mem::replace(&mut at.own.queue, crate::head::Queue::EMPTY);
            let count = at.tree().own.callbacks.len();
            at.own.tree.callbacks = Segments::new(at.own.tree.sequence);
            let wanted = at.own.tree.wanted;
            at.counted();
            // All else that it was about with its callbacks is over, but that it is waited for.
            let fresh = cpu::Own::new(at.own.tree.sequence);
            at.own.tree.is_needed = core::mem::replace(&mut at.own.tree, fresh).is_needed;
            (queue, count, wanted)
        });
        self.cpus[cpu].seen.words.forget_asked();
        self.on(Hook::CpuDead, |at| {
            at.own.queue.append(&mut queue);
            self.move_counts(cpu, at.cpu, count);
            // The bytes that have come may be near the limit.
            at.own.look_in(&self.cpus[at.cpu].seen, 0);
            let tree = at.tree();
            if wanted.is_at_or_after(tree.own.wanted) {
                tree.own.wanted = wanted;
            }
        });
        self.moves_on(Hook::CpuDead, cpu, phase::DEAD, phase::OFFLINE);
        self.platform.wake_waiters();
        drop(irq);
    }

    /// So many callbacks of a dead CPU are `to`'s: in an order in which a barrier that has seen the
    /// first count satisfied sees the move, and looks again.
    fn move_counts(&self, dead: usize, to: usize, count: u64) {
        // Relaxed: the dead CPU's words are this one's now.
        let bytes = self.cpus[dead].seen.bytes.swap(0, Ordering::Relaxed);
        self.cpus[to].add_bytes(bytes);
        let (dead, to) = (&self.cpus[dead].seen, &self.cpus[to].seen);
        // Relaxed: this CPU's own word.
        let queued = to.queued.load(Ordering::Relaxed).wrapping_add(count);
        // Release, three times: a barrier's Acquire of a later one sees the earlier ones.
        to.queued.store(queued, Ordering::Release);
        self.moves.fetch_add(1, Ordering::Release);
        dead.ran.store(dead.queued.load(Ordering::Relaxed), Ordering::Release);
    }
}
