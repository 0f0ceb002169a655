//! Rounds that are kept: what `rcu compare --save NAME` writes and `--baseline NAME` reads.
//!
//! A baseline is a JSON file of its own schema, in the folder of the user's data unless another one
//! is named. Names are file names without a path, so that a name cannot point elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::decide::ROUNDS_MIN;
use super::load::{Key, Load, Run};
use crate::exit::{Failure, Result};
use crate::machine::Machine;
use crate::output::{self, SchemaId};

pub(super) const SCHEMA: SchemaId = SchemaId("quiescence/baseline", 2);

/// The file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Baseline {
    /// The CPU's name for itself.
    cpu: Option<String>,
    /// CPUs that the process could use.
    cpus: usize,
    /// The version of the command.
    rcu: String,
    loads: Vec<Saved>,
}

/// The rounds of one load.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Saved {
    load: Load,
    figures: Vec<SavedFigure>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct SavedFigure {
    #[serde(flatten)]
    key: Key,
    /// One for each round, or none where the run had no figure. A time or a size; of rates the
    /// nanoseconds of one; one more than a number of objects.
    costs: Vec<Option<f64>>,
}

impl Saved {
    /// No round yet of the figures that a load has.
    pub(super) fn new(load: &Load, run: &Run) -> Saved {
        let figures = run.keys().map(|key| SavedFigure { key: key.clone(), costs: Vec::new() });
        Saved { load: load.clone(), figures: figures.collect() }
    }

    /// Adds a round.
    pub(super) fn add(&mut self, run: &Run) {
        for saved in &mut self.figures {
            saved.costs.push(run.cost_of(&saved.key).ok());
        }
    }

    /// Forgets the figures that are in too few rounds to decide anything. Returns their names.
    pub(super) fn forget_few(&mut self) -> Vec<Key> {
        let is_few = |figure: &mut SavedFigure| figure.costs.iter().flatten().count() < ROUNDS_MIN;
        self.figures.extract_if(.., is_few).map(|figure| figure.key).collect()
    }
}

impl Baseline {
    pub(super) fn new(loads: Vec<Saved>) -> Baseline {
        let machine = Machine::detect();
        Baseline {
            cpu: machine.model,
            cpus: machine.cpus.len(),
            rcu: env!("CARGO_PKG_VERSION").to_owned(),
            loads,
        }
    }

    pub(super) fn loads(&self) -> Vec<Load> {
        self.loads.iter().map(|saved| saved.load.clone()).collect()
    }

    /// How many rounds were measured.
    pub(super) fn rounds(&self) -> usize {
        let figures = self.loads.iter().flat_map(|saved| &saved.figures);
        figures.map(|figure| figure.costs.len()).max().unwrap_or(0)
    }

    /// The load of which there is no figure.
    pub(super) fn undecidable(&self) -> Option<&Load> {
        self.loads.iter().find(|saved| saved.figures.is_empty()).map(|saved| &saved.load)
    }

    /// The figures of one round.
    pub(super) fn round(&self, load: &Load, round: usize) -> Result<Run> {
        let saved = self.loads.iter().find(|saved| saved.load == *load).ok_or_else(|| {
            let known: Vec<String> =
                self.loads.iter().map(|saved| saved.load.to_string()).collect();
            let known = known.join("; ");
            Failure::usage(format!("the baseline has no load \"{load}\"; it has: {known}"))
        });
        let figure = |SavedFigure { key, costs }: &SavedFigure| {
            let cost = costs.get(round).copied().flatten();
            (key.clone(), cost.ok_or_else(|| "the saved round has none".to_owned()))
        };
        let figures = saved?.figures.iter().map(figure).collect();
        Ok(Run { figures, ..Run::default() })
    }

    /// Why a comparison on this machine means little, if it does.
    pub(super) fn complaint(&self) -> Option<String> {
        let of = |Baseline { cpu, cpus, .. }: &Baseline| {
            format!("({}, CPUs: {cpus})", cpu.as_deref().unwrap_or("unknown CPU"))
        };
        let [there, here] = [of(self), of(&Baseline::new(Vec::new()))];
        (there != here)
            .then(|| format!("the baseline is of another machine {there} than this one {here}"))
    }

    /// Writes the file.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        output::replace(path, &format!("{:#}\n", SCHEMA.document([json!(self)])))
    }

    /// Reads the baseline of this name.
    pub(super) fn read(folder: &Path, name: &str) -> Result<Baseline> {
        let path = path(folder, name);
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::usage(none_called(name, folder)),
            _ => Failure::file("read", &path, error),
        })?;
        let baseline = match SCHEMA.read(&text) {
            Ok(Baseline { loads, .. }) if loads.is_empty() => Err("it has no load".to_owned()),
            read => read,
        };
        let wrong = format!("{}: no baseline of rcu compare", path.display());
        baseline.map_err(|why| Failure::usage(format!("{wrong}: {why}")))
    }
}

fn none_called(name: &str, folder: &Path) -> String {
    let of_entry =
        |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut known: Vec<String> = entries.filter_map(of_entry).collect();
    known.sort();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let folder = folder.display();
    format!("no baseline is called {name} in {folder}; there are: {known}; `--save` makes one")
}

/// The name of a baseline, as typed.
pub(super) fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.starts_with('.') || !text.chars().all(fits) {
        return Err("a name has letters, digits, `-`, `_` and `.`, and begins with no `.`".into());
    }
    Ok(text.to_owned())
}

/// The file of the baseline of this name.
pub(super) fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// Where baselines are, unless another folder is named.
pub(super) fn folder() -> Result<PathBuf> {
    let path = |variable| std::env::var_os(variable).map(PathBuf::from);
    let of = |variable| path(variable).filter(|path| path.is_absolute());
    let data = of("XDG_DATA_HOME").or_else(|| Some(of("HOME")?.join(".local/share")));
    let message = "neither XDG_DATA_HOME nor HOME says where baselines are: give --folder";
    Ok(data.ok_or_else(|| Failure::usage(message))?.join("rcu/baselines"))
}
