//! The compiler that these tests were built with, for programs that it must refuse.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::common::expect;

/// What each program may use: a library of another build, with other features, is not taken.
const USED: &str = "pub fn f() { drop((quiescence::read(), quiescence::epoch::pin())); \
                    drop(quiescence::collections::HashMap::<u64, u64>::new()); }";

/// The compiler, and the library that is there for tests.
pub(crate) struct Compiler {
    program: String,
    library: PathBuf,
    dependencies: Vec<PathBuf>,
    folder: tempfile::TempDir,
}

impl Compiler {
    /// `None`, said on standard error, where there is no compiler, or one that cannot use what this
    /// test was linked with.
    pub(crate) fn find() -> Option<Self> {
        let beside = (!cfg!(miri)).then(env::current_exe)?.ok()?;
        let folders = folders(beside.parent()?);
        let found = Self::with_one_of(libraries(&folders), &folders);
        if found.is_none() {
            expect::say("rustc of this build", "", "have the toolchain in the PATH");
        }
        found
    }

    /// With the first library that has what programs use.
    fn with_one_of(libraries: Vec<PathBuf>, dependencies: &[PathBuf]) -> Option<Self> {
        let program = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let with = |library| {
            let (program, dependencies) = (program.clone(), dependencies.to_vec());
            Some(Self { program, library, dependencies, folder: tempfile::tempdir().ok()? })
        };
        libraries.into_iter().filter_map(with).find(|compiler| compiler.compile(USED).is_ok())
    }

    /// What it says of a program that it refuses.
    pub(crate) fn compile(&self, program: &str) -> Result<(), String> {
        let source = self.folder.path().join("program.rs");
        fs::write(&source, program).map_err(|error| error.to_string())?;
        let output = Command::new(&self.program)
            .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--color=never"])
            .arg(format!("--extern=quiescence={}", self.library.display()))
            .args(
                self.dependencies.iter().map(|folder| format!("-Ldependency={}", folder.display())),
            )
            .arg("--out-dir")
            .arg(self.folder.path())
            .arg(&source)
            .output()
            .map_err(|error| error.to_string())?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(errors) }
    }
}

fn entries(folder: &Path) -> Vec<fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten().collect()
}

/// Where cargo has put what it has built: beside the test, or, as newer ones do, each crate in a
/// folder `build/PACKAGE/HASH/out`.
fn folders(beside: &Path) -> Vec<PathBuf> {
    let Some(build) = beside.ancestors().nth(3).filter(|_| beside.ends_with("out")) else {
        return vec![beside.to_owned()];
    };
    let packages = entries(build).into_iter();
    let hashes = packages.flat_map(|package| entries(&package.path()));
    hashes.map(|hash| hash.path().join("out")).collect()
}

/// What cargo has built of the library in these folders, the newest first.
fn libraries(folders: &[PathBuf]) -> Vec<PathBuf> {
    let is_library = |name: &str| name.starts_with("libquiescence-") && name.ends_with(".rmeta");
    let files = folders.iter().flat_map(|folder| entries(folder));
    let mut found: Vec<_> = files
        .filter(|entry| entry.file_name().to_str().is_some_and(is_library))
        .map(|entry| (entry.metadata().and_then(|file| file.modified()).ok(), entry.path()))
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, path)| path).collect()
}

/// In a folder that was used before, the newest one was that of the C libraries, which has no
/// collections.
#[test]
fn a_newer_library_of_another_build_is_passed_over() {
    let Some(Compiler { library, dependencies, .. }) = Compiler::find() else { return };
    let other = library.with_file_name("libquiescence-of-another-build.rmeta");
    let found = Compiler::with_one_of(vec![other, library.clone()], &dependencies);
    assert_eq!(found.expect("the second one is right").library, library);
}
