//! Workloads as streams of stretches: what the task of each CPU does next.

use grace::Urgency;

use crate::cpu::{Activity, Stretch, Then};
use crate::events::Time;
use crate::random::Random;
use crate::setup::MICROSECOND;
use crate::workload::{Kind, Workload};

/// The task of one CPU.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// Sleeps, but for a short piece of work now and then.
    Idle { every: Time, busy: Busy },
    /// Bursts of system calls, and sleeps in between.
    Server { busy: Busy, mean: Time, idle: Time, calls_ppm: u32, bytes: u32 },
    /// Rounds with a barrier at the end of each.
    Rounds(Box<Rounds>),
    /// Operations without end, each with a callback.
    Loop { busy: Busy, operation: Time, chunk: u32, calls_every: u32, since_call: u32, bytes: u32 },
    /// Long kernel loops, with user time before each.
    Exits { files: u32, file: Time, pause: Time, bytes: u32, rcu_qs: bool, left: Option<u32> },
    /// Long read-side critical sections, with user time before each.
    Readers { section: Time, pause: Time, reads: bool },
    /// Updates that are waited for.
    Waiter { busy: Busy, work: Time, pause: Time, urgency: Urgency, pauses: bool, bytes: u32 },
}

/// What a program that calls into the kernel is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy {
    kernel_ppm: u32,
    section: Time,
    cond_resched: Time,
}

/// Rounds of a benchmark whose tasks wait for each other.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    busy: Busy,
    /// What the longest of the tasks has to do in a round.
    work: Time,
    /// The mean of the others.
    share_ppm: u32,
    /// From one callback to the next.
    call_every: Time,
    /// From one context switch to the next.
    switch_every: Time,
    operation: Time,
    cpu: usize,
    cpus: usize,
    /// Barriers to a round.
    phases: u64,
    /// Phases begun.
    phase: u64,
    left: Time,
    bytes: u32,
}

/// How much of the kernel's time is in sections in which a preemptible kernel cannot be preempted.
const SECTION_PPM: u32 = 300_000;

impl Busy {
    fn of(workload: &Workload) -> Self {
        Self {
            kernel_ppm: workload.get("kernel_percent") as u32 * 10_000,
            section: workload.get("section_us") * MICROSECOND,
            cond_resched: 0,
        }
    }

    const fn activity(self) -> Activity {
        Activity::Mixed {
            kernel_ppm: self.kernel_ppm,
            section_ppm: SECTION_PPM,
            section: self.section,
            cond_resched: self.cond_resched,
        }
    }
}

impl Program {
    /// The task of `cpu`, one of `cpus`.
    pub(crate) fn new(workload: &Workload, cpu: usize, cpus: usize) -> Self {
        let is_one_of_every = |name| (cpu as u64).is_multiple_of(workload.get(name));
        match workload.kind {
            Kind::Idle => Self::idle(workload),
            Kind::Dbench => Self::server(workload),
            Kind::Dcachebench => Self::Rounds(Box::new(Rounds::new(workload, cpu, cpus))),
            Kind::OpenClose | Kind::UpdateFlood | Kind::ReadMostly => Self::looping(workload),
            Kind::ExitFiles if is_one_of_every("exits_on_every_cpus") => Self::Exits {
                files: workload.get("files") as u32,
                file: workload.get("file_ns"),
                pause: workload.get("pause_us") * MICROSECOND,
                bytes: workload.get("bytes") as u32,
                rcu_qs: workload.get("rcu_qs") != 0,
                left: None,
            },
            Kind::LongReaders if is_one_of_every("readers_on_every_cpus") => Self::Readers {
                section: workload.get("read_us") * MICROSECOND,
                pause: workload.get("pause_us") * MICROSECOND,
                reads: false,
            },
            Kind::ExitFiles | Kind::LongReaders => Self::server(workload),
            Kind::Waiter if (cpu as u64) < workload.get("waiters") => Self::waiter(workload),
            Kind::Waiter => Self::looping(workload),
            Kind::WaiterIdle if cpu == 0 => Self::waiter(workload),
            Kind::WaiterIdle => Self::idle(workload),
            Kind::Mixed => match cpu % 8 {
                0 => Self::waiter(workload),
                1 => Self::looping(workload),
                2 | 3 => Self::idle(workload),
                _ => Self::server(workload),
            },
        }
    }

    fn idle(workload: &Workload) -> Self {
        let every = workload.get("wake_every_us") * MICROSECOND;
        Self::Idle { every, busy: Busy::of(workload) }
    }

    fn server(workload: &Workload) -> Self {
        Self::Server {
            busy: Busy::of(workload),
            mean: workload.get("busy_us") * MICROSECOND,
            idle: workload.get("idle_us") * MICROSECOND,
            calls_ppm: workload.get("calls_per_1000_bursts") as u32 * 1_000,
            bytes: workload.get("bytes") as u32,
        }
    }

    fn looping(workload: &Workload) -> Self {
        let cond_resched = workload.get("cond_resched_ns");
        Self::Loop {
            busy: Busy { cond_resched, ..Busy::of(workload) },
            operation: workload.get("operation_ns"),
            chunk: workload.get("chunk_operations") as u32,
            calls_every: workload.get("operations_per_call") as u32,
            since_call: 0,
            bytes: workload.get("bytes") as u32,
        }
    }

    fn waiter(workload: &Workload) -> Self {
        Self::Waiter {
            busy: Busy::of(workload),
            work: workload.get("work_us") * MICROSECOND,
            pause: workload.get("update_every_us") * MICROSECOND,
            urgency: match workload.get("expedited") {
                0 => Urgency::Normal,
                _ => Urgency::Expedited,
            },
            pauses: true,
            bytes: workload.get("bytes") as u32,
        }
    }

    /// What the task does next.
    pub(crate) fn next(&mut self, random: &mut Random) -> Stretch {
        match self {
            Self::Idle { every, busy } => {
                // Every other stretch is work: a draw of its own tells it apart.
                if random.chance_ppm(500_000) {
                    let length = 1 + random.exponential(20 * MICROSECOND);
                    Stretch { then: Then::Switch, ..Stretch::new(busy.activity(), length) }
                } else {
                    Stretch::new(Activity::Idle, 1 + random.exponential(*every))
                }
            }
            Self::Server { busy, mean, idle, calls_ppm, bytes } => {
                if *idle != 0 && random.chance_ppm(500_000) {
                    return Stretch::new(Activity::Idle, 1 + random.exponential(*idle));
                }
                Stretch {
                    operations: 1,
                    calls: u32::from(random.chance_ppm(*calls_ppm)),
                    bytes: *bytes,
                    then: Then::Switch,
                    ..Stretch::new(busy.activity(), 1 + random.exponential(*mean))
                }
            }
            Self::Rounds(rounds) => rounds.next(random),
            Self::Loop { busy, operation, chunk, calls_every, since_call, bytes } => {
                let done = *since_call + *chunk;
                let calls = done.checked_div(*calls_every).unwrap_or(0);
                *since_call = done.checked_rem(*calls_every).unwrap_or(0);
                let mean = *operation * Time::from(*chunk);
                // Half fixed, half drawn, so that CPUs do not keep step.
                let length = 1 + mean / 2 + random.below(mean);
                Stretch {
                    operations: *chunk,
                    calls,
                    bytes: *bytes,
                    ..Stretch::new(busy.activity(), length)
                }
            }
            Self::Exits { .. } => self.exit(random),
            Self::Readers { section, pause, reads } => {
                *reads = !*reads;
                if !*reads {
                    return Stretch::new(Activity::User, 1 + random.exponential(*pause));
                }
                let activity = Activity::Kernel {
                    cond_resched: 0,
                    section: true,
                    alone: false,
                    rcu_qs: false,
                };
                let length = 1 + random.exponential(*section);
                Stretch { operations: 1, ..Stretch::new(activity, length) }
            }
            Self::Waiter { busy, work, pause, urgency, pauses, bytes } => {
                *pauses = !*pauses && *pause != 0;
                if *pauses {
                    return Stretch::new(Activity::Idle, 1 + random.exponential(*pause));
                }
                Stretch {
                    operations: 1,
                    bytes: *bytes,
                    then: Then::Wait(*urgency),
                    ..Stretch::new(busy.activity(), 1 + random.exponential(*work))
                }
            }
        }
    }

    /// Some time in user mode, then `exit()`, whose loop over the files comes in pieces.
    fn exit(&mut self, random: &mut Random) -> Stretch {
        /// Files that are closed between two looks of the simulator.
        const CHUNK: u32 = 32;
        let Self::Exits { files, file, pause, bytes, rcu_qs, left } = self else {
            return Stretch::new(Activity::Idle, MICROSECOND);
        };
        let Some(remaining) = *left else {
            *left = Some(*files);
            return Stretch::new(Activity::User, 1 + random.exponential(*pause));
        };
        let closed = remaining.min(CHUNK);
        let is_last = remaining == closed;
        *left = if is_last { None } else { Some(remaining - closed) };
        // One after each file.
        let rcu_qs = *rcu_qs;
        let activity =
            Activity::Kernel { cond_resched: *file, section: false, alone: true, rcu_qs };
        Stretch {
            operations: u32::from(is_last),
            calls: closed,
            bytes: *bytes,
            then: if is_last { Then::Switch } else { Then::GoOn },
            ..Stretch::new(activity, 1 + *file * Time::from(closed))
        }
    }
}

impl Rounds {
    fn new(workload: &Workload, cpu: usize, cpus: usize) -> Self {
        let us = |name| workload.get(name) * MICROSECOND;
        Self {
            busy: Busy::of(workload),
            work: us("round_us"),
            share_ppm: workload.get("share_percent") as u32 * 10_000,
            call_every: us("call_every_us"),
            switch_every: us("switch_every_us"),
            operation: workload.get("operation_ns"),
            cpu,
            cpus,
            phases: workload.get("barriers"),
            phase: 0,
            left: 0,
            bytes: workload.get("bytes") as u32,
        }
    }

    /// What this task has to do until the next barrier: the longest goes round, the others have a
    /// share that is drawn about its mean.
    fn begin(&mut self, random: &mut Random) {
        let is_longest = self.phase % self.cpus as u64 == self.cpu as u64;
        self.phase += 1;
        let spread = 2 * (1_000_000 - self.share_ppm.min(1_000_000));
        let lowest = 1_000_000_u32.saturating_sub(spread);
        let share = u64::from(lowest) + random.below(u64::from(1_000_000 - lowest) + 1);
        let share = if is_longest { 1_000_000 } else { share };
        self.left = (self.work / self.phases * share / 1_000_000).max(1);
    }

    fn next(&mut self, random: &mut Random) -> Stretch {
        if self.left == 0 {
            self.begin(random);
        }
        let call = 1 + random.exponential(self.call_every);
        let switch = 1 + random.exponential(self.switch_every);
        let length = call.min(switch).min(self.left);
        self.left -= length;
        let is_call = length == call;
        let then = match () {
            () if self.left == 0 => {
                Then::Barrier { ends_round: self.phase.is_multiple_of(self.phases) }
            }
            () if length == switch => Then::Switch,
            () => Then::GoOn,
        };
        Stretch {
            operations: (length / self.operation.max(1)) as u32,
            calls: u32::from(is_call),
            bytes: self.bytes,
            then,
            ..Stretch::new(self.busy.activity(), length)
        }
    }
}
