//! Words of each CPU, which restartable sequences or atomic instructions write.
//!
//! - [`counters`]: counters with a word on each CPU.
//!
//! The sequences themselves are in [`os::percpu`](crate::os::percpu); what users get of them is in
//! [`sync`](crate::sync).
//!
//! May import: [`os`](crate::os), [`event`](crate::event).

pub(crate) mod counters;
