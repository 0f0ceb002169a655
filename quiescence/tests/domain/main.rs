//! Domains and what is read, replaced and retired in them.

#[path = "../common/mod.rs"]
mod common;

mod changes;
mod compiler;
mod corners;
mod counts;
mod derive;
mod engines;
mod epoch;
mod hazard;
mod limits;
mod misuse;
mod readers;
mod reading;
mod srcu;
mod updates;
