//! The token ring, version 2: no shared counter, no atomic instruction on any fast path, bounded
//! latency.
//!
//! The paper that published rcu_sched left open whether an optimised one might beat rcu_ltimer's
//! overhead, and what would then become of its latency. This is ours:
//!
//! - **The token is the grace period's number.** CPUs are cut into segments. The CPU that starts a
//!   grace period writes its number to the head of each segment; a CPU at a quiescent state that
//!   sees it at its predecessor's writes it to its own line. A line has one writer, so nothing is
//!   atomic. When the last CPU of each segment shows the number, the grace period is over.
//!   Segments pass it on at the same time: latency goes with their length, not with N.
//! - **No CPU waits, nothing hops.** While the head shows what the CPU shows, it reads nothing
//!   else.
//! - **A CPU in an extended quiescent state is passed over**, by its successor and by any CPU that
//!   scans: a flag beside the number says so. Entering and leaving write it atomically; no fast
//!   path does. On coming back it shows the last grace period that has ended, and the number in
//!   progress only if its own predecessors allow it: so its successor never believes more than is
//!   so.
//! - **A CPU on which the token rests is nudged**, one per segment at a time.
//!
//! A CPU with callbacks looks at the segments' ends on its tick. The one that began the grace
//! period follows the token once a jiffy, on its tick, while that is in progress; where none comes,
//! the engine's timer does.

use grace::steps::{Intact, Steps};
use grace::{Number, Urgency};

use super::relay;
use crate::engine::alarm::Alarm;
use crate::engine::callbacks::Callbacks;
use crate::engine::mask::Mask;
use crate::engine::store::Store;
use crate::engine::{Access, Callback, Engine, Host, Line, Mode, Start};

/// What [`Relay`] must not leave out.
pub const STEPS: &[&str] = &[
    "wait-for-predecessor",
    "only-when-quiescent",
    "wait-for-all-segments",
    "wait-for-next-number",
    "look-upstream-on-return",
    "return-from-eqs",
    "follow-by-timer",
    "raise-sleepers",
];

/// What it may leave out, and be slower.
pub const STEPS_FOR_SPEED: &[&str] =
    &["nudge", "look-on-tick", "follow-on-tick", "hand-over", "pass-on-return"];

/// The numbers, how far the looks have come, and the lock under which they change.
const SHARED: Line = Line::Global(0);
/// CPUs in an extended quiescent state that have callbacks there.
const SLEEPERS: Line = Line::Global(1);

/// How [`Relay`] is tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// CPUs in a segment (at least 1). Long ones mean few ends to look at, and long ways.
    pub segment: usize,
    /// A CPU on which the token has rested for more jiffies than this is nudged.
    pub rest_jiffies_max: u32,
}

impl Default for Parameters {
    /// 16 to a segment, as many as the kernel's tree has in a leaf; a nudge in the second jiffy.
    fn default() -> Self {
        Self { segment: 16, rest_jiffies_max: 1 }
    }
}

/// A segment, as far as the timer has looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Segment {
    /// The first CPU of it that has not been seen to pass.
    position: usize,
    /// For how many jiffies it has been that one; no more than one beyond the limit.
    rested_jiffies: u32,
}

/// The engine, version 2.
///
/// A quiescent state costs one read if no grace period is in progress, and three reads and a write
/// at most if one is, but for those asleep that it passes over: at most a segment of them. A start
/// is linear in the segments; a look in the segments, and in the CPUs that have passed since the
/// last look. All callbacks that are ready are run at once, where they were queued.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relay<A: Store, S: Steps = Intact> {
    steps: S,
    parameters: Parameters,
    /// The grace period that began last: what the segments' heads show.
    number: u32,
    /// The one that ended last: `number`, or the one before.
    finished: u32,
    /// What each CPU shows; nothing, if it is in an extended quiescent state.
    shown: A::Of<u32>,
    callbacks: A::Of<Callbacks>,
    /// Those in an extended quiescent state. Each has its flag beside its number, in one word.
    eqs: Mask<A>,
    /// Those of them that have callbacks.
    sleepers: Mask<A>,
    segments: A::Of<Segment>,
    /// The first segment that has not been seen to have passed.
    cursor: usize,
    /// Which CPU follows the token, and when.
    alarm: Alarm,
    /// It has gone off.
    is_due: bool,
}

impl<A: Store, S: Steps> Relay<A, S> {
    /// The engine with these parameters from a given start, possibly without one of its [`STEPS`].
    pub fn with(store: A, parameters: Parameters, start: Start, steps: S) -> Self {
        let parameters = Parameters { segment: parameters.segment.max(1), ..parameters };
        let segment = Segment { position: 0, rested_jiffies: 0 };
        Self {
            steps,
            parameters,
            number: start.number,
            finished: start.number,
            shown: store.of(store.cpus(), start.number),
            callbacks: store.of(store.cpus(), Callbacks::EMPTY),
            eqs: Mask::new(store),
            sleepers: Mask::new(store),
            segments: store.of(store.cpus().div_ceil(parameters.segment), segment),
            cursor: 0,
            alarm: Alarm::Off,
            is_due: false,
        }
    }

    const fn in_progress(&self) -> bool {
        self.number != self.finished
    }

    const fn segment_of(&self, cpu: usize) -> usize {
        cpu / self.parameters.segment
    }

    const fn first_of(&self, segment: usize) -> usize {
        segment * self.parameters.segment
    }

    /// Where `segment` ends: the first CPU behind it.
    fn end_of(&self, segment: usize) -> usize {
        self.first_of(segment + 1).min(self.shown.len())
    }

    fn head(&self, segment: usize, host: &mut dyn Host) -> u32 {
        host.touch(Line::Node(segment), Access::Read);
        self.number
    }

    /// What is shown before `end`, in its segment: those asleep are passed over, back to the head.
    fn upstream(&self, segment: usize, end: usize, host: &mut dyn Host) -> u32 {
        for cpu in (self.first_of(segment)..end).rev() {
            host.touch(Line::Cpu(cpu), Access::Read);
            if !self.eqs.contains(cpu) {
                return self.shown[cpu];
            }
        }
        self.head(segment, host)
    }

    /// `cpu` is quiescent now: it shows what has come down to it.
    fn pass(&mut self, cpu: usize, host: &mut dyn Host) {
        let segment = self.segment_of(cpu);
        let head = self.head(segment, host);
        if head == self.shown[cpu] {
            return;
        }
        let upstream = match self.steps.omits("wait-for-predecessor") {
            true => head,
            false => self.upstream(segment, cpu, host),
        };
        if let Some(Number(number)) = relay(Number(self.shown[cpu]), Number(upstream)) {
            self.shown[cpu] = number;
            host.touch(Line::Cpu(cpu), Access::Write);
        }
    }

    /// Begins a grace period, if none is in progress.
    fn start(&mut self, cpu: usize, host: &mut dyn Host) {
        if self.in_progress() {
            return;
        }
        host.touch(SHARED, Access::Lock);
        self.number = self.number.wrapping_add(1);
        self.cursor = 0;
        host.began(0);
        for segment in 0..self.segments.len() {
            self.segments[segment] =
                Segment { position: self.first_of(segment), rested_jiffies: 0 };
            host.touch(Line::Node(segment), Access::Write);
        }
        self.alarm.set(cpu, !self.eqs.contains(cpu), 1, host);
    }

    /// The callbacks of `cpu` get their numbers, and are ready if those have ended.
    fn assign(&mut self, cpu: usize) {
        // The one in progress may have begun before a callback's update.
        let later = u32::from(!self.in_progress() || !self.steps.omits("wait-for-next-number"));
        self.callbacks[cpu].assign(self.number.wrapping_add(later), self.finished);
    }

    /// Whether the ends of all segments show the number.
    fn is_over(&self, host: &mut dyn Host) -> bool {
        let segments = match self.steps.omits("wait-for-all-segments") {
            true => self.segments.len().min(1),
            false => self.segments.len(),
        };
        (self.cursor..segments)
            .all(|segment| self.upstream(segment, self.end_of(segment), host) == self.number)
    }

    /// The grace period in progress is over. Those awake notice on their ticks.
    fn finish(&mut self, host: &mut dyn Host) {
        host.touch(SHARED, Access::Lock);
        self.finished = self.number;
        host.ended(0);
        self.alarm.turn_off(host);
        self.is_due = false;
        if !self.steps.omits("raise-sleepers") {
            self.sleepers.iter().for_each(|cpu| host.raise(cpu));
        }
    }

    /// Follows the token through `segment` as far as it has come. Returns whether it is through.
    /// Nudges the CPU on which it rests.
    ///
    /// Whom it has gone by shows the number or is in an extended quiescent state, and stays so: a
    /// CPU that comes back finds the same of all before it, and shows the number
    /// ([`Engine::exit_eqs`]).
    fn follow(&mut self, segment: usize, host: &mut dyn Host) -> bool {
        let Segment { mut position, mut rested_jiffies } = self.segments[segment];
        let end = self.end_of(segment);
        while position < end {
            host.touch(Line::Cpu(position), Access::Read);
            if self.shown[position] != self.number && !self.eqs.contains(position) {
                break;
            }
            (position, rested_jiffies) = (position + 1, 0);
        }
        if position < end {
            if rested_jiffies < self.parameters.rest_jiffies_max {
                rested_jiffies += 1;
            } else if !self.steps.omits("nudge") {
                rested_jiffies = 0;
                host.resched(position);
            }
        }
        self.segments[segment] = Segment { position, rested_jiffies };
        position == end
    }

    /// Follows the token everywhere; ends the grace period, or has `cpu` scan again in a jiffy.
    fn follow_all(&mut self, cpu: usize, host: &mut dyn Host) {
        if !self.in_progress() {
            return;
        }
        host.touch(SHARED, Access::Lock);
        for segment in self.cursor..self.segments.len() {
            if self.follow(segment, host) && self.cursor == segment {
                self.cursor += 1;
            }
        }
        if self.cursor == self.segments.len() {
            self.finish(host);
        } else {
            self.alarm.set(cpu, !self.eqs.contains(cpu), 1, host);
        }
    }

    /// `cpu` has callbacks and no ticks: it is raised now, and when a grace period has ended.
    fn sleep(&mut self, cpu: usize, host: &mut dyn Host) {
        if self.eqs.contains(cpu) && self.callbacks[cpu].count() != 0 {
            host.touch(SLEEPERS, Access::Atomic);
            self.sleepers.insert(cpu);
            if !self.steps.omits("raise-sleepers") {
                host.raise(cpu);
            }
        }
    }
}

impl<A: Store, S: Steps> Engine for Relay<A, S> {
    fn queue(&mut self, cpu: usize, callback: Callback, host: &mut dyn Host) {
        let Some(callbacks) = self.callbacks.get_mut(cpu) else { return };
        callbacks.queue(callback);
        host.touch(Line::Cpu(cpu), Access::Write);
        if callback.urgency > Urgency::Background {
            host.raise(cpu);
        } else if self.callbacks[cpu].is_due() {
            let is_first = self.callbacks[cpu].count() == 1;
            host.touch(SHARED, Access::Read);
            self.assign(cpu);
            let is_idle = !self.in_progress() && !is_first;
            if is_idle || self.callbacks[cpu].ready().0 != 0 {
                host.raise(cpu);
            }
        }
        self.sleep(cpu, host);
    }

    fn context_switch(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu < self.shown.len() {
            self.pass(cpu, host);
        }
    }

    fn tick(&mut self, cpu: usize, mode: Mode, host: &mut dyn Host) {
        if cpu >= self.shown.len() {
            return;
        }
        if mode != Mode::Kernel || self.steps.omits("only-when-quiescent") {
            self.pass(cpu, host);
        }
        if !self.steps.omits("follow-on-tick") && self.alarm.tick(cpu, host).1 {
            self.is_due = true;
            host.raise(cpu);
        }
        if self.callbacks[cpu].count() == 0 {
            return;
        }
        host.touch(SHARED, Access::Read);
        if self.in_progress() && !self.steps.omits("look-on-tick") && self.is_over(host) {
            self.finish(host);
        }
        self.assign(cpu);
        if self.callbacks[cpu].ready().0 != 0 || !self.in_progress() {
            host.raise(cpu);
        }
    }

    /// Runs what is ready; begins a grace period for what is not. If it is to follow the token,
    /// linear as the timer.
    fn softirq(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu >= self.shown.len() {
            return;
        }
        host.touch(SHARED, Access::Read);
        if core::mem::take(&mut self.is_due) {
            self.follow_all(cpu, host);
        }
        self.assign(cpu);
        let callbacks = &mut self.callbacks[cpu];
        let ready = callbacks.take(u64::MAX);
        if callbacks.unready() != 0 {
            self.start(cpu, host);
        } else if self.sleepers.remove(cpu) {
            host.touch(SLEEPERS, Access::Atomic);
        }
        if ready != 0 {
            host.invoke(cpu, ready);
        }
    }

    /// Linear in the segments, and in the CPUs that have passed since the last look.
    fn timer(&mut self, cpu: usize, host: &mut dyn Host) {
        if self.alarm.timer().is_some() && !self.steps.omits("follow-by-timer") {
            self.follow_all(cpu, host);
        }
    }

    fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu >= self.shown.len() {
            return;
        }
        self.pass(cpu, host);
        self.eqs.insert(cpu);
        if self.alarm.is_kept_by(cpu) && !self.steps.omits("hand-over") {
            self.alarm.hand_over(None, host);
        }
        host.touch(Line::Cpu(cpu), Access::Atomic);
        self.sleep(cpu, host);
    }

    /// A segment's worth of steps at most. What the CPU showed may be so old by now that it
    /// looks new; that the last grace period has ended is known.
    fn exit_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        let Some(shown) = self.shown.get_mut(cpu) else { return };
        *shown = match self.steps.omits("look-upstream-on-return") {
            true => self.number,
            false => self.finished,
        };
        if !self.steps.omits("pass-on-return") {
            self.pass(cpu, host);
        }
        if !self.steps.omits("return-from-eqs") {
            self.eqs.remove(cpu);
        }
        host.touch(Line::Cpu(cpu), Access::Atomic);
        if self.sleepers.remove(cpu) {
            host.touch(SLEEPERS, Access::Atomic);
        }
    }

    fn is_holdout(&self, _: usize, cpu: usize) -> bool {
        let has_not_passed = self.shown.get(cpu).is_some_and(|&shown| shown != self.number);
        self.in_progress() && has_not_passed && !self.eqs.contains(cpu)
    }

    fn waiting(&self, cpu: usize) -> u64 {
        self.callbacks.get(cpu).map_or(0, Callbacks::count)
    }
}
