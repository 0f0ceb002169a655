//! The grace-period machine.
//!
//! A grace period goes through these steps, each an [`Action`] that the driver carries out and
//! reports with an [`Event`]:
//!
//! ```text
//!            request
//!   Idle ───────────────> Fence ──Fenced──> Announce ──Announced──> Scan ──Scanned(0)──> Complete
//!    ^ │request             ^ │Alone                        Woken ^  │Scanned(n)            │
//!    │ v                    │ └──────────────────┐                │  v                      │
//!    │ Wait(Tick) ──Woken───┘                    │               Wait                       │
//!    └───────────────────────Completed───────────┴── Complete                               │
//!    └───────────────────────Completed──────────────────────────────────────────────────────┘
//! ```
//!
//! The [`Policy`] decides whether a request starts a grace period at once or at the next tick, and
//! what happens between two scans. The steps themselves are in `period.rs`, which ends no grace
//! period early, whatever the policy decides. This file passes the driver's reports to it, and its
//! sequence to callers: an error in that would be unsound.
//!
//! # Why one fence and one pass are enough
//!
//! Let *t* be the moment when the heavy fence takes effect on a reader's CPU. The scan sees what
//! the reader did before *t*: if its section began before *t*, the scan finds its word non-zero (or
//! already zero again: then the section has ended, and its unlock was a release store that the scan
//! acquires). The reader's loads after *t* see everything that the updater published before the
//! fence, so a section that begins after *t* cannot find the old object, and the grace period need
//! not wait for it. The number distinguishes the two kinds of section: those under the announced
//! number began after the announcement, hence after *t*. A reader that loaded `gp.ctr` long ago and
//! stores it only now records an *older* number; the grace period then waits for it needlessly, but
//! never the reverse.
//!
//! **Invariant [GM-1]: a request is served by a grace period whose fence comes after it.** So a
//! request made during a grace period asks for the next one.
//!
//! **Invariant [GM-2]: a scan counts every reader that is inside a section under another number
//! than the announced one.** The grace period ends only at a count of zero.
//!
//! # When the numbers wrap
//!
//! A word has 32 bits for the number. Once 2^32 numbers have been announced, a reader that stalled
//! between loading `gp.ctr` and storing it for exactly 2^32 announcements would record the number
//! that is being announced, and would not be counted. From then on a grace period announces *two*
//! numbers and scans twice: whatever the stale number is, it differs from one of them. (With
//! two-bit numbers the explorer finds the fault under one pass, and finds none under two.)

use crate::period::{Period, Step};
use crate::policy::{Begin, Hint, Looks, Policy, Urgency};
use crate::refused::NotGiven;
use crate::sequence::{Cookie, Sequence};
use crate::word::Number;

/// What the driver has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// No grace period is wanted.
    Idle,
    /// Execute a heavy fence: a full fence here and on every CPU that runs a reader. Then
    /// [`Event::Fenced`]. If no other reader is registered, skip it and report [`Event::Alone`].
    Fence,
    /// Store this number in `gp.ctr`, with release ordering. Then [`Event::Announced`].
    Announce(Number),
    /// Load every reader's word (in later scans of a pass: those of its holdouts), with acquire
    /// ordering, and count those that [`is_holdout`](crate::word::is_holdout) under this number.
    /// Then [`Event::Scanned`].
    Scan(Number),
    /// Holdouts remain, or the grace period that is wanted begins at the next tick
    /// ([`Hint::Tick`]): follow the hint. Then [`Event::Woken`]. A more urgent request during the
    /// wait can change the hint.
    Wait(Hint),
    /// A grace period has ended: make this sequence visible, with release ordering, and wake the
    /// waiters whose cookies are done. Then [`Event::Completed`].
    Complete(Sequence),
}

/// What the driver has seen or done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// [`Action::Fence`] is done.
    Fenced,
    /// The only readers are the driver's own, in no section: there is no reader to wait for. Seen
    /// under the registry's lock, which a reader that registers later takes too.
    Alone,
    /// [`Action::Announce`] is done.
    Announced,
    /// [`Action::Scan`] is done and found this many holdouts.
    Scanned {
        /// Readers that must still be waited for.
        holdouts: usize,
    },
    /// [`Action::Wait`] has ended, for whatever reason.
    Woken,
    /// [`Action::Complete`] is done.
    Completed,
    /// The driver is gone in the middle of a grace period (in a child process after `fork`), and
    /// another thread takes over. The driver's work does not count: the grace period starts again
    /// from its fence.
    Abandoned,
}

/// An event that does not fit the step the machine is at.
pub type Refused = crate::refused::Refused<Event, Action>;

/// Where the counters of a machine start, and how wide a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Start {
    /// The first sequence.
    pub sequence: Sequence,
    /// The number that `gp.ctr` shows before the first grace period.
    pub number: Number,
    /// Bits in a number: 32 in a real word; fewer for the explorer, so that they wrap early.
    /// Clamped to 1..=32.
    pub number_bits: u32,
}

impl Start {
    /// Sequence and number zero, numbers of 32 bits.
    pub const ZERO: Self =
        Self { sequence: Sequence::after(0), number: Number(0), number_bits: 32 };
}

/// Decides when grace periods begin, what happens in them, and when they end.
///
/// One driver at a time carries out its actions; requests may come in between. All functions take
/// constant time and space.
///
/// ```
/// use grace::{Action, Event, Machine, Start, Urgency, policy::Adaptive};
///
/// let mut machine = Machine::new(Adaptive::DEFAULT, Start::ZERO);
/// let cookie = machine.request(Urgency::Normal);
/// let mut words = [0u64; 2]; // two readers, outside of any section
/// loop {
///     let event = match machine.poll() {
///         Action::Idle => break,
///         Action::Fence => Event::Fenced, // one thread: nothing to fence
///         Action::Announce(_) => Event::Announced,
///         Action::Scan(number) => Event::Scanned {
///             holdouts: words.iter().filter(|w| grace::word::is_holdout(**w, number)).count(),
///         },
///         Action::Wait(_) => Event::Woken,
///         Action::Complete(_) => Event::Completed,
///     };
///     machine.observe(event)?;
/// }
/// assert!(machine.sequence().is_done(cookie));
/// # words[0] = 1;
/// # Ok::<(), grace::Refused>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine<P> {
    policy: P,
    period: Period,
    /// The latest grace period requested with each [`Urgency`], or more.
    needed: [Cookie; 3],
    /// A grace period is wanted, and begins at the next tick.
    is_deferred: bool,
    /// Scans of this pass that found holdouts.
    looks: Looks,
}

impl<P: Policy> Machine<P> {
    /// A machine with nothing to do.
    pub const fn new(policy: P, start: Start) -> Self {
        Self {
            policy,
            period: Period::new(start),
            needed: [Cookie::done_at(start.sequence); 3],
            is_deferred: false,
            looks: Looks::NONE,
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
        if !self.sequence().has_given(cookie) {
            return Err(NotGiven);
        }
        self.need(cookie, urgency);
        Ok(())
    }

    fn need(&mut self, cookie: Cookie, urgency: Urgency) {
        for needed in &mut self.needed[..=urgency as usize] {
            if cookie.is_at_or_after(*needed) {
                *needed = cookie;
            }
        }
    }

    /// The cookie of a full grace period from now on, without requesting it.
    pub const fn snapshot(&self) -> Cookie {
        self.sequence().snapshot()
    }

    /// How many grace periods have ended, and whether one is in progress.
    pub const fn sequence(&self) -> Sequence {
        self.period.sequence()
    }

    /// The number that `gp.ctr` should show.
    pub const fn number(&self) -> Number {
        self.period.number()
    }

    /// The policy, with its parameters.
    pub const fn policy(&self) -> &P {
        &self.policy
    }

    /// Whether a grace period is in progress or wanted.
    pub fn is_wanted(&self) -> bool {
        self.period.step() != Step::Idle || self.needs(Urgency::Background)
    }

    /// Whether a grace period that has not ended was requested with so much urgency, or more.
    fn needs(&self, urgency: Urgency) -> bool {
        !self.sequence().is_done(self.needed[urgency as usize])
    }

    /// The highest urgency with which the grace period in progress or a later one is wanted.
    pub fn urgency(&self) -> Urgency {
        if self.needs(Urgency::Expedited) {
            Urgency::Expedited
        } else if self.needs(Urgency::Normal) {
            Urgency::Normal
        } else {
            Urgency::Background
        }
    }

    /// What to do next. The same answer until [`observe`](Self::observe) reports it done, with two
    /// exceptions that requests cause: an idle machine starts, or decides to start at the next
    /// tick, and the hint of a machine that waits may change.
    pub fn poll(&mut self) -> Action {
        if self.period.step() == Step::Idle && self.needs(Urgency::Background) {
            match self.policy.begin(self.urgency()) {
                Begin::Now => self.begin(),
                Begin::AtTick => self.is_deferred = true,
            }
        }
        self.pending()
    }

    /// Reports what the driver has done or seen.
    ///
    /// # Errors
    /// [`Refused`] if `event` does not answer the pending action; nothing changes then.
    #[inline]
    pub fn observe(&mut self, event: Event) -> Result<(), Refused> {
        if self.is_deferred && event == Event::Woken {
            self.begin();
        } else if !self.period.observe(event) {
            return Err(Refused { event, pending: self.pending() });
        }
        match self.period.step() {
            Step::Announce => self.looks.begin_pass(&self.policy, self.urgency()),
            Step::Wait => self.looks.found_holdouts(),
            _ => {}
        }
        Ok(())
    }

    fn pending(&self) -> Action {
        match self.period.step() {
            Step::Idle if self.is_deferred => Action::Wait(Hint::Tick),
            Step::Idle => Action::Idle,
            Step::Fence => Action::Fence,
            Step::Announce => Action::Announce(self.number()),
            Step::Scan => Action::Scan(self.number()),
            Step::Wait => Action::Wait(self.looks.hint(&self.policy, self.urgency())),
            Step::Complete => Action::Complete(self.sequence()),
        }
    }

    fn begin(&mut self) {
        self.is_deferred = false;
        self.period.begin();
    }
}
