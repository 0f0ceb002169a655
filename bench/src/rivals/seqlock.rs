//! The crate seqlock: readers of a few words try again when a writer came between.

use seqlock::SeqLock;

use super::Rival;
use crate::serve::copied;

pub(super) const RIVALS: &[Rival] = &[Rival::new("seqlock").cell::<SeqLock<[u64; 4]>>()];

copied! { SeqLock::new, |lock| lock.read(), |lock, words| *lock.lock_write() = words; }
