//! The command `rcu`: measures a machine and a workload, and says which synchronisation fits.
//!
//! Reading order: [`exit`], [`interrupt`] and [`output`] are what every command shares;
//! [`machine`] and [`costs`] describe where we run; [`keys`], [`workload`] and [`draw`] make the
//! input; [`advise`] runs every design on it; [`bench`] measures our own promises.

#![forbid(unsafe_code)]

mod exit;
mod interrupt;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::{Exit, Failure};
use interrupt::Interrupt;
use output::{Output, OutputArgs};

fn main() -> ExitCode {
    ExitCode::from(0)
}
