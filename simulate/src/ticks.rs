//! The ticks of all CPUs: too many for the queue of events, and regular.
//!
//! CPU i of n ticks i/n of a jiffy after CPU 0, so ticks go round in the order of the CPUs. CPUs
//! whose tick is stopped are skipped.

use kernel::engine::mask::Mask;

use crate::Heap;
use crate::events::Time;

/// The ticks of all CPUs.
#[derive(Clone, Debug)]
pub(crate) struct Ticks {
    jiffy: Time,
    ticking: Mask<Heap>,
    /// When the next one comes, and to whom.
    pub(crate) next: Option<(Time, usize)>,
}

impl Ticks {
    /// Of so many CPUs, none of which ticks yet.
    pub(crate) fn new(jiffy: Time, cpus: usize) -> Self {
        Self { jiffy, ticking: Mask::new(Heap(cpus)), next: None }
    }

    /// How far into each jiffy a CPU ticks.
    fn phase(&self, cpu: usize) -> Time {
        cpu as Time * self.jiffy / self.ticking.cpus() as Time
    }

    /// The next tick has been taken.
    pub(crate) fn advance(&mut self) {
        let Some((at, cpu)) = self.next else { return };
        let round = at - self.phase(cpu);
        self.next = match self.ticking.first_from(cpu + 1) {
            Some(next) => Some((round + self.phase(next), next)),
            None => self
                .ticking
                .first_from(0)
                .map(|first| (round + self.jiffy + self.phase(first), first)),
        };
    }

    /// From now on a CPU ticks, or does not.
    pub(crate) fn set(&mut self, cpu: usize, ticks: bool, now: Time) {
        if !ticks {
            if self.ticking.remove(cpu) && self.next.is_some_and(|(_, next)| next == cpu) {
                self.advance();
            }
            return;
        }
        if !self.ticking.insert(cpu) {
            return;
        }
        let phase = self.phase(cpu);
        // The first of its times that is after now.
        let rounds = (now + self.jiffy - phase) / self.jiffy;
        let at = rounds * self.jiffy + phase;
        if self.next.is_none_or(|(next, _)| at < next) {
            self.next = Some((at, cpu));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(ticks: &mut Ticks) -> (Time, usize) {
        let next = ticks.next.unwrap();
        ticks.advance();
        next
    }

    #[test]
    fn ticks_go_round_and_pass_over_those_without() {
        let mut ticks = Ticks::new(1_000, 4);
        assert_eq!(ticks.next, None);
        for cpu in 0..4 {
            ticks.set(cpu, true, 0);
        }
        assert_eq!(taken(&mut ticks), (250, 1));
        assert_eq!(taken(&mut ticks), (500, 2));
        ticks.set(3, false, 500);
        assert_eq!(taken(&mut ticks), (1_000, 0));
        assert_eq!(taken(&mut ticks), (1_250, 1));
        ticks.set(3, true, 1_250);
        assert_eq!(taken(&mut ticks), (1_500, 2));
        assert_eq!(taken(&mut ticks), (1_750, 3));
        for cpu in 0..4 {
            ticks.set(cpu, false, 1_800);
        }
        assert_eq!(ticks.next, None);
        ticks.set(2, true, 9_500);
        assert_eq!(taken(&mut ticks), (10_500, 2), "not the tick of this very moment");
        assert_eq!(taken(&mut ticks), (11_500, 2));
    }
}
