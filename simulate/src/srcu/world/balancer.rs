//! The load balancer: which CPU a task runs on.
//!
//! Three rules of Linux in 2022, without a parameter of their own. Work of a per-CPU workqueue runs
//! on the CPU that queues it. A task that wakes while its CPU is busy goes to the next idle CPU
//! (`select_idle_sibling()`). At a tick, a CPU on which a task waits for another one asks the first
//! idle CPU after itself to look for work on behalf of all idle CPUs (`nohz_balancer_kick()`,
//! `find_new_ilb()`). That CPU *pulls* the waiting task over, unless the task ran so recently that
//! its cache is warm (`task_hot()`, 0.5 ms). Workers are bound to their CPUs, so only the caller
//! can be pulled.
//!
//! Not modelled: domains of CPUs, and that an idle CPU balances a domain only once in as many
//! milliseconds as the domain has CPUs. The topology of the machines of 2022 is not published; in a
//! domain of four CPUs that is every tick of 4 ms.

use super::{CALLER, Placement, WORKER, World};

impl World<'_> {
    /// The first CPU after `at` that has nothing to do, in a circle; `at` itself last.
    fn idle_cpu_after(&self, at: usize) -> Option<usize> {
        let cpus = self.cpus.len();
        (1..=cpus).map(|step| (at + step) % cpus).find(|cpu| self.cpus[*cpu].queue.is_idle())
    }

    /// At a tick: an idle CPU pulls the caller, if it waits for a CPU and is not warm.
    pub(super) fn balance(&mut self) {
        let now = self.events.now();
        let from = self.tasks[CALLER].cpu;
        if self.options.balances
            && self.cpus[from].queue.waits_cold(CALLER, now)
            && let Some(balancer) = self.idle_cpu_after(self.cpus.len() - 1)
            && let Some(to) = self.idle_cpu_after(balancer)
        {
            self.move_caller(to);
            self.tasks[CALLER].left_ns += self.options.wake_ns;
            self.record.report.pulls += 1;
        }
    }

    /// The caller is about to wake: on its own CPU, or on the next idle one if that is busy.
    pub(super) fn place_caller(&mut self) {
        let from = self.tasks[CALLER].cpu;
        if self.options.balances
            && !self.cpus[from].queue.is_idle()
            && let Some(to) = self.idle_cpu_after(from)
        {
            self.move_caller(to);
        }
    }

    /// The caller is about to queue the worker: on its own CPU, unless that still runs elsewhere.
    pub(super) fn place_worker(&mut self) {
        if self.options.placement == Placement::WithCaller && self.tasks[WORKER].asleep {
            let here = self.tasks[CALLER].cpu;
            self.tasks[WORKER].cpu = here;
            self.cpus[here].queue.add_sleeper(WORKER);
        }
    }

    fn move_caller(&mut self, to: usize) {
        let now = self.events.now();
        let from = core::mem::replace(&mut self.tasks[CALLER].cpu, to);
        let moving = self.cpus[from].queue.leave(CALLER, now);
        self.cpus[to].queue.join(moving, now);
    }
}
