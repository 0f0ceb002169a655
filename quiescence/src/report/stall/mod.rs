//! Stalls: grace periods that do not end, reported while they last.
//!
//! [`gp::stall`](crate::gp::stall) decides when a report is due. [`reporter`] makes the [`report`],
//! with stacks whose frames [`places`] resolves to files and offsets, and calls the [`hook`].

pub(crate) mod hook;
mod places;
pub(crate) mod report;
pub(crate) mod reporter;
