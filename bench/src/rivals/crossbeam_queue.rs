//! crossbeam-queue: its unbounded queue, a list of blocks of slots.

use crossbeam_queue::SegQueue;

use super::{About, Family, Rival};
use crate::advise::{Value, queueing};

pub(super) const RIVALS: &[Rival] =
    &[Rival::new("crossbeam-queue").about(&ABOUT).queue::<SegQueue<Value>>()];

const ABOUT: About = About {
    family: Family::LockFree,
    idea: "a queue of blocks with 31 slots; a counter at each end",
    reader_cost: "a compare-and-swap of the head's counter, which all takers share",
    limits: "a thread that is stopped in the midst of a push: the takers of its slot wait for it",
};

queueing!(SegQueue);
