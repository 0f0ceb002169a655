//! Samples of a load: by `perf` where it is there and permitted, else by a timer's signal.
//!
//! The signal is sent to the program that is sampled by itself: `rcu --sample FILE bench ...`, an
//! option that is not shown, writes collapsed stacks when the command is over. Another program can
//! be sampled so if it is a version of `rcu` that has this option.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::stacks::Profile;
use crate::compare::load::{Load, Program, Run};
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
        let mut trial = Command::new("perf");
        trial.args(["record", "--quiet", "--event", "cpu-clock:u", "--output", "/dev/null"]);
        let trial = trial.args(["--", "true"]).stdin(Stdio::null()).output();
        if trial.is_ok_and(|output| output.status.success()) {
            Sampler::Perf
        } else {
            Sampler::Signal
        }
    }

    /// Runs the load, and reads its samples and its figures.
    pub(super) fn sample(
        self,
        load: &Load,
        program: &Program,
        folder: &Path,
    ) -> Result<(Profile, Run)> {
        let data = folder.join("samples");
        let mut command = match self {
            Sampler::Perf => {
                let mut command = Command::new("perf");
                command.args(["record", "--quiet", "--event", "cpu-clock:u"]);
                command.args(["--freq", "499", "--call-graph", "dwarf,8192"]);
                command.arg("--output").arg(&data).arg("--").arg(&program.path);
                command
            }
            Sampler::Signal => Command::new(&program.path),
        };
        command.args(load.arguments_without_hurry());
        if self == Sampler::Signal {
            command.arg("--sample").arg(&data);
        }
        let output = run(&mut command)?;
        let document = serde_json::from_slice(&output.stdout).map_err(|_| said(load, &output))?;
        let told = Run::of(&document).map_err(Failure::Undecided)?;
        let profile = match self {
            Sampler::Signal => Profile::read(&data)?,
            Sampler::Perf => {
                let mut script = Command::new("perf");
                script
                    .args(["script", "--fields", "comm,tid,time,ip,sym,dso", "--input"])
                    .arg(&data);
                let script = run(&mut script)?;
                let text = String::from_utf8_lossy(&script.stdout);
                Profile::parse(&text).map_err(|reason| {
                    Failure::Undecided(format!("{load}: perf script: {reason}"))
                })?
            }
        };
        Ok((profile, told))
    }
}

fn run(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_owned();
    command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::file("run", Path::new(&program), error))
}

fn said(load: &Load, output: &Output) -> Failure {
    let text = String::from_utf8_lossy(&output.stderr);
    let message = format!("{load}: {}\n{}", output.status, text.trim());
    match output.status.code() == Some(Exit::Unsupported as i32) {
        true => Failure::Unsupported(message),
        false => Failure::Usage(message),
    }
}
