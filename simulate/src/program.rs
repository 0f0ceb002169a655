//! Workloads as streams of stretches: what the task of each CPU does next.

use grace::Urgency;
use serde::Deserialize;

use crate::cpu::{Activity, Stretch, Then};
use crate::events::Time;
use crate::random::Random;
use crate::setup::MICROSECOND;
use crate::workload::{Kind, Workload};

/// The task of one CPU.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    task: Task,
    cpu: usize,
    cpus: usize,
    numbers: Numbers,
}

#[derive(Clone, Debug)]
enum Task {
    /// Sleeps, but for a short piece of work now and then.
    Idle,
    /// Bursts of system calls, and sleeps in between.
    Server,
    /// Rounds of a benchmark whose tasks wait for each other: phases that have begun, each with a
    /// barrier at its end, and what is left to do in this one.
    Rounds { phase: u64, left: Time },
    /// Operations without end, each with a callback.
    Loop { since_call: u64 },
    /// Long kernel loops, with user time before each.
    Exits { left: Option<u64> },
    /// Long read-side critical sections, with user time before each.
    Readers { reads: bool },
    /// Updates that are waited for.
    Waiter { pauses: bool },
}

/// Those of the workload (`workloads.toml`); 0 if it has none of the name.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Numbers {
    kernel_percent: u64,
    section_us: u64,
    bytes: u32,
    busy_us: u64,
    idle_us: u64,
    calls_per_1000_bursts: u32,
    operation_ns: Time,
    chunk_operations: u64,
    operations_per_call: u64,
    cond_resched_ns: Time,
    work_us: u64,
    update_every_us: u64,
    expedited: u64,
    waiters: u64,
    wake_every_us: u64,
    round_us: u64,
    barriers: u64,
    share_percent: u64,
    call_every_us: u64,
    switch_every_us: u64,
    files: u64,
    file_ns: Time,
    pause_us: u64,
    rcu_qs: u64,
    exits_on_every_cpus: u64,
    read_us: u64,
    readers_on_every_cpus: u64,
}

/// How much of the kernel's time is in sections in which a preemptible kernel cannot be preempted.
const SECTION_PPM: u32 = 300_000;

impl Task {
    fn new(kind: Kind, cpu: u64, numbers: &Numbers) -> Self {
        const LOOP: Task = Task::Loop { since_call: 0 };
        const WAITER: Task = Task::Waiter { pauses: true };
        match kind {
            Kind::Idle => Self::Idle,
            Kind::Dbench => Self::Server,
            Kind::Dcachebench => Self::Rounds { phase: 0, left: 0 },
            Kind::OpenClose | Kind::UpdateFlood | Kind::ReadMostly => LOOP,
            Kind::ExitFiles if cpu.is_multiple_of(numbers.exits_on_every_cpus) => {
                Self::Exits { left: None }
            }
            Kind::LongReaders if cpu.is_multiple_of(numbers.readers_on_every_cpus) => {
                Self::Readers { reads: false }
            }
            Kind::ExitFiles | Kind::LongReaders => Self::Server,
            Kind::Waiter if cpu < numbers.waiters => WAITER,
            Kind::Waiter => LOOP,
            Kind::WaiterIdle if cpu == 0 => WAITER,
            Kind::WaiterIdle => Self::Idle,
            Kind::Mixed => match cpu % 8 {
                0 => WAITER,
                1 => LOOP,
                2 | 3 => Self::Idle,
                _ => Self::Server,
            },
        }
    }
}

/// About so many microseconds, drawn.
fn draw_us(random: &mut Random, mean_us: u64) -> Time {
    1 + random.exponential(mean_us * MICROSECOND)
}

impl Program {
    /// The tasks of all CPUs.
    pub(crate) fn of_all(workload: &Workload, cpus: usize) -> Vec<Self> {
        let numbers: Numbers = workload.numbers();
        let of =
            |cpu| Self { task: Task::new(workload.kind, cpu as u64, &numbers), cpu, cpus, numbers };
        (0..cpus).map(of).collect()
    }

    /// What the task does next.
    pub(crate) fn next(&mut self, random: &mut Random) -> Stretch {
        let Self { task, numbers, cpu, cpus } = self;
        let Numbers { bytes, .. } = *numbers;
        match task {
            Task::Idle => {
                // Every other stretch is work: a draw of its own tells it apart.
                if random.chance_ppm(500_000) {
                    let length = draw_us(random, 20);
                    Stretch { then: Then::Switch, ..Stretch::new(numbers.busy(0), length) }
                } else {
                    Stretch::new(Activity::Idle, draw_us(random, numbers.wake_every_us))
                }
            }
            Task::Server => {
                if numbers.idle_us != 0 && random.chance_ppm(500_000) {
                    return Stretch::new(Activity::Idle, draw_us(random, numbers.idle_us));
                }
                Stretch {
                    operations: 1,
                    calls: u32::from(random.chance_ppm(numbers.calls_per_1000_bursts * 1_000)),
                    bytes,
                    then: Then::Switch,
                    ..Stretch::new(numbers.busy(0), draw_us(random, numbers.busy_us))
                }
            }
            Task::Rounds { phase, left } => {
                let is_longest = *phase % *cpus as u64 == *cpu as u64;
                numbers.round(phase, left, is_longest, random)
            }
            Task::Loop { since_call } => {
                let (chunk, calls_every) = (numbers.chunk_operations, numbers.operations_per_call);
                let done = *since_call + chunk;
                let calls = done.checked_div(calls_every).unwrap_or(0);
                *since_call = done.checked_rem(calls_every).unwrap_or(0);
                let mean = numbers.operation_ns * chunk;
                // Half fixed, half drawn, so that CPUs do not keep step.
                let length = 1 + mean / 2 + random.below(mean);
                Stretch {
                    operations: chunk as u32,
                    calls: calls as u32,
                    bytes,
                    ..Stretch::new(numbers.busy(numbers.cond_resched_ns), length)
                }
            }
            Task::Exits { left } => numbers.exit(left, random),
            Task::Readers { reads } => {
                *reads = !*reads;
                if !*reads {
                    return Stretch::new(Activity::User, draw_us(random, numbers.pause_us));
                }
                let activity = Activity::Kernel {
                    cond_resched: 0,
                    section: true,
                    alone: false,
                    rcu_qs: false,
                };
                let length = draw_us(random, numbers.read_us);
                Stretch { operations: 1, ..Stretch::new(activity, length) }
            }
            Task::Waiter { pauses } => {
                *pauses = !*pauses && numbers.update_every_us != 0;
                if *pauses {
                    return Stretch::new(Activity::Idle, draw_us(random, numbers.update_every_us));
                }
                let urgency =
                    if numbers.expedited == 0 { Urgency::Normal } else { Urgency::Expedited };
                Stretch {
                    operations: 1,
                    bytes,
                    then: Then::Wait(urgency),
                    ..Stretch::new(numbers.busy(0), draw_us(random, numbers.work_us))
                }
            }
        }
    }
}

impl Numbers {
    /// A program that calls into the kernel, whose offers to reschedule are so far apart.
    const fn busy(&self, cond_resched: Time) -> Activity {
        Activity::Mixed {
            kernel_ppm: self.kernel_percent as u32 * 10_000,
            section_ppm: SECTION_PPM,
            section: self.section_us * MICROSECOND,
            cond_resched,
        }
    }

    /// Some time in user mode, then `exit()`, whose loop over the files comes in pieces.
    fn exit(&self, left: &mut Option<u64>, random: &mut Random) -> Stretch {
        /// Files that are closed between two looks of the simulator.
        const CHUNK: u64 = 32;
        let Some(remaining) = *left else {
            *left = Some(self.files);
            return Stretch::new(Activity::User, draw_us(random, self.pause_us));
        };
        let closed = remaining.min(CHUNK);
        let is_last = remaining == closed;
        *left = if is_last { None } else { Some(remaining - closed) };
        // One after each file.
        let (cond_resched, rcu_qs) = (self.file_ns, self.rcu_qs != 0);
        let activity = Activity::Kernel { cond_resched, section: false, alone: true, rcu_qs };
        Stretch {
            operations: u32::from(is_last),
            calls: closed as u32,
            bytes: self.bytes,
            then: if is_last { Then::Switch } else { Then::GoOn },
            ..Stretch::new(activity, 1 + self.file_ns * closed)
        }
    }

    /// What is done in a round until something comes in between.
    fn round(
        &self,
        phase: &mut u64,
        left: &mut Time,
        is_longest: bool,
        random: &mut Random,
    ) -> Stretch {
        if *left == 0 {
            // Until the next barrier one task has the longest work; the others have a share of
            // that, which is drawn about its mean.
            *phase += 1;
            let mean = self.share_percent * 10_000;
            let lowest = (2 * mean).saturating_sub(1_000_000);
            let highest = (2 * mean).min(1_000_000);
            let share = lowest + random.below(highest - lowest + 1);
            let share = if is_longest { 1_000_000 } else { share };
            let work = self.round_us * MICROSECOND / self.barriers;
            *left = (work * share / 1_000_000).max(1);
        }
        let call = draw_us(random, self.call_every_us);
        let switch = draw_us(random, self.switch_every_us);
        let length = call.min(switch).min(*left);
        *left -= length;
        let then = match () {
            () if *left == 0 => Then::Barrier { ends_round: phase.is_multiple_of(self.barriers) },
            () if length == switch => Then::Switch,
            () => Then::GoOn,
        };
        Stretch {
            operations: (length / self.operation_ns.max(1)) as u32,
            calls: u32::from(length == call),
            bytes: self.bytes,
            then,
            ..Stretch::new(self.busy(0), length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One whose field has another name would be 0.
    #[test]
    fn each_number_of_a_workload_reaches_its_programs() {
        for workload in Workload::all() {
            let numbers = workload.parameters().iter();
            for number in numbers.filter(|number| !number.name.starts_with("slab_")) {
                let read = |value| {
                    let mut workload = workload.clone();
                    workload.set(number.name, value).unwrap();
                    format!("{:?}", workload.numbers::<Numbers>())
                };
                assert_ne!(read(number.min), read(number.max), "{}", number.name);
            }
        }
    }
}
