//! The flavours, driven as the thin libraries drive them: records and words made by hand, the
//! readers' few instructions as programs have them inlined, and the core's functions with C's
//! signatures. Nothing here sleeps: what is not to end yet is polled for, and what must end is
//! waited for.

#[path = "../../../quiescence/tests/common/mod.rs"]
mod common;

mod bp;
mod c;
mod call_rcu;
mod defer;
mod environment;
mod fork;
mod hazard;
mod misuse;
mod qsbr;
mod readers;
mod sleepers;
