//! Stalls: grace periods that do not end, told of while they do not.
//!
//! The driver of grace periods says when a report is due ([`gp::stall`](crate::gp::stall)).
//! [`reporter`] makes the [`report`], with stacks whose frames [`places`] finds in their files, and
//! calls the [`hook`].

pub(crate) mod hook;
mod places;
pub(crate) mod report;
pub(crate) mod reporter;
