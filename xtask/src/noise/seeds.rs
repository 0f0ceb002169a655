//! Whether two runs of `rcu advise` with other seeds agree: on every shipped workload, and on eight
//! that are described by flags here.
//!
//! Two runs agree when the design that each recommends is in the set of the other.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Advice, advise};
use crate::say;
use crate::tools::{files_below, root};

/// The seeds.
const SEEDS: [&str; 2] = ["1", "2"];

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

/// On which workloads two runs do not agree. Prints a line for each.
pub(super) fn disagreements(program: &Path) -> Result<Vec<String>> {
    let mut missed = Vec::new();
    for (name, args) in workloads()? {
        let run = |seed| {
            let words = args.iter().map(String::as_str).chain(["--seed", seed]);
            advise(program, &words.collect::<Vec<_>>())
        };
        let [first, second] = [run(SEEDS[0])?, run(SEEDS[1])?];
        let agree = allows(&first, &second) && allows(&second, &first);
        say::line(format_args!(
            "seeds, {name}: {}; {} and {}; of {} designs sets of {} and {}, {} in both",
            if agree { "agree" } else { "DISAGREE" },
            first.recommended.as_deref().unwrap_or("nothing"),
            second.recommended.as_deref().unwrap_or("nothing"),
            first.designs.len(),
            first.equal.len(),
            second.equal.len(),
            first.equal.intersection(&second.equal).count(),
        ))?;
        if !agree {
            missed.push(format!("seeds, {name}: two runs do not agree"));
        }
    }
    Ok(missed)
}

/// Whether what one run recommends is one of those to take by the other.
fn allows(one: &Advice, other: &Advice) -> bool {
    other.recommended.as_ref().is_some_and(|name| one.equal.contains(name))
}

fn workloads() -> Result<Vec<(String, Vec<String>)>> {
    let of_file = |path: PathBuf| {
        let path = path.display().to_string();
        (path.clone(), vec!["--workload".to_owned(), path])
    };
    let of_flags = |(name, flags): &(&str, &str)| {
        (String::from(*name), flags.split(' ').map(str::to_owned).collect())
    };
    let files = files_below(&root().join("workloads"))?;
    Ok(files.into_iter().map(of_file).chain(SYNTHETIC.iter().map(of_flags)).collect())
}
