//! What can be told of the workspace from its files.

#[path = "../common/mod.rs"]
mod common;

mod borders;
mod budget;
mod documents;
mod modules;
mod tidy;
mod works_with;
