//! What is installed, and how a program is built with it.

#[path = "../common/scratch.rs"]
mod common;

mod archives;
mod examples;
mod manual;
