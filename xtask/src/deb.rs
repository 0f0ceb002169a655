//! Debian packages: `libquiescence-urcu0`, the libraries, and `libquiescence-urcu-dev`, what is
//! needed to compile.
//!
//! They stand beside Debian's own liburcu8 and replace nothing: the libraries have its sonames, so
//! they go into a directory of their own, where no program looks by itself. A user who wants them
//! for one program, or for all, says so (`README.Debian` in the package). A package that provided
//! liburcu8 would have to conflict with it, and would change what every program on the system runs
//! on, in one step and unasked; no admin would thank us for it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::compat;
use crate::install::{Part, Places, install_part};
use crate::tools::{c_compiler, files_below, run};

const RUNTIME: &str = "libquiescence-urcu0";
const DEVELOPMENT: &str = "libquiescence-urcu-dev";
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// Makes the packages in `output`, out of the directory that was built.
///
/// # Errors
/// If a file cannot be written, or a tool (`dpkg-deb`, `strip`, `readelf`) is missing or fails.
pub fn packages(tree: &Path, output: &Path) -> Result<Vec<PathBuf>> {
    let triplet = run(c_compiler().arg("-print-multiarch"))?.trim().to_owned();
    ensure!(
        !triplet.is_empty(),
        "the C compiler knows no multiarch directory: this is not a Debian system"
    );
    let home = PathBuf::from(format!("/usr/lib/{triplet}/quiescence"));
    let architecture = run(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned();
    fs::create_dir_all(output).with_context(|| output.display().to_string())?;
    [Part::Runtime, Part::Development]
        .into_iter()
        .map(|part| package(tree, output, &home, &architecture, part))
        .collect()
}

fn package(
    tree: &Path,
    output: &Path,
    home: &Path,
    architecture: &str,
    part: Part,
) -> Result<PathBuf> {
    let name = if part == Part::Runtime { RUNTIME } else { DEVELOPMENT };
    let stage = output.join(format!("{name}.stage"));
    _ = fs::remove_dir_all(&stage);
    let places =
        Places::new("/usr".into(), home.into(), "include/quiescence".into(), Some(stage.clone()))?;
    install_part(tree, &places, part)?;
    write(&stage, &format!("usr/share/doc/{name}/copyright"), &copyright()?)?;
    write(&stage, &format!("usr/share/doc/{name}/README.Debian"), &readme(home, part))?;
    let kilobytes = installed_kilobytes(&stage)?;
    let depends = match part {
        Part::Runtime => runtime_depends(&tree.join("lib"))?,
        Part::Development => format!("{RUNTIME} (= {VERSION})"),
    };
    write(&stage, "DEBIAN/control", &control(name, architecture, kilobytes, &depends, part))?;
    set_modes(&stage)?;
    let package = output.join(format!("{name}_{VERSION}_{architecture}.deb"));
    run(Command::new("dpkg-deb")
        .args(["--build", "--root-owner-group"])
        .arg(&stage)
        .arg(&package))?;
    fs::remove_dir_all(&stage)?;
    Ok(package)
}

fn control(name: &str, architecture: &str, kilobytes: u64, depends: &str, part: Part) -> String {
    let (section, summary, text) = match part {
        Part::Runtime => (
            "libs",
            "liburcu's libraries on quiescence's grace periods",
            " Libraries with the names, symbols and layouts of liburcu 0.13, for programs that were compiled\n \
             against it. They are in a directory of their own; no program uses them until it is told to.\n",
        ),
        Part::Development => (
            "libdevel",
            "headers of libquiescence-urcu0, and <rcu> of C++26",
            " Headers with liburcu's names, links and pkg-config files to compile programs against, and the\n \
             C++ headers <rcu> and <hazard_pointer>. liburcu-dev may be installed at the same time.\n",
        ),
    };
    format!(
        "Package: {name}\n\
         Version: {VERSION}\n\
         Architecture: {architecture}\n\
         Maintainer: quiescence <maintainers@quiescence.invalid>\n\
         Installed-Size: {kilobytes}\n\
         Depends: {depends}\n\
         Section: {section}\n\
         Priority: optional\n\
         Description: {summary}\n{text}"
    )
}

/// The C library, at the newest version whose symbols the libraries use; the compiler's, if one of
/// them needs it.
fn runtime_depends(libraries: &Path) -> Result<String> {
    let (mut newest, mut unwinder) = ((0, 0), false);
    for library in
        files_below(libraries)?.iter().filter(|path| path.to_string_lossy().contains(".so."))
    {
        let text = run(Command::new("readelf")
            .args(["--wide", "--version-info", "--dynamic"])
            .arg(library))?;
        unwinder |= text.contains("[libgcc_s.so.1]");
        let needed = text.split("Name: GLIBC_").skip(1);
        newest = needed.filter_map(leading_version).fold(newest, Ord::max);
    }
    ensure!(
        newest != (0, 0),
        "none of the libraries in {} needs the C library",
        libraries.display()
    );
    let unwinder = if unwinder { ", libgcc-s1" } else { "" };
    Ok(format!("libc6 (>= {}.{}){unwinder}", newest.0, newest.1))
}

/// `2.34  Flags: ...` is (2, 34).
fn leading_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers =
        text.split_whitespace().next()?.split('.').map_while(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

fn readme(home: &Path, part: Part) -> String {
    let home = home.display();
    match part {
        Part::Runtime => format!(
            "The libraries are in {home}. Programs go on using liburcu8 until they are told otherwise.\n\
             \n\
             One run of one program:\n\
             \x20   LD_LIBRARY_PATH={home} program\n\
             One service, for good (systemctl edit NAME):\n\
             \x20   [Service]\n\
             \x20   Environment=LD_LIBRARY_PATH={home}\n\
             All programs, for good: a file /etc/ld.so.conf.d/00-quiescence.conf with the line\n\
             \x20   {home}\n\
             and then ldconfig. To go back, remove the file and run ldconfig.\n\
             \n\
             Which library a process runs on: grep quiescence /proc/PID/maps\n"
        ),
        Part::Development => format!(
            "The headers are in /usr/include/quiescence, the libraries to link with in {home}.\n\
             \n\
             \x20   PKG_CONFIG_PATH={home}/pkgconfig pkg-config --cflags --libs liburcu-memb\n\
             \n\
             A program that was linked so finds the libraries of liburcu8 when it runs, unless it is told\n\
             otherwise: see README.Debian of {RUNTIME}, or link it with -Wl,-rpath,{home}.\n"
        ),
    }
}

fn copyright() -> Result<String> {
    let root = compat::root();
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_owned());
    Ok(format!(
        "quiescence is licensed under either of the following, at your choice.\n\n{}\n{}",
        read("LICENSE-MIT")?,
        read("LICENSE-APACHE")?
    ))
}

fn write(stage: &Path, path: &str, text: &str) -> Result<()> {
    let place = stage.join(path);
    fs::create_dir_all(place.parent().expect("a file has a directory"))?;
    fs::write(&place, text).with_context(|| place.display().to_string())
}

fn installed_kilobytes(stage: &Path) -> Result<u64> {
    let files = files_below(stage)?;
    let sizes = files.iter().map(|file| Ok(fs::symlink_metadata(file)?.len().div_ceil(1024)));
    sizes.sum()
}

/// As Debian wants them, whatever the mask is here.
fn set_modes(stage: &Path) -> Result<()> {
    for file in files_below(stage)? {
        if !file.is_symlink() {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644))?;
        }
        for directory in
            file.ancestors().skip(1).take_while(|directory| directory.starts_with(stage))
        {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(leading_version("2.34  Flags: none  Version: 4"), Some((2, 34)));
        assert_eq!(leading_version("2.2.5 Flags"), Some((2, 2)));
        assert_eq!(leading_version("PRIVATE  Flags"), None);
        assert!(leading_version("2.34") > leading_version("2.4"));
    }
}
