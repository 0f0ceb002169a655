//! crossbeam-queue: its unbounded queue, a list of blocks of slots.

use crossbeam_queue::SegQueue;

use super::Rival;
use crate::shapes::{Value, queueing};

pub(super) const RIVALS: &[Rival] = &[Rival::new("crossbeam-queue").queue::<SegQueue<Value>>()];

queueing!(SegQueue);
