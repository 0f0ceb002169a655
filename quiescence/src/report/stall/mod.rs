//! Stalls: grace periods that do not end, told of while they do not.
//!
//! The driver of grace periods says when a report is due ([`gp::stall`](crate::gp::stall)).
//! [`reporter`] makes the [`report`], with stacks whose frames [`places`] finds in their files, and
//! calls the [`hook`].

#[cfg(not(loom))]
pub(crate) mod hook;
#[cfg(not(loom))]
mod places;
#[cfg(not(loom))]
pub(crate) mod report;
#[cfg(not(loom))]
pub(crate) mod reporter;
