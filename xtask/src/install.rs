//! Installs what was built: libraries, links, archives, headers, files for pkg-config and CMake,
//! the manual page and the examples, below a prefix, for programs or for a packager's directory;
//! and takes it away again.
//!
//! By default into directories of their own: the libraries have liburcu's sonames, and in one where
//! the dynamic linker looks (`/usr/local/lib` comes first on Debian) they would change what every
//! program of the system runs on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::compat::symlink;
use crate::library::{CORE, CORE_ARCHIVE, CORE_LINK, LIBRARIES, sonames};
use crate::tools::{files_below, root, run};
use crate::{cmake, headers, pkgconfig, say};

/// The manual page of the libraries.
pub(crate) const MANUAL: &str = "libquiescence-urcu.7";

/// Where things go.
#[derive(Clone, Debug, clap::Args)]
pub struct Places {
    /// Where it is installed, as it will be found by programs. Absolute.
    #[arg(long, value_name = "DIR", default_value = "/usr/local")]
    pub(crate) prefix: PathBuf,
    /// The libraries' directory: absolute, or below the prefix. In one where the system looks for
    /// libraries they take liburcu's place for every program.
    #[arg(long, value_name = "DIR", default_value = "lib/quiescence")]
    pub(crate) libdir: PathBuf,
    /// The headers' directory: absolute, or below the prefix.
    #[arg(long, value_name = "DIR", default_value = "include/quiescence")]
    pub(crate) includedir: PathBuf,
    /// Put before every path, for packagers. What is installed does not know of it.
    #[arg(long, value_name = "DIR")]
    pub(crate) destdir: Option<PathBuf>,
    /// Say which files, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// That of the examples, below the prefix.
    #[arg(skip = "share/doc/quiescence")]
    pub(crate) docdir: PathBuf,
}

/// Which of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What programs need to run.
    Runtime,
    /// What is needed to compile them.
    Development,
}

impl Places {
    /// With absolute paths.
    ///
    /// # Errors
    /// If a path that programs will see is not absolute, or goes up, or could not stand in a
    /// pkg-config file.
    pub fn checked(mut self) -> Result<Self> {
        checked("--prefix", &self.prefix)?;
        self.libdir = self.prefix.join(self.libdir);
        self.includedir = self.prefix.join(self.includedir);
        self.docdir = self.prefix.join(self.docdir);
        checked("--libdir", &self.libdir)?;
        checked("--includedir", &self.includedir)?;
        let is_empty = self.destdir.as_ref().is_some_and(|path| path.as_os_str().is_empty());
        ensure!(!is_empty, "--destdir is empty; leave it out to install for real");
        Ok(self)
    }

    /// Where a file is put that programs will find at `path`.
    fn put(&self, path: &Path) -> PathBuf {
        match &self.destdir {
            Some(destdir) => {
                destdir.join(path.strip_prefix("/").expect("it was checked to be absolute"))
            }
            None => path.to_path_buf(),
        }
    }
}

fn checked(option: &str, path: &Path) -> Result<()> {
    let shown = path.display();
    ensure!(
        path.is_absolute(),
        "{option} {shown}: must be absolute, since programs look there from anywhere"
    );
    ensure!(
        !path.components().any(|part| part == Component::ParentDir),
        "{option} {shown}: must not go up (..)"
    );
    let text = path.to_str().with_context(|| format!("{option} {shown}: must be UTF-8"))?;
    let bad =
        text.chars().find(|c| c.is_whitespace() || c.is_control() || "$#\\\"'`:".contains(*c));
    ensure!(
        bad.is_none(),
        "{option} {shown}: has a {:?}, with which pkg-config cannot deal",
        bad.unwrap_or(' ')
    );
    Ok(())
}

/// Installs all of it from `tree`, and says what, one path a line, when it is there.
///
/// # Errors
/// If a file cannot be written; what came before it stays.
pub fn install(tree: &Path, places: &Places) -> Result<()> {
    for item in items(tree, places)? {
        let place = places.put(&item.path);
        if !places.dry_run {
            item.install(&place)?;
        }
        say::line(place.display())?;
    }
    Ok(())
}

/// Takes away what [`install`] put there, and the directories that are empty then; says what, one
/// path a line. Nothing is built for it. Files that an earlier version had and this one has not
/// stay.
///
/// # Errors
/// If the core is not there: then whatever else has these names is somebody else's. If something
/// cannot be removed.
pub fn uninstall(places: &Places) -> Result<()> {
    let core = places.put(&places.libdir.join(CORE));
    ensure!(core.exists(), "{} is not there: nothing of ours is installed so", core.display());
    // Of what is installed only the places matter, and not what it would be copied from.
    let mut installed: Vec<PathBuf> = items(Path::new(""), places)?
        .iter()
        .map(|item| places.put(&item.path))
        .filter(|place| fs::symlink_metadata(place).is_ok())
        .collect();
    // The core last: an interrupted installation can begin again.
    installed.sort_by_key(|place| *place == core);
    for place in &installed {
        if !places.dry_run {
            fs::remove_file(place).with_context(|| place.display().to_string())?;
        }
        say::line(place.display())?;
    }
    if !places.dry_run {
        let bounds = [&places.libdir, &places.includedir, &places.docdir];
        let bounds = bounds.map(|directory| places.put(directory));
        for place in &installed {
            let ours = place
                .ancestors()
                .skip(1)
                .take_while(|place| bounds.iter().any(|bound| place.starts_with(bound)));
            // One with something in it is somebody else's as well, and stays.
            ours.for_each(|directory| _ = fs::remove_dir(directory));
        }
    }
    Ok(())
}

/// The same for one part, silently.
pub(crate) fn install_part(tree: &Path, places: &Places, part: Part) -> Result<()> {
    let all = items(tree, places)?;
    let mut of_part = all.iter().filter(|item| item.part == part);
    of_part.try_for_each(|item| item.install(&places.put(&item.path)))
}

struct Item {
    part: Part,
    /// Where programs find it.
    path: PathBuf,
    content: Content,
}

enum Content {
    /// A library, or an archive of one.
    Library(PathBuf),
    Link(String),
    Copy(PathBuf),
    Text(String),
}

fn items(tree: &Path, places: &Places) -> Result<Vec<Item>> {
    use Part::{Development, Runtime};
    let Places { prefix, libdir, includedir, docdir, .. } = places;
    let mut items = Vec::new();
    let mut add = |part, path: PathBuf, content| items.push(Item { part, path, content });
    let built = |name: &str| Content::Library(tree.join("lib").join(name));
    for name in sonames() {
        add(Runtime, libdir.join(&name), built(&name));
    }
    let page = root().join("compat/man").join(MANUAL);
    add(Runtime, prefix.join("share/man/man7").join(MANUAL), Content::Copy(page));
    add(Development, libdir.join(CORE_LINK), Content::Link(CORE.to_owned()));
    for library in LIBRARIES.iter() {
        let (name, is_twin) = (library.linker_name(), library.has_link_time_twin());
        let content = if is_twin { built(&name) } else { Content::Link(library.soname()) };
        add(Development, libdir.join(name), content);
    }
    let archives = LIBRARIES.iter().map(|library| library.archive());
    for name in std::iter::once(CORE_ARCHIVE.to_owned()).chain(archives) {
        add(Development, libdir.join(&name), built(&name));
    }
    for (place, header) in headers::all()? {
        add(Development, includedir.join(place), Content::Text(header));
    }
    let text = |path: &Path| path.to_str().expect("it was checked").to_owned();
    let places = [prefix, libdir, includedir].map(|path| text(path));
    let [of_prefix, of_libdir, of_includedir] = &places;
    for (name, content) in pkgconfig::files(of_prefix, of_libdir, of_includedir) {
        add(Development, libdir.join("pkgconfig").join(name), Content::Text(content));
    }
    for (name, content) in cmake::files_for(of_libdir, of_includedir) {
        let place = libdir.join(cmake::place(libdir)).join(name);
        add(Development, place, Content::Text(content));
    }
    let examples = root().join("compat/examples");
    for example in files_below(&examples)? {
        let place = docdir.join("examples").join(example.strip_prefix(&examples)?);
        add(Development, place, Content::Copy(example));
    }
    Ok(items)
}

impl Item {
    /// Made beside its place and moved there: a running program keeps the file that it has mapped.
    fn install(&self, place: &Path) -> Result<()> {
        let directory = place.parent().expect("a file has a directory");
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        let name = self.path.file_name().unwrap_or_default().display();
        let new = directory.join(format!(".{name}.new"));
        let written = match &self.content {
            Content::Link(target) => return symlink(target, place),
            Content::Copy(from) => fs::copy(from, &new).map(drop),
            Content::Text(text) => fs::write(&new, text),
            // Without line tables; symbols stay, for profilers and what names frames of reports.
            Content::Library(from) => {
                let mut strip = Command::new("strip");
                strip.args(["--strip-debug", "--enable-deterministic-archives"]);
                run(strip.arg(from).arg("-o").arg(&new))?;
                Ok(())
            }
        };
        written.with_context(|| new.display().to_string())?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o644))?;
        fs::rename(&new, place).with_context(|| place.display().to_string())
    }
}
