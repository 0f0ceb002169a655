//! Where the cache lines of an engine are, and hence what each access to one costs.
//!
//! For each line the model knows the CPU that wrote it last, and the CPUs that have read it since.
//! These find it in their own cache, which costs little; all others have it transferred. Above 64
//! CPUs, the readers of a CPU's own lines are kept modulo 64, so a few transfers there count as
//! hits; lines that all CPUs share are kept exactly. Caches are unlimited.

use kernel::engine::mask::Mask;
use kernel::engine::{Access, Line};

use crate::Heap;
use crate::calendar::Calendar;
use crate::cost::{Costs, PICOS, Picos};
use crate::events::Time;

/// Lines that all share, by the width of their number.
const GLOBALS: usize = 256;
/// So many readers of a line are told apart wherever it is.
const FEW: usize = 64;
const NOBODY: u32 = u32::MAX;

/// What accesses there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Traffic {
    /// Accesses that found their line in the own cache.
    pub hits: u64,
    /// Lines sent from one CPU to another (or from memory, the first time).
    pub transfers: u64,
    /// Locks taken.
    pub lock_visits: u64,
    /// Locks taken that another CPU held at that moment.
    pub lock_contended: u64,
    /// Time spent waiting for locks, in nanoseconds, over all CPUs.
    pub lock_wait_ns: u64,
}

/// All lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    cpus: usize,
    lines: Vec<State>,
    /// The clock: nothing happens before it any more.
    pub(crate) clock: Time,
    /// What accesses there were since the counts began.
    pub(crate) traffic: Traffic,
}

#[derive(Clone, Debug)]
struct State {
    /// The CPU that wrote it last.
    owner: u32,
    readers: Mask<Heap>,
    /// When the lock in it is held.
    held: Calendar,
}

impl State {
    /// A line whose readers are kept by their numbers modulo `readers`.
    fn new(readers: usize) -> Self {
        Self { owner: NOBODY, readers: Mask::new(Heap(readers)), held: Calendar::default() }
    }

    /// Whether `cpu` can store without asking anybody. It can from now on.
    fn write(&mut self, cpu: usize) -> bool {
        let is_unread = self.readers.is_empty();
        let exclusive = self.owner == cpu as u32 && is_unread;
        self.owner = cpu as u32;
        if !is_unread {
            self.readers.clear();
        }
        exclusive
    }

    /// Whether `cpu` has a copy. It has from now on.
    fn read(&mut self, cpu: usize) -> bool {
        self.owner == cpu as u32 || !self.readers.insert(cpu % self.readers.cpus())
    }
}

impl Directory {
    pub(crate) fn new(cpus: usize) -> Self {
        let mut lines = vec![State::new(FEW); 2 * cpus];
        lines.resize(2 * cpus + GLOBALS, State::new(cpus.max(FEW)));
        Self { cpus, lines, clock: 0, traffic: Traffic::default() }
    }

    /// The line's place; nodes are made as they are named.
    fn index(&mut self, line: Line) -> usize {
        let index = match line {
            Line::Cpu(cpu) => cpu.min(self.cpus - 1),
            Line::Mailbox(cpu) => self.cpus + cpu.min(self.cpus - 1),
            Line::Global(number) => 2 * self.cpus + usize::from(number),
            Line::Node(number) => 2 * self.cpus + GLOBALS + number,
        };
        if index >= self.lines.len() {
            self.lines.resize(index + 1, State::new(self.cpus.max(FEW)));
        }
        index
    }

    /// `cpu` accesses a line at `now`: what that costs it, waiting included.
    pub(crate) fn touch(
        &mut self,
        cpu: usize,
        now: Time,
        line: Line,
        access: Access,
        costs: &Costs,
    ) -> Picos {
        let index = self.index(line);
        let state = &mut self.lines[index];
        let hit = match access {
            Access::Read => state.read(cpu),
            Access::Write | Access::Atomic | Access::Lock => state.write(cpu),
        };
        if hit {
            self.traffic.hits += 1;
        } else {
            self.traffic.transfers += 1;
        }
        match (access, hit) {
            (Access::Read | Access::Write, true) => costs.hit,
            (Access::Read, false) => costs.read_transfer,
            (Access::Write, false) => costs.write_transfer,
            (Access::Atomic, true) => costs.atomic,
            (Access::Atomic, false) => costs.atomic_transfer,
            (Access::Lock, true) => costs.lock + self.wait(index, now, costs.lock),
            (Access::Lock, false) => {
                costs.lock_transfer + self.wait(index, now, costs.lock_transfer)
            }
        }
    }

    /// How long a CPU that wants the lock at `now`, for `hold`, waits for it.
    fn wait(&mut self, index: usize, now: Time, hold: Picos) -> Picos {
        self.traffic.lock_visits += 1;
        let wait_ns = self.lines[index].held.take(now, hold.div_ceil(PICOS), self.clock);
        self.traffic.lock_contended += u64::from(wait_ns != 0);
        self.traffic.lock_wait_ns += wait_ns;
        wait_ns * PICOS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs::modern();

    fn touch(directory: &mut Directory, cpu: usize, line: Line, access: Access) -> Picos {
        directory.touch(cpu, 0, line, access, &COSTS)
    }

    #[test]
    fn a_line_is_sent_to_whoever_has_it_not() {
        for cpus in [2, 4_096] {
            let mut directory = Directory::new(cpus);
            let line = Line::Global(0);
            assert_eq!(touch(&mut directory, 0, line, Access::Write), COSTS.write_transfer);
            assert_eq!(touch(&mut directory, 0, line, Access::Write), COSTS.hit);
            assert_eq!(touch(&mut directory, 1, line, Access::Read), COSTS.read_transfer);
            assert_eq!(touch(&mut directory, 1, line, Access::Read), COSTS.hit);
            assert_eq!(touch(&mut directory, 0, line, Access::Read), COSTS.hit);
            // Somebody has read it: the owner must ask for it again.
            assert_eq!(touch(&mut directory, 0, line, Access::Atomic), COSTS.atomic_transfer);
            assert_eq!(touch(&mut directory, 0, line, Access::Atomic), COSTS.atomic);
            assert_eq!(touch(&mut directory, 1, line, Access::Read), COSTS.read_transfer);
            assert_eq!(directory.traffic.transfers, 4);
        }
    }

    #[test]
    fn lines_are_not_mistaken_for_each_other() {
        let mut directory = Directory::new(2);
        let lines = [Line::Cpu(1), Line::Mailbox(0), Line::Global(0), Line::Global(255)];
        for line in lines.into_iter().chain([Line::Node(0), Line::Node(70)]) {
            assert_eq!(touch(&mut directory, 0, line, Access::Read), COSTS.read_transfer);
        }
    }

    #[test]
    fn a_held_lock_is_waited_for_in_turn() {
        let mut directory = Directory::new(4);
        let lock = |directory: &mut Directory, cpu, now| {
            directory.touch(cpu, now, Line::Global(0), Access::Lock, &COSTS) - COSTS.lock_transfer
        };
        let hold_ns = COSTS.lock_transfer.div_ceil(PICOS);
        assert_eq!(lock(&mut directory, 0, 1_000), 0);
        assert_eq!(lock(&mut directory, 1, 1_010), (hold_ns - 10) * PICOS);
        assert_eq!(lock(&mut directory, 2, 1_010), (2 * hold_ns - 10) * PICOS);
        assert_eq!(lock(&mut directory, 3, 1_000 - hold_ns), 0, "it was not held yet");
        assert_eq!(lock(&mut directory, 0, 1_000 + 3 * hold_ns), 0, "nor any more");
        let traffic = directory.traffic;
        assert_eq!((traffic.lock_visits, traffic.lock_contended), (5, 2));
        assert_eq!(traffic.lock_wait_ns, 3 * hold_ns - 20);
    }

    /// A CPU that was simulated before, and is ahead of the clock, holds the lock from then on:
    /// others that come earlier wait where they meet it.
    #[test]
    fn a_lock_held_later_than_now_is_waited_for() {
        let mut directory = Directory::new(2);
        let mut lock = |cpu, now| {
            directory.touch(cpu, now, Line::Global(0), Access::Lock, &COSTS) - COSTS.lock_transfer
        };
        let hold_ns = COSTS.lock_transfer.div_ceil(PICOS);
        assert_eq!(lock(0, 1_000), 0);
        assert_eq!(lock(1, 1_000 - hold_ns / 2), hold_ns * PICOS);
    }
}
