//! The headers that programs compile against: those of `compat/include`.
//!
//! One with `FLAVOR` in its name is a text for all flavours, and there is a header for each of
//! them. There `@flavor@` is the flavour's name, `@FLAVOR@` the same in capitals, and `@old@` what
//! it is called in names of liburcu's that are older. A line `//@ memb mb` says that the next ones
//! are in the headers of these flavours only, `//@ all` that they are in all. A header that has no
//! line is not written.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tools::{self, files_below, root};

const FLAVORS: [&str; 5] = ["memb", "mb", "qsbr", "bp", "signal"];

/// All of them: the place below the directory of headers, and the text.
pub(crate) fn all() -> Result<Vec<(PathBuf, String)>> {
    let folder = root().join("compat/include");
    let mut all = Vec::new();
    for file in files_below(&folder)? {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let place = file.strip_prefix(&folder)?.display().to_string();
        if !place.contains("FLAVOR") {
            all.push((place.into(), text));
            continue;
        }
        let of_flavors = FLAVORS.map(|flavor| (place.replace("FLAVOR", flavor), flavor));
        let headers = of_flavors.map(|(place, flavor)| (place.into(), of_flavor(&text, flavor)));
        all.extend(headers.into_iter().filter(|(_, text)| !text.is_empty()));
    }
    Ok(all)
}

/// Writes them into a directory.
///
/// # Errors
/// If one cannot be read or written.
pub fn write(directory: &Path) -> Result<()> {
    for (place, text) in all()? {
        tools::write(&directory.join(place), text)?;
    }
    Ok(())
}

fn of_flavor(text: &str, flavor: &str) -> String {
    let (mut made, mut is_its) = (String::new(), true);
    for line in text.split_inclusive('\n') {
        if let Some(names) = line.strip_prefix("//@ ") {
            is_its = names.split_whitespace().any(|name| name == flavor || name == "all");
        } else if is_its {
            made += line;
        }
    }
    let old = if flavor == "signal" { "sig" } else { flavor };
    let made = made.replace("@flavor@", flavor).replace("@old@", old);
    made.replace("@FLAVOR@", &flavor.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flavour_has_its_lines() {
        let text = "@flavor@ @FLAVOR@ @old@\n//@ mb bp\ntwo\n//@ all\nend\n";
        assert_eq!(of_flavor(text, "signal"), "signal SIGNAL sig\nend\n");
        assert_eq!(of_flavor(text, "mb"), "mb MB mb\ntwo\nend\n");
        assert_eq!(of_flavor("//@ mb\none\n", "bp"), "");
    }
}
