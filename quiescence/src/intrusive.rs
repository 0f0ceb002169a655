//! Concurrent structures whose nodes the caller brings along: they allocate nothing for what is put into them.
//!
//! They are laid out as liburcu's, and C programs use the same code by way of the crate `compat`.
