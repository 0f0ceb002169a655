//! Tries to catch the libraries in a mistake: compiles `compat/torture/torture.c` for each flavour
//! against Debian's headers, readers inlined, and runs it on our libraries, under a limit that it
//! reaches all the time.
//!
//! With `--removed` the core is built once more with the torture hooks, and without a step: then
//! the programs must find it, or their checks are worth nothing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use mutants::{Catcher, SWITCH, Step};

use crate::tools::{c_compiler, root, run};
use crate::{compat, limited, say};

/// The flavours that it is compiled for.
const FLAVORS: [&str; 4] = ["memb", "mb", "qsbr", "bp"];

/// The names of the steps that may be left out, and are noticed.
fn steps() -> Vec<&'static str> {
    let noticed = |step: &&Step| step.catchers.contains(&Catcher::CTorture);
    mutants::all().iter().filter(noticed).map(|step| step.name.as_str()).collect()
}

/// Callbacks that may wait: few, so that all that is done at the limit is done all the time.
const LIMIT: &str = "3000";

/// What is run.
#[derive(Clone, Debug, clap::Args)]
pub struct Torture {
    /// For so long, each flavour.
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    /// Where the draws begin.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Leave a step out, which must be noticed.
    #[arg(long, value_name = "STEP", value_parser = steps())]
    pub(crate) removed: Option<String>,
    /// Which flavours; all, if none is named.
    #[arg(value_name = "FLAVOR", value_parser = FLAVORS)]
    pub(crate) flavors: Vec<String>,
}

impl Torture {
    /// Runs it.
    ///
    /// # Errors
    /// If the libraries make a mistake; or, without a step, if that is not noticed.
    pub fn run(&self) -> Result<()> {
        let noticed = self.noticed()?;
        match (&self.removed, noticed) {
            (None, 0) => Ok(()),
            (None, _) => bail!("the libraries made a mistake: see above"),
            (Some(step), 0) => bail!("no flavour noticed that {step} is missing"),
            (Some(step), _) => {
                Ok(say::line(format_args!("without {step}: noticed under {noticed} flavours"))?)
            }
        }
    }

    /// Under how many flavours a mistake was found, or that a step is missing.
    pub(crate) fn noticed(&self) -> Result<u32> {
        let tree = match self.removed {
            None => compat::build()?,
            Some(_) => compat::build_with_hooks()?,
        };
        let programs = root().join("target/compat-build/torture");
        std::fs::create_dir_all(&programs)?;
        let all = FLAVORS.map(str::to_owned);
        let flavors = if self.flavors.is_empty() { &all[..] } else { &self.flavors };
        let mut noticed = 0;
        for flavor in flavors {
            let program = compile(flavor, &programs)?;
            noticed += u32::from(!self.holds(flavor, &program, &tree.join("lib"))?);
        }
        Ok(noticed)
    }

    /// Whether no mistake was found.
    fn holds(&self, flavor: &str, program: &Path, libraries: &Path) -> Result<bool> {
        let mut command = Command::new(program);
        command
            .args([self.seconds.to_string(), self.seed.to_string()])
            .env("LD_LIBRARY_PATH", libraries)
            .env("QUIESCENCE_LIMIT_OBJECTS", LIMIT);
        match &self.removed {
            Some(step) => command.env(SWITCH, step),
            None => command.env_remove(SWITCH),
        };
        let limit = Duration::from_secs((self.seconds + 60).into());
        let output = limited::output(&mut command, limit)?;
        let said = String::from_utf8_lossy(&output.stdout);
        let complaints = String::from_utf8_lossy(&output.stderr);
        say::line(format_args!("{flavor}: {}{}", said.trim_end(), complaints.trim_end()))?;
        let status = output.status;
        // Of a step that is missing only what the program says itself is a finding; of the
        // libraries as they are a hang is, too.
        let found = complaints.contains("torture: ");
        ensure!(status.success() || found || self.removed.is_none(), "{flavor}: {status}");
        Ok(status.success())
    }
}

fn compile(flavor: &str, into: &Path) -> Result<PathBuf> {
    let program = into.join(flavor);
    run(c_compiler()
        .args(["-O2", "-g", "-pthread", "-Wall", "-Wextra", "-Werror"])
        .arg(format!("-DFLAVOR={flavor}"))
        .arg(root().join("compat/torture/torture.c"))
        .arg("-o")
        .arg(&program)
        .args([&format!("-lurcu-{flavor}"), "-lurcu-cds", "-lurcu-common"]))?;
    Ok(program)
}
