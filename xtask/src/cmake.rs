//! What CMake's `find_package(quiescence)` reads: imported targets, and the version.
//!
//! `quiescence::memb` and the others are the shared libraries, `quiescence::memb-static` and the
//! others the archives with all that they need, and `quiescence::cxx` is what `<rcu>` and
//! `<hazard_pointer>` need.

use std::fmt::Write as _;
use std::path::Path;

use crate::library::{CORE, CORE_ARCHIVE, LIBRARIES, Library};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The files in the tree as it is built, which may be moved: where they are, all else is.
pub(crate) fn files() -> [(&'static str, String); 2] {
    let here = "${CMAKE_CURRENT_LIST_DIR}";
    files_for(&format!("{here}/../.."), &format!("{here}/../../../include"))
}

/// Below the libraries' directory, where CMake looks: a directory of the package's name, be it
/// theirs or one of its own.
pub(crate) fn place(libdir: &Path) -> &'static str {
    if libdir.file_name().is_some_and(|name| name == "quiescence") {
        "cmake"
    } else {
        "cmake/quiescence"
    }
}

/// File names and contents; the places are as programs will find them.
pub(crate) fn files_for(libdir: &str, includedir: &str) -> [(&'static str, String); 2] {
    [
        ("quiescence-config.cmake", config(libdir, includedir)),
        ("quiescence-config-version.cmake", version()),
    ]
}

fn config(libdir: &str, includedir: &str) -> String {
    let components = LIBRARIES.iter().filter_map(component).map(|(name, _)| name);
    let components = components.chain(["cxx"]).collect::<Vec<_>>().join(" ");
    let mut text = format!(
        "# Read-copy-update for user space, with liburcu's interface.\n\
         #   find_package(quiescence 0.1 REQUIRED COMPONENTS memb)\n\
         #   target_link_libraries(program PRIVATE quiescence::memb)\n\
         # Components, and targets: {components}; each but cxx as NAME-static too.\n\
         foreach(_quiescence_component IN LISTS quiescence_FIND_COMPONENTS)\n\
         \x20 if(NOT _quiescence_component MATCHES \"^({alternatives})$\")\n\
         \x20   set(quiescence_FOUND FALSE)\n\
         \x20   set(quiescence_NOT_FOUND_MESSAGE\n\
         \x20     \"there is no component ${{_quiescence_component}}; there are: {components}\")\n\
         \x20   return()\n\
         \x20 endif()\n\
         endforeach()\n\
         if(TARGET quiescence::core)\n\
         \x20 return()\n\
         endif()\n\n\
         include(CMakeFindDependencyMacro)\n\
         find_dependency(Threads)\n\
         get_filename_component(_quiescence_libraries \"{libdir}\" ABSOLUTE)\n\
         get_filename_component(_quiescence_headers \"{includedir}\" ABSOLUTE)\n",
        alternatives = components.replace(' ', "|"),
    );
    text += &target("core", CORE, CORE_ARCHIVE, "");
    for library in LIBRARIES.iter().filter(|library| library.described.is_none()) {
        let name = library.suffix.trim_start_matches('-');
        text += &target(name, &library.soname(), &library.archive(), "core");
    }
    for (name, library) in LIBRARIES.iter().filter_map(component) {
        text += &target(name, &library.soname(), &library.archive(), "common");
    }
    text += "\nadd_library(quiescence::cxx INTERFACE IMPORTED)\n\
             set_target_properties(quiescence::cxx PROPERTIES\n\
             \x20 INTERFACE_COMPILE_FEATURES cxx_std_20\n\
             \x20 INTERFACE_LINK_LIBRARIES \"quiescence::memb;quiescence::core\")\n";
    text
}

/// What a program asks for, if it is something that it asks for.
fn component(library: &Library) -> Option<(&'static str, &Library)> {
    library.described?;
    Some((library.suffix.strip_prefix('-')?, library))
}

/// A library and an archive. What `needs` names is linked after it in a static link; a shared one
/// finds the core by itself, and the linker has to know where that is.
fn target(name: &str, soname: &str, archive: &str, needs: &str) -> String {
    let mut text = format!(
        "\nadd_library(quiescence::{name} SHARED IMPORTED)\n\
         set_target_properties(quiescence::{name} PROPERTIES\n\
         \x20 IMPORTED_LOCATION \"${{_quiescence_libraries}}/{soname}\"\n\
         \x20 IMPORTED_SONAME \"{soname}\"\n\
         \x20 INTERFACE_INCLUDE_DIRECTORIES \"${{_quiescence_headers}}\""
    );
    _ = match needs {
        "" => writeln!(text, ")"),
        "core" => write!(text, "\n  IMPORTED_LINK_DEPENDENT_LIBRARIES quiescence::core)\n"),
        more => write!(
            text,
            "\n  INTERFACE_LINK_LIBRARIES \"quiescence::{more};Threads::Threads\"\n\
             \x20 IMPORTED_LINK_DEPENDENT_LIBRARIES quiescence::core)\n"
        ),
    };
    let behind = match needs {
        "" => "Threads::Threads;${CMAKE_DL_LIBS};m".to_owned(),
        more => format!("quiescence::{more}-static"),
    };
    text += &format!(
        "add_library(quiescence::{name}-static STATIC IMPORTED)\n\
         set_target_properties(quiescence::{name}-static PROPERTIES\n\
         \x20 IMPORTED_LOCATION \"${{_quiescence_libraries}}/{archive}\"\n\
         \x20 IMPORTED_LINK_INTERFACE_LANGUAGES C\n\
         \x20 INTERFACE_INCLUDE_DIRECTORIES \"${{_quiescence_headers}}\"\n\
         \x20 INTERFACE_LINK_LIBRARIES \"{behind}\")\n"
    );
    text
}

/// Before 1.0 a minor version may change anything.
fn version() -> String {
    let minor = VERSION.rsplit_once('.').map_or(VERSION, |(minor, _)| minor).replace('.', "\\\\.");
    format!(
        "set(PACKAGE_VERSION \"{VERSION}\")\n\
         set(PACKAGE_VERSION_COMPATIBLE FALSE)\n\
         if(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION\n\
         \x20  AND \"${{PACKAGE_FIND_VERSION}}.\" MATCHES \"^{minor}\\\\.\")\n\
         \x20 set(PACKAGE_VERSION_COMPATIBLE TRUE)\n\
         endif()\n\
         if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n\
         \x20 set(PACKAGE_VERSION_EXACT TRUE)\n\
         endif()\n\
         if(CMAKE_SIZEOF_VOID_P AND NOT CMAKE_SIZEOF_VOID_P EQUAL {bytes})\n\
         \x20 set(PACKAGE_VERSION \"{VERSION} ({bits} bit)\")\n\
         \x20 set(PACKAGE_VERSION_UNSUITABLE TRUE)\n\
         endif()\n",
        bytes = size_of::<usize>(),
        bits = usize::BITS,
    )
}
