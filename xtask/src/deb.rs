//! Debian packages: `libquiescence-urcu0` has the libraries, `libquiescence-urcu-dev` what is
//! needed to compile, and `libquiescence-urcu-default` makes all programs of liburcu run on them.
//!
//! `libquiescence-urcu0-dbgsym` has the symbols that were stripped from the libraries.
//!
//! The first two are installed alongside Debian's liburcu8 and liburcu-dev and replace nothing.
//! Their libraries have Debian's sonames, and their headers Debian's names, so they are in
//! directories that no program searches by default. The third is for administrators who want every
//! program to use them: it makes the dynamic linker search there first. Debian's package stays
//! installed, with all packages that depend on it; once the third package is removed, programs use
//! Debian's libraries again. `docs/DESIGN.md`, "Compatible libraries", says why there is no
//! `Provides` and no diversion.
//!
//! Files that all architectures share have the same content on each, since the packages are
//! `Multi-Arch: same`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::compat::symlink;
use crate::install::{MANUAL, Part, Places, install_part};
use crate::library::{LIBRARIES, sonames};
use crate::pkgconfig;
use crate::tools::{self, c_compiler, files_below, run};

mod documents;
mod symbols;

use documents::{Documents, read};

const RUNTIME: &str = "libquiescence-urcu0";
const DEVELOPMENT: &str = "libquiescence-urcu-dev";
const DEFAULT: &str = "libquiescence-urcu-default";
/// Named as Debian's own tools name such packages.
const DEBUG: &str = "libquiescence-urcu0-dbgsym";

/// The packages' maintainer, and which build of this version they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// `Name <address>`, as in a control file.
    pub maintainer: String,
    /// The part of the packages' version that is not quiescence's.
    pub revision: u32,
}

impl Build {
    /// From the variables that Debian's own tools read.
    ///
    /// # Errors
    /// If one is missing, or has characters that a control file cannot have.
    pub fn from_environment(revision: u32) -> Result<Self> {
        let name = variable("DEBFULLNAME", "your name")?;
        let address = variable("DEBEMAIL", "your e-mail address")?;
        let (local, host) = address.split_once('@').unwrap_or_default();
        ensure!(
            !local.is_empty() && host.contains('.') && !address.contains(char::is_whitespace),
            "DEBEMAIL={address}: is no e-mail address (local@host.domain)"
        );
        Ok(Self { maintainer: format!("{name} <{address}>"), revision })
    }

    fn version(&self) -> String {
        // Lower than the first version that Debian itself would make (-1).
        format!("{}-0quiescence{}", env!("CARGO_PKG_VERSION"), self.revision)
    }
}

fn variable(name: &str, what: &str) -> Result<String> {
    let said = std::env::var(name).unwrap_or_default();
    let said = said.trim();
    ensure!(
        !said.is_empty(),
        "{name} is not set: packages name their maintainer; set {name} to {what}, as for Debian's \
         dch (DEBFULLNAME='Ada Example' DEBEMAIL=ada@example.org cargo xtask deb)"
    );
    let bad = said.chars().find(|c| c.is_control() || "<>,\"".contains(*c));
    ensure!(bad.is_none(), "{name}={said}: {:?} may not stand in it", bad.unwrap_or(' '));
    Ok(said.to_owned())
}

/// Makes the packages in `output` from the tree that was built.
///
/// # Errors
/// If a file cannot be written, or a tool (`dpkg-deb`, `strip`, `readelf`, `gzip`) is missing or
/// fails.
pub fn packages(tree: &Path, output: &Path, build: &Build) -> Result<Vec<PathBuf>> {
    let triplet = run(c_compiler().arg("-print-multiarch"))?.trim().to_owned();
    ensure!(
        !triplet.is_empty(),
        "the C compiler knows no multiarch directory: this is not a Debian system"
    );
    let architecture = run(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned();
    fs::create_dir_all(output).with_context(|| output.display().to_string())?;
    let documents = Documents::new(build)?;
    let maker = Maker { tree, output, build, documents, triplet, architecture };
    let (runtime, debug) = maker.runtime()?;
    Ok(vec![runtime, maker.development()?, maker.default_libraries()?, debug])
}

struct Maker<'m> {
    tree: &'m Path,
    output: &'m Path,
    build: &'m Build,
    documents: Documents,
    triplet: String,
    architecture: String,
}

/// Strips from a library what neither the dynamic linker nor the linker needs.
fn strip(library: &Path) -> Result<()> {
    let options = ["--strip-unneeded", "--remove-section=.comment"];
    run(Command::new("strip").args(options).arg(library)).map(drop)
}

impl Maker<'_> {
    fn home(&self) -> PathBuf {
        PathBuf::from(format!("/usr/lib/{}/quiescence", self.triplet))
    }

    fn runtime(&self) -> Result<(PathBuf, PathBuf)> {
        let stage = self.stage(RUNTIME)?;
        install_part(self.tree, &self.places(RUNTIME, &stage)?, Part::Runtime)?;
        compress(&stage.join("usr/share/man/man7").join(MANUAL))?;
        let libraries = stage.join(self.home().strip_prefix("/")?);
        let debug = self.debug(&libraries)?;
        write(&stage, "DEBIAN/symbols", &symbols::symbols(&libraries, RUNTIME, DEVELOPMENT)?)?;
        write(&stage, "DEBIAN/shlibs", &symbols::shlibs(RUNTIME))?;
        let depends = symbols::depends(&files_below(&libraries)?)?;
        Ok((self.finish(RUNTIME, &stage, &depends)?, debug))
    }

    /// Moves symbols and line tables from the libraries to a package of their own, as Debian
    /// requires. With it installed, profilers and stall reports name functions and lines.
    fn debug(&self, libraries: &Path) -> Result<PathBuf> {
        let stage = self.stage(DEBUG)?;
        for library in files_below(libraries)? {
            let name = library.file_name().context("a library has a name")?;
            let built = self.tree.join("lib").join(name);
            let id = symbols::build_id(&library)?;
            let (directory, file) = id.split_at(2);
            let place = stage.join("usr/lib/debug/.build-id").join(directory);
            fs::create_dir_all(&place)?;
            let place = place.join(format!("{file}.debug"));
            run(Command::new("objcopy")
                .args(["--only-keep-debug", "--compress-debug-sections"])
                .arg(&built)
                .arg(&place))?;
            strip(&library)?;
        }
        self.finish(DEBUG, &stage, &format!("{RUNTIME} (= {})", self.build.version()))
    }

    fn development(&self) -> Result<PathBuf> {
        let stage = self.stage(DEVELOPMENT)?;
        install_part(self.tree, &self.places(DEVELOPMENT, &stage)?, Part::Development)?;
        // Names that only we use may be in pkg-config's default directory.
        let usual = stage.join(format!("usr/lib/{}/pkgconfig", self.triplet));
        fs::create_dir_all(&usual)?;
        for file in files_below(&stage.join(self.home().strip_prefix("/")?).join("pkgconfig"))? {
            let name = file.file_name().context("a file has a name")?.to_string_lossy();
            if name.starts_with(pkgconfig::OWN) {
                symlink(format!("../quiescence/pkgconfig/{name}"), &usual.join(&*name))?;
            }
        }
        // These are libraries of their own, for the linker; the others are links.
        let home = stage.join(self.home().strip_prefix("/")?);
        let twins = LIBRARIES.iter().filter(|library| library.has_link_time_twin());
        let twins: Vec<_> = twins.map(|library| home.join(library.linker_name())).collect();
        twins.iter().try_for_each(|library| strip(library))?;
        let needed = symbols::depends(&twins)?;
        let depends = format!("{RUNTIME} (= {}), {needed}", self.build.version());
        self.finish(DEVELOPMENT, &stage, &depends)
    }

    /// A directory of links, which the dynamic linker searches. It is removed with the package, so
    /// a configuration file that is left behind leads nowhere.
    fn default_libraries(&self) -> Result<PathBuf> {
        let stage = self.stage(DEFAULT)?;
        let links = self.home().join("default");
        let place = stage.join(links.strip_prefix("/")?);
        fs::create_dir_all(&place)?;
        for name in sonames() {
            symlink(format!("../{name}"), &place.join(&name))?;
        }
        // Sorts before the files that name Debian's own directories.
        let file = format!("etc/ld.so.conf.d/00-quiescence-{}.conf", self.triplet);
        write(&stage, &file, &format!("# Of {DEFAULT}.\n{}\n", links.display()))?;
        write(&stage, "DEBIAN/conffiles", &format!("/{file}\n"))?;
        write(&stage, "DEBIAN/triggers", "activate-noawait ldconfig\n")?;
        let overrides = read(&format!("compat/packages/debian/{DEFAULT}.lintian-overrides"))?;
        write(&stage, &format!("usr/share/lintian/overrides/{DEFAULT}"), &overrides)?;
        let depends = format!("{RUNTIME} (= {})", self.build.version());
        self.finish(DEFAULT, &stage, &depends)
    }

    fn stage(&self, name: &str) -> Result<PathBuf> {
        let stage = self.output.join(format!("{name}.stage"));
        if stage.exists() {
            fs::remove_dir_all(&stage).with_context(|| stage.display().to_string())?;
        }
        Ok(stage)
    }

    fn places(&self, name: &str, stage: &Path) -> Result<Places> {
        let places = Places {
            prefix: "/usr".into(),
            libdir: self.home(),
            includedir: "include/quiescence".into(),
            docdir: format!("share/doc/{name}").into(),
            destdir: Some(stage.to_path_buf()),
            dry_run: false,
        };
        places.checked()
    }

    /// Adds what all packages have (documents, checksums, the control file), and builds the
    /// package.
    fn finish(&self, name: &str, stage: &Path, depends: &str) -> Result<PathBuf> {
        self.documents.write(name, stage)?;
        write(stage, "DEBIAN/md5sums", &sums(stage)?)?;
        let (version, architecture) = (self.build.version(), &self.architecture);
        let (maintainer, kilobytes) = (&self.build.maintainer, installed_kilobytes(stage)?);
        let described = read(&format!("compat/packages/debian/{name}.control"))?;
        let control = format!(
            "Package: {name}\nSource: quiescence\nVersion: {version}\n\
             Architecture: {architecture}\nMulti-Arch: same\nMaintainer: {maintainer}\n\
             Installed-Size: {kilobytes}\nDepends: {depends}\n{described}"
        );
        write(stage, "DEBIAN/control", &control)?;
        // Modes that Debian requires, whatever the umask is.
        run(Command::new("chmod").args(["--recursive", "a-xs,u=rwX,go=rX"]).arg(stage))?;
        let package = self.output.join(format!("{name}_{version}_{architecture}.deb"));
        run(Command::new("dpkg-deb")
            .env("SOURCE_DATE_EPOCH", self.documents.date.to_string())
            .args(["--build", "--root-owner-group"])
            .arg(stage)
            .arg(&package))?;
        fs::remove_dir_all(stage)?;
        Ok(package)
    }
}

fn write(stage: &Path, path: &str, text: &str) -> Result<()> {
    tools::write(&stage.join(path), text)
}

/// Compresses a file in place, without its name and time, so that the same text gives the same
/// file.
fn compress(file: &Path) -> Result<()> {
    run(Command::new("gzip").args(["-9", "--no-name", "--force"]).arg(file)).map(|_| ())
}

/// The files of the package, except those for `dpkg` itself.
fn shipped(stage: &Path) -> Result<Vec<PathBuf>> {
    let mut files = files_below(stage)?;
    files.retain(|file| !file.starts_with(stage.join("DEBIAN")));
    Ok(files)
}

fn installed_kilobytes(stage: &Path) -> Result<u64> {
    let files = shipped(stage)?;
    let sizes = files.iter().map(|file| Ok(fs::symlink_metadata(file)?.len().div_ceil(1024)));
    sizes.sum()
}

/// The checksum of each file; links have none.
fn sums(stage: &Path) -> Result<String> {
    let files = shipped(stage)?;
    let names = files.iter().filter(|file| !file.is_symlink());
    let names: Vec<_> = names.map(|file| file.strip_prefix(stage)).collect::<Result<_, _>>()?;
    run(Command::new("md5sum").current_dir(stage).args(names))
}
