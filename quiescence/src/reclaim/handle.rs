//! References to a domain: those that keep it alive, and those that only remember it.

use std::ops::Deref;
use std::ptr;
use std::sync::{Arc, Weak};

use crate::reclaim::by_address::HasAddress;
use crate::reclaim::domain_state::DomainState;

/// A domain that is kept alive.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub enum Handle {
    /// It lives for ever.
    Static(&'static DomainState),
    /// It lives while a handle to it exists.
    Shared(Arc<DomainState>),
}

impl Deref for Handle {
    type Target = DomainState;

    fn deref(&self) -> &DomainState {
        match self {
            Self::Static(core) => core,
            Self::Shared(core) => core,
        }
    }
}

impl Handle {
    pub(crate) fn downgrade(&self) -> WeakHandle {
        match self {
            Self::Static(core) => WeakHandle::Static(core),
            Self::Shared(core) => WeakHandle::Shared(Arc::downgrade(core)),
        }
    }
}

/// A domain that is remembered without being kept alive.
#[derive(Clone, Debug)]
pub(crate) enum WeakHandle {
    Static(&'static DomainState),
    Shared(Weak<DomainState>),
}

impl WeakHandle {
    pub(crate) fn upgrade(&self) -> Option<Handle> {
        match self {
            Self::Static(core) => Some(Handle::Static(core)),
            Self::Shared(core) => core.upgrade().map(Handle::Shared),
        }
    }

    /// A reference that keeps the domain alive; `None` if it has ended, or lives for ever.
    pub(crate) fn keep(&self) -> Option<Arc<DomainState>> {
        match self {
            Self::Static(_) => None,
            Self::Shared(core) => core.upgrade(),
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        match self {
            Self::Static(_) => true,
            Self::Shared(core) => core.strong_count() != 0,
        }
    }

    /// The address, which no other domain gets while `self` exists.
    pub(crate) fn as_ptr(&self) -> *const DomainState {
        match self {
            Self::Static(core) => ptr::from_ref(*core),
            Self::Shared(core) => core.as_ptr(),
        }
    }
}

impl HasAddress for WeakHandle {
    type Of = DomainState;

    fn address(&self) -> *const DomainState {
        self.as_ptr()
    }
}

/// A type that names a domain: a [`Handle`], or one of the types by which users name domains.
pub(crate) trait Named {
    /// The domain.
    fn core(&self) -> &DomainState;

    /// The domain, kept alive.
    fn handle(&self) -> Handle;
}

impl Named for Handle {
    fn core(&self) -> &DomainState {
        self
    }

    fn handle(&self) -> Handle {
        self.clone()
    }
}
