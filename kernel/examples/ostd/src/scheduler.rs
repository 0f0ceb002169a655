//! A scheduler for ostd, in place of the one that it has, which runs all tasks on the first CPU:
//! tasks stay on their CPU and take turns; the idle task runs if there is no other.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use ostd::cpu::{CpuId, PinCurrentCpu};
use ostd::irq;
use ostd::sync::SpinLock;
use ostd::task::Task;
use ostd::task::scheduler::{EnqueueFlags, LocalRunQueue, Scheduler, UpdateFlags};
use ostd::util::id_set::Id;

use crate::CPUS;

/// Where a task runs: its data.
pub(crate) struct Place {
    pub(crate) cpu: CpuId,
    pub(crate) is_idle: bool,
}

fn place(task: &Task) -> &Place {
    task.data().downcast_ref().expect("each task is made with a place")
}

/// The tasks of a CPU that can run.
struct Queue {
    current: Option<Arc<Task>>,
    ready: VecDeque<Arc<Task>>,
    idle: Option<Arc<Task>>,
}

pub(crate) struct Queues([SpinLock<Queue>; CPUS]);

impl Queues {
    pub(crate) const fn new() -> Self {
        Self(
            [const { SpinLock::new(Queue { current: None, ready: VecDeque::new(), idle: None }) };
                CPUS],
        )
    }

    fn with<R>(&self, cpu: CpuId, f: impl FnOnce(&mut Queue) -> R) -> R {
        f(&mut self.0[cpu.as_usize()].disable_irq().lock())
    }
}

impl Scheduler for Queues {
    /// Each task that becomes ready asks the current one to yield, except before a CPU's first.
    fn enqueue(&self, task: Arc<Task>, _: EnqueueFlags) -> Option<CpuId> {
        let &Place { cpu, is_idle } = place(&task);
        self.with(cpu, |queue| {
            // It is there already if it was woken before it could sleep.
            task.schedule_info().cpu.set_if_is_none(cpu).ok()?;
            if is_idle {
                queue.idle = Some(task);
            } else {
                queue.ready.push_back(task);
            }
            queue.current.is_some().then_some(cpu)
        })
    }

    fn local_rq_with(&self, f: &mut dyn FnMut(&dyn LocalRunQueue)) {
        let irq = irq::disable_local();
        self.with(irq.current_cpu(), |queue| f(queue));
    }

    fn mut_local_rq_with(&self, f: &mut dyn FnMut(&mut dyn LocalRunQueue)) {
        let irq = irq::disable_local();
        self.with(irq.current_cpu(), |queue| f(queue));
    }
}

impl LocalRunQueue for Queue {
    fn current(&self) -> Option<&Arc<Task>> {
        self.current.as_ref()
    }

    fn update_current(&mut self, flags: UpdateFlags) -> bool {
        match flags {
            // What brings a CPU up is no task: whoever takes the CPU from it has it for good.
            UpdateFlags::Tick => self.current.is_some() && !self.ready.is_empty(),
            UpdateFlags::Yield => self.current.is_none() || !self.ready.is_empty(),
            UpdateFlags::Wait | UpdateFlags::Exit => true,
        }
    }

    fn try_pick_next(&mut self) -> Option<&Arc<Task>> {
        let idle = || self.idle.clone().filter(|_| self.current.is_none());
        let next = self.ready.pop_front().or_else(idle)?;
        let before = self.current.replace(next);
        self.ready.extend(before.filter(|task| !place(task).is_idle));
        self.current.as_ref()
    }

    fn dequeue_current(&mut self) -> Option<Arc<Task>> {
        self.current.take().inspect(|task| task.schedule_info().cpu.set_to_none())
    }
}
