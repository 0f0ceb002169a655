//! Whether two runs of `rcu advise` with other seeds agree: on every shipped workload, and on eight
//! that are described by flags here.
//!
//! Two runs agree when the design that each recommends is in the set of the other. Stricter, and
//! shown beside it: the same recommendation, and the same set.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::noise::document;
use crate::tools::built_rcu;

/// The workloads that no file describes: corners of what the flags can say.
const SYNTHETIC: [(&str, &str); 8] = [
    ("one thread", "--threads 1"),
    ("half updates", "--reads 50 --uniform"),
    ("eight threads", "--threads 8 --reads 99.9"),
    ("few keys", "--max-keys 16 --reads 95"),
    ("one key", "--max-keys 1 --reads 90"),
    ("very popular keys", "--zipf 2 --reads 99"),
    ("large values", "--value-bytes 8192 --work 64 --max-keys 2000 --reads 98"),
    ("configuration, often replaced", "--kind config --reads 90"),
];

/// What is run.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Agreement {
    /// The seed of the first run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// What one run said.
struct Advice {
    recommended: Option<String>,
    set: BTreeSet<String>,
    /// How many designs were measured.
    designs: usize,
}

impl Agreement {
    /// Runs all, and prints a line for each.
    ///
    /// # Errors
    /// If the command cannot be built or run, or two runs do not agree.
    pub fn run(self) -> Result<()> {
        let program = built_rcu()?;
        let (mut all, mut agreed, mut same, mut equal) = (0, 0, 0, 0);
        for (name, args) in workloads()? {
            let first = advise(&program, &args, self.seed)?;
            let second = advise(&program, &args, self.seed + 1)?;
            let agree = first.allows(&second) && second.allows(&first);
            let is_same = first.recommended == second.recommended;
            let is_equal = first.set == second.set;
            all += 1;
            agreed += u32::from(agree);
            same += u32::from(is_same);
            equal += u32::from(is_equal);
            println!(
                "{name}: {}; {} and {}; of {} designs sets of {} and {}, {} in both",
                if agree { "agree" } else { "DISAGREE" },
                first.name(),
                second.name(),
                first.designs,
                first.set.len(),
                second.set.len(),
                first.set.intersection(&second.set).count(),
            );
        }
        println!("{agreed} of {all} agree; {same} the same recommendation; {equal} the same set");
        ensure!(agreed == all, "{} of {all} workloads: two runs do not agree", all - agreed);
        Ok(())
    }
}

impl Advice {
    /// Whether what the other one recommends is one of those to take here.
    fn allows(&self, other: &Advice) -> bool {
        other.recommended.as_ref().is_some_and(|name| self.set.contains(name))
    }

    fn name(&self) -> &str {
        self.recommended.as_deref().unwrap_or("nothing")
    }
}

fn workloads() -> Result<Vec<(String, Vec<String>)>> {
    let mut files: Vec<_> = fs::read_dir("workloads")
        .context("no folder workloads here: run it from the top of the repository")?
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    let of_file = |path: &Path| {
        let path = path.display().to_string();
        (path.clone(), vec!["--workload".to_owned(), path])
    };
    let mut all: Vec<_> = files.iter().map(|path| of_file(path)).collect();
    all.extend(
        SYNTHETIC.iter().map(|(name, flags)| {
            ((*name).to_owned(), flags.split(' ').map(str::to_owned).collect())
        }),
    );
    Ok(all)
}

fn advise(program: &Path, args: &[String], seed: u64) -> Result<Advice> {
    let seed = seed.to_string();
    let mut words =
        vec!["advise", "--quick", "--skip", "costs", "--skip", "sweep", "--seed", &seed];
    words.extend(args.iter().map(String::as_str));
    let report = document(program, &words)?;
    let designs = report["designs"].as_array().context("no designs")?;
    let is_in = |design: &&Value| design["standing"] != "out";
    let name = |design: &Value| design["name"].as_str().map(str::to_owned);
    Ok(Advice {
        recommended: report["recommended"].as_str().map(str::to_owned),
        set: designs.iter().filter(is_in).filter_map(name).collect(),
        designs: designs.len(),
    })
}
