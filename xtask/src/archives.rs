//! The archives that static programs are linked with: `libquiescence.a`, the core, and one
//! `liburcu-NAME.a` for each thin library.
//!
//! Cargo's archive of the core is no library for others: it has all of Rust's standard library in
//! it, whose names would clash with those of another such archive, and bitcode beside the code. So
//! the core becomes one object: of what it reaches, with the names that the shared library exports,
//! and no others. What is wrong with archives where more than one object of a process is linked
//! with them, `compat/shim/copies.c` finds out when the program runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tools::{c_compiler, run};

/// What the object of the core does without: bitcode, and command lines for it.
const NOT_CODE: [&str; 2] = [".llvmbc", ".llvmcmd"];

/// What functions are called for profilers and reports of stalls, and for nothing else.
const NAMES_OF_RUST: [&str; 2] = ["_ZN*", "_R*"];

/// Makes `archive` out of what cargo made, with the names that the library `shared` exports.
pub(crate) fn core(made: &Path, shared: &Path, objects: &Path, archive: &Path) -> Result<()> {
    let names = exported(shared)?;
    ensure!(!names.is_empty(), "{} exports nothing", shared.display());
    let (whole, object) = (objects.join("whole.o"), objects.join("quiescence.o"));
    // What none of them reaches goes here already, and below the names that only it named: the
    // linker would warn of functions of the C library that no static program can have.
    let roots = names.iter().map(|name| format!("-Wl,-u,{name}"));
    run(c_compiler()
        .args(["-r", "-nostdlib", "-Wl,--gc-sections"])
        .args(roots)
        .arg(made)
        .arg("-o")
        .arg(&whole))?;
    let mut copy = Command::new("objcopy");
    copy.args(NOT_CODE.iter().map(|section| format!("--remove-section={section}")));
    copy.args(names.iter().map(|name| format!("--keep-global-symbol={name}")));
    run(copy.arg(&whole).arg(&object))?;
    fs::remove_file(whole)?;
    run(Command::new("objcopy")
        .args(["--wildcard", "--strip-unneeded"])
        .args(NAMES_OF_RUST.iter().map(|names| format!("--keep-symbol={names}")))
        .arg(&object))?;
    pack(&[object], archive)
}

/// Makes `archive` out of a thin library's objects.
pub(crate) fn thin(parts: &[PathBuf], objects: &Path, archive: &Path) -> Result<()> {
    let is_part = |part: &&PathBuf, name| part.to_string_lossy().contains(name);
    // Of one object, so that no program has the flavour without the look for another copy.
    let flavor: Vec<_> = parts
        .iter()
        .filter(|part| ["flavor.c", "copies.c"].iter().any(|n| is_part(part, n)))
        .collect();
    let mut members = Vec::new();
    if !flavor.is_empty() {
        let joined = objects.join(archive.file_name().context("an archive has a name")?);
        let joined = joined.with_extension("flavor.o");
        run(c_compiler().args(["-r", "-nostdlib"]).args(&flavor).arg("-o").arg(&joined))?;
        members.push(joined);
    }
    for part in parts.iter().filter(|part| !flavor.contains(part)) {
        // Several libraries have these functions, and a program may be linked with several.
        run(Command::new("objcopy")
            .args(["--wildcard", "--weaken-symbol=compat_futex_*"])
            .args(["--weaken-symbol=rcu_*_sym", "--weaken-symbol=rcu_*_sym2"])
            .arg(part))?;
        members.push(part.clone());
    }
    pack(&members, archive)
}

/// The names that a library exports.
pub(crate) fn exported(library: &Path) -> Result<Vec<String>> {
    let listed =
        run(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library))?;
    Ok(listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect())
}

/// Without times and owners: the same objects make the same archive.
fn pack(members: &[PathBuf], archive: &Path) -> Result<()> {
    _ = fs::remove_file(archive);
    run(Command::new("ar").arg("rcsD").arg(archive).args(members))?;
    Ok(())
}
