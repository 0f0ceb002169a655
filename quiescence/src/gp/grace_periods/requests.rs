//! Which cookie a request gets, and whether a wait is over: an error here frees too early. What
//! goes on meanwhile is in the files around this one, and nothing is taken from them: after a wait
//! the domain's own sequence is asked.

use grace::{Cookie, Urgency};

use super::handover::Patience;
use super::{GracePeriods, Locked, Me};

impl Locked<'_> {
    /// Asks for a full grace period from now on; a thread must drive it.
    pub(crate) fn request(&mut self, urgency: Urgency) -> Cookie {
        let cookie = self.machine().snapshot();
        assert!(self.require(cookie, urgency).is_ok(), "a snapshot of now is the machine's");
        //~ served-by-the-present
        cookie
    }
}

impl GracePeriods {
    /// Asks for a full grace period from now on; a thread must drive it.
    pub(crate) fn request(&self, urgency: Urgency) -> Cookie {
        self.lock().request(urgency)
    }

    /// As [`request`](Self::request), but `None` if another thread holds the lock: the worker does
    /// not wait.
    pub(crate) fn request_unless_busy(&self, urgency: Urgency) -> Option<Cookie> {
        Some(self.try_lock()?.request(urgency))
    }

    /// The cookie of a full grace period from now on, without asking for it.
    pub(crate) fn snapshot(&self) -> Cookie {
        self.lock().machine().snapshot() // [GP-9]
    }

    /// Waits for a full grace period. The caller is in no section of this domain. Returns whether
    /// it has ended, as [`wait`](Self::wait).
    #[must_use]
    pub(crate) fn synchronize(&self, urgency: Urgency, me: Me) -> bool {
        let mut state = self.lock();
        let cookie = state.request(urgency);
        self.drive_until(state, cookie, me, Patience::NEW);
        self.sequence().is_done(cookie) //~ no-sharing
    }

    /// Waits until `cookie` is done, driving the machine if no thread does. Returns false if it is
    /// not: a waker has begun a section on this thread meanwhile, which the grace period might wait
    /// for.
    ///
    /// # Panics
    /// If the cookie is not this domain's: it might never be done.
    #[must_use]
    pub(crate) fn wait(&self, cookie: Cookie, urgency: Urgency, me: Me) -> bool {
        let mut state = self.lock();
        if let Err(not_given) = state.require(cookie, urgency) {
            drop(state);
            panic!("quiescence: {not_given}");
        }
        self.drive_until(state, cookie, me, Patience::NEW);
        self.sequence().is_done(cookie) //~ no-sharing
    }
}
