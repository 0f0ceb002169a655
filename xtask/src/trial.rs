//! A trial of `rcu compare`: does it catch a regression that is planted, and none where there is
//! none?
//!
//! The program is compared with itself. In some tries the candidate does more work than it counts.
//! It takes minutes and measures, and so is no part of CI.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::tools::run;

/// How often, and with what.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Tries with a regression.
    pub planted: u32,
    /// Tries without.
    pub alike: u32,
    /// The size of the regression.
    pub percent: f64,
    /// What is measured.
    pub load: String,
    /// Seconds for each try.
    pub seconds: u32,
}

/// What came out of some tries, by exit code of the command.
#[derive(Debug, Default)]
struct Tally {
    not_worse: u32,
    worse: u32,
    undecided: u32,
}

impl Trial {
    /// Builds the command, and tries.
    ///
    /// # Errors
    /// If fewer than nine of ten regressions are caught, or there is a false alarm.
    pub fn run(&self) -> Result<()> {
        run(Command::new(env!("CARGO")).args(["build", "--release", "--package", "rcu"]))?;
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        let program = Path::new(&target).join("release/rcu");
        let alike = self.tries(&program, self.alike, 0.0)?;
        let planted = self.tries(&program, self.planted, self.percent)?;
        ensure!(alike.worse == 0, "{} false alarms", alike.worse);
        let missed = self.planted - planted.worse;
        ensure!(10 * missed <= self.planted, "{missed} regressions were not caught");
        Ok(())
    }

    fn tries(&self, program: &Path, tries: u32, percent: f64) -> Result<Tally> {
        let mut tally = Tally::default();
        for seed in 1..=tries {
            let mut command = Command::new(program);
            command.args(["compare", &self.load, "--with"]).arg(program);
            command.args(["--seed", &seed.to_string(), "--time", &self.seconds.to_string()]);
            command.args(["--plant", &percent.to_string()]);
            let output = command.output().context("cannot run rcu")?;
            match output.status.code() {
                Some(0) => tally.not_worse += 1,
                Some(1) => tally.worse += 1,
                Some(125) => tally.undecided += 1,
                _ => bail!("rcu compare: {}", String::from_utf8_lossy(&output.stderr)),
            }
        }
        let Tally { not_worse, worse, undecided } = tally;
        println!(
            "{percent} % planted, {tries} tries: {worse} worse, {not_worse} not worse, {undecided} \
             undecided"
        );
        Ok(tally)
    }
}
