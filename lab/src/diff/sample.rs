//! Samples of a load: by `perf` where it is there and permitted, else by a timer's signal.
//!
//! The signal is sent to the program that is sampled by itself: `rcu --sample FILE bench ...`, an
//! option that is not shown, writes collapsed stacks when the command is over. Another program can
//! be sampled so if it is a version of `rcu` that has this option.

use std::process::{Command, Output};

use super::stacks::Profile;
use crate::compare::load::{Load, Program, Run, run};
use crate::exit::{Exit, Failure, Result};

/// How samples are taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(super) enum Sampler {
    /// `perf record`
    Perf,
    /// SIGPROF, in programs that are versions of rcu
    Signal,
}

impl Sampler {
    /// `perf`, if a trial says that it is there and permitted.
    pub(super) fn choose() -> Sampler {
        let trial = run(&mut perf("record --quiet --event cpu-clock:u --output /dev/null -- true"));
        match trial.is_ok_and(|output| output.status.success()) {
            true => Sampler::Perf,
            false => Sampler::Signal,
        }
    }

    /// Runs the load, and reads its samples and its figures.
    pub(super) fn sample(self, load: &Load, program: &Program) -> Result<(Profile, Run)> {
        let folder = tempfile::tempdir()
            .map_err(|error| Failure::io("cannot make a folder for samples", error))?;
        let data = folder.path().join("samples");
        let mut command = Command::new(&program.path);
        command.args(load.arguments(false));
        match self {
            Sampler::Signal => {
                command.arg("--sample").arg(&data);
            }
            Sampler::Perf => {
                let mut record = perf("record --quiet --event cpu-clock:u --freq 499");
                record.args(["--call-graph", "dwarf,8192", "--output"]).arg(&data).arg("--");
                record.arg(command.get_program()).args(command.get_args());
                command = record;
            }
        }
        let output = run(&mut command)?;
        let document = serde_json::from_slice(&output.stdout).map_err(|_| said(load, &output))?;
        let told = Run::of(&document).map_err(Failure::undecided)?;
        if self == Sampler::Signal {
            return Ok((Profile::read(&data)?, told));
        }
        let mut script = perf("script --fields comm,tid,time,ip,sym,dso --input");
        let script = run(script.arg(&data))?;
        let profile = Profile::parse(&String::from_utf8_lossy(&script.stdout));
        let wrong = |reason| Failure::undecided(format!("{load}: perf script: {reason}"));
        Ok((profile.map_err(wrong)?, told))
    }
}

fn perf(words: &str) -> Command {
    let mut command = Command::new("perf");
    command.args(words.split(' '));
    command
}

fn said(load: &Load, output: &Output) -> Failure {
    let text = String::from_utf8_lossy(&output.stderr);
    let message = format!("{load}: {}\n{}", output.status, text.trim());
    let is_unsupported = output.status.code() == Some(Exit::Unsupported as i32);
    Failure::because(if is_unsupported { Exit::Unsupported } else { Exit::Usage }, message)
}
