//! Workloads of user space, by name.

use super::options::{Group, Role};
use crate::events::Time;
use crate::setup::{MICROSECOND, MILLISECOND, SECOND};

/// Which threads wait for grace periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiters {
    /// None: callbacks only, or nothing.
    None,
    /// Some, without hurry.
    Normal,
    /// Some, and part of them are in a hurry.
    Mixed,
}

/// Threads and a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// CPUs of its machine.
    pub cpus: usize,
    /// For how long it runs, in nanoseconds.
    pub duration: Time,
    /// Which threads wait.
    pub waiters: Waiters,
    /// The threads.
    pub threads: Vec<Group>,
}

const READER: Role = Role::Reads { section_ns: 500, gap_ns: 1_500, run_ns: 0, sleep_ns: 0 };
/// Requests of a server: a millisecond or so of work, then some time of nothing.
const SERVER: Role = Role::Reads {
    section_ns: 2 * MICROSECOND,
    gap_ns: 10 * MICROSECOND,
    run_ns: 500 * MICROSECOND,
    sleep_ns: MILLISECOND,
};
const WAITER: Role = waiter(20 * MICROSECOND);

const fn waiter(work_ns: Time) -> Role {
    Role::Waits { work_ns, expedited_ppm: 0, sleeps: false, reads: true }
}

const fn seldom(work_ns: Time) -> Role {
    Role::Waits { work_ns, expedited_ppm: 0, sleeps: true, reads: true }
}

const fn retirer(work_ns: Time) -> Role {
    Role::Retires { work_ns, bytes: 256, burst: 0, sleep_ns: 0 }
}

const fn some(count: u32, role: Role) -> Group {
    Group { count, role }
}

const STALLED_READER: &str =
    "a reader that sleeps 50 ms inside, beside one that retires and one that waits";

fn stalled_reader() -> Vec<Group> {
    const TIME: Time = 50 * MILLISECOND;
    vec![
        some(1, Role::Blocks { section_ns: TIME, apart_ns: TIME }),
        some(1, retirer(1_000)),
        some(1, seldom(MILLISECOND)),
    ]
}

/// All of them.
pub fn all() -> Vec<Workload> {
    use Waiters::{Mixed, Normal};
    type Row = (&'static str, &'static str, usize, Time, Waiters, Vec<Group>);
    const MS: Time = MILLISECOND;
    let rows: Vec<Row> = vec![
        ("idle", "50 threads that sleep", 4, SECOND, Waiters::None, vec![some(50, Role::Idle)]),
        (
            "idle-updates",
            "50 threads that sleep, one that retires ten objects a second",
            4,
            4 * SECOND,
            Waiters::None,
            vec![
                some(50, Role::Idle),
                some(1, Role::Retires { work_ns: 1_000, bytes: 256, burst: 1, sleep_ns: 100 * MS }),
            ],
        ),
        ("lone-updater", "one thread, which waits", 4, 100 * MS, Normal, vec![some(1, WAITER)]),
        (
            "busy-readers",
            "six busy readers and an updater that waits",
            8,
            100 * MS,
            Normal,
            vec![some(6, READER), some(1, WAITER)],
        ),
        (
            "busy-readers-retire",
            "six busy readers and an updater that retires",
            8,
            300 * MS,
            Waiters::None,
            vec![some(6, READER), some(1, retirer(1_000))],
        ),
        (
            "many-updaters",
            "16 servers' threads, of which half wait now and then",
            8,
            200 * MS,
            Normal,
            vec![some(8, SERVER), some(8, seldom(2 * MS))],
        ),
        (
            "idle-200",
            "200 threads that sleep and an updater that waits",
            8,
            100 * MS,
            Normal,
            vec![some(200, Role::Idle), some(1, WAITER)],
        ),
        (
            "idle-10000",
            "10,000 threads that sleep and an updater that waits",
            8,
            100 * MS,
            Normal,
            vec![some(10_000, Role::Idle), some(1, WAITER)],
        ),
        (
            "oversubscribed",
            "four busy readers to each CPU, and two updaters that wait",
            4,
            160 * SECOND,
            Normal,
            vec![some(16, READER), some(2, WAITER)],
        ),
        (
            "flood",
            "four threads retire as fast as they can, beside two readers",
            6,
            200 * MS,
            Waiters::None,
            vec![some(2, READER), some(4, retirer(100))],
        ),
        (
            "flood-calls",
            "two threads queue closures faster than the worker runs them",
            4,
            200 * MS,
            Waiters::None,
            vec![
                some(1, READER),
                some(2, Role::Calls { work_ns: 100, bytes: 64, burst: 0, sleep_ns: 0 }),
            ],
        ),
        ("stalled-reader", STALLED_READER, 4, 2 * SECOND, Normal, stalled_reader()),
        (
            "churn",
            "threads that live for a millisecond, and an updater that waits",
            8,
            200 * MS,
            Normal,
            vec![
                some(
                    16,
                    Role::Comes { section_ns: 500, gap_ns: 1_500, life_ns: MS, apart_ns: 2 * MS },
                ),
                some(1, waiter(50 * MICROSECOND)),
            ],
        ),
        (
            "qsbr-loops",
            "six event loops with QSBR readers and an updater that waits",
            8,
            800 * MS,
            Normal,
            vec![
                some(
                    6,
                    Role::Qsbr {
                        turn_ns: 20 * MICROSECOND,
                        run_ns: 300 * MICROSECOND,
                        sleep_ns: MS,
                    },
                ),
                some(
                    1,
                    Role::Waits {
                        work_ns: 50 * MICROSECOND,
                        expedited_ppm: 0,
                        sleeps: false,
                        reads: false,
                    },
                ),
            ],
        ),
        (
            "bursts",
            "four servers' threads retire 5,000 objects at once, twenty times a second",
            8,
            SECOND,
            Waiters::None,
            vec![
                some(4, SERVER),
                some(
                    4,
                    Role::Retires { work_ns: 500, bytes: 256, burst: 5_000, sleep_ns: 50 * MS },
                ),
            ],
        ),
        (
            "mixed-urgency",
            "servers' threads, updaters that wait, a tenth of them in a hurry, and retirers",
            8,
            500 * MS,
            Mixed,
            vec![
                some(8, SERVER),
                some(
                    4,
                    Role::Waits { work_ns: MS, expedited_ppm: 100_000, sleeps: true, reads: true },
                ),
                some(2, retirer(2_000)),
            ],
        ),
        (
            "server-64",
            "192 servers' threads on 64 CPUs, 16 retire, 4 wait",
            64,
            800 * MS,
            Normal,
            vec![some(192, SERVER), some(16, retirer(5_000)), some(4, seldom(MS))],
        ),
    ];
    rows.into_iter()
        .map(|(name, what, cpus, duration, waiters, threads)| Workload {
            name,
            what,
            cpus,
            duration,
            waiters,
            threads,
        })
        .collect()
}

/// Six of them as they are on a machine of so many CPUs, on which they can be run for real: threads
/// that never sleep are as many as the CPUs, but where there are to be more.
pub fn of_machine(cpus: usize) -> Vec<Workload> {
    use Waiters::Normal;
    const MS: Time = MILLISECOND;
    let cpus = cpus.clamp(1, super::options::CPUS_MAX);
    let others = u32::try_from(cpus - 1).unwrap_or(u32::MAX).max(1);
    type Row = (&'static str, &'static str, Time, Waiters, Vec<Group>);
    let rows: [Row; 6] = [
        ("lone-updater", "one thread, which waits", 200 * MS, Normal, vec![some(1, WAITER)]),
        (
            "busy-readers",
            "a busy reader on each other CPU and an updater that waits",
            200 * MS,
            Normal,
            vec![some(others, READER), some(1, WAITER)],
        ),
        (
            "busy-readers-retire",
            "a busy reader on each other CPU and an updater that retires",
            300 * MS,
            Waiters::None,
            vec![some(others, READER), some(1, retirer(1_000))],
        ),
        (
            "idle-200",
            "200 threads that sleep and an updater that waits",
            200 * MS,
            Normal,
            vec![some(200, Role::Idle), some(1, WAITER)],
        ),
        (
            "oversubscribed",
            "four busy readers to each CPU, and two updaters that wait",
            SECOND,
            Normal,
            vec![some(4 * (others + 1), READER), some(2, WAITER)],
        ),
        ("stalled-reader", STALLED_READER, 2 * SECOND, Normal, stalled_reader()),
    ];
    let workload = |(name, what, duration, waiters, threads)| Workload {
        name,
        what,
        cpus,
        duration,
        waiters,
        threads,
    };
    rows.into_iter().map(workload).collect()
}

/// The one of this name.
pub fn named(name: &str) -> Option<Workload> {
    all().into_iter().find(|workload| workload.name == name)
}
