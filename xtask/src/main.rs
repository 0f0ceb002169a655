//! `cargo xtask compat`: builds, installs and packages the liburcu-compatible libraries.

fn main() {}
