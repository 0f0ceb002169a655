//! `cargo xtask compat`: builds, installs and packages the liburcu-compatible libraries.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)] // see `say`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::facades::Facades;
use xtask::kernel::Kernel;
use xtask::noise::Noise;
use xtask::torture::Torture;
use xtask::{command, compat, deb, install, mutants, say};

/// Builds, installs and packages quiescence's liburcu-compatible libraries.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the libraries, headers and pkg-config files into target/compat.
    Compat,
    /// Build, and install below a prefix, where no program looks by itself.
    Install(install::Places),
    /// Build the command `rcu`, and install it with `rcu-torture`, its manual pages, and
    /// completions for bash, zsh and fish.
    InstallRcu {
        /// Where it is installed. Absolute.
        #[arg(long, value_name = "DIR", default_value = "/usr/local")]
        prefix: PathBuf,
    },
    /// Remove what `install` with the same places has put there. Builds nothing.
    Uninstall(install::Places),
    /// Build Debian packages: libquiescence-urcu0, -dev, and -default, with which all programs of
    /// liburcu run on them. Their maintainer is DEBFULLNAME and DEBEMAIL.
    Deb {
        /// Where the packages are put.
        #[arg(long, value_name = "DIR", default_value = "target/debian")]
        output: PathBuf,
        /// Which build of this version it is: the packages' version is VERSION-N.
        #[arg(long, value_name = "N", default_value_t = 1,
              value_parser = clap::value_parser!(u32).range(1..))]
        revision: u32,
    },
    /// Run the tests of crates from the registry with the crates of `facades/` in place of those
    /// that they ask for, and with these; write docs/WORKS_WITH.md. Fetches the crates. Minutes.
    Facades(Facades),
    /// Build the kernel of kernel/demo, boot it in an emulator of riscv64, and print what it says.
    Kernel(Kernel),
    /// Remove each step of verify/mutants/mutants.toml, break each promise of docs/GUARANTEES.md on
    /// purpose, and look whether what must notice does.
    Mutants(mutants::Run),
    /// Look whether figures of `rcu costs`, recommendations of `rcu advise` and verdicts of `rcu
    /// compare` are those of the idle machine while threads spin beside, and whether other seeds
    /// give the same recommendations. On a machine that does nothing else. Hours.
    Noise(Noise),
    /// Build, and try to catch the libraries in a mistake under a C program.
    Torture(Torture),
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::aside(format_args!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Compat => say::line(compat::build()?.display())?,
        Command::Install(places) => {
            let places = places.checked()?;
            install::install(&compat::build()?, &places)?;
        }
        Command::InstallRcu { prefix } => command::install(&prefix)?,
        Command::Uninstall(places) => install::uninstall(&places.checked()?)?,
        Command::Deb { output, revision } => {
            let build = deb::Build::from_environment(revision)?;
            let tree = compat::build()?;
            for package in deb::packages(&tree, &output, &build)? {
                say::line(package.display())?;
            }
        }
        Command::Facades(facades) => facades.run()?,
        Command::Kernel(kernel) => kernel.run()?,
        Command::Noise(noise) => noise.run()?,
        Command::Mutants(mutants) => mutants.run()?,
        Command::Torture(torture) => torture.run()?,
    }
    Ok(())
}
