//! Counters of quiescent states: what a CPU writes alone, and others read.
//!
//! One per CPU goes up by one at each quiescent state. A CPU that remembers a counter and later
//! sees another value knows that the CPU has been quiescent in between. Beside it stands whether
//! the CPU is in an extended quiescent state: then it has nothing to say, and is quiescent all the
//! time. After the 2.5 kernel's `RCU_qsctr` (Arcangeli and others, FREENIX 2003) and `dynticks`.
//!
//! Counters wrap. One that has come round exactly looks as if nothing had happened, so a grace
//! period lasts longer than it need; never shorter.

use grace::steps::Steps;

use super::mask::Mask;
use super::store::Store;
use super::{Access, Host, Line};

/// What an engine's numbers begin with, and how wide its counters are. For tests and explorers; the
/// default is right for everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Start {
    /// The number of the last grace period before the first one.
    pub number: u32,
    /// Bits of a counter of quiescent states, 1 to 32. Few of them make few states.
    pub counter_bits: u32,
}

impl Default for Start {
    fn default() -> Self {
        Self { number: 0, counter_bits: 32 }
    }
}

/// Whether number `a` comes after `b`, by signed distance, so that numbers may wrap.
pub(super) const fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// The counters of all CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Counters<A: Store> {
    counters: A::Of<u32>,
    /// Those in an extended quiescent state.
    eqs: Mask<A>,
    counter_mask: u32,
}

impl<A: Store> Counters<A> {
    pub(super) fn new(store: A, start: Start) -> Self {
        let counter_mask = u32::MAX >> (32 - start.counter_bits.clamp(1, 32));
        Self { counters: store.of(store.cpus(), 0), eqs: Mask::new(store), counter_mask }
    }

    pub(super) fn cpus(&self) -> usize {
        self.counters.len()
    }

    /// `cpu`, if there is one of this number, is quiescent now.
    pub(super) fn count(&mut self, cpu: usize, host: &mut dyn Host) {
        let Some(counter) = self.counters.get_mut(cpu) else { return };
        *counter = counter.wrapping_add(1) & self.counter_mask;
        host.touch(Line::Cpu(cpu), Access::Write);
    }

    /// `cpu` enters an extended quiescent state. Its counter moves too, for CPUs that look after it
    /// has come back.
    pub(super) fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        self.eqs.insert(cpu);
        self.count(cpu, host);
    }

    /// `cpu` leaves it; a quiescent state once more, of use to CPUs that began while it was in
    /// there.
    pub(super) fn exit_eqs(&mut self, cpu: usize, steps: &impl Steps, host: &mut dyn Host) {
        if !steps.omits("return-from-eqs") {
            self.eqs.remove(cpu);
            self.count(cpu, host);
        }
    }

    /// The counter, as another CPU reads it.
    pub(super) fn read(&self, cpu: usize, host: &mut dyn Host) -> u32 {
        host.touch(Line::Cpu(cpu), Access::Read);
        self.counters[cpu]
    }

    /// Whether `cpu` has been quiescent since its counter was `since`: it has moved, or is in an
    /// extended quiescent state.
    pub(super) fn has_passed(&self, cpu: usize, since: u32) -> bool {
        self.counters[cpu] != since || self.eqs.contains(cpu)
    }

    pub(super) fn is_in_eqs(&self, cpu: usize) -> bool {
        self.eqs.contains(cpu)
    }
}

/// The counters, and what a grace period of all CPUs remembers of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scan<A: Store> {
    pub(super) counters: Counters<A>,
    snapshots: A::Of<u32>,
    /// Whom the grace period in progress waits for.
    pub(super) mask: Mask<A>,
}

impl<A: Store> Scan<A> {
    pub(super) fn new(store: A, start: Start) -> Self {
        Self {
            counters: Counters::new(store, start),
            snapshots: store.of(store.cpus(), 0),
            mask: Mask::new(store),
        }
    }

    /// A grace period begins on `cpu`. `wait` is called for each CPU that it waits for: not for
    /// those in an extended quiescent state.
    pub(super) fn begin(
        &mut self,
        cpu: usize,
        steps: &impl Steps,
        host: &mut dyn Host,
        wait: impl Fn(usize, &mut dyn Host),
    ) {
        for other in 0..self.counters.cpus() {
            if other == cpu && steps.omits("wait-for-itself") {
                continue;
            }
            let counter = self.counters.read(other, host);
            if self.counters.is_in_eqs(other) && !steps.omits("pass-over-eqs") {
                continue;
            }
            if !steps.omits("snapshot") {
                self.snapshots[other] = counter;
            }
            self.mask.insert(other);
            wait(other, host);
        }
    }

    /// Takes the CPUs out of the mask that have been quiescent.
    pub(super) fn look(&mut self, steps: &impl Steps, host: &mut dyn Host) {
        let mut from = 0;
        while let Some(cpu) = self.mask.first_from(from) {
            self.counters.read(cpu, host);
            if self.counters.has_passed(cpu, self.snapshots[cpu]) {
                self.mask.remove(cpu);
            }
            from = cpu + 1;
        }
        if steps.omits("wait-for-all-cpus") {
            self.mask.clear();
        }
    }

    /// Whether `cpu` is waited for, and no other.
    pub(super) fn waits_for_only(&self, cpu: usize) -> bool {
        self.mask.len() == 1 && self.mask.contains(cpu)
    }

    /// Whether `cpu` is waited for, and has not been quiescent.
    pub(super) fn is_holdout(&self, cpu: usize) -> bool {
        self.mask.contains(cpu) && !self.counters.has_passed(cpu, self.snapshots[cpu])
    }
}
