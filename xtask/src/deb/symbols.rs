//! What other packages' builds read: which symbols the libraries export, since which version
//! (`symbols`), and which package has a library (`shlibs`); and what the libraries themselves need.
//!
//! All of it is found out from the libraries. No version of the packages has been published before
//! this one, so each symbol is there since this one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::archives::exported;
use crate::library::{self, SOVERSION};
use crate::tools::run;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// In the order of files that list them.
fn sonames() -> BTreeSet<String> {
    library::sonames().collect()
}

/// The text of the file `symbols`. liburcu's symbols have no versions: they are all `Base`.
pub(super) fn symbols(libraries: &Path, package: &str, development: &str) -> Result<String> {
    let mut text = String::new();
    for soname in sonames() {
        let library = libraries.join(&soname);
        let mut names = exported(&library)?;
        ensure!(!names.is_empty(), "{} exports nothing", library.display());
        names.sort_unstable();
        _ = writeln!(text, "{soname} {package} #MINVER#");
        _ = writeln!(text, "* Build-Depends-Package: {development}");
        for name in names {
            _ = writeln!(text, " {name}@Base {VERSION}");
        }
    }
    Ok(text)
}

/// The text of the file `shlibs`.
pub(super) fn shlibs(package: &str) -> String {
    let of_soname = |soname: String| {
        let (name, version) = soname.split_once(".so.").unwrap_or((&soname, SOVERSION));
        format!("{name} {version} {package} (>= {VERSION})\n")
    };
    sonames().into_iter().map(of_soname).collect()
}

/// The C library, at the newest version whose symbols the libraries use; the compiler's, if one of
/// them needs it.
pub(super) fn depends(libraries: &[PathBuf]) -> Result<String> {
    let (mut newest, mut unwinder) = ((0, 0), false);
    for library in libraries {
        let text = run(Command::new("readelf")
            .args(["--wide", "--version-info", "--dynamic"])
            .arg(library))?;
        unwinder |= text.contains("[libgcc_s.so.1]");
        let needed = text.split("Name: GLIBC_").skip(1);
        newest = needed.filter_map(leading_version).fold(newest, Ord::max);
    }
    ensure!(newest != (0, 0), "none of {libraries:?} needs the C library");
    // The oldest whose unwinder has all that ours calls, as Debian's own packages say.
    let unwinder = if unwinder { ", libgcc-s1 (>= 4.2)" } else { "" };
    Ok(format!("libc6 (>= {}.{}){unwinder}", newest.0, newest.1))
}

/// By which debuggers find the symbols of a library.
pub(super) fn build_id(library: &Path) -> Result<String> {
    let notes = run(Command::new("readelf").args(["--wide", "--notes"]).arg(library))?;
    let id = notes.split_once("Build ID: ").map_or("", |(_, rest)| rest);
    let id = id.split_whitespace().next().unwrap_or_default();
    ensure!(id.len() > 2, "{} has no build ID", library.display());
    Ok(id.to_owned())
}

/// `2.34  Flags: ...` is (2, 34).
fn leading_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers =
        text.split_whitespace().next()?.split('.').map_while(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::LIBRARIES;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(leading_version("2.34  Flags: none  Version: 4"), Some((2, 34)));
        assert_eq!(leading_version("2.2.5 Flags"), Some((2, 2)));
        assert_eq!(leading_version("PRIVATE  Flags"), None);
        assert!(leading_version("2.34") > leading_version("2.4"));
    }

    #[test]
    fn each_library_is_in_shlibs() {
        let text = shlibs("package");
        assert!(text.contains("liburcu-memb 8 package (>= "), "{text}");
        assert!(text.contains("libquiescence 0 package (>= "), "{text}");
        assert_eq!(text.lines().count(), LIBRARIES.len() + 1);
    }
}
