//! rcu_poll: start at once, force every CPU through its scheduler, look until all have been.
//!
//! Both forms of the paper (Arcangeli, Cao, McKenney, Sarma: Using Read-Copy-Update Techniques for
//! System V IPC in the Linux 2.5 Kernel, FREENIX 2003): one list for all CPUs, and a list and
//! grace periods of its own for each. The shortest latency there is, paid with interrupts, forced
//! switches and looks at everybody's counters.
//!
//! Unlike the original's, the grace period also waits for the CPU that polls: it may have been
//! interrupted within a section. While it waits for no other CPU it does not spin, which would keep
//! the section from ending; its own report makes it scan again.

use grace::steps::{Intact, Steps};

use super::counters::{Counters, Scan, Start};
use super::mask::Mask;
use super::store::Store;
use super::{Access, Callback, Engine, Host, Line};

/// The steps that [`Global`] and [`PerCpu`] must not leave out.
pub const STEPS: &[&str] = &[
    "snapshot",
    "wait-for-all-cpus",
    "wait-for-itself",
    "separate-lists",
    "start-next",
    "look-again",
    "look-after-own-switch",
    "return-from-eqs",
];

/// The steps that they may leave out at the cost of speed: forcing, and skipping CPUs in an
/// extended quiescent state.
pub const STEPS_FOR_SPEED: &[&str] = &["force", "pass-over-eqs"];

/// The lock, the lists, the mask and the snapshots of [`Global`].
const SHARED: Line = Line::Global(0);

/// All CPUs use one line for the lock and the lists of [`Global`]. Without this step the costs are
/// as if each had its own, and nothing else changes.
pub const ONE_LIST: &str = "one-list";

/// One list for all CPUs, under one lock; the CPU that queues first polls for all.
///
/// A scan is linear in the CPUs that it waits for, the start of a grace period in all CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Global<A: Store, S: Steps = Intact> {
    steps: S,
    scan: Scan<A>,
    /// Callbacks by the CPU that queued them: those that wait for the next grace period, and for
    /// this one.
    next: A::Of<u64>,
    current: A::Of<u64>,
    /// CPUs with any in `next`, and in `current`.
    next_owners: Mask<A>,
    current_owners: Mask<A>,
    /// The CPU whose softirq polls; none if nothing is queued.
    poller: Option<usize>,
    in_progress: bool,
}

impl<A: Store, S: Steps> Global<A, S> {
    /// The engine from a given start, possibly without one of its [`STEPS`].
    pub fn with(store: A, start: Start, steps: S) -> Self {
        Self {
            steps,
            scan: Scan::new(store, start),
            next: store.of(store.cpus(), 0),
            current: store.of(store.cpus(), 0),
            next_owners: Mask::new(store),
            current_owners: Mask::new(store),
            poller: None,
            in_progress: false,
        }
    }

    /// The list, as `cpu` uses it.
    fn touch_list(&self, cpu: usize, host: &mut dyn Host) {
        host.touch(if self.steps.omits(ONE_LIST) { Line::Cpu(cpu) } else { SHARED }, Access::Lock);
    }

    /// What waits for the next grace period now waits for this one, which begins.
    fn start(&mut self, cpu: usize, host: &mut dyn Host) {
        core::mem::swap(&mut self.next, &mut self.current);
        core::mem::swap(&mut self.next_owners, &mut self.current_owners);
        self.in_progress = true;
        host.began(0);
        self.scan.begin(cpu, &self.steps, host, |other, host| {
            if !self.steps.omits("force") {
                host.resched(other);
            }
        });
        self.wait(cpu, host);
    }

    /// Scans again as soon as may be, unless only `cpu` itself is missing.
    fn wait(&mut self, cpu: usize, host: &mut dyn Host) {
        if !self.scan.waits_for_only(cpu) && !self.steps.omits("look-again") {
            host.raise(cpu);
        }
    }

    /// Runs the whole list of the grace period that has ended, here, whichever CPU queued it.
    fn run(&mut self, host: &mut dyn Host) {
        self.in_progress = false;
        host.ended(0);
        let mut from = 0;
        while let Some(owner) = self.current_owners.first_from(from) {
            self.current_owners.remove(owner);
            let count = core::mem::take(&mut self.current[owner]);
            host.invoke(owner, count);
            from = owner + 1;
        }
    }

    /// `cpu` has said that it is quiescent: if it polls, and waited for itself, it continues.
    fn reported(&self, cpu: usize, host: &mut dyn Host) {
        let polls = self.in_progress && self.poller == Some(cpu);
        if polls && self.scan.waits_for_only(cpu) && !self.steps.omits("look-after-own-switch") {
            host.raise(cpu);
        }
    }
}

impl<A: Store, S: Steps> Engine for Global<A, S> {
    fn queue(&mut self, cpu: usize, _: Callback, host: &mut dyn Host) {
        if cpu >= self.next.len() {
            return;
        }
        self.touch_list(cpu, host);
        if self.in_progress && self.steps.omits("separate-lists") {
            self.current[cpu] += 1;
            self.current_owners.insert(cpu);
        } else {
            self.next[cpu] += 1;
            self.next_owners.insert(cpu);
        }
        if self.poller.is_none() {
            self.poller = Some(cpu);
            host.raise(cpu);
        }
    }

    fn context_switch(&mut self, cpu: usize, host: &mut dyn Host) {
        self.scan.counters.count(cpu, host);
        self.reported(cpu, host);
    }

    /// Linear in the CPUs.
    fn softirq(&mut self, cpu: usize, host: &mut dyn Host) {
        if self.poller != Some(cpu) {
            return;
        }
        self.touch_list(cpu, host);
        let was_in_progress = self.in_progress;
        if was_in_progress {
            self.scan.look(&self.steps, host);
            if !self.scan.mask.is_empty() {
                return self.wait(cpu, host);
            }
            self.run(host);
        }
        if self.next_owners.is_empty() || was_in_progress && self.steps.omits("start-next") {
            self.poller = None;
        } else {
            self.start(cpu, host);
        }
    }

    fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        self.scan.counters.enter_eqs(cpu, host);
        self.reported(cpu, host);
    }

    fn exit_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        self.scan.counters.exit_eqs(cpu, &self.steps, host);
    }

    fn is_holdout(&self, _: usize, cpu: usize) -> bool {
        self.scan.is_holdout(cpu)
    }

    fn waiting(&self, cpu: usize) -> u64 {
        self.next.get(cpu).map_or(0, |next| next + self.current[cpu])
    }
}

/// What a CPU of [`PerCpu`] has to itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Own<A: Store> {
    next: u64,
    current: u64,
    in_progress: bool,
    /// The first CPU that has not been seen to pass.
    position: usize,
    snapshots: A::Of<u32>,
}

/// Separate lists and grace periods for each CPU.
///
/// No lock and no list is shared, and callbacks run where they were queued; but each of up to N
/// concurrent grace periods forces all N CPUs. Memory is quadratic in the number of CPUs: 64 MiB
/// for 4,096. A start is linear in the CPUs, a scan in those that have passed since the last one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PerCpu<A: Store, S: Steps = Intact> {
    steps: S,
    counters: Counters<A>,
    own: A::Of<Own<A>>,
}

impl<A: Store, S: Steps> PerCpu<A, S> {
    /// The engine from a given start, possibly without one of its [`STEPS`].
    pub fn with(store: A, start: Start, steps: S) -> Self {
        let snapshots = store.of(store.cpus(), 0);
        let own = Own { next: 0, current: 0, in_progress: false, position: 0, snapshots };
        Self { steps, counters: Counters::new(store, start), own: store.of(store.cpus(), own) }
    }

    fn start(&mut self, cpu: usize, host: &mut dyn Host) {
        let own = &mut self.own[cpu];
        own.current = core::mem::take(&mut own.next);
        own.in_progress = true;
        own.position = 0;
        host.began(cpu);
        for other in 0..self.counters.cpus() {
            let counter = self.counters.read(other, host);
            if !self.steps.omits("snapshot") {
                own.snapshots[other] = counter;
            }
            let passes = self.counters.is_in_eqs(other) && !self.steps.omits("pass-over-eqs");
            if !passes && !self.steps.omits("force") {
                host.resched(other);
            }
        }
        if !self.steps.omits("look-again") {
            host.raise(cpu);
        }
    }

    /// Continues with the first CPU that has not passed. Returns whether there is none.
    fn look(&mut self, cpu: usize, host: &mut dyn Host) -> bool {
        let own = &mut self.own[cpu];
        while let Some(&snapshot) = own.snapshots.get(own.position) {
            self.counters.read(own.position, host);
            let is_itself = own.position == cpu;
            let is_left_out = is_itself && self.steps.omits("wait-for-itself");
            if !self.counters.has_passed(own.position, snapshot) && !is_left_out {
                return self.steps.omits("wait-for-all-cpus");
            }
            own.position += 1;
        }
        true
    }

    /// `cpu` has said that it is quiescent: if its grace period waited for that, it continues.
    fn reported(&self, cpu: usize, host: &mut dyn Host) {
        let Some(own) = self.own.get(cpu) else { return };
        let waited = own.in_progress && own.position == cpu;
        if waited && !self.steps.omits("look-after-own-switch") {
            host.raise(cpu);
        }
    }
}

impl<A: Store, S: Steps> Engine for PerCpu<A, S> {
    fn queue(&mut self, cpu: usize, _: Callback, host: &mut dyn Host) {
        let Some(own) = self.own.get_mut(cpu) else { return };
        host.touch(Line::Cpu(cpu), Access::Write);
        if own.in_progress && self.steps.omits("separate-lists") {
            own.current += 1;
        } else {
            own.next += 1;
        }
        if !own.in_progress {
            host.raise(cpu);
        }
    }

    fn context_switch(&mut self, cpu: usize, host: &mut dyn Host) {
        self.counters.count(cpu, host);
        self.reported(cpu, host);
    }

    /// Linear in the CPUs.
    fn softirq(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu >= self.own.len() {
            return;
        }
        let was_in_progress = self.own[cpu].in_progress;
        if was_in_progress {
            if !self.look(cpu, host) {
                if self.own[cpu].position != cpu && !self.steps.omits("look-again") {
                    host.raise(cpu);
                }
                return;
            }
            self.own[cpu].in_progress = false;
            host.ended(cpu);
            let count = core::mem::take(&mut self.own[cpu].current);
            if count != 0 {
                host.invoke(cpu, count);
            }
        }
        let is_to_start = !was_in_progress || !self.steps.omits("start-next");
        if self.own[cpu].next != 0 && is_to_start {
            self.start(cpu, host);
        }
    }

    fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        self.counters.enter_eqs(cpu, host);
        self.reported(cpu, host);
    }

    fn exit_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        self.counters.exit_eqs(cpu, &self.steps, host);
    }

    fn is_holdout(&self, of: usize, cpu: usize) -> bool {
        let Some(own) = self.own.get(of) else { return false };
        let Some(&snapshot) = own.snapshots.get(cpu) else { return false };
        own.in_progress && cpu >= own.position && !self.counters.has_passed(cpu, snapshot)
    }

    fn waiting(&self, cpu: usize) -> u64 {
        self.own.get(cpu).map_or(0, |own| own.next + own.current)
    }
}
