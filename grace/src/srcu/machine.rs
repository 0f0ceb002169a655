//! The grace-period machine of an SRCU domain.
//!
//! ```text
//!          request                               drained              (second scan)
//!   Idle ──────────> Queue ──> Await ──Runs──> Check ──────> Flip ──> Check ──────> HandOut
//!    ^                 ^                        │  ^ not drained        │               │
//!    │                 │        no more checks  v  │                    │               │
//!    │                 └──────────────────────  ┴ Spin <────────────────┘               │
//!    └──────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! **Invariant [TB-1]: a request is served by a grace period that begins after it.** **Invariant
//! [TB-2]: an index becomes current only after it was seen drained,** so the grace period waits for
//! stragglers of the previous flip. **Invariant [TB-3]: a grace period ends only after the index
//! that was current at its beginning was seen drained while the other one was current.**
//! **Invariant [TB-4]: while callbacks are handed out, one more grace period may begin, but none
//! may end.**
//!
//! All of it holds if the delay function unwinds: it is called before anything changes that may not
//! be done twice. Then [`pending`](SrcuMachine::pending) says anew what to do.

use super::delay::{Delay, Situation, Wait};
use super::{EXPEDITE_AFTER_IDLE_NS, other};
use crate::policy::Urgency;
use crate::refused::NotGiven;
use crate::sequence::{Cookie, Sequence};
use crate::steps::{Intact, Steps};

/// The steps that can be left out: each is a mutant.
pub const STEPS: &[&str] = &[
    "serve-later",
    "first-scan",
    "flip",
    "second-scan",
    "heed-check",
    "requeue",
    "begin-next",
    "begin-while-handing-out",
    "note-expedited",
    "reset-count",
    "throttle",
    "extra-check",
];

/// Where the age of a grace period stops: beyond what any delay function tells apart.
const AGE_JIFFIES_MAX: u32 = 1_000;

/// How far the grace period in progress has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// None is in progress.
    Idle,
    /// The index that is not current drains: stragglers of the last flip.
    Scan1,
    /// The indexes have been flipped; the index that was current drains.
    Scan2,
}

/// What the driver has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing is wanted.
    Idle,
    /// Have the worker run after this wait. Then [`Event::Queued`].
    Queue(Wait),
    /// Nothing until the worker runs: [`Event::Runs`].
    Await,
    /// Sum the unlock counts of this index, fence A, sum its lock counts, and say whether they are
    /// equal: [`Event::Checked`].
    Check {
        /// 0 or 1.
        index: u8,
    },
    /// Let so many microseconds pass, without sleeping. Then [`Event::Spun`].
    Spin {
        /// How many.
        microseconds: u32,
    },
    /// Fence E, make this index the current one, fence D. Then [`Event::Flipped`].
    Flip {
        /// 0 or 1.
        to: u8,
    },
    /// A grace period has ended: make this sequence visible, with release ordering, and see to it
    /// that the callbacks whose cookies are done are run, after so many jiffies. Then
    /// [`Event::HandedOut`].
    HandOut {
        /// The sequence at that end. Another grace period may have begun since.
        sequence: Sequence,
        /// How long the callbacks wait.
        delay_jiffies: u32,
    },
}

/// What the driver has seen or done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// [`Action::Queue`] is done.
    Queued,
    /// The worker runs.
    Runs,
    /// [`Action::Check`] is done.
    Checked {
        /// Whether the sums were equal.
        drained: bool,
    },
    /// [`Action::Spin`] is over.
    Spun,
    /// [`Action::Flip`] is done.
    Flipped,
    /// [`Action::HandOut`] is done.
    HandedOut,
}

/// An event that does not fit the step the machine is at.
pub type Refused = crate::refused::Refused<Event, Action>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    Queue(Wait),
    Await,
    Check,
    Spin { microseconds: u32 },
    Flip,
    HandOut { ended: Sequence, delay_jiffies: u32, next: Option<Wait> },
}

/// Decides when grace periods begin, what the worker does in them, and when they end. Requests may
/// come at any time; one driver at a time carries out actions. Constant in time and space.
///
/// ```
/// use grace::Urgency;
/// use grace::srcu::{Action, Event, SrcuMachine, Published, Sequence};
///
/// let mut machine = SrcuMachine::new(Published::V5_18, Sequence::after(0));
/// let cookie = machine.request(Urgency::Expedited);
/// loop {
///     let event = match machine.pending() {
///         Action::Idle => break,
///         Action::Queue(_) => Event::Queued,
///         Action::Await => Event::Runs,
///         Action::Check { .. } => Event::Checked { drained: true }, // no reader
///         Action::Spin { .. } => Event::Spun,
///         Action::Flip { .. } => Event::Flipped,
///         Action::HandOut { .. } => Event::HandedOut,
///     };
///     machine.observe(event)?;
/// }
/// assert!(machine.sequence().is_done(cookie));
/// # Ok::<(), grace::srcu::Refused>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SrcuMachine<D, S = Intact> {
    delay: D,
    steps: S,
    sequence: Sequence,
    /// `Idle` exactly if no grace period is in progress in `sequence`.
    phase: Phase,
    /// The furthest grace period that somebody asked for.
    needed: Cookie,
    /// The furthest that somebody in a hurry asked for.
    needed_expedited: Cookie,
    step: Step,
    /// The current index.
    index: u8,
    /// Checks that this run may still make; -1 once the extra one is used.
    checks: i8,
    /// What the delay function said before the first check, if it is asked once a run.
    may_check_more: bool,
    /// The delay function's.
    count: u32,
    age_jiffies: u32,
    /// Runs in a row without a wait, in one jiffy.
    runs_in_jiffy: u32,
}

impl<D: Delay> SrcuMachine<D> {
    /// A machine with nothing to do, after as many grace periods as `start` says; index 0 is
    /// current.
    pub const fn new(delay: D, start: Sequence) -> Self {
        Self::with_steps(delay, start, Intact)
    }
}

impl<D: Delay, S: Steps> SrcuMachine<D, S> {
    /// The same, with a step left out.
    pub const fn with_steps(delay: D, start: Sequence, steps: S) -> Self {
        let nothing = Cookie::done_at(start);
        Self {
            delay,
            steps,
            sequence: Sequence::after(start.ended()),
            phase: Phase::Idle,
            needed: nothing,
            needed_expedited: nothing,
            step: Step::Idle,
            index: 0,
            checks: 0,
            may_check_more: false,
            count: 0,
            age_jiffies: 0,
            runs_in_jiffy: 0,
        }
    }

    /// Asks for a full grace period from now on. The cookie is done when it has ended.
    pub fn request(&mut self, urgency: Urgency) -> Cookie {
        let cookie = self.snapshot();
        self.need(cookie, urgency);
        cookie
    }

    /// Asks for the grace period that an earlier [`snapshot`](Self::snapshot) stands for, if it has
    /// not ended yet.
    ///
    /// # Errors
    /// [`NotGiven`] for a cookie that this machine cannot have given
    /// ([`has_given`](Sequence::has_given)): a thread that waited for it might wait for ever.
    /// Nothing changes.
    pub fn require(&mut self, cookie: Cookie, urgency: Urgency) -> Result<(), NotGiven> {
        if !self.sequence.has_given(cookie) {
            return Err(NotGiven);
        }
        self.need(cookie, urgency);
        Ok(())
    }

    fn need(&mut self, cookie: Cookie, urgency: Urgency) {
        if cookie.is_at_or_after(self.needed) {
            self.needed = cookie;
        }
        let is_expedited = urgency == Urgency::Expedited && !self.steps.omits("note-expedited");
        if is_expedited && cookie.is_at_or_after(self.needed_expedited) {
            self.needed_expedited = cookie;
        }
        if self.phase != Phase::Idle || self.sequence.is_done(self.needed) {
            return;
        }
        match self.step {
            Step::Idle => {
                let wait = self.begin();
                self.step = Step::Queue(wait);
            }
            Step::HandOut { ended, delay_jiffies, next: None }
                if !self.steps.omits("begin-while-handing-out") =>
            {
                let next = Some(self.begin());
                self.step = Step::HandOut { ended, delay_jiffies, next };
            }
            _ => {}
        }
    }

    /// The cookie of a full grace period from now on, without asking for it.
    pub fn snapshot(&self) -> Cookie {
        if self.steps.omits("serve-later") {
            Cookie::done_at(self.sequence.begin().end())
        } else {
            self.sequence.snapshot()
        }
    }

    /// How many grace periods have ended, and whether one is in progress.
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// How far the one in progress has come.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The index that readers should use.
    pub const fn current_index(&self) -> u8 {
        self.index
    }

    /// Whether a grace period is in progress or wanted.
    pub fn is_wanted(&self) -> bool {
        self.step != Step::Idle || !self.sequence.is_done(self.needed)
    }

    /// Whether somebody in a hurry wants the grace period in progress or a later one.
    pub const fn is_expedited(&self) -> bool {
        !self.sequence.is_done(self.needed_expedited)
    }

    /// The delay function, with its parameters.
    pub const fn delay(&self) -> &D {
        &self.delay
    }

    /// How urgent a synchronous grace period is that was not called urgent: expedited if the domain
    /// has nothing to do, and has had nothing to do for `idle_ns` nanoseconds, which is long
    /// enough.
    pub fn urgency_of_synchronize(&self, idle_ns: u64) -> Urgency {
        if self.step == Step::Idle && idle_ns > EXPEDITE_AFTER_IDLE_NS {
            Urgency::Expedited
        } else {
            Urgency::Normal
        }
    }

    /// So many jiffies have passed. To be reported before anything else that happens after the
    /// tick.
    pub fn tick(&mut self, jiffies: u32) {
        if jiffies != 0 {
            self.runs_in_jiffy = 0;
            if self.phase != Phase::Idle {
                let age = self.age_jiffies.saturating_add(jiffies);
                self.age_jiffies = age.min(AGE_JIFFIES_MAX);
            }
        }
    }

    /// What to do next: the same answer until [`observe`](Self::observe) reports it done.
    pub fn pending(&self) -> Action {
        match self.step {
            Step::Idle => Action::Idle,
            Step::Queue(wait) => Action::Queue(wait),
            Step::Await => Action::Await,
            Step::Check => Action::Check { index: other(self.index) },
            Step::Spin { microseconds } => Action::Spin { microseconds },
            Step::Flip => Action::Flip { to: other(self.index) },
            Step::HandOut { ended, delay_jiffies, .. } => {
                Action::HandOut { sequence: ended, delay_jiffies }
            }
        }
    }

    /// Reports what the driver has done or seen.
    ///
    /// # Errors
    /// [`Refused`] if it does not answer the pending action; nothing changes then.
    pub fn observe(&mut self, event: Event) -> Result<(), Refused> {
        match (self.step, event) {
            (Step::Queue(_), Event::Queued) => self.step = Step::Await,
            (Step::Await, Event::Runs) => self.scan(),
            (Step::Check, Event::Checked { drained }) => {
                if drained || self.steps.omits("heed-check") {
                    self.drained();
                } else {
                    self.not_drained();
                }
            }
            (Step::Spin { .. }, Event::Spun) => self.step = Step::Check,
            (Step::Flip, Event::Flipped) => {
                self.index = other(self.index);
                self.second_scan();
            }
            (Step::HandOut { next, .. }, Event::HandedOut) => self.handed_out(next),
            _ => return Err(Refused { event, pending: self.pending() }),
        }
        Ok(())
    }

    fn situation(&self) -> Situation {
        Situation { is_expedited: self.is_expedited(), age_jiffies: self.age_jiffies }
    }

    fn reset_count(&mut self) {
        if !self.steps.omits("reset-count") {
            self.count = 0;
        }
    }

    /// A grace period begins. Returns how long the worker waits before its first run.
    fn begin(&mut self) -> Wait {
        let mut count = if self.steps.omits("reset-count") { self.count } else { 0 };
        let now = Situation { age_jiffies: 0, ..self.situation() };
        let wait = self.delay.first_wait(&mut count, now);
        (self.sequence, self.phase) = (self.sequence.begin(), Phase::Scan1);
        (self.age_jiffies, self.count) = (0, count);
        wait
    }

    /// The worker runs: whichever scan it is at.
    fn scan(&mut self) {
        match self.phase {
            Phase::Idle => self.step = Step::Idle,
            Phase::Scan1 if self.steps.omits("first-scan") => self.step = Step::Flip,
            Phase::Scan1 => self.first_check(1),
            Phase::Scan2 => self.first_check(2),
        }
    }

    fn second_scan(&mut self) {
        self.phase = Phase::Scan2;
        self.reset_count();
        if self.steps.omits("second-scan") {
            self.end();
        } else {
            self.first_check(2);
        }
    }

    fn first_check(&mut self, checks: i8) {
        (self.step, self.checks) = (Step::Check, checks);
        if !self.delay.asks_after_each_check() {
            let now = self.situation();
            self.may_check_more = self.delay.extra_check(&mut self.count, now);
        }
    }

    fn not_drained(&mut self) {
        self.checks = self.checks.saturating_sub(1);
        if self.delay.asks_after_each_check() {
            let now = self.situation();
            self.may_check_more = self.delay.extra_check(&mut self.count, now);
        }
        let may_check_more = self.may_check_more && !self.steps.omits("extra-check");
        if self.checks + i8::from(may_check_more) > 0 {
            self.step = Step::Spin { microseconds: self.delay.spin_us(self.checks <= 0) };
        } else {
            self.end_run();
        }
    }

    fn drained(&mut self) {
        match self.phase {
            Phase::Scan1 if self.steps.omits("flip") => self.second_scan(),
            Phase::Scan1 => self.step = Step::Flip,
            _ => self.end(),
        }
    }

    /// A run has used up its checks.
    fn end_run(&mut self) {
        let now = self.situation();
        let mut wait = self.delay.wait(&mut self.count, now);
        if !wait.is_none() {
            self.runs_in_jiffy = 0;
        } else {
            // Not counted where it does not matter: states must be finitely many.
            let runs_max = self.delay.runs_per_jiffy_max();
            if self.runs_in_jiffy < runs_max && runs_max != u32::MAX {
                self.runs_in_jiffy += 1;
            } else if runs_max != u32::MAX && !self.steps.omits("throttle") {
                wait = Wait::Jiffies(1);
            }
        }
        self.step = if self.steps.omits("requeue") { Step::Await } else { Step::Queue(wait) };
    }

    fn end(&mut self) {
        self.reset_count();
        let now = self.situation();
        let delay_jiffies = self.delay.callback_delay_jiffies(&mut self.count, now);
        (self.sequence, self.phase) = (self.sequence.end(), Phase::Idle);
        // Not left behind, or it would be in the future again once the counter has wrapped.
        let ended = Cookie::done_at(self.sequence);
        if ended.is_at_or_after(self.needed_expedited) {
            self.needed_expedited = ended;
        }
        self.step = Step::HandOut { ended: self.sequence, delay_jiffies, next: None };
    }

    fn handed_out(&mut self, next: Option<Wait>) {
        self.step = match next {
            Some(wait) => Step::Queue(wait),
            None if self.sequence.is_done(self.needed) || self.steps.omits("begin-next") => {
                Step::Idle
            }
            None => {
                self.begin();
                Step::Queue(Wait::NONE)
            }
        };
    }
}
