//! Grace periods on demand: as quick as rcu_poll when a caller waits, as cheap as rcu_ltimer when
//! none does.
//!
//! It is our own, and no kernel has it: the aims of the library's policy [`Adaptive`], for CPUs,
//! which report quiescent states and can be forced to. The algorithm is another one, with
//! parameters of its own, so what it gives says nothing about the library.
//!
//! **Detector.** Each CPU counts its quiescent states in a line that it alone writes. One CPU, the
//! *attendant*, compares the counters; the others have nothing to do for a grace period: no softirq
//! on their ticks, no lock, no mask. The attendant polls again on its tick; where none comes, the
//! engine's one timer does.
//!
//! **Policy**, from demand ([`begin`], [`scan_again`], [`callbacks_at_once`]; pure functions):
//! - No caller waits: the grace period begins a jiffy later, so that callbacks gather, and is
//!   looked at once a jiffy, or less often when over budget. No CPU is forced until holdouts are
//!   old.
//! - Somebody waits: it begins at once, holdouts are forced through their schedulers, the last one
//!   to report ends it, and it does not wait for the callers' ticks. In a hurry (expedited) the
//!   counters are looked at without pause, too.
//! - Memory is near its limit: the same, over budget or not.
//!
//! The budget is for what is done in the background: a caller that waits pays for the grace period,
//! as in the library, where the thread that waits does the work.
//!
//! **Backlog.** No count is shared by all who queue: each CPU tells how much it holds when that has
//! changed by its share of a quarter of the limit. All they have not told is a quarter at most, so
//! that three quarters are seen when the limit itself is reached, at the latest.
//!
//! [`Adaptive`]: grace::policy::Adaptive

mod demand;

pub use demand::{Begin, Demand, Parameters, ScanAgain, begin, callbacks_at_once, scan_again};

use grace::Urgency;
use grace::limit::{self, Amount};
use grace::steps::{Intact, Steps};

use super::alarm::Alarm;
use super::callbacks::Callbacks;
use super::counters::{Scan, Start, is_after};
use super::mask::Mask;
use super::store::Store;
use super::{Access, Callback, Engine, Host, Line, Mode};

/// The steps that [`OnDemand`] must not leave out.
pub const STEPS: &[&str] = &[
    "snapshot",
    "wait-for-all-cpus",
    "wait-for-itself",
    "wait-for-next-number",
    "return-from-eqs",
    "begin-on-demand",
    "start-next",
    "look-by-timer",
    "raise-sleepers",
    "run-the-rest",
];

/// The steps that it may leave out at the cost of speed or memory.
pub const STEPS_FOR_SPEED: &[&str] = &[
    "force",
    "look-on-tick",
    "hand-over",
    "look-again",
    "report-when-forced",
    "raise-waiters",
    "pass-over-eqs",
    "expedite-near-limit",
];

/// The numbers and the mask, and the lock under which they change.
const SHARED: Line = Line::Global(0);
/// How much is held, as far as the CPUs have reported it.
const BACKLOG: Line = Line::Global(1);
/// CPUs in an extended quiescent state that have callbacks there.
const SLEEPERS: Line = Line::Global(2);

/// The engine.
///
/// A quiescent state costs a write to the CPU's own line and a look into its mailbox; a callback a
/// read of the shared line, which changes twice a grace period. The start and the looks are linear
/// in the CPUs. Callbacks run where they were queued, a few at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OnDemand<A: Store, S: Steps = Intact> {
    steps: S,
    parameters: Parameters,
    scan: Scan<A>,
    callbacks: A::Of<Callbacks>,
    /// What each CPU has last reported of its backlog; and the sum of that.
    told: A::Of<Amount>,
    backlog: Amount,
    /// The grace period that began last.
    number: u32,
    /// The one that ended last: `number`, or the one before.
    finished: u32,
    /// The last one that somebody needs, for each urgency: at that, or at a greater one. Those for
    /// which somebody waits are not before `finished`.
    wanted: [u32; 3],
    /// The CPU that needed the last one first.
    wanted_by: usize,
    /// CPUs that were asked to pass through the scheduler and report.
    forced: Mask<A>,
    /// CPUs with callbacks that a caller waits for.
    waiters: Mask<A>,
    /// CPUs with callbacks and without ticks.
    sleepers: Mask<A>,
    /// Whose softirq, which has been raised, looks after the grace period.
    attendant: Option<usize>,
    /// Which CPU scans next, and when.
    alarm: Alarm,
    /// It has gone off: callbacks have gathered, and what is put off begins.
    is_due: bool,
    /// Of the grace period in progress, no more than where it begins to matter.
    age_jiffies: u32,
}

impl<A: Store, S: Steps> OnDemand<A, S> {
    /// The engine with these parameters from a given start, possibly without one of its [`STEPS`].
    pub fn with(store: A, parameters: Parameters, start: Start, steps: S) -> Self {
        Self {
            steps,
            parameters,
            scan: Scan::new(store, start),
            callbacks: store.of(store.cpus(), Callbacks::EMPTY),
            told: store.of(store.cpus(), Amount::NONE),
            backlog: Amount::NONE,
            number: start.number,
            finished: start.number,
            wanted: [start.number; 3],
            wanted_by: 0,
            forced: Mask::new(store),
            waiters: Mask::new(store),
            sleepers: Mask::new(store),
            attendant: None,
            alarm: Alarm::Off,
            is_due: false,
            age_jiffies: 0,
        }
    }

    const fn in_progress(&self) -> bool {
        self.number != self.finished
    }

    fn is_near_limit(&self) -> bool {
        let Amount { objects, bytes } = self.backlog;
        !self.steps.omits("expedite-near-limit")
            && (limit::presses(objects, self.parameters.backlog_objects_max)
                || limit::presses(bytes, self.parameters.backlog_bytes_max))
    }

    fn demand(&self, host: &dyn Host) -> Demand {
        let is_wanted = |urgency: &Urgency| is_after(self.wanted[*urgency as usize], self.finished);
        let urgency = [Urgency::Expedited, Urgency::Normal].into_iter().find(is_wanted);
        Demand {
            urgency: urgency.unwrap_or(Urgency::Background),
            is_near_limit: self.is_near_limit(),
            is_over_budget: host.is_over_budget(),
            age_jiffies: self.age_jiffies,
        }
    }

    /// Tells what `cpu` holds, if that has changed enough. Returns whether it has.
    fn tell(&mut self, cpu: usize, host: &mut dyn Host) -> bool {
        let (callbacks, told) = (&self.callbacks[cpu], &mut self.told[cpu]);
        let holds = Amount { objects: callbacks.count(), bytes: callbacks.bytes() };
        let cpus = self.scan.counters.cpus() as u64;
        let share = |max: u64| (max / 4 / cpus).max(1);
        if holds.objects.abs_diff(told.objects) < share(self.parameters.backlog_objects_max)
            && holds.bytes.abs_diff(told.bytes) < share(self.parameters.backlog_bytes_max)
        {
            return false;
        }
        host.touch(BACKLOG, Access::Atomic);
        self.backlog = self.backlog.minus(*told).plus(holds);
        *told = holds;
        true
    }

    /// Has `cpu` look after the grace period, unless another one is about to.
    fn call_attendant(&mut self, cpu: usize, host: &mut dyn Host) {
        if self.attendant.is_none() {
            self.attendant = Some(cpu);
            host.raise(cpu);
        }
    }

    /// Has somebody scan again: `cpu` on a tick to come, or the timer.
    fn arm(&mut self, cpu: usize, jiffies: u32, host: &mut dyn Host) {
        self.alarm.set(cpu, !self.scan.counters.is_in_eqs(cpu), jiffies, host);
    }

    /// So much time has gone by.
    fn age(&mut self, jiffies: u32) {
        if self.in_progress() {
            let age_jiffies = self.age_jiffies.saturating_add(jiffies);
            self.age_jiffies = age_jiffies.min(self.parameters.force_after_jiffies);
        }
    }

    /// Looks, ends, begins and forces as is due, on `cpu`.
    fn attend(&mut self, cpu: usize, host: &mut dyn Host) {
        host.touch(SHARED, Access::Lock);
        let mut is_due = core::mem::take(&mut self.is_due);
        self.scan.look(&self.steps, host);
        loop {
            if self.in_progress() && self.scan.mask.is_empty() {
                self.finish(host);
                if self.steps.omits("start-next") {
                    return;
                }
                is_due = false;
            }
            let demand = self.demand(host);
            if self.in_progress() {
                return self.wait(cpu, &demand, host);
            }
            if !is_after(self.wanted[0], self.finished) {
                return self.alarm.turn_off(host);
            }
            match begin(&demand, &self.parameters) {
                Begin::InJiffies(jiffies) if !is_due => return self.arm(cpu, jiffies, host),
                _ => self.start(cpu, host),
            }
        }
    }

    /// Begins a grace period.
    fn start(&mut self, cpu: usize, host: &mut dyn Host) {
        self.number = self.number.wrapping_add(1);
        self.age_jiffies = 0;
        host.began(0);
        self.scan.begin(cpu, &self.steps, host, |_, _| {});
    }

    /// There are holdouts: forces them, if that is due, and sees to it that somebody polls again.
    fn wait(&mut self, cpu: usize, demand: &Demand, host: &mut dyn Host) {
        let ScanAgain { forces, pause_jiffies } = scan_again(demand, &self.parameters);
        if forces && !self.steps.omits("force") {
            for holdout in self.scan.mask.iter() {
                // A CPU that an earlier grace period forced, and that has not reported yet, still
                // will.
                if self.forced.insert(holdout) {
                    host.touch(Line::Mailbox(holdout), Access::Write);
                    host.resched(holdout);
                }
            }
        }
        // Alone in the mask, it would keep itself from passing; its report calls it again.
        let is_alone = self.scan.waits_for_only(cpu);
        if pause_jiffies == 0 && !is_alone && !self.steps.omits("look-again") {
            self.call_attendant(cpu, host);
        }
        self.arm(cpu, pause_jiffies, host);
    }

    /// The grace period is over. CPUs whose callbacks are in the background notice on their ticks.
    fn finish(&mut self, host: &mut dyn Host) {
        self.finished = self.number;
        self.age_jiffies = 0;
        for number in &mut self.wanted[1..] {
            // So that it does not look new once the numbers have come round.
            if !is_after(*number, self.finished) {
                *number = self.finished;
            }
        }
        host.ended(0);
        if !self.steps.omits("raise-waiters") {
            self.waiters.iter().for_each(|cpu| host.raise(cpu));
        }
        if !self.steps.omits("raise-sleepers") {
            self.sleepers.iter().for_each(|cpu| host.raise(cpu));
        }
    }

    /// `cpu` is quiescent now. If it was forced, it says so; the last one calls for attention.
    fn report(&mut self, cpu: usize, host: &mut dyn Host) {
        host.touch(Line::Mailbox(cpu), Access::Read);
        if !self.forced.contains(cpu) || self.steps.omits("report-when-forced") {
            self.forced.remove(cpu);
            return;
        }
        host.touch(Line::Mailbox(cpu), Access::Write);
        self.forced.remove(cpu);
        host.touch(SHARED, Access::Lock);
        if self.scan.mask.remove(cpu) && self.scan.mask.is_empty() {
            self.call_attendant(cpu, host);
        }
    }

    /// The callbacks of `cpu` get their numbers; if some have ended, its softirq runs those.
    /// Somebody waits for the last one, or not.
    fn assign(&mut self, cpu: usize, urgency: Urgency, host: &mut dyn Host) {
        self.number_callbacks(cpu, urgency, host);
        if self.callbacks[cpu].ready().0 != 0 {
            host.raise(cpu);
        }
    }

    fn number_callbacks(&mut self, cpu: usize, urgency: Urgency, host: &mut dyn Host) {
        host.touch(SHARED, Access::Read);
        // The one in progress may have begun before a callback's update.
        let later = u32::from(!self.in_progress() || !self.steps.omits("wait-for-next-number"));
        let number = self.number.wrapping_add(later);
        if self.callbacks[cpu].assign(number, self.finished) {
            self.want(cpu, number, urgency, host);
        }
    }

    /// Notes that grace period `number` is needed, at this urgency; the first CPU that needs
    /// it sees to it that it begins.
    fn want(&mut self, cpu: usize, number: u32, urgency: Urgency, host: &mut dyn Host) {
        let is_after_all = |urgency: Urgency| is_after(number, self.wanted[urgency as usize]);
        let is_first = is_after_all(Urgency::Background);
        let waits = urgency != Urgency::Background;
        let is_news = waits && is_after_all(urgency);
        if !is_first && !is_news && (!waits || self.waiters.contains(cpu)) {
            return;
        }
        host.touch(SHARED, Access::Lock);
        // Moves none back: nobody has needed one after the next.
        self.wanted[..=urgency as usize].fill(number);
        if is_first {
            self.wanted_by = cpu;
        }
        if waits {
            self.waiters.insert(cpu);
        }
        if is_news {
            self.call_attendant(cpu, host);
        } else if is_first && !self.in_progress() && !self.steps.omits("begin-on-demand") {
            match begin(&self.demand(host), &self.parameters) {
                Begin::Now => self.call_attendant(cpu, host),
                Begin::InJiffies(jiffies) => self.arm(cpu, jiffies, host),
            }
        }
    }

    /// `cpu` has callbacks, and no ticks: it is raised when a grace period has ended.
    fn sleep(&mut self, cpu: usize, host: &mut dyn Host) {
        if !self.scan.counters.is_in_eqs(cpu) || self.callbacks[cpu].count() == 0 {
            return;
        }
        host.touch(SLEEPERS, Access::Atomic);
        self.sleepers.insert(cpu);
        self.assign(cpu, Urgency::Background, host);
    }

    /// Runs what is ready, or a part of it.
    fn run(&mut self, cpu: usize, host: &mut dyn Host) {
        self.number_callbacks(cpu, Urgency::Background, host);
        let is_near_limit = self.is_near_limit();
        let callbacks = &mut self.callbacks[cpu];
        let (ready, urgency) = callbacks.ready();
        let count =
            callbacks.take(callbacks_at_once(ready, urgency, is_near_limit, &self.parameters));
        if count < ready && !self.steps.omits("run-the-rest") {
            host.raise(cpu);
        }
        // Those that somebody waits for and that are ready have all been taken.
        if callbacks.unready_urgency() == Urgency::Background && self.waiters.remove(cpu) {
            host.touch(SHARED, Access::Lock);
        }
        if callbacks.count() == 0 && self.sleepers.remove(cpu) {
            host.touch(SLEEPERS, Access::Atomic);
        }
        if count != 0 {
            host.invoke(cpu, count);
            self.tell(cpu, host);
        }
    }
}

impl<A: Store, S: Steps> Engine for OnDemand<A, S> {
    fn queue(&mut self, cpu: usize, callback: Callback, host: &mut dyn Host) {
        let Some(callbacks) = self.callbacks.get_mut(cpu) else { return };
        callbacks.queue(callback);
        host.touch(Line::Cpu(cpu), Access::Write);
        if callback.urgency != Urgency::Background || self.callbacks[cpu].is_due() {
            self.assign(cpu, callback.urgency, host);
        }
        if self.tell(cpu, host) && self.is_near_limit() {
            self.call_attendant(cpu, host);
        }
        self.sleep(cpu, host);
    }

    fn context_switch(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu < self.scan.counters.cpus() {
            self.scan.counters.count(cpu, host);
            self.report(cpu, host);
        }
    }

    fn tick(&mut self, cpu: usize, mode: Mode, host: &mut dyn Host) {
        if cpu >= self.scan.counters.cpus() {
            return;
        }
        if mode != Mode::Kernel {
            self.context_switch(cpu, host);
        }
        if !self.steps.omits("look-on-tick") {
            let (is_keeper, goes_off) = self.alarm.tick(cpu, host);
            self.age(u32::from(is_keeper));
            if goes_off {
                self.is_due = true;
                self.call_attendant(cpu, host);
            }
        }
        if self.callbacks[cpu].count() == 0 {
            return;
        }
        self.assign(cpu, Urgency::Background, host);
    }

    /// Linear in the CPUs if it looks after the grace period.
    fn softirq(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu >= self.scan.counters.cpus() {
            return;
        }
        if self.attendant == Some(cpu) {
            self.attendant = None;
            self.attend(cpu, host);
        }
        self.run(cpu, host);
    }

    /// Linear in the CPUs.
    fn timer(&mut self, cpu: usize, host: &mut dyn Host) {
        if self.steps.omits("look-by-timer") {
            return;
        }
        let Some(jiffies) = self.alarm.timer() else { return };
        self.age(jiffies);
        self.is_due = true;
        self.attend(cpu, host);
    }

    fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu < self.scan.counters.cpus() {
            self.scan.counters.enter_eqs(cpu, host);
            self.report(cpu, host);
            if self.alarm.is_kept_by(cpu) && !self.steps.omits("hand-over") {
                // A CPU that needs the grace period has callbacks, so it keeps its tick; a holdout
                // is awake.
                let mut others =
                    core::iter::once(self.wanted_by).chain(self.scan.mask.first_from(0));
                let to = others.find(|&other| !self.scan.counters.is_in_eqs(other));
                self.alarm.hand_over(to, host);
            }
            self.sleep(cpu, host);
        }
    }

    fn exit_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        self.scan.counters.exit_eqs(cpu, &self.steps, host);
        if self.sleepers.remove(cpu) {
            host.touch(SLEEPERS, Access::Atomic);
        }
    }

    fn is_holdout(&self, _: usize, cpu: usize) -> bool {
        self.scan.is_holdout(cpu)
    }

    fn waiting(&self, cpu: usize) -> u64 {
        self.callbacks.get(cpu).map_or(0, Callbacks::count)
    }
}
