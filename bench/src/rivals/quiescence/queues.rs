//! The library's queue, and its stack, which has no order but is a pool as well. Both wait in the
//! same domain.

use quiescence::collections::{Queue, Stack};

use crate::shapes::queueing;

queueing!(Queue, flush: quiescence::barrier());
queueing!(Stack, flush: quiescence::barrier());
