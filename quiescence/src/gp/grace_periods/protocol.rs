//! The machine that makes a domain's grace periods: [`grace::Machine`], which waits for registered
//! threads, or [`grace::srcu`]'s, which waits for the sections counted in two indexes.
//!
//! Both take the same requests, with one type of sequence and cookie.

use grace::policy::AnyPolicy;
use grace::srcu::{self, AdaptiveDelay};
use grace::{Cookie, Event, Machine, NotGiven, Sequence, Urgency};

/// A domain's machine.
#[derive(Debug)]
pub(crate) enum Protocol {
    /// For registered threads.
    Threads(Machine<AnyPolicy>),
    /// For a sleepable domain.
    Srcu(SrcuProtocol),
}

/// The machine of a sleepable domain, and what its driver knows.
#[derive(Debug)]
pub(crate) struct SrcuProtocol {
    pub(crate) machine: srcu::SrcuMachine<AdaptiveDelay>,
    /// When the next run is due, as `clock::monotonic_ns`; 0 for at once.
    pub(crate) run_at_ns: u64,
    /// When the machine was last told of ticks.
    pub(crate) ticked_ns: u64,
    /// The latest cookie that was required as expedited. (The machine itself takes all threads that
    /// wait as expedited: see [`pressing`].)
    expedited: srcu::Cookie,
}

impl SrcuProtocol {
    pub(crate) const fn new(delay: AdaptiveDelay) -> Self {
        let start = srcu::Sequence::after(0);
        let machine = srcu::SrcuMachine::new(delay, start);
        let expedited = srcu::Cookie::done_at(start);
        Self { machine, run_at_ns: 0, ticked_ns: 0, expedited }
    }

    fn urgency(&self) -> Urgency {
        if !self.machine.sequence().is_done(self.expedited) {
            Urgency::Expedited
        } else if self.machine.is_expedited() {
            Urgency::Normal
        } else {
            Urgency::Background
        }
    }

    pub(crate) fn sequence(&self) -> Sequence {
        of_srcu(self.machine.sequence())
    }

    /// Asks for the grace period of `cookie`. If that makes the machine expedited, the next run is
    /// due now: it was put off only as long as no thread was in a hurry. Returns whether it does.
    fn require(&mut self, cookie: srcu::Cookie, urgency: Urgency) -> Result<bool, NotGiven> {
        let was_pressing = self.machine.is_expedited();
        self.machine.require(cookie, pressing(urgency))?;
        if urgency == Urgency::Expedited && cookie.is_at_or_after(self.expedited) {
            self.expedited = cookie;
        }
        let hurries = !was_pressing && self.machine.is_expedited();
        if hurries {
            self.run_at_ns = 0;
        }
        Ok(hurries)
    }
}

/// The urgency for the delay function: a thread that waits is in a hurry, callbacks are not.
fn pressing(urgency: Urgency) -> Urgency {
    match urgency {
        Urgency::Background => Urgency::Normal,
        Urgency::Normal | Urgency::Expedited => Urgency::Expedited,
    }
}

/// A sequence of the SRCU machine, which has two state bits, as one with one state bit. (It has one
/// bit less to count with, which matters after 2^62 grace periods.)
pub(crate) fn of_srcu(sequence: srcu::Sequence) -> Sequence {
    let ended = Sequence::after(sequence.ended());
    if sequence.phase() == srcu::Phase::Idle { ended } else { ended.begin() }
}

fn cookie_of_srcu(cookie: srcu::Cookie) -> Cookie {
    let ended = srcu::Sequence::from_bits(cookie.to_bits()).ended();
    Cookie::done_at(Sequence::after(ended))
}

/// # Errors
/// If [`cookie_of_srcu`] never returns it: it has a bit that those cookies have not.
fn cookie_for_srcu(cookie: Cookie) -> Result<srcu::Cookie, NotGiven> {
    let ended = Sequence::from_bits(cookie.to_bits()).ended();
    let for_srcu = srcu::Cookie::done_at(srcu::Sequence::after(ended));
    if cookie_of_srcu(for_srcu) == cookie { Ok(for_srcu) } else { Err(NotGiven) }
}

impl Protocol {
    /// Asks for the grace period of `cookie`. Returns whether a driver that naps is to be woken.
    ///
    /// # Errors
    /// As [`Machine::require`].
    pub(crate) fn require(&mut self, cookie: Cookie, urgency: Urgency) -> Result<bool, NotGiven> {
        match self {
            Self::Threads(machine) => machine.require(cookie, urgency).map(|()| false),
            Self::Srcu(srcu) => srcu.require(cookie_for_srcu(cookie)?, urgency),
        }
    }

    /// Whether this machine can have given `cookie`: [`Sequence::has_given`].
    pub(crate) fn has_given(&self, cookie: Cookie) -> bool {
        match self {
            Self::Threads(machine) => machine.sequence().has_given(cookie),
            Self::Srcu(srcu) => cookie_for_srcu(cookie)
                .is_ok_and(|cookie| srcu.machine.sequence().has_given(cookie)),
        }
    }

    pub(crate) fn snapshot(&self) -> Cookie {
        match self {
            Self::Threads(machine) => machine.snapshot(),
            Self::Srcu(srcu) => cookie_of_srcu(srcu.machine.snapshot()),
        }
    }

    pub(crate) fn sequence(&self) -> Sequence {
        match self {
            Self::Threads(machine) => machine.sequence(),
            Self::Srcu(srcu) => srcu.sequence(),
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        match self {
            Self::Threads(machine) => machine.is_wanted(),
            Self::Srcu(srcu) => srcu.machine.is_wanted(),
        }
    }

    pub(crate) fn urgency(&self) -> Urgency {
        match self {
            Self::Threads(machine) => machine.urgency(),
            Self::Srcu(srcu) => srcu.urgency(),
        }
    }

    /// In a child process: the driver is gone.
    pub(crate) fn abandon(&mut self) {
        match self {
            Self::Threads(machine) => {
                machine.observe(Event::Abandoned).expect("fits every step");
            }
            // The next thread may repeat each of its steps.
            Self::Srcu(_) => {}
        }
    }
}
