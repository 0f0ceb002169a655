//! Which thread runs on which CPU, and how it spends its time.

use super::costs::ns;
use super::report::Spending;
use super::world::{Happening, Thread, ThreadId, World};
use crate::events::Time;
use crate::srcu::SchedulerTimes;
use crate::srcu::scheduler::RunQueue;

/// A stage without an end: until something else happens.
pub(super) const FOREVER: Time = Time::MAX;

/// A CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    queue: RunQueue,
    should_switch: bool,
    /// Which event of a stage's end is the current one.
    generation: u64,
    ends_at: Option<Time>,
    /// Since when its thread's time has not been accounted for.
    since: Time,
    /// The thread that ran last.
    last: Option<ThreadId>,
    ticks: bool,
    /// Whether it is to be looked at in [`World::settle`].
    noted: bool,
}

impl Cpu {
    pub(super) fn new(times: SchedulerTimes) -> Self {
        Self { queue: RunQueue::new(times), ..Self::default() }
    }
}

/// Lost to interrupts and switches: what it does lasts longer by that.
impl Thread {
    fn lose(&mut self, ns: Time) {
        self.lost_ns += ns;
        self.extend_ns += ns;
    }
}

impl World<'_> {
    /// Wakes a thread, if it sleeps.
    pub(super) fn wake(&mut self, id: ThreadId) {
        let thread = &mut self.threads[id];
        if !std::mem::take(&mut thread.asleep) {
            return;
        }
        thread.naps += 1;
        self.awake += 1;
        let now = self.events.now();
        let home = thread.cpu;
        let to = match home {
            Some(cpu) if self.idle.contains(&cpu) => cpu,
            Some(cpu) => self.idle.first().copied().unwrap_or(cpu),
            None => id % self.cpus.len(),
        };
        if home != Some(to) {
            if let Some(home) = home {
                self.cpus[home].queue.remove(id);
            }
            self.cpus[to].queue.add(id);
            self.threads[id].cpu = Some(to);
        }
        if self.idle.remove(&to) {
            let exit_ns = ns(self.options.costs.idle_exit);
            self.threads[id].lose(exit_ns);
            self.counted.time.switches_ns += exit_ns;
        }
        self.cpus[to].should_switch |= self.cpus[to].queue.wake(id, now);
        self.note(to);
    }

    fn note(&mut self, cpu: usize) {
        if !std::mem::replace(&mut self.cpus[cpu].noted, true) {
            self.noted.push(cpu);
        }
    }

    /// Lets every CPU run the thread that it should.
    pub(super) fn settle(&mut self) {
        while let Some(at) = self.noted.pop() {
            let cpu = &mut self.cpus[at];
            cpu.noted = false;
            if cpu.queue.current().is_none() || std::mem::take(&mut cpu.should_switch) {
                self.switch(at);
            }
            let now = self.events.now();
            let cpu = &mut self.cpus[at];
            if cpu.queue.waiting() != 0 && !std::mem::replace(&mut cpu.ticks, true) {
                let next = (now / self.jiffy_ns + 1) * self.jiffy_ns;
                self.events.at(next, Happening::Tick { cpu: at });
            }
        }
    }

    fn switch(&mut self, at: usize) {
        let now = self.events.now();
        self.stop(at);
        let cpu = &self.cpus[at];
        if cpu.queue.current().is_none() && cpu.queue.waiting() == 0 && self.some_wait() {
            self.pull(at);
        }
        let cpu = &mut self.cpus[at];
        cpu.should_switch = false;
        let Some(next) = cpu.queue.choose(now) else {
            self.idle.insert(at);
            return;
        };
        self.idle.remove(&at);
        if cpu.last.replace(next) != Some(next) {
            let switch_ns = ns(self.options.costs.machine.context_switch);
            self.threads[next].lose(switch_ns);
            self.counted.time.switches_ns += switch_ns;
            self.counted.switches += 1;
        }
        self.start(at);
    }

    /// An idle CPU takes a thread from the one where most wait; the first of those.
    fn pull(&mut self, to: usize) {
        let now = self.events.now();
        let most = (0..self.cpus.len()).max_by_key(|&cpu| (self.cpus[cpu].queue.waiting(), !cpu));
        let Some(from) = most.filter(|&from| self.cpus[from].queue.waiting() != 0) else { return };
        if let Some(id) = self.cpus[from].queue.take_first() {
            self.cpus[from].queue.remove(id);
            self.cpus[to].queue.add(id);
            self.threads[id].cpu = Some(to);
            self.cpus[to].queue.wake(id, now);
        }
    }

    /// Whether more threads are awake than CPUs run.
    fn some_wait(&self) -> bool {
        let idle = self.idle.len() + self.noted.len() + 1;
        self.awake + idle > self.cpus.len()
    }

    /// The thread that was chosen runs.
    fn start(&mut self, at: usize) {
        let now = self.events.now();
        self.cpus[at].since = now;
        let Some(id) = self.cpus[at].queue.current() else { return };
        if let Some(reader) = self.threads[id].reader {
            self.readers[reader].resume(now);
            self.expect_leave(reader);
        }
        self.expect_end(at, id);
    }

    /// Has the stage of the thread that runs there end when it is over.
    fn expect_end(&mut self, at: usize, id: ThreadId) {
        let cpu = &mut self.cpus[at];
        cpu.generation += 1;
        cpu.ends_at = None;
        let left_ns = self.threads[id].left_ns;
        if left_ns != FOREVER {
            let ends_at = self.events.now() + left_ns;
            cpu.ends_at = Some(ends_at);
            let generation = cpu.generation;
            self.events.at(ends_at, Happening::End { cpu: at, generation });
        }
    }

    /// The thread that runs there keeps what is left of its stage.
    fn stop(&mut self, at: usize) {
        let now = self.events.now();
        self.account(at);
        let cpu = &mut self.cpus[at];
        cpu.generation += 1;
        let ends_at = cpu.ends_at.take();
        let Some(id) = cpu.queue.current() else { return };
        if let Some(ends_at) = ends_at {
            self.threads[id].left_ns = ends_at - now;
        }
        self.pause_reader(id);
    }

    fn pause_reader(&mut self, id: ThreadId) {
        if let Some(reader) = self.threads[id].reader {
            let now = self.events.now();
            self.readers[reader].pause(now);
            self.readers[reader].generation += 1;
            self.note_leave(reader);
        }
    }

    /// Accounts for the time of the thread that runs there.
    pub(super) fn account(&mut self, at: usize) {
        let now = self.events.now();
        let cpu = &mut self.cpus[at];
        let elapsed = now - std::mem::replace(&mut cpu.since, now);
        let Some(id) = cpu.queue.current() else { return };
        let thread = &mut self.threads[id];
        let lost = thread.lost_ns.min(elapsed);
        thread.lost_ns -= lost;
        thread.cpu_ns += elapsed;
        let spent = elapsed - lost;
        self.counted.time.add(thread.spends, spent);
        if thread.spends == Spending::Own {
            thread.own_ns += spent;
        }
    }

    /// A stage is over, if nothing came in between: the thread that it is of takes its next step.
    pub(super) fn end(&mut self, at: usize, generation: u64) -> Option<(usize, ThreadId)> {
        if self.cpus[at].generation != generation {
            return None;
        }
        let id = self.cpus[at].queue.current()?;
        self.threads[id].left_ns = std::mem::take(&mut self.threads[id].extend_ns);
        if self.threads[id].left_ns != 0 {
            self.expect_end(at, id);
            return None;
        }
        self.account(at);
        self.steps_at = self.threads[id].cpu;
        Some((at, id))
    }

    /// It has taken its step.
    pub(super) fn after_step(&mut self, at: usize, id: ThreadId) {
        if self.threads[id].asleep {
            self.pause_reader(id);
            self.cpus[at].generation += 1;
            self.cpus[at].ends_at = None;
            self.cpus[at].queue.sleep(self.events.now());
            self.awake -= 1;
            self.note(at);
        } else {
            self.expect_end(at, id);
        }
    }

    /// The scheduler's tick on a CPU where threads wait.
    pub(super) fn tick(&mut self, at: usize) {
        let now = self.events.now();
        let cpu = &mut self.cpus[at];
        if cpu.queue.waiting() == 0 {
            cpu.ticks = false;
            return;
        }
        cpu.should_switch |= cpu.queue.tick(now);
        self.events.at(now + self.jiffy_ns, Happening::Tick { cpu: at });
        self.note(at);
    }

    /// Interrupts each CPU but this thread's that runs the process. Returns how many.
    pub(super) fn interrupt_others(&mut self, id: ThreadId) -> u64 {
        let mine = self.threads[id].cpu;
        let interrupted_ns = ns(self.options.costs.machine.interrupt);
        let mut others = 0;
        for (at, cpu) in self.cpus.iter().enumerate() {
            if let Some(other) = cpu.queue.current().filter(|_| Some(at) != mine) {
                self.threads[other].lose(interrupted_ns);
                others += 1;
            }
        }
        self.counted.time.interrupts_ns += others * interrupted_ns;
        self.counted.interrupts += others;
        others
    }
}
