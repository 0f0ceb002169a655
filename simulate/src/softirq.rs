//! What a CPU does for the engine: softirqs, ksoftirqd, the engine's thread.
//!
//! A softirq that raises itself runs again at once, a few times. Then ksoftirqd takes over, which
//! alternates with the task, or has the CPU alone if there is no task. Each run is an event of its
//! own, so other CPUs continue meanwhile.

use crate::cost::PICOS;
use crate::driver::{Driver, Pass};
use crate::events::Time;
use crate::setup::Setup;
use crate::timeline::Look;
use crate::world::Happening;

/// How many CPUs are looked at for an idle one to run the engine's thread.
const IDLE_SEARCH: usize = 64;

impl Driver {
    /// A softirq that has been raised is run as soon as the CPU is done with what it does.
    pub(crate) fn start_softirq(&mut self, cpu: usize) {
        let this_cpu = &mut self.world.cpus[cpu];
        if this_cpu.softirq && !this_cpu.softirq_event {
            let at = this_cpu.at;
            this_cpu.worker_since.get_or_insert(at);
            self.softirq_after(cpu, 0);
        }
    }

    /// As soon as the CPU is done with what it does, and so long after.
    fn softirq_after(&mut self, cpu: usize, wait: Time) {
        let this_cpu = &mut self.world.cpus[cpu];
        this_cpu.softirq_event = true;
        this_cpu.softirq_ticket = this_cpu.softirq_ticket.wrapping_add(1);
        let (at, ticket) = (this_cpu.at + wait, this_cpu.softirq_ticket);
        self.world.on(at, cpu, Happening::Softirq { ticket });
    }

    /// The event has come: softirqs are run, or ksoftirqd gets on.
    pub(crate) fn softirq(&mut self, cpu: usize, ticket: u32) {
        let this_cpu = &mut self.world.cpus[cpu];
        if this_cpu.softirq_ticket != ticket {
            return;
        }
        this_cpu.softirq_event = false;
        if this_cpu.daemon.awake {
            return self.daemon(cpu);
        }
        if !this_cpu.softirq {
            return;
        }
        self.run_softirq(cpu);
        let this_cpu = &mut self.world.cpus[cpu];
        if !this_cpu.softirq {
            this_cpu.restarts = 0;
            return self.sleeps(cpu);
        }
        this_cpu.restarts += 1;
        if this_cpu.restarts >= self.world.setup.softirq_runs {
            self.wake_daemon(cpu);
        }
        self.softirq_after(cpu, 0);
    }

    /// The end of an interrupt runs softirqs once, even if ksoftirqd waits to do so.
    pub(crate) fn softirq_of_interrupt(&mut self, cpu: usize) {
        let this_cpu = &self.world.cpus[cpu];
        if !this_cpu.softirq || !this_cpu.daemon.awake || this_cpu.daemon.runs {
            return;
        }
        self.run_softirq(cpu);
        let this_cpu = &mut self.world.cpus[cpu];
        if !this_cpu.softirq {
            // Nothing is left for ksoftirqd: it will find that when it comes to run, at no cost to
            // speak of.
            this_cpu.daemon.awake = false;
            this_cpu.softirq_event = false;
            this_cpu.softirq_ticket = this_cpu.softirq_ticket.wrapping_add(1);
            self.sleeps(cpu);
        }
    }

    fn wake_daemon(&mut self, cpu: usize) {
        self.world.charge_engine(cpu, self.world.setup.costs.wake_up);
        let Setup { slice, ksoftirqd_percent, .. } = self.world.setup;
        let this_cpu = &mut self.world.cpus[cpu];
        this_cpu.restarts = 0;
        this_cpu.daemon.awake = true;
        if ksoftirqd_percent < 100 {
            // Being nice it preempts no task, but waits for what is left of the task's slice.
            let others = slice * 100 / u64::from(ksoftirqd_percent);
            let turn = this_cpu.at + this_cpu.random.below(others);
            this_cpu.daemon.not_before = this_cpu.daemon.not_before.max(turn);
        }
    }

    /// The CPU becomes idle: ksoftirqd need not wait any longer.
    pub(crate) fn daemon_has_its_turn(&mut self, cpu: usize) {
        let this_cpu = &self.world.cpus[cpu];
        if this_cpu.daemon.awake && !this_cpu.daemon.runs {
            self.softirq_after(cpu, 0);
        }
    }

    fn run_softirq(&mut self, cpu: usize) {
        let counted = self.world.is_counted(self.now);
        self.world.tally.machinery.softirqs += u64::from(counted);
        self.world.cpus[cpu].softirq = false;
        let cost = self.world.setup.costs.softirq + self.world.setup.costs.engine;
        self.call(cpu, cost, Look::All, |engine, world| engine.softirq(cpu, world));
    }

    /// The softirqs of `cpu` have come to rest.
    fn sleeps(&mut self, cpu: usize) {
        let at = self.world.cpus[cpu].at;
        if let Some(since) = self.world.cpus[cpu].worker_since.take() {
            self.was_awake(since, at);
        }
    }

    /// A worker was awake from when to when.
    fn was_awake(&mut self, since: Time, to: Time) {
        if self.world.is_counted(to) {
            let longest = &mut self.world.tally.worker_awake_max;
            let since = since.max(self.world.window.from);
            *longest = (*longest).max(to.saturating_sub(since));
        }
    }

    /// ksoftirqd, which is awake.
    fn daemon(&mut self, cpu: usize) {
        let preemptible = self.world.setup.preemptible;
        let this_cpu = &mut self.world.cpus[cpu];
        if !this_cpu.daemon.runs && !this_cpu.is_idle() {
            let wait = if self.now < this_cpu.daemon.not_before {
                this_cpu.daemon.not_before - self.now
            } else if this_cpu.daemon.admitted {
                0
            } else {
                this_cpu.daemon.admitted = true;
                let left = this_cpu.left;
                this_cpu.until_preemptible(preemptible).unwrap_or(left)
            };
            if wait != 0 {
                return self.softirq_after(cpu, wait);
            }
        }
        if !self.world.cpus[cpu].daemon.runs {
            let daemon = &mut self.world.cpus[cpu].daemon;
            (daemon.runs, daemon.admitted, daemon.used) = (true, false, 0);
            self.switch_for_engine(cpu);
        }
        let before = self.world.cpus[cpu].at;
        self.run_softirq(cpu);
        let slice = self.world.setup.slice;
        let this_cpu = &mut self.world.cpus[cpu];
        this_cpu.daemon.used += this_cpu.at - before;
        let is_done = !this_cpu.softirq;
        if !is_done && (this_cpu.is_idle() || this_cpu.daemon.used < slice) {
            if this_cpu.need_resched {
                self.pass(cpu, Pass::Forced);
            }
            return self.softirq_after(cpu, 0);
        }
        self.daemon_yields(cpu, is_done);
    }

    /// ksoftirqd gives the CPU back, for now or until it is woken again.
    fn daemon_yields(&mut self, cpu: usize, is_done: bool) {
        let daemon = &mut self.world.cpus[cpu].daemon;
        daemon.runs = false;
        daemon.awake = !is_done;
        self.switch_for_engine(cpu);
        let percent = u64::from(self.world.setup.ksoftirqd_percent);
        let this_cpu = &mut self.world.cpus[cpu];
        let others = this_cpu.daemon.used * 100 / percent;
        this_cpu.daemon.not_before = this_cpu.at + others;
        if !is_done {
            return self.softirq_after(cpu, others);
        }
        if !this_cpu.softirq {
            self.sleeps(cpu);
        }
    }

    /// A context switch that would not be but for the engine.
    fn switch_for_engine(&mut self, cpu: usize) {
        self.world.charge_engine(cpu, self.world.setup.costs.context_switch);
        self.pass(cpu, Pass::Charged);
    }

    /// The engine's timer: its thread is woken, where there is an idle CPU if there is one.
    pub(crate) fn timer_expires(&mut self, ticket: u32) {
        if ticket != self.world.timer_ticket {
            return;
        }
        let cpus = self.world.cpus.len();
        let near = (0..cpus.min(IDLE_SEARCH)).map(|offset| (self.thread_cpu + offset) % cpus);
        let mut idle = near.filter(|&cpu| {
            let this_cpu = &self.world.cpus[cpu];
            this_cpu.is_idle() && !this_cpu.daemon.runs && this_cpu.at <= self.now
        });
        let cpu = idle.next().unwrap_or(self.thread_cpu);
        self.thread_cpu = cpu;
        let preemptible = self.world.setup.preemptible;
        let this_cpu = &mut self.world.cpus[cpu];
        let left = if this_cpu.is_idle() { 0 } else { this_cpu.left };
        let wait = this_cpu.until_preemptible(preemptible).unwrap_or(left);
        let at = this_cpu.at.max(self.now) + wait + self.world.setup.costs.wake_up / PICOS;
        self.world.on(at, cpu, Happening::Thread { ticket });
    }

    /// The engine's thread runs on `cpu`, unless the timer has been set again.
    pub(crate) fn thread(&mut self, cpu: usize, ticket: u32) {
        if ticket != self.world.timer_ticket {
            return;
        }
        let since = self.world.cpus[cpu].at;
        let counted = self.world.is_counted(self.now);
        self.world.tally.machinery.thread_runs += u64::from(counted);
        let costs = self.world.setup.costs;
        self.world.charge_engine(cpu, costs.interrupt + costs.wake_up);
        self.switch_for_engine(cpu);
        self.call(cpu, costs.engine, Look::All, |engine, world| engine.timer(cpu, world));
        self.switch_for_engine(cpu);
        let at = self.world.cpus[cpu].at;
        self.was_awake(since, at);
    }
}
