//! What is in `/usr/share/doc` of each package: licences, changes, and `README.Debian`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Build, DEBUG, DEVELOPMENT, RUNTIME, compress, write};
use crate::compat::symlink;
use crate::tools::{cargo, root, run};

/// What is the same for all packages.
#[derive(Debug)]
pub(super) struct Documents {
    copyright: String,
    changes: String,
    changes_of_debian: String,
    /// In seconds since 1970: when the sources were as they are. No file of a package is newer.
    pub(super) date: u64,
}

impl Documents {
    pub(super) fn new(build: &Build) -> Result<Self> {
        let date = date()?;
        Ok(Self {
            copyright: copyright()?,
            changes: read("CHANGELOG.md")?,
            changes_of_debian: changes_of_debian(build, date)?,
            date,
        })
    }

    pub(super) fn write(&self, name: &str, stage: &Path) -> Result<()> {
        let directory = format!("usr/share/doc/{name}");
        if name == DEBUG {
            // As in Debian's packages of this kind: what its library's has.
            fs::create_dir_all(stage.join("usr/share/doc"))?;
            return symlink(RUNTIME, &stage.join(directory));
        }
        write(stage, &format!("{directory}/copyright"), &self.copyright)?;
        let readme = read(&format!("compat/packages/debian/{name}.README.Debian"))?;
        write(stage, &format!("{directory}/README.Debian"), &readme)?;
        for (file, text) in
            [("changelog", &self.changes), ("changelog.Debian", &self.changes_of_debian)]
        {
            let file = format!("{directory}/{file}");
            write(stage, &file, text)?;
            compress(&stage.join(file))?;
        }
        if name == DEVELOPMENT {
            write(stage, &format!("{directory}/C.md"), &read("docs/C.md")?)?;
            write(stage, &format!("{directory}/README.md"), &read("compat/README.md")?)?;
        }
        Ok(())
    }
}

/// A file of the repository.
pub(super) fn read(name: &str) -> Result<String> {
    fs::read_to_string(root().join(name)).with_context(|| name.to_owned())
}

/// For readers of Debian's changelogs. What changed is quiescence's to say.
fn changes_of_debian(build: &Build, date: u64) -> Result<String> {
    let date =
        run(Command::new("date").args(["--utc", "--rfc-email", "--date", &format!("@{date}")]))?;
    Ok(format!(
        "quiescence ({version}) unstable; urgency=medium\n\n  \
         * Build {revision} of quiescence {upstream}; changelog.gz says what is in it.\n\n \
         -- {maintainer}  {date}",
        version = build.version(),
        revision = build.revision,
        upstream = env!("CARGO_PKG_VERSION"),
        maintainer = build.maintainer,
    ))
}

/// When the sources were as they are: as the environment says (`SOURCE_DATE_EPOCH`), else of the
/// last commit; where there is no history, of the changelog's file.
fn date() -> Result<u64> {
    if let Ok(said) = std::env::var("SOURCE_DATE_EPOCH") {
        return said.parse().with_context(|| format!("SOURCE_DATE_EPOCH={said}: is no number"));
    }
    let root = root();
    let mut git = Command::new("git");
    git.arg("-C").arg(&root).args(["log", "-1", "--format=%ct"]);
    if let Ok(output) = git.output()
        && output.status.success()
    {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        return said.trim().parse().with_context(|| format!("git said {said:?} for a date"));
    }
    let changed = fs::metadata(root.join("CHANGELOG.md"))?.modified()?;
    Ok(changed.duration_since(std::time::UNIX_EPOCH)?.as_secs())
}

/// Machine-readable: licences of quiescence, and of the crates that are in the core.
fn copyright() -> Result<String> {
    let licence = read("LICENSE-MIT")?;
    let holder = licence
        .lines()
        .find_map(|line| line.strip_prefix("Copyright (c) "))
        .context("LICENSE-MIT names no holder of the copyright")?;
    let terms = licence.split_once("\n\n").map_or("", |(_, rest)| rest);
    let terms = terms.split_once("\n\n").map_or(terms, |(_, rest)| rest);
    let indented = terms.trim().lines().map(|line| match line.trim() {
        "" => " .\n".to_owned(),
        line => format!(" {line}\n"),
    });
    Ok(read("compat/packages/debian/copyright")?
        .replace("@CRATES@\n", &crates()?)
        .replace("@HOLDER@", holder)
        .replace("@EXPAT@\n", &indented.collect::<String>()))
}

/// The crates behind the core, one a line, with their licences.
fn crates() -> Result<String> {
    let mut cargo = cargo(&root());
    cargo.args(["tree", "--locked", "--package", "quiescence-compat"]);
    cargo.args(["--features", "library", "--edges", "normal,no-proc-macro", "--prefix", "none"]);
    let listed = run(cargo.args(["--format", "{p}|{l}"]))?;
    // `libc v0.2.1`, or `grace v0.1.0 (/where/it/is)` of our own.
    let theirs = listed.lines().filter(|line| !line.contains('/') || !line.contains("(/"));
    let mut crates: Vec<_> = theirs.map(|line| line.trim_end_matches(" (*)")).collect();
    crates.sort_unstable();
    crates.dedup();
    let mut text = String::new();
    for line in crates {
        let (name, licence) = line.split_once('|').context("cargo tree names a licence")?;
        _ = writeln!(text, "  {name}: {licence}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copyright_names_the_licences_of_all_that_is_inside() {
        let text = copyright().expect("it can be written");
        for part in ["libc v", "License: Expat\n Permission is hereby", "MIT"] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!text.contains("quiescence-grace") && !text.contains("(/"), "{text}");
    }
}
