//! What `cargo xtask` does, for those who want it from a program: the tests of `compat`.
