//! The kernel of `kernel/demo`, built, and booted in QEMU; with a step of the kernel crate removed,
//! which its test must notice.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use mutants::Step;
use serde::Deserialize;
use tempfile::{NamedTempFile, TempPath};

use crate::compat::workplace;
use crate::mutants::{applied, copied, limited};
use crate::say;
use crate::tools::{built_file, c_compiler, cargo, root, run};

const QEMU: &str = "qemu-system-riscv64";
const NAME: &str = "quiescence-kernel-demo";

/// What `kernel.toml` lists, as it says there.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct Known {
    engines: Vec<&'static str>,
    rivals: Vec<&'static str>,
    columns: BTreeMap<&'static str, String>,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    name: &'static str,
    number: u64,
    #[serde(default)]
    is_counted: bool,
    /// The plugin of the emulator counts as well, and each row begins with the engine.
    #[serde(default)]
    is_metered: bool,
    #[serde(default)]
    engines: Vec<&'static str>,
    #[serde(default)]
    features: Vec<&'static str>,
    columns: Option<&'static str>,
}

static KNOWN: LazyLock<Known> =
    LazyLock::new(|| toml::from_str(include_str!("kernel.toml")).expect("it is well-formed"));

/// Tests of which more is said here.
const TORTURE: &str = "torture";
const FIGURES: &str = "figures";
const BOOTS: &str = "srcu";
/// Where the kernel looks for what it is asked for.
const PARAMETERS: usize = 0x801F_0000;
/// What the kernel crate's code may take, with one engine.
const CODE_BYTES_MAX: u64 = 24 * 1_024;
/// What the kernel prints first. What comes before says nothing about the kernel crate.
const BANNER: &str = "kernel: ";
/// How the kernel says that it has found a mistake, or this command that it found no end.
const SIGNS: [&str; 4] = ["panicked at ", "stalled: ", "wrong: ", "ended: "];
/// What it takes at most to boot, and to say that there is no progress.
const LONGEST: Duration = Duration::from_secs(120);
/// An emulated second takes at most so many, if instructions are counted.
const SLOWER: u32 = 60;

/// What is booted.
#[derive(Clone, Debug, clap::Args)]
pub struct Kernel {
    /// Harts, each a thread of the emulator if there is no seed.
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=16))]
    cpus: u32,
    /// Ticks a second.
    #[arg(long, value_parser = ["100", "250", "1000"], default_value = "1000")]
    hz: String,
    /// The engine of its grace periods; or another kernel's design of RCU in place of ours.
    #[arg(long, value_name = "ENGINE", value_parser = KNOWN.engines.clone(),
          default_value = KNOWN.engines[0])]
    engine: String,
    /// The torture lasts for so long by the emulator's clock, and so does files in each case; srcu
    /// boots with 250 slots for each, and dcache has 1,000 rounds.
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Where the draws begin. All harts are one thread then and time is counted in instructions, so
    /// that a seed gives the same run each time, as far as QEMU is the same each time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seed: Option<u64>,
    /// Remove a step of the kernel crate, which the torture must notice.
    #[arg(long, value_name = "STEP", value_parser = names())]
    mutant: Option<String>,
    /// What it does: torture; how long it waits for grace periods; how many instructions and bytes
    /// of code the kernel crate takes; the latency of three designs of RCU; what a long exit
    /// holds up under variants of Tree RCU; how long a guest's boot waits for SRCU under delay
    /// functions of 2022; what a round of path lookups takes under each engine; or how often a
    /// slab's locks are taken under variants of Tree RCU. All but torture are without checks.
    #[arg(value_name = "TEST",
          value_parser = KNOWN.tests.iter().map(|test| test.name).collect::<Vec<_>>())]
    test: String,
}

/// The steps of the kernel crate.
fn steps() -> impl Iterator<Item = &'static Step> {
    let alone = mutants::table().alone.iter();
    alone.filter(|step| step.edits.iter().all(|edit| edit.file.starts_with("kernel/src/")))
}

fn names() -> Vec<&'static str> {
    steps().map(|step| step.name.as_str()).collect()
}

impl Kernel {
    /// Boots it.
    ///
    /// # Errors
    /// If the kernel or the emulator cannot be had; if the kernel finds a mistake, or does not come
    /// to an end; or, without a step, if it finds none.
    pub fn run(&self) -> Result<()> {
        let Test { name, is_metered, engines, columns, .. } = self.test()?;
        let is_rival = KNOWN.rivals.contains(&&*self.engine);
        let refusals = [
            (!engines.is_empty() && self.engine != KNOWN.engines[0], "it boots engines of its own"),
            (*name == BOOTS && self.hz != "250", "it needs --hz 250, for which it was predicted"),
            (*name == FIGURES && is_rival, "it counts the kernel crate's instructions alone"),
            (self.mutant.is_some() && *name != TORTURE, "steps are removed in the torture alone"),
            (self.mutant.is_some() && is_rival, "a rival's design runs without the kernel crate"),
        ];
        for (is_asked, why) in refusals {
            ensure!(!is_asked, "{name} cannot be run so: {why}");
        }
        run(Command::new(QEMU).arg("--version"))?;
        let asked = [&*self.engine];
        let engines = if engines.is_empty() { &asked[..] } else { engines };
        let mut table = columns.map(|of| KNOWN.columns[of].clone()).unwrap_or_default();
        for engine in engines {
            let one = Self { engine: (*engine).to_owned(), ..self.clone() };
            let said = one.booted()?;
            one.judged(&said)?;
            let rows = said.lines().filter(|line| line.starts_with("| "));
            let of = if *is_metered { format!("| {engine} ") } else { String::new() };
            rows.for_each(|row| table.extend(["\n", &of, row]));
        }
        if !table.is_empty() {
            say::line(format_args!("\n{table}"))?;
        }
        Ok(())
    }

    fn test(&self) -> Result<&'static Test> {
        KNOWN.tests.iter().find(|test| test.name == self.test).context("no such test")
    }

    /// Prints what was said, and whether that is as it should be.
    fn judged(&self, said: &str) -> Result<()> {
        // OpenSBI's lines come first.
        let ours = said.lines().skip_while(|line| !line.starts_with(BANNER));
        let ours: Vec<&str> = ours.collect();
        let sign = ours.iter().find(|line| SIGNS.iter().any(|sign| line.contains(sign)));
        if ours.is_empty() {
            bail!("the kernel did not boot:\n{said}");
        }
        say::line(ours.join("\n"))?;
        // How the emulator ends does not say how the kernel does.
        let is_ok = ours.last() == Some(&"result: ok");
        match (&self.mutant, sign) {
            (None, None) if is_ok => Ok(()),
            (Some(step), Some(sign)) => {
                Ok(say::line(format_args!("without {step}, noticed: {sign}"))?)
            }
            (Some(step), None) if is_ok => {
                bail!("the kernel did not notice that {step} is missing")
            }
            (_, None) => bail!("the kernel did not run as asked: see above"),
            (None, Some(_)) => bail!("the kernel made a mistake: see above"),
        }
    }

    /// What OpenSBI and the kernel have printed.
    fn booted(&self) -> Result<String> {
        let test = self.test()?;
        let kernel = self.built(test)?;
        if test.name == FIGURES {
            let bytes = code(&kernel)?;
            say::line(format_args!("{bytes} bytes: code"))?;
            ensure!(bytes <= CODE_BYTES_MAX, "more than {CODE_BYTES_MAX} bytes of code");
        }
        let mut qemu = Command::new(QEMU);
        qemu.args(["-machine", "virt", "-m", "128M", "-bios", "default", "-no-reboot"]);
        qemu.args(["-display", "none", "-serial", "stdio", "-monitor", "none"]);
        qemu.arg("-smp").arg(self.cpus.to_string()).arg("-kernel").arg(&kernel);
        // The seed, if instructions are counted.
        let counted = self.seed.or(test.is_counted.then_some(1));
        let seed = counted.unwrap_or_default();
        let parameters = [self.seconds.into(), seed, test.number, self.cpus.into()];
        for (at, value) in parameters.iter().enumerate() {
            let address = PARAMETERS + at * size_of::<u64>();
            let device = format!("loader,addr={address:#x},data={value},data-len=8");
            qemu.args(["-device", &device]);
        }
        let meter = NamedTempFile::new()?.into_temp_path();
        if test.is_metered {
            let mut build = c_compiler();
            build.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(&meter);
            run(build.arg(root().join("kernel/demo/plugin/meter.c")))?;
            qemu.arg("-plugin").arg(&meter);
        }
        let mut limit = LONGEST + Duration::from_secs(self.seconds.into());
        if counted.is_some() {
            qemu.args(["-icount", "shift=3,sleep=off"]);
            limit += Duration::from_secs((self.seconds * SLOWER).into());
        }
        let (status, said) = limited(qemu.stdin(std::process::Stdio::null()), limit)?;
        let mut said = said.replace('\r', "");
        if status.is_none() {
            said.push_str(&format!("ended: nothing came of it in {limit:?}\n"));
        }
        Ok(said)
    }

    /// Has cargo build the kernel, in the tree or in a copy of it without the step. Returns a copy
    /// of it, for the next command may build another one while this one runs.
    fn built(&self, test: &Test) -> Result<TempPath> {
        let (target, _lock) = workplace("kernel")?;
        let mut tree = root();
        if let Some(step) = &self.mutant {
            let step = steps().find(|one| one.name == *step).context("no such step")?;
            tree = root().join("target/kernel-mutant");
            say::begun(&format!("{}: {}", step.name, step.about));
            copied(&tree, |file, text| {
                let mut edits = step.edits.iter().filter(|edit| edit.file == file);
                edits.try_fold(text, |text, edit| applied(edit, &text))
            })?;
        }
        let mut build = cargo(&tree.join("kernel/demo"));
        let profile = if test.is_counted { FIGURES } else { "release" };
        build.args(["build", "--profile", profile, "--locked"]).env("CARGO_TARGET_DIR", target);
        if self.hz != "1000" {
            build.args(["--features", &format!("hz-{}", self.hz)]);
        }
        if self.engine != KNOWN.engines[0] {
            build.args(["--features", &self.engine]);
        }
        for feature in &test.features {
            build.args(["--features", feature]);
        }
        let kernel = built_file(&mut build, NAME)?;
        let copy = NamedTempFile::new()?.into_temp_path();
        fs::copy(kernel, &copy)?;
        Ok(copy)
    }
}

/// The bytes of the kernel crate's code, of what it is built on, and of the functions of the kernel
/// that call it for this purpose. But not SRCU's: how much of that is in functions of its own, and
/// not in those of the test that calls it, changes with the test.
fn code(kernel: &Path) -> Result<u64> {
    let symbols =
        run(Command::new("nm").args(["--print-size", "--demangle", "--defined-only"]).arg(kernel))?;
    let is_ours = |name: &str| {
        let mut words = name.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        let is_of_srcu = name.contains("::srcu::");
        !is_of_srcu
            && words.any(|word| {
                ["kernel::", "grace::"].iter().any(|crate_| word.starts_with(crate_))
                    || word.contains("::figures::hooks::")
            })
    };
    let mut bytes = 0;
    for line in symbols.lines() {
        let columns: Vec<_> = line.splitn(4, ' ').collect();
        if let [_, size, "t" | "T", name] = columns[..]
            && is_ours(name)
        {
            bytes += u64::from_str_radix(size, 16).with_context(|| line.to_owned())?;
        }
    }
    Ok(bytes)
}
