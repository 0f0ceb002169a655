//! The memory limit: the decisions of [`grace::limit`], with the words that threads share.

use grace::limit::{self, Amount, Context, LimitAction, limit_action};

use super::callbacks::{Contents, QueueId};
use super::options::Algorithm;
use super::world::{ThreadId, World};

impl World<'_> {
    /// Admits an object out of the thread's stock, or with more from the domain.
    pub(super) fn admit(&mut self, id: ThreadId, object: Amount) -> bool {
        if self.options.algorithm == Algorithm::Liburcu {
            return true; // it has no limit
        }
        let at = self.queue_of(id);
        if self.callbacks.queues[at].stock.take(object) {
            return true;
        }
        self.refill(at, object)
    }

    fn refill(&mut self, at: QueueId, object: Amount) -> bool {
        let limit = self.options.limit;
        self.pending_ns += self.options.costs.charge_ns();
        if !object.fits(limit) {
            let returned = self.callbacks.queues[at].stock.empty();
            self.uncharge(returned);
        }
        let chunk = limit::chunk(limit, self.callbacks.queues.len() as u64);
        self.callbacks.queues[at].chunk = chunk;
        for chunk in [chunk, Amount::NONE] {
            let queue = &mut self.callbacks.queues[at];
            let wanted = queue.stock.shortfall(object, chunk);
            if let Some(charged) = limit::admit(self.callbacks.charged, limit, wanted) {
                self.callbacks.charged = charged;
                queue.stock.clear_over_limit();
                queue.stock.grant(wanted);
                return queue.stock.take(object);
            }
        }
        false
    }

    pub(super) fn uncharge(&mut self, amount: Amount) {
        self.callbacks.charged = self.callbacks.charged.minus(amount);
    }

    /// Keeps no more of the limit than a thread may.
    pub(super) fn trim(&mut self, at: QueueId) {
        let chunk = limit::chunk(self.options.limit, self.callbacks.queues.len() as u64);
        let queue = &mut self.callbacks.queues[at];
        queue.chunk = chunk;
        let returned = queue.stock.give_back(Amount::NONE, chunk);
        self.uncharge(returned);
    }

    /// There is no room for an object of this thread, which is in no section: it waits. Returns
    /// the queue of which it runs callbacks then, if of any.
    pub(super) fn at_limit(&mut self, id: ThreadId, contents: Contents) -> Option<QueueId> {
        let at = self.queue_of(id);
        let action = limit_action(Context::Outside, &self.callbacks.queues[at].stock);
        let runs = action == LimitAction::WaitAndRun && contents == Contents::Objects;
        runs.then_some(at)
    }
}
