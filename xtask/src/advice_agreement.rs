//! Whether two runs of `rcu advise` with other seeds agree: on every shipped workload, and on eight
//! that are described by flags here.
//!
//! Two runs agree when the design that each recommends is in the set of the other. Stricter, and
//! shown beside it: the same recommendation, and the same set.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::noise::{Advice, advise};
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

impl Agreement {
    /// Runs all, and prints a line for each.
    ///
    /// # Errors
    /// If the command cannot be built or run, or two runs do not agree.
    pub fn run(self) -> Result<()> {
        let program = built_rcu()?;
        let (mut all, mut agreed, mut same, mut equal) = (0, 0, 0, 0);
        for (name, args) in workloads()? {
            let run = |seed: u64| {
                let seed = seed.to_string();
                let words = args.iter().map(String::as_str).chain(["--seed", &seed]);
                advise(&program, &words.collect::<Vec<_>>())
            };
            let (first, second) = (run(self.seed)?, run(self.seed + 1)?);
            let agree = allows(&first, &second) && allows(&second, &first);
            let is_same = first.recommended == second.recommended;
            let is_equal = first.equal == second.equal;
            all += 1;
            agreed += u32::from(agree);
            same += u32::from(is_same);
            equal += u32::from(is_equal);
            println!(
                "{name}: {}; {} and {}; of {} designs sets of {} and {}, {} in both",
                if agree { "agree" } else { "DISAGREE" },
                first.recommended.as_deref().unwrap_or("nothing"),
                second.recommended.as_deref().unwrap_or("nothing"),
                first.designs.len(),
                first.equal.len(),
                second.equal.len(),
                first.equal.intersection(&second.equal).count(),
            );
        }
        println!("{agreed} of {all} agree; {same} the same recommendation; {equal} the same set");
        ensure!(agreed == all, "{} of {all} workloads: two runs do not agree", all - agreed);
        Ok(())
    }
}

/// Whether what one run recommends is one of those to take by the other.
fn allows(one: &Advice, other: &Advice) -> bool {
    other.recommended.as_ref().is_some_and(|name| one.equal.contains(name))
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
