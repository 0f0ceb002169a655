//! Grace periods on thousands of virtual processors.
//!
//! Discrete events in integer virtual time: the same seed and options give the same bytes on any
//! machine. The engines are those of `grace`, the very same code that the library runs and the
//! explorer explores; what is modelled here is the machine around them.
#![forbid(unsafe_code)]

pub mod events;
pub mod queueing;
pub mod random;
pub mod replay;
pub mod srcu;
