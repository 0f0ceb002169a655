//! What is in `/usr/share/doc` of each package: licences, changes, and `README.Debian`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Build, DEBUG, DEFAULT, DEVELOPMENT, RUNTIME, compress, write};
use crate::compat::{self, symlink};
use crate::tools::run;

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
        write(stage, &format!("{directory}/README.Debian"), readme(name))?;
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

fn read(name: &str) -> Result<String> {
    fs::read_to_string(compat::root().join(name)).with_context(|| name.to_owned())
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
    let root = compat::root();
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
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: quiescence\n\
         Comment:\n \
         {CORE} contains Rust's standard library and these packages of\n \
         crates.io, each under a licence that it names; of those that it offers as\n \
         alternatives Expat or Apache-2.0 is chosen.\n{crates}\
         \n\
         Files: *\n\
         Copyright: {holder}\n\
         License: Expat or Apache-2.0\n\
         \n\
         License: Expat\n{text}\
         \n\
         License: Apache-2.0\n \
         On Debian systems the text of this licence is in\n \
         /usr/share/common-licenses/Apache-2.0.\n",
        CORE = crate::library::CORE,
        crates = crates()?,
        text = indented.collect::<String>(),
    ))
}

/// The crates behind the core, one a line, with their licences.
fn crates() -> Result<String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(compat::root()).args(["tree", "--locked", "--package", "quiescence-compat"]);
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

/// The same text on every architecture.
fn readme(name: &str) -> &'static str {
    match name {
        RUNTIME => RUNTIME_README,
        DEVELOPMENT => DEVELOPMENT_README,
        DEFAULT => DEFAULT_README,
        _ => unreachable!("there is no package {name}"),
    }
}

const RUNTIME_README: &str = "\
The libraries are in /usr/lib/TRIPLET/quiescence, TRIPLET being the name of the
architecture (x86_64-linux-gnu on amd64). Programs use liburcu8 until
they are told otherwise.

One run of one program:
    LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/quiescence program
One service, for good (systemctl edit NAME):
    [Service]
    Environment=LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/quiescence
All programs, for good:
    apt-get install libquiescence-urcu-default
and back to liburcu8:
    apt-get remove libquiescence-urcu-default
A process keeps the libraries it was started with: restart it.

Which libraries a process runs on: grep -E 'urcu|quiescence' /proc/PID/maps
What may be set, and what differs from liburcu: man 7 libquiescence-urcu
";

const DEVELOPMENT_README: &str = "\
The headers are in /usr/include/quiescence, the libraries to link with in
/usr/lib/TRIPLET/quiescence, TRIPLET being the name of the architecture
(x86_64-linux-gnu on amd64).

A program that is to run on these libraries wherever it runs names them:
    cc program.c $(pkg-config --cflags --libs quiescence-memb)
A static program (and nothing but fully static ones should use the archives):
    cc -static program.c $(pkg-config --static --cflags --libs quiescence-memb)
CMake: find_package(quiescence), target quiescence::memb.

A build that asks pkg-config for liburcu-memb finds these headers and libraries
with
    PKG_CONFIG_PATH=/usr/lib/x86_64-linux-gnu/quiescence/pkgconfig
Its program finds the libraries of liburcu8 when it runs, unless it is told
otherwise: see README.Debian of libquiescence-urcu0.

C.md has more, README.md what differs from liburcu; examples/ has programs.
";

const DEFAULT_README: &str = "\
With this package installed, programs that are linked with liburcu (soname 8)
find the libraries of libquiescence-urcu0 in place of those of liburcu8, from
when they are started next: /etc/ld.so.conf.d/00-quiescence-TRIPLET.conf names
a directory of links to them, which comes before Debian's own.

liburcu8 stays installed, for the packages that depend on it, and is used again
once this package is removed. Processes keep the libraries that they were
started with: restart them, after an installation and after a removal.

Not reached are static programs, and those whose RUNPATH or LD_LIBRARY_PATH
names another directory.
";

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
