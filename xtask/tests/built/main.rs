//! What `cargo xtask` builds, installs and packages.

mod clients;
mod install;
mod packages;
mod targets;
