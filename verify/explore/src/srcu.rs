//! SRCU, explored: the real [`grace::srcu::SrcuMachine`] against readers that count themselves in
//! and out of two indexes on whatever CPU they are on.
//!
//! As the rest of this crate, but its readers belong to no slot: the memory's actors are *CPUs*,
//! each with its store buffer or its view, and readers are tasks that run on them and may migrate
//! between any two steps (a context switch is a full barrier there, and hands on what was seen).
//! The race that SRCU is made for is in the model: a reader looks up the index, stalls for as long
//! as it likes, and counts itself in only then. The counts are sums over CPUs, read one by one.
//!
//! `worlds/srcu.toml` lists every step of the machine and every fence of SRCU with what comes of
//! leaving it out.
//!
//! The machine is also explored by itself, in the tests of `grace`: requests, ticks and events in
//! every order.
//!
//! # What it confirms
//!
//! **The first scan is needed** though the index was seen drained after the flip before: without it
//! a reader that looked it up long ago, and counts itself in only now, is in an index that becomes
//! current and that no thread looks at (`srcu-without-first-scan`). **Unlocks are summed
//! before locks.**
//!
//! **Fence A is needed on x86 too**, between two sums of loads that x86 does not reorder: it also
//! keeps the publication from staying in a store buffer while the first scan passes. B is needed on
//! both, C under the weak model only.
//!
//! **Fences D and E, around the flip, are not needed for safety or progress here**, not even both:
//! fence A orders what they order. (Whether E does anything was asked on linux-kernel in
//! December 2022. What D is for besides, a bound on how often a reader may still find the old
//! index, so that counters cannot overflow within a scan, is out of scope.)
//!
//! # What it does not do
//!
//! Few readers, few grace periods, no wrap of counters. The worker is an actor of its own.

use std::sync::LazyLock;

use crate::harness::{self, World};
use crate::machine;

/// SRCU, as a world.
pub static SRCU: LazyLock<World> =
    LazyLock::new(|| machine::world("srcu-", harness::table!("srcu")));
