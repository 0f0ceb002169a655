//! Cookies: grace periods that are asked for now, and whose end is asked for later.

use std::panic::Location;

use grace::Urgency;

use crate::domain::tag::DomainTag;
use crate::domain::{domain::Domain, own_section::may_wait};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::worker;

/// Identifies a full grace period of one domain, so that you can ask later whether it has ended.
///
/// Returned by [`Domain::start_poll`], which requests the grace period, and by [`Domain::cookie`],
/// which does not.
///
/// Source: the kernel's `start_poll_synchronize_rcu` and `get_state_synchronize_rcu` (Paul E.
/// McKenney).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a cookie is for poll() or wait()"]
pub struct Cookie {
    cookie: grace::Cookie,
    domain: usize,
}

impl Cookie {
    /// The cookie as a number, for interfaces that cannot pass a `Cookie`.
    /// [`Domain::cookie_from_bits`] turns it back into one.
    pub const fn to_bits(self) -> u64 {
        self.cookie.to_bits()
    }
}

impl<K: DomainTag> Domain<K> {
    /// Requests a full grace period that begins now or later, without waiting for it.
    ///
    /// Pass the cookie to [`poll`](Self::poll) or [`wait`](Self::wait). This call does as much of
    /// the work as it can without waiting for readers or, under
    /// [`Engine::Tick`](crate::tuning::Engine::Tick), for the tick. That may be a whole grace
    /// period, including its fence. The rest is done by the next thread that updates or waits, or
    /// by `poll`; under engines other than [`Engine::Adaptive`](crate::tuning::Engine::Adaptive),
    /// by the worker. In a child made by `fork` the worker starts with the first such call there,
    /// even of `poll`. May be called inside a section.
    pub fn start_poll(&self) -> Cookie {
        let cookie = self.core().grace_periods.lock().request(Urgency::Normal);
        worker::advance_for_now(self.tag());
        self.named(cookie)
    }

    /// Returns the cookie of a full grace period that begins now or later, without requesting one.
    /// If no thread requests one, [`poll`](Self::poll) stays `false`; [`wait`](Self::wait) requests
    /// it.
    pub fn cookie(&self) -> Cookie {
        self.named(self.core().grace_periods.snapshot())
    }

    /// Returns whether the grace period of `cookie` has ended. If it is in progress and no thread
    /// drives it, this call takes one step of it; under an engine that works at the tick, it leaves
    /// that to the worker. Never waits.
    ///
    /// # Panics
    /// If the cookie belongs to another domain.
    #[track_caller]
    pub fn poll(&self, cookie: Cookie) -> bool {
        let core = self.core();
        let wanted = self.own(cookie);
        if core.grace_periods.sequence().is_done(wanted) {
            return true;
        }
        worker::advance_for_now(self.tag());
        core.grace_periods.sequence().is_done(wanted)
    }

    /// Waits until the grace period of `cookie` has ended, and requests it if no thread has.
    ///
    /// # Panics
    /// If the cookie belongs to another domain, or if its grace period has not ended and the
    /// calling thread is in a section of this domain.
    #[track_caller]
    pub fn wait(&self, cookie: Cookie) {
        wait(self.core(), self.own(cookie), "wait", Location::caller());
    }

    /// Returns the cookie of this domain whose [`Cookie::to_bits`] is `bits`.
    ///
    /// When it is handed out, a cookie is at most two grace periods ahead; later it falls behind.
    /// So a number further ahead is no cookie of this domain, and is refused: a thread that waited
    /// for its grace period would wait practically forever. A number from another domain that is
    /// behind cannot be recognised: it counts as a grace period that ended long ago.
    ///
    /// Takes a lock for a moment, unless the grace period has ended.
    ///
    /// # Panics
    /// If this domain cannot have handed it out; see
    /// [`try_cookie_from_bits`](Self::try_cookie_from_bits).
    ///
    /// ```
    /// let domain = quiescence::Domain::global();
    /// let bits = domain.start_poll().to_bits();
    /// domain.wait(domain.cookie_from_bits(bits));
    /// ```
    #[track_caller]
    pub fn cookie_from_bits(&self, bits: u64) -> Cookie {
        let cookie = self.try_cookie_from_bits(bits);
        cookie.unwrap_or_else(|| panic!("quiescence: {bits:#x}: {}", grace::NotGiven))
    }

    /// Like [`cookie_from_bits`](Self::cookie_from_bits); returns `None` for a number that this
    /// domain cannot have handed out.
    ///
    /// ```
    /// let domain = quiescence::Domain::new();
    /// assert!(domain.try_cookie_from_bits(1 << 40).is_none());
    /// ```
    pub fn try_cookie_from_bits(&self, bits: u64) -> Option<Cookie> {
        let cookie = grace::Cookie::from_bits(bits);
        self.core().grace_periods.has_given(cookie).then(|| self.named(cookie))
    }

    fn named(&self, cookie: grace::Cookie) -> Cookie {
        Cookie { cookie, domain: self.core().grace_periods.observers.identity() }
    }

    #[track_caller]
    pub(crate) fn own(&self, cookie: Cookie) -> grace::Cookie {
        assert!(
            cookie.domain == self.core().grace_periods.observers.identity(),
            "quiescence: this cookie is another domain's"
        );
        cookie.cookie
    }
}

/// Waits until the grace period of `cookie` has ended; the user has called `what`.
pub(crate) fn wait(
    core: &DomainState,
    cookie: grace::Cookie,
    what: &str,
    location: &'static Location<'static>,
) {
    while !core.grace_periods.sequence().is_done(cookie) {
        // Not done if a waker has begun a section on this thread meanwhile: `may_wait` panics now.
        let me = may_wait(core, what, location);
        let _: bool = core.grace_periods.wait(cookie, Urgency::Normal, me);
    }
}
