//! Other programs, run: the compiler, cargo, binutils. An error says which command failed, and what
//! it said.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::say;

/// Runs a command to its end. Its standard output is returned; of its complaints the caller's
/// standard error gets a copy.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output = match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let name = command.get_program().to_string_lossy().into_owned();
            bail!(
                "{name} is not on this machine (on Debian: apt-get install {})",
                package_of(&name)
            );
        }
        other => other.with_context(|| described(command))?,
    };
    let complaints = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{}: {}\n{complaints}", described(command), output.status);
    }
    if !complaints.trim().is_empty() {
        say::aside(complaints.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn described(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

fn package_of(program: &str) -> &'static str {
    match program {
        "readelf" | "strip" | "nm" | "ar" | "objcopy" => "binutils",
        "dpkg-deb" | "dpkg" => "dpkg",
        "gzip" => "gzip",
        "qemu-system-riscv64" => "qemu-system-misc opensbi",
        _ => "gcc",
    }
}

/// The cargo that runs this program, in a directory.
pub(crate) fn cargo(directory: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(directory);
    cargo
}

/// Lets cargo build something, and returns the files it made: those of test programs, or all
/// others. What it says meanwhile is shown: the first time takes minutes.
pub(crate) fn built(cargo: &mut Command, tests: bool) -> Result<Vec<PathBuf>> {
    cargo.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let messages = run(cargo)?;
    let made = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter(|message| message["profile"]["test"] == tests)
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|name| name.as_str().map(PathBuf::from));
    Ok(made.collect())
}

/// A program of a package of this repository, built to be fast.
pub(crate) fn built_program(package: &str, name: &str) -> Result<PathBuf> {
    let mut build = cargo(&root());
    build.args(["build", "--locked", "--release", "--package", package, "--bin", name]);
    built_file(&mut build, name)
}

/// Lets cargo build something, and returns the file of this name that it made.
pub(crate) fn built_file(cargo: &mut Command, name: &str) -> Result<PathBuf> {
    let made = built(cargo, false)?.into_iter().find(|path| path.ends_with(name));
    made.with_context(|| format!("{}: it built no {name}", described(cargo)))
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is a folder of the repository").to_path_buf()
}

/// Writes a row of docs/WORKS_WITH.md, as `.ci/row` says.
pub(crate) fn works_with(cells: &[&str]) -> Result<()> {
    run(Command::new(root().join(".ci/row")).arg("docs/WORKS_WITH.md").args(cells)).map(drop)
}

/// The C compiler: `CC`, or `cc`.
pub(crate) fn c_compiler() -> Command {
    Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

/// Copies all files below a directory.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    for file in files_below(from)? {
        let place = to.join(file.strip_prefix(from)?);
        fs::create_dir_all(place.parent().expect("a file has a directory"))?;
        fs::copy(&file, &place).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// Writes a file, in a directory that is made for it if need be.
pub(crate) fn write(place: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let directory = place.parent().expect("a file has a directory");
    let written = fs::create_dir_all(directory).and_then(|()| fs::write(place, bytes));
    written.with_context(|| place.display().to_string())
}

/// All files below a directory, in a fixed order.
///
/// # Errors
/// If a directory cannot be read.
pub fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        let entries = fs::read_dir(&directory).with_context(|| directory.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() { waiting.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let missing = "no-such-compiler";
        let error = run(&mut Command::new(missing)).unwrap_err().to_string();
        assert_eq!(
            error,
            "no-such-compiler is not on this machine (on Debian: apt-get install gcc)"
        );
        assert_eq!(package_of("readelf"), "binutils");
    }

    #[test]
    fn a_failure_names_the_command_and_what_it_said() {
        let error =
            run(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err().to_string();
        assert_eq!(error, "sh -c echo why >&2; exit 3: exit status: 3\nwhy\n");
        assert_eq!(run(Command::new("sh").args(["-c", "echo out"])).unwrap(), "out\n");
    }
}
