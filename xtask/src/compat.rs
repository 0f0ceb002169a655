//! Builds the libraries: the core out of the crate `compat`, the thin ones out of `compat/shim`,
//! into `target/compat`.
//!
//! The core is a static library of Rust that the C compiler links into `libquiescence.so.0`:
//! cargo's own shared libraries have no soname and export what they please. Each thin library is a
//! few objects of C and assembly, linked against it, and exports what its version script in
//! `compat/link` lets out. Nothing may stay undefined. What static programs are linked with is made
//! of the same parts by `archives`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};

use crate::library::{CORE, CORE_ARCHIVE, CORE_LINK, LIBRARIES, Library};
use crate::tools::{built_file, c_compiler, cargo, files_below, root, run};
use crate::{archives, cmake, headers, mutants, pkgconfig, say};

/// What all is linked with: no lazy binding, for a reader's first call is no place for the linker's
/// locks; never unloaded, for threads and readers' records outlive any `dlclose`.
const LINK: &[&str] = &[
    "-shared",
    "-Wl,-z,defs",
    "-Wl,-z,now",
    "-Wl,-z,relro",
    "-Wl,-z,nodelete",
    "-Wl,-z,noexecstack",
    "-Wl,--hash-style=gnu",
    "-Wl,--build-id",
    "-Wl,--gc-sections",
];

/// What the thin libraries are compiled with. For the last ones see `shim/flavor.c`: architectures
/// but this one have one dialect of thread-local access, the good one.
const COMPILE: &[&str] = &[
    "-O2",
    "-g",
    "-fPIC",
    "-fno-plt",
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-mgeneral-regs-only",
    #[cfg(target_arch = "x86_64")]
    "-mtls-dialect=gnu2",
];

/// The directory with `lib`, `lib/pkgconfig` and `include`, built first if that is needed, unless
/// `QUIESCENCE_COMPAT` says where it is. For tests.
///
/// # Panics
/// If it cannot be built; the message says why.
pub fn built() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || build().unwrap_or_else(|error| panic!("cargo xtask compat: {error:#}"));
    let there = || std::env::var_os("QUIESCENCE_COMPAT").map(PathBuf::from);
    BUILT.get_or_init(|| there().unwrap_or_else(build)).clone()
}

/// Builds the libraries of the copy in which steps can be removed: `QUIESCENCE_MUTANT` names one.
/// Returns the directory, which is not that of [`build`].
///
/// # Errors
/// As [`build`].
pub fn build_with_hooks() -> Result<PathBuf> {
    let (work, _lock) = workplace("compat-hooks")?;
    let archive = core_archive(&mutants::tree()?, &work, mutants::FLAGS)?;
    let build = Build { root: root(), archive, stage: work.join("stage") };
    build.make()?;
    Ok(build.stage)
}

/// Builds what has changed, and returns the directory. One process at a time does; others wait for
/// it.
///
/// # Errors
/// If a tool is missing or fails; the error says which, and what it said.
pub fn build() -> Result<PathBuf> {
    let root = root();
    let (work, _lock) = workplace("compat-build")?;
    let archive = core_archive(&root, &work, "")?;
    let build = Build { root, archive, stage: work.join("stage") };
    let tree = build.root.join("target/compat");
    let stamp_file = work.join("stamp");
    let stamp = build.stamp()?;
    if fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp)
        && tree.join("include").is_dir()
    {
        return Ok(tree);
    }
    say::begun("making the libraries in target/compat");
    // Until it is whole again there is no stamp.
    _ = fs::remove_file(&stamp_file);
    build.make()?;
    // Whole trees are moved: a process that has an old file open or mapped keeps it.
    let old = work.join("old");
    _ = fs::remove_dir_all(&old);
    _ = fs::rename(&tree, &old);
    fs::rename(&build.stage, &tree).with_context(|| tree.display().to_string())?;
    _ = fs::remove_dir_all(&old);
    fs::write(&stamp_file, stamp)?;
    Ok(tree)
}

/// A directory of target to work in, which is this process's as long as the file is open.
pub(crate) fn workplace(name: &str) -> Result<(PathBuf, File)> {
    let work = root().join("target").join(name);
    fs::create_dir_all(&work).with_context(|| work.display().to_string())?;
    let lock = File::create(work.join("lock"))?;
    lock.lock().context("waiting for another build")?;
    Ok((work, lock))
}

/// Lets cargo build the core, with these flags of the compiler if there are any. Returns where the
/// archive is.
fn core_archive(root: &Path, work: &Path, flags: &str) -> Result<PathBuf> {
    let what = ["--package", "quiescence-compat", "--lib", "--profile", "compat"];
    let mut cargo = cargo(root);
    if !flags.is_empty() {
        cargo.env("RUSTFLAGS", flags);
    }
    cargo.arg("build").args(what).args(["--features", "library", "--target-dir"]).arg(work);
    built_file(&mut cargo, "libcompat.a")
}

struct Build {
    root: PathBuf,
    /// The core, as cargo made it.
    archive: PathBuf,
    /// Where all is made, before it is brought to where others look.
    stage: PathBuf,
}

impl Build {
    fn folder(&self, name: &str) -> PathBuf {
        self.root.join("compat").join(name)
    }

    fn library(&self, name: &str) -> PathBuf {
        self.stage.join("lib").join(name)
    }

    /// All that the result depends on: paths, sizes, times.
    fn stamp(&self) -> Result<String> {
        let mut inputs = vec![self.archive.clone()];
        // What it is linked with, and how, is said in the sources of this crate.
        for folder in ["compat/shim", "compat/link", "compat/include", "xtask/src"] {
            inputs.extend(files_below(&self.root.join(folder))?);
        }
        let mut stamp = format!("{:?}\n", c_compiler());
        for input in inputs {
            let status = fs::metadata(&input).with_context(|| input.display().to_string())?;
            stamp += &format!("{} {} {:?}\n", input.display(), status.len(), status.modified()?);
        }
        Ok(stamp)
    }

    fn make(&self) -> Result<()> {
        _ = fs::remove_dir_all(&self.stage);
        fs::create_dir_all(self.library("pkgconfig"))?;
        headers::write(&self.stage.join("include"))?;
        self.link_core()?;
        self.make_thin()?;
        for (name, text) in
            pkgconfig::files("${pcfiledir}/../..", "${prefix}/lib", "${prefix}/include")
        {
            fs::write(self.library("pkgconfig").join(name), text)?;
        }
        let cmake = self.library(cmake::place(&self.library("")));
        fs::create_dir_all(&cmake)?;
        for (name, text) in cmake::files() {
            fs::write(cmake.join(name), text)?;
        }
        Ok(())
    }

    /// The core's archive, as one object with the names that the shared one exports and no others.
    /// And of each thin library what programs run on, what the linker is given, and the archive.
    fn make_thin(&self) -> Result<()> {
        let objects = self.stage.join("objects");
        fs::create_dir_all(&objects)?;
        archives::core(&self.archive, &self.library(CORE), &objects, &self.library(CORE_ARCHIVE))?;
        for library in LIBRARIES.iter() {
            let compiled = |options: &[&str]| self.compile(library, &objects, options);
            self.link(library, &compiled(&[])?, &library.soname())?;
            let name = library.linker_name();
            if library.has_link_time_twin() {
                self.link(library, &compiled(&["-DSHIM_LINK_TIME"])?, &name)?;
            } else {
                symlink(library.soname(), &self.library(&name))?;
            }
            let archive = self.library(&library.archive());
            archives::thin(&compiled(&["-DSHIM_ARCHIVE"])?, &objects, &archive)?;
        }
        fs::remove_dir_all(objects)?;
        Ok(())
    }

    /// The core: whole, for what it exports is asked for by others only. A panic in it aborts.
    fn link_core(&self) -> Result<()> {
        run(c_compiler()
            .args(LINK)
            .arg(format!("-Wl,-soname,{CORE}"))
            .arg(version_script(&self.folder("link/quiescence.map")))
            .args([
                "-Wl,--whole-archive".as_ref(),
                self.archive.as_os_str(),
                "-Wl,--no-whole-archive".as_ref(),
            ])
            .args(["-Wl,--as-needed", "-lgcc_s", "-lpthread", "-lm", "-ldl", "-lc", "-o"])
            .arg(self.library(CORE)))?;
        symlink(CORE, &self.library(CORE_LINK))
    }

    fn compile(&self, library: &Library, to: &Path, options: &[&str]) -> Result<Vec<PathBuf>> {
        let object = |source: &String| {
            let object = to.join(format!("liburcu{}.{source}.o", library.suffix));
            let mut compiler = c_compiler();
            compiler.args(COMPILE).arg("-I").arg(self.stage.join("include")).args(options);
            compiler.args(library.define.iter().map(|name| format!("-D{name}")));
            compiler.arg("-c").arg(self.folder("shim").join(source)).arg("-o").arg(&object);
            run(&mut compiler).map(|_| object)
        };
        library.sources.iter().map(object).collect()
    }

    /// Into a file of this name.
    fn link(&self, library: &Library, objects: &[PathBuf], name: &str) -> Result<()> {
        let soname = library.soname();
        run(c_compiler()
            .args(LINK)
            .arg(format!("-Wl,-soname,{soname}"))
            .arg(version_script(&self.folder("link").join(&library.script)))
            .args(library.auxiliary.iter().map(|name| format!("-Wl,--auxiliary,{name}")))
            .args(["-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN"])
            .args(objects)
            .arg(self.library(CORE))
            .arg("-o")
            .arg(self.library(name)))?;
        Ok(())
    }
}

fn version_script(path: &Path) -> String {
    format!("-Wl,--version-script={}", path.display())
}

/// A symbolic link, in place of whatever was there. Made beside its place and moved there: tests
/// that run at once make the same ones.
pub(crate) fn symlink(target: impl AsRef<Path>, link: &Path) -> Result<()> {
    let new = link.with_added_extension(format!("new-{}", std::process::id()));
    _ = fs::remove_file(&new);
    std::os::unix::fs::symlink(target, &new).with_context(|| new.display().to_string())?;
    fs::rename(&new, link).with_context(|| link.display().to_string())
}
