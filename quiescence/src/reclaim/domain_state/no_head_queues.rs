//! In place of [`head_queue`](super::head_queue), without the feature `call_rcu`: a domain has no
//! callback queues whose heads the caller brings along.

use grace::limit::Amount;

use crate::event::statistics::Callbacks;
use crate::gp::grace_periods::Me;
use crate::os::forking::Wanted;
use crate::reclaim::domain_state::DomainState;

#[derive(Debug)]
pub(crate) struct CallbackQueues;

pub(crate) struct Barrier;

impl CallbackQueues {
    pub(crate) const fn new() -> Self {
        Self
    }

    pub(crate) fn counts(&self) -> Callbacks {
        Callbacks::default()
    }

    pub(crate) fn begin_barrier(&self) -> Barrier {
        Barrier
    }

    pub(crate) fn hold(&self, _: &mut Wanted<'_, '_>) {}

    pub(crate) fn after_fork(&self) -> Amount {
        Amount::NONE
    }
}

impl Barrier {
    pub(crate) fn finish(self, _: &DomainState, _: impl Fn() -> Me) {}
}
