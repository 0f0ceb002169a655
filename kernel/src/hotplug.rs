//! CPUs that come and go.
//!
//! A CPU that is offline is in an extended quiescent state, so that coming and going are an exit
//! and an entry like those of idle: a scan that has chosen its CPUs finds it outside or waits for
//! it. In order: starting, online, dying (by the CPU itself), dead (by another one).

use grace::{Cookie, Segments};

use crate::front::Kernel;
use crate::misuse::Hook;
use crate::percpu::{PerCpu, Place, phase};
use crate::platform::Platform;
use crate::sync::Ordering;

impl<P: Platform, const CPUS: usize> Kernel<P, CPUS> {
    /// CPU `cpu`, which runs this with interrupts off, is about to come online: before its first
    /// section. On the boot CPU it is the first hook of all.
    pub fn cpu_starting(&self, cpu: usize) {
        let _irq = self.platform.irq_off();
        let is_here = self.platform.this_cpu() == cpu;
        if !self.check(Hook::CpuStarting, is_here, "by another CPU")
            || !self.moves_on(Hook::CpuStarting, cpu, phase::OFFLINE, phase::STARTING)
        {
            return;
        }
        self.cpus[cpu].note(Hook::CpuStarting);
        // Whoever finds itself alone under the lock has updated before this CPU's first section.
        self.machine(|machine| machine.online += 1);
        self.cpus[cpu].seen.words.leave();
        self.with_own(cpu, |at| at.own.place = Place::Kernel);
    }

    /// CPU `cpu`, which runs this, is online: threads may run there, and queue callbacks.
    pub fn cpu_online(&self, cpu: usize) {
        if self.moves_on(Hook::CpuOnline, cpu, phase::STARTING, phase::ONLINE) {
            self.cpus[cpu].note(Hook::CpuOnline);
        }
    }

    /// CPU `cpu`, which runs this with interrupts off, goes offline: after its last section. Its
    /// worker runs no callback any more. The last of its hooks.
    pub fn cpu_dying(&self, cpu: usize) {
        let _irq = self.platform.irq_off();
        let is_here = self.platform.this_cpu() == cpu;
        if !self.check(Hook::CpuDying, is_here, "by another CPU") {
            return;
        }
        let place = self.on(Hook::CpuDying, |at| at.own.place);
        let is_free = place == Some(Place::Kernel);
        if !self.check(Hook::CpuDying, is_free, "it is idle or in user mode, as the hooks say") {
            return;
        }
        self.cpus[cpu].seen.words.enter();
        self.machine(|machine| machine.online -= 1);
        self.moves_on(Hook::CpuDying, cpu, phase::ONLINE, phase::DYING);
    }

    /// CPU `cpu` runs nothing any more: its callbacks move to this CPU, where they wait for a grace
    /// period from now.
    pub fn cpu_dead(&self, cpu: usize) {
        let irq = self.platform.irq_off();
        let heir = self.cpus.get(self.platform.this_cpu());
        let has_heir = heir.is_some_and(PerCpu::is_online);
        if !self.check(Hook::CpuDead, has_heir, "by a CPU that is not online")
            || !self.moves_on(Hook::CpuDead, cpu, phase::DYING, phase::DEAD)
        {
            return;
        }
        // This CPU alone has found it dying, so its own part is this CPU's: it is dead.
        let (mut queue, count, wanted) = self.with_own(cpu, |at| {
            let queue = core::mem::replace(&mut at.own.queue, crate::head::Queue::EMPTY);
            let count = at.own.tree.callbacks.len();
            at.own.tree.callbacks = Segments::new(at.own.tree.sequence);
            at.own.runner = None;
            let none = Cookie::done_at(self.sequence());
            let wanted = core::mem::replace(&mut at.own.wanted, none);
            at.counted(false);
            (queue, count, wanted)
        });
        self.on(Hook::CpuDead, |at| {
            at.own.queue.append(&mut queue);
            at.own.tree.callbacks.push(count);
            if wanted.is_at_or_after(at.own.wanted) {
                at.own.wanted = wanted;
            }
            at.counted(false);
            self.move_counts(cpu, at.cpu, count);
        });
        self.moves_on(Hook::CpuDead, cpu, phase::DEAD, phase::OFFLINE);
        self.platform.wake_waiters();
        drop(irq);
    }

    /// So many callbacks of a dead CPU are `to`'s: in an order in which a barrier that has seen the
    /// first count satisfied sees the move, and looks again.
    fn move_counts(&self, dead: usize, to: usize, count: u64) {
        let (dead, to) = (&self.cpus[dead].seen, &self.cpus[to].seen);
        // Relaxed: this CPU's own word.
        let queued = to.queued.load(Ordering::Relaxed).wrapping_add(count);
        // Release, three times: a barrier's Acquire of a later one sees the earlier ones.
        to.queued.store(queued, Ordering::Release);
        self.moves.fetch_add(1, Ordering::Release);
        dead.ran.store(dead.queued.load(Ordering::Relaxed), Ordering::Release);
    }
}
