//! What the explorer finds, and what it must not find.

mod bucket;
mod engines;
mod hazard;
mod limit;
mod litmus;
mod mutants;
mod protocol;
mod rseq_read;
mod sequence;
mod srcu;
