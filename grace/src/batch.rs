//! Batches of callbacks: when a thread's open callbacks are closed, how urgent their grace period
//! is, and how many ready callbacks run in one go. Numbers only, as in
//! [`segments`](crate::segments) and [`limit`](crate::limit).

use crate::limit::{Amount, Zone};
use crate::policy::Urgency;
use crate::worker::Wants;

/// Callbacks in a full batch, at most: they share the cost of one grace period. The thread that
/// fills a batch executes the grace period's fence, which interrupts the readers. That must affect
/// less than one update and one read in a thousand, to stay out of their 99.9th percentiles. A
/// longer batch saves little, and what waits then no longer fits into a CPU's own caches: an
/// object's memory is written when it is freed, and when the next object is made of it.
pub const BATCH: u64 = 8_192;

/// The same for objects, which their thread frees itself, while grace periods find no other reader
/// and cost next to nothing: the freed memory is still in the CPU's cache.
pub const BATCH_ALONE: u64 = 512;

/// The same in a domain of hazard pointers. Its grace period is a fence and a scan of all slots and
/// waits for no reader; memory that is freed soon is still in the CPU's cache. As with [`BATCH`],
/// the fence is to stay out of the 99.9th percentile of updates.
pub const BATCH_HAZARD: u64 = 2_048;

/// Bytes in a full batch, at most: the allocator is to have them again before it asks the system
/// for more. So objects of more than 2 KiB, of which fewer than a thousand are a batch, are exempt
/// from what [`BATCH`] says of fences and of 99.9th percentiles.
pub const BATCH_BYTES: u64 = 2 << 20;

/// A full batch is at most `limit / BATCH_SHARE`: one batch that waits, one that is being filled
/// and one that is being run must fit with room to spare.
const BATCH_SHARE: u64 = 8;

/// `ready >> RUN_SHIFT` callbacks are run in one go, if many are ready; the kernel's `rcu_divisor`.
const RUN_SHIFT: u32 = 7;

/// Callbacks that are run between two reads of the clock.
pub const RUN_CHUNK: u64 = 32;

/// Callbacks that are run in one go without reading the clock, at most.
pub const RUN_UNTIMED: u64 = 2 * RUN_CHUNK;

/// After this many additions without tending its queue a thread tends it at the next one. A tending
/// has a cost of its own, some 600 instructions; but all that it frees delays one update.
pub const TEND_EVERY: u32 = 16;

/// A round: how many callbacks a thread adds from one tending of its queue to the next one, and how
/// many it runs then.
pub const ROUND: (u64, u64) = (TEND_EVERY as u64 + 1, run_share(TEND_EVERY as u64));

/// The round in a domain with this limit, which may be one of hazard pointers, if what is freed
/// `is_plain` memory that the thread keeps, or not.
///
/// To free a block of that takes about a nanosecond, and a tending of its own as long as forty. So
/// rounds are long, except where the limit is small: there a thread would come to it within a few
/// rounds, and wait. In a domain of hazard pointers what is freed goes to the allocator, of which
/// glibc's keeps seven blocks of a size for each thread: in a round a thread makes as many as
/// those, so most are made and freed without the allocator's lock.
///
/// ```
/// use grace::batch::{ROUND, round};
/// use grace::limit::Amount;
///
/// let limit = Amount { objects: 65_536, bytes: 16 << 20 };
/// assert_eq!(round(true, false, limit), (7, 8));
/// assert_eq!(round(false, true, limit), (33, 37));
/// assert_eq!(round(false, true, Amount { objects: 200, ..limit }), ROUND);
/// assert_eq!(round(false, false, limit), (17, 19));
/// ```
pub const fn round(is_hazard: bool, is_plain: bool, limit: Amount) -> (u64, u64) {
    let is_long = is_plain && limit.objects >= 33 << 8 && limit.bytes >= 33 << 18;
    let round = if is_long { (33, run_share(32)) } else { ROUND };
    if is_hazard { (7, run_share(7)) } else { round }
}

/// How many callbacks a thread runs that has added `added` since it last ran some: a few more than
/// `added`, so that a thread that keeps retiring catches up; and not many more, so that it frees
/// about as much memory as it needs next.
///
/// ```
/// use grace::batch::{ROUND, TEND_EVERY, run_share};
///
/// assert_eq!(run_share(TEND_EVERY.into()), ROUND.1);
/// assert_eq!(run_share(64), 73);
/// assert_eq!(run_share(1), 2, "always more than were added");
/// ```
pub const fn run_share(added: u64) -> u64 {
    added.saturating_add(added / 8 + 1)
}

/// How long callbacks wait for more to share a grace period with, by default, in nanoseconds.
pub const LAZY_NS: u64 = 100_000_000;

/// The same in a domain of hazard pointers, whose grace periods wait for no reader. An object that
/// is replaced there is a value of its own, and may be large.
pub const LAZY_HAZARD_NS: u64 = 4_000_000;

/// The number of callbacks that a go runs if not many are ready, by default.
pub const RUN_MIN: u64 = 32;

/// The longest time that a thread runs callbacks in one go, by default, in nanoseconds.
pub const RUN_NS: u64 = 3_000_000;

/// Whether a thread's `open` callbacks, of `open_bytes` bytes together, are a full batch: `batch`
/// callbacks, [`BATCH_BYTES`], or an eighth of the limit. (Those that wait for a grace period
/// already do not count: else a thread with many of them would ask for a grace period after every
/// few additions.)
///
/// ```
/// use grace::batch::{BATCH, BATCH_BYTES, is_full};
/// use grace::limit::Amount;
///
/// let limit = Amount { objects: 32_768, bytes: 64 << 20 };
/// assert!(!is_full(4_095, 0, BATCH, limit));
/// assert!(is_full(4_096, 0, BATCH, limit)); // an eighth of the limit
/// assert!(is_full(1, BATCH_BYTES, BATCH, limit));
/// assert!(is_full(1, 2 << 10, BATCH, Amount { objects: 32_768, bytes: 16 << 10 }));
/// assert!(!is_full(1, 64, BATCH, limit));
/// ```
pub const fn is_full(open: u64, open_bytes: u64, batch: u64, limit: Amount) -> bool {
    let many = open >= batch || open >= limit.objects / BATCH_SHARE;
    let large = open_bytes >= BATCH_BYTES || open_bytes >= limit.bytes / BATCH_SHARE;
    open != 0 && (many || large)
}

/// How urgent the grace period of a full batch is, in a domain in this zone.
pub const fn urgency(zone: Zone) -> Urgency {
    match zone {
        Zone::Free => Urgency::Normal,
        Zone::Expedite | Zone::Full => Urgency::Expedited,
    }
}

/// How many of `ready` callbacks are run in one go: `least`, or `ready / 128` if that is more and
/// `ready > 2 * batch`; at most `ready`. `batch` is [`BATCH`], or less in a model.
///
/// ```
/// use grace::batch::{BATCH, in_one_go};
///
/// assert_eq!(in_one_go(10, 32, BATCH), 10);
/// assert_eq!(in_one_go(16_000, 32, BATCH), 32);
/// assert_eq!(in_one_go(128_000, 32, BATCH), 1_000);
/// ```
pub const fn in_one_go(ready: u64, least: u64, batch: u64) -> u64 {
    let many = if ready > batch.saturating_mul(2) { ready >> RUN_SHIFT } else { 0 };
    let many = if least > many { least } else { many };
    if many < ready { many } else { ready }
}

/// Whether a thread that runs `claimed` callbacks in one go reads the clock after every
/// [`RUN_CHUNK`] of them.
pub const fn is_timed(claimed: u64) -> bool {
    claimed > RUN_UNTIMED
}

/// Whether a thread outside of any section that has just tended its queue, and run `ran` callbacks,
/// also takes steps of the grace period. (`wants` is called only if it matters: the library takes a
/// lock for it.)
pub fn advances(ran: u64, wants: impl FnOnce() -> Wants) -> bool {
    ran == 0 && wants() == Wants::Looks
}
