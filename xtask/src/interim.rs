//! While parts of the core are still being written: functions in their place that end the process. Goes when none is
//! missing; then an undefined symbol is the linker's error.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::tools::{c_compiler, run};

/// Weak: a function that the core has is the core's.
pub(crate) fn stand_ins(objects: &[PathBuf], work: &Path) -> Result<PathBuf> {
    let mut text = String::from("#include <stdio.h>\n#include <stdlib.h>\n");
    for name in symbols(Command::new("nm").args(["-g", "--undefined-only"]).args(objects))? {
        text += &format!(
            "__attribute__((weak)) void {name}(void) {{ fprintf(stderr, \"{name}: not there yet\\n\"); abort(); }}\n"
        );
    }
    let (source, object) = (work.join("interim.c"), work.join("interim.o"));
    fs::write(&source, text)?;
    run(c_compiler()
        .args(["-fPIC", "-ffunction-sections", "-c"])
        .arg(source)
        .arg("-o")
        .arg(&object))?;
    Ok(object)
}

fn symbols(nm: &mut Command) -> Result<BTreeSet<String>> {
    let text = run(nm)?;
    let names = text.lines().filter_map(|line| line.split_whitespace().last());
    Ok(names.filter(|name| name.starts_with("quiescence_")).map(str::to_owned).collect())
}
