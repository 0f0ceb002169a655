//! What a callback queue counts and has been granted of its domain's limit [L-2].

use std::sync::atomic::Ordering::Relaxed;

use grace::limit::{Amount, Zone};

use super::{BYTES_A_HEAD, Inner, MANY, Shared, Wakes, block};
use crate::reclaim::domain_state::DomainState;

impl Shared {
    /// The calling thread has pushed a block, or is about to: counts it, and has it granted.
    /// Returns whether that goes over the limit, and threads that push may wait for room.
    #[cold]
    pub(super) fn count_block(&self, domain: &DomainState) -> bool {
        let front = &self.front.0;
        let chunk = heads(domain.chunk());
        // Relaxed: a block that is begun in a round which ends meanwhile is counted twice, and put
        // right by the next one.
        let count = block::begin(front.id, chunk, front.rounds.load(Relaxed));
        // Relaxed: a count, of which no other memory depends; what is taken corrects it [L-2].
        let counted = front.pushed.fetch_add(count, Relaxed) + count;
        // Relaxed, all: hints; a runner that is not told wakes by itself.
        if self.has_little.load(Relaxed)
            && counted.saturating_sub(self.finished.load(Relaxed)) >= MANY
            && self.has_little.swap(false, Relaxed)
            && front.wakes == Wakes::Runner
        {
            front.llist.ring();
        }
        // Relaxed: a look at an old value has more granted than is needed, never less.
        let missing = counted.saturating_sub(front.granted.load(Relaxed));
        let is_over = missing != 0 && self.grant(domain, missing, chunk);
        if is_over {
            block::is_crowded();
        }
        // Where others wait for room a thread that has had its share waits, too [L-4].
        let has_had_its_share =
            domain.callback_queues.waiting_room.is_used() && block::share_is_used();
        front.wakes == Wakes::Runner && (is_over || has_had_its_share)
    }

    /// Has room for so many heads, charged to the domain; for a chunk, if there is that much.
    /// Returns whether that goes over the limit.
    fn grant(&self, domain: &DomainState, missing: u64, chunk: u64) -> bool {
        let front = &self.front.0;
        for heads in [chunk.max(missing), missing] {
            if domain.admit(amount(heads)) {
                front.granted.fetch_add(heads, Relaxed);
                return false;
            }
        }
        self.hurry();
        domain.admit_over(amount(missing));
        front.granted.fetch_add(missing, Relaxed);
        true
    }

    /// What was taken has been counted link by link: all that was pushed by then, and no more. So
    /// the count is corrected, and what was not granted yet is [L-2].
    pub(super) fn correct(&self, domain: &DomainState, inner: &mut Inner) {
        //~ uncounted-push
        let front = &self.front.0;
        // Relaxed: under the lock; who counts a block finds out that some of it is counted here.
        front.rounds.store(front.rounds.load(Relaxed) + 1, Relaxed);
        // More or less than nothing. Relaxed: a block that is counted between the look at the count
        // and the llist is counted twice, until the next time.
        front.pushed.fetch_add(inner.taken.wrapping_sub(inner.counted), Relaxed);
        inner.counted = inner.taken;
        let missing = inner.taken.saturating_sub(front.granted.load(Relaxed));
        if missing != 0 {
            self.grant(domain, missing, missing);
        }
    }

    /// So many heads are about to run: what they were charged is kept for the next ones, as far as
    /// a callback queue keeps any, or given back.
    pub(super) fn give_back(&self, domain: &DomainState, count: u64) {
        let front = &self.front.0;
        let unused = front.granted.load(Relaxed).saturating_sub(front.pushed.load(Relaxed));
        let kept = match domain.zone() {
            Zone::Free => count.min(heads(domain.chunk()).saturating_sub(unused)),
            Zone::Expedite | Zone::Full => 0,
        };
        front.granted.fetch_add(kept, Relaxed);
        // Blocks that were counted twice for a while have had more granted than is needed. A push
        // that has found that before is made good when it is taken.
        let excess = unused.saturating_sub(heads(domain.chunk()));
        front.granted.fetch_sub(excess, Relaxed);
        domain.charge.give_back(amount(count - kept + excess));
    }
}

/// What so many heads count for.
pub(crate) fn amount(heads: u64) -> Amount {
    Amount { objects: heads, bytes: heads.saturating_mul(BYTES_A_HEAD) }
}

/// How many heads count for so much, at most.
pub(super) fn heads(amount: Amount) -> u64 {
    amount.objects.min(amount.bytes / BYTES_A_HEAD)
}
