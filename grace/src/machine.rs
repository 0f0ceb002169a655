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
//! Which requests are served, whether one starts a grace period at once or at the next tick, and
//! what happens between two scans, is decided in `requests.rs`, by the [`Policy`]. Whatever it
//! decides, a grace period ends only after a fence, an announcement and a scan without holdouts, in
//! this order [GM-2]: [`Machine::observe`] accepts only the event for which the present step waits,
//! and a request gets its cookie from the sequence here.
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

use crate::policy::{Hint, Policy, Urgency};
use crate::refused::NotGiven;
use crate::requests::Requests;
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

/// Found in [`driver`](crate::driver).
pub(crate) mod needed {
    /// The fence that the registered readers require.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Needed {
        /// Some reader has light fences only: `membarrier`.
        Heavy,
        /// All execute full fences themselves (a QSBR reader when it comes online): one of the
        /// updater's own is enough.
        Full,
    }

    /// Which fence a grace period begins with, if `readers` are registered, of which `own` are the
    /// driver's and quiescent, and `light` have light fences. `None` if there is no other reader:
    /// the grace period ends at once ([`Event::Alone`](crate::Event::Alone)).
    ///
    /// ```
    /// use grace::driver::{Needed, fence_needed};
    ///
    /// assert_eq!(fence_needed(1, 1, 1), None);
    /// assert_eq!(fence_needed(2, 1, 1), Some(Needed::Heavy));
    /// assert_eq!(fence_needed(2, 0, 0), Some(Needed::Full));
    /// ```
    pub const fn fence_needed(readers: usize, own: usize, light: usize) -> Option<Needed> {
        if readers <= own {
            None
        } else if light != 0 {
            Some(Needed::Heavy)
        } else {
            Some(Needed::Full)
        }
    }
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

/// The step of the grace period in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    Fence,
    Announce,
    Scan,
    Wait,
    Complete,
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
    requests: Requests<P>,
    sequence: Sequence,
    step: Step,
    number: Number,
    number_mask: u32,
    /// Numbers that can still be announced before one repeats.
    fresh: u32,
    /// Passes that this grace period still has to make, the current one included.
    passes: u8,
}

impl<P: Policy> Machine<P> {
    /// A machine with nothing to do.
    pub const fn new(policy: P, start: Start) -> Self {
        let bits = match start.number_bits {
            0 => 1,
            1..=32 => start.number_bits,
            _ => 32,
        };
        let number_mask = u32::MAX >> (32 - bits);
        let sequence = Sequence::after(start.sequence.ended());
        Self {
            requests: Requests::new(policy, sequence),
            sequence,
            step: Step::Idle,
            number: Number(start.number.0 & number_mask),
            number_mask,
            fresh: number_mask,
            passes: 0,
        }
    }

    /// Asks for a full grace period from now on. The cookie is done when it has ended.
    pub fn request(&mut self, urgency: Urgency) -> Cookie {
        let cookie = self.snapshot();
        self.requests.need(cookie, urgency);
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
        self.requests.need(cookie, urgency);
        Ok(())
    }

    /// The cookie of a full grace period from now on, without requesting it.
    pub const fn snapshot(&self) -> Cookie {
        self.sequence.snapshot()
    }

    /// How many grace periods have ended, and whether one is in progress.
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The number that `gp.ctr` should show.
    pub const fn number(&self) -> Number {
        self.number
    }

    /// The policy, with its parameters.
    pub const fn policy(&self) -> &P {
        &self.requests.policy
    }

    /// Whether a grace period is in progress or wanted.
    pub fn is_wanted(&self) -> bool {
        self.step != Step::Idle || self.requests.needs(self.sequence, Urgency::Background)
    }

    /// The highest urgency with which the grace period in progress or a later one is wanted.
    pub fn urgency(&self) -> Urgency {
        self.requests.urgency(self.sequence)
    }

    /// What to do next. The same answer until [`observe`](Self::observe) reports it done, with two
    /// exceptions that requests cause: an idle machine starts, or decides to start at the next
    /// tick, and the hint of a machine that waits may change.
    pub fn poll(&mut self) -> Action {
        if self.step == Step::Idle && self.requests.begins(self.sequence) {
            self.begin();
        }
        self.pending()
    }

    /// Reports what the driver has done or seen.
    ///
    /// # Errors
    /// [`Refused`] if `event` does not answer the pending action; nothing changes then.
    #[inline]
    pub fn observe(&mut self, event: Event) -> Result<(), Refused> {
        match (self.step, event) {
            (Step::Idle, Event::Woken) if self.requests.is_deferred => self.begin(),
            (Step::Fence, Event::Alone) => self.finish(),
            (Step::Fence, Event::Fenced) => {
                self.passes = if self.fresh == 0 { 2 } else { 1 };
                self.begin_pass();
            }
            (Step::Announce, Event::Announced) => self.step = Step::Scan,
            (Step::Scan, Event::Scanned { holdouts: 0 }) => self.end_pass(),
            (Step::Scan, Event::Scanned { .. }) => {
                self.step = Step::Wait;
                self.requests.looks.found_holdouts();
            }
            (Step::Wait, Event::Woken) => self.step = Step::Scan,
            (Step::Complete, Event::Completed) => self.step = Step::Idle,
            (Step::Idle | Step::Complete, Event::Abandoned) => {}
            (_, Event::Abandoned) => self.step = Step::Fence,
            _ => return Err(Refused { event, pending: self.pending() }),
        }
        Ok(())
    }

    fn pending(&self) -> Action {
        match self.step {
            Step::Idle if self.requests.is_deferred => Action::Wait(Hint::Tick),
            Step::Idle => Action::Idle,
            Step::Fence => Action::Fence,
            Step::Announce => Action::Announce(self.number),
            Step::Scan => Action::Scan(self.number),
            Step::Wait => Action::Wait(self.requests.hint(self.sequence)),
            Step::Complete => Action::Complete(self.sequence),
        }
    }

    /// Begins a grace period; none is in progress.
    fn begin(&mut self) {
        self.requests.is_deferred = false;
        self.sequence = self.sequence.begin();
        self.step = Step::Fence;
    }

    fn begin_pass(&mut self) {
        self.number = Number(self.number.0.wrapping_add(1) & self.number_mask);
        self.fresh = self.fresh.saturating_sub(1);
        self.step = Step::Announce;
        self.requests.begin_pass(self.sequence);
    }

    fn end_pass(&mut self) {
        self.passes = self.passes.saturating_sub(1);
        if self.passes == 0 { self.finish() } else { self.begin_pass() }
    }

    fn finish(&mut self) {
        self.sequence = self.sequence.end();
        self.step = Step::Complete;
    }
}
