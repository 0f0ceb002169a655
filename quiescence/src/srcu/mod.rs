//! Grace periods of sleepable domains: the counters of their readers, and their driver.
//!
//! - [`counts`]: the two pairs of counters, and how a reader counts itself in and out.
//! - [`driver`]: drives their grace periods, by SRCU's machine.
//! - [`track`]: the list of guards, if a domain is asked to keep one.
//!
//! The domain that users hold is [`Srcu`](crate::Srcu), in `domain/srcu.rs`.
//!
//! May import: [`os`](crate::os), [`event`](crate::event), [`percpu`](crate::percpu),
//! [`gp`](crate::gp).

pub(crate) mod counts;
pub(crate) mod driver;
pub(crate) mod track;

pub(crate) use counts::{Index, OwnSrcuCounts, Place, Section, SrcuCounts};
